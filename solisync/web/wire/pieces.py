"""Replies whose body is made while it is sent: in chunks (RFC 9112 §7.1) or, to HTTP/1.0, until the connection ends."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from .backpressure import BackpressureChannel

LAST_CHUNK = b"0\r\n\r\n"


async def send_pieces(channel: BackpressureChannel, pieces: AsyncGenerator[bytes, None], *, chunked: bool) -> None:
    """Send each piece, none of which is empty, and ask for the next one when the client has taken it.

    So one of them at a time is in memory, and counts among what clients leave unread. Raises what `pieces` raises;
    then, and when this is cancelled, the last chunk is missing.
    """
    async with aclosing(pieces):
        await channel.taken()
        async for piece in pieces:
            if chunked:
                channel.write(b"%x\r\n" % len(piece))
            channel.write(piece)
            if chunked:
                channel.write(b"\r\n")
            del piece
            await channel.taken()
    if chunked:
        channel.write(LAST_CHUNK)
