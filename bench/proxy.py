"""A proxy in front of PostgreSQL that counts round trips: how often the server says that it is ready for a query."""

import asyncio
import threading
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
READY_FOR_QUERY = b"Z"


class CountingProxy:
    """Listens in `directory` and forwards to the server whose socket is in `server`; runs in a thread of its own."""

    def __init__(self, server: Path, directory: Path) -> None:
        self.count = 0
        self._server = server / SOCKET
        self._directory = directory
        self._loop = asyncio.new_event_loop()
        listening = threading.Event()
        threading.Thread(target=self._run, args=(listening,), daemon=True).start()
        listening.wait()

    def _run(self, listening: threading.Event) -> None:
        async def listen() -> None:
            self._listener = await asyncio.start_unix_server(self._connected, self._directory / SOCKET)
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
        try:
            while True:
                head = await reader.readexactly(5)
                body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
                self.count += head[:1] == READY_FOR_QUERY
                writer.write(head + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
