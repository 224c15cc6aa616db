"""The OpenAPI document (docs/protocol.md "The service")."""

import inspect
import re

import jsonschema_rs
import msgspec
import pytest

from solisync.client import Client
from solisync.web.console.app import INTERFACE
from solisync.web.resources.openapi import document
from tests.harness.console import table
from tests.harness.constants import ROOT
from tests.harness.error_codes import openapi
from tests.harness.event_streams import won
from tests.reference import FILE, page

MAY_BE_A_DATE = ("ReplayFacts", "recorded_at")
OF_ANY_ROUTE = {"400", "408", "415", "431", "500", "501", "503"}


async def test_document_lists_every_route_and_its_shapes(server):
    """Each route has its body, its reply and its errors."""
    answer = await server.ask("GET", "/api/openapi.json")
    document = answer.json
    assert document["openapi"] == "3.1.0"
    register = document["paths"]["/api/auth/register"]["post"]
    assert register["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/AuthRequest")
    assert set(register["responses"]) == {"200", "409", "413", "429", *OF_ANY_ROUTE}
    assert document["paths"]["/api/me"]["get"]["security"] == [{"access_token": []}]
    assert document["paths"]["/api/auth/login"]["post"]["security"] == []
    upload = document["paths"]["/api/me/avatar"]["put"]
    assert set(upload["requestBody"]["content"]) == {"image/jpeg", "image/png", "image/webp", "image/gif"}
    assert set(upload["responses"]) == {
        "200",
        "401",
        "403",
        "404",
        "429",
        *OF_ANY_ROUTE,
    }  # a too large avatar gets a 400
    shown = document["paths"]["/avatars/{user_id}.{extension}"]["get"]
    assert set(shown["responses"]["200"]["content"]) == set(upload["requestBody"]["content"])
    assert [parameter["name"] for parameter in shown["parameters"]] == ["user_id", "extension", "If-None-Match"]
    assert "304" in shown["responses"]
    assert set(document["components"]["schemas"]) >= {"AuthRequest", "TokenPair", "Me", "Ok", "ErrorBody"}


def test_document_has_only_what_it_refers_to():
    """The exceptions are the values of the header Error-Code, and the parsed events of a stream."""
    for each, exceptions in zip(both(), ({"ErrorCode", "StreamEvent"}, {"ErrorCode"}), strict=True):
        named = {f"{kind}/{name}" for kind in ("schemas", "headers", "responses") for name in each["components"][kind]}
        used = set(re.findall(r'"#/components/([^"]+)"', msgspec.json.encode(each).decode()))
        assert named - used == {f"schemas/{name}" for name in exceptions}


async def test_document_refers_only_to_what_it_has(server):
    """Every reference has a target, and every link leads to an operation with these parameters."""
    answer = await server.ask("GET", "/api/openapi.json")
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', answer.content.decode())):
        target = answer.json
        for step in reference.split("/"):
            target = target[step]
    links = [link for each in operations().values() for link in each["responses"]["200"].get("links", {}).values()]
    assert len(links) == 4
    for link in links:
        parameters = {parameter["name"] for parameter in operations()[link["operationId"]]["parameters"]}
        assert set(link["parameters"]) <= parameters


def operations():
    """Return the operations of the document, by id."""
    listed = [operation for path in openapi()["paths"].values() for operation in path.values()]
    by_id = {operation["operationId"]: operation for operation in listed}
    assert len(by_id) == len(listed)
    return by_id


def test_operation_is_named_like_the_method_of_the_client():
    """Operations for browsers have no method. The second path of a route is an alias."""
    methods = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    of_sessions = ("refresh", "change_password", "recover", "reset", "logout")
    for_browsers = {"docs", *(f"browser_{name}" for name in of_sessions)}
    assert set(operations()) == methods | for_browsers | {"live_alias", "ready_alias"}
    assert operations()["live_alias"]["summary"] == "Alias of GET /api/health"
    assert operations()["ready_alias"]["summary"] == "Alias of GET /api/health/ready"


def test_every_operation_has_one_tag():
    """The document describes all tags, and no other."""
    assert all(len(operation["tags"]) == 1 for operation in operations().values())
    described = {tag["name"] for tag in openapi()["tags"]}
    assert described == {tag for operation in operations().values() for tag in operation["tags"]}


def test_every_body_has_a_schema():
    """Generators of clients leave out routes whose body or reply has no schema."""
    for operation in operations().values():
        for body in (operation.get("requestBody", {}), operation["responses"]["200"]):
            assert all(content["schema"] for content in body.get("content", {}).values())


def both():
    """Return the documents for players and for admins."""
    return openapi(), document(table(), INTERFACE)


