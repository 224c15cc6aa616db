"""Searches of the last hour, which count where players take turns: docs/verification.md "How replays get checked".

A trigger on the queue remembers them.
"""

from ..postgres.declared import count


@count("""
    DELETE FROM recent_searches WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM recent_searches WHERE ended_at < now() - interval '1 hour'
        ORDER BY ended_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)
async def prune(*, most: int) -> int:
    """Forget up to `most` searches that ended more than an hour ago; how many."""
