"""`solisync seed`: filling a database with made-up players, for sizing a machine and for tests of clients."""

import secrets
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from uuid import uuid4

from ..access.passwords import Passwords
from ..errors import FatalError
from ..rules import sample_data as rules
from ..rules.accounts import check_new_password
from ..rules.replays import read_replay
from ..settings.values import without_line_end
from ..storage import sample_data as seed
from ..storage.sample_data import NewPlayer, NewReplay
from .task import Task

BATCH = 200  # players or replays in a transaction


async def fill(task: Task) -> None:
    """Add players with their progress and entries on the leaderboard, then replays of theirs."""
    count, replays = task.chosen.players, task.chosen.replays
    password = _password(task)
    async with task.database() as database:
        present = await database.autocommit(seed.present)
        if present.players and not task.chosen.force:
            raise FatalError(
                f"solisync: this database has {present.players:,} player{'' if present.players == 1 else 's'} of its"
                " own: take an empty one, or say --force to add made-up players to it"
            )
        now = datetime.now(UTC)
        hashing = Passwords(reactor=task.reactor, threads=task.reactor.getThreadPool(), at_once=1)
        password_hash = await hashing.hash(password)  # one for all: bcrypt takes a fifth of a second
        first = present.last_made + 1
        known: list[NewPlayer] = []
        for numbers in _batches(first, count):
            players = [NewPlayer(str(uuid4()), number, rules.player(number, now)) for number in numbers]
            await database.transact(partial(seed.store_players, players=players, password_hash=password_hash))
            known += players
            task.progress.report(f"{len(known):,} of {count:,} players")
        for numbers in _batches(first, replays):
            made = [_replay(number, known[number % count], now) for number in numbers]
            await database.transact(partial(seed.store_replays, replays=made))
            task.progress.report(f"{numbers.stop - first:,} of {replays:,} replays")
        task.progress.clear()
        names = [f"{seed.PREFIX}{player.number}" for player in known]
        task.output.say(
            f"made {count:,} players, {names[0]} to {names[-1]}, and {replays:,} replays",
            players=count,
            replays=replays,
            first=names[0],
            last=names[-1],
        )


def _password(task: Task) -> bytes:
    """The password from standard input, if there is to be one; else one that nobody knows."""
    if not task.chosen.password_stdin:
        return secrets.token_bytes(32)
    try:
        return check_new_password(without_line_end(sys.stdin.buffer.readline()).decode())
    except UnicodeDecodeError:
        raise FatalError("solisync: the password is not UTF-8") from None


def _batches(first: int, count: int) -> Iterator[range]:
    for begin in range(first, first + count, BATCH):
        yield range(begin, min(begin + BATCH, first + count))


def _replay(number: int, player: NewPlayer, now: datetime) -> NewReplay:
    """A replay of a player, of some time since they registered."""
    since = player.made.created_at
    received = since + (now - since) * Random(number).random()  # noqa: S311
    return NewReplay(
        str(uuid4()), player.id, received, read_replay(rules.replay(number, received - timedelta(seconds=2)))
    )
