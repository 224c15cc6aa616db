"""The embedded PostgreSQL: its server as a child process, its programs and its data directory."""
