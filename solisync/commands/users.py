"""`solisync users`: find and show players, and perform acts on their accounts."""

from dataclasses import asdict as fields_of
from datetime import UTC

from msgspec.structs import asdict

from ..access.passwords import Passwords
from ..acts import players as acts
from ..acts.act import Act, Why
from ..errors import FatalError, NotFound
from ..players import finding
from ..players.export_document import export_document
from ..players.facts import facts, history_of
from ..players.finding import SLOW, Where
from ..process.audit import audit
from ..rules.accounts import check_username
from ..rules.administration import MESSAGE_MAX, check_text
from ..rules.recovery import digest, new_reset_token, on_site, reset_path
from ..rules.texts import bytes_shown
from ..storage.operators.acts import record_export
from ..storage.paging import FIRST_TIME
from ..storage.players import players
from ..storage.players.export import begin
from ..storage.players.players import MOST, ListedPlayer
from .output import Column, shown
from .task import Task, no_such_player, player

COLUMNS = (
    Column("username", 32),
    Column("id", 36),
    Column("created_at", 19),
    Column("used_at", 19),
    Column("replays", 7, right=True),
    Column("bytes", 10, right=True),
    Column("avatar", 6),
)
MOST_SORTED = 1_000  # players in an order without an index, for which the database reads and sorts all players


async def show_list(task: Task) -> None:
    """List players in the wanted order, up to the given limit."""
    left, order = task.chosen.limit, task.chosen.order
    chosen = {"prefix": task.chosen.name, "since": task.chosen.since or FIRST_TIME, "state": task.chosen.state}
    if order != "name" and (left or 0) > MOST_SORTED:
        raise FatalError(f"solisync: --order {order} lists at most {MOST_SORTED:,} players: reduce --limit to that")
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
    """Show facts and counts about a player."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        task.output.facts(asdict(await facts(statements, found.id, task.settings.site_url)))


async def rename(task: Task) -> None:
    """Change a player's username, by the rules of registering."""
    username = check_username(task.chosen.username)
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        done = await acts.perform_rename(acting, found.id, username)
        former = done.before or username
        task.output.say(f"renamed '{former}' to '{username}'", id=found.id, former=former, username=username)


async def delete(task: Task) -> None:
    """Delete a player, as DELETE /api/account does."""
    found, _ = await task.perform(acts.delete)
    task.output.say(f"deleted '{found.username}' and all their data", id=found.id, username=found.username)


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
PART_SECONDS = 30.0  # limit of a search for a part of a name; enough for millions of names
ONLY = "there are more: only the first {} are shown"
VISITOR_COLUMNS = (Column("username", 32), Column("id", 36), Column("last_at", 19), Column("events", 8, right=True))


async def find(task: Task) -> None:
    """List the players found, and remark if there may be more."""
    text = task.chosen.text.strip()
    if not text:
        raise FatalError("solisync: give a text to search for")
    where: Where = "part" if task.chosen.part else "name"
    where = "display_name" if task.chosen.display_name else where
    where = "address" if task.chosen.address else where
    async with task.connection() as statements:
        found = await finding.find(statements, task.reactor, text, where, MOST, PART_SECONDS, None)
    write = task.output.table(VISITOR_COLUMNS if where == "address" else FOUND_COLUMNS)
    for each in found.visitors or found.players:
        write(fields_of(each))
    if found.next is not None:
        cut = where in SLOW and len(found.players) < MOST
        text = f"stopped after {PART_SECONDS:g} s: there may be more" if cut else ONLY.format(MOST)
        task.progress.remark(text)


HISTORY_COLUMNS = (
    Column("at", 19),
    Column("what", 24),
    Column("times", 5, right=True),
    Column("client", 21),
    Column("by", 16),
    Column("details", 40),
)


async def show_history(task: Task) -> None:
    """List a player's events and the acts of operators, newest first."""
    async with task.connection() as statements:
        found = await player(statements, task.chosen.user)
        write = task.output.table(HISTORY_COLUMNS)
        entries, _ = await history_of(statements, found.id, most=task.chosen.limit)
        for entry in entries:
            line = asdict(entry)
            write(line if task.output.json else line | {"details": _details(line)})


def _details(line: dict[str, object]) -> str | None:
    """Return the reason, the change, the note and the replay in one text, or None."""
    changed = " → ".join(str(line[name]) for name in ("before", "after") if line[name] is not None)
    return "; ".join(str(each) for each in (line["reason"], changed, line["note"], line["replay_id"]) if each) or None


async def suspend(task: Task) -> None:
    """Suspend the given players, each in its own transaction; raises NotFound afterwards for those that don't exist."""
    until, message = task.chosen.until, task.chosen.message
    if message is not None:
        message = check_text(message, "message", MESSAGE_MAX)
    ends = "until further notice" if until is None else f"until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
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
        raise NotFound("player_not_found", f"no such user: {', '.join(missing)}")


async def unsuspend(task: Task) -> None:
    """End a suspension."""
    await _perform(task, acts.unsuspend, "can log in again", "is not suspended")


async def lock(task: Task) -> None:
    """Lock a profile."""
    await _perform(task, acts.lock, "is locked now", "is already locked")


async def unlock(task: Task) -> None:
    """Unlock a profile."""
    await _perform(task, acts.unlock, "is no longer locked", "is not locked")


async def _perform(task: Task, act: Act, changed: str, unchanged: str) -> None:
    found, done = await task.perform(act)
    text = f"'{found.username}' {changed if done.changed else unchanged}"
    task.output.say(text, id=found.id, username=found.username, changed=done.changed)


async def export(task: Task) -> None:
    """Write everything that is stored about a player as one JSON document; the act is recorded first."""
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
    path, site = reset_path(token), task.settings.site_url
    facts = {"path": path, "url": site and on_site(site, path), "expires_at": done.result}
    task.output.say(on_site(site, path), id=found.id, username=found.username, **facts)
    if not task.output.json:
        task.output.say(f"for '{found.username}', works once, until {shown(done.result)} UTC")
