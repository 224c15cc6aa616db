"""`solisync users`: finding and showing players, and acts on their accounts."""

from dataclasses import asdict as fields_of
from datetime import UTC

from msgspec.structs import asdict

from ..access.client_address import bucket, parse_address
from ..access.passwords import Passwords
from ..acts import players as acts
from ..acts.act import Act, Why
from ..errors import FatalError, NotFound
from ..players.export_document import export_document
from ..players.facts import facts, history_of
from ..postgres.transaction import Statements
from ..process.audit import audit
from ..rules.accounts import check_username
from ..rules.administration import MESSAGE_MAX, check_text
from ..rules.recovery import digest, new_reset_token, reset_path
from ..rules.shapes import canonical_uuid
from ..rules.texts import bytes_shown
from ..storage import history, players
from ..storage.acts import record_export
from ..storage.export import begin
from ..storage.paging import FIRST_TIME
from ..storage.players import MOST, FoundPlayer, ListedPlayer
from .output import Column, shown
from .task import Task, no_such_player, player

COLUMNS = (
    Column("username", 32),
    Column("id", 36),
    Column("created_at", 19),
    Column("used_at", 19),
    Column("bytes", 10, right=True),
    Column("avatar", 6),
)
MOST_SORTED = 1_000  # players in an order that no index has: all of them are read for it, and these sorted


async def show_list(task: Task) -> None:
    """List the players in the wanted order, up to the limit that was given."""
    left, order = task.chosen.limit, task.chosen.order
    chosen = {"prefix": task.chosen.name, "since": task.chosen.since or FIRST_TIME, "guests": task.chosen.guests}
    if order != "name" and (left or 0) > MOST_SORTED:
        raise FatalError(f"solisync: by {order}, at most {MOST_SORTED:,} players are listed: give a --limit up to that")
    if left == 0:
        return
    async with task.connection() as statements:
        write = task.output.table(COLUMNS)
        if order != "name":
            for each in await players.by(statements, order, most=left or MOST_SORTED, **chosen):
                write(_line(each, task))
            return
        async for page in players.by_name(statements, **chosen):
            for each in page[:left]:
                write(_line(each, task))
            if left is not None:
                left -= len(page)
                if left <= 0:
                    return


async def show_one(task: Task) -> None:
    """Show what is stored about a player, in numbers."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        task.output.facts(asdict(await facts(statements, found.id)))


async def rename(task: Task) -> None:
    """Change a player's username, by the rules of registering."""
    username = check_username(task.chosen.username)
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        done = await acts.perform_rename(acting, found.id, username)
        former = done.before or username
        task.output.say(f"'{former}' is called '{username}' now", id=found.id, former=former, username=username)


async def delete(task: Task) -> None:
    """Delete a player, as DELETE /api/account does."""
    found, _ = await task.perform(acts.delete)
    task.output.say(f"deleted '{found.username}' and all that was theirs", id=found.id, username=found.username)


def _line(each: ListedPlayer, task: Task) -> dict[str, object]:
    return fields_of(each) | ({} if task.output.json else {"bytes": bytes_shown(each.bytes)})


FOUND_COLUMNS = (
    Column("username", 32),
    Column("id", 36),
    Column("created_at", 19),
    Column("suspended_since", 19),
    Column("locked_since", 19),
    Column("display_name", 32),
)
PART_SECONDS = 30.0  # after which a search for a part of a name ends; enough for millions of names
ONLY = "only the first {} are listed"
VISITOR_COLUMNS = (Column("username", 32), Column("id", 36), Column("last_at", 19), Column("events", 8, right=True))


async def find(task: Task) -> None:
    """List the players found, and say so when there may be more."""
    text = task.chosen.text.strip()
    if not text:
        raise FatalError("solisync: say what to look for")
    if task.chosen.address:
        await _find_visitors(task, text)
        return
    async with task.connection() as statements:
        found, cut = await _find(task, statements, text)
    write = task.output.table(FOUND_COLUMNS)
    for each in found[:MOST]:
        write(fields_of(each))
    if len(found) > MOST:
        task.progress.remark(ONLY.format(MOST))
    elif cut is not None:
        task.progress.remark(cut)


async def _find_visitors(task: Task, text: str) -> None:
    """List the players to whom something has happened from an address, the last first."""
    address = parse_address(text)
    if address is None:
        raise FatalError(f"solisync: '{text}' is not an address")
    async with task.connection() as statements:
        found = await history.of_client(statements, bucket(address), most=MOST + 1)
    write = task.output.table(VISITOR_COLUMNS)
    for each in found[:MOST]:
        write(fields_of(each))
    if len(found) > MOST:
        task.progress.remark(ONLY.format(MOST))


