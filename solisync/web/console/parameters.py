"""Parameters in the queries of the console's routes; each raises BadRequest for what it doesn't take."""

import re
from collections.abc import Sequence

from ...errors import BadRequest
from ...rules.shapes import canonical_uuid

TEXT_MAX = 100  # code points to look for


def one_text(values: list[str], name: str) -> str:
    """The text to look for, "" without one."""
    if len(values) > 1 or len("".join(values)) > TEXT_MAX or not "".join(values).isprintable():
        raise BadRequest("bad_query", f"{name} must be one text of at most {TEXT_MAX} characters")
    return "".join(values).strip()


def chosen(values: list[str], name: str, choices: Sequence[str]) -> str | None:
    """One of the choices, or None."""
    if not values:
        return None
    if len(values) > 1 or values[0] not in choices:
        raise BadRequest("bad_query", f"{name} must be one of {', '.join(choices)}")
    return values[0]


def flag(values: list[str], name: str) -> bool:
    """Whether it is `true`."""
    return chosen(values, name, ("true", "false")) == "true"


def number(values: list[str], name: str, least: int, most: int) -> int:
    """A whole number of this range."""
    if len(values) == 1 and re.fullmatch(r"\d{1,19}", values[0], re.ASCII) and least <= int(values[0]) <= most:
        return int(values[0])
    raise BadRequest("bad_query", f"{name} must be a whole number from {least} to {most}")


def user(values: list[str], name: str) -> str | None:
    """The id of a player, or None."""
    if not values:
        return None
    user_id = canonical_uuid(values[0])
    if len(values) > 1 or user_id is None:
        raise BadRequest("bad_query", f"{name} must be an id")
    return user_id
