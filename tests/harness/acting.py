"""Moderation acts on the database of a service under test."""

from contextlib import asynccontextmanager

from twisted.internet.task import deferLater

from solisync.acts.act import Acting
from solisync.events.notices import command_notices
from solisync.postgres.database import Database
from solisync.storage.operators.acts import Actor
from solisync.web.shared_cache import SECONDS


@asynccontextmanager
async def operator(reactor, dsn, **options):
    """An object that performs acts, like a command."""
    database = Database(reactor=reactor, size=1, statements=())
    database.open(dsn)
    try:
        yield Acting(database=database, publish=command_notices(database), by=Actor("shell", "operator"), **options)
    finally:
        await database.close(1)


async def act(reactor, dsn, what, target, **given):
    """Perform an act, and wait until every process must have noticed it."""
    async with operator(reactor, dsn) as acting:
        done = await acting.perform(what, target, **given)
    await deferLater(reactor, SECONDS)
    return done
