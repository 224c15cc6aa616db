"""The cluster of deploy/patroni on loopback: the same files, with other addresses, directories and passwords."""

import contextlib
import ctypes
import http.client
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psycopg2

from solisync.embedded.programs import as_user, unprivileged_user
from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.postgres import run_sql
from tests.harness.processes import clean_environment, kill, processes_in

FILES = ROOT / "deploy" / "patroni"
NODES = (1, 2, 3)
PASSWORD = "secret"
PASSWORDS = {
    "PATRONI_SUPERUSER_PASSWORD": PASSWORD,
    "PATRONI_REPLICATION_PASSWORD": PASSWORD,
    "PATRONI_REWIND_PASSWORD": PASSWORD,
    "PATRONI_RESTAPI_USERNAME": "patroni",
    "PATRONI_RESTAPI_PASSWORD": PASSWORD,
}
HAPROXY = """
global
    maxconn 1000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend players
    bind 192.0.2.31:8080
    default_backend solisync
"""
READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool"
SECRET_OF_ROLE = "SELECT format('\"%s\" \"%s\"', rolname, rolpassword) FROM pg_authid WHERE rolname = 'solisync'"
LIMITS = ("statement_timeout = '5s'", "lock_timeout = '4s'", "idle_in_transaction_session_timeout = '10s'")
PR_SET_PDEATHSIG = 1


