"""Klondike as the game plays it: verifies uploaded replays. Pure: no I/O, no clock, nothing else of solisync.

`check_literally` and `check` give verdicts, `make_timeline` what playback needs, `draw_game` text for a terminal.
`python -m solisync.klondike` does the same by hand; docs/verification.md says what a verdict means.
"""

from .deal import SEED_PATTERN, read_seed
from .drawing import draw_game
from .recording import DRAW_MODES, MODES, Pile, Reason, RecordedMove, UnreadableError, read_recording
from .scoring import PREFERRED
from .timeline import Timeline, dealt, make_timeline
from .verdict import ENGINE_VERSION, Status, Verdict, check, check_literally

__all__ = [
    "DRAW_MODES",
    "ENGINE_VERSION",
    "MODES",
    "PREFERRED",
    "SEED_PATTERN",
    "Pile",
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
    "make_timeline",
    "read_recording",
    "read_seed",
]
