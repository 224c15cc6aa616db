"""Guests, and players who take over the games of a guest: docs/protocol.md "Guests"."""

from typing import NamedTuple

from ..postgres.declared import count, found, maybe, one
from ..postgres.statement import Query, Statement
from ..postgres.transaction import Transaction
from .accounts import LOCK, RENAME_EVENTS, NamesOfEvents


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

# The replays of a guest are unlisted. So their only evidence is on the board 'own', and the player's boards don't
# change. A running check loses its claim, and is repeated for the player.
MOVE = Statement(
    "move_replays_of_guest",
    """
    WITH moved AS (
        UPDATE replays SET user_id = $1::uuid WHERE user_id = $2::uuid RETURNING size
    ), checks AS (
        UPDATE replay_checks SET user_id = $1::uuid, claimed_until = NULL WHERE user_id = $2::uuid
    ), evidence AS (
        UPDATE board_evidence SET user_id = $1::uuid WHERE user_id = $2::uuid AND board = 'own'
    ), charged AS (
        UPDATE replay_usage SET replays = replays + (SELECT count(*) FROM moved),
            used_bytes = used_bytes + (SELECT coalesce(sum(replay_charge(size)), 0) FROM moved)
        WHERE user_id = $1::uuid
    )
    INSERT INTO joined_guests (guest_id, user_id) VALUES ($2::uuid, $1::uuid)
    """,
)

REMEMBER = Statement("remember_joined", "SELECT remember_answer($1::uuid, $2::bigint, $3::text)")


@maybe("SELECT guest IS TRUE FROM users WHERE id = $1::uuid", row=bool)
async def is_guest(user_id: str) -> bool | None:
    """Return whether an account is a guest; None if the account no longer exists."""


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
    await transaction.run_all((RENAME_EVENTS, *names, user_id))


async def lock_pair(transaction: Transaction, player: str, guest: str) -> Pair | None:
    """Lock the rows of a player and a guest, in the order of their ids; None if the player no longer exists."""
    first, second = sorted((player, guest))
    await transaction.run(LOCK, first)
    return await transaction.maybe(PAIR, player, guest, first=(LOCK, second))


@found("""
    DELETE FROM refresh_tokens WHERE jti = $2::uuid AND user_id = $1::uuid AND expires_at > clock_timestamp()
    RETURNING true
    """)
async def spend(guest: str, jti: str) -> bool:
    """Spend the refresh token of a guest; False if it was spent before."""


async def move(transaction: Transaction, player: str, guest: str) -> None:
    """Give a guest's replays to a player, and record who has them. Needs the locks of `lock_pair`."""
    await transaction.run(MOVE, player, guest)


class GuestPage(NamedTuple):
    """A page of guests in the order of their ids: the last of them, and those without a live session."""

    last: str | None
    abandoned: list[str]


@one(
    """
    WITH page AS MATERIALIZED (SELECT id FROM users WHERE guest AND id > $1::uuid ORDER BY id LIMIT $2::int)
    SELECT (SELECT id::text FROM page ORDER BY id DESC LIMIT 1) AS last, ARRAY(
        SELECT id::text FROM page
        WHERE NOT EXISTS (SELECT FROM refresh_tokens WHERE user_id = page.id AND expires_at > clock_timestamp())
    ) AS abandoned
    """,
    row=GuestPage,
)
async def page(after: str, most: int) -> GuestPage:
    """Up to `most` guests after the id `after`."""


@found("""
    SELECT true FROM users
    WHERE id = $1::uuid AND guest
        AND NOT EXISTS (SELECT FROM refresh_tokens WHERE user_id = users.id AND expires_at > clock_timestamp())
    FOR UPDATE
    """)
async def lock_abandoned(user_id: str) -> bool:
    """Lock the row of a guest without a live session; False for any other account."""


@count("""
    DELETE FROM joined_guests WHERE guest_id = ANY (ARRAY(
        SELECT guest_id FROM joined_guests WHERE joined_at < clock_timestamp() - interval '30 days'
        ORDER BY joined_at LIMIT $1::int FOR UPDATE SKIP LOCKED
    )) RETURNING true
    """)
async def prune_joined(*, most: int) -> int:
    """Forget up to `most` guests that were joined more than 30 days ago; return their number."""


@one("SELECT count(*) FROM users WHERE guest", row=int)
async def number() -> int:
    """The number of guests."""
