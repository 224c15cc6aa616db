"""Replacements for invalid cells, which the original server didn't check, and the warnings about them."""

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time
from typing import TypeVar

import msgspec
from msgspec import Raw, structs

from ..errors import BadRequest
from ..klondike import DRAW_MODES, MODES
from ..rules.leaderboard import BEST_MAX, Bests, check_display_name
from ..rules.replays import NUMBER_MAX, Fields, Header, read_header
from . import sqlite_values as cells
from .sqlite_values import Row, Unusable

UNKNOWN = "Unknown"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_CHOICES = (("mode", MODES), ("draw_mode", DRAW_MODES))

T = TypeVar("T")


class OddCells:
    """Reads cells whose invalid values don't make the row unusable; `warnings` has a text for each replaced value."""

    def __init__(self, row: Row, now: datetime) -> None:
        self.warnings: list[str] = []
        self._row = row
        self._now = now

    def bests(self) -> Bests:
        """The best score and time: a value that clients can't read is left out, and a score is capped."""
        score, seconds = self._row["best_score"], self._row["best_time_secs"]
        if score is not None and not (isinstance(score, int) and score > 0):
            score = self._instead(None, "best_score is not a whole number above 0: it is left out")
        elif score is not None and score > BEST_MAX:
            score = self._instead(BEST_MAX, f"best_score is above {BEST_MAX}: {BEST_MAX} is used")
        if seconds is not None and not (isinstance(seconds, int) and 0 < seconds <= BEST_MAX):
            seconds = self._instead(None, f"best_time_secs is not a whole number from 1 to {BEST_MAX}: it is left out")
        return Bests(score, seconds)

    def display_name(self) -> str:
        """The display name, or the username if the display name isn't allowed here."""
        try:
            return check_display_name(cells.text(self._row, "display_name"))
        except (BadRequest, Unusable) as error:
            return self._instead(cells.text(self._row, "username"), f"{error}; the username is shown instead")

    def recorded_at(self, newest_classic: datetime | None) -> datetime:
        """The time of an entry. There, `recorded_at` comes from a Classic replay: a time, a date or any text."""
        try:
            moment = cells.time(self._row, "recorded_at")
        except Unusable:
            moment = self._unclear_time(newest_classic)
        return self._not_in_the_future(moment, "recorded_at")

    def received_at(self) -> datetime:
        """The time of a replay, which is required."""
        return self._not_in_the_future(cells.time(self._row, "received_at"), "received_at")

    def header(self, fields: Fields, received_at: datetime) -> Header:
        """The header of a replay, with values that lists can show; raises BadRequest if a field is missing."""
        modes = self._modes(fields)
        readable = fields | {field: Raw(f'"{choices[0]}"'.encode()) for field, choices in _CHOICES if field in modes}
        readable |= self._capped(fields, "final_score", -NUMBER_MAX) | self._capped(fields, "time_seconds", 0)
        try:
            header = read_header(readable)
        except BadRequest:
            received_on = f'"{received_at.date().isoformat()}"'
            header = read_header(readable | {"recorded_at": Raw(received_on.encode())})
            self.warnings.append("recorded_at is not a date or time: lists show the date of receipt")
        return structs.replace(header, **modes)

    def _unclear_time(self, newest_classic: datetime | None) -> datetime:
        with suppress(Unusable, msgspec.ValidationError):
            day = msgspec.convert(cells.text(self._row, "recorded_at"), date)
            return self._instead(datetime.combine(day, time(), UTC), "recorded_at is a date: its 00:00 UTC is used")
        if newest_classic is not None:
            text = "recorded_at is not a time: the time of the player's newest Classic replay is used"
            return self._instead(newest_classic, text)
        return self._instead(self._now, "recorded_at is not a time: the time of the import is used")

    def _not_in_the_future(self, moment: datetime, column: str) -> datetime:
        if moment <= self._now:
            return moment
        return self._instead(self._now, f"{column} is in the future: the time of the import is used")

    def _modes(self, fields: Fields) -> dict[str, str]:
        """The values that lists show in place of an unknown mode or draw mode."""
        shown = {}
        for field, choices in _CHOICES:
            text = _decoded(fields, field, str)
            if text is not None and text not in choices:
                shown[field] = text if _NAME.fullmatch(text) else UNKNOWN
                self.warnings.append(f"{field} is not one of {', '.join(choices)}: lists show {shown[field]}")
        return shown

    def _capped(self, fields: Fields, field: str, least: int) -> Fields:
        number = _decoded(fields, field, int)
        if number is None or least <= number <= NUMBER_MAX:
            return {}
        nearest = least if number < least else NUMBER_MAX
        self.warnings.append(f"{field} is not from {least} to {NUMBER_MAX}; lists show {nearest}")
        return {field: Raw(str(nearest).encode())}

    def _instead(self, value: T, warning: str) -> T:
        self.warnings.append(warning)
        return value


def _decoded(fields: Fields, field: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(fields[field], type=kind)
    except (KeyError, msgspec.DecodeError):
        return None
