"""Verdicts on replays, and timelines of verified replays: docs/protocol.md "Replays"."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct
from msgspec.json import Decoder

from ...klondike import Proved, Status, Verdict, in_words
from ...postgres.declared import maybe
from ...rules.replays import VerdictAnswer
from ..rows import converted, nested
from .replays import IS_LISTED, RECORDED_AT


class CheckedReplay(Struct, frozen=True):
    """A replay with its verdict; `queue` is "literal" or "search" while it waits for a check, or else None.

    `held`: an operator keeps it unlisted. A suspended player's replays are not `listed` either.
    """

    id: str
    user_id: str
    username: str
    received_at: datetime
    size: int
    mode: str
    draw_mode: str
    seed: str | None
    final_score: str
    time_seconds: str
    recorded_at: str
    listed: bool
    held: bool
    status: str
    reason: str | None
    ruleset: str | None
    undos: int | None
    score: int | None
    moves: int | None
    checked_at: datetime | None
    engine: int | None
    queue: str | None
    attempts: int | None
    proved: Annotated[Proved | None, Meta(description="what the moves prove, if the replay is refuted or undecided")]

    @property
    def finding(self) -> str | None:
        """How the replay differs from its claim, in words; None if nothing is known."""
        return in_words(self.final_score, self.proved)


class CheckedGame(NamedTuple):
    """A replay with its verdict, and the recorded game."""

    replay: CheckedReplay
    body: bytes
    undo_places: tuple[int, ...]


class TimelineTag(NamedTuple):
    """The strong ETag of a replay's timeline, with quotes; None if the replay can't be played back."""

    etag: str | None


@dataclass(frozen=True, slots=True)
class PlaybackSource:
    """The data that the timeline of a verified replay is made from, and its entity tag."""

    etag: str
    body: bytes
    ruleset: str
    undos: int
    score: int
    moves: int
    undo_places: tuple[int, ...] | None

    @property
    def verdict(self) -> Verdict:
        """The verdict, with the positions of undos."""
        return Verdict(
            status=Status.VERIFIED,
            ruleset=self.ruleset,
            undos=self.undos,
            score=self.score,
            moves=self.moves,
            undo_places=self.undo_places or (),
        )


read_proved = Decoder(Proved).decode

_ETAG = """'"' || encode(timeline_digest, 'hex') || '"'"""


@maybe(
    """
    SELECT coalesce(status, 'pending') AS status, ruleset, undos, score, moves, reason, checked_at
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,
    row=VerdictAnswer,
)
async def verdict(replay_id: str) -> VerdictAnswer | None:
    """The verdict on a replay, which may be pending; None if the replay doesn't exist."""


@maybe(
    f"""
    SELECT CASE WHEN status = 'verified' THEN {_ETAG} END AS etag
    FROM replays LEFT JOIN verdicts ON verdicts.replay_id = replays.id WHERE replays.id = $1::uuid
    """,  # noqa: S608
    row=TimelineTag,
)
async def timeline_tag(replay_id: str) -> TimelineTag | None:
    """The entity tag of a replay's timeline; None if the replay doesn't exist."""


@maybe(
    f"""
    SELECT {_ETAG} AS etag, body, ruleset, undos, score, moves, undo_places
    FROM replays JOIN verdicts ON verdicts.replay_id = replays.id
    WHERE replays.id = $1::uuid AND status = 'verified' AND timeline_digest IS NOT NULL
    """,  # noqa: S608
    row=converted(PlaybackSource, body=str.encode, undo_places=tuple),
)
async def playback_source(replay_id: str) -> PlaybackSource | None:
    """The data for the timeline of a replay; None if it can't be played back or doesn't exist."""


@maybe(
    f"""
    SELECT replays.id, replays.user_id, username, replays.received_at, size, mode, draw_mode, seed, final_score,
        time_seconds, {RECORDED_AT}, {IS_LISTED} AS listed,
        coalesce(held, false) AS held, coalesce(status, 'pending') AS status, reason, ruleset, undos, score, moves,
        checked_at, engine, CASE WHEN search THEN 'search' WHEN NOT search THEN 'literal' END AS queue, attempts,
        proved, body, undo_places
    FROM replays JOIN users ON users.id = replays.user_id
    LEFT JOIN verdicts ON verdicts.replay_id = replays.id
    LEFT JOIN replay_checks ON replay_checks.replay_id = replays.id
    WHERE replays.id = $1::uuid
    """,  # noqa: S608
    prepared=False,
    row=nested(
        CheckedGame,
        converted(CheckedReplay, proved=read_proved),
        lambda body: body.encode(),
        lambda undo_places: tuple(undo_places or ()),
    ),
)
async def show(replay_id: str) -> CheckedGame | None:
    """A replay with its verdict, and its place in the queues; None if the replay doesn't exist."""
