"""Every act there is."""

from . import players, profiles, replays
from .act import Act

ACTS = tuple(act for module in (players, profiles, replays) for act in vars(module).values() if isinstance(act, Act))
"""In the order of their definition."""
