"""Players' accounts: docs/protocol.md "The player", docs/administration.md "Players"."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from ...postgres.declared import found, maybe, one
from ...postgres.statement import Query, Statement
from ...postgres.transaction import Statements, Transaction
from ...rules.administration import PlayerFacts
from ...rules.sessions import RefreshRecord
from ..rows import encoded, nested
from .leaderboard import VERIFIED, claim_of


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile that a player sees; `username` is None only in a database that was altered by hand."""

    username: str | None
    avatar_extension: str | None
    guest: bool | None


@dataclass(frozen=True, slots=True)
class Credentials:
    """A stored password hash to verify against; with `password_cut`, it covers the password's first 72 bytes alone."""

    user_id: str
    password_hash: str
    password_cut: bool


@dataclass(frozen=True, slots=True)
class Player:
    """A player's id and name."""

    id: str
    username: str


class FactsAndProgress(NamedTuple):
    """A player's facts without those that the progress has, and the merged progress as JSON."""

    facts: PlayerFacts
    payload: bytes | None


AVATAR_URL = "'/avatars/' || users.id || '.' || avatar_extension"  # NULL without an avatar
# No view has this: one of replays would be computed for every row that a list only searches, and would pin its columns.
SUSPENDED = "EXISTS (SELECT FROM suspensions WHERE suspensions.user_id = users.id)"

# The first statement of every transaction that writes rows of a player.
LOCK = Statement("lock_player", "SELECT true FROM users WHERE id = $1::uuid FOR NO KEY UPDATE")


def registering(guest: str, more: str = "") -> str:
    """SQL that creates an account and its first session, together or not at all.

    `guest` is SQL for the column of this name, and `more` is a further CTE.
    """
    return f"""
    WITH player AS (
        INSERT INTO users (id, username, password_hash, created_at, access_expiries, guest)
        VALUES ($1::uuid, $2::text, $3::text, $4::timestamptz, ARRAY[$7::bigint], {guest})
        ON CONFLICT (username) DO NOTHING
        RETURNING id
    ) {more}
    INSERT INTO refresh_tokens
        (jti, user_id, expires_at, session_id, begun_at, used_at, user_agent, access_expiry, retry_digest)
    SELECT $5::uuid, id, $6::timestamptz, gen_random_uuid(), now, now, $8::text, $7::bigint, $9::bytea
    FROM player, clock_timestamp() AS now
    RETURNING true
    """  # noqa: S608


REGISTER = Statement("register", registering("NULL"))

_CREDENTIALS = "id AS user_id, password_hash, coalesce(password_cut, false) AS password_cut"

# Compares with the hash that was verified, because another one may have been stored while bcrypt ran.
CHANGE_PASSWORD = Statement(
    "change_password",
    """
    UPDATE users SET password_hash = $3::text
    WHERE id = $1::uuid AND encode(sha256(convert_to(password_hash, 'UTF8')), 'hex') = $2::text
    RETURNING true
    """,
)
SET_PASSWORD = Query(
    "set_password", "UPDATE users SET password_hash = $2::text WHERE username = $1 RETURNING id", row=str
)
REVOKE = Statement(
    "revoke_sessions",
    """
    WITH forgotten AS (DELETE FROM known_states WHERE user_id = $1::uuid)
    DELETE FROM refresh_tokens WHERE user_id = $1::uuid
    """,
)
# A thief may have made the codes. A trigger deletes the reset link when the password changes.
FORGET_CODES = Statement("forget_recovery_codes", "DELETE FROM recovery_codes WHERE user_id = $1::uuid")

NamesOfEvents = tuple[str | None, str | None, str | None, str | None]
"""The former name as events have it, and the id that it spells, if any; then the same two values of the new name."""

RENAME = Statement("admin_rename", "UPDATE users SET username = $2::text WHERE id = $1::uuid")

# The name's row keeps its number, and so the events keep their name. If events already have the new name, its row stays
# and the events of the former name become nameless: moving them to that row would rewrite all of them. A name that is
# the id of a player stays as it is if it is the former name. If it is the new name, the player's own id replaces it.
RENAME_EVENTS = Statement(
    "admin_rename_events",
    """
    WITH former AS (
        DELETE FROM analytics_names
        WHERE name = $1::text AND NOT EXISTS (SELECT FROM users WHERE id = $2::uuid)
        RETURNING id, seen_on
    )
    INSERT INTO analytics_names AS known (id, name, seen_on) OVERRIDING SYSTEM VALUE
    SELECT id, coalesce((SELECT $5::text FROM users WHERE id = $4::uuid), $3::text), seen_on FROM former
    ON CONFLICT (name) DO UPDATE SET seen_on = greatest(known.seen_on, excluded.seen_on)
    """,
)


async def lock(transaction: Transaction, user_id: str) -> bool:
    """Lock the row of a player; False if the player no longer exists."""
    return bool(await transaction.run((LOCK, user_id)))


@one("SELECT EXISTS (SELECT FROM users WHERE username = $1)", row=bool)
async def is_taken(username: str) -> bool:
    """Return whether a player of this name exists."""


async def register(
    statements: Statements,
    *,
    user_id: str,
    username: str,
    password_hash: str,
    now: datetime,
    record: RefreshRecord,
) -> bool:
    """Create a player, with a first session; False if the name is taken."""
    return bool(await statements.run((REGISTER, user_id, username, password_hash, now, *record)))


@maybe("SELECT username, avatar_extension, guest FROM users WHERE id = $1::uuid", row=Profile)
async def profile(user_id: str) -> Profile | None:
    """The profile of a player; None if the player no longer exists."""


