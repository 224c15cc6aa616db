"""Parameters in the queries of the console's routes; each raises BadRequest for what it doesn't take."""

from ...errors import BadRequest
from ...rules.queries import choice
from ...rules.shapes import canonical_uuid

TEXT_MAX = 100  # code points to look for


def one_text(values: list[str], name: str) -> str:
    """The text to look for, "" without one."""
    if len(values) > 1 or len("".join(values)) > TEXT_MAX or not "".join(values).isprintable():
        raise BadRequest("bad_query", f"{name} must be one text of at most {TEXT_MAX} characters")
    return "".join(values).strip()


def flag(values: list[str], name: str) -> bool:
    """Whether it is `true`."""
    return choice(values, name, ("true", "false")) == "true"


def user(values: list[str], name: str) -> str | None:
    """The id of a player, or None."""
    if not values:
        return None
    user_id = canonical_uuid(values[0])
    if len(values) > 1 or user_id is None:
        raise BadRequest("bad_query", f"{name} must be an id")
    return user_id
