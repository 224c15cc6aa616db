"""Klondike as the game plays it: verifies uploaded replays. Pure: no I/O, no clock, nothing else of solisync.

`check_literally` and `check` give verdicts, `make_timeline` what playback needs. `python -m solisync.klondike` does the
same by hand; docs/verification.md says what a verdict means.
"""

from .recording import Reason
from .timeline import Timeline, make_timeline
from .verdict import ENGINE_VERSION, Status, Verdict, check, check_literally

__all__ = ["ENGINE_VERSION", "Reason", "Status", "Timeline", "Verdict", "check", "check_literally", "make_timeline"]
