"""Shared parts of the tests: services, processes and databases, and requests as clients send them."""
