"""Tokens, passwords, rate limits and clients' addresses."""
