"""HTTP/1.1 on a connection: parsing, limits, deadlines, back-pressure, the answer's bytes."""
