"""Benchmarks: `make bench`, `make bench-growth` and `make bench-instructions`; docs/performance.md explains them."""