def within(value):
    """Yield every object in a document."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from within(each)


def test_every_enumeration_and_object_suits_generators():
    """An enumeration has a type. An object has fields or allows any: otherwise generators make it empty."""
    for schema in within([[*both()]]):
        if isinstance(schema.get("enum"), list):
            assert schema["type"] == "string", schema
        if schema.get("type") == "object":
            assert "properties" in schema or schema["additionalProperties"], schema


def test_every_time_has_its_format():
    """Generated clients then read a time as a time. The `recorded_at` of a replay may be a date, and so is a text."""
    times = re.compile(r"(\w+_at|at|since|until|used|server_time|client_time|last_modified|\w+_(since|until))")
    for schema in within([[*both()]]):
        for name, value in (schema.get("properties") or {}).items():
            if times.fullmatch(name) and "maxLength" not in value and (schema["title"], name) != MAY_BE_A_DATE:
                kinds = [each for each in value.get("anyOf", [value]) if each != {"type": "null"}]
                assert {each["format"] for each in kinds} == {"date-time"}, (name, value)


def test_only_routes_with_a_cookie_have_its_header():
    """They are those that begin, change or end a session of a browser."""
    found = {
        name
        for each in both()
        for path, methods in each["paths"].items()
        for name, operation in ((f"{method} {path}", operation) for method, operation in methods.items())
        if "Set-Cookie" in operation["responses"]["200"]["headers"]
    }
    assert {path.partition(" ")[2].partition("/session")[0] for path in found} == {"/api", "/api/admin"}
    assert len(found) == 8


def test_schemas_have_only_words_that_generators_know():
    """Generators of Go refuse an exclusive bound and a maximum above int64, and types can't be unions of formats."""
    for schema in within([[*both()]]):
        assert not schema.keys() & {"exclusiveMaximum", "exclusiveMinimum"}, schema
        assert not isinstance(schema.get("maximum"), int) or schema["maximum"] < 2**63, schema
        assert all(isinstance(each, dict) and each.keys() != {"format"} for each in schema.get("anyOf", ())), schema
        if isinstance(schema.get("enum"), list):
            assert len({*schema["enum"]}) == len(schema["enum"]), schema


def is_valid(value, schema):
    """Return whether a value fits a schema of the document for players."""
    return jsonschema_rs.is_valid({**schema, "components": openapi()["components"]}, value)


def component(name):
    return {"$ref": f"#/components/schemas/{name}"}


def test_pile_is_a_foundation_or_a_column():
    """A pile has exactly one of the two fields."""
    piles = [{}, {"Foundation": 0}, {"Tableau": 6}, {"Foundation": 0, "Tableau": 0}, {"Foundation": 4}, {"Stock": 0}]
    assert [is_valid(pile, component("Pile")) for pile in piles] == [False, True, True, False, False, False]


def test_upload_has_moves_and_the_fields_of_the_game():
    """The schema of the body has the moves, and allows other fields."""
    (content,) = operations()["upload_replay"]["requestBody"]["content"].values()
    assert content["schema"] == {"anyOf": [component("RecordedGame"), component("Replay")]}
    assert is_valid(content["example"], component("RecordedGame"))
    assert not is_valid(content["example"] | {"moves": ["Fly"]}, component("RecordedGame"))


@pytest.mark.parametrize("name", ["RecordedGame", "Replay", "Payload", "Stats", "Progress", "Achievement"])
def test_shape_that_keeps_unknown_fields_allows_them(name):
    """Generated clients accept the fields of a newer game."""
    assert openapi()["components"]["schemas"][name]["additionalProperties"] is True


def test_event_of_a_stream_has_a_schema_by_its_name():
    """The data of one event doesn't fit another event's schema."""
    data = {"hello": {"server_time": "2026-11-20T12:00:00Z", "revision": None}, "end": {"reason": "slow"}}
    for name in data:
        for event, each in data.items():
            assert is_valid({"event": name, "data": each}, component("StreamEvent")) == (name == event)
    assert not is_valid({"event": "future", "data": {}}, component("StreamEvent"))


async def test_export_fits_its_schema(server):
    """The export is valid with and without progress."""
    (content,) = operations()["export"]["responses"]["200"]["content"].values()
    for pushes in (0, 1):
        ann = await server.player(f"ann{pushes}")
        for _ in range(pushes):
            await won(ann)
        exported = msgspec.json.decode(await ann.export())
        assert (exported["account"]["progress_counted"] is None) == (pushes == 0)
        assert is_valid(exported, content["schema"])


def test_description_of_a_403_explains_each_code():
    """A suspended player and a foreign page get different descriptions."""
    responses = openapi()["components"]["responses"]
    assert responses["suspended"]["description"].startswith("The player is suspended")
    assert "page" in responses["forbidden"]["description"]


async def test_pull_has_no_entity_tag_before_the_first_push(server):
    """The document doesn't require it."""
    ann = await server.player()
    pull = operations()["pull"]["responses"]["200"]["headers"]["ETag"]
    assert pull == {"$ref": "#/components/headers/ETag"}
    assert not openapi()["components"]["headers"]["ETag"]["required"]
    answer = await server.ask("GET", "/api/sync/pull", bearer=ann.tokens.access_token)
    assert "etag" not in answer.headers


async def test_every_documented_route_answers(server):
    """The service returns neither 404 nor 405 for a path and method of the document."""
    document = (await server.ask("GET", "/api/openapi.json")).json
    for path, operations in document["paths"].items():
        for method in operations:
            named = path.replace("{seed}/{draw_mode}", "1/DrawOne")  # the other deals don't exist
            answer = await server.ask(method.upper(), re.sub(r"\{\w+\}", "x", named))
            assert answer.content != b'{"error":"not found"}', (method, path)
            assert answer.status != 405, (method, path)


async def test_protocol_page_documents_exactly_the_existing_routes(server):
    """docs/protocol.md has one heading for each route, and none for a route that doesn't exist."""
    document = (await server.ask("GET", "/api/openapi.json")).json
    served = {f"{method.upper()} {path}" for path, operations in document["paths"].items() for method in operations}
    text = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    documented = set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`\s]*)`", text))
    assert documented == served


def test_reference_page_is_up_to_date():
    """docs/reference.md is what `make docs` writes."""
    assert FILE.read_text("utf-8") == page(), "the routes or their objects have changed: run `make docs`"
