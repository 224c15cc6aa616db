"""The history of accounts, as rows: docs/administration.md "Players"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar, get_args

from ...postgres.declared import count, many, maybe
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Statements
from ...process.audit import Happened
from ...rules.queries import ListPosition
from ..paging import END, LAST_NUMBER
from ..retention import NOW

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event that happened `times` times, first this many seconds `ago`."""

    happened: Happened
    ago: float = 0.0
    times: int = 1


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of the history of a player."""

    id: int
    at: datetime
    event: str
    reason: str | None
    client: str | None
    times: int


@dataclass(frozen=True, slots=True)
class Visitor:
    """A player with events from an address: their number, and the time of the latest."""

    id: str
    username: str
    last_at: datetime
    events: int


@dataclass(frozen=True, slots=True)
class ChangedProfile:
    """A player who has changed the public profile, with the current one; `avatar` is the image's extension.

    `event` is the number of the line in the history. `seen_by` is the admin who has marked the change as seen.
    """

    event: int
    at: datetime
    username: str
    id: str
    display_name: str | None
    visible: bool | None
    avatar: str | None
    seen_by: str | None


@dataclass(frozen=True, slots=True)
class RegisteredPlayer(ChangedProfile):
    """A new player, the address of the registration, and the current public profile."""

    client: str | None


DAILY_MAX = 200  # rows that requests cause for a player in a UTC day: up to 200 refusals and up to 200 other events
REFUSALS = ("login failed", "refresh refused", "recovery refused", "password change refused")
MORE, MORE_REFUSALS = "more events", "more refusals"  # the event of the row that follows DAILY_MAX rows
Change = Literal["opted in", "avatar changed"]  # of the public profile: the review lists these rows
REVIEWED = get_args(Change)

# Keeps two nodes from both storing the last row of a day. Each node holds it for one statement, once a second.
TAKE_TURNS = Statement("take_turns_in_history", "SELECT pg_advisory_xact_lock(6129834572114803)")

# Refusals are counted separately from the player's own actions, so that failed attempts can't push these out of the
# history. The statement reads no more of a player's latest rows than a day can have. The day's last event of each kind
# in REVIEWED is stored too, however many events precede it: else a player could keep a name out of the review.
#
# Events of players who have been deleted are skipped: the rows of `users` are locked as the foreign key would lock
# them, and a missing row is no failure. The rows are locked in the order of their ids, so that two of these statements
# can't deadlock. Pushes don't wait for these locks. The times are the database's, whose clock also decides how long
# rows are kept.
STORE = Statement(
    "store_history",
    f"""
    WITH present AS (
        SELECT id FROM users WHERE id = ANY ($2::text[]::uuid[]) ORDER BY id FOR KEY SHARE
    ), today AS (
        SELECT id,
            count(*) FILTER (WHERE event IN {(*REFUSALS, MORE_REFUSALS)}) AS refusals,
            count(*) FILTER (WHERE event NOT IN {(*REFUSALS, MORE_REFUSALS)}) AS others,
            max(number) FILTER (WHERE event = '{MORE}') AS full_at
        FROM present JOIN LATERAL (
            SELECT account_history.id AS number, event, happened_at FROM account_history
            WHERE user_id = present.id ORDER BY number DESC LIMIT {2 * DAILY_MAX + 2 + len(REVIEWED)}
        ) AS latest ON happened_at >= date_trunc('day', clock_timestamp(), 'UTC')
        GROUP BY id
    ), happened AS (
        SELECT *, row_number() OVER (PARTITION BY user_id, refusal ORDER BY place) AS number
        FROM (
            SELECT *, event IN {REFUSALS} AS refusal
            FROM unnest($1::float8[], $2::text[]::uuid[], $3::text[], $4::text[], $5::text[], $6::int[])
                WITH ORDINALITY AS given (ago, user_id, event, reason, client, times, place)
        ) AS sent
    ), numbered AS (
        SELECT happened.*, CASE WHEN user_id IS NULL OR client IS NULL THEN 0
            ELSE number + coalesce(CASE WHEN refusal THEN refusals ELSE others END, 0) END AS number_today
        FROM happened LEFT JOIN today ON today.id = user_id
        WHERE user_id IS NULL OR user_id IN (SELECT id FROM present)
    ), kept AS (
        SELECT DISTINCT ON (user_id, event) * FROM numbered
        WHERE number_today > {DAILY_MAX} AND event IN {REVIEWED} ORDER BY user_id, event, place DESC
    ), replaced AS (
        DELETE FROM account_history AS former USING kept JOIN today ON today.id = kept.user_id
        WHERE former.user_id = kept.user_id AND former.event = kept.event AND former.id > full_at
    )
    INSERT INTO account_history (happened_at, user_id, event, reason, client, times)
    SELECT clock_timestamp() - ago * interval '1 second', user_id, event, reason, client, times
    FROM (
        SELECT ago, user_id, event, reason, client, times, place FROM numbered WHERE number_today <= {DAILY_MAX}
        UNION ALL
        SELECT ago, user_id, CASE WHEN refusal THEN '{MORE_REFUSALS}' ELSE '{MORE}' END, NULL, NULL, 1, place - 0.5
        FROM numbered WHERE number_today = {DAILY_MAX + 1}
        UNION ALL
        SELECT ago, user_id, event, reason, client, times, place FROM kept
    ) AS rows ORDER BY place
    """,  # noqa: S608
)

AMONG = 10_000  # the latest lines of an address
CHANGES = 10_000  # the latest changes of one kind; the search reads no older ones

OF_CLIENT = Query(
    "admin_players_of_client",
    f"""
    SELECT users.id, username, last_at, events
    FROM (
        SELECT user_id, max(happened_at) AS last_at, sum(times) AS events
        FROM (
            SELECT user_id, happened_at, times FROM account_history
            WHERE client = $1::text ORDER BY id DESC LIMIT {AMONG}
        ) AS latest
        WHERE user_id IS NOT NULL GROUP BY user_id
        HAVING (max(happened_at), user_id) < ($2::timestamptz, $3::uuid)
        ORDER BY last_at DESC, user_id DESC LIMIT $4::int
    ) AS visit JOIN users ON users.id = user_id
    ORDER BY last_at DESC, users.id DESC
    """,  # noqa: S608
    prepared=False,
    row=Visitor,
)


def _changed(kind: str, event: str, row: Callable[..., T], which: str, more: str = "") -> Query[T]:
    """The query for players with this event, whose profiles now fulfil `which`; `more` are further columns."""
    return Query(
        f"admin_changed_{kind}",
        f"""
        SELECT changed.id AS event, happened_at AS at, username, users.id, display_name, visible,
            avatar_extension AS avatar, review_seen.admin AS seen_by {more}
        FROM (
            SELECT id, user_id, happened_at, event, client FROM account_history
            WHERE event = '{event}' AND id < $1::bigint ORDER BY id DESC LIMIT {CHANGES}
        ) AS changed
        JOIN users ON users.id = changed.user_id LEFT JOIN leaderboard ON leaderboard.user_id = users.id
        LEFT JOIN review_seen ON kind = '{kind}' AND item = changed.id::text
        WHERE ($3::boolean OR item IS NULL) AND {which}
        ORDER BY changed.id DESC LIMIT $2::int
        """,  # noqa: S608
        prepared=False,
        row=row,
    )


# Of several changes by a player, the last counts. An index finds the later ones.
LAST = """NOT EXISTS (
            SELECT FROM account_history AS later
            WHERE later.user_id = changed.user_id AND later.id > changed.id AND later.event = changed.event
        )"""

NAMED = _changed("names", "opted in", ChangedProfile, f"display_name IS NOT NULL AND {LAST}")
PICTURED = _changed("avatars", "avatar changed", ChangedProfile, f"avatar_extension IS NOT NULL AND {LAST}")
REGISTERED = _changed("players", "register", RegisteredPlayer, "true", ", client")


async def store(statements: Statements, occurrences: Sequence[Occurrence]) -> None:
    """Store events of players who exist: of each player and day, up to DAILY_MAX refusals and DAILY_MAX others."""
    happened = [each.happened for each in occurrences]
    store = (
        STORE,
        [each.ago for each in occurrences],
        [each.user_id for each in happened],
        [each.event for each in happened],
        [each.reason for each in happened],
        [each.client for each in happened],
        [each.times for each in occurrences],
    )
    await statements.run((TAKE_TURNS,), store)


# The rows with the lowest ids are the oldest, within seconds. So a round that meets a younger row deletes no further,
# except for rows of a clock that was ahead, which stay until their time has come.
@count(f"""
    DELETE FROM account_history WHERE id IN (
        SELECT id FROM (
            SELECT id, happened_at FROM account_history WHERE clock_timestamp() >= happened_at ORDER BY id LIMIT $2::int
        ) AS oldest
        WHERE happened_at < {NOW} - make_interval(days => $1::int)
    ) RETURNING true
    """)  # noqa: S608
async def prune(*, days: int, most: int) -> int:
    """Delete up to `most` rows older than this many days; return their number."""


@many(
    """
    SELECT id, happened_at AS at, event, reason, client, times FROM account_history
    WHERE user_id = $1::uuid AND id < $2::bigint ORDER BY id DESC LIMIT $3::int
    """,
    prepared=False,
    row=HistoryLine,
)
async def of_player(user_id: str, *, before: int = LAST_NUMBER, most: int) -> list[HistoryLine]:
    """Up to `most` lines of a player's history with numbers below `before`, latest first."""


