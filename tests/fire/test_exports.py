"""Exports of full accounts: quick to begin, small in memory, and no delay for other requests."""

import http.client
import json
import socket
import time
from pathlib import Path

import pytest
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.fire.raw import Busy, Watch, head, running
from tests.harness.constants import PATIENCE
from tests.harness.players import players
from tests.harness.postgres import run_sql, truncate

MIB = 2**20
FILL = """
    INSERT INTO replays
        (id, user_id, received_at, body, size, mode, draw_mode, final_score, time_seconds, recorded_at)
    SELECT gen_random_uuid(), %s, now() - make_interval(secs => n), body, octet_length(body), 'Zen', 'DrawOne', '1',
        '1', '2026-01-01'
    FROM generate_series(1, %s) AS n, LATERAL (
        SELECT '{"z": 1.50e+1, "b": "' || %s || string_agg(md5(n::text || piece), '') || '", "a": -0.0}'
            AS body
        FROM generate_series(1, %s) AS piece
    ) AS made
"""


def fill(dsn, user, count, size, beginning="😀"):
    """Store replays of about this size, which don't compress."""
    run_sql(dsn, FILL, (user, count, beginning, size // 32 - 2))


def stored(dsn, user):
    """Return the ids and bodies of a player's replays, oldest first."""
    return run_sql(dsn, "SELECT id::text, body FROM replays WHERE user_id = %s ORDER BY received_at, id", (user,))


def reset_peak(pid):
    """Reset the peak of a process' memory (proc_pid_clear_refs(5)); return its memory in MiB."""
    (Path("/proc") / str(pid) / "clear_refs").write_text("5")
    return memory(pid, "VmRSS")


def memory(pid, field):
    """Return its memory (VmRSS), or the peak of it (VmHWM), in MiB."""
    for line in (Path("/proc") / str(pid) / "status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def export(port, token):
    """Export as a client that reads immediately: (the document, seconds to the first byte and to the last)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    began = time.monotonic()
    connection.request("GET", "/api/me/export", headers={"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    parts = [response.read(1)]
    first = time.monotonic() - began
    while part := response.read(MIB):
        parts.append(part)
    assert response.status == 200
    connection.close()
    return b"".join(parts), first, time.monotonic() - began


@pytest.mark.parametrize(
    ("count", "size", "beginning"),
    [(60, MIB - 200, ""), (60, MIB - 200, "😀"), (1_000, 60_000, "é"), (15_000, 4_000, "")],
)
async def test_export_of_a_full_account_takes_little_memory(serve, shared_dsn, reactor, figure, count, size, beginning):
    """60 MiB of replays of any size take 100 ms to the first byte, and at most 8 MiB. All bodies are complete."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    ((user, _, token),) = players(shared_dsn, 1)
    fill(shared_dsn, user, count, size, beginning)
    run_sql(shared_dsn, "INSERT INTO avatars (user_id, image) SELECT %s, repeat('png!', 262144)::bytea", (user,))
    run_sql(shared_dsn, "UPDATE users SET avatar_extension = 'png'")
    progress = '{"stats": {"😀": "' + "x" * (MIB - 200) + '"}}'
    run_sql(shared_dsn, "INSERT INTO sync_states (user_id, payload) VALUES (%s, %s)", (user, progress))
    await deferLater(reactor, 1)
    before = reset_peak(process.pid)
    document, first, last = await deferToThread(export, process.port, token)
    growth = memory(process.pid, "VmHWM") - before
    figure(
        f"{count:,} replays of {size:,} bytes: {len(document) / MIB:.0f} MiB in {last:.1f} s, first byte"
        f" {first * 1000:.0f} ms, memory {before:.0f} {growth:+.1f} MiB"
    )
    assert len(json.loads(document)["replays"]) == count
    at = 0
    for replay_id, body in stored(shared_dsn, user):
        at = document.index(f'{{"id":"{replay_id}"'.encode(), at)
        at = document.index(f'"body":{body}}}'.encode(), at)
    assert first < 1
    assert growth <= 8


class Slow(Busy):
    """Clients that read an export, each at its rate in KiB a second."""

    def __init__(self, port, tokens, rates):
        super().__init__()
        self.received = [0] * len(rates)
        self._rates = rates
        self._clients = []
        for token in tokens:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
            client.connect(("127.0.0.1", port))
            client.sendall(head("GET", "/api/me/export", f"Authorization: Bearer {token}"))
            client.setblocking(False)
            self._clients.append(client)

    def turn(self):
        for number, (client, rate) in enumerate(zip(self._clients, self._rates, strict=True)):
            try:
                self.received[number] += len(client.recv(rate * 256))
            except OSError:
                continue
        self.ending.wait(0.25)

    def close(self):
        for client in self._clients:
            client.close()


async def test_slow_exports_delay_no_other_request(serve, shared_dsn, reactor, figure):
    """Eight exports at 8 KiB a second run with two connections to the database. Slower ones are cut."""
    truncate(shared_dsn)
    process = await serve(shared_dsn, SOLISYNC_DATABASE_CONNECTIONS="2")
    rates, seconds = [8] * 8 + [1] * 2, 75
    *exporting, (_, _, token) = players(shared_dsn, len(rates) + 1)
    for user, _, _ in exporting:
        fill(shared_dsn, user, 12, MIB - 200)
    bearer = f"Authorization: Bearer {token}"
    watch = Watch(process, {"health": head("GET", "/health"), "me": head("GET", "/api/me", bearer)})
    slow = Slow(process.port, [token for _, _, token in exporting], rates)
    with running(slow, watch):
        await deferLater(reactor, seconds)
        cut = process.log.count("GET /api/me/export 499")
        figure(f"{len(rates)} slow exports for {seconds} s: {watch}; {cut} were cut")
        figure(f"received KiB: {[count // 1024 for count in slow.received]}")
    assert cut == 2
    assert min(slow.received[:8]) > 8 * 1024 * seconds * 0.8
    assert watch.p99("me") < 0.5
    assert watch.growth_mib < 20
