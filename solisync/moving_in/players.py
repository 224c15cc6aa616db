"""Storing players of an original server, with progress, entries and avatars (docs/moving-in.md "What comes along").

Each statement stores many rows. Each `store_` function has a `look_at_` function for dry runs, which returns the same
without storing anything.
"""

from binascii import b2a_base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..postgres.statement import Query, Statement
from ..postgres.transaction import Statements, Transaction
from ..storage.rows import encoded, id_set, number
from .rows import Fate, Image, OriginalEntry, User, fate


@dataclass(frozen=True, slots=True)
class Found:
    """The fate of a player; `username` is the name here, or None if the player isn't here.

    `password_differs` is True if the player still has the imported password here, but a newer one there.
    """

    fate: Fate
    username: str | None
    password_differs: bool


def _found(id: str, username: str | None, noted: bool, name_taken: bool, password_differs: bool) -> tuple[str, Found]:
    becomes = fate(exists=username is not None, noted=noted, name_taken=name_taken)
    return id, Found(becomes, username, password_differs)


# As everywhere, the players' rows are locked first, and in order, so that two transactions can't deadlock.
LOCK = Statement(
    "original_lock",
    "SELECT id FROM users WHERE id = ANY ($1::text[]::uuid[]) ORDER BY id FOR NO KEY UPDATE",
    prepared=False,
)

LOOK_AT_USERS = Query(
    "original_look_at_users",
    """
    SELECT sent.id, mine.username,
        EXISTS (SELECT FROM imported WHERE kind = 'user' AND imported.id = sent.id) AS noted,
        EXISTS (SELECT FROM users WHERE users.username = sent.username AND users.id <> sent.id) AS name_taken,
        coalesce(mine.password_cut AND mine.password_hash <> sent.password_hash, false) AS password_differs
    FROM unnest($1::text[]::uuid[], $2::text[], $3::text[]) AS sent (id, username, password_hash)
    LEFT JOIN users AS mine ON mine.id = sent.id
    """,
    prepared=False,
    row=_found,
)
ADD_USERS = Statement(
    "original_add_users",
    """
    INSERT INTO users (id, username, password_hash, created_at, password_cut)
    SELECT id, username, password_hash, created_at, true
    FROM unnest($1::text[]::uuid[], $2::text[], $3::text[], $4::text[]::timestamptz[])
        AS sent (id, username, password_hash, created_at)
    ORDER BY username
    ON CONFLICT DO NOTHING
    """,
    prepared=False,
)
NOTE_USERS = Statement(
    "original_note_users",
    "INSERT INTO imported (kind, id) SELECT 'user', unnest($1::text[]::uuid[]) ON CONFLICT DO NOTHING",
    prepared=False,
)

PROGRESS = Query(
    "original_progress",
    "SELECT user_id, payload FROM sync_states WHERE user_id = ANY ($1::text[]::uuid[])",
    prepared=False,
    row=lambda user_id, payload: (user_id, encoded(payload)),
)
# The revision doesn't change, and so a trigger deletes the player's remembered answers.
SAVE_PROGRESS = Statement(
    "original_save_progress",
    """
    INSERT INTO sync_states (user_id, payload)
    SELECT users.id, payload FROM unnest($1::text[]::uuid[], $2::text[]) AS sent (id, payload) JOIN users USING (id)
    ON CONFLICT (user_id) DO UPDATE SET payload = excluded.payload
    """,
    prepared=False,
)

_ENTRIES = """
    unnest(
        $1::text[]::uuid[], $2::text[], $3::text[]::int[], $4::text[]::int[], $5::text[]::timestamptz[], $6::boolean[]
    ) AS sent (id, display_name, best_score, best_time_secs, recorded_at, visible)
"""
_IMPROVED = """
    (greatest(mine.best_score, {0}.best_score), least(mine.best_time_secs, {0}.best_time_secs))
        IS DISTINCT FROM (mine.best_score, mine.best_time_secs)
"""
LOOK_AT_ENTRIES = Statement(
    "original_look_at_entries",
    f"""
    SELECT sent.id FROM {_ENTRIES} LEFT JOIN leaderboard AS mine ON mine.user_id = sent.id
    WHERE mine.user_id IS NULL OR {_IMPROVED.format("sent")}
    """,  # noqa: S608
    prepared=False,
)
SAVE_ENTRIES = Statement(
    "original_save_entries",
    f"""
    INSERT INTO leaderboard AS mine (user_id, display_name, best_score, best_time_secs, recorded_at, visible)
    SELECT users.id, display_name, best_score, best_time_secs, recorded_at, visible
    FROM {_ENTRIES} JOIN users USING (id)
    ON CONFLICT (user_id) DO UPDATE SET
        best_score = greatest(mine.best_score, excluded.best_score),
        best_time_secs = least(mine.best_time_secs, excluded.best_time_secs),
        recorded_at = greatest(mine.recorded_at, excluded.recorded_at)
    WHERE {_IMPROVED.format("excluded")}
    RETURNING user_id
    """,  # noqa: S608
    prepared=False,
)
VISIBLE = Statement(
    "original_visible_entries",
    "SELECT user_id FROM leaderboard WHERE visible AND user_id = ANY ($1::text[]::uuid[])",
    prepared=False,
)

