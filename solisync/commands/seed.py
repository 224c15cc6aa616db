"""`solisync seed`: fill a database with made-up players, to try the service, to size a machine or to test clients."""

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from random import Random
from uuid import uuid4

from ..access.passwords import Passwords
from ..errors import DatabaseError, FatalError, Interrupted
from ..klondike import DRAW_MODES
from ..postgres.database import Database
from ..rules import sample_data as rules
from ..rules.accounts import check_new_password
from ..rules.challenge import daily_challenge
from ..rules.replays import read_replay
from ..rules.sample_games import WonGame, sample_game, won_game
from ..storage import daily_numbers
from ..storage import sample_data as seed
from ..storage.sample_data import NewPlayer, NewReplay
from .task import Task, only_line

BATCH = 200  # players or replays per transaction
OWN_PLAYERS_MAX = 1  # the account of a person who tries the service


@dataclass(frozen=True, slots=True)
class _Seed:
    """One run: its numbers of players and replays, the share of players who win, and the games that these have won."""

    task: Task
    database: Database
    now: datetime
    count: int
    replays: int
    share: float
    won: dict[str, list[WonGame]] = field(default_factory=dict)  # by the id of the player

    async def players(self, first: int, password_hash: str) -> list[NewPlayer]:
        """Add players with progress and leaderboard entries; their numbers begin at `first`, or after those present."""
        made: list[NewPlayer] = []
        while len(made) < self.count:
            numbers = range(first, first + min(BATCH, self.count - len(made)))
            players = [self._player(number) for number in numbers]
            try:
                await self.database.transact(partial(seed.store_players, players=players, password_hash=password_hash))
            except Interrupted:
                raise
            except DatabaseError:
                last = (await self.database.run(seed.present)).last_made
                if last < first:
                    raise
                first = last + 1  # another run made players with these names
                continue
            made += players
            first = numbers.stop
            self.task.progress.report(f"{len(made):,} of {self.count:,} players")
        return made

    def _player(self, number: int) -> NewPlayer:
        rounds = math.ceil(self.replays / self.count)
        begin = rules.winners_before(number, self.share) * rounds
        wins = rules.winners_before(number + 1, self.share) * rounds - begin
        games = [sample_game(begin + game) for game in range(wins)]
        best = max(games, key=lambda game: game.score, default=None)
        player = NewPlayer(str(uuid4()), number, rules.player(number, self.now, best))
        self.won[player.id] = games
        return player

    async def store_replays(self, players: list[NewPlayer]) -> int:
        """Add the replays of the players, and a win of the deal of the day if the search finds one; return how many."""
        made = self._replays(players)
        stored = 0
        while batch := [*islice(made, BATCH)]:
            await self.database.transact(partial(seed.store_replays, replays=batch))
            stored += len(batch)
            self.task.progress.report(f"{stored:,} of {self.replays:,} replays")
        return stored

    def _replays(self, players: list[NewPlayer]) -> Iterator[NewReplay]:
        number = players[0].number
        for place in range(self.replays):
            turn, index = divmod(place, self.count)
            player = players[index]
            games = self.won[player.id]
            yield self._replay(number + place, player, games[turn] if games else None)
        if self.replays and (win := self._win_of_the_day()) is not None:
            winner = next((player for player in players if player.made.display_name is not None), players[0])
            yield _uploaded(number + self.replays, winner, self.now, win)

    def _replay(self, number: int, player: NewPlayer, game: WonGame | None) -> NewReplay:
        """Return a replay of a player from a random time since the registration, most likely a recent one."""
        age = (self.now - player.made.created_at) * Random(number).random() ** 2  # noqa: S311
        return _uploaded(number, player, self.now - age, game)

    def _win_of_the_day(self) -> WonGame | None:
        self.task.progress.report("solving the deal of the day", now=True)
        deal = daily_challenge(self.now.date()).seed
        win = next(filter(None, (won_game(deal, draw_mode) for draw_mode in DRAW_MODES)), None)
        if win is None:
            self.task.progress.remark("found no win of the deal of the day, so its board gets none")
        return win


async def fill(task: Task) -> None:
    """Add players with progress and leaderboard entries, then their replays."""
    password = _password(task)
    async with task.database() as database:
        present = await database.run(seed.present)
        if present.players > OWN_PLAYERS_MAX and not task.chosen.force:
            raise FatalError(
                f"solisync: this database has {present.players:,} players that seed didn't make: use an empty database,"
                " or --force to add made-up players"
            )
        hashing = Passwords(reactor=task.reactor, threads=task.reactor.getThreadPool(), at_once=1)
        password_hash = await hashing.hash(password)  # one hash for all, because bcrypt takes a fifth of a second
        count, now = task.chosen.players, datetime.now(UTC)
        replays = count if task.chosen.replays is None else task.chosen.replays
        run = _Seed(task, database, now, count, replays, task.chosen.verified)
        players = await run.players(present.last_made + 1, password_hash)
        stored = await run.store_replays(players)
        await database.run(seed.store_history, players)
        await database.run(daily_numbers.count_again, (now - timedelta(days=rules.DAYS + 1)).date())
    task.progress.clear()
    first, last = (f"{seed.PREFIX}{player.number}" for player in (players[0], players[-1]))
    winners = sum(bool(run.won[player.id]) for player in players)
    task.output.say(
        f"made {count:,} players, {first} to {last}, and {stored:,} replays; {winners:,} players have won games",
        players=count,
        replays=stored,
        winners=winners,
        first=first,
        last=last,
    )


def _password(task: Task) -> bytes:
    """Return the password from standard input with --password-stdin, else a random one that is never shown."""
    if not task.chosen.password_stdin:
        return secrets.token_bytes(32)
    try:
        return check_new_password(only_line().decode())
    except UnicodeDecodeError:
        raise FatalError("solisync: the password is not UTF-8") from None


def _uploaded(number: int, player: NewPlayer, received: datetime, game: WonGame | None) -> NewReplay:
    body = rules.replay(number, received - timedelta(seconds=2), game)
    return NewReplay(str(uuid4()), player.id, received, read_replay(body))
