"""A test suite for clients of solisync in any language: `python -m clients.conformance -- PROGRAM` (README.md)."""
