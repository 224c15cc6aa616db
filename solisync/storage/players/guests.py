"""Guests, and players who take over the games of a guest: docs/protocol.md "Guests"."""

from datetime import datetime
from typing import NamedTuple

from ...postgres.declared import count, execute, found, maybe, one
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.sessions import RefreshRecord
from ..retention import NOW
from .accounts import LOCK, RENAME_EVENTS, NamesOfEvents, registering

SHORT_DAYS = 30  # until a guest is deleted that was used on one day alone


class Pair(NamedTuple):
    """The state of a player and a guest to join; with `joined`, the player has taken over the guest before."""

    player_is_guest: bool
    exists: bool
    is_guest: bool
    suspended: bool
    joined: bool


PAIR = Query(
    "guest_and_player",
    """
    SELECT player.guest IS TRUE AS player_is_guest, other.id IS NOT NULL AS exists, other.guest IS TRUE AS is_guest,
        EXISTS (SELECT FROM suspensions WHERE user_id = $2::uuid) AS suspended,
        coalesce(joined.user_id = player.id, false) AS joined
    FROM users AS player
    LEFT JOIN users AS other ON other.id = $2::uuid
    LEFT JOIN joined_guests AS joined ON joined.guest_id = $2::uuid
    WHERE player.id = $1::uuid
    """,
    row=Pair,
)

# A key that has become another guest's since it was looked up fails the statement.
REGISTER = Statement(
    "register_guest",
    registering(
        "true",
        """, key AS (
            INSERT INTO guest_keys (digest, user_id) SELECT $10::bytea, id FROM player WHERE $10::bytea IS NOT NULL
        )""",
    ),
)

# The replays of a guest are unlisted. So their only evidence is on the board 'own', and the player's boards don't
# change. A running check loses its claim, and is repeated for the player. A trigger counts for a player without a row.
# A locked player's are held, like an upload of that player.
MOVE = Statement(
    "move_replays_of_guest",
    """
    WITH moved AS (
        UPDATE replays SET
            user_id = $1::uuid,
            held = coalesce(held, (SELECT true FROM profile_locks WHERE user_id = $1::uuid))
        WHERE user_id = $2::uuid RETURNING id, size
    ), notes AS (
        UPDATE admin_notes SET user_id = $1::uuid FROM moved WHERE user_id = $2::uuid AND replay_id = moved.id
    ), marks AS (
        UPDATE review_seen SET user_id = $1::uuid WHERE user_id = $2::uuid AND kind = 'replays'
    ), checks AS (
        UPDATE replay_checks SET user_id = $1::uuid, claimed_until = NULL WHERE user_id = $2::uuid
    ), evidence AS (
        UPDATE board_evidence SET user_id = $1::uuid WHERE user_id = $2::uuid AND board = 'own'
    ), charged AS (
        UPDATE replay_usage SET
            replays = replays + (SELECT count(*) FROM moved),
            used_bytes = used_bytes + (SELECT coalesce(sum(replay_charge(size)), 0) FROM moved)
        WHERE user_id = $1::uuid
    )
    INSERT INTO joined_guests (guest_id, user_id) VALUES ($2::uuid, $1::uuid)
    """,
)


@maybe("SELECT guest IS TRUE FROM users WHERE id = $1::uuid", row=bool)
async def is_guest(user_id: str) -> bool | None:
    """Return whether an account is a guest; None if the account no longer exists."""


@found("""
    SELECT true FROM users
    WHERE id = $1::uuid AND guest AND NOT EXISTS (SELECT FROM guest_keys WHERE user_id = users.id)
    """)
async def is_keyless(user_id: str) -> bool:
    """Return whether an account is a guest that can't sign in again once its sessions have ended."""


async def register(
    statements: Statements,
    *,
    user_id: str,
    username: str,
    password_hash: str,
    now: datetime,
    record: RefreshRecord,
    key: bytes | None,
) -> bool:
    """Create a guest with a first session, and with the key of this digest; False if the name is taken.

    Raises DatabaseError if a guest has or had the key.
    """
    return bool(await statements.run((REGISTER, user_id, username, password_hash, now, *record, key)))


class Holder(NamedTuple):
    """The guest that a key signs in, with its name; None if the key is gone."""

    id: str | None
    username: str | None


@maybe(
    "SELECT users.id, username FROM guest_keys LEFT JOIN users ON users.id = user_id WHERE digest = $1::bytea",
    row=Holder,
)
async def holder(key: bytes) -> Holder | None:
    """The guest with the key of this digest; None if no guest has had it."""


@maybe("SELECT digest FROM guest_keys WHERE user_id = $1::uuid", row=bytes)
async def key_of(user_id: str) -> bytes | None:
    """The digest of a guest's key; None without a key."""


@execute("UPDATE guest_keys SET user_id = NULL WHERE user_id = $1::uuid")
async def retire_key(user_id: str) -> None:
    """Take the key from a guest; it never works again."""


