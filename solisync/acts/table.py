"""Every act there is."""

from . import players, replays, shown
from .act import Act

ACTS = tuple(act for module in (players, shown, replays) for act in vars(module).values() if isinstance(act, Act))
"""In the order of their definition."""
