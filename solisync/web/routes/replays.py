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
from ..route import Json, Route


def replays(resources: Resources) -> tuple[Route, ...]:
    """Replays, verdicts and boards."""
    part = {"limit": PageLimit, "after": PlaceText, "around": AroundText}
    return (
        Route(
            method="POST",
            path="/api/replays",
            name="upload_replay",
            tag="replays",
            handler=resources.replays.upload,
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
        Route(
            method="GET",
            path="/api/replays/recent",
            name="recent_replays",
            tag="replays",
            handler=resources.replays.list_recent,
            summary="List the newest replays of everybody",
            query={"limit": Count, "verdict": Verified},
            answer=list[Recent],
        ),
        Route(
            method="GET",
            path="/api/players/{username}/replays",
            name="player_replays",
            tag="replays",
            handler=resources.replays.list_of_player,
            summary="List a player's replays, page by page",
            query={"limit": Count, "before": PositionText},
            answer=PlayerReplays,
            errors=("user_not_found",),
        ),
        Route(
            method="GET",
            path="/api/replays/{replay_id}",
            name="replay",
            tag="replays",
            handler=resources.replays.fetch,
            summary="Get a replay as it was uploaded",
            answer=Replay,
            errors=("replay_not_found",),
        ),
        Route(
            method="DELETE",
            path="/api/replays/{replay_id}",
            name="delete_replay",
            tag="replays",
            handler=resources.replays.delete,
            summary="Delete a replay of one's own",
            protected=True,
            answer=Ok,
            errors=("user_not_found", "replay_not_found"),
        ),
        Route(
            method="PUT",
            path="/api/replays/{replay_id}/listed",
            name="set_listed",
            tag="replays",
            handler=resources.replays.set_listed,
            summary="Show a replay of one's own on public lists, or hide it there",
            protected=True,
            body=Json(Listed),
            answer=Ok,
            errors=("locked", "user_not_found", "replay_not_found"),
        ),
        Route(
            method="GET",
            path="/api/me/replays",
            name="own_replays",
            tag="replays",
            handler=resources.replays.list_own,
            summary="List one's own replays, page by page",
            protected=True,
            query={"limit": Count, "before": PositionText},
            answer=OwnReplays,
            errors=("user_not_found",),
        ),
        Route(
            method="GET",
            path="/api/replays/{replay_id}/verdict",
            name="verdict",
            tag="replays",
            handler=resources.verdicts.show,
            summary="Show whether a replay proves its score",
            answer=VerdictAnswer,
            errors=("replay_not_found",),
        ),
        Route(
            method="GET",
            path="/api/replays/{replay_id}/timeline",
            name="timeline",
            tag="replays",
            handler=resources.verdicts.timeline,
            summary="Get each step of a verified replay, to play it back",
            answer=Timeline,
            errors=("replay_not_found", "not_playable"),
        ),
        Route(
            method="GET",
            path="/api/boards/verified",
            name="classic_board",
            tag="boards",
            handler=resources.boards.classic,
            summary="List the best verified replays of mode Classic",
            protected=True,
            query={"draw_mode": DrawMode, **part},
            answer=BoardPage,
        ),
        Route(
            method="GET",
            path="/api/boards/daily/{day}",
            name="daily_board",
            tag="boards",
            handler=resources.boards.daily,
            summary="List the best verified replays of a day's deal",
            protected=True,
            query=part,
            answer=BoardPage,
            errors=("day_not_found",),
        ),
        Route(
            method="GET",
            path="/api/boards/deals/{seed}/{draw_mode}",
            name="deal_board",
            tag="boards",
            handler=resources.boards.deal,
            summary="List the best verified replays of a deal",
            protected=True,
            query=part,
            answer=BoardPage,
        ),
    )
