"""SQL and nothing else: named statements, and a function for each use of them; one module for each noun.

A function that is one round trip of a transaction takes the Transaction. One whose statements end a transaction returns
them as steps for `Transaction.commit_with`, and so the commit is visible where `transact` is. What only commands run is
not prepared on the connections of the service.
"""

from importlib import import_module

from ..postgres.statement import Statement

MODULES = (
    "accounts",
    "analytics",
    "avatars",
    "boards",
    "checks",
    "export",
    "leaderboard",
    "own_replays",
    "pages",
    "rate_limits",
    "recent_searches",
    "replays",
    "schema",
    "sessions",
    "sync",
    "verdicts",
)
"""The modules of the service; the others are for commands alone."""

STATEMENTS: tuple[Statement, ...] = tuple(
    dict.fromkeys(  # some are used by several nouns
        value
        for name in MODULES
        for value in vars(import_module(f".{name}", __name__)).values()
        if isinstance(value, Statement) and value.prepared
    )
)
"""The statements to prepare on each connection of the service."""
