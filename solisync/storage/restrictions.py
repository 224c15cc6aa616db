"""Whom the service keeps out, and from what: suspensions, cutoffs of access tokens, locks; docs/moderation.md."""

from dataclasses import dataclass
from datetime import datetime

from ..postgres.declared import maybe, one


@dataclass(frozen=True, slots=True)
class Suspension:
    """A player's suspension; `was_visible`: the entry on the leaderboard will be visible again, `ended`: it is over."""

    until: datetime | None
    message: str | None
    was_visible: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class RestrictionSet:
    """Everybody who is suspended, with `untils` and `messages`, and who is cut off, with the cutoffs; in columns.

    All columns are None where `number` is the one that is known already.
    """

    number: int
    suspended: list[str] | None
    untils: list[datetime | None] | None
    messages: list[str | None] | None
    cut_off: list[str] | None
    cutoffs: list[int] | None


# One statement, so that all of it is of one moment; without a row of the number, nothing has ever been restricted.
@one(
    """
    SELECT number, suspended, untils, messages, cut_off, cutoffs
    FROM (SELECT coalesce((SELECT number FROM restriction_number), 0) AS number) AS now
    LEFT JOIN LATERAL (
        SELECT coalesce(array_agg(user_id::text), '{}') AS suspended, array_agg(until) AS untils,
            array_agg(message) AS messages
        FROM suspensions
    ) AS suspension ON number <> $1::bigint
    LEFT JOIN LATERAL (
        SELECT coalesce(array_agg(user_id::text), '{}') AS cut_off, array_agg(cutoff) AS cutoffs FROM access_cutoffs
    ) AS cutting ON number <> $1::bigint
    """,
    row=RestrictionSet,
)
async def load(known: int) -> RestrictionSet:
    """The number of the restrictions, and all of them unless the number is `known`."""


@maybe(
    """
    SELECT until, message, was_visible, coalesce(until <= clock_timestamp(), false) AS ended
    FROM suspensions WHERE user_id = $1::uuid
    """,
    row=Suspension,
)
async def suspension(user_id: str) -> Suspension | None:
    """The suspension of a player, if they are suspended."""


@one("SELECT EXISTS (SELECT FROM profile_locks WHERE user_id = $1::uuid)", row=bool)
async def is_locked(user_id: str) -> bool:
    """Whether a player may not change what others see of them."""
