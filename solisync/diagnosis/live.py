"""Checks of live events: room for streams, and whether processes hear each other."""

import resource
from collections.abc import Iterator
from contextlib import closing
from secrets import token_hex

from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred, TimeoutError

from ..errors import DatabaseError
from ..postgres.connection import Connection
from ..process.open_files import room_for_streams
from ..settings.settings import ServingSettings
from .findings import Finding, fine, note, wrong

HEARD_SECONDS = 2.0


def streams(settings: ServingSettings) -> Iterator[Finding]:
    """Check that a process may have as many open files as its streams need."""
    if settings.streams:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = room_for_streams(settings.streams, hard)
        if most < settings.streams:
            text = f"{hard:,} open files are enough for {most:,} streams, not for {settings.streams:,}"
            yield note("streams", text, "raise LimitNOFILE= of the unit or ulimit -Hn, or lower SOLISYNC_STREAMS")
        else:
            yield fine("streams", f"up to {most:,} in each process")


async def bus(settings: ServingSettings, reactor: ReactorBase, connection: Connection) -> Finding:
    """Check that a process hears what it says, where it would listen; `connection` is one to the database."""
    advice = "set SOLISYNC_BUS_DATABASE_URL to the server without the pooler, see docs/high-availability.md#pgbouncer"
    try:
        if settings.bus_database_url is not None:
            with closing(await Connection.open(reactor, settings.bus_database_url)) as own:
                await _hear_oneself(own, reactor)
        elif connection.server.pooled and not settings.prepared_statements:
            return note("bus", "processes can't hear each other through this pooler", advice)
        else:
            await _hear_oneself(connection, reactor)
    except TimeoutError:
        return wrong("bus", "processes don't hear each other: LISTEN has no effect", advice)
    except DatabaseError as error:
        return wrong("bus", f"processes can't hear each other: {error}", "see that SOLISYNC_BUS_DATABASE_URL is right")
    return fine("bus", "processes hear each other")


async def _hear_oneself(connection: Connection, reactor: ReactorBase) -> None:
    """Listen, and say something; raises TimeoutError when that is not heard."""
    channel, heard = f"solisync_doctor_{token_hex(4)}", Deferred[str]()
    await connection.listen(channel, heard.callback)
    await connection.execute(f"NOTIFY {channel}")
    await heard.addTimeout(HEARD_SECONDS, reactor)
