"""Storing replays, refresh tokens and events of an original server, each once (docs/moving-in.md "Again and again").

The transaction that stores a record also notes its id permanently, so that a record that was spent or deleted here
doesn't come back. For dry runs, the `fresh_` functions return the ids that would be stored.
"""

from collections.abc import Collection, Sequence

from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements, Transaction
from ..storage.replays.replays import COLUMNS, SENT, sent
from ..storage.rows import id_set
from .players import LOCK
from .rows import LiveToken, OriginalReplay, ReportedEvent

TOKENS = 500  # refresh tokens in a page; SQLite may accept only 999 parameters


def _fresh(kind: str, table: str, key: str) -> Statement:
    """A query of the ids that were never imported, and aren't in the table for another reason."""
    return Statement(
        f"original_fresh_{table}",
        f"""
        SELECT id FROM unnest($1::text[]::uuid[]) AS sent (id)
        WHERE NOT EXISTS (SELECT FROM imported WHERE kind = '{kind}' AND imported.id = sent.id)
          AND NOT EXISTS (SELECT FROM {table} WHERE {table}.{key} = sent.id)
        """,  # noqa: S608
        prepared=False,
    )


def _noted(kind: str) -> str:
    """SQL that notes all ids of `sent`; other parts of the same statement don't see these notes yet."""
    return f"INSERT INTO imported (kind, id) SELECT '{kind}', id FROM sent ON CONFLICT DO NOTHING"  # noqa: S608


# Run first for large rows, so that a repeated import doesn't send them again.
UNNOTED = Statement(
    "original_unnoted",
    """
    SELECT id FROM unnest($1::text[]::uuid[]) AS sent (id)
    WHERE NOT EXISTS (SELECT FROM imported WHERE kind = $2::text AND imported.id = sent.id)
    """,
    prepared=False,
)

_UNKNOWN = "NOT EXISTS (SELECT FROM imported WHERE kind = '{}' AND imported.id = sent.id)"

FRESH_REPLAYS = _fresh("replay", "replays", "id")
SAVE_REPLAYS = Statement(
    "original_save_replays",
    f"""
    WITH sent AS (SELECT * FROM {SENT}), noted AS ({_noted("replay")})
    INSERT INTO replays ({COLUMNS}, size)
    SELECT sent.*, octet_length(body) FROM sent JOIN users ON users.id = sent.user_id WHERE {_UNKNOWN.format("replay")}
    ON CONFLICT (id) DO NOTHING
    RETURNING id
    """,  # noqa: S608
    prepared=False,
)

FRESH_TOKENS = _fresh("refresh", "refresh_tokens", "jti")
SAVE_TOKENS = Statement(
    "original_save_tokens",
    f"""
    WITH sent AS (
        SELECT id, user_id, expires_at
        FROM unnest($1::text[]::uuid[], $2::text[]::uuid[], $3::text[]::timestamptz[])
            AS sent (id, user_id, expires_at)
    ), noted AS ({_noted("refresh")})
    INSERT INTO refresh_tokens (jti, user_id, expires_at, session_id, begun_at, used_at)
    SELECT sent.id, users.id, expires_at, sent.id, begun, begun
    FROM sent JOIN users ON users.id = sent.user_id CROSS JOIN LATERAL (SELECT expires_at - interval '30 days' AS begun)
    WHERE {_UNKNOWN.format("refresh")}
    ON CONFLICT (jti) DO NOTHING
    RETURNING jti
    """,  # noqa: S608
    prepared=False,
)
LIVE_TOKENS = Query(
    "original_live_tokens",
    """
    SELECT jti, user_id FROM imported JOIN refresh_tokens ON jti = imported.id
    WHERE kind = 'refresh' AND imported.id > $1::uuid AND expires_at > clock_timestamp()
    ORDER BY imported.id LIMIT $2::int
    """,
    prepared=False,
    row=lambda jti, user_id: (jti, user_id),
)
SPEND_TOKENS = Statement(
    "original_spend_tokens",
    "DELETE FROM refresh_tokens WHERE jti = ANY ($1::text[]::uuid[]) RETURNING jti",
    prepared=False,
)

