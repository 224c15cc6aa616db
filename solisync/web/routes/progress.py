"""The routes of games: progress, and what players compare themselves by."""

from ...access.rate_limit import OPT_IN
from ...rules.challenge import DailyChallenge
from ...rules.events import NAMES, BoardNames
from ...rules.leaderboard import Entry, OptIn, OwnEntry
from ...rules.pushed import read_pushed
from ...rules.shapes import Ok
from ...rules.sync import Payload, SyncAnswer
from ..resources import Resources
from ..route import EventStream, Json, Route, delete, get, post


def progress(resources: Resources, *, streams: bool) -> tuple[Route, ...]:
    """Progress, the leaderboard and the daily challenge; and `streams` of events about them."""
    return (
        *((_events(resources),) if streams else ()),
        get(
            "/api/sync/pull",
            resources.sync.pull,
            name="pull",
            tag="sync",
            summary="Show one's stored progress",
            protected=True,
            answer=SyncAnswer,
            errors=("user_not_found",),
        ),
        post(
            "/api/sync/push",
            resources.sync.push,
            name="push",
            tag="sync",
            summary="Merge a device's progress into the stored one",
            protected=True,
            body=Json(Payload, read_pushed),
            answer=SyncAnswer,
            errors=("user_id_mismatch", "sync_too_large", "sync_too_many", "user_not_found"),
        ),
        get(
            "/api/leaderboard",
            resources.leaderboard.show,
            name="leaderboard",
            tag="leaderboard",
            summary="List the best players who want to be seen",
            protected=True,
            answer=list[Entry],
        ),
        get(
            "/api/leaderboard/opt-in",
            resources.leaderboard.own,
            name="own_entry",
            tag="leaderboard",
            summary="Show one's own entry, and whether others see it",
            protected=True,
            answer=OwnEntry,
            errors=("user_not_found",),
        ),
        post(
            "/api/leaderboard/opt-in",
            resources.leaderboard.opt_in,
            name="opt_in",
            tag="leaderboard",
            summary="Appear on the leaderboard, or change one's name there",
            protected=True,
            limit=OPT_IN,
            body=Json(OptIn),
            answer=Ok,
            errors=("display_name_empty", "display_name_length", "display_name_characters", "locked", "user_not_found"),
        ),
        delete(
            "/api/leaderboard/opt-in",
            resources.leaderboard.opt_out,
            name="opt_out",
            tag="leaderboard",
            summary="Disappear from the leaderboard",
            protected=True,
            limit=OPT_IN,
            answer=Ok,
            errors=("user_not_found",),
        ),
        get(
            "/api/daily-challenge",
            resources.challenge.daily,
            name="daily_challenge",
            tag="challenge",
            summary="Show the deal of the day and its goal",
            answer=DailyChallenge,
        ),
    )


def _events(resources: Resources) -> Route:
    return get(
        "/api/events",
        resources.live_events.stream,
        name="events",
        tag="events",
        summary="Hear of changes as they happen",
        protected=True,
        query={"board": BoardNames},
        answer=EventStream({name: shape for shape, name in NAMES.items()}),
        errors=("user_not_found", "rate_limited", "not_found"),  # the last where there are no streams
    )
