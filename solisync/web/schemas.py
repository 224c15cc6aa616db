"""The shape of a replay that can be verified, and JSON Schemas of all shapes for client generators."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..klondike import SEED_PATTERN, Pile, RecordedMove
from ..rules.replays import Replay
from ..rules.shapes import U64_MAX
from ..rules.sync import Achievement, Payload, Progress, Stats

Seed = Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=SEED_PATTERN)]
Place = Annotated[int, Meta(ge=0)]


class RecordedGame(Replay, frozen=True, kw_only=True):
    """A replay with the deal and the moves of a game, so that its score can be verified."""

    seed: Annotated[
        Seed,
        Meta(
            description="the number of the deal, 0 to 2^64-1; preferably a number, not text",
            extra_json_schema={"maximum": U64_MAX},
        ),
    ]
    moves: Annotated[
        list[RecordedMove],
        Meta(min_length=1, description="all accepted moves in their order, including undone moves"),
    ]
    undo_places: Annotated[
        list[Place] | UnsetType,
        Meta(description="ascending, one for each undo: the index in `moves` of the move before which it happened"),
    ] = UNSET


EXAMPLE_FILE = Path(__file__).with_name("example_replay.json")
EXAMPLE: dict[str, Any] = msgspec.json.decode(EXAMPLE_FILE.read_bytes())
"""A short won game, which is verified."""

Shapes = tuple[type[msgspec.Struct], ...]

COMPONENT = "#/components/schemas/{name}"
KEEPING_UNKNOWN_FIELDS: Shapes = (Payload, Stats, Progress, Achievement, Replay, RecordedGame)
OF_ONE_FIELD: Shapes = (Pile,)  # with exactly one of their fields


def schema(shape: Any) -> dict[str, Any]:
    """Return the schema of a shape, with references to the schemas of message shapes."""
    (found,), _ = msgspec.json.schema_components([shape], ref_template=COMPONENT)
    return _with_types(found)


def schemas(shapes: Iterable[Any], *, reference: str = COMPONENT) -> dict[str, Any]:
    """Return the schemas of these message shapes, and of the shapes that they refer to, by name."""
    _, found = msgspec.json.schema_components(shapes, ref_template=reference)
    for shape in KEEPING_UNKNOWN_FIELDS:
        if shape.__name__ in found:
            found[shape.__name__]["additionalProperties"] = True
    for shape in OF_ONE_FIELD:
        if shape.__name__ in found:
            found[shape.__name__] = _of_one_field(found[shape.__name__])
    return _with_types(found)


def _with_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the type `string` added to each enumeration of texts."""
    typed = {name: _typed(value) for name, value in schema.items()}
    values = typed.get("enum")
    if isinstance(values, list) and all(isinstance(value, str) for value in values):
        return {"type": "string"} | typed
    return typed


def _typed(part: Any) -> Any:
    if isinstance(part, list):
        return [*map(_typed, part)]
    return _with_types(part) if isinstance(part, dict) else part


def _of_one_field(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly one of the fields of `schema`."""
    fields = [
        {"type": "object", "properties": {name: field}, "required": [name], "additionalProperties": False}
        for name, field in schema["properties"].items()
    ]
    return {"title": schema["title"], "description": schema["description"], "oneOf": fields}
