"""The request that reverses an act, and the words of the record that it is made from (docs/console.md "Record")."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct, ValidationError

from .shapes import Time

ROOT = "/api/admin"  # of the console's routes


class Undo(Struct, frozen=True):
    """The request that reverses an act. It is an act of its own, so its body needs a reason, too."""

    method: str
    path: str
    body: Annotated[dict[str, bool | str], Meta(description="the body without `reason` and `note`")]
    title: Annotated[str, Meta(description="what the request does, for a button or the heading of a dialog")]


class _Suspension(NamedTuple):
    until: datetime | None
    message: str | None


_SUSPENSION = re.compile(r"until (\S+?)(?:: (.*))?", re.DOTALL)


def suspension_words(until: datetime | None, message: str | None) -> str:
    """A suspension as the record has it, for people and for `undo_of`. Nodes of version 1.1 read it, too."""
    ends = "until lifted" if until is None else f"until {until.astimezone(UTC).isoformat()}"
    return ends if message is None else f"{ends}: {message}"


def _read_suspension(words: str) -> _Suspension | None:
    found = _SUSPENSION.fullmatch(words)
    if found is None:
        return None
    with suppress(ValidationError):
        return _Suspension(None if found[1] == "lifted" else msgspec.convert(found[1], Time), found[2])
    return None


def undo_of(
    act: str | None,
    *,
    user_id: str | None,
    username: str | None,
    replay_id: str | None,
    before: str | None,
    now: datetime,
) -> Undo | None:
    """The request for the act that reverses another one, after which the player is called `username`.

    `before` is what the record has of the state before the other act. None if there is nothing to return to: no act, or
    a suspension whose end has passed.
    """
    player, replay = f"{ROOT}/players/{user_id}", f"{ROOT}/replays/{replay_id}"
    match act, before:
        case "suspend", str():
            return _suspend_again(player, username, before, now)
        case "unsuspend", str() if former := _suspend_again(player, username, before, now):
            return former  # the other act has changed a suspension
        case "unsuspend", _:
            return _put(f"{player}/suspension", f"End the suspension of {username}", suspended=False)
        case "lock", _:
            return _put(f"{player}/lock", f"Lock {username} again", locked=True)
        case "unlock", _:
            return _put(f"{player}/lock", f"Unlock {username}", locked=False)
        case "show", _:
            return _put(f"{player}/entry", f"Show the entry of {username}", visible=True)
        case "hide", _:
            return _put(f"{player}/entry", f"Hide the entry of {username}", visible=False)
        case "name", str():
            return _put(f"{player}/entry", f"Rename the entry of {username} to “{before}” again", display_name=before)
        case "rename", str():
            return _put(f"{player}/username", f"Rename {username} to “{before}” again", username=before)
        case "list_again", _:
            return _put(f"{replay}/listed", "Release this replay", listed=True)
        case "unlist", _:
            return _put(f"{replay}/listed", "Take this replay off public lists", listed=False)
    return None


def _suspend_again(player: str, username: str | None, before: str, now: datetime) -> Undo | None:
    former = _read_suspension(before)
    if former is None or (former.until is not None and former.until <= now):
        return None
    given: dict[str, bool | str] = {"suspended": True}
    ends = "until lifted"
    if former.until is not None:
        ends = f"until {former.until:%Y-%m-%d %H:%M} UTC"
        given["until"] = former.until.isoformat()
    if former.message is not None:
        ends = f"{ends}, with the message “{former.message}”"
        given["message"] = former.message
    return _put(f"{player}/suspension", f"Suspend {username} again, {ends}", **given)


def _put(path: str, title: str, **body: bool | str) -> Undo:
    return Undo("PUT", path, body, title)
