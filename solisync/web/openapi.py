"""The OpenAPI 3.1 document, made from the route table and the message shapes, so that it can't disagree with them."""

import re
from typing import Any

import msgspec

from .. import __version__
from ..rules.shapes import ErrorBody
from .reply import Reply
from .routes import Route

_SCHEMA = "#/components/schemas/{name}"
_VARIABLE = re.compile(r"\{(\w+)\}")

_MEANING = {
    400: "The request breaks a rule, which the error names",
    401: "No valid token, or no such credentials",
    404: "What the error names does not exist",
    409: "The request collides with what is stored",
    413: "The request body is over its ceiling",
    429: "The rate limit of this client is used up",
    500: "The service failed; details are in its log",
    503: "The service declines for now",
}
_RETRY_AFTER = {"Retry-After": {"description": "Whole seconds", "schema": {"type": "integer", "minimum": 1}}}
_ETAG = {"ETag": {"description": "For If-None-Match", "schema": {"type": "string"}}}


class OpenApi:
    """Serves the document."""

    def __init__(self) -> None:
        self._reply = Reply(status=503)

    def describe(self, routes: tuple[Route, ...]) -> None:
        """Make the document from the route table."""
        self._reply = Reply(body=msgspec.json.format(msgspec.json.encode(document(routes))))

    async def document(self) -> Reply:
        """The document, as made at the start."""
        return self._reply


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The OpenAPI document of these routes as plain data."""
    shapes = [shape for route in routes for shape in (route.body, route.described, route.answer) if shape is not None]
    _, schemas = msgspec.json.schema_components([*shapes, ErrorBody], ref_template=_SCHEMA)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "solisync",
            "version": __version__,
            "description": "The HTTP backend of a solitaire game.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"access_token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "security": [{"access_token": []}] if route.protected else [],
        "responses": _responses(route),
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _VARIABLE.findall(route.path)
    ]
    if route.conditional:
        parameters.append({"name": "If-None-Match", "in": "header", "schema": {"type": "string"}})
    parameters += [{"name": name, "in": "query", "schema": {"type": "string"}} for name in route.query]
    if parameters:
        operation["parameters"] = parameters
    if (route.body or route.described) is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.body or route.described)}
    if route.content:
        operation["requestBody"] = {"required": True, "content": _bytes(route.content)}
    return operation


def _operation_id(route: Route) -> str:
    words = [route.method.lower(), *re.findall(r"\w+", route.path)]
    return "_".join(words)


def _responses(route: Route) -> dict[str, Any]:
    content = {"application/json": {}} if route.answer is None else _json(route.answer)
    if route.answer_content:
        content = _bytes(route.answer_content)
    statuses = {500, 503, *route.errors}
    if route.body is not None or route.content:
        statuses |= {400, 413 if route.too_large is None else route.too_large.status}
    if route.protected:
        statuses.add(401)
    if route.limit is not None:
        statuses.add(429)
    done: dict[str, Any] = {"description": "Done", "content": content}
    responses = {"200": done}
    if route.conditional:
        done["headers"] = _ETAG
        responses["304"] = {"description": "The client has it already", "headers": _ETAG}
    return responses | {str(code): _error(code) for code in sorted(statuses)}


def _error(status: int) -> dict[str, Any]:
    error: dict[str, Any] = {"description": _MEANING[status], "content": _json(ErrorBody)}
    if status in (429, 503):
        error["headers"] = _RETRY_AFTER
    return error


def _json(shape: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([shape], ref_template=_SCHEMA)
    return {"application/json": {"schema": schema}}


def _bytes(media_types: tuple[str, ...]) -> dict[str, Any]:
    return {media_type: {} for media_type in media_types}  # without a schema, as OpenAPI 3.1 has it for raw bytes
