"""The metrics that Prometheus scrapes, which agree with docs/metrics.md."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
from pathlib import Path

import pytest
from psycopg2.extensions import parse_dsn
from twisted.internet.threads import deferToThread

from solisync.process import shared_metrics
from solisync.process.scrape import scrape_site
from solisync.supervisor import worker_environ
from tests.harness.constants import PASSWORD, PATIENCE, ROOT
from tests.harness.entry_points import SOLISYNC, serving, start
from tests.harness.games import game
from tests.harness.payloads import progress_of
from tests.harness.postgres import truncate
from tests.harness.processes import children, descriptors, free_port, replaced, wait_until_ready, workers
from tests.harness.scraping import DOCUMENTED, Scraped
from tests.harness.service import POOL_SIZE
from tests.web.browser import Browser
from tests.wire.sockets import exchange, parse


@pytest.fixture
def scraped(serve, shared_dsn):
    """Start a separate service with a listener for metrics."""

    async def scraped(**variables):
        port = free_port()
        process = await serve(shared_dsn, SOLISYNC_METRICS_LISTEN=f"tcp:{port}:interface=127.0.0.1", **variables)
        return Scraped(process, port)

    return scraped


@pytest.fixture(scope="module")
def scraped_service(reactor, logs, shared_dsn):
    """A single process, which ignores the directory for the metrics of several."""
    port = free_port()
    given = {"SOLISYNC_METRICS_LISTEN": f"tcp:{port}:interface=127.0.0.1", shared_metrics.VARIABLE: "/nonexistent"}
    with serving(reactor, logs, shared_dsn, **given) as process:
        yield Scraped(process, port)


@pytest.fixture
def service(scraped_service):
    """The service of most of these tests, with an empty database; its counters continue from test to test."""
    truncate(scraped_service.process.dsn)
    return scraped_service


async def test_scrape_and_documentation_agree(service):
    """After one request a scrape has the metrics of docs/metrics.md with their labels, and no other."""
    await service.process.ask("GET", "/health")
    await service.reaches(POOL_SIZE, "database_connections", state="idle")  # which servers there are is known by then
    documented = {
        name: {label.strip(" `") for label in labels.split(",") if label.strip(" `")}
        for name, labels in DOCUMENTED.findall((ROOT / "docs" / "metrics.md").read_text("utf-8"))
    }
    found = {}
    for family in await service.families():
        name = family.name + ("_total" if family.type == "counter" else "")
        found[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
    assert documented.pop("solisync_disk_free_bytes") == set()  # the service has no embedded database
    assert found == documented


async def test_scrape_of_a_node_has_ready_and_dead_workers_and_the_disk(launch, reactor, initialized, place):
    data_dir, port = initialized(place / "data"), free_port()
    words = ("--workers=2", f"--metrics-listen=tcp:{port}:interface=127.0.0.1")
    process = start(launch, *SOLISYNC, *words, data_dir=data_dir)
    service = Scraped(process, port)
    await deferToThread(wait_until_ready, process, 2)
    await service.reaches(2, "ready")
    os.kill(min(workers(process)), signal.SIGKILL)
    await deferToThread(wait_until_ready, process, 3)
    await service.reaches(2, "ready")
    assert await service.value("worker_deaths_total") == 1
    assert 0 < await service.value("disk_free_bytes") <= shutil.disk_usage(data_dir).total
    assert process.stop() == 0


@pytest.mark.parametrize("count", ["1", "2"])
async def test_no_metric_appears_twice(scraped, count):
    """Prometheus would keep one of the two values. The parent of workers adds its own metrics to theirs."""
    service = await scraped(SOLISYNC_WORKERS=count)
    names = [family.name for family in await service.families()]
    assert sorted(set(names)) == sorted(names)
    assert "solisync_worker_deaths" in names


async def test_requests_are_counted_by_route(service):
    """The labels are method, template and status. An unknown route has no name that a client could choose."""
    before = await service.numbers()
    for path in ("/api/replays/11111111-1111-4111-8111-111111111111", "/api/replays/x"):
        await service.process.ask("GET", path)
    for method, path in (("GET", "/nowhere"), ("BREW", "/coffee"), ("BREW", "/api/me")):
        await service.process.ask(method, path)
    labels = {"method": "GET", "route": "/api/replays/{replay_id}"}
    assert await service.added(before, "http_requests_total", **labels, status="404") == 2
    assert await service.added(before, "http_request_seconds_count", **labels) == 2
    assert await service.added(before, "http_requests_total", method="", route="", status="404") == 2
    assert await service.added(before, "http_requests_total", method="", route="", status="405") == 1


async def test_accounts_and_pushes_are_counted(service):
    """Examples are spent tokens, refusals, logins, merges, conflicts, events and hashed passwords."""
    before = await service.numbers()
    player = await service.process.player()
    token, spent = player.tokens.access_token, player.tokens.refresh_token
    for _ in range(2):
        await player.refresh()
    await service.process.ask("POST", "/api/auth/refresh", body={"refresh_token": spent})
    for number in range(12):
        await service.process.ask("POST", "/api/auth/refresh", body={"refresh_token": str(number)}, address="10.1.1.1")
    for streak in (1, 2):
        pushed = progress_of(stats__win_streak_current=streak)
        assert (await service.process.ask("POST", "/api/sync/push", body=pushed, bearer=token)).status == 200
    event = {"id": "11111111-1111-4111-8111-111111111111", "event_type": "won", "client_time": "2026-01-01T00:00:00Z"}
    batch = {"session_id": "s", "events": [event, event, event | {"event_type": "No"}]}
    assert (await service.process.ask("POST", "/api/analytics", body=batch)).status == 200
    won = game()
    games = {"games": [won, won, game(won=None)]}
    assert (await service.process.ask("POST", "/api/games", body=games, bearer=token)).status == 200
    for name, password in (("ann", PASSWORD), ("ann", PASSWORD + "!"), ("nobody", PASSWORD)):
        await service.process.ask("POST", "/api/auth/login", body={"username": name, "password": password})
        await Browser(service.process).begin(name, password)

    async def added(name, label, *values):
        return [await service.added(before, name, **{label: value}) for value in values]

    assert await service.added(before, "refresh_token_reuse_total") == 1
    assert await service.added(before, "hash_wait_seconds_count") == 7
    assert await added("rate_limit_refusals_total", "limit", "auth") == [2]
    merged = await added("sync_merges_total", "basis", "counted", "maximum", "stale")
    assert merged == [0, 2, 0]  # the token is two refreshes old, and names no session
    assert await added("sync_conflicts_total", "field", "win_streak_current") == [1]
    assert await added("analytics_events_total", "outcome", "accepted", "duplicate", "rejected") == [1, 1, 1]
    assert await added("games_total", "outcome", "counted", "known", "refused") == [1, 1, 1]
    assert await added("logins_total", "outcome", "ok", "wrong") == [2, 4]


@pytest.mark.long
async def test_lost_connections_are_counted(service):
    """The pool replaces connections that the server closed; its sampled numbers follow within seconds."""
    await service.reaches(POOL_SIZE, "database_connections", state="idle")
    before = await service.value("database_connections_lost_total")
    service.process.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'solisync' AND datname = current_database()"
    )
    await service.reaches(before + POOL_SIZE, "database_connections_lost_total")
    await service.reaches(POOL_SIZE, "database_connections", state="idle")


async def test_one_scrape_covers_all_workers(scraped, shared_dsn, full):
    """Counters are sums over all workers, including those that have ended; gauges cover running ones.

    Connections are counted by server, which is the host and port of the DSN. The files with the numbers are not in
    the PROMETHEUS_MULTIPROC_DIR of other programs, and those of former workers are deleted. They have their full
    size from the start: on a full disk, a memory map without it would end the process.
    """
    leftover = {shared_metrics.VARIABLE: "/nonexistent"}
    assert worker_environ(leftover, {}) == {}
    service = await scraped(SOLISYNC_WORKERS="2", **leftover if full else {})  # with it, nothing could be forked
    process = service.process
    await deferToThread(wait_until_ready, process, 2)
    files = files_of_metrics(process)
    assert len(files) == 2 + 2 * 4
    assert all(file.st_blocks * 512 >= file.st_size for file in files.values())
    labels = {"method": "GET", "route": "/api/daily-challenge", "status": "200"}
    for _ in range(40):
        await process.ask("GET", "/api/daily-challenge")
    assert await service.value("http_requests_total", **labels) == 40
    server = "{host}:{port}".format_map(parse_dsn(shared_dsn))
    await service.reaches(2 * POOL_SIZE, "database_server_connections", server=server)
    assert process.log.count(f"connected to the database: {server}") == 2
    os.kill(process.pid, signal.SIGHUP)
    await deferToThread(replaced, process)
    numbers = {re.search(r"_(\d+)\.db$", name)[1] for name in files_of_metrics(process)}
    assert numbers == {"0", *map(str, workers(process))}
    for _ in range(10):
        await process.ask("GET", "/api/daily-challenge")
    assert await service.value("http_requests_total", **labels) == 50
    await service.reaches(2 * POOL_SIZE, "database_connections", state="idle")
    for victim in workers(process):
        os.kill(victim, signal.SIGKILL)
    await deferToThread(wait_until_ready, process, 6)
    assert await service.value("http_requests_total", **labels) == 50
    await service.reaches(2 * POOL_SIZE, "database_connections", state="idle")
    assert process.stop() == 0


def files_of_metrics(process):
    """Return the files in which the workers of a process keep their numbers, as {name: status}."""
    worker = min(workers(process))
    (file,) = [Path(name) for name in descriptors(worker) if name.endswith(f"/counter_{worker}.db")]
    return {file.name: file.stat() for file in file.parent.iterdir()}


@pytest.mark.long
async def test_service_without_room_for_metrics_serves(launch, reactor, shared_dsn):
    """Scrapes have the metrics of the node alone, and the log has the reason."""
    port = free_port()
    limited = ("sh", "-c", 'ulimit -f 200; exec "$@"', "sh")  # 100 KB a file
    words = ("--workers=2", f"--metrics-listen=tcp:{port}:interface=127.0.0.1")
    process = start(launch, *limited, *SOLISYNC, *words, dsn=shared_dsn)
    await deferToThread(wait_until_ready, process, 2)
    assert "no room for the metrics of workers: " in process.log
    assert {family.name for family in await Scraped(process, port).families()} == {
        "solisync_worker_deaths",
        "solisync_reload_failed",
    }
    assert (await process.ask("GET", "/health/ready")).status == 200
    assert process.stop() == 0
    assert "Traceback" not in process.log


async def test_worker_without_room_for_metrics_serves(scraped):
    """The log reports that its numbers are missing."""
    service = await scraped(SOLISYNC_WORKERS="2")
    process = service.process
    await deferToThread(wait_until_ready, process, 2)
    for pid in (process.pid, *children(process.pid)):  # whichever it is that workers get it from
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (300_000, 300_000))
    for victim in workers(process):
        os.kill(victim, signal.SIGKILL)
    await deferToThread(wait_until_ready, process, 4)
    assert "the metrics will lack this worker: File too large" in process.log
    assert (await process.ask("GET", "/health")).status == 200
    assert await service.value("http_requests_total", method="GET", route="/health", status="200") < 5
    assert process.stop() == 0


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/", 404, "not found"),
        ("GET", "/metrics/", 404, "not found"),
        ("GET", "/metrics/x", 404, "not found"),
        ("POST", "/metrics", 405, "method not allowed"),
        ("OPTIONS", "*", 404, "not found"),
        ("HEAD", "/metrics", 200, None),
        ("GET", "/metrics", 200, None),
        ("GET", "/metrics?x", 200, None),
    ],
)
async def test_metrics_listener_hides_versions_and_returns_json_errors(reactor, method, path, status, error):
    """`Server` is only the name."""
    port = reactor.listenTCP(0, scrape_site(lambda: b"x 1\n"), interface="127.0.0.1")
    request = f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
    received = await deferToThread(exchange, port.getHost().port, request)
    (answer,) = parse(received, head=method == "HEAD")
    assert (answer.status, answer.headers["server"]) == (status, "solisync")
    assert "twisted" not in received.decode().lower()
    if error is not None:
        assert answer.error == error
        assert answer.headers.get("allow") == ("GET, HEAD" if status == 405 else None)
    else:
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert answer.headers["content-length"] == "4"
        assert answer.body == (b"" if method == "HEAD" else b"x 1\n")
    await port.stopListening()


async def test_scrape_with_a_body_is_cut_off(service):
    """The body is not stored."""

    def send():
        port = int(service.url.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
            connection.sendall(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                connection.sendall(bytes(1_000_000))
                return connection.recv(1)
        return b""

    assert await deferToThread(send) == b""
    assert await service.numbers()


async def test_metrics_are_off_by_default(server):
    """The players' listener has no /metrics."""
    assert (await server.ask("GET", "/metrics")).status == 404


def test_unreadable_metrics_file_is_ignored():
    """A worker was killed while it wrote. Its numbers are dropped, and the others are still counted."""
    shared = shared_metrics.SharedMetrics()
    directory = Path(shared.open()["PROMETHEUS_MULTIPROC_DIR"])
    used, key = (4000).to_bytes(4, "little"), (3990).to_bytes(4, "little")
    (directory / "counter_123.db").write_bytes(used + bytes(4) + key + b"\xff" * 4990)
    with pytest.raises(UnicodeDecodeError):
        list(shared_metrics.MmapedDict.read_all_values_from_file(directory / "counter_123.db"))
    shared.forget(123)
    shared.close()
