"""solisync: the HTTP backend of a solitaire game, on Twisted and PostgreSQL."""

__version__ = "1.2.0"
