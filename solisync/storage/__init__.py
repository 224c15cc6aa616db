"""SQL and nothing else: named statements, and a function for each use of them; one module for each noun.

A function that needs BEGIN takes a Transaction; any other takes Statements, so that `autocommit` can run it too. One
whose statements end a transaction returns them as steps for `Transaction.commit_with`, and so the commit is visible
where `transact` is. What only commands run is not prepared on the connections of the service.
"""

from ..postgres.statement import Statement
from . import (
    accounts,
    analytics,
    avatars,
    boards,
    checks,
    export,
    leaderboard,
    own_replays,
    pages,
    rate_limits,
    recent_searches,
    replays,
    schema,
    sessions,
    sync,
    verdicts,
)

STATEMENTS: tuple[Statement, ...] = tuple(
    dict.fromkeys(  # some are used by several nouns
        value
        for module in (
            accounts,
            analytics,
            avatars,
            boards,
            checks,
            export,
            leaderboard,
            own_replays,
            pages,
            rate_limits,
            recent_searches,
            replays,
            schema,
            sessions,
            sync,
            verdicts,
        )
        for value in vars(module).values()
        if isinstance(value, Statement) and value.prepared
    )
)
"""The statements to prepare on each connection of the service."""
