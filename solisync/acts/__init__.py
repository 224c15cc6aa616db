"""What operators do to players and replays: each act is one function, recorded in the transaction that it runs in.

Commands, routes and the service itself change the data of others only by `perform`.
"""

from . import players, profiles, replays
from .act import Act

ACTS = tuple(each for module in (players, profiles, replays) for each in vars(module).values() if isinstance(each, Act))
"""All acts, in the order of their definition."""
