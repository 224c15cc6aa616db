"""Storing made-up players and replays, by COPY (docs/administration.md "`solisync seed`")."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from ..postgres.copying import Copying
from ..rules.stock import PREFIX, MadePlayer, MadeReplay, Stock
from .replays.replays import COLUMNS, values
from .rows import number

BATCH = 1_000  # players
Line = tuple[datetime, str, str, str, int]  # of the history of accounts
HISTORY_AGE = timedelta(days=30)  # the service keeps no older lines


_PRESENT = f"""
    SELECT count(*) FILTER (WHERE made IS NULL), coalesce(max(made), 0)
    FROM (SELECT substring(username FROM '^{PREFIX}([0-9]{{1,9}})$')::int AS made FROM users) AS names
"""  # noqa: S608


class Present(NamedTuple):
    """The number of players that are not made up, and the greatest number of one who is."""

    players: int
    last_made: int


class Stored(NamedTuple):
    """A batch of players, and their replays."""

    players: Sequence[MadePlayer]
    replays: Sequence[MadeReplay]


def present(copying: Copying) -> Present:
    """Wait for another transaction that stores made-up players, and return who is in the database."""
    copying.row("SELECT pg_advisory_xact_lock(6129834572114805)")
    return Present(*copying.row(_PRESENT))


def store(copying: Copying, stock: Stock, password_hash: str, expiry: int | None = None) -> Iterator[Stored]:
    """Store a stock, and yield each stored batch; all players have the same password.

    With an `expiry`, the players have an access token that expires then.
    """
    numbers = iter(stock.numbers)
    lines: list[Line] = []
    while players := [stock.player(each) for each in islice(numbers, BATCH)]:
        replays = [replay for player in players for replay in stock.replays_of(player)]
        _store_players(copying, players, password_hash, expiry)
        store_replays(copying, replays)
        lines += _history(players, stock)
        yield Stored(players, replays)
    # In the order of time, because the ids of lines rise with their times.
    lines.sort(key=itemgetter(0))
    copying.copy("account_history (happened_at, user_id, event, client, times)", lines)


def _store_players(copying: Copying, players: Sequence[MadePlayer], password_hash: str, expiry: int | None) -> None:
    expiries = None if expiry is None else f"{{{expiry}}}"
    copying.copy(
        "users (id, username, password_hash, created_at, access_expiries)",
        ((each.id, each.username, password_hash, each.created_at, expiries) for each in players),
    )
    copying.copy(
        "sync_states (user_id, payload, counted, revision)",
        ((each.id, each.progress.encode().decode(), each.counted, 1) for each in players),
    )
    copying.copy(
        "leaderboard (user_id, display_name, best_score, best_time_secs, recorded_at, visible)",
        (
            (each.id, each.display_name, number(each.bests.score), number(each.bests.seconds), each.played_at, True)
            for each in players
            if each.display_name is not None
        ),
    )


def store_replays(copying: Copying, replays: Iterable[MadeReplay]) -> None:
    """Store replays, which the service then checks."""
    copying.copy(
        f"replays ({COLUMNS}, size)",
        ((*values(each.id, each.user_id, each.received_at, each.received), len(each.received.raw)) for each in replays),
    )


def _history(players: Sequence[MadePlayer], stock: Stock) -> Iterator[Line]:
    """The lines of those who registered lately, from made-up addresses."""
    for each in players:
        if each.created_at > stock.now - HISTORY_AGE:
            for event in ("register", "opted in")[: 1 if each.display_name is None else 2]:
                yield each.created_at, each.id, event, f"203.0.113.{each.number % 254 + 1}", 1
