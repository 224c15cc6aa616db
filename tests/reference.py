"""Write docs/reference.md from the OpenAPI documents of both listeners: `python -m tests.reference`, or `make docs`."""

import itertools
import json
import re
import sys
import textwrap

from solisync.errors import STATUS
from solisync.rules.shapes import U64_MAX
from solisync.web.console.app import INTERFACE
from solisync.web.resources.openapi import document
from tests.harness import console
from tests.harness.constants import ROOT
from tests.harness.error_codes import openapi

FILE = ROOT / "docs" / "reference.md"
INTRODUCTION = """\
# Reference: routes and fields

This page lists every route of the API with its parameters, body, answer and errors, and then the fields of every
object. `make docs` generates the page from the OpenAPI documents: change the code, not this page.
[protocol.md](protocol.md) explains the routes of players in the order in which a client calls them, and
[console.md](console.md) the routes of the console.
"""
SCHEMAS = """\
The objects in bodies and answers, by name. A field is required unless its row has “optional”. A client must ignore
fields that it doesn't know.
"""
NEEDED = {"access_token": "an access token", "session": "the session of an admin"}
NO_CODES = {"schema": {"enum": []}}
FORMATS = {"uuid": "UUID", "date": "date", "date-time": "time", "binary": "bytes"}


def page():
    """Return the text of the page."""
    listeners = {"Routes of players": openapi(), "Routes of the console": document(console.table(), INTERFACE)}
    shapes = {name: shape for each in listeners.values() for name, shape in each["components"]["schemas"].items()}
    routes = [line for title, each in listeners.items() for line in _listener(title, each)]
    fields = itertools.chain.from_iterable(_shape(name, shapes[name]) for name in sorted(shapes) if name != "ErrorCode")
    objects = "## Objects"
    headings = [line.partition(" ") for line in [*routes, objects] if line.startswith(("## ", "### "))]
    contents = [f"{'  ' * (len(marks) - 2)}- {_link(title)}" for marks, _, title in headings]
    lines = [INTRODUCTION, *contents, "", *routes, objects, "", SCHEMAS, *fields]
    return "\n".join(lines).rstrip("\n") + "\n"


def _link(title):
    """Return a link to the heading `title` of this page, with the anchor that GitHub gives it."""
    return f"[{title}](#{re.sub(r'[^a-z0-9_ -]', '', title.lower()).replace(' ', '-')})"


def _listener(title, interface):
    """The routes of one document, grouped by tag."""
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in interface["paths"].items()
        for method, operation in methods.items()
    ]
    common = set.intersection(*(_codes(interface, operation) for _, operation in operations))
    yield from (f"## {title}", "", *_paragraph(f"Every one of these routes can also return {_errors(common)}."))
    for tag in interface["tags"]:
        heading = f"Console: {tag['name']}" if interface is not openapi() else tag["name"].capitalize()
        yield from (f"### {heading}", "", f"{tag['description']}.", "")
        for route, operation in operations:
            if tag["name"] in operation["tags"]:
                yield from (f"#### `{route}`", "")
                yield from _operation(interface, operation, common)


def _operation(interface, operation, common):
    """The summary of a route, its parameters, body, answer, and its particular errors."""
    token = f"Needs {NEEDED[next(iter(operation['security'][0]))]}. " if operation["security"] else ""
    body = operation.get("requestBody", {}).get("content", {})
    answer = operation["responses"]["200"]["content"]
    sent = f"Body: {_content(body)}. " if body else ""
    yield from _paragraph(f"{operation['summary']}. {token}{sent}Answer: {_content(answer)}.")
    rows = [
        (f"`{each['name']}`", each["in"], _kind(each["schema"]), each["schema"].get("description", ""))
        for each in operation.get("parameters", [])
    ]
    yield from _table(("Parameter", "In", "Type", "Notes"), rows)
    errors = _codes(interface, operation) - common
    if errors:
        yield from _paragraph(f"Errors: {_errors(errors)}.")


def _codes(interface, operation):
    """Return the error codes of an operation."""
    known = interface["components"]["responses"]
    responses = [
        known[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in operation["responses"].values()
    ]
    return {code for each in responses for code in each["headers"].get("Error-Code", NO_CODES)["schema"]["enum"]}


def _errors(codes):
    """Return the codes, by status."""
    by_status = itertools.groupby(sorted(codes, key=lambda code: (STATUS[code], code)), STATUS.get)
    return "; ".join(f"{status} {', '.join(f'`{code}`' for code in same)}" for status, same in by_status)


def _content(content):
    """Return the types of a body: for JSON its schema, otherwise the media types."""
    data = content.get("application/json")
    if "text/event-stream" in content:
        return f"`text/event-stream` of {_link('StreamEvent')}"
    return _kind(data["schema"]) if data else ", ".join(f"`{media_type}`" for media_type in content)


def _shape(name, shape):
    """The fields of one object, or its alternatives."""
    yield from (f"### {name}", "", *_paragraph(shape.get("description", "").rstrip(".") + "."))
    rows = []
    for field, schema in shape.get("properties", {}).items():
        optional = f"optional, default `{json.dumps(schema['default'])}`" if "default" in schema else "optional"
        needed = [] if field in shape["required"] else [optional]
        notes = [*needed, *filter(None, [schema.get("description")])]
        rows.append((f"`{field}`", _kind(schema), "; ".join(notes)))
    yield from _table(("Field", "Type", "Notes"), rows)
    for each in shape.get("oneOf", ()):
        fields = ", ".join(f"`{field}`: {_kind(schema)}" for field, schema in each["properties"].items())
        yield from (f"- {fields}",)
    if "oneOf" in shape:
        yield ""


def _kind(schema):
    """Return the type of a value in words, with a link if it is an object of this page."""
    match schema:
        case {"$ref": reference}:
            return _link(reference.rpartition("/")[2])
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"anyOf": choices} if "type" not in schema:
            return " or ".join(dict.fromkeys(_kind(choice) for choice in choices))
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}{_range('', schema.get('minItems'), schema.get('maxItems'))}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object whose values are: {_kind(values)}"
        case {"type": "string"}:
            bounds = _range(" characters", schema.get("minLength"), schema.get("maxLength"))
            return FORMATS.get(schema.get("format"), f"text{bounds}")
        case {"type": "integer" | "number" as kind}:
            most = U64_MAX if schema.get("format") == "uint64" else schema.get("maximum")
            return f"{kind}{_range('', schema.get('minimum'), most)}"
        case {"type": kind}:
            return kind
    return "any JSON"


def _range(unit, least, most):
    """Return bounds in words, in parentheses."""
    match least, most:
        case None, None:
            return ""
        case None, _:
            bounds = f"at most {most:,}"
        case _, None:
            bounds = f"at least {least:,}"
        case _:
            bounds = f"{least:,} to {most:,}"
    return f" ({bounds}{unit})"


def _paragraph(text):
    """The text in lines of 120 characters, and an empty line."""
    text = " ".join(text.split())
    return [*textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False), ""]


def _table(titles, rows):
    """The rows of a table with these titles. An empty table is left out, and so is an empty column."""
    kept = [index for index in range(len(titles)) if any(row[index] for row in rows)]
    for row in [titles, ["---"] * len(titles), *rows] if rows else ():
        yield "| " + " | ".join(" ".join(row[index].split()).replace("|", "\\|") for index in kept) + " |"
    if rows:
        yield ""


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}", file=sys.stderr)
