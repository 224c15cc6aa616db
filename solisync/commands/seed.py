"""`solisync seed`: fill a database with made-up players, to try the service, to size a machine or to test clients."""

import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from ..access.passwords import Passwords
from ..errors import FatalError
from ..klondike import DRAW_MODES
from ..postgres.copying import Copying, copy
from ..postgres.opening import open_connection
from ..postgres.transaction import Statements
from ..rules.accounts import check_new_password
from ..rules.challenge import daily_challenge
from ..rules.stock import DAYS, Stock, WonGame, made_replay, win_of
from ..storage import stock as storage
from ..storage.operators import daily_numbers
from .running import check_schema, reached
from .task import Task, only_line

OWN_PLAYERS_MAX = 1  # the account of a person who tries the service


class _Made(NamedTuple):
    """What a run has stored; `won_today` is whether one of the replays is a win of the deal of the day."""

    stock: Stock
    replays: int
    won_today: bool


@dataclass(frozen=True, slots=True)
class _Seed:
    """One run: the wanted numbers of players and replays, and the share of winners."""

    players: int
    replays: int
    verified: float
    force: bool
    now: datetime
    report: Callable[[str], None]

    def store(self, copying: Copying, password_hash: str) -> _Made:
        """Store the players, their replays, and a win of the deal of the day if the search finds one."""
        present = storage.present(copying)
        if present.players > OWN_PLAYERS_MAX and not self.force:
            raise FatalError(
                f"solisync: this database has {present.players:,} players that seed didn't make: use an empty database,"
                " or --force to add made-up players"
            )
        win = self._win_of_the_day() if self.replays else None
        first = present.last_made + 1
        stock = Stock(first=first, players=self.players, replays=self.replays, verified=self.verified, now=self.now)
        winner, players, replays = None, 0, 0
        for batch in storage.store(copying, stock, password_hash):
            winner = winner or next((each for each in batch.players if each.display_name is not None), None)
            players, replays = players + len(batch.players), replays + len(batch.replays)
            self.report(f"{players:,} of {self.players:,} players, {replays:,} of {self.replays:,} replays")
        if win is not None:
            winner = winner or stock.player(first)
            storage.store_replays(copying, [made_replay(str(uuid4()), winner, self.now, win)])
        return _Made(stock, replays + (win is not None), win is not None)

    def _win_of_the_day(self) -> WonGame | None:
        self.report("solving the deal of the day")
        deal = daily_challenge(self.now.date()).seed
        return next(filter(None, (win_of(deal, draw_mode) for draw_mode in DRAW_MODES)), None)


async def fill(task: Task) -> None:
    """Add players with progress, leaderboard entries and replays, all of them or none."""
    password = _password(task)
    chosen, reactor, now = task.chosen, task.reactor, datetime.now(UTC)
    replays = chosen.players if chosen.replays is None else chosen.replays
    report = partial(reactor.callFromThread, partial(task.progress.report, now=True))
    seed = _Seed(chosen.players, replays, chosen.verified, chosen.force, now, report)
    async with reached(task.settings, reactor, partial(open_connection, reactor)) as (dsn, connection):
        with closing(connection):
            statements = Statements(connection)
            await check_schema(statements)
            hashing = Passwords(reactor=reactor, threads=reactor.getThreadPool(), at_once=1)
            password_hash = await hashing.hash(password)  # one hash for all, because bcrypt takes a fifth of a second
            made = await copy(reactor, dsn, partial(seed.store, password_hash=password_hash))
            await daily_numbers.count_again(statements, (now - timedelta(days=DAYS + 1)).date())
    task.progress.clear()
    if replays and not made.won_today:
        task.progress.remark("found no win of the deal of the day, so its board gets none")
    names = [made.stock.player(number).username for number in (made.stock.numbers[0], made.stock.numbers[-1])]
    task.output.say(
        f"made {chosen.players:,} players, {names[0]} to {names[1]}, and {made.replays:,} replays;"
        f" {made.stock.winners:,} players have won games",
        players=chosen.players,
        replays=made.replays,
        winners=made.stock.winners,
        first=names[0],
        last=names[1],
    )


def _password(task: Task) -> bytes:
    """Return the password from standard input with --password-stdin, else a random one that is never shown."""
    if not task.chosen.password_stdin:
        return secrets.token_bytes(32)
    try:
        return check_new_password(only_line().decode())
    except UnicodeDecodeError:
        raise FatalError("solisync: the password is not UTF-8") from None
