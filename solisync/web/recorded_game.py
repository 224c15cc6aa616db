"""A replay that can be verified: its message shape, and one in full (docs/replays.md)."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..klondike import SEED_PATTERN, RecordedMove
from ..rules.replays import Replay
from ..rules.shapes import U64_MAX

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