async def of_client(
    statements: Statements, client: str, *, most: int, before: ListPosition | None = None
) -> list[Visitor]:
    """Up to `most` players with events from this address; the player of the latest event comes first.

    `before` continues a list. Only the latest AMONG lines of the address count.
    """
    return await statements.many(OF_CLIENT, client, *(before or END), most)


async def changed(
    statements: Statements, event: Change, *, most: int, before: int = LAST_NUMBER, seen: bool = True
) -> list[ChangedProfile]:
    """Up to `most` players who made this change and still show its result, latest first.

    Only the latest CHANGES changes before the line `before` are searched. Without `seen`, those that an admin has
    marked are left out.
    """
    query = NAMED if event == "opted in" else PICTURED
    return await statements.many(query, before, most, seen)


async def registered(statements: Statements, before: int, most: int, seen: bool) -> list[RegisteredPlayer]:
    """Up to `most` new players and the addresses of their registrations, latest first; parameters as of `changed`."""
    return await statements.many(REGISTERED, before, most, seen)


@maybe(
    f"""
    SELECT id FROM account_history
    WHERE event = $1::text AND id < $2::bigint ORDER BY id DESC LIMIT 1 OFFSET {CHANGES - 1}
    """,  # noqa: S608
    prepared=False,
    row=int,
)
async def end_of_changes(event: str, before: int) -> int | None:
    """The number of the last line that `changed` or `registered` searches; None if there are fewer than CHANGES."""
