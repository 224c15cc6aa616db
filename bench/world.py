"""The data of a benchmark: the players of the stock, with sessions and checked replays.

The ids of players, replays and refresh tokens depend only on numbers, so that the load generator can make a player's
tokens without querying the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial

import bcrypt
import psycopg2

from solisync.access.tokens import Tokens, access_expiry, refresh_expiry
from solisync.klondike import ENGINE_VERSION, Status, Verdict, check_literally
from solisync.postgres.copying import Copying
from solisync.rules.sessions import RefreshRecord
from solisync.rules.stock import PREFIX, Stock, identity, player_id, replay_id
from solisync.storage import stock as storage

SECRET = "a secret for benchmarks, known to everybody"
PASSWORD = "correct horse battery"
VERDICTS = "verdicts (replay_id, status, reason, ruleset, undos, score, moves, checked_at, engine)"
EMPTY = """
DO $$
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);  -- no triggers: they keep the record of acts
    LOOP
        BEGIN
            EXECUTE (
                SELECT 'TRUNCATE ' || string_agg(format('%I', tablename), ', ') FROM pg_tables
                WHERE schemaname = 'public' AND tablename NOT IN ('schema_migrations', 'retention_clock')
            );
            EXIT;
        EXCEPTION WHEN deadlock_detected THEN  -- with housekeeping of the service
        END;
    END LOOP;
END $$
"""


@dataclass(frozen=True, kw_only=True)
class World:
    """The numbers of players and replays that the database has at the beginning."""

    players: int
    replays: int

    @cached_property
    def stock(self) -> Stock:
        return Stock(players=self.players, replays=self.replays, now=issued_at() - timedelta(days=1))

    def replay_id(self, place: int) -> str:
        """The id of one of the replays; places count from 0."""
        turn, player = divmod(place, self.players)
        return replay_id(1 + player, turn)


TOWN = World(players=4_000, replays=1_000)


def issued_at() -> datetime:
    """The time when the players' tokens were issued: the coming midnight, so that all processes of a day agree."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


class Player:
    """The tokens of a player, whose numbers begin with 1: `refresh` is replaced with each refresh."""

    _tokens = Tokens(SECRET.encode())

    def __init__(self, number: int) -> None:
        now = issued_at()
        self.number = number
        self.username = f"{PREFIX}{number}"
        record = RefreshRecord(_token(number), refresh_expiry(now), access_expiry(now), None)
        pair = self._tokens.pair(player_id(number), record)
        self.access, self.refresh = pair.access_token.encode(), pair.refresh_token


def populate(dsn: str, world: World) -> None:
    """Delete all rows of the database, and store this world as a service would have."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(EMPTY)
        verdicts = Copying().run(dsn, lambda copying: _store(copying, world.stock))
        cursor.execute("TRUNCATE replay_checks")  # triggers queued the replays, which had no verdicts yet
        done, batch = 0, 500
        while rows := verdicts[done : done + batch]:
            Copying().run(dsn, partial(Copying.copy, columns=VERDICTS, rows=rows))
            cursor.execute("ANALYZE")  # or the triggers that place replays would plan for empty boards
            done, batch = done + batch, 2 * batch
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute("CHECKPOINT")
    connection.close()


def _store(copying: Copying, stock: Stock) -> list[Sequence[object]]:
    """Store the stock with sessions; returns the verdicts on its replays."""
    password_hash = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(12)).decode()
    expiry, ends = access_expiry(issued_at()), refresh_expiry(issued_at())
    known: dict[int | None, Verdict] = {}
    verdicts: list[Sequence[object]] = []
    for players, replays in storage.store(copying, stock, password_hash, expiry):
        copying.copy(
            "refresh_tokens (jti, session_id, user_id, expires_at, begun_at, used_at, user_agent, access_expiry)",
            (
                (_token(each.number), _session(each.number), each.id, ends, stock.now, stock.now, "a game", expiry)
                for each in players
            ),
        )
        copying.copy(
            "known_states (session_id, user_id, pushed, answers)",
            ((_session(each.number), each.id, each.counted, f'{{"{each.counted}"}}') for each in players),
        )
        copying.copy(  # PostgreSQL would plan for an empty table
            "games (user_id, game_id, ended_at, mode, draw_mode, won, score, seconds, xp)",
            (
                (each.id, identity(f"game {each.number}"), stock.now, "Classic", "DrawOne", True, 605, 252, 50)
                for each in players
            ),
        )
        copying.copy("game_memory (user_id, games)", ((each.id, 1) for each in players))
        for each in replays:
            seed = each.received.header.seed
            if seed not in known:
                known[seed] = check_literally(each.received.raw)
            found = known[seed]
            if found.status is not Status.PENDING:  # a check would need a search
                facts = (found.ruleset, found.undos, found.score, found.moves)
                verdicts.append((each.id, found.status, found.reason, *facts, stock.now, ENGINE_VERSION))
    return verdicts


def _token(number: int) -> str:
    return identity(f"token {number}")


def _session(number: int) -> str:
    return identity(f"session {number}")
