"""A proxy in front of PostgreSQL, which can delay answers until the client waits for them."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

from .processes import is_running

SOCKET = ".s.PGSQL.5432"
READY_FOR_QUERY = b"Z"
POLL_SECONDS = 0.0005


class DatabaseProxy:
    """Listens on a socket in `directory` and forwards to the socket in `server`, in a separate thread.

    If `client` is the pid of a process, an answer is forwarded as a whole, and only while that process sleeps.
    Otherwise the number of times that an answer wakes the process would vary. The process must use the simple protocol,
    in which each answer ends with ReadyForQuery.
    """

    def __init__(self, server: Path, directory: Path) -> None:
        self.client: int | None = None
        self.directory = directory
        self._server = server / SOCKET
        self._loop = asyncio.new_event_loop()
        listening = threading.Event()
        threading.Thread(target=self._run, args=(listening,), daemon=True).start()
        listening.wait()

    def _run(self, listening: threading.Event) -> None:
        async def listen() -> None:
            self._listener = await asyncio.start_unix_server(self._connected, self.directory / SOCKET)
            listening.set()

        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(listen())
        self._loop.run_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(self._server)
        down = asyncio.ensure_future(self._forward_answers(up_reader, writer))
        while data := await reader.read(65_536):
            up_writer.write(data)
        up_writer.close()
        await down

    async def _forward_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = b""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readexactly(5)
                answer += head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
                ready = head[:1] == READY_FOR_QUERY
                if self.client is None or ready:  # each part of an answer would wake the client
                    await self._until_client_sleeps()
                    writer.write(answer)
                    answer = b""
        writer.write(answer)  # the last answer on a connection that PostgreSQL closes
        writer.close()

    async def _until_client_sleeps(self) -> None:
        while self.client is not None and is_running(self.client):
            await asyncio.sleep(POLL_SECONDS)
