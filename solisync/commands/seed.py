"""`solisync seed`: fill a database with made-up players, to size a machine or to test clients."""

import secrets
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from uuid import uuid4

from ..access.passwords import Passwords
from ..errors import DatabaseError, FatalError, Interrupted
from ..rules import sample_data as rules
from ..rules.accounts import check_new_password
from ..rules.replays import read_replay
from ..settings.values import without_line_end
from ..storage import sample_data as seed
from ..storage.sample_data import NewPlayer, NewReplay
from .task import Task

BATCH = 200  # players or replays per transaction
OWN_PLAYERS_MAX = 1  # the account of a person who tries the service


async def fill(task: Task) -> None:
    """Add players with progress and leaderboard entries, then their replays."""
    count, replays = task.chosen.players, task.chosen.replays
    password = _password(task)
    async with task.database() as database:
        present = await database.run(seed.present)
        if present.players > OWN_PLAYERS_MAX and not task.chosen.force:
            raise FatalError(
                f"solisync: this database has {present.players:,} players that seed didn't make: use an empty database,"
                " or --force to add made-up players"
            )
        now = datetime.now(UTC)
        hashing = Passwords(reactor=task.reactor, threads=task.reactor.getThreadPool(), at_once=1)
        password_hash = await hashing.hash(password)  # one hash for all, because bcrypt takes a fifth of a second
        first = present.last_made + 1
        known: list[NewPlayer] = []
        while len(known) < count:
            numbers = range(first, first + min(BATCH, count - len(known)))
            players = [NewPlayer(str(uuid4()), number, rules.player(number, now)) for number in numbers]
            try:
                await database.transact(partial(seed.store_players, players=players, password_hash=password_hash))
            except Interrupted:
                raise
            except DatabaseError:
                last = (await database.run(seed.present)).last_made
                if last < first:
                    raise
                first = last + 1  # another run made players with these names
                continue
            known += players
            first = numbers.stop
            task.progress.report(f"{len(known):,} of {count:,} players")
        for start in range(0, replays, BATCH):
            made = [
                _replay(first + number, known[number % count], now)
                for number in range(start, min(start + BATCH, replays))
            ]
            await database.transact(partial(seed.store_replays, replays=made))
            task.progress.report(f"{start + len(made):,} of {replays:,} replays")
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
    """Return the password from standard input with --password-stdin, else a random one that is never shown."""
    if not task.chosen.password_stdin:
        return secrets.token_bytes(32)
    try:
        return check_new_password(without_line_end(sys.stdin.buffer.readline()).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise FatalError("solisync: the password is not UTF-8") from None


def _replay(number: int, player: NewPlayer, now: datetime) -> NewReplay:
    """Return a replay of a player, from a random time since the registration."""
    since = player.made.created_at
    received = since + (now - since) * Random(number).random()  # noqa: S311
    return NewReplay(
        str(uuid4()), player.id, received, read_replay(rules.replay(number, received - timedelta(seconds=2)))
    )
