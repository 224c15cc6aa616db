"""Tokens, passwords, rate limits, and the addresses of clients."""
