"""How fast solisync is, beside the limit and beside what else one could pick: `make bench`, `make bench-growth`."""
