"""Notices of a command, which has no bus of its own."""

from secrets import token_urlsafe

from twisted.logger import Logger

from ..postgres.database import Database
from ..process.shielded import detached
from ..storage import streams
from .notices import Notice, Publish, encode_messages, encode_notice

_log = Logger()


def telling(database: Database) -> Publish:
    """What tells all processes of something that has been committed, over this database of a command.

    Closing the database waits for what is being sent. A notice that can't be sent is lost, which the log says.
    """

    def publish(*notices: Notice) -> None:
        messages = encode_messages(token_urlsafe(6), 0, map(encode_notice, notices))
        sending = detached(database.run(streams.notify, messages))
        sending.addErrback(lambda failure: _log.warn("could not tell the service: {error}", error=failure.value))

    return publish
