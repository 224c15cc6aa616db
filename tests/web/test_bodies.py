"""Bad bodies: every route that takes JSON refuses them in the same way (docs/protocol.md "Common to all routes")."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from solisync.errors import BadRequest
from solisync.rules.accounts import AuthRequest, RefreshRequest
from solisync.rules.json_body import MAX_NESTING, nests_too_deep, read_json
from solisync.rules.shapes import Checked
from solisync.web.route import Json
from tests.harness.concurrency import gather
from tests.harness.console import table as console_table
from tests.harness.constants import PASSWORD
from tests.harness.error_codes import table as players_table
from tests.harness.strategies import examples, texts

ROUTES = ("/api/auth/register", "/api/auth/login", "/api/auth/refresh")
GOOD = {"username": "ann", "password": PASSWORD, "refresh_token": "x"}


def nested(depth):
    return b'{"username": "ann", "password": "longenough", "refresh_token": "x", "more": %s%s}' % (
        b"[" * (depth - 1),
        b"]" * (depth - 1),
    )


BAD = {
    "empty": b"",
    "white space": b"  \n",
    "truncated": b'{"username": "ann", "pass',
    "not an object": b'["ann"]',
    "text": b'"ann"',
    "null": b"null",
    "trailing bytes": b'{"username": "ann", "password": "longenough", "refresh_token": "x"} x',
    "two documents": b"{}{}",
    "NaN": b'{"username": NaN, "password": "longenough", "refresh_token": NaN}',
    "Infinity in an unknown field": b'{"username":"ann","password":"longenough","refresh_token":"x","z":Infinity}',
    "BOM": b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "bad UTF-8": b'{"username": "\xff", "password": "longenough", "refresh_token": "\xff"}',
    "bad UTF-8 in an unknown field": b'{"username":"ann","password":"longenough","refresh_token":"x","z":"\xff"}',
    "missing field": b"{}",
    "numbers": b'{"username": 1, "password": 2, "refresh_token": 3}',
    "nulls": b'{"username": null, "password": null, "refresh_token": null}',
    "lists": b'{"username": [], "password": [], "refresh_token": []}',
    "lone surrogates": rb'{"username": "\ud800", "password": "\ud800longenough", "refresh_token": "\udfff"}',
    "65 levels": nested(65),
    "100,000 arrays": b"[" * 100_000,
    "100,000 closed arrays": b"[" * 100_000 + b"]" * 100_000,
    "100,000 arrays in an unknown field": nested(100_000),
    "a form": b"username=ann&password=longenough",
}


@pytest.mark.parametrize("shape", [AuthRequest, RefreshRequest])
@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_bad_body_is_refused_with_a_reason(shape, body):
    """The body isn't JSON, isn't UTF-8, has the wrong shape or is nested too deep."""
    with pytest.raises(BadRequest, match="request body"):
        read_json(body, shape)


async def test_each_route_returns_400_for_a_bad_body(shared_service):
    """The reason is one line of JSON."""
    for path in ROUTES:
        answer = await shared_service.ask("POST", path, body=BAD["truncated"])
        assert (answer.status, list(answer.json)) == (400, ["error"])


async def test_error_names_the_path_of_a_wrong_type(server):
    """The message has the expected type and the field."""
    answer = await server.ask("POST", "/api/auth/login", body={"username": "ann", "password": 5})
    assert answer.json == {"error": "request body: Expected `str`, got `int` - at `$.password`"}
    answer = await server.ask("POST", "/api/auth/login", body={"username": "ann"})
    assert answer.json == {"error": "request body: Object missing required field `password`"}


@pytest.mark.parametrize(
    "body", [b"[1,", b'{"username": 1} x', b'{"username": 1, "more": tru}', b"12a", b"[1]]", b"nulll"]
)
def test_body_without_json_returns_bad_json_even_if_a_field_is_wrong(body):
    """A wrong type before the fault doesn't hide it. JSON with a wrong field keeps its own code."""
    with pytest.raises(BadRequest) as refused:
        read_json(body, AuthRequest)
    assert refused.value.code == "bad_json"
    with pytest.raises(BadRequest) as refused:
        read_json(b'{"username": 1, "more": "\\ud800 \\\\ud800"}', AuthRequest)
    assert refused.value.code == "bad_field"


async def test_unknown_fields_are_ignored_and_64_levels_accepted(server):
    """A newer client may send more fields. Of doubled keys the last counts."""
    assert (await server.ask("POST", "/api/auth/register", body=nested(64))).status == 200
    doubled = b'{"username": "x", "username": "bob", "password": "longenough", "z": {"a": [1e3, "\\u0000"]}}'
    assert (await server.ask("POST", "/api/auth/register", body=doubled)).status == 200
    assert server.sql("SELECT username FROM users ORDER BY 1") == [("ann",), ("bob",)]


