"""Routes, and the arguments of their handlers."""

import pytest

from solisync.rules.replay_lists import ListQuery
from solisync.rules.shapes import Ok
from solisync.web.route import Json, Route


def route(handler, path="/", **fields):
    return Route("GET", path, handler, name="x", tag="x", summary="x", **fields)


async def of_nothing():
    pass


async def of_unknown(*, whatever):
    pass


async def of_player(*, player):
    pass


async def of_browser(*, cookie):
    pass


async def of_body(*, body):
    pass


async def of_upload(*, content):
    pass


async def of_origin(*, client):
    pass


async def of_query(*, query):
    pass


async def of_variable(*, key, other=""):
    pass


@pytest.mark.parametrize(
    ("handler", "fields", "wrong"),
    [
        (of_unknown, {}, "whatever"),
        (of_player, {}, "player"),
        (of_browser, {"protected": True}, "cookie"),
        (of_body, {}, "body"),
        (of_upload, {"body": Json(Ok)}, "content"),
        (of_origin, {}, "client"),
        (of_variable, {}, "key"),
        (of_nothing, {"path": "/{key}"}, "key"),
        (of_query, {}, "query"),
    ],
)
def test_start_fails_with_a_handler_that_its_route_can_not_serve(handler, fields, wrong):
    """The handler wants an argument that it won't get, or ignores one that clients send."""
    with pytest.raises(TypeError, match=rf"differ in {wrong}$"):
        route(handler, **fields)


@pytest.mark.parametrize(
    ("handler", "fields", "names"),
    [
        (of_nothing, {"body": Json(Ok), "protected": True}, []),
        (of_player, {"protected": True}, ["player"]),
        (of_body, {"body": Json(Ok)}, ["body"]),
        (of_variable, {"path": "/{key}"}, []),
        (of_query, {"query": ListQuery}, ["query"]),
    ],
)
def test_handler_gets_its_parameters_and_path_variables(handler, fields, names):
    """A parameter with a default may be absent."""
    assert [name for name, _ in route(handler, **fields).arguments] == names


@pytest.mark.parametrize(
    ("fields", "private", "shared"),
    [
        ({}, False, True),
        ({"protected": True}, True, True),
        ({"same_origin": True}, True, False),
        ({"private": True}, True, True),
        ({"shared": False}, False, False),
    ],
)
def test_replies_about_a_player_are_private(fields, private, shared):
    """Routes for the service's own pages are closed to other origins."""
    made = route(of_nothing, **fields)
    assert (made.private, made.shared) == (private, shared)
