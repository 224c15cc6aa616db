"""Marks of what admins have seen in the review lists: docs/console.md "Review"."""

from collections.abc import Sequence

from ...postgres.declared import count, found
from ...postgres.statement import Statement
from ...postgres.transaction import Statements
from ..retention import NOW

KEPT_DAYS = 400


def _mark(kind: str, items: str) -> Statement:
    """The statement that marks items of this kind; `items` is SQL that finds them and their players.

    Items that don't exist, and those of players who are being deleted, are left out.
    """
    return Statement(
        f"admin_see_{kind}",
        f"""
        INSERT INTO review_seen (kind, item, user_id, admin)
        SELECT '{kind}', item, id, $2::text FROM (
            SELECT item, users.id FROM ({items}) AS items JOIN users ON users.id = items.user_id
            ORDER BY users.id FOR KEY SHARE OF users
        ) AS present
        ON CONFLICT DO NOTHING RETURNING true
        """,  # noqa: S608
        prepared=False,
    )


def _lines(event: str) -> str:
    return f"""
        SELECT id::text AS item, user_id FROM account_history
        WHERE id = ANY ($1::text[]::bigint[]) AND event = '{event}'
    """  # noqa: S608


NAMES, AVATARS = _mark("names", _lines("opted in")), _mark("avatars", _lines("avatar changed"))
PLAYERS = _mark("players", _lines("register"))
ENTRIES = _mark(
    "entries", "SELECT item, split_part(item, '.', 1)::uuid AS user_id FROM unnest($1::text[]) AS sent (item)"
)
REPLAYS = _mark("replays", "SELECT id::text AS item, user_id FROM replays WHERE id = ANY ($1::text[]::uuid[])")
_STATEMENTS = {"names": NAMES, "avatars": AVATARS, "players": PLAYERS, "entries": ENTRIES, "replays": REPLAYS}


async def see(statements: Statements, kind: str, items: Sequence[str], *, admin: str) -> bool:
    """Mark items as seen; return whether any wasn't. The items are numbers of lines, or ids, as the lists have them."""
    return bool(await statements.run((_STATEMENTS[kind], list(items), admin)))


@found("DELETE FROM review_seen WHERE kind = $1::text AND item = ANY ($2::text[]) RETURNING true", prepared=False)
async def forget(kind: str, items: Sequence[str]) -> bool:
    """Delete the marks of these items; return whether there were any."""


@count(f"""
    DELETE FROM review_seen WHERE (kind, item) IN (
        SELECT kind, item FROM review_seen WHERE seen_at < {NOW} - interval '{KEPT_DAYS} days'
        ORDER BY seen_at LIMIT $1::int
    ) RETURNING true
    """)  # noqa: S608
async def prune(*, most: int) -> int:
    """Delete up to `most` marks older than KEPT_DAYS; return their number."""
