"""SQL about operators: acts and admins, the review, counts."""
