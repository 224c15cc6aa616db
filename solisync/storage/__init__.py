"""SQL and nothing else: one module for each resource, and one function for each statement or group of statements.

A function that needs a transaction takes a Transaction. Every other function takes Statements, so that `Database.run`
accepts it too. A function whose statements end a transaction returns them as steps for `Transaction.commit_with`, which
keeps the commit visible at the call of `transact`. Statements of commands and the console alone are not prepared on the
service's connections.
"""

from importlib import import_module

from ..postgres.declared import statements_of

# By name: a module of another version, left behind by an unusual installation, must not keep the service from starting.
MODULES = (
    "accounts",
    "acts",
    "admins",
    "analytics",
    "avatars",
    "boards",
    "checks",
    "counts",
    "daily_numbers",
    "export",
    "guests",
    "history",
    "housekeeping",
    "html_pages",
    "large_accounts",
    "leaderboard",
    "listed_replays",
    "own_replays",
    "paging",
    "player_lists",
    "players",
    "rate_limits",
    "recent_replays",
    "rechecks",
    "recovery",
    "replays",
    "restrictions",
    "retention",
    "review",
    "rows",
    "schema",
    "sessions",
    "stock",
    "streams",
    "sync",
    "verdicts",
)
EVERY = dict.fromkeys(  # several modules share some of them
    statement for name in MODULES for statement in statements_of(import_module(f"{__name__}.{name}"))
)
STATEMENTS = tuple(statement for statement in EVERY if statement.prepared)
"""The statements to prepare on each connection of the service."""
