"""solisync: the HTTP backend of a solitaire game, on Twisted and PostgreSQL."""

__version__ = "0.1.0"
