"""SQL and nothing else: one module per noun, each function `async def name(cursor, …)` over named statements."""

from ..session import Statement
from . import accounts, leaderboard, rate_limits, schema, sessions, sync

STATEMENTS: tuple[Statement, ...] = tuple(
    value
    for module in (accounts, leaderboard, rate_limits, schema, sessions, sync)
    for value in vars(module).values()
    if isinstance(value, Statement)
)
"""Every statement there is, for preparing them on each connection."""
