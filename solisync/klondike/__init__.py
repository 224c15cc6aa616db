"""Klondike, for verifying uploaded replays. It is pure: no I/O, no clock, no imports from the rest of solisync.

`check_literally` and `check` return verdicts, `prove` and `evidence` return what the moves of any replay prove,
`make_timeline` returns the data for playback, and `draw_game` text for a terminal. `find_win` plays a deal.
`python -m solisync.klondike` runs these by hand. docs/verification.md explains the verdicts.
"""

from .deal import SEED_PATTERN, read_seed
from .drawing import draw_game
from .evidence import UNPROVED, Evidence, Proved, evidence, in_words, prove
from .recording import DRAW_MODES, MODES, Pile, Reason, RecordedMove, UnreadableError, read_recording, recorded
from .scoring import PREFERRED
from .solver import find_win
from .timeline import Timeline, dealt, make_timeline
from .verdict import ENGINE_VERSION, Status, Verdict, check, check_literally

__all__ = [
    "DRAW_MODES",
    "ENGINE_VERSION",
    "MODES",
    "PREFERRED",
    "SEED_PATTERN",
    "UNPROVED",
    "Evidence",
    "Pile",
    "Proved",
    "Reason",
    "RecordedMove",
    "Status",
    "Timeline",
    "UnreadableError",
    "Verdict",
    "check",
    "check_literally",
    "dealt",
    "draw_game",
    "evidence",
    "find_win",
    "in_words",
    "make_timeline",
    "prove",
    "read_recording",
    "read_seed",
    "recorded",
]
