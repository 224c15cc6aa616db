"""Rows of the console's routes that do something: one for each act."""

from ...access.rate_limit import ADMIN_ACTS, ADMIN_GRAVE
from ...rules.console_acts import (
    ActBody,
    Acted,
    CheckBody,
    DeletionBody,
    EndedSessions,
    EndSessionsBody,
    EntryBody,
    LinkBody,
    ListedBody,
    LockBody,
    NewLink,
    Suspended,
    SuspensionBody,
    SuspensionsBody,
    UsernameBody,
)
from ..route import Json, Route
from .acts import Acts
from .route import post, put

PLAYER = {"tag": "players", "limit": ADMIN_ACTS, "answer": Acted}
REPLAY = {"tag": "replays", "limit": ADMIN_ACTS, "answer": Acted, "errors": ("replay_not_found",)}
NO_PLAYER = ("user_not_found",)
NAMES = ("display_name_empty", "display_name_length", "display_name_characters")


def act_routes(acts: Acts) -> tuple[Route, ...]:
    """Every act over HTTP. Those that can't be undone, or let somebody in, have a limit of their own."""
    player, replay = "/players/{user_id}", "/replays/{replay_id}"
    return (
        put(
            f"{player}/suspension",
            acts.suspension,
            name="suspend",
            summary="Suspend a player, or end the suspension",
            body=Json(SuspensionBody),
            errors=NO_PLAYER,
            **PLAYER,
        ),
        post(
            "/suspensions",
            acts.suspensions,
            name="suspend_several",
            summary="Suspend up to 100 players",
            body=Json(SuspensionsBody),
            **PLAYER | {"limit": ADMIN_GRAVE, "answer": Suspended},
        ),
        put(
            f"{player}/lock",
            acts.lock,
            name="lock",
            summary="Lock a player's profile, or end the lock",
            body=Json(LockBody),
            errors=NO_PLAYER,
            **PLAYER,
        ),
        post(
            f"{player}/sessions/end",
            acts.end_sessions,
            name="end_sessions",
            summary="End all sessions of a player",
            body=Json(EndSessionsBody),
            errors=NO_PLAYER,
            **PLAYER | {"answer": EndedSessions},
        ),
        post(
            f"{player}/password-link",
            acts.link,
            name="link",
            summary="Make a link with which a player sets a new password",
            body=Json(LinkBody),
            errors=NO_PLAYER,
            **PLAYER | {"limit": ADMIN_GRAVE, "answer": NewLink},
        ),
        put(
            f"{player}/username",
            acts.username,
            name="rename",
            summary="Give a player another username",
            body=Json(UsernameBody),
            errors=(*NO_PLAYER, "username_length", "username_characters", "username_taken"),
            **PLAYER,
        ),
        put(
            f"{player}/entry",
            acts.entry,
            name="set_entry",
            summary="Rename, hide or show a player's entry on the leaderboard",
            body=Json(EntryBody),
            errors=(*NO_PLAYER, *NAMES),
            **PLAYER,
        ),
        post(
            f"{player}/avatar/remove",
            acts.remove_avatar,
            name="remove_avatar",
            summary="Take a player's avatar away",
            body=Json(ActBody),
            errors=NO_PLAYER,
            **PLAYER,
        ),
        post(
            f"{player}/delete",
            acts.delete,
            name="delete_player",
            summary="Delete a player and all that is theirs",
            body=Json(DeletionBody),
            errors=NO_PLAYER,
            **PLAYER | {"limit": ADMIN_GRAVE},
        ),
        put(
            f"{replay}/listed",
            acts.listed,
            name="set_listed",
            summary="Take a replay off the lists, or list it again",
            body=Json(ListedBody),
            **REPLAY,
        ),
        post(
            f"{replay}/check",
            acts.check,
            name="check",
            summary="Have a replay checked before all others",
            body=Json(CheckBody),
            **REPLAY,
        ),
        post(
            f"{replay}/delete",
            acts.delete_replay,
            name="delete_replay",
            summary="Delete a replay",
            body=Json(ActBody),
            **REPLAY,
        ),
    )
