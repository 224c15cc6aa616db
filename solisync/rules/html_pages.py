"""Pages for players: the texts of their heads, and their data (docs/pages.md "How a page is made").

Everything here is plain text. Code that puts it into HTML must escape it.
"""

from datetime import date
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Raw, Struct, structs

from ..klondike import Status
from .challenge import DailyChallenge, daily_challenge, day_before
from .replay_lists import RECENT_DEFAULT, PlayerReplays, Recent, player_page
from .replays import VerdictAnswer, shown_moment
from .shapes import Time
from .texts import in_words, long_date, points, time_taken, verdict_text

PageName = Literal[
    "home",
    "play",
    "replays",
    "replay",
    "leaderboard",
    "daily",
    "player",
    "account",
    "reset",
    "missing",
    "early",
    "failed",
    "away",
    "offline",
]


class PageMeta(NamedTuple):
    """The texts that previews of a link show."""

    title: str
    description: str


class SharedReplay(Struct, frozen=True):
    """The replay as its page shows it; the two numbers are spelled as uploaded."""

    id: str
    username: str
    avatar_url: str | None
    deal: Annotated[str | None, Meta(description="the seed as text")]
    draw_mode: str
    mode: str
    time_seconds: Raw
    final_score: Raw
    recorded_at: str
    received_at: Time
    listed: bool

    def __post_init__(self) -> None:
        structs.force_setattr(self, "recorded_at", shown_moment(self.recorded_at))


class ReplayData(Struct, frozen=True):
    """The data of a replay's page."""

    replay: SharedReplay
    verdict: VerdictAnswer


_Date = date  # for classes with a field of that name


class Goal(Struct, frozen=True):
    """The goal of a day's deal."""

    description: str
    target_score: int | None
    max_time_secs: int | None


class DayData(Struct, frozen=True, omit_defaults=True):
    """The data of a page with a day's deal, a seed as text. A day's page has today's date too.

    The home page has the deals of the days for which a win may count now, by date.
    """

    date: date
    deal: str
    goal: Goal
    today: _Date | None = None
    deals: dict[str, str] = {}


class DayBoard(NamedTuple):
    """The state of a day on the database's `today`: how many players its board ranks, and the best score."""

    day: date
    today: date
    players: int
    best: int | None

    @property
    def begun(self) -> bool:
        """Whether the day has begun."""
        return self.day <= self.today

    @property
    def over(self) -> bool:
        """Whether the day has ended."""
        return self.day < self.today


class PlayerData(Struct, frozen=True):
    """The data of a player's page; `next` is the position after the replays on the page."""

    username: str
    avatar_url: str | None
    next: str | None


class PlayerPage(NamedTuple):
    """A player, and the newest of the player's listed replays."""

    username: str
    avatar_url: str | None
    replays: list[Recent]

    @property
    def page(self) -> PlayerReplays:
        """The replays on the page, and the position of the next page."""
        return player_page(self.replays, RECENT_DEFAULT)

    @property
    def data(self) -> PlayerData:
        """The data for the script of the page."""
        return PlayerData(self.username, self.avatar_url, self.page.next)


DAILY = "One deal a day, the same cards for all players. Free in the browser, without an account."

STATIC: dict[PageName, PageMeta] = {
    "play": PageMeta("Play", f"Can you win it? {DAILY} Any other deal works too."),
    "replays": PageMeta("Replays", "The newest wins, to watch move by move."),
    "leaderboard": PageMeta("Leaderboard", "The best games, each proved by its replay."),
    "account": PageMeta("Account", "Sign in, create an account, or manage yours."),
    "reset": PageMeta("New password", "Set a new password with the link that you were given."),
    "missing": PageMeta("Not found", "There is nothing at this address."),
    "failed": PageMeta("Something went wrong", "The server could not make this page."),
    "away": PageMeta("Back in a moment", "The service is restarting or busy."),
    "offline": PageMeta("Not connected", "This page needs a connection; the game doesn’t."),
}
"""The heads of pages that are the same for every request."""

HOME = PageMeta("", f"Can you win today’s solitaire? {DAILY}")


EARLY = PageMeta("Not yet", "The deal of this day is still to come.")


def replay_head(shown: ReplayData) -> PageMeta:
    """The head of a replay's page: the player, the result, and whether the moves prove it."""
    replay, verdict = shown.replay, shown.verdict
    game = f"{points(replay.final_score)} in {time_taken(replay.time_seconds)}, {in_words(replay.draw_mode).lower()}"
    watch = "Watch it move by move, or play the same deal. " if verdict.status == Status.VERIFIED else ""
    return PageMeta(f"{replay.username} {claim(verdict)} {game}", watch + verdict_text(verdict))


def claim(verdict: VerdictAnswer) -> str:
    """The verb between a player and a score; a refuted score is only claimed."""
    return "claims" if verdict.status == Status.REFUTED else "won with"


def day_data(challenge: DailyChallenge, today: date | None = None) -> DayData:
    """The data of a day's page."""
    goal = Goal(challenge.description, challenge.target_score, challenge.max_time_secs)
    return DayData(challenge.date, str(challenge.seed), goal, today)


def home_data(today: date) -> DayData:
    """The data of the home page."""
    deals = {str(day): str(daily_challenge(day).seed) for day in (day_before(today), today)}
    return structs.replace(day_data(daily_challenge(today)), deals=deals)


def day_head(day: DayData) -> PageMeta:
    """The head of a day's page."""
    return PageMeta(f"Deal of {long_date(day.date)}", f"Can you win it? {day.goal.description}. {DAILY}")


def player_head(player: PlayerPage) -> PageMeta:
    """The head of a player's page."""
    return PageMeta(player.username, f"Games of {player.username}, to watch move by move.")
