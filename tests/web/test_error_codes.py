"""Error codes (docs/protocol.md "Error codes")."""

import gzip
import re
from typing import get_args

import pytest

from solisync.client import ApiError
from solisync.errors import STATUS, Code
from tests.harness.constants import PASSWORD, ROOT
from tests.harness.error_codes import openapi
from tests.harness.payloads import progress_of

OF_NO_ROUTE = {"method_not_allowed"}
OF_THE_CONSOLE = {"entry_not_found"}


def test_protocol_page_lists_every_code_with_its_status():
    rows = re.findall(
        r"^\| `([a-z_]+)` \| (\d{3}) \| .{10,} \|$", (ROOT / "docs" / "protocol.md").read_text("utf-8"), re.M
    )
    assert {code: int(status) for code, status in rows} == STATUS
    assert len(rows) == len(STATUS)
    assert set(get_args(Code)) == set(STATUS)


def test_document_lists_every_code_at_its_status():
    """Each error response of a route lists the codes that the route can return."""
    document = openapi()
    assert set(document["components"]["schemas"]["ErrorCode"]["enum"]) == set(STATUS)
    shown = set()
    for path in document["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if "$ref" in response:
                    response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
                assert ("Error-Code" in response["headers"]) == (int(status) >= 400)
                if int(status) >= 400:
                    header = response["headers"]["Error-Code"]
                    assert header["required"]
                    shown |= {(code, int(status)) for code in header["schema"]["enum"]}
    assert shown == {(code, status) for code, status in STATUS.items() if code not in OF_NO_ROUTE | OF_THE_CONSOLE}


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/api/auth/register", b"{", "bad_json"),
        ("POST", "/api/auth/register", b'"\xff"', "bad_json"),
        ("POST", "/api/auth/refresh", b'{"refresh_token": "", "x": ' + b"[" * 64 + b"]" * 64 + b"}", "bad_json"),
        ("POST", "/api/auth/register", {"username": "ann"}, "bad_field"),
        ("POST", "/api/auth/register", [], "bad_field"),
        ("POST", "/api/auth/register", {"username": "an", "password": PASSWORD}, "username_length"),
        ("POST", "/api/auth/register", {"username": "änn", "password": PASSWORD}, "username_characters"),
        ("POST", "/api/auth/login", {"username": "ann\0", "password": PASSWORD}, "username_characters"),
        ("POST", "/api/auth/register", {"username": "ann", "password": "short"}, "password_length"),
        ("POST", "/api/auth/register", {"username": "ann", "password": "x" * 1025}, "password_too_long"),
        ("POST", "/api/auth/register", {"username": "Ann", "password": PASSWORD}, "username_taken"),
        ("POST", "/api/auth/login", {"username": "ann", "password": PASSWORD}, "invalid_credentials"),
        ("POST", "/api/auth/refresh", {"refresh_token": "x"}, "unauthorized"),
        ("PUT", "/api/me/avatar", b"x", "avatar_type"),
        ("PUT", "/api/me/avatar", b"x" * 1_048_577, "avatar_too_large"),
        ("POST", "/api/sync/push", b"x" * 1_048_577, "body_too_large"),
        ("POST", "/api/sync/push", progress_of("0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41"), "user_id_mismatch"),
        ("POST", "/api/leaderboard/opt-in", {"display_name": " "}, "display_name_empty"),
        ("POST", "/api/leaderboard/opt-in", {"display_name": "x" * 33}, "display_name_length"),
        ("POST", "/api/leaderboard/opt-in", {"display_name": "a\u200fb"}, "display_name_characters"),
        ("POST", "/api/replays", {"mode": "Classic"}, "bad_field"),
        ("GET", "/api/replays/recent?limit=x", None, "bad_query"),
        ("GET", "/api/replays/x", None, "replay_not_found"),
        ("GET", "/avatars/0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41.png", None, "avatar_not_found"),
        ("POST", "/api/analytics", {"session_id": "s", "events": [{}] * 51}, "batch_too_large"),
        ("POST", "/api/analytics", {"session_id": "\0", "events": []}, "bad_field"),
        ("GET", "/nope", None, "not_found"),
        ("GET", "/api/docs/nope", None, "not_found"),
        ("DELETE", "/health", None, "method_not_allowed"),
    ],
)
async def test_each_refusal_has_its_code(server, method, path, body, code):
    """Clients distinguish errors by code, not by text."""
    client = await server.player("Ann")
    answer = await server.ask(method, path, body=body, bearer=client.tokens.access_token)
    assert answer.headers["error-code"] == code
    assert list(answer.json) == ["error"]


async def test_compressed_body_has_its_code(server):
    answer = await server.ask("POST", "/api/sync/push", {"Content-Encoding": "gzip"}, gzip.compress(b"{}"))
    assert (answer.status, answer.headers["error-code"]) == (415, "content_encoding")


async def test_client_error_has_the_code_of_the_reply(server):
    with pytest.raises(ApiError) as caught:
        await server.client().login("ann", PASSWORD)
    assert (caught.value.status, caught.value.code) == (401, "invalid_credentials")