@found("INSERT INTO guest_keys (digest, user_id) VALUES ($2::bytea, $1::uuid) ON CONFLICT DO NOTHING RETURNING true")
async def set_key(user_id: str, key: bytes) -> bool:
    """Give a guest without a key the key of this digest; False if a guest has or had it."""


@execute("DELETE FROM guest_keys WHERE user_id = $1::uuid")
async def forget_key(user_id: str) -> None:
    """Delete the key of a guest, as if no guest had ever had it."""


@execute("UPDATE replays SET unlisted = NULL WHERE user_id = $1::uuid AND unlisted AND held IS NULL")
async def list_replays(user_id: str) -> None:
    """List all replays of a former guest, except held ones. Needs the lock of the player's row."""


@maybe(
    """
    UPDATE users SET username = $2::text, password_hash = $3::text
    FROM (SELECT id, username FROM users WHERE id = $1::uuid FOR NO KEY UPDATE) AS former
    WHERE users.id = former.id AND guest RETURNING former.username
    """,
    row=str,
)
async def claim(user_id: str, username: str, password_hash: str) -> str | None:
    """Make a guest a player with this name and password; return the former name, or None if the account isn't a guest.

    Raises DatabaseError if the name is taken.
    """


async def rename_events(transaction: Transaction, user_id: str, names: NamesOfEvents) -> None:
    """Give the events of a guest the new name. Needs the lock of the guest's row."""
    await transaction.run((RENAME_EVENTS, *names, user_id))


async def lock_pair(transaction: Transaction, player: str, guest: str) -> Pair | None:
    """Lock the rows of a player and a guest, in the order of their ids; None if the player no longer exists."""
    first, second = sorted((player, guest))
    await transaction.run((LOCK, first))
    return await transaction.maybe(PAIR, player, guest, first=(LOCK, second))


@found("""
    DELETE FROM refresh_tokens WHERE jti = $2::uuid AND user_id = $1::uuid AND expires_at > clock_timestamp()
    RETURNING true
    """)
async def spend(guest: str, jti: str) -> bool:
    """Spend the refresh token of a guest; False if it was spent before."""


@one("SELECT EXISTS (SELECT FROM replays WHERE user_id = $1::uuid)", row=bool)
async def has_replays(guest: str) -> bool:
    """Return whether a guest has replays."""


async def move(transaction: Transaction, player: str, guest: str) -> None:
    """Give a guest's replays to a player, and record who has them. Needs the locks of `lock_pair`."""
    await transaction.run((MOVE, player, guest))


class GuestPage(NamedTuple):
    """A page of guests in the order of their ids: the last of them, and those to delete."""

    last: str | None
    abandoned: list[str]


# By the retention clock, and never while a session lives. That a session is absent says nothing: an operator may have
# ended all of them, or a restored backup may lack them. Under the lock, the row's own time shows a sign-in that has
# just committed.
_ABANDONED = f"""
    guest AND guest_used_at < {NOW} - make_interval(
        days => CASE WHEN guest_returned THEN $2::int ELSE least($2::int, {SHORT_DAYS}) END
    )
    AND NOT EXISTS (SELECT FROM refresh_tokens WHERE user_id = users.id AND expires_at > clock_timestamp())
"""


@one(
    f"""
    WITH page AS MATERIALIZED (SELECT id FROM users WHERE guest AND id > $1::uuid ORDER BY id LIMIT $3::int)
    SELECT (SELECT id::text FROM page ORDER BY id DESC LIMIT 1) AS last,
        ARRAY(SELECT id::text FROM users WHERE id IN (SELECT id FROM page) AND {_ABANDONED}) AS abandoned
    """,  # noqa: S608
    row=GuestPage,
)
async def page(after: str, days: int, most: int) -> GuestPage:
    """Up to `most` guests after the id `after`, of which those are to delete that `lock_abandoned` locks."""


@found(f"SELECT true FROM users WHERE id = $1::uuid AND {_ABANDONED} FOR UPDATE OF users")  # noqa: S608
async def lock_abandoned(user_id: str, days: int) -> bool:
    """Lock the row of a guest that nobody has used for `days`, or for SHORT_DAYS if it was used on one day alone.

    False for any other account.
    """


@count(f"""
    DELETE FROM guest_keys WHERE digest = ANY (ARRAY(
        SELECT digest FROM guest_keys WHERE gone_at < {NOW} - interval '180 days'
        ORDER BY gone_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)  # noqa: S608
async def prune_keys(*, most: int) -> int:
    """Forget up to `most` keys that have been gone for 180 days; return their number."""


@count(f"""
    DELETE FROM joined_guests WHERE guest_id = ANY (ARRAY(
        SELECT guest_id FROM joined_guests WHERE joined_at < {NOW} - interval '30 days'
        ORDER BY joined_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)  # noqa: S608
async def prune_joined(*, most: int) -> int:
    """Forget up to `most` guests that were joined more than 30 days ago; return their number."""


@one("SELECT count(*) FROM users WHERE guest", row=int)
async def number() -> int:
    """The number of guests."""
