"""Storing sample players and replays, many in a statement (docs/administration.md "`solisync seed`")."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ..postgres.declared import one
from ..postgres.statement import Statement
from ..postgres.transaction import Statements, Transaction
from ..rules.replays import ReceivedReplay
from ..rules.sample_data import SeededPlayer
from .replays import COLUMNS, SENT, sent
from .rows import number

PREFIX = "seeded_"  # a sample player's username is this prefix and a number from 1 on


@dataclass(frozen=True, slots=True)
class Present:
    """The number of real players, and the greatest number of a sample player."""

    players: int
    last_made: int


PLAYERS = Statement(
    "seed_players",
    """
    INSERT INTO users (id, username, password_hash, created_at)
    SELECT id, username, $3::text, created_at
    FROM unnest($1::text[]::uuid[], $2::text[], $4::text[]::timestamptz[]) AS made (id, username, created_at)
    """,
    prepared=False,
)

DOCUMENTS = Statement(
    "seed_documents",
    """
    INSERT INTO sync_states (user_id, payload)
    SELECT user_id, payload FROM unnest($1::text[]::uuid[], $2::text[]) AS made (user_id, payload)
    """,
    prepared=False,
)

ENTRIES = Statement(
    "seed_entries",
    """
    INSERT INTO leaderboard (user_id, display_name, best_score, best_time_secs, recorded_at, visible)
    SELECT user_id, display_name, best_score, best_time_secs, recorded_at, true
    FROM unnest($1::text[]::uuid[], $2::text[], $3::text[]::int[], $4::text[]::int[], $5::text[]::timestamptz[])
        AS made (user_id, display_name, best_score, best_time_secs, recorded_at)
    """,
    prepared=False,
)

REPLAYS = Statement(
    "seed_replays",
    f"INSERT INTO replays ({COLUMNS}, size) SELECT *, octet_length(body) FROM {SENT}",  # noqa: S608
    prepared=False,
)


# Only what the service still keeps, in the order of time, because the numbers of lines rise with their times.
HISTORY = Statement(
    "seed_history",
    """
    INSERT INTO account_history (happened_at, user_id, event, client, times)
    SELECT happened_at, user_id, event, client, 1
    FROM unnest($1::text[]::uuid[], $2::text[], $3::text[]::timestamptz[], $4::text[])
        AS made (user_id, event, happened_at, client)
    WHERE happened_at > now() - interval '30 days' ORDER BY happened_at, event DESC
    """,
    prepared=False,
)


class NewPlayer(NamedTuple):
    """A sample player to store."""

    id: str
    number: int
    made: SeededPlayer


class NewReplay(NamedTuple):
    """A sample replay to store."""

    id: str
    user_id: str
    received_at: datetime
    replay: ReceivedReplay


# Counts players whose names don't have the form of sample players, and finds the greatest number among the others.
@one(
    f"""
    SELECT count(*) FILTER (WHERE made IS NULL) AS players, coalesce(max(made), 0) AS last_made
    FROM (SELECT substring(username FROM '^{PREFIX}([0-9]{{1,9}})$')::int AS made FROM users) AS names
    """,  # noqa: S608
    prepared=False,
    row=Present,
)
async def present() -> Present:
    """The players that are already in the database."""


async def store_players(transaction: Transaction, players: Sequence[NewPlayer], password_hash: str) -> None:
    """Store sample players, all with the same password."""
    ids = [player.id for player in players]
    names = [f"{PREFIX}{player.number}" for player in players]
    seen = [player for player in players if player.made.display_name is not None]
    await transaction.run(
        (PLAYERS, ids, names, password_hash, [player.made.created_at.isoformat() for player in players]),
        (DOCUMENTS, ids, [player.made.document.decode() for player in players]),
        (
            ENTRIES,
            [player.id for player in seen],
            [player.made.display_name for player in seen],
            [number(player.made.bests.score) for player in seen],
            [number(player.made.bests.seconds) for player in seen],
            [player.made.played_at.isoformat() for player in seen],
        ),
    )


async def store_replays(statements: Statements, replays: Sequence[NewReplay]) -> None:
    """Store sample replays."""
    await statements.run((REPLAYS, *sent(replays)))


async def store_history(statements: Statements, players: Sequence[NewPlayer]) -> None:
    """Store who of the sample players registered in the last 30 days, from made-up addresses."""
    lines = [
        (player.id, event, player.made.created_at.isoformat(), f"203.0.113.{player.number % 254 + 1}")
        for player in players
        for event in ("register", "opted in")
        if event == "register" or player.made.display_name is not None
    ]
    await statements.run((HISTORY, *map(list, zip(*lines, strict=True))))