async def _find(task: Task, statements: Statements, text: str) -> tuple[list[FoundPlayer], str | None]:
    """The players found, and what to say of those that were not looked at."""
    if task.chosen.part or task.chosen.display_name:
        return await _find_part(task, statements, text)
    user_id = canonical_uuid(text)
    found = await players.by_ids(statements, [user_id]) if user_id else []
    return found or await players.by_beginning(statements, text, most=MOST + 1), None


async def _find_part(task: Task, statements: Statements, text: str) -> tuple[list[FoundPlayer], str | None]:
    wanted = {"display_names": task.chosen.display_name, "most": MOST}
    found, following = await players.by_part(statements, task.reactor, text, seconds=PART_SECONDS, **wanted)
    if following is None:
        return found, None
    return found, f"ended after {PART_SECONDS:g} s: there may be more" if len(found) < MOST else ONLY.format(MOST)


HISTORY_COLUMNS = (
    Column("at", 19),
    Column("what", 24),
    Column("times", 5, right=True),
    Column("client", 21),
    Column("by", 16),
    Column("details", 40),
)


async def show_history(task: Task) -> None:
    """List what has happened to a player lately, and what operators have done, the last first."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        write = task.output.table(HISTORY_COLUMNS)
        entries, _ = await history_of(statements, found.id, most=task.chosen.limit)
        for entry in entries:
            line = asdict(entry)
            write(line if task.output.json else line | {"details": _details(line)})


def _details(line: dict[str, object]) -> str | None:
    """Why, and what has changed, in a few words."""
    changed = " → ".join(str(line[name]) for name in ("before", "after") if line[name] is not None)
    return "; ".join(str(each) for each in (line["reason"], changed, line["note"], line["replay_id"]) if each) or None


async def suspend(task: Task) -> None:
    """Suspend those players who exist, each in a transaction; raises NotFound for the others."""
    until, message = task.chosen.until, task.chosen.message
    if message is not None:
        message = check_text(message, "message", MESSAGE_MAX)
    ends = "until somebody ends it" if until is None else f"until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    missing = []
    async with task.acting() as acting:
        for text in dict.fromkeys(task.chosen.users):
            try:
                found = await acting.database.run(player, text)
                await task.warn_of_guest(acting.database, found)
                done = await acting.perform(acts.suspend, found.id, until=until, message=message)
            except NotFound:
                missing.append(text)
            else:
                state = f"'{found.username}' is suspended {ends}"
                task.output.say(state, id=found.id, username=found.username, until=until, changed=done.changed)
    if missing:
        raise NotFound("user_not_found", f"no such user: {', '.join(missing)}")


async def unsuspend(task: Task) -> None:
    """End a suspension."""
    await _perform(task, acts.unsuspend, "can log in again", "is not suspended")


async def lock(task: Task) -> None:
    """Lock a profile."""
    await _perform(task, acts.lock, "can't change what others see any more", "is locked already")


async def unlock(task: Task) -> None:
    """Unlock a profile."""
    await _perform(task, acts.unlock, "can change again what others see", "is not locked")


async def _perform(task: Task, act: Act, changed: str, unchanged: str) -> None:
    found, done = await task.perform(act)
    text = f"'{found.username}' {changed if done.changed else unchanged}"
    task.output.say(text, id=found.id, username=found.username, changed=done.changed)


async def export(task: Task) -> None:
    """Write all that is stored about a player, as one JSON document; that it was done is recorded before."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        start = await begin(statements, found.id)
        if start is None:
            raise no_such_player(task.chosen.user)
        why = Why(task.chosen.reason, task.chosen.note)
        await record_export(statements, found.id, by=task.actor, reason=why.reason, note=why.note)
        audit("exported", user_id=found.id)
        async for part in export_document(lambda work, *arguments: work(statements, *arguments), start):
            task.output.raw(part.decode())


async def link(task: Task) -> None:
    """Make a reset link; with --lock-out, end all other access to the account."""
    hashing = Passwords(reactor=task.reactor, threads=task.reactor.getThreadPool(), at_once=1)
    unknown = await hashing.hash_of_nothing() if task.chosen.lock_out else None
    token = new_reset_token()
    found, done = await task.perform(acts.link, token_digest=digest(token), password_hash=unknown)
    path = reset_path(token)
    task.output.say(path, id=found.id, username=found.username, path=path, expires_at=done.result)
    if not task.output.json:
        task.output.say(f"for '{found.username}', once, until {shown(done.result)} UTC")
