"""Who calls, and how often: tokens, passwords, client addresses, rate limits."""
