"""A real service with its PostgreSQL, both of which can be killed."""

import asyncio
import contextlib
import shutil
import signal
import urllib.request
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.fire.servers import servers
from tests.harness.concurrency import wait_for
from tests.harness.entry_points import SERVE
from tests.harness.postgres import copy_cluster, run_sql
from tests.harness.processes import free_port, launching
from tests.harness.service import environment

LIMITS = {"SOLISYNC_AUTH_LIMIT": "1000/1", "SOLISYNC_GUEST_LIMIT": "1000/1", "SOLISYNC_CHECKERS": "1"}


class Stage:
    """A running service on `port`."""

    def __init__(self, place: Any, launch: Callable[..., Any]) -> None:
        self.port: int = free_port()
        self._place = place
        self._launch = launch
        self._database: Any = None
        self._service: Any = None
        # Blocking work runs in one thread. It starts PostgreSQL, which ends with the thread that has started it.
        self._thread = ThreadPoolExecutor(1)
        self._starting = asyncio.Lock()
        self._restart: asyncio.Task[None] = asyncio.ensure_future(self._start())

    def _start_missing(self) -> None:
        if self._database is None:
            self._database = self._place.make_primary()
        elif self._database.running is None:
            self._database.start()
        if self._service is None or self._service.popen.poll() is not None:
            listen = f"tcp:{self.port}:interface=127.0.0.1"
            settings = environment(self._database.dsn, SOLISYNC_LISTEN=listen, **LIMITS)
            self._service = self._launch(*SERVE, port=self.port, dsn=self._database.dsn, **settings)
        wait_for(self._is_ready)

    def _is_ready(self) -> bool:
        if self._service.popen.poll() is not None:
            raise RuntimeError(f"the service has ended: {self._service.log[-1_000:]}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/health/ready", timeout=5).close()
        except OSError:
            return False
        return True

    async def _start(self) -> None:
        """Start what doesn't run, and wait until the service is ready."""
        async with self._starting:
            await self._run(self._start_missing)

    async def ready(self) -> None:
        """Wait until the service has started, at first or after a kill."""
        await asyncio.shield(self._restart)

    async def kill_service(self) -> None:
        """Kill the service, which another process then replaces."""
        self._again(self._service.stop, signal.SIGKILL)

    async def kill_database(self) -> None:
        """Kill all processes of PostgreSQL, which then starts again."""
        self._again(self._database.kill)

    async def backup(self) -> None:
        """Copy the database, as each night."""
        await self._copied(self._database.directory, self._saved)

    async def restore(self) -> None:
        """Continue with the copy."""
        await self._copied(self._saved, self._database.directory)

    @property
    def _saved(self) -> Path:
        return Path(f"{self._database.directory}.saved")

    async def _copied(self, source: Path, target: Path) -> None:
        """Copy a directory of the database, while nothing runs."""
        await self.ready()
        async with self._starting:
            self._service.stop(signal.SIGKILL)
            self._database.kill()
            await self._run(lambda: shutil.rmtree(target, ignore_errors=True))
            await self._run(lambda: copy_cluster(source, target))
        self._restart = asyncio.ensure_future(self._start())
        await self.ready()

    async def forget(self, account: str) -> None:
        """Forget an account and the key of its guest, as after restoring a backup from before its beginning."""
        for table, column in (("guest_keys", "user_id"), ("users", "id")):
            await asyncio.to_thread(run_sql, self._database.dsn, f"DELETE FROM {table} WHERE {column} = %s", (account,))

    def _again(self, kill: Callable[..., Any], *arguments: Any) -> None:
        kill(*arguments)
        self._restart = asyncio.ensure_future(self._start())

    async def _run(self, work: Callable[[], Any]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def stop(self) -> None:
        """Stop the service."""
        await self.ready()
        await self._run(self._service.stop)
        self._thread.shutdown()


@contextlib.asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """Run a service with its database during the block."""
    with contextlib.ExitStack() as stack:
        logs = Path(stack.enter_context(TemporaryDirectory(prefix="solisync conformance ")))
        place = stack.enter_context(servers())
        stage = Stage(place, stack.enter_context(launching(logs)))
        await stage.ready()
        try:
            yield stage
        finally:
            await stage.stop()
