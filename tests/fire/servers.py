"""PostgreSQL servers as operators have them: on TCP, replicated, promoted, frozen and killed, beside services."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg2
from psycopg2.extensions import POLL_OK
from psycopg2.extras import wait_select

from solisync.embedded.programs import ENVIRONMENT, as_user, find_binaries, unprivileged_user
from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE
from tests.harness.postgres import copy_cluster, run_sql
from tests.harness.processes import free_port, kill, postmaster, processes_in

SETTINGS = {"fsync": "off", "full_page_writes": "off", "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
PR_SET_PDEATHSIG = 1


def is_back(embedded, old):
    """Return whether an embedded server, killed under the process id `old`, runs again and answers."""
    try:
        return postmaster(embedded.data_dir) not in (old, None) and run_sql(embedded.dsn, "SELECT 1")
    except Exception:
        return False


def freeze(directory):
    """Stop every process of the server in this directory: clients still connect, and get no answer."""
    frozen = set()
    while new := set(processes_in(directory)) - frozen:  # a running process may have started others
        for pid in new:
            kill(pid, signal.SIGSTOP)
        frozen |= new


def thaw(directory):
    """Let a frozen server continue."""
    for pid in processes_in(directory):
        kill(pid, signal.SIGCONT)


class Server:
    """A PostgreSQL in its own directory; `running` is None or its first process."""

    def __init__(self, place, name, settings):
        self.directory = place.path / name
        self.port = free_port()
        self.running = None
        self._place = place
        self._settings = SETTINGS | {"port": self.port} | settings

    @property
    def dsn(self):
        return f"host=127.0.0.1 port={self.port} user=solisync dbname=postgres"

    def sql(self, statement):
        return run_sql(self.dsn, statement)

    def start(self):
        """Start, and wait until the server accepts connections."""
        words = [f"--{name}={value}" for name, value in self._settings.items()]
        with (self._place.path / f"{self.directory.name}.log").open("ab") as log:
            self.running = self._place.run("postgres", "-D", self.directory, *words, stdout=log, stderr=log)
        wait_for(self.answers)
        return self

    def answers(self):
        """Return whether the server accepts connections and answers."""
        with contextlib.suppress(psycopg2.Error):
            return self.sql("SELECT 1") == [(1,)]
        return False

    def follow(self, primary):
        """Become a streaming standby of `primary`, whose commits wait for it from now on, and start."""
        words = ["-D", self.directory, "-d", f"{primary.dsn} application_name=standby", "-R", "-X", "stream"]
        assert self._place.run("pg_basebackup", *words, "--checkpoint=fast", "--no-sync").wait(PATIENCE) == 0
        self.start()
        primary.change("synchronous_standby_names", "standby")
        streaming = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
        wait_for(lambda: primary.sql(streaming))
        return self

    def promote(self):
        """Stop following and accept writes; return the time of the promotion."""
        assert self.sql("SELECT pg_promote()") == [(True,)]
        return time.monotonic()

    def wait_for_standby(self, name):
        """Let every commit wait for the standby of this name, and hang while it is away; "" ends that."""
        self.change("synchronous_standby_names", name)
        # Whether a commit waits is in shared memory, where the checkpointer writes it when it has read the setting.
        wait_for(lambda: self._commit_hangs() == bool(name))
        wait_for(lambda: bool(name) or not self.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))

    def change(self, setting, value):
        """Change a setting for all connections: each reads it before its next statement.

        A connection that is made after the first process has read the file shows the value; by then that process has
        also notified all the others.
        """
        self.sql(f"ALTER SYSTEM SET {setting} = '{value}'")
        self.sql("SELECT pg_reload_conf()")
        wait_for(lambda: self.sql(f"SHOW {setting}") == [(value,)])

    def _commit_hangs(self):
        """Return whether a commit waits for a standby now."""
        watched = "SELECT state, wait_event FROM pg_stat_activity WHERE pid = %s"
        with contextlib.closing(psycopg2.connect(self.dsn, async_=True)) as probe:
            wait_select(probe)
            pid = probe.info.backend_pid
            cursor = probe.cursor()
            cursor.execute("SELECT pg_logical_emit_message(true, 'probe', '')")
            wait_for(lambda: probe.poll() == POLL_OK or run_sql(self.dsn, watched, (pid,)) == [("active", "SyncRep")])
            hangs = probe.poll() != POLL_OK
            run_sql(self.dsn, "SELECT pg_terminate_backend(%s, 10000)", (pid,))
        return hangs

    def become_read_only(self):
        """Refuse to write from now on, without closing a connection; return when running writes have ended."""
        self.change("default_transaction_read_only", "on")
        writing = "SELECT 1 FROM pg_stat_activity WHERE xact_start IS NOT NULL AND application_name = 'solisync'"
        wait_for(lambda: not self.sql(writing))

    def freeze(self):
        freeze(self.directory)

    def thaw(self):
        thaw(self.directory)

    def kill(self):
        """Kill all its processes together, as a power cut would."""
        while pids := processes_in(self.directory):
            for pid in pids:
                kill(pid)
            self.running.wait(PATIENCE)
        self.running = None


class Servers:
    """A maker of servers, in a place that their user can access."""

    def __init__(self, path, *, cluster=None, binaries=None):
        self.path = path
        self.user = unprivileged_user() if os.geteuid() == 0 else None
        path.chmod(0o755)
        if self.user is not None:
            os.chown(path, *self.user)
        self._cluster = cluster
        self._binaries = binaries or find_binaries(path, self.user)
        self._made = []

    def make(self, name, **settings):
        """Return a server that hasn't been started."""
        server = Server(self, name, settings)
        self._made.append(server)
        return server

    def make_primary(self, name="primary", **settings):
        """Return a running server with an empty cluster."""
        server = self.make(name, **settings)
        if self._cluster is not None:
            copy_cluster(self._cluster, server.directory)
        else:
            words = ["-D", server.directory, "-U", "solisync", "-A", "trust", "-E", "UTF8", "--no-sync"]
            assert self.run("initdb", *words, "--locale=C", stdout=subprocess.DEVNULL).wait(PATIENCE) == 0
        return server.start()

    def run(self, program, *words, **options):
        """Start one of PostgreSQL's programs, which ends with this process."""
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None

        def die_with_parent():
            os.setpgid(0, 0)
            if libc is not None:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)

        return subprocess.Popen(
            [self._binaries / program, *map(str, words)],
            stdin=subprocess.DEVNULL,
            cwd=self.path,
            env=ENVIRONMENT,
            preexec_fn=die_with_parent,
            **as_user(self.user),
            **options,
        )

    def end(self):
        """Kill all running servers."""
        for server in self._made:
            if server.running is not None:
                server.kill()


@contextlib.contextmanager
def servers(*, cluster=None, binaries=None):
    """Servers for one test or one module: copies of a cluster of the embedded PostgreSQL, or made with `binaries`."""
    with tempfile.TemporaryDirectory(prefix="solisync servers ") as name:
        made = Servers(Path(name), cluster=cluster, binaries=binaries)
        try:
            yield made
        finally:
            made.end()


def all_hosts(*made, wanted="read-write"):
    """Return the DATABASE_URL that names several servers."""
    ports = ",".join(str(server.port) for server in made)
    hosts = ",".join(["127.0.0.1"] * len(made))
    return f"host={hosts} port={ports} user=solisync dbname=postgres target_session_attrs={wanted}"