# Imported avatars are recorded by their players' ids, so that an avatar that was removed here doesn't come back.
_LACKED = """
    avatar_extension IS NULL AND NOT EXISTS (SELECT FROM imported WHERE kind = 'avatar' AND imported.id = sent.id)
"""
LOOK_AT_AVATARS = Statement(
    "original_look_at_avatars",
    f"""
    SELECT sent.id FROM unnest($1::text[]::uuid[]) AS sent (id) LEFT JOIN users ON users.id = sent.id WHERE {_LACKED}
    """,  # noqa: S608
    prepared=False,
)
SAVE_AVATARS = Statement(
    "original_save_avatars",
    f"""
    WITH sent AS (
        SELECT id, extension, image FROM unnest($1::text[]::uuid[], $2::text[], $3::text[])
            AS sent (id, extension, image)
    ), noted AS (
        INSERT INTO imported (kind, id) SELECT 'avatar', id FROM sent ON CONFLICT DO NOTHING
    ), named AS (
        UPDATE users SET avatar_extension = extension FROM sent
        WHERE users.id = sent.id AND {_LACKED} RETURNING users.id
    )
    INSERT INTO avatars (user_id, image) SELECT id, decode(image, 'base64') FROM sent JOIN named USING (id)
    ON CONFLICT (user_id) DO UPDATE SET image = excluded.image
    RETURNING user_id
    """,  # noqa: S608
    prepared=False,
)


async def look_at_users(statements: Statements, users: Collection[User]) -> dict[str, Found]:
    """Return the fates of these players in a real run, by id."""
    rows = await statements.run(
        (
            LOOK_AT_USERS,
            [user.id for user in users],
            [user.username for user in users],
            [user.password_hash for user in users],
        ),
    )
    return dict(LOOK_AT_USERS.values(rows))


async def store_users(transaction: Transaction, users: Collection[User]) -> dict[str, Found]:
    """Store new players; return the fates of all these players."""
    found = await look_at_users(transaction, users)
    new = [user for user in users if found[user.id].fate is Fate.NEW]
    if new:
        await transaction.run(
            (
                ADD_USERS,
                [user.id for user in new],
                [user.username for user in new],
                [user.password_hash for user in new],
                [user.created_at.isoformat() for user in new],
            ),
        )
        stored = await look_at_users(transaction, new)  # a player may have registered the name since
        found |= {user_id: state for user_id, state in stored.items() if state.fate is Fate.TAKEN}
    there = [user_id for user_id, state in found.items() if state.fate in (Fate.NEW, Fate.PRESENT)]
    await transaction.run((NOTE_USERS, there))
    return found


async def lock(transaction: Transaction, ids: Collection[str]) -> None:
    """Lock the rows of these players."""
    await transaction.run((LOCK, list(ids)))


async def progress(statements: Statements, ids: Collection[str]) -> dict[str, bytes | None]:
    """Return the documents of these players, as far as they have any."""
    return dict(await statements.many(PROGRESS, list(ids)))


async def save_progress(transaction: Transaction, documents: Mapping[str, bytes]) -> None:
    """Store the documents of players, whose rows must be locked."""
    await transaction.run((SAVE_PROGRESS, list(documents), [document.decode() for document in documents.values()]))


async def look_at_entries(statements: Statements, entries: Sequence[OriginalEntry]) -> set[str]:
    """Return the players whose entries would be new or better."""
    return id_set(await statements.run((LOOK_AT_ENTRIES, *_columns(entries))))


async def store_entries(transaction: Transaction, entries: Sequence[OriginalEntry]) -> set[str]:
    """Add or improve entries; return the players whose entries have changed."""
    await lock(transaction, [entry.user_id for entry in entries])
    return id_set(await transaction.run((SAVE_ENTRIES, *_columns(entries))))


async def visible(statements: Statements, ids: Collection[str]) -> set[str]:
    """Return which of these players are on the leaderboard."""
    return id_set(await statements.run((VISIBLE, list(ids))))


async def look_at_avatars(statements: Statements, images: Sequence[Image]) -> set[str]:
    """Return the players that would get these avatars."""
    return id_set(await statements.run((LOOK_AT_AVATARS, [image.user_id for image in images])))


async def store_avatars(transaction: Transaction, images: Sequence[Image]) -> set[str]:
    """Store avatars of players without one, unless an import has stored one before; return the players' ids."""
    ids = [image.user_id for image in images]
    await lock(transaction, ids)
    texts = [b2a_base64(image.image, newline=False).decode("ascii") for image in images]
    return id_set(await transaction.run((SAVE_AVATARS, ids, [image.extension for image in images], texts)))


def _columns(entries: Sequence[OriginalEntry]) -> tuple[list[object], ...]:
    return (
        [entry.user_id for entry in entries],
        [entry.display_name for entry in entries],
        [number(entry.bests.score) for entry in entries],
        [number(entry.bests.seconds) for entry in entries],
        [entry.recorded_at.isoformat() for entry in entries],
        [entry.visible for entry in entries],
    )
