"""`solisync users link`: a link with which a player sets a new password."""

from ..access.passwords import Passwords
from ..acts import players as acts
from ..rules.recovery import digest, new_reset_token, reset_path
from .output import shown
from .task import Task, player


async def link(task: Task) -> None:
    """Make a reset link, and with --lock-out keep everybody out of the account who hasn't got it."""
    async with task.acting() as acting:
        found = await acting.database.run(player, task.chosen.user)
        hashing = Passwords(reactor=task.reactor, threads=task.reactor.getThreadPool(), at_once=1)
        unknown = await hashing.hash_of_nothing() if task.chosen.lock_out else None
        token = new_reset_token()
        done = await acting.perform(acts.LINK, found.id, token_digest=digest(token), password_hash=unknown)
        path = reset_path(token)
        task.output.say(path, id=found.id, username=found.username, path=path, expires_at=done.result)
        if not task.output.json:
            task.output.say(f"for '{found.username}', once, until {shown(done.result)} UTC")
