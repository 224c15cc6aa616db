"""Each act with all its arguments, as the service, the console and the command line perform it."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.json import encode

from solisync.acts import players, profiles, replays
from solisync.acts.act import Act
from solisync.rules.documents import read_pushed
from tests.harness.payloads import progress_of


class Each(NamedTuple):
    """What performs the act: its arguments, a command, and a request, if the console has one, without the reason.

    `says` is what the command prints, `again` what it prints when the act changes nothing, and `notices` names what
    other processes learn.
    """

    act: Act
    given: dict[str, Any]
    request: tuple[str, str, dict[str, Any]] | None
    command: str
    says: str
    again: str
    notices: str = ""


PROGRESS = progress_of(stats__games_played=3)
END = datetime(2199, 5, 1, tzinfo=UTC)
LINK = {"token_digest": b"x" * 32, "password_hash": "$2b$04$" + "x" * 53}
RESTORE = {"exported": read_pushed(encode(PROGRESS)).document, "games": [], "now": datetime.now(UTC)}
NAMED = "the entry of 'ann' is now called 'Anna'"
HIDDEN, VISIBLE = ("the entry 'Anna' of 'ann' is hidden", "the entry 'Anna' of 'ann' is visible")
UNTIL_OPT_IN, AND_LOCKED = f"{HIDDEN}, until the player opts in again", f"{HIDDEN}, and the profile is locked"
UNLOCKED = "'ann' is no longer locked", "'ann' is not locked"
SUSPENDED, FREE = "'ann' is suspended until ", ("'ann' can log in again", "'ann' is not suspended")
ENDED = "ended {} of 'ann'; their access tokens are refused within a second"


def put(path, **body):
    return "PUT", path, body


def post(path, **body):
    return "POST", path, body


# In this order, each act changes something.
EACH = (
    Each(
        profiles.name,
        {"display_name": "Anna"},
        put("{player}/entry", display_name="Anna"),
        "leaderboard name ann Anna",
        NAMED,
        NAMED,
        "board",
    ),
    Each(profiles.hide, {"lock": True}, None, "leaderboard hide ann --lock", AND_LOCKED, AND_LOCKED, "board"),
    Each(profiles.show, {}, None, "leaderboard show ann", VISIBLE, VISIBLE, "board"),
    Each(players.unlock, {}, None, "users unlock ann", *UNLOCKED),
    Each(
        profiles.remove_avatar,
        {},
        post("{player}/avatar/remove"),
        "avatars remove ann",
        "removed the avatar of 'ann'",
        "'ann' has no avatar",
    ),
    Each(
        players.lock,
        {},
        put("{player}/lock", locked=True),
        "users lock ann",
        "'ann' is locked now",
        "'ann' is already locked",
    ),
    Each(
        players.end_sessions,
        {"access": True},
        post("{player}/sessions/end", access=True),
        "sessions revoke ann --access --yes",
        ENDED.format("1 session"),
        ENDED.format("0 sessions"),
        "ended",
    ),
    Each(
        players.suspend,
        {"message": "stop"},
        put("{player}/suspension", suspended=True, message="stop"),
        "users suspend ann --message stop",
        f"{SUSPENDED}further notice",
        f"{SUSPENDED}further notice",
        "board, ended",
    ),
    Each(
        players.suspend,
        {"until": END},
        put("{player}/suspension", suspended=True, until=END.isoformat()),
        "users suspend ann --until 2199-05-01",
        f"{SUSPENDED}2199-05-01 00:00:00 UTC",
        f"{SUSPENDED}2199-05-01 00:00:00 UTC",
    ),
    Each(profiles.hide, {}, put("{player}/entry", visible=False), "leaderboard hide ann", AND_LOCKED, AND_LOCKED),
    Each(players.unsuspend, {}, put("{player}/suspension", suspended=False), "users unsuspend ann", *FREE),
    Each(profiles.show, {}, put("{player}/entry", visible=True), "leaderboard show ann", VISIBLE, VISIBLE, "board"),
    Each(players.unlock, {}, put("{player}/lock", locked=False), "users unlock ann", *UNLOCKED),
    Each(
        profiles.hide,
        {},
        put("{player}/entry", visible=False),
        "leaderboard hide ann",
        UNTIL_OPT_IN,
        UNTIL_OPT_IN,
        "board",
    ),
    Each(profiles.show, {}, put("{player}/entry", visible=True), "leaderboard show ann", VISIBLE, VISIBLE, "board"),
    Each(
        players.suspend,
        {},
        put("{player}/suspension", suspended=True),
        "users suspend ann",
        f"{SUSPENDED}further notice",
        f"{SUSPENDED}further notice",
        "board, ended",
    ),
    Each(players.unsuspend, {}, put("{player}/suspension", suspended=False), "users unsuspend ann", *FREE, "board"),
    Each(
        players.link,
        LINK,
        post("{player}/password-link", lock_out=True),
        "users link ann --lock-out",
        "/reset#",
        "",
        "ended",
    ),
    Each(
        players.restore,
        RESTORE,
        post("{player}/progress/restore", progress=PROGRESS),
        "progress restore ann --from {export}",
        "'ann' now has 3 games",
        "'ann' had all of it",
        "progress",
    ),
    Each(
        replays.unlist,
        {},
        put("{replay}/listed", listed=False),
        "replays unlist {replay_id} {replay_id}",
        "unlisted 1 replay",
        "unlisted 0 replays; unchanged: 1",
    ),
    Each(
        replays.list_again,
        {},
        put("{replay}/listed", listed=True),
        "replays list-again {replay_id}",
        "listed 1 replay",
        "listed 0 replays; unchanged: 1",
    ),
    Each(
        replays.check,
        {"again": True},
        post("{replay}/check", again=True),
        "replays check {replay_id} --again",
        "queued 1 replay for checking",
        "",
        "queued",
    ),
    Each(
        replays.delete,
        {},
        post("{replay}/delete"),
        "replays delete {replay_id} --yes",
        "deleted 1 replay; best scores stay on the leaderboard",
        "",
    ),
    Each(
        players.rename,
        {"username": "anna"},
        put("{player}/username", username="anna"),
        "users rename {user_id} anna",
        "renamed 'ann' to 'anna'",
        "renamed 'anna' to 'anna'",
    ),
    Each(
        players.delete,
        {},
        post("{player}/delete", username="anna"),
        "users delete {user_id} --yes",
        "deleted 'anna' and all their data",
        "",
        "board, ended",
    ),
)
AGAIN = {players.link, replays.check}  # these change something again
GONE = {players.delete: "player_not_found", replays.delete: "replay_not_found"}  # these delete their target


def export_of(user_id):
    """As much of an export of the player as a restore reads."""
    account = {"id": user_id, "username": "ann"}
    return json.dumps({"exported_at": "2026-11-20T12:00:00Z", "account": account, "progress": PROGRESS, "games": []})
