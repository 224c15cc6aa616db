"""SQL and nothing else: one module per noun, each function `async def name(transaction, …)` over named statements."""

from ..postgres.statement import Statement
from . import accounts, analytics, avatars, leaderboard, rate_limits, replays, schema, sessions, sync

STATEMENTS: tuple[Statement, ...] = tuple(
    dict.fromkeys(  # some are used by several nouns
        value
        for module in (accounts, analytics, avatars, leaderboard, rate_limits, replays, schema, sessions, sync)
        for value in vars(module).values()
        if isinstance(value, Statement)
    )
)
"""Every statement there is, for preparing them on each connection."""
