"""The OpenAPI document (docs/protocol.md "The service")."""

import inspect
import re

from solisync.client import Client
from tests.harness.constants import ROOT
from tests.harness.error_codes import openapi

OF_ANY_ROUTE = {"400", "408", "431", "500", "503"}


async def test_the_document_lists_every_route_and_its_shapes(server):
    """Every route is there, with its body, its answer and the errors it can give."""
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
    }  # too large an avatar is a 400
    shown = document["paths"]["/avatars/{user_id}.{extension}"]["get"]
    assert set(shown["responses"]["200"]["content"]) == set(upload["requestBody"]["content"])
    assert [parameter["name"] for parameter in shown["parameters"]] == ["user_id", "extension", "If-None-Match"]
    assert "304" in shown["responses"]
    assert set(document["components"]["schemas"]) >= {"AuthRequest", "TokenPair", "Me", "Ok", "ErrorBody"}


async def test_the_document_refers_to_nothing_that_is_not_in_it(server):
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
    """The operations of the document, by their ids."""
    listed = [operation for path in openapi()["paths"].values() for operation in path.values()]
    by_id = {operation["operationId"]: operation for operation in listed}
    assert len(by_id) == len(listed)
    return by_id


def test_an_operation_is_called_like_the_method_of_the_client():
    """Each has the name of a method of solisync.client, but for what is for browsers; another path's is an alias."""
    methods = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
    of_sessions = ("refresh", "change_password", "recover", "reset", "logout")
    for_browsers = {"docs", *(f"browser_{name}" for name in of_sessions)}
    assert set(operations()) == methods | for_browsers | {"live_alias", "ready_alias"}
    assert operations()["live_alias"]["summary"] == "Alias of GET /api/health"
    assert operations()["ready_alias"]["summary"] == "Alias of GET /api/health/ready"


def test_every_operation_belongs_to_a_noun():
    """Each has one tag; the document describes all tags, and no other."""
    assert all(len(operation["tags"]) == 1 for operation in operations().values())
    described = {tag["name"] for tag in openapi()["tags"]}
    assert described == {tag for operation in operations().values() for tag in operation["tags"]}


def test_every_body_has_a_schema():
    """Generators of clients leave out a route whose body or answer is of a type without one."""
    for operation in operations().values():
        for body in (operation.get("requestBody", {}), operation["responses"]["200"]):
            assert all(content["schema"] for content in body.get("content", {}).values())


async def test_every_documented_route_answers(server):
    """No path of the document is a 404, and no method a 405."""
    document = (await server.ask("GET", "/api/openapi.json")).json
    for path, operations in document["paths"].items():
        for method in operations:
            answer = await server.ask(method.upper(), re.sub(r"\{\w+\}", "x", path))
            assert answer.content != b'{"error":"not found"}', (method, path)
            assert answer.status != 405, (method, path)


async def test_the_protocol_page_documents_exactly_the_routes_there_are(server):
    """docs/protocol.md has one heading for each route, and none for a route that doesn't exist."""
    document = (await server.ask("GET", "/api/openapi.json")).json
    served = {f"{method.upper()} {path}" for path, operations in document["paths"].items() for method in operations}
    text = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    documented = set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`\s]*)`", text))
    assert documented == served
