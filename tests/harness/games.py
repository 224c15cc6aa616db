"""Finished games as clients send them."""

from uuid import uuid4


def game(**fields):
    """A win of mode Classic with draw one, unless `fields` say otherwise; each has an id of its own."""
    return {
        "game_id": str(uuid4()),
        "mode": "Classic",
        "draw_mode": "DrawOne",
        "won": True,
        "score": 600,
        "seconds": 200,
        "ended_at": "2026-11-20T18:03:00+01:00",
        "undone": False,
        **fields,
    }
