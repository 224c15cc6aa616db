"""The shape of a replay that can be verified, and JSON Schemas of all shapes for client generators."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..klondike import SEED_PATTERN, Pile, RecordedMove
from ..rules.replays import Replay
from ..rules.shapes import U64
from ..rules.sync import Achievement, Payload, Progress, Stats

Seed = U64 | Annotated[str, Meta(pattern=SEED_PATTERN)]
Place = Annotated[int, Meta(ge=0)]


class RecordedGame(Replay, frozen=True, kw_only=True):
    """A replay with the deal and the moves of a game, so that its score can be verified."""

    seed: Annotated[Seed, Meta(description="the number of the deal, 0 to 2^64-1; preferably a number, not text")]
    moves: Annotated[
        list[RecordedMove],
        Meta(min_length=1, description="all accepted moves in their order, including undone moves"),
    ]
    undo_places: Annotated[
        list[Place] | UnsetType,
        Meta(description="ascending, one for each undo: the index in `moves` of the move before which it happened"),
    ] = UNSET


JsonObject = dict[str, Any]

EXAMPLE_FILE = Path(__file__).with_name("example_replay.json")
EXAMPLE: JsonObject = msgspec.json.decode(EXAMPLE_FILE.read_bytes())
"""A short won game, which is verified."""

Shapes = tuple[type[msgspec.Struct], ...]

COMPONENT = "#/components/schemas/{name}"
KEEPING_UNKNOWN_FIELDS: Shapes = (Payload, Stats, Progress, Achievement, Replay, RecordedGame)
OF_ONE_FIELD: Shapes = (Pile,)  # with exactly one of their fields


def schema(shape: object) -> JsonObject:
    """Return the schema of a shape, with references to the schemas of message shapes."""
    (found,), _ = msgspec.json.schema_components([shape], ref_template=COMPONENT)
    return _with_types(found)


def schemas(shapes: Iterable[object], *, reference: str = COMPONENT) -> JsonObject:
    """Return the schemas of these message shapes, and of the shapes that they refer to, by name."""
    shapes = [*shapes]
    _, found = msgspec.json.schema_components(shapes, ref_template=reference)
    for name, field, kind in _fields(msgspec.inspect.multi_type_info(shapes)):
        if any(isinstance(each, msgspec.inspect.DateTimeType) for each in _choices(kind)):
            _mark_as_time(found[name]["properties"][field])
    for shape in KEEPING_UNKNOWN_FIELDS:
        if shape.__name__ in found:
            found[shape.__name__]["additionalProperties"] = True
    for shape in OF_ONE_FIELD:
        if shape.__name__ in found:
            found[shape.__name__] = _of_one_field(found[shape.__name__])
    return _with_types(found)


def _choices(kind: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """Return the types of which a value may be, which are several for a union."""
    match kind:
        case msgspec.inspect.Metadata(type=inner):
            return _choices(inner)
        case msgspec.inspect.UnionType(types=types):
            return [choice for each in types for choice in _choices(each)]
    return [kind]


def _fields(kinds: Iterable[msgspec.inspect.Type]) -> Iterator[tuple[str, str, msgspec.inspect.Type]]:
    """Yield the fields of these objects and of all objects in them: the name of the schema, of the field, its type."""
    known = set()
    waiting = [*kinds]
    while waiting:
        for kind in _choices(waiting.pop()):
            match kind:
                case msgspec.inspect.CollectionType(item_type=item):
                    waiting.append(item)
                case msgspec.inspect.DictType(value_type=value):
                    waiting.append(value)
                case (
                    msgspec.inspect.StructType(cls=cls, fields=fields)
                    | msgspec.inspect.DataclassType(cls=cls, fields=fields)
                ) if cls not in known:
                    known.add(cls)
                    waiting += [each.type for each in fields]
                    yield from ((cls.__name__, each.encode_name, each.type) for each in fields)


def _mark_as_time(schema: JsonObject) -> None:
    """Name the format of a time: msgspec does so only if the shape requires an offset, which each answer has."""
    for choice in schema.get("anyOf", [schema]):
        if choice.get("type") == "string":
            choice["format"] = "date-time"


def _with_types(schema: JsonObject) -> JsonObject:
    """Return the schema with the type `string` added to each enumeration of texts."""
    typed = {name: _typed(value) for name, value in schema.items()}
    values = typed.get("enum")
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        return {"type": "string"} | typed
    return typed


def _typed(part: object) -> object:
    if isinstance(part, list):
        return [*map(_typed, part)]
    return _with_types(part) if isinstance(part, dict) else part


def _of_one_field(schema: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly one of the fields of `schema`."""
    fields = [
        {"type": "object", "properties": {name: field}, "required": [name], "additionalProperties": False}
        for name, field in schema["properties"].items()
    ]
    return {"title": schema["title"], "description": schema["description"], "oneOf": fields}
