"""Everything that knows the database server: connections, transactions, the schema."""
