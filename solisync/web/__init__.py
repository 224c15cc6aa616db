"""HTTP: the connections, the route table, and one module per resource, which combines rules and storage."""
