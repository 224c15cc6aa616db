"""Floods of logins and of password changes: bcrypt uses its full capacity, and nothing else is slower."""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bcrypt
import pytest_twisted
from twisted.internet.defer import ensureDeferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from solisync.access import passwords
from solisync.process.cores import usable_cores
from tests.fire.raw import Watch, head, running, volley
from tests.harness.constants import PASSWORD
from tests.harness.http_requests import new_address
from tests.harness.players import players
from tests.harness.postgres import run_sql
from tests.harness.processes import free_port
from tests.harness.service import environment, ready

BUSY = 10  # how many times slower than the targets a busy machine may be
CORES = usable_cores()


@pytest_twisted.async_fixture
async def production(launch, reactor, empty_database):
    """`solisync` itself, with bcrypt at its real cost."""
    port = free_port()
    variables = environment(empty_database, SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1")
    process = launch(Path(sys.executable).parent / "solisync", port=port, dsn=empty_database, **variables)
    await ready(reactor, process.client())
    return process


def hashes_per_second(seconds):
    """Return the rate of bcrypt alone with every core, in threads with the service's niceness."""
    hashed = bcrypt.hashpw(b"x", bcrypt.gensalt(passwords.COST))

    def work(_):
        os.setpriority(os.PRIO_PROCESS, 0, 10)  # of this thread
        began, done = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            bcrypt.checkpw(b"x", hashed)
            done += 1
        return done / (time.monotonic() - began)

    with ThreadPoolExecutor(CORES) as executor:
        return sum(executor.map(work, range(CORES)))


def login(name="ann", password=PASSWORD):
    """Log in from a new address."""
    body = f'{{"username": "{name}", "password": "{password}"}}'
    lines = [f"X-Forwarded-For: {new_address()}", f"Content-Length: {len(body)}"]
    return head("POST", "/api/auth/login", *lines) + body.encode()


async def test_flood_of_logins_delays_no_other_request(production, figure):
    """Logins beyond the capacity of the cores are declined; the others keep every core busy."""
    player = await production.player("ann")
    bearer = f"Authorization: Bearer {player.tokens.access_token}"
    asked = {"health": head("GET", "/health"), "me": head("GET", "/api/me", bearer)}
    count, seconds = 500, 4
    ratios = []
    alone = await deferToThread(hashes_per_second, seconds)
    for _ in range(3):
        watch = Watch(production, asked)
        with running(watch):
            began = time.process_time()
            answers = await deferToThread(volley, production.port, [login() for _ in range(count)])
            own = time.process_time() - began
        before, alone = alone, await deferToThread(hashes_per_second, seconds)
        served = [when for status, when in answers if status == 200]
        ratios.append(len(served) / served[-1] / ((before + alone) / 2))
        figure(
            f"{count} logins: {len(served)} served, the last after {served[-1]:.1f} s, {len(served) / served[-1]:.2f}/s"
            f" where bcrypt alone does {(before + alone) / 2:.2f}/s, {ratios[-1]:.0%}; {watch};"
            f" the test itself took {own / served[-1]:.1%} of a core"
        )
        assert {status for status, _ in answers} <= {200, 503}
        assert served[-1] < BUSY * passwords.QUEUE_SECONDS
        assert watch.p99("health") < 0.05 * BUSY
        assert watch.p99("me") < 0.1 * BUSY
    assert max(ratios) > 0.3  # 0.9 where nobody else wants the cores


def new_password(token, current):
    """Change the password to the same one, from a new address."""
    body = f'{{"current_password": "{current}", "new_password": "{PASSWORD}"}}'
    lines = [f"X-Forwarded-For: {new_address()}", f"Authorization: Bearer {token}", f"Content-Length: {len(body)}"]
    return head("PUT", "/api/me/password", *lines) + body.encode()


async def test_flood_of_password_changes_delays_no_other_request(production, figure):
    """A hundred players change their passwords as often as allowed, with right and wrong old ones."""
    tokens = [token for _, _, token in players(production.dsn, 101)]
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(passwords.COST)).decode()
    run_sql(production.dsn, "UPDATE users SET password_hash = %s", (hashed,))
    watch = Watch(
        production,
        {"health": head("GET", "/health"), "me": head("GET", "/api/me", f"Authorization: Bearer {tokens.pop()}")},
    )
    flood = [new_password(token, current) for current in (PASSWORD, "wrong") * 2 for token in tokens]
    with running(watch):
        answers = await deferToThread(volley, production.port, flood)
    counted = Counter(status for status, _ in answers)
    figure(f"{len(flood)} new passwords: {dict(counted)}, the last after {answers[-1][1]:.1f} s; {watch}")
    assert counted[200]
    assert set(counted) <= {200, 401, 503}
    assert watch.p99("health") < 0.05 * BUSY
    assert watch.p99("me") < 0.1 * BUSY


async def test_abandoned_logins_are_not_hashed(production, reactor, figure):
    """Logins whose clients hang up in the queue cost nothing: the next one doesn't wait for them."""
    await production.player("ann")
    began = time.monotonic()
    await production.client().login("ann", PASSWORD)
    alone = time.monotonic() - began
    body = {"username": "ann", "password": PASSWORD}
    waiting = [ensureDeferred(production.ask("POST", "/api/auth/login", body=body)) for _ in range(30)]
    await deferLater(reactor, 4 * alone)
    for abandoned in waiting:
        abandoned.addErrback(lambda _: None)
        abandoned.cancel()
    began = time.monotonic()
    await production.client().login("ann", PASSWORD)
    figure(f"alone {alone:.2f} s, after 30 that hung up {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < 10 * alone
