"""Housekeeping that a test runs one round at a time."""

from solisync.housekeeping import Housekeeping


def make_housekeeping(database, reactor, **given):
    """Housekeeping over a database; no process is notified of its work unless a test asks for it."""
    defaults = {
        "publish": lambda *notices: None,
        "analytics_days": None,
        "history_days": 30,
        "guest_days": 180,
    }
    return Housekeeping(database=database, reactor=reactor, **defaults | given)
