"""The routes of replays: their verdicts, and the boards on which they stand."""

from ...klondike import Timeline
from ...rules.boards import AroundText, BoardPage, DrawMode, PageLimit, PlaceText
from ...rules.list_position import PositionText
from ...rules.replay_lists import Count, Listed, OwnReplays, PlayerReplays, Recent, Verified
from ...rules.replays import Replay, Uploaded, read_replay
from ...rules.shapes import Ok
from ...rules.verdicts import VerdictAnswer
from ..recorded_game import EXAMPLE
from ..resources import Resources
from ..route import Json, Route, delete, get, post, put


def replays(resources: Resources) -> tuple[Route, ...]:
    """Replays, verdicts and boards."""
    part = {"limit": PageLimit, "after": PlaceText, "around": AroundText}
    return (
        post(
            "/api/replays",
            resources.replays.upload,
            name="upload_replay",
            tag="replays",
            summary="Store a replay, to the byte; of one game, once",
            protected=True,
            body=Json(Replay, read_replay, EXAMPLE),
            answer=Uploaded,
            errors=("replay_storage_full", "user_not_found"),
            links={
                "replay": {"replay_id": "$response.body#/id"},
                "verdict": {"replay_id": "$response.body#/id"},
                "timeline": {"replay_id": "$response.body#/id"},
            },
        ),
        get(
            "/api/replays/recent",
            resources.replays.list_recent,
            name="recent_replays",
            tag="replays",
            summary="List the newest replays of everybody",
            query={"limit": Count, "verdict": Verified},
            answer=list[Recent],
        ),
        get(
            "/api/players/{username}/replays",
            resources.replays.list_of_player,
            name="player_replays",
            tag="replays",
            summary="List a player's replays, page by page",
            query={"limit": Count, "before": PositionText},
            answer=PlayerReplays,
            errors=("user_not_found",),
        ),
        get(
            "/api/replays/{replay_id}",
            resources.replays.fetch,
            name="replay",
            tag="replays",
            summary="Get a replay as it was uploaded",
            answer=Replay,
            errors=("replay_not_found",),
        ),
        delete(
            "/api/replays/{replay_id}",
            resources.replays.delete,
            name="delete_replay",
            tag="replays",
            summary="Delete a replay of one's own",
            protected=True,
            answer=Ok,
            errors=("user_not_found", "replay_not_found"),
        ),
        put(
            "/api/replays/{replay_id}/listed",
            resources.replays.set_listed,
            name="set_listed",
            tag="replays",
            summary="Show a replay of one's own on public lists, or hide it there",
            protected=True,
            body=Json(Listed),
            answer=Ok,
            errors=("locked", "user_not_found", "replay_not_found"),
        ),
        get(
            "/api/me/replays",
            resources.replays.list_own,
            name="own_replays",
            tag="replays",
            summary="List one's own replays, page by page",
            protected=True,
            query={"limit": Count, "before": PositionText},
            answer=OwnReplays,
            errors=("user_not_found",),
        ),
        get(
            "/api/replays/{replay_id}/verdict",
            resources.verdicts.show,
            name="verdict",
            tag="replays",
            summary="Show whether a replay proves its score",
            answer=VerdictAnswer,
            errors=("replay_not_found",),
        ),
        get(
            "/api/replays/{replay_id}/timeline",
            resources.verdicts.timeline,
            name="timeline",
            tag="replays",
            summary="Get each step of a verified replay, to play it back",
            answer=Timeline,
            errors=("replay_not_found", "not_playable", "rate_limited"),
        ),
        get(
            "/api/boards/verified",
            resources.boards.classic,
            name="classic_board",
            tag="boards",
            summary="List the best verified replays of mode Classic",
            protected=True,
            query={"draw_mode": DrawMode, **part},
            answer=BoardPage,
        ),
        get(
            "/api/boards/daily/{day}",
            resources.boards.daily,
            name="daily_board",
            tag="boards",
            summary="List the best verified replays of a day's deal",
            protected=True,
            query=part,
            answer=BoardPage,
            errors=("day_not_found",),
        ),
        get(
            "/api/boards/deals/{seed}/{draw_mode}",
            resources.boards.deal,
            name="deal_board",
            tag="boards",
            summary="List the best verified replays of a deal",
            protected=True,
            query=part,
            answer=BoardPage,
        ),
    )
