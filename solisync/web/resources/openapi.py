"""The OpenAPI 3.1 document, generated from the route table and the message shapes."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import ClassVar, NamedTuple

import msgspec

from ... import __version__
from ...errors import STATUS, Code
from ...klondike import DRAW_MODES, SEED_PATTERN
from ...rules.avatars import FORMATS
from ...rules.shapes import ErrorBody
from ..json_schemas import JsonObject, schema, schemas
from ..route import Content, EventStream, Json, Route, Upload, get
from ..wire.reply import Reply

STREAM_EVENT = "StreamEvent"

_UUID = {"type": "string", "format": "uuid"}
_TEXT = {"type": "string"}
_BINARY = {"type": "string", "format": "binary"}  # OpenAPI 3.1 needs no schema here, but client generators do

_MEANING = {
    400: "The request breaks a rule, which the error names",
    401: "No valid token, or wrong credentials",
    404: "The object that the error names does not exist",
    408: "The request took too long to arrive",
    409: "The request conflicts with stored data",
    413: "The request body is too large",
    415: "The request body is compressed",
    429: "The client has exceeded a rate limit, or its budget of large bodies",
    431: "The request header is too large",
    500: "The service failed; details are in its log",
    501: "The body has a transfer coding that the service doesn't know",
    503: "The service is unavailable for now",
}
_REASONS: dict[Code, str] = {  # the meanings of status 403
    "forbidden": "The request came from a page of another site",
    "suspended": "The player is suspended; Suspended-Until has the end, if there is one",
    "guest": "The account is a guest, which has no password and no public profile",
    "guests_off": "The service takes no new guests",
    "locked": "An operator has locked the player's public profile",
}

_ERROR_HEADERS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    415: ("Accept-Encoding",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}

PLAYERS_TAGS = {
    "accounts": "Players and their profiles",
    "sessions": "Sessions and their tokens",
    "guests": "Accounts without a password, which become players or join one",
    "browsers": "Sessions of the service's own pages, with the refresh token in a cookie",
    "avatars": "Pictures of players",
    "events": "A stream of changes",
    "sync": "Progress, merged between devices",
    "leaderboard": "The best players who have opted in",
    "replays": "Recorded games, with their verdicts",
    "boards": "Rankings of verified replays",
    "challenge": "Deals, and the deal of the day",
    "analytics": "Events of games",
    "health": "State of the process and of the service",
    "docs": "The description of this API",
}
_VARIABLES = {
    "user_id": _UUID,
    "replay_id": _UUID,
    "session_id": _UUID,
    "username": {"type": "string", "pattern": "^[A-Za-z0-9_]{3,32}$"},
    "day": {"type": "string", "format": "date"},
    "seed": {"type": "string", "pattern": SEED_PATTERN},
    "draw_mode": {"type": "string", "enum": list(DRAW_MODES)},
    "extension": {"type": "string", "enum": [image.extension for image in FORMATS]},
}
_HEADERS = {
    "X-Request-Id": ("The id that the client gave the request, or a new one", {"type": "string"}),
    "Retry-After": ("Seconds to wait", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": (
        "The scheme of authentication, and whether the token was refused",
        {"type": "string", "enum": ["Bearer", 'Bearer error="invalid_token"']},
    ),
    "Accept-Encoding": ("The codings that request bodies may have", {"type": "string", "enum": ["identity"]}),
    "Suspended-Until": ("The end of the suspension, if it has one", {"type": "string", "format": "date-time"}),
    "Set-Cookie": ("The cookie with the refresh token", {"type": "string"}),
    "ETag": ("For If-None-Match", {"type": "string"}),
}
# Progress that was never stored has no entity tag, and a suspension may have no end.
_REQUIRED = {"ETag": False, "Suspended-Until": False}


class Interface(NamedTuple):
    """The subject of a document: its title and description, its groups of routes, and its security scheme."""

    title: str
    description: str
    tags: Mapping[str, str]
    security: tuple[str, Mapping[str, str]]


PLAYERS = Interface(
    "solisync",
    "The HTTP backend of a solitaire game.",
    PLAYERS_TAGS,
    ("access_token", {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}),
)


class OpenApi:
    """Serves the document, which is generated at the first request, when the route table is complete."""

    tag: ClassVar[str] = "docs"

    def __init__(self, routes: Callable[[], tuple[Route, ...]], interface: Interface = PLAYERS) -> None:
        self._routes = routes
        self._interface = interface

    @get("/api/openapi.json", name="openapi", summary="The API as an OpenAPI 3.1 document")
    async def document(self) -> Reply:
        """Return the document as JSON."""
        return self._reply

    @cached_property
    def _reply(self) -> Reply:
        return Reply(body=msgspec.json.format(msgspec.json.encode(document(self._routes(), self._interface))))


def document(routes: tuple[Route, ...], interface: Interface = PLAYERS) -> JsonObject:
    """The OpenAPI document of these routes as plain data."""
    routes = tuple(route for route in routes if route.listed)
    shapes = [shape for route in routes for shape in (*_body_shapes(route), *_answer_shapes(route))]
    components = schemas([*shapes, ErrorBody])
    components["ErrorCode"] = {**_TEXT, "enum": [*STATUS], "description": "Every value of the header Error-Code"}
    for route in routes:
        if isinstance(route.answer, EventStream):
            components[STREAM_EVENT] = _stream_event(route.answer)
    paths: dict[str, JsonObject] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, interface)
    responses = {codes[0]: _error(codes) for route in routes for codes in _errors(route).values() if len(codes) == 1}
    text = msgspec.json.encode([paths, responses])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": interface.title,
            "version": __version__,
            "description": interface.description,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": description} for name, description in interface.tags.items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "headers": {
                name: {"description": description, "required": _REQUIRED.get(name, True), "schema": schema}
                for name, (description, schema) in _HEADERS.items()
                if _header(name).encode() in text
            },
            "responses": responses,
            "securitySchemes": dict([interface.security]),
        },
    }


def _operation(route: Route, interface: Interface) -> JsonObject:
    operation: JsonObject = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "security": [{interface.security[0]: []}] if route.protected else [],
        "responses": _responses(route),
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _VARIABLES[name]} for name in route.variables
    ]
    if route.conditional:
        parameters.append({"name": "If-None-Match", "in": "header", "schema": {"type": "string"}})
    parameters += [{"name": name, "in": "query", "schema": schema(shape)} for name, shape in route.parameters.items()]
    if parameters:
        operation["parameters"] = parameters
    if isinstance(route.body, Json):
        operation["requestBody"] = {
            "required": not route.body.optional,
            "content": _json(*route.body.documented, example=route.body.example),
        }
    if isinstance(route.body, Upload):
        operation["requestBody"] = {"required": True, "content": _bytes(route.body.media_types)}
    return operation


def _body_shapes(route: Route) -> list[object]:
    return [*route.body.documented] if isinstance(route.body, Json) else []


def _answer_shapes(route: Route) -> list[object]:
    if isinstance(route.answer, EventStream):
        return [*route.answer.shapes.values()]
    return [] if route.answer is None or isinstance(route.answer, Content) else [route.answer]


def _content(answer: object) -> JsonObject:
    match answer:
        case Content(media_types):
            return _bytes(media_types)
        case EventStream():
            # OpenAPI 3.1 can't describe the data of an event.
            text = f"Server-Sent Events: the schema {STREAM_EVENT} has the name of each, and its data, which is JSON"
            return {"text/event-stream": {"schema": {**_TEXT, "description": text}}}
    return _json() if answer is None else _json(answer)


def _stream_event(stream: EventStream) -> JsonObject:
    """The schema of a parsed event of a stream."""
    events = [
        {
            "type": "object",
            "properties": {"event": {"type": "string", "enum": [name]}, "data": schema(shape)},
            "required": ["event", "data"],
        }
        for name, shape in stream.shapes.items()
    ]
    return {"title": STREAM_EVENT, "description": "An event of a stream, by its name", "oneOf": events}


def _responses(route: Route) -> JsonObject:
    etag = ("ETag",) if route.conditional else ()
    cookie = ("Set-Cookie",) if route.sets_cookie else ()
    done = _response("Done", *etag, *cookie) | {"content": _content(route.answer)}
    if route.links:
        done["links"] = {
            name: {"operationId": name, "parameters": parameters} for name, parameters in route.links.items()
        }
    responses = {"200": done}
    if route.conditional:
        responses["304"] = _response("The client has it already", *etag)
    return responses | {
        str(status): _error(codes) if len(codes) > 1 else {"$ref": f"#/components/responses/{codes[0]}"}
        for status, codes in _errors(route).items()
    }


def _errors(route: Route) -> dict[int, list[Code]]:
    """The error codes of a route, by status."""
    by_status: dict[int, list[Code]] = {}
    for code in sorted(route.codes, key=STATUS.__getitem__):
        by_status.setdefault(STATUS[code], []).append(code)
    return by_status


def _error(codes: list[Code]) -> JsonObject:
    """The response with one of these codes, which all have the same status."""
    status = STATUS[codes[0]]
    headers = _ERROR_HEADERS.get(status, ())
    if "suspended" in codes:
        headers += ("Suspended-Until",)
    response = _response(_meaning(status, codes), *headers) | {"content": _json(ErrorBody)}
    response["headers"]["Error-Code"] = {"required": True, "schema": {"type": "string", "enum": codes}}
    return response


def _meaning(status: int, codes: list[Code]) -> str:
    return "; ".join(_REASONS[code] for code in codes) if status == 403 else _MEANING[status]


def _response(description: str, *headers: str) -> JsonObject:
    names = ("X-Request-Id", *headers)
    return {"description": description, "headers": {name: {"$ref": _header(name)} for name in names}}


def _header(name: str) -> str:
    """The reference to a header."""
    return f"#/components/headers/{name}"


def _json(*shapes: object, example: object = None) -> JsonObject:
    """JSON with one of these shapes, or any object without shapes."""
    any_of = [*map(schema, shapes)] or [{"type": "object", "additionalProperties": True}]
    content = {"schema": any_of[0] if len(any_of) == 1 else {"anyOf": any_of}}
    return {"application/json": content if example is None else {**content, "example": example}}


def _bytes(media_types: tuple[str, ...]) -> JsonObject:
    return {media_type: {"schema": _TEXT if media_type.startswith("text/") else _BINARY} for media_type in media_types}
