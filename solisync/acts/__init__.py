"""The acts of operators on players and replays. Each act is one function, recorded in the transaction that it runs in.

Commands, the console and the service itself act on players only by `perform`.
"""

from ..storage.operators.acts import EXPORT
from . import players, profiles, replays
from .act import Act

ACTS = tuple(each for module in (players, profiles, replays) for each in vars(module).values() if isinstance(each, Act))
"""All acts, in the order of their definition."""

NAMES = (*(each.name for each in ACTS), EXPORT)
"""The names of all acts in the record."""
