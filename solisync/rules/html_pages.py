"""Pages for players: what their heads say, and the data in them (docs/pages.md "How a page is made").

Everything here is plain text. Whoever puts it into HTML escapes it.
"""

from datetime import date
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Raw, Struct

from ..klondike import Status
from .challenge import DailyChallenge
from .fields import Time
from .verdicts import VerdictAnswer

PageName = Literal["home", "replays", "replay", "leaderboard", "daily", "account", "reset", "missing", "failed", "away"]


class PageMeta(NamedTuple):
    """What previews of a link show."""

    title: str
    description: str


class SharedReplay(Struct, frozen=True):
    """What the page of a replay says of it; the two numbers are spelled as they were uploaded."""

    id: str
    username: str
    deal: Annotated[str | None, Meta(description="the seed as text")]
    draw_mode: str
    mode: str
    time_seconds: Raw
    final_score: Raw
    recorded_at: str
    received_at: Time
    listed: bool


class ReplayData(Struct, frozen=True):
    """The data of the page of a replay."""

    replay: SharedReplay
    verdict: VerdictAnswer


class Goal(Struct, frozen=True):
    """What is to be reached in the deal of a day."""

    description: str
    target_score: int | None
    max_time_secs: int | None


class DayData(Struct, frozen=True):
    """The data of the page of a day; the deal is the seed as text."""

    date: date
    deal: str
    goal: Goal


STATIC: dict[PageName, PageMeta] = {
    "home": PageMeta(
        "Solitaire", "Klondike solitaire: the deal of the day, replays of won games, and the best players."
    ),
    "replays": PageMeta("Replays – Solitaire", "The newest won games, to watch move by move."),
    "leaderboard": PageMeta("Leaderboard – Solitaire", "The best games, each proved by its replay."),
    "daily": PageMeta("Deal of the day – Solitaire", "One deal a day for everybody, and a goal to reach with it."),
    "account": PageMeta("Account – Solitaire", "Sign in, register, and look after your account."),
    "reset": PageMeta("New password – Solitaire", "Set a new password with the link that you were given."),
    "missing": PageMeta("Not found – Solitaire", "There is nothing at this address."),
    "failed": PageMeta("Something went wrong – Solitaire", "The server could not make this page."),
    "away": PageMeta("Back in a moment – Solitaire", "The service is restarting or busy."),
}

_VERDICTS = {
    Status.PENDING: "Not checked yet.",
    Status.REFUTED: "The recorded moves don't lead to this result.",
    Status.UNDECIDED: "Could not be checked in the time that a check may take.",
    Status.UNREADABLE: "Has no moves that can be checked.",
}


def replay_head(shown: ReplayData) -> PageMeta:
    """The head of the page of a replay: by whom, with which result, and whether its moves prove it."""
    replay, verdict = shown.replay, shown.verdict
    game = f"{_points(replay.final_score)} in {_clock(replay.time_seconds)}, {_in_words(replay.draw_mode)}"
    claims = "claims" if verdict.status == Status.REFUTED else "won with"
    deal = "" if replay.deal is None else f", deal {replay.deal}"
    details = f"Mode {_in_words(replay.mode)}{deal}, {replay.recorded_at[:10]}."
    return PageMeta(f"{replay.username} {claims} {game}", f"{details} {_checked(verdict)}")


def day_data(challenge: DailyChallenge) -> DayData:
    """The data of the page of a day."""
    goal = Goal(challenge.description, challenge.target_score, challenge.max_time_secs)
    return DayData(challenge.date, str(challenge.seed), goal)


def day_head(day: DayData) -> PageMeta:
    """The head of the page of a day."""
    return PageMeta(f"Deal of {day.date} – Solitaire", f"{day.goal.description}. The deal is {day.deal}.")


def _in_words(name: str) -> str:
    return {"DrawOne": "draw one", "DrawThree": "draw three", "TimeAttack": "Time Attack"}.get(name, name)


def _points(spelling: Raw) -> str:
    points = float(bytes(spelling))
    number = f"{points:.0f}" if points.is_integer() else f"{points:.2f}"
    return f"{number} point" if number == "1" else f"{number} points"


def _clock(spelling: Raw) -> str:
    minutes, seconds = divmod(int(float(bytes(spelling))), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _checked(verdict: VerdictAnswer) -> str:
    if verdict.status != Status.VERIFIED:
        return _VERDICTS[verdict.status]
    if not verdict.undos:
        return "Checked: the moves lead to the win with this score."
    moves = "1 move" if verdict.undos == 1 else f"{verdict.undos} moves"
    return f"Checked: the moves lead to the win with this score, with {moves} taken back."