@maybe(
    f"SELECT {_CREDENTIALS} FROM users WHERE username = $1",  # noqa: S608
    row=Credentials,
)
async def credentials(username: str) -> Credentials | None:
    """The id and password hash of the player with this name; None if the player doesn't exist."""


@maybe(
    f"SELECT {_CREDENTIALS} FROM users WHERE id = $1::uuid",  # noqa: S608
    row=Credentials,
)
async def credentials_of(user_id: str) -> Credentials | None:
    """The password hash of a player; None if the player no longer exists."""


async def change_password(statements: Statements, user_id: str, *, verified_hash: str, password_hash: str) -> bool:
    """Replace the verified password hash; False if it has changed since, or the player no longer exists."""
    digest = sha256(verified_hash.encode()).hexdigest()
    return bool(await statements.run((CHANGE_PASSWORD, user_id, digest, password_hash)))


# Analytics may name the player by id or username. A username of 32 hexadecimal digits is stored there as a UUID. If
# that UUID is the id of a player, it means that player. So no player can reach another's events by choosing a name.
# Events may also have the name that the player had as a guest, unless it is another player's now, and the ids of joined
# guests.
@found("""
    WITH player AS (
        DELETE FROM users WHERE id = $1::uuid
        RETURNING id::text, username, CASE WHEN username ~ '^[0-9A-Fa-f]{32}$' THEN username::uuid END AS alias,
            guest_name || ARRAY(SELECT guest_id::text FROM joined_guests WHERE user_id = $1::uuid) AS former_names
    ), names AS (
        DELETE FROM analytics_names USING player
        WHERE name IN (player.id, username)
           OR name = alias::text AND NOT EXISTS (SELECT FROM users WHERE id = alias)
           OR name = ANY (former_names) AND NOT EXISTS (SELECT FROM users WHERE users.username = name)
    ), sessions AS (  -- before what was known of them, as in every other statement that ends sessions
        DELETE FROM refresh_tokens USING player WHERE user_id = $1::uuid RETURNING true
    ), states AS (
        DELETE FROM known_states WHERE user_id = $1::uuid AND (SELECT count(*) FROM sessions) >= 0
    ), limits AS (
        DELETE FROM rate_limits USING player WHERE bucket = ANY ($2::text[])
    )
    SELECT true FROM player
    """)
async def delete(user_id: str, buckets: list[str]) -> bool:
    """Delete a player and all of the player's rows; False if the player no longer exists.

    Other tables' rows are deleted by cascade, except for names in analytics, sessions, and rate limits, whose keys are
    in `buckets`.
    """


async def reset_password(transaction: Transaction, username: str, password_hash: str) -> str | None:
    """Replace a password, end all sessions and delete the recovery codes; return the player's id.

    None without a player. These are several statements on purpose. The first waits for the lock of the player's row.
    Only a statement that begins after that wait sees a refresh token that a login stored in the meantime.
    """
    user_id = await transaction.maybe(SET_PASSWORD, username, password_hash)
    if user_id is not None:
        await transaction.run((REVOKE, user_id), (FORGET_CODES, user_id))
    return user_id


@maybe("SELECT id, username FROM users WHERE id = $1::uuid OR username = $2::text", prepared=False, row=Player)
async def find(user_id: str | None, username: str | None) -> Player | None:
    """The player with this id or with this name."""


@maybe(
    f"""
    SELECT username, users.id, created_at, {AVATAR_URL} AS avatar,
        (SELECT octet_length(image) FROM avatars WHERE user_id = users.id) AS avatar_bytes,
        (SELECT count(*) FROM refresh_tokens WHERE user_id = users.id AND expires_at > clock_timestamp()) AS sessions,
        (SELECT count(*) FROM replays WHERE user_id = users.id) AS replays,
        (SELECT coalesce(sum(size), 0)::bigint FROM replays WHERE user_id = users.id) AS replay_bytes,
        NULL AS pushed_at, octet_length(payload) AS progress_bytes, NULL AS games_played, NULL AS games_won,
        NULL AS level, visible AS on_leaderboard, display_name, best_score, best_time_secs,
        recorded_at AS best_recorded_at, suspensions.since AS suspended_since, until AS suspended_until,
        message AS suspension_message, profile_locks.since AS locked_since, guest IS TRUE AS guest,
        guest IS TRUE AND NOT EXISTS (SELECT FROM guest_keys WHERE user_id = users.id) AS keyless,
        CASE WHEN {VERIFIED} THEN 'verified' ELSE verdict END AS best_verdict, claim.id AS best_replay_id,
        CASE WHEN guest IS NULL AND suspensions.user_id IS NULL THEN '/players/' || username END AS page, payload
    FROM users
    LEFT JOIN sync_states ON sync_states.user_id = users.id
    LEFT JOIN leaderboard ON leaderboard.user_id = users.id
    LEFT JOIN LATERAL ({claim_of("leaderboard")}) AS claim ON true
    LEFT JOIN suspensions ON suspensions.user_id = users.id
    LEFT JOIN profile_locks ON profile_locks.user_id = users.id
    WHERE users.id = $1::uuid
    """,  # noqa: S608
    prepared=False,
    row=nested(FactsAndProgress, PlayerFacts, lambda payload: encoded(payload)),
)
async def facts(user_id: str) -> FactsAndProgress | None:
    """The facts and the progress of a player; None if the player no longer exists."""


async def rename(transaction: Transaction, user_id: str, username: str, names: NamesOfEvents) -> None:
    """Rename a player, and the events that name the player; raises DatabaseError if the name is taken.

    Needs the lock of the player's row.
    """
    await transaction.run((RENAME, user_id, username), (RENAME_EVENTS, *names, user_id))
