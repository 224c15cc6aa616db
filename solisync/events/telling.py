"""Notices of a command, which has no bus of its own."""

from contextlib import suppress
from secrets import token_urlsafe

from ..errors import DatabaseError, Unavailable
from ..postgres.database import Database
from ..storage import streams
from .notices import Notice, encode_messages, encode_notice


async def tell(database: Database, *notices: Notice) -> None:
    """Tell all processes of something that has been committed; a notice that can't be sent is lost."""
    messages = encode_messages(token_urlsafe(6), 0, map(encode_notice, notices))
    with suppress(DatabaseError, Unavailable):
        await database.autocommit(streams.notify, messages)