FRESH_EVENTS = _fresh("event", "analytics_events", "id")
# A name is stored only with a new event, so that an erased name doesn't come back.
SAVE_EVENTS = Statement(
    "original_save_events",
    f"""
    WITH sent AS (
        SELECT DISTINCT ON (id) id, session_id, name, event_type, payload, client_time, received_at
        FROM unnest(
            $1::text[]::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]::timestamptz[],
            $7::text[]::timestamptz[]
        ) AS sent (id, session_id, name, event_type, payload, client_time, received_at)
    ), noted AS ({_noted("event")}), fresh AS (
        SELECT * FROM sent
        WHERE {_UNKNOWN.format("event")}
          AND NOT EXISTS (SELECT FROM analytics_events WHERE analytics_events.id = sent.id)
    ), names AS (
        INSERT INTO analytics_names AS old (name, seen_on)
        SELECT name, (max(received_at) AT TIME ZONE 'UTC')::date FROM fresh WHERE name IS NOT NULL
        GROUP BY name ORDER BY name
        ON CONFLICT (name) DO UPDATE SET seen_on = greatest(old.seen_on, excluded.seen_on)
        RETURNING id, name
    )
    INSERT INTO analytics_events (id, session_id, name_id, event_type, payload, client_time, received_at)
    SELECT fresh.id, session_id, names.id, event_type, payload, client_time, received_at
    FROM fresh LEFT JOIN names ON names.name = fresh.name
    ORDER BY fresh.id
    ON CONFLICT (id) DO NOTHING
    RETURNING id
    """,  # noqa: S608
    prepared=False,
)


async def fresh_replays(statements: Statements, replays: Sequence[OriginalReplay]) -> set[str]:
    """Return the ids of the replays that would be stored."""
    return id_set(await statements.run((FRESH_REPLAYS, [replay.id for replay in replays])))


async def store_replays(transaction: Transaction, replays: Sequence[OriginalReplay]) -> set[str]:
    """Store new replays; return their ids."""
    unnoted = id_set(await transaction.run((UNNOTED, [replay.id for replay in replays], "replay")))
    replays = [replay for replay in replays if replay.id in unnoted]
    if not replays:
        return set()
    owners = [replay.user_id for replay in replays]
    return id_set(await transaction.run((LOCK, owners), (SAVE_REPLAYS, *sent(replays))))


async def fresh_tokens(statements: Statements, tokens: Sequence[LiveToken]) -> set[str]:
    """Return the ids of the refresh tokens that would be stored."""
    return id_set(await statements.run((FRESH_TOKENS, [token.id for token in tokens])))


async def store_tokens(transaction: Transaction, tokens: Sequence[LiveToken]) -> set[str]:
    """Store new refresh tokens; return their ids."""
    owners, ends = [token.user_id for token in tokens], [token.expires_at.isoformat() for token in tokens]
    save = (SAVE_TOKENS, [token.id for token in tokens], owners, ends)
    return id_set(await transaction.run((LOCK, owners), save))


async def live_tokens(statements: Statements, after: str) -> dict[str, str]:
    """Return the next TOKENS imported refresh tokens that are still live, and their players, in order after an id."""
    return dict(await statements.many(LIVE_TOKENS, after, TOKENS))


async def spend_tokens(transaction: Transaction, tokens: Collection[str], owners: Collection[str]) -> int:
    """Delete refresh tokens of these players; return the number of deleted ones."""
    return len(await transaction.run((LOCK, list(owners)), (SPEND_TOKENS, list(tokens))))


async def fresh_events(statements: Statements, events: Sequence[ReportedEvent]) -> set[str]:
    """Return the ids of the events that would be stored."""
    return id_set(await statements.run((FRESH_EVENTS, [reported.event.id for reported in events])))


async def store_events(transaction: Transaction, events: Sequence[ReportedEvent]) -> set[str]:
    """Store new events; return their ids."""
    unnoted = id_set(await transaction.run((UNNOTED, [reported.event.id for reported in events], "event")))
    events = [reported for reported in events if reported.event.id in unnoted]
    if not events:
        return set()
    rows = await transaction.run(
        (
            SAVE_EVENTS,
            [reported.event.id for reported in events],
            [reported.session_id for reported in events],
            [reported.name for reported in events],
            [reported.event.event_type for reported in events],
            [bytes(reported.event.payload).decode() for reported in events],
            [reported.event.client_time.isoformat() for reported in events],
            [reported.received_at.isoformat() for reported in events],
        ),
    )
    return id_set(rows)
