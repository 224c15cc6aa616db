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
    "analytics",
    "housekeeping",
    "html_pages",
    "operators.acts",
    "operators.admins",
    "operators.counts",
    "operators.daily_numbers",
    "operators.large_accounts",
    "operators.review",
    "paging",
    "players.accounts",
    "players.avatars",
    "players.export",
    "players.games",
    "players.guests",
    "players.history",
    "players.leaderboard",
    "players.player_lists",
    "players.players",
    "players.recovery",
    "players.restrictions",
    "players.sessions",
    "players.sync",
    "rate_limits",
    "replays.boards",
    "replays.checks",
    "replays.listed_replays",
    "replays.own_replays",
    "replays.recent_replays",
    "replays.rechecks",
    "replays.replays",
    "replays.verdicts",
    "retention",
    "rows",
    "schema",
    "stock",
    "streams",
)
EVERY = dict.fromkeys(  # several modules share some of them
    statement for name in MODULES for statement in statements_of(import_module(f"{__name__}.{name}"))
)
STATEMENTS = tuple(statement for statement in EVERY if statement.prepared)
"""The statements to prepare on each connection of the service."""
