"""`solisync users export`: everything that is stored about a player, except password hash and refresh tokens."""

from base64 import b64encode

from ..postgres.transaction import Transaction
from ..rules.sessions import Session
from ..storage import accounts, analytics, avatars, replays, sessions, sync
from ..storage.accounts import Player, Summary
from .analytics import json_of
from .output import Output, to_json
from .task import Task, no_such_player, player


async def export(task: Task) -> None:
    """Write one JSON document; replays, progress and payloads of events are in it byte for byte."""

    async def write(transaction: Transaction) -> None:
        found = await player(transaction, task.chosen.user)
        summary = await accounts.summary(transaction, found.id)
        pulled = await sync.read(transaction, found.id)
        if summary is None or pulled is None:
            raise no_such_player(task.chosen.user)
        image = await avatars.image(transaction, found.id)
        live = await sessions.listed(transaction, found.id)
        account = {"id": found.id, "username": found.username, "created_at": summary.created_at}
        avatar = None if image is None else {"type": summary.avatar, "base64": b64encode(image).decode("ascii")}
        raw = task.output.raw
        raw(f'{{"account": {to_json(account)},\n "avatar": {to_json(avatar)},\n')
        raw(f' "sessions": {to_json([_session(session) for session in live or []])},\n')
        progress = "null" if pulled.payload is None else pulled.payload.decode()
        raw(f' "progress": {progress},\n "leaderboard": {to_json(_entry(summary))},\n "replays": [')
        await _write_replays(task.output, transaction, found)
        raw('],\n "analytics": [')
        await _write_events(task.output, transaction, found)
        raw("]}\n")

    await task.reading(write)


async def _write_replays(output: Output, transaction: Transaction, found: Player) -> None:
    between = "\n  "
    async for page in replays.of_player(transaction, found.id):
        for replay in page:
            known = to_json({"id": replay.id, "received_at": replay.received_at})
            output.raw(f'{between}{known[:-1]}, "replay": {replay.body}}}')
            between = ",\n  "


async def _write_events(output: Output, transaction: Transaction, found: Player) -> None:
    between = "\n  "
    async for page in analytics.naming(transaction, found):
        for event in page:
            output.raw(between + json_of(event))
            between = ",\n  "


def _session(session: Session) -> dict[str, object]:
    fields = ("id", "begun_at", "used_at", "expires_at", "user_agent")
    return {field: getattr(session, field) for field in fields}


def _entry(summary: Summary) -> dict[str, object] | None:
    if summary.display_name is None:
        return None
    fields = ("display_name", "best_score", "best_time_secs", "recorded_at", "visible")
    return {field: getattr(summary, field) for field in fields}