def binaries():
    """Return the directory of the newest PostgreSQL that Debian's packages have installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class Cluster:
    """Three servers, by their numbers, and etcd; in a directory that their user can enter."""

    def __init__(self, place):
        self.place = place
        self.network = f"127.{random.randrange(16, 240)}.2."  # so that two clusters may run on one machine
        self._user = unprivileged_user() if os.geteuid() == 0 else None
        self._started = {}
        for name in ("sockets", *(f"{kind}{number}" for number in NODES for kind in ("etcd", "patroni", "sockets"))):
            self._directory(name)

    def _directory(self, name):
        directory = self.place / name
        directory.mkdir()
        if self._user is not None:
            os.chown(directory, *self._user)
        return directory

    def address(self, number):
        """Return the address of a server, which deploy/patroni has in another network."""
        return f"{self.network}{number}"

    def file(self, name, number=1, **replaced):
        """Write a file of deploy/patroni for server `number` into the cluster's directory."""
        text = (FILES / name).read_text("utf-8")
        own = ("name: node1", "://192.0.2.11:23", "listen: 192.0.2.11", "connect_address: 192.0.2.11")
        lines = []
        for line in text.splitlines():
            mine = any(word in line for word in own) and "initial-cluster:" not in line
            lines.append(line.replace("node1", f"node{number}").replace("2.11", f"2.1{number}") if mine else line)
        paths = {
            "/var/lib/postgresql/solisync": f"{self.place}/patroni{number}/data",
            "/var/run/postgresql": f"{self.place}/sockets{number}",
            "/var/lib/etcd/solisync": f"{self.place}/etcd{number}/data",
            "/etc/pgbouncer": str(self.place),
            "/usr/lib/postgresql/15/bin": str(binaries()),
            "192.0.2.0/24": "127.0.0.0/8",
            "192.0.2.": self.network,
            "mode: automatic": "mode: off",  # a machine has one watchdog, and here three servers
        }
        text = "\n".join(lines) + "\n"
        for old, new in (paths | replaced).items():
            text = text.replace(old, new)
        path = self.place / f"{number}-{name}"
        path.write_text(text)
        path.chmod(0o644)
        return path

    def run(self, *words, cwd=None, name):
        """Start a program that ends with this process, as a user whom PostgreSQL accepts; it logs to NAME.log."""
        libc = ctypes.CDLL(None)
        with (self.place / f"{name}.log").open("ab") as log:
            self._started[name] = subprocess.Popen(
                [str(word) for word in words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd or self.place,
                env=clean_environment(HOME=cwd or self.place, **PASSWORDS),  # Patroni writes its .pgpass there
                start_new_session=True,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
                **as_user(self._user),
            )
        return self._started[name]

    def start(self):
        """Make the cluster, and a database for solisync."""
        for number in NODES:
            self.start_etcd(number)
        for number in NODES:
            self.start_server(number)
        wait_for(lambda: self.healthy, 2 * PATIENCE)
        primary = self.primary
        self.sql(primary, f"CREATE ROLE solisync LOGIN PASSWORD '{PASSWORD}'")
        self.sql(primary, "CREATE DATABASE solisync OWNER solisync")
        return self

    def start_etcd(self, number):
        """Start a member of etcd."""
        self.run("etcd", "--config-file", self.file("etcd.conf.yml", number), name=f"etcd{number}")

    def start_server(self, number):
        """Start Patroni on a server, which starts PostgreSQL."""
        directory = self.place / f"patroni{number}"
        self.run("patroni", self.file("patroni.yml", number), cwd=directory, name=f"patroni{number}")

    def dsn(self, number, *, user="solisync", dbname="solisync"):
        """Return a DSN of one server."""
        return f"host={self.address(10 + number)} user={user} password={PASSWORD} dbname={dbname} connect_timeout=2"

    @property
    def url(self):
        """Return the DATABASE_URL of deploy/patroni/solisync.env."""
        (line,) = [
            line for line in self.file("solisync.env").read_text().splitlines() if line.startswith("DATABASE_URL")
        ]
        return line.partition("=")[2]

    def sql(self, number, statement):
        """Run a statement on a server, as its superuser."""
        return run_sql(self.dsn(number, user="postgres", dbname="postgres"), statement)

    def state(self):
        """Return Patroni's state of each reachable server: {number: {"role": …, "state": …, "sync_standby": …}}."""
        for number in NODES:
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                asked = http.client.HTTPConnection(self.address(10 + number), 8008, timeout=2)
                asked.request("GET", "/cluster")
                members = json.loads(asked.getresponse().read())["members"]
                return {int(member["name"].removeprefix("node")): member for member in members}
        return {}

    @property
    def primary(self):
        """Return the number of the server that takes writes; None while there is none, or two."""
        found = [number for number in NODES if self.is_primary(number)]
        return found[0] if len(found) == 1 else None

    def is_primary(self, number):
        """Return whether a server answers and takes writes."""
        with contextlib.suppress(psycopg2.Error):
            return self.sql(number, READ_ONLY) == [(False,)]
        return False

    @property
    def synchronous(self):
        """Return the number of the standby that commits wait for, or None."""
        found = [number for number, member in self.state().items() if member["role"] == "sync_standby"]
        return found[0] if found else None

    @property
    def healthy(self):
        """Return whether there are a primary, a synchronous standby and another one, all streaming."""
        roles = sorted(
            member["role"] for member in self.state().values() if member["state"] in ("running", "streaming")
        )
        return roles == ["leader", "replica", "sync_standby"] and self.primary is not None

    def pids(self, number):
        """Return the processes of Patroni and PostgreSQL of a server."""
        return list(processes_in(self.place / f"patroni{number}"))

    def signal(self, pids, how):
        """Send a signal to these processes."""
        for pid in pids:
            kill(pid, how)

    def kill_server(self, number):
        """Kill Patroni and PostgreSQL of a server together."""
        while pids := self.pids(number):
            self.signal(pids, signal.SIGKILL)
            self._started[f"patroni{number}"].wait(PATIENCE)
            time.sleep(0.05)

    def freeze_server(self, number):
        """Stop Patroni and PostgreSQL of a server: clients still connect, and get no answer."""
        frozen = set()
        while new := set(self.pids(number)) - frozen:
            self.signal(new, signal.SIGSTOP)
            frozen |= new

    def thaw_server(self, number):
        """Let a frozen server continue."""
        self.signal(self.pids(number), signal.SIGCONT)

    def freeze_etcd(self, *, thaw=False):
        """Stop all of etcd, or let it continue."""
        how = signal.SIGCONT if thaw else signal.SIGSTOP
        self.signal([self._started[f"etcd{number}"].pid for number in NODES], how)

    def switch_over(self):
        """Have Patroni make the synchronous standby the primary, in good order."""
        config = self.file("patroni.yml", 1)
        words = ["patronictl", "-c", config, "switchover", "--force", "--candidate", f"node{self.synchronous}"]
        subprocess.run(map(str, words), check=True, env=clean_environment(**PASSWORDS), stdout=subprocess.DEVNULL)

    def start_proxies(self):
        """Start HAProxy, and PgBouncer behind it; return the DATABASE_URL that leads through both."""
        text = HAPROXY.replace("192.0.2.", self.network) + self.file("haproxy.cfg").read_text()
        file = self.place / "haproxy.cfg"
        file.write_text(text)
        primary = self.primary
        ((secret,),) = self.sql(primary, SECRET_OF_ROLE)
        (self.place / "userlist.txt").write_text(f"{secret}\n")
        for setting in LIMITS:
            self.sql(primary, f"ALTER ROLE solisync SET {setting}")
        self.run("haproxy", "-f", file, name="haproxy")
        self.run("pgbouncer", self.file("pgbouncer.ini"), name="pgbouncer")
        return f"postgresql://solisync:{PASSWORD}@{self.address(31)}:6432/solisync"

    def end(self):
        """Kill all processes of this cluster."""
        for number in NODES:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.kill_server(number)
        for process in self._started.values():
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)