async def test_half_a_surrogate_pair_in_an_unknown_field_is_ignored(server):
    """The field is valid JSON, and whole pairs beside it are read as usual."""
    halves = rb', "z": "\ud800", "\udfff": ["\udc00\ud800"]}'
    client = await server.player("ann")
    bearer = client.tokens.access_token
    for method, path, body in (
        ("POST", "/api/auth/register", {"username": "bob", "password": PASSWORD + "\U0001f600"}),
        ("POST", "/api/auth/login", {"username": "bob", "password": PASSWORD + "\U0001f600"}),
        ("POST", "/api/auth/refresh", {"refresh_token": client.tokens.refresh_token}),
        ("POST", "/api/leaderboard/opt-in", {"display_name": "Ann \U0001f600"}),
        ("POST", "/api/analytics", {"session_id": "s", "events": []}),
    ):
        answer = await server.ask(method, path, body=json.dumps(body).encode()[:-1] + halves, bearer=bearer)
        assert answer.status == 200, answer
    assert server.sql("SELECT display_name FROM leaderboard") == [("Ann \U0001f600",)]


@pytest.mark.parametrize("name", [r"\ud800", r"\ud83d\ude00\udfff"])
async def test_half_a_surrogate_pair_in_text_is_refused(server, name):
    """A name with half a pair returns 400, with or without another half in an unknown field."""
    client = await server.player("ann")
    body = b'{"display_name": "%b", "z": "\\ud800"}' % name.encode()
    answer = await server.ask("POST", "/api/leaderboard/opt-in", body=body, bearer=client.tokens.access_token)
    assert answer.status == 400
    assert answer.json["error"].startswith("request body is not valid JSON")


strings = texts(max_size=40) | st.sampled_from(["\0", "ann\0", "😀" * 10, "\x7f", "' OR 1=1 --", "a" * 2000])
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | strings,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=10,
)
fields = st.sampled_from([*GOOD, "x"])
bodies = (
    st.binary(max_size=200)
    | documents.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(fields, documents, max_size=4).map(lambda value: json.dumps(value).encode())
    | st.dictionaries(fields, strings, max_size=4).map(lambda value: json.dumps(value, ensure_ascii=False).encode())
)


@pytest.mark.parametrize("path", ROUTES)
async def test_any_body_gets_an_expected_status(server, full, path):
    """The service returns 200, 400, 401, 409, or 503 if the hash queue is full."""
    statuses = set()

    async def send(body):
        answer = await server.ask("POST", path, body=body)
        assert answer.status == 200 or list(answer.json) == ["error"]
        statuses.add(answer.status)

    await gather(8, send, examples(bodies, 2_000 if full else 60))
    assert statuses <= {200, 400, 401, 409, 503}


@given(documents, st.integers(0, MAX_NESTING), st.sampled_from(["[", "{", '\\"[', "]]}", "\\", '"']))
def test_nesting_ignores_brackets_in_strings(value, levels, text):
    """Strings may have any spelling; the limit is exact."""

    def depth(value):
        if isinstance(value, list):
            return 1 + max(map(depth, value), default=0)
        if isinstance(value, dict):
            return 1 + max(map(depth, value.values()), default=0)
        return 0

    document = value
    for level in range(levels):
        document = {text: text, "x": document} if level % 2 else [text, document, text]
    document = [[[]] * MAX_NESTING, text * 3, document]
    assert nests_too_deep(json.dumps(document).encode()) == (depth(document) > MAX_NESTING)


@given(st.binary(max_size=300))
def test_decoding_any_bytes_returns_a_shape_or_raises_bad_request(body):
    try:
        assert isinstance(read_json(body, AuthRequest), msgspec.Struct)
    except BadRequest as error:
        assert str(error).startswith("request body")  # noqa: PT017


def test_shape_with_a_time_converts_it_to_utc_or_refuses_it():
    """Each shape with a time is Checked, because only times of the years 1 to 9999 can be converted."""
    shapes = {route.body.shape for route in (*players_table(), *console_table()) if isinstance(route.body, Json)}
    timed = set().union(*(with_times(inspect.type_info(shape)) for shape in shapes))
    assert len(timed) >= 7
    assert all(issubclass(shape, Checked) for shape in timed)


def with_times(kind):
    """Return the shapes within a type that have a time among their fields."""
    match kind:
        case inspect.Metadata(type=inner) | inspect.ListType(item_type=inner):
            return with_times(inner)
        case inspect.UnionType(types=kinds):
            return set().union(*map(with_times, kinds))
        case inspect.StructType(cls=shape, fields=fields):
            parts = [with_times(field.type) for field in fields]
            return set().union(*parts) - {None} | ({shape} if {None} in parts else set())
        case inspect.DateTimeType():
            return {None}
    return set()
