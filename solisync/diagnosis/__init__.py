"""Checks of settings, host, database and capacity, for `solisync doctor` and the console."""
