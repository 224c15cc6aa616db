"""The subcommands of `solisync`: what an operator does with the database, beside a running service or without one."""
