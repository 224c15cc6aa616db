"""Write the types of messages for the JavaScript client from the OpenAPI document: `python -m tests.client_types`."""

from tests.harness.constants import ROOT
from tests.harness.error_codes import openapi

FILE = ROOT / "clients" / "javascript" / "messages.d.ts"
ROOTS = ("Me", "DailyChallenge", "Payload", "Replay", "VerdictAnswer", "StreamEvent", "ErrorCode")
SIMPLE = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def named(schema):
    """The names of the schemas that a schema refers to."""
    if isinstance(schema, dict):
        own = {schema["$ref"].rpartition("/")[2]} if "$ref" in schema else set()
        return own.union(*map(named, schema.values()))
    return set().union(*map(named, schema)) if isinstance(schema, list) else set()


def type_of(schema):
    """A schema as a type of TypeScript."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " | ".join(dict.fromkeys(map(type_of, schema[choice])))
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    kinds = schema.get("type", [])
    if isinstance(kinds, list):
        return " | ".join(type_of({**schema, "type": kind}) for kind in kinds) or "unknown"
    if kinds == "array":
        return f"({type_of(schema.get('items', {}))})[]"
    return object_type(schema) if kinds == "object" else SIMPLE[kinds]


def object_type(schema):
    """An object with the fields of a schema, and others if the service keeps them."""
    required = schema.get("required", ())
    fields = [
        f"{name}{'' if name in required else '?'}: {type_of(field)}"
        for name, field in schema.get("properties", {}).items()
    ]
    more = schema.get("additionalProperties")
    if more:
        fields.append(f"[other: string]: {type_of(more) if more is not True and not fields else 'unknown'}")
    return f"{{ {'; '.join(fields)} }}" if fields else "object"


def types():
    """The text of the file."""
    schemas = openapi()["components"]["schemas"]
    found, waiting = [], list(ROOTS)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting += sorted(named(schemas[name]))
    lines = [f"export type {name} = {type_of(schemas[name])};" for name in sorted(found)]
    return "\n".join(["// The messages of the OpenAPI document. `make docs` writes this file.", *lines, ""])


if __name__ == "__main__":
    FILE.write_text(types(), "utf-8")
