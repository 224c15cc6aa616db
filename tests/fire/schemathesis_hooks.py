"""Additions to the OpenAPI document for schemathesis: the client of each request, and rules that no schema can express.

Schemathesis loads this module itself (SCHEMATHESIS_HOOKS), in a separate process.
"""

import itertools
import json
import os
from urllib.request import Request, urlopen

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData

from solisync.rules.games import GAMES_MAX
from solisync.rules.shapes import U64_MAX
from tests.harness.constants import PATIENCE

PASSWORD = "long enough"
NOBODY = "00000000-0000-0000-0000-000000000000"
FEW = ("/api/account", "/api/me/export", "/api/me/password", "/api/session/password", "/api/leaderboard/opt-in")
POSITIONS = ("after", "before", "around")  # what an earlier page gave, and what goes with nothing else
LEAST = 1e-29  # of the numbers that are not zero
SIGNATURES = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/webp": b"RIFF....WEBP",
    "image/gif": b"GIF89a\1\0\1\0",
}

_numbers = itertools.count(1)

for _media_type, _signature in SIGNATURES.items():
    _images = st.binary(max_size=200).map(lambda rest, signature=_signature: signature + rest)
    schemathesis.openapi.media_type(_media_type, _images)


def new_address():
    """Return a new client, as a trusted proxy names it, so that rate limits count each request separately."""
    number = next(_numbers)
    return f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def new_tokens():
    """Return the tokens of a new player."""
    player = {"username": f"fuzz_{os.getpid()}_{next(_numbers)}", "password": PASSWORD}
    request = Request(
        os.environ["SOLISYNC_URL"] + "/api/auth/register",
        data=json.dumps(player).encode(),
        headers={"X-Forwarded-For": new_address()},
    )
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


@schemathesis.auth(refresh_interval=None)
class Player:
    """One player for all requests, but another for each deletion, and for each request limited to a few a player."""

    _token = None

    def get(self, case, context):
        if case.operation.path in FEW:
            return new_tokens()["access_token"]
        if Player._token is None:
            Player._token = new_tokens()["access_token"]
        return Player._token

    def set(self, case, data, context):
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Make bodies that the document calls valid fit the rules that it can't express."""
    case.headers["X-Forwarded-For"] = new_address()
    if case.operation.path.startswith("/api/session") and not case.operation.path.startswith("/api/sessions"):
        _ask_as_a_page(case)
    valid = case.meta is not None and case.meta.generation.mode.is_positive
    if valid:
        for name in POSITIONS:
            case.query.pop(name, None)
    if not valid or not isinstance(case.body, dict):
        return
    body = _as_the_service_reads_it(case.body)
    path = case.operation.path
    for name in body.keys() & {"password", "new_password"}:
        body[name] = (body[name] + PASSWORD)[:256]  # its length counts in bytes
    if "username" in body:
        body["username"] = body["username"].replace("\0", "")
    if path == "/api/auth/guest" and body.get("guest_key") is None:
        body["create"] = True
    elif path == "/api/auth/refresh":
        body["refresh_token"] = new_tokens()["refresh_token"]
    elif path == "/api/replays":
        body["recorded_at"] = "2026-11-20"  # a text, to the document
    elif path == "/api/sync/push":
        body["user_id"] = NOBODY  # means the player; another player's id is refused
    case.body = body


def _ask_as_a_page(case):
    """Add the headers that only a page of the service sends, which the document doesn't have."""
    case.headers["Content-Type"] = "application/json"
    case.headers["Sec-Fetch-Site"] = "same-origin"
    if case.operation.path == "/api/session/refresh":
        case.headers["Cookie"] = f"solisync={new_tokens()['refresh_token']}"


def _as_the_service_reads_it(value):
    """Return the same JSON as the service reads it.

    The number 1.0 becomes 1: it is an integer to JSON Schema, but not to the service, nor to the game. Times that
    their offset leads out of the calendar, numbers above their format, and numbers with exponents that a replay must
    not have, are replaced.
    """
    if isinstance(value, int) and value > U64_MAX:
        return U64_MAX
    if isinstance(value, float) and (value.is_integer() or abs(value) < LEAST):
        return int(value)
    if isinstance(value, str) and value.startswith(("0001-01-01T", "9999-12-31T")):
        return "2026-11-20T00:00:00Z"
    if isinstance(value, dict):
        return {name: _as_the_service_reads_it(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_the_service_reads_it(inner) for inner in value]
    return value


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Return whether the report of a failure counts.

    Invalid analytics events are rejected one by one, in a 200, and so are wrong games. A push may have null where it
    means never, which the document leaves to scripts. And "recent" could be the id of a replay, by its route, which a
    player may delete.
    """
    if case.operation.path == "/api/games" and isinstance(failure, AcceptedNegativeData):
        return not _names_a_wrong_game(case.body, response)
    if case.operation.path == "/api/sync/push" and response.status_code == 200:
        return None not in case.body["stats"].values()
    if case.operation.path == "/api/analytics" and response.status_code == 200:
        return not response.json()["rejected"]
    return not (case.operation.path == "/api/replays/recent" and case.method in ("DELETE", "OPTIONS"))


def _names_a_wrong_game(body, response):
    """Return whether a 200 names a wrong game in a body that is right but for its games."""
    games = body.get("games") if isinstance(body, dict) else None
    is_readable = isinstance(games, list) and 1 <= len(games) <= GAMES_MAX
    if not is_readable or not all(isinstance(game, dict) for game in games):
        return False
    return any(result["error"] == "bad_field" for result in response.json()["games"])
