"""Progress: message shapes, documents with unknown fields, and their limits (docs/sync.md "The payload").

`UnknownFields` keeps fields that this version doesn't know byte for byte, so an old server never loses a new client's
data.
"""

from datetime import date
from operator import attrgetter, gt
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Raw, Struct, structs

from ..errors import BadRequest
from .shapes import MAX_BODY, NIL, U32, U64, U64_MAX, Checked, Time

NEVER = U64_MAX  # `fastest_win_seconds` of a player without a win
# Spellings of NEVER in languages whose numbers are doubles, such as 18446744073709552000 in JavaScript.
NEVER_ROUNDED = range(18_446_744_073_709_000_000, 18_446_744_073_710_000_001)
MODE_TIMES = ("classic_fastest_win_seconds", "zen_fastest_win_seconds", "challenge_fastest_win_seconds")
HISTORY_DAYS = 365
PAYLOAD_MAX_BYTES = MAX_BODY

Key = Annotated[str, Meta(min_length=1, max_length=64)]
Unknown = dict[str, Raw]
ModeTime = Annotated[U64, Meta(description="0 means never")]
_encode = msgspec.json.Encoder().encode
_mode_times = attrgetter(*MODE_TIMES)


class Stats(Checked, frozen=True, kw_only=True):
    """Games and records of a player. Times are in seconds."""

    games_played: U32
    games_won: U32
    games_lost: U32
    win_streak_current: U32
    win_streak_best: U32
    avg_time_seconds: U64
    fastest_win_seconds: Annotated[U64, Meta(description=f"{NEVER} means never")]
    lifetime_score: U64
    best_single_score: U32
    draw_one_wins: U32
    draw_three_wins: U32
    classic_best_score: U32 = 0
    classic_fastest_win_seconds: ModeTime = 0
    zen_best_score: U32 = 0
    zen_fastest_win_seconds: ModeTime = 0
    challenge_best_score: U32 = 0
    challenge_fastest_win_seconds: ModeTime = 0
    last_modified: Time

    def __post_init__(self) -> None:
        if self.fastest_win_seconds in NEVER_ROUNDED:
            structs.force_setattr(self, "fastest_win_seconds", NEVER)
        if max(_mode_times(self)) in NEVER_ROUNDED:
            for name in MODE_TIMES:
                if getattr(self, name) in NEVER_ROUNDED:
                    structs.force_setattr(self, name, 0)
        super().__post_init__()


class Achievement(Checked, frozen=True, kw_only=True):
    """One achievement; unlocked ones stay unlocked."""

    id: Key
    unlocked: bool
    unlock_date: Time | None
    reward_granted: bool


class Progress(Checked, frozen=True, kw_only=True):
    """Experience, daily challenges, weekly goals, and unlocks."""

    total_xp: U64
    level: U32
    daily_challenge_last_completed: date | None
    daily_challenge_streak: U32
    daily_challenge_longest_streak: U32 = 0
    daily_challenge_history: list[date] = msgspec.field(default_factory=list)
    daily_won_later: Annotated[
        list[date],
        Meta(description="days whose deal was won after the day's 36 hours; games add them, pushes need not"),
    ] = msgspec.field(default_factory=list)
    weekly_goal_week_iso: str | None = None
    weekly_goal_progress: dict[Key, U32]
    unlocked_card_backs: list[U32]
    unlocked_backgrounds: list[U32]
    challenge_index: U32 = 0
    last_modified: Time


class Payload(Checked, frozen=True, kw_only=True):
    """The complete progress of one player, as devices push and pull it."""

    user_id: Annotated[
        str, Meta(description="the player's id, or the nil UUID", examples=[NIL], extra_json_schema={"format": "uuid"})
    ]
    stats: Stats
    achievements: list[Achievement]
    progress: Progress
    last_modified: Time


class SyncConflict(Struct, frozen=True):
    """A value that differed between devices, for the game to show; `local_value` was pushed."""

    field: str
    local_value: str
    remote_value: str


class SyncAnswer(Struct, frozen=True):
    """The stored progress after a push or pull."""

    merged: Payload
    server_time: Time
    conflicts: list[SyncConflict]


class UnknownFields(NamedTuple):
    """The unknown fields of a payload, by their objects; those of achievements by id."""

    payload: Unknown
    stats: Unknown
    progress: Unknown
    achievements: dict[str, Unknown]

    @property
    def total(self) -> int:
        """The number of all unknown fields."""
        return len(self.payload) + len(self.stats) + len(self.progress) + sum(map(len, self.achievements.values()))


NO_UNKNOWN_FIELDS = UnknownFields({}, {}, {}, {})


class Document(NamedTuple):
    """A payload and its unknown fields: the unit of merging and storing."""

    payload: Payload
    unknown_fields: UnknownFields

    def encode(self) -> bytes:
        """The document as JSON, known fields before unknown ones."""
        known, unknown_fields = self.payload, self.unknown_fields
        if not any(unknown_fields):
            # Fast path: replaces a dict of each record, 90,000 instructions of a push, see docs/performance.md
            return _encode(known)
        return _encode(
            structs.asdict(known)
            | {
                "stats": structs.asdict(known.stats) | unknown_fields.stats,
                "progress": structs.asdict(known.progress) | unknown_fields.progress,
                "achievements": [
                    structs.asdict(record) | unknown_fields.achievements.get(record.id, {})
                    for record in known.achievements
                ],
            }
            | unknown_fields.payload
        )


class Lengths(NamedTuple):
    """The lengths of a document's lists and maps, and the number of its unknown fields."""

    achievements: int
    unlocked_card_backs: int
    unlocked_backgrounds: int
    weekly_goal_progress: int
    daily_challenge_history: int
    daily_won_later: int
    unknown_fields: int


MOST = Lengths(
    achievements=2_000,
    unlocked_card_backs=1_000,
    unlocked_backgrounds=1_000,
    weekly_goal_progress=1_000,
    daily_challenge_history=4_000,
    daily_won_later=4_000,
    unknown_fields=2_000,
)
_NOTHING = Lengths(0, 0, 0, 0, 0, 0, 0)


def check_bounds(document: Document, stored: Document | None) -> None:
    """Raise BadRequest for the first count over MOST, unless `stored` has as many: players keep what they have."""
    counts = _counts(document)
    if not any(map(gt, counts, MOST)):
        return
    known = _counts(stored) if stored else _NOTHING
    for name, count, most, had in zip(Lengths._fields, counts, MOST, known, strict=True):
        if count > max(most, had):
            raise BadRequest("sync_too_many", f"sync payload may have at most {most:,} {name.replace('_', ' ')}")


def _counts(document: Document) -> Lengths:
    payload, unknown_fields = document
    progress = payload.progress
    return Lengths(
        len(payload.achievements),
        len(progress.unlocked_card_backs),
        len(progress.unlocked_backgrounds),
        len(progress.weekly_goal_progress),
        len(progress.daily_challenge_history),
        len(progress.daily_won_later),
        unknown_fields.total,
    )
