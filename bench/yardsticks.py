"""Yardsticks without a server: the same SQL by pgbench and psycopg2, bcrypt alone, and wrk instead of the generator."""

import json
import os
import random
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import bcrypt
import psycopg2

from solisync.access.tokens import access_expiry
from solisync.postgres.statement import Statement
from solisync.rules.counting import NO_GAMES
from solisync.storage import accounts, sync

from .world import PASSWORD, World, identity, issued_at, payload

CONNECTIONS = 8  # as many as a process of solisync keeps
PREPARED = (accounts.PROFILE, accounts.LOCK, sync.PULL, sync.LOAD, sync.SAVE, sync.REMEMBER)


def _inline(statement: Statement) -> str:
    """Rewrite a statement for pgbench, with the variables n, a player's number, document, counted and expiry."""
    sql = re.sub(r"\$\d::(text\[\]|\w+)", lambda match: _VALUES[match[0]], statement.sql)
    return " ".join(sql.split()) + ";"


_PLAYER = "md5('user ' || :n)::uuid"
_VALUES = {
    "$1::uuid": _PLAYER,  # of a session, too
    "$2::uuid": _PLAYER,
    "$2::bigint": ":expiry::bigint",
    "$2::text": ":document::text",
    "$3::text": ":counted::text",
    "$4::text[]": "ARRAY[:counted]::text[]",
    "$5::text[]": "ARRAY[:counted]::text[]",
}


# As in solisync, a push is two round trips: pgbench sends each pipeline in one.
_PUSH = (
    "\\startpipeline",
    "BEGIN;",
    _inline(accounts.LOCK),
    _inline(sync.LOAD),
    "\\endpipeline",
    "\\startpipeline",
    _inline(sync.SAVE),
    _inline(sync.REMEMBER),
    "COMMIT;",
    "\\endpipeline",
)
SCRIPTS = {"me": (_inline(accounts.PROFILE),), "pull": (_inline(sync.PULL),), "push": _PUSH}


def pgbench(program: Path, socket_dir: Path, world: World, route: str, seconds: float) -> float:
    """Run the statements of a route with pgbench; returns transactions per second."""
    script = "\n".join([f"\\set n random(0, {world.players - 1})", *SCRIPTS[route]])
    document = json.dumps(payload(world.document_bytes), separators=(",", ":"))
    words = [program, "-n", "-M", "prepared", "-c", CONNECTIONS, "-T", max(1, round(seconds)), "-f", "/dev/stdin"]
    words += ["-D", f"document={document}", "-D", f"counted={NO_GAMES.encode()}"]
    words += ["-D", f"expiry={access_expiry(issued_at())}", "-h", socket_dir, "-U", "solisync", "postgres"]
    done = subprocess.run(
        [str(word) for word in words], input=script, stdout=subprocess.PIPE, text=True, check=True, env={"LC_ALL": "C"}
    )
    match = re.search(r"^tps = ([\d.]+)", done.stdout, re.M)
    assert match is not None, done.stdout
    return float(match[1])


class Psycopg2Loop:
    """Threads that run the statements of a route in a loop, each on a connection of its own."""

    def __init__(self, socket_dir: Path, world: World) -> None:
        self._socket_dir = socket_dir
        self._world = world
        self._document = json.dumps(payload(world.document_bytes), separators=(",", ":"))
        self._expiry = access_expiry(issued_at())
        self._counted = NO_GAMES.encode()

    def rate(self, route: str, seconds: float) -> float:
        """Run the statements of a route for `seconds`; returns runs per second."""
        connections = [self._connect() for _ in range(CONNECTIONS)]
        end = time.monotonic() + seconds
        counts: list[int] = []
        threads = [
            threading.Thread(target=self._loop, args=(connection, getattr(self, f"_{route}"), end, counts))
            for connection in connections
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for connection in connections:
            connection.close()
        return sum(counts) / seconds

    def _connect(self) -> Any:
        connection = psycopg2.connect(host=str(self._socket_dir), user="solisync", dbname="postgres")
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("; ".join(statement.preparation for statement in PREPARED))
        return connection

    def _loop(self, connection: Any, run: Any, end: float, counts: list[int]) -> None:
        count = 0
        with connection.cursor() as cursor:
            while time.monotonic() < end:
                run(cursor, identity("user", random.randrange(self._world.players)))
                count += 1
        counts.append(count)

    def _me(self, cursor: Any, player: str) -> None:
        cursor.execute(accounts.PROFILE.execution, (player,))
        cursor.fetchall()

    def _pull(self, cursor: Any, player: str) -> None:
        cursor.execute(sync.PULL.execution, (player, self._expiry))
        cursor.fetchall()

    def _push(self, cursor: Any, player: str) -> None:
        reading = f"BEGIN; {accounts.LOCK.execution}; {sync.LOAD.execution}"
        cursor.execute(reading, (player, player, self._expiry))
        cursor.fetchall()
        told = [self._counted]
        writing = f"{sync.SAVE.execution}; {sync.REMEMBER.execution}; COMMIT"
        # the id of a world's session is its player's
        cursor.execute(writing, (player, self._document, self._counted, player, player, self._counted, told, told))


def bcrypt_rate(seconds: float) -> float:
    """Verify passwords on all cores for `seconds`; returns verifications per second."""
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(12))
    end = time.monotonic() + seconds
    spent: list[tuple[int, float]] = []

    def verify() -> None:
        count, began = 0, time.monotonic()
        while time.monotonic() < end:
            bcrypt.checkpw(PASSWORD.encode(), hashed)
            count += 1
        spent.append((count, time.monotonic() - began))

    threads = [threading.Thread(target=verify) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(count / elapsed for count, elapsed in spent)


def wrk(port: int, path: str, connections: int, seconds: float) -> float:
    """Run wrk against a path; returns requests per second."""
    words = ["wrk", "-t", "1", "-c", connections, "-d", max(1, round(seconds)), f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    match = re.search(r"^Requests/sec: +([\d.]+)", done.stdout, re.M)
    assert match is not None, done.stdout
    return float(match[1])
