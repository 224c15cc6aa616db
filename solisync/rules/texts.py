"""Texts of pages for players: numbers, dates, cards and verdicts in words (docs/pages.md "How a page is made")."""

import re
from calendar import day_name, month_name
from datetime import date
from math import ceil

from msgspec import Raw

from ..klondike import Reason, Status
from ..klondike.rules import SUIT_CARDS, SUIT_NAMES
from .boards import RANKS
from .replays import VerdictAnswer

_VERDICTS = {
    Status.PENDING: "We are still checking this game. You can watch it as soon as that is done.",
    Status.REFUTED: "Not confirmed:",
    Status.UNDECIDED: "Neither confirmed nor refuted:",
    Status.UNREADABLE: "It can’t be played back:",
}
_REASONS = {
    Reason.NO_SEED: "it does not say which deal was played.",
    Reason.NO_MOVES: "it has no moves, because the game that uploaded it did not record them.",
    Reason.SHAPE: "its moves are not in a known format.",
    Reason.ILLEGAL_MOVE: "a move breaks the rules, even allowing for undos.",
    Reason.NOT_WON: "its moves do not lead to a win.",
    Reason.SCORE: "its moves win, but with another score.",
    Reason.NO_EXPLANATION: "even allowing for undos, its moves do not win with this score.",
    Reason.BUDGET: "some moves must have been undone, and finding out which would take too long.",
    Reason.CRASHED: "the check failed.",
    Reason.SEED_ROUNDED: "its deal number looks rounded, so its moves may belong to another deal.",
}
_BELOW_MILLISECONDS = re.compile(r"(?<=\.[0-9]{3})[0-9]+")


def verdict_text(verdict: VerdictAnswer) -> str:
    """The result of a check, as a sentence."""
    if verdict.status != Status.VERIFIED:
        reason = "" if verdict.reason is None else f" {_REASONS[Reason(verdict.reason)]}"
        return _VERDICTS[Status(verdict.status)] + reason
    won = f"these moves win this deal with exactly {counted(verdict.score or 0, 'point')}."
    if not verdict.undos:
        return f"Verified: {won}"
    return f"Verified: with {counted(verdict.undos, 'undo')} where marked, {won}"


def moves_text(verdict: VerdictAnswer) -> str:
    """The number of moves of a verified game; a dash for others."""
    if verdict.moves is None:
        return "–"
    return counted(verdict.moves, "move") + (f", {counted(verdict.undos, 'undo')}" if verdict.undos else "")


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 move`, `1,024 moves`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def points(spelling: Raw) -> str:
    """An uploaded score with its unit: `1,240 points`."""
    number = score(spelling)
    return f"{number} point{'' if number == '1' else 's'}"


def score(spelling: Raw) -> str:
    """An uploaded score, with at most three decimals."""
    value = float(bytes(spelling))
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.3f}".rstrip("0").rstrip(".")


def time_taken(spelling: Raw) -> str:
    """Uploaded seconds, as 4:11 or 1:02:03."""
    minutes, seconds = divmod(round(float(bytes(spelling))), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def in_words(name: str) -> str:
    """A mode or draw mode in words: `Draw three`, `Time attack`."""
    return re.sub(r"(?<=.)[A-Z]", lambda letter: f" {letter[0].lower()}", name)


def long_date(day: date) -> str:
    """A date in words: `26 April 2026`."""
    return f"{day.day} {month_name[day.month]} {day.year}"


def weekday(day: date) -> str:
    """The weekday of a date: `Sunday`."""
    return day_name[day.weekday()]


def recorded_on(recorded_at: str) -> str:
    """The recorded date of a game, in words."""
    try:
        return long_date(date.fromisoformat(recorded_at[:10]))
    except ValueError:
        return recorded_at[:10]


def machine_time(recorded_at: str) -> str:
    """The recorded date or time of a game, as HTML allows it: with at most three digits of a second."""
    return _BELOW_MILLISECONDS.sub("", recorded_at).upper()


def winners_text(players: int, best: int | None) -> str:
    """The number of players who have won a day's deal, and the best score, in words."""
    if best is None:
        return "No player on the leaderboard has won it yet."
    many = f"More than {RANKS:,} players" if players >= RANKS else counted(players, "player")
    return f"{many} on the leaderboard won it. The best score is {best:,}."


def winners_today(players: int) -> str:
    """The number of players who have won today's deal, to follow the time left; nothing without one."""
    many = (
        f"More than {RANKS:,} players have"
        if players >= RANKS
        else f"{counted(players, 'player')} {'has' if players == 1 else 'have'}"
    )
    return f" · {many} won it so far." if players else ""


def suit_of(card: int) -> str:
    """The suit of a card: `hearts`."""
    return SUIT_NAMES[card // SUIT_CARDS]


def span_shown(seconds: float) -> str:
    """A span of time, rounded up to whole seconds, minutes, hours or days: `90 seconds`, `3 days`."""
    for unit, size, most in (("second", 1, 120), ("minute", 60, 120), ("hour", 3_600, 48)):
        if seconds <= size * most:
            return counted(ceil(seconds / size), unit)
    return counted(ceil(seconds / 86_400), "day")


def lateness(behind: int) -> str:
    """How late a suspension may end while the retention clock is behind by these seconds: nothing up to a minute.

    Housekeeping may move the clock a little later than every minute, so this counts whole minutes.
    """
    return "" if behind < 120 else f", or up to {span_shown(behind)} longer while the service catches up"


def bytes_shown(count: float) -> str:
    """A number of bytes with a binary unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.{0 if unit == 'B' else 1}f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
