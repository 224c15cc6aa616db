"""Each act with all its arguments, as the service, the console and the command line perform it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.json import encode

from solisync.acts import players, profiles, replays
from solisync.acts.act import Act
from solisync.rules.documents import read_pushed
from tests.harness.payloads import progress_of


class Each(NamedTuple):
    """What performs the act: a command, and a request of the console, if it has one; without the reason.

    `says` has what the command prints, and what it prints when the act changes nothing; `notices` names what other
    processes learn, and `given` has the arguments of the act.
    """

    act: Act
    request: tuple[str, str, dict[str, Any]] | None
    command: str
    says: tuple[str, str]
    notices: str = ""
    given: Mapping[str, Any] = {}


def put(path, **body):
    return "PUT", path, body


def post(path, **body):
    return "POST", path, body


PROGRESS = progress_of(stats__games_played=3)
END = datetime(2199, 5, 1, tzinfo=UTC)
LINK = {"token_digest": b"x" * 32, "password_hash": "$2b$04$" + "x" * 53}
RESTORE = {"exported": read_pushed(encode(PROGRESS)).document, "games": [], "now": datetime.now(UTC)}
# Requests that more than one row has.
SUSPEND, UNSUSPEND = [put("{player}/suspension", suspended=each) for each in (True, False)]
SHOW, HIDE = [put("{player}/entry", visible=each) for each in (True, False)]
# What commands print.
ENTRY = "the entry 'Anna' of 'ann' is "
HIDDEN, HIDDEN_AND_LOCKED, VISIBLE = [
    (ENTRY + end, ENTRY + end)
    for end in ("hidden, until the player opts in again", "hidden, and the profile is locked", "visible")
]
NAMED = ("the entry of 'ann' is now called 'Anna'",) * 2
LOCKED, UNLOCKED = (
    ("'ann' is locked now", "'ann' is already locked"),
    ("'ann' is no longer locked", "'ann' is not locked"),
)
SUSPENDED, FREE = ("'ann' is suspended until further notice",) * 2, ("'ann' can log in again", "'ann' is not suspended")
SUSPENDED_UNTIL = ("'ann' is suspended until 2199-05-01 00:00:00 UTC",) * 2
ENDED = [
    f"ended {many} of 'ann'; their access tokens are refused within a second" for many in ("1 session", "0 sessions")
]
NO_AVATAR = "removed the avatar of 'ann'", "'ann' has no avatar"
RESTORED = "'ann' now has 3 games", "'ann' had all of it"
UNLISTED, LISTED = [(f"{state} 1 replay", f"{state} 0 replays; unchanged: 1") for state in ("unlisted", "listed")]
RENAMED = "renamed 'ann' to 'anna'", "renamed 'anna' to 'anna'"
NO_REPLAY, NOBODY = "deleted 1 replay; best scores stay on the leaderboard", "deleted 'anna' and all their data"

# In this order, each act changes something.
EACH = (
    Each(
        profiles.name,
        put("{player}/entry", display_name="Anna"),
        "leaderboard name ann Anna",
        NAMED,
        "board",
        {"display_name": "Anna"},
    ),
    Each(profiles.hide, None, "leaderboard hide ann --lock", HIDDEN_AND_LOCKED, "board", {"lock": True}),
    Each(profiles.show, None, "leaderboard show ann", VISIBLE, "board"),
    Each(players.unlock, None, "users unlock ann", UNLOCKED),
    Each(profiles.remove_avatar, post("{player}/avatar/remove"), "avatars remove ann", NO_AVATAR),
    Each(players.lock, put("{player}/lock", locked=True), "users lock ann", LOCKED),
    Each(
        players.end_sessions,
        post("{player}/sessions/end", access=True),
        "sessions revoke ann --access --yes",
        ENDED,
        "ended",
        {"access": True},
    ),
    Each(
        players.suspend,
        put("{player}/suspension", suspended=True, message="stop"),
        "users suspend ann --message stop",
        SUSPENDED,
        "board, ended",
        {"message": "stop"},
    ),
    Each(
        players.suspend,
        put("{player}/suspension", suspended=True, until=END.isoformat()),
        "users suspend ann --until 2199-05-01",
        SUSPENDED_UNTIL,
        "",
        {"until": END},
    ),
    Each(profiles.hide, HIDE, "leaderboard hide ann", HIDDEN_AND_LOCKED),
    Each(players.unsuspend, UNSUSPEND, "users unsuspend ann", FREE),
    Each(profiles.show, SHOW, "leaderboard show ann", VISIBLE, "board"),
    Each(players.unlock, put("{player}/lock", locked=False), "users unlock ann", UNLOCKED),
    Each(profiles.hide, HIDE, "leaderboard hide ann", HIDDEN, "board"),
    Each(profiles.show, SHOW, "leaderboard show ann", VISIBLE, "board"),
    Each(players.suspend, SUSPEND, "users suspend ann", SUSPENDED, "board, ended"),
    Each(players.unsuspend, UNSUSPEND, "users unsuspend ann", FREE, "board"),
    Each(
        players.link,
        post("{player}/password-link", lock_out=True),
        "users link ann --lock-out",
        ("/reset#", ""),
        "ended",
        LINK,
    ),
    Each(
        players.restore,
        post("{player}/progress/restore", progress=PROGRESS),
        "progress restore ann --from {export}",
        RESTORED,
        "progress",
        RESTORE,
    ),
    Each(replays.unlist, put("{replay}/listed", listed=False), "replays unlist {replay_id} {replay_id}", UNLISTED),
    Each(replays.list_again, put("{replay}/listed", listed=True), "replays list-again {replay_id}", LISTED),
    Each(
        replays.check,
        post("{replay}/check", again=True),
        "replays check {replay_id} --again",
        ("queued 1 replay for checking", ""),
        "queued",
        {"again": True},
    ),
    Each(replays.delete, post("{replay}/delete"), "replays delete {replay_id} --yes", (NO_REPLAY, "")),
    Each(
        players.rename,
        put("{player}/username", username="anna"),
        "users rename {user_id} anna",
        RENAMED,
        "",
        {"username": "anna"},
    ),
    Each(
        players.delete,
        post("{player}/delete", username="anna"),
        "users delete {user_id} --yes",
        (NOBODY, ""),
        "board, ended",
    ),
)
AGAIN = {players.link, replays.check}  # these change something again
GONE = {players.delete: "player_not_found", replays.delete: "replay_not_found"}  # these delete their target


def export_of(user_id):
    """As much of an export of the player as a restore reads."""
    account = {"id": user_id, "username": "ann"}
    return json.dumps({"exported_at": "2026-11-20T12:00:00Z", "account": account, "progress": PROGRESS, "games": []})
