"""HTTP: bytes in and out, the route table, and one module per noun that composes rules and storage."""
