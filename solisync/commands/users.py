"""`solisync users`: listing, showing, renaming and deleting players."""

from dataclasses import asdict

from ..acts import players as acts
from ..errors import Conflict, DatabaseError, FatalError
from ..process.audit import audit
from ..rules.accounts import avatar_url, check_username
from ..rules.saved import read_saved
from ..storage import accounts, moderation, players
from ..storage.accounts import Summary
from ..storage.moderation import CurrentRestrictions
from ..storage.paging import FIRST_TIME
from ..storage.players import ListedPlayer
from .output import Column, bytes_shown
from .task import Task, no_such_player, player

COLUMNS = (
    Column("username", 32),
    Column("id", 36),
    Column("created_at", 19),
    Column("used_at", 19),
    Column("bytes", 10, right=True),
    Column("avatar", 6),
)
MOST = 1_000  # players in an order that no index has: all of them are read for it, and these sorted


async def show_list(task: Task) -> None:
    """List the players in the wanted order, up to the limit that was given."""
    left, order = task.chosen.limit, task.chosen.order
    chosen = {"prefix": task.chosen.name, "since": task.chosen.since or FIRST_TIME}
    if order != "name" and (left or 0) > MOST:
        raise FatalError(f"solisync: by {order}, at most {MOST:,} players are listed: give a --limit up to that")
    if left == 0:
        return
    async with task.connection() as statements:
        write = task.output.table(COLUMNS)
        if order != "name":
            for each in await players.by(statements, order, most=left or MOST, **chosen):
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
        summary = await accounts.summary(statements, found.id)
        if summary is None:
            raise no_such_player(task.chosen.user)
        held = await moderation.restrictions(statements, found.id)
        facts = {"username": found.username, "id": found.id, **_facts(found.id, summary)}
        task.output.facts(facts | ({} if held is None else _restrictions(held)))


async def rename(task: Task) -> None:
    """Change a player's username, by the rules of registering."""
    username = check_username(task.chosen.username)
    async with task.acting() as acting:
        found = await acting.database.autocommit(player, task.chosen.user)
        try:
            done = await acting.perform(acts.RENAME, found.id, username=username)
        except DatabaseError:
            if username != found.username and await acting.database.autocommit(accounts.is_taken, username):
                raise Conflict("username_taken", "username already taken") from None
            raise
        former = done.before or username
        task.output.say(f"'{former}' is called '{username}' now", id=found.id, former=former, username=username)


async def delete(task: Task) -> None:
    """Delete a player, as DELETE /api/account does."""
    async with task.acting() as acting:
        found = await acting.database.autocommit(player, task.chosen.user)
        await acting.perform(acts.DELETE, found.id)
        audit("account deleted", user_id=found.id)
        task.output.say(f"deleted '{found.username}' and all that was theirs", id=found.id, username=found.username)


def _restrictions(held: CurrentRestrictions) -> dict[str, object]:
    return {
        "suspended_since": held.since,
        "suspended_until": held.until,
        "suspension_message": held.message,
        "locked_since": held.locked_since,
    }


def _line(each: ListedPlayer, task: Task) -> dict[str, object]:
    return asdict(each) | ({} if task.output.json else {"bytes": bytes_shown(each.bytes)})


def _facts(user_id: str, summary: Summary) -> dict[str, object]:
    stats = progress = pushed = None
    if summary.payload is not None:
        payload = read_saved(summary.payload).payload
        stats, progress, pushed = payload.stats, payload.progress, payload.last_modified
    return {
        "created_at": summary.created_at,
        "avatar": avatar_url(user_id, summary.avatar),
        "avatar_bytes": summary.avatar_bytes,
        "sessions": summary.sessions,
        "replays": summary.replays,
        "replay_bytes": summary.replay_bytes,
        "pushed_at": pushed,
        "progress_bytes": None if summary.payload is None else len(summary.payload),
        "games_played": stats and stats.games_played,
        "games_won": stats and stats.games_won,
        "level": progress and progress.level,
        "on_leaderboard": summary.visible,
        "display_name": summary.display_name,
        "best_score": summary.best_score,
        "best_time_secs": summary.best_time_secs,
        "best_recorded_at": summary.recorded_at,
    }
