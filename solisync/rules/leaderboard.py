"""The leaderboard: display names, and the bests that it ranks (docs/protocol.md "The leaderboard")."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from ..errors import BadRequest
from .controls import CONTROLS, has_controls
from .shapes import Time
from .sync import Stats

DISPLAY_NAME_MAX = 32
BEST_MAX = 2**31 - 1  # clients read a signed 32-bit integer
ENTRIES = 100

_UNSEEN = ("Cf", "Me", "Mn")  # Unicode categories: format characters, and marks on another character
# Characters that Unicode calls default-ignorable, and blank letters and symbols. Some are in _UNSEEN too: the pattern
# needs them here.
_INVISIBLE = (
    r"\xad\u0300-\u036f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
)
_NOTHING_VISIBLE = re.compile(rf"[\s{_INVISIBLE}\U0001d159\U000e0000-\U000e0fff]*")
_PATTERN = rf"^(?![\s{_INVISIBLE}]*$)\s*[^\s{CONTROLS}]([^{CONTROLS}]{{0,30}}[^\s{CONTROLS}])?\s*$"


class OptIn(Struct, frozen=True):
    """The name of the player on the leaderboard."""

    display_name: Annotated[
        str,
        Meta(
            description="1-32 code points after trimming, one of them visible, no control characters",
            examples=["Ann"],
            # for the OpenAPI document alone: `check_display_name` checks it, with error texts for players
            extra_json_schema={"pattern": _PATTERN},
        ),
    ]


class Entry(Struct, frozen=True):
    """A line of the leaderboard."""

    display_name: str
    best_score: int | None
    best_time_secs: int | None
    recorded_at: Time
    verified: Annotated[bool, Meta(description="whether a replay of mode Classic proves the best score")]


class OwnEntry(Struct, frozen=True):
    """A player's own entry; without one, all fields but `visible` are null."""

    visible: Annotated[bool, Meta(description="whether other players see it")]
    display_name: str | None
    best_score: int | None
    best_time_secs: int | None


class Bests(NamedTuple):
    """A score and a time in seconds that may improve an entry; None leaves the entry's value unchanged."""

    score: int | None
    seconds: int | None


NO_BESTS = Bests(None, None)


@dataclass(frozen=True, slots=True)
class Standing:
    """A player's own entry; `visible` is None for a player who has never opted in."""

    visible: bool | None
    best_score: int | None
    best_time_secs: int | None

    def improved_by(self, bests: Bests) -> bool:
        """Return whether the player has an entry that one of these bests improves."""
        score = bests.score is not None and (self.best_score is None or bests.score > self.best_score)
        time = bests.seconds is not None and (self.best_time_secs is None or bests.seconds < self.best_time_secs)
        return self.visible is not None and (score or time)


def check_display_name(text: str) -> str:
    """Trim and check a display name; raises BadRequest."""
    name = text.strip()
    first = name[:DISPLAY_NAME_MAX]
    if _NOTHING_VISIBLE.fullmatch("".join(each for each in first if unicodedata.category(each) not in _UNSEEN)):
        raise BadRequest("display_name_empty", "display_name must not be empty")
    if len(name) > DISPLAY_NAME_MAX:
        raise BadRequest("display_name_length", "display_name must be at most 32 characters")
    if has_controls(name):
        raise BadRequest("display_name_characters", "display_name must not contain control characters")
    return name


def bests_of(stats: Stats) -> Bests:
    """The bests in a player's statistics: a score or time of 0 doesn't count, and scores are capped at BEST_MAX."""
    seconds = stats.fastest_win_seconds
    return Bests(
        score=min(stats.best_single_score, BEST_MAX) or None,
        seconds=seconds if 0 < seconds <= BEST_MAX else None,
    )
