"""Rows of the console's routes that read."""

from typing import Annotated, Literal

from msgspec import Meta

from ..route import Content, Route
from .inspections import Inspections
from .overview import Overviews
from .pages_of_lists import Place, Size
from .players import PlayerViews
from .replays import ReplayViews
from .route import get
from .shapes import (
    Admins,
    Findings,
    FoundPlayers,
    FoundReplays,
    Migrations,
    Overview,
    PlayerFacts,
    PlayerHistory,
    PlayerSessions,
    RecordedActs,
    ReplayFacts,
    Review,
    SettingValues,
)

Verdict = Literal["pending", "verified", "refuted", "undecided", "unreadable"]
NO_PLAYER = ("user_not_found",)
NO_REPLAY = ("replay_not_found",)
IMAGES = ("image/png", "image/jpeg", "image/webp")
OLDER = {"before": Place, "limit": Size}
CHOSEN_REPLAYS = {"verdict": Verdict, "held": bool, **OLDER}


def reading_routes(
    players: PlayerViews, replays: ReplayViews, overviews: Overviews, inspections: Inspections
) -> tuple[Route, ...]:
    """Players, replays, what is new, what was done, and the service."""
    return (*_players(players), *_replays(replays), *_overviews(overviews, inspections))


def _players(players: PlayerViews) -> tuple[Route, ...]:
    one = "/players/{user_id}"
    return (
        get(
            "/players",
            players.find,
            name="find_players",
            tag="players",
            summary="Find players by name, id, address or state",
            query={
                "q": Annotated[str, Meta(max_length=100, description="what to look for")],
                "where": Literal["name", "part", "display_name", "address"],
                "state": Literal["suspended", "locked"],
                "after": Place,
                "limit": Size,
            },
            answer=FoundPlayers,
        ),
        get(
            one,
            players.show,
            name="player",
            tag="players",
            summary="A player in numbers",
            answer=PlayerFacts,
            errors=NO_PLAYER,
        ),
        get(
            f"{one}/sessions",
            players.sessions,
            name="player_sessions",
            tag="players",
            summary="The sessions of a player",
            answer=PlayerSessions,
            errors=NO_PLAYER,
        ),
        get(
            f"{one}/replays",
            players.replays,
            name="player_replays",
            tag="players",
            summary="The replays of a player, the newest first",
            query=CHOSEN_REPLAYS,
            answer=FoundReplays,
            errors=NO_PLAYER,
        ),
        get(
            f"{one}/avatar",
            players.avatar,
            name="player_avatar",
            tag="players",
            summary="The avatar of a player",
            answer=Content(IMAGES),
            errors=("avatar_not_found", *NO_PLAYER),
        ),
        get(
            f"{one}/history",
            players.history,
            name="player_history",
            tag="players",
            summary="What has happened to a player, and what operators have done",
            query=OLDER,
            answer=PlayerHistory,
            errors=NO_PLAYER,
        ),
        get(
            f"{one}/export",
            players.export,
            name="player_export",
            tag="players",
            summary="All that is stored about a player",
            errors=NO_PLAYER,
        ),
    )


def _replays(replays: ReplayViews) -> tuple[Route, ...]:
    one = "/replays/{replay_id}"
    return (
        get(
            "/replays",
            replays.newest,
            name="find_replays",
            tag="replays",
            summary="Replays, the newest first",
            query=CHOSEN_REPLAYS,
            answer=FoundReplays,
        ),
        get(
            one,
            replays.show,
            name="replay",
            tag="replays",
            summary="A replay with its verdict",
            answer=ReplayFacts,
            errors=NO_REPLAY,
        ),
        get(
            f"{one}/body",
            replays.body,
            name="replay_body",
            tag="replays",
            summary="A replay as it was uploaded",
            errors=NO_REPLAY,
        ),
        get(
            f"{one}/timeline",
            replays.timeline,
            name="replay_timeline",
            tag="replays",
            summary="Each step of a verified replay",
            errors=(*NO_REPLAY, "not_playable"),
        ),
    )


def _overviews(overviews: Overviews, inspections: Inspections) -> tuple[Route, ...]:
    return (
        get(
            "/review",
            overviews.review,
            name="review",
            tag="service",
            summary="What is new of what others see",
            query={"kind": Literal["names", "avatars", "players", "entries", "replays"], **OLDER},
            answer=Review,
        ),
        get(
            "/service",
            overviews.service,
            name="service",
            tag="service",
            summary="The version, the queues, and about how much there is",
            answer=Overview,
        ),
        get(
            "/service/findings",
            inspections.findings,
            name="findings",
            tag="service",
            summary="What is wrong with the service, at most 30 s ago",
            answer=Findings,
        ),
        get(
            "/service/migrations",
            inspections.migrations,
            name="migrations",
            tag="service",
            summary="The migrations that the database has",
            answer=Migrations,
        ),
        get(
            "/service/settings",
            inspections.settings,
            name="settings",
            tag="service",
            summary="The settings, without secrets",
            answer=SettingValues,
        ),
        get(
            "/acts",
            overviews.acts,
            name="acts",
            tag="service",
            summary="What operators have done",
            query={"act": str, "actor": str, "player": str, **OLDER},
            answer=RecordedActs,
        ),
        get(
            "/admins",
            overviews.admins,
            name="admins",
            tag="service",
            summary="Everybody who may sign in",
            answer=Admins,
        ),
    )
