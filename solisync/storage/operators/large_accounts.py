"""Accounts whose replays are hidden, shown or deleted in batches (migrations/0058): docs/moderation.md "Suspension"."""

from dataclasses import dataclass

from ...postgres.declared import found, many, maybe, one


@dataclass(frozen=True, slots=True)
class Waiting:
    """A large account of which work is left; `erased`: it is being deleted."""

    id: str
    erased: bool


@one("SELECT settle_large_account($1::uuid, $2::int)", row=bool)
async def settle(user_id: str, most: int) -> bool:
    """Do the next part of what is left of an account, at most this many replays or boards.

    Return whether anything is left; for an account that is being deleted, False means that `accounts.delete` is next.
    """


@many("SELECT user_id AS id, erased FROM large_accounts ORDER BY user_id", row=Waiting)
async def waiting() -> list[Waiting]:
    """The accounts of which work is left."""


@maybe("SELECT user_id AS id, erased FROM large_accounts WHERE user_id = $1::uuid", row=Waiting)
async def waiting_of(user_id: str) -> Waiting | None:
    """The account, if work is left of it."""


# Ends the sessions, so that nobody uses the account while it is being deleted.
@found("""
    WITH erased AS (
        INSERT INTO large_accounts (user_id, erased)
        SELECT $1::uuid, true WHERE EXISTS (SELECT FROM replays WHERE user_id = $1::uuid OFFSET 17408)
        ON CONFLICT (user_id) DO UPDATE SET erased = true
        RETURNING user_id
    ), sessions AS (
        DELETE FROM refresh_tokens USING erased WHERE refresh_tokens.user_id = erased.user_id
    ), states AS (
        DELETE FROM known_states USING erased WHERE known_states.user_id = erased.user_id
    )
    SELECT true FROM erased
    """)
async def begin_erasure(user_id: str) -> bool:
    """Leave the deletion of a large account for later; False for any other account."""
