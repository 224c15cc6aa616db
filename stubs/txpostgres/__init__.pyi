"""The part of txpostgres that solisync uses; the package has no types of its own."""
