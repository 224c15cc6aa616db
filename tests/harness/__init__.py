"""What the tests share: the service, its processes and its database, and what a client would send."""
