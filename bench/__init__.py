"""Benchmarks: `make bench` and the targets whose names begin with `bench-`; docs/performance.md explains them."""
