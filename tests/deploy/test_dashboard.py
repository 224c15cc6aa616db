"""The dashboard and the alerts with the real Prometheus, which scrapes a service with workers."""

import math
import subprocess
import time

import msgspec
import pytest
import treq
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from tests.deploy.promql import NOT_EVERYWHERE, RULES, named, queries, rules
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.http_requests import http_client, new_address
from tests.harness.payloads import progress_of
from tests.harness.postgres import truncate
from tests.harness.processes import free_port, wait_until_listening, wait_until_ready

VARIABLES = {"$job": ".+", "$instance": ".+", "$__rate_interval": "1m"}
MISSING_REPLAY = "/api/replays/11111111-1111-4111-8111-111111111111"


class Prometheus:
    """A Prometheus that scrapes a service."""

    def __init__(self, process, port):
        self.process = process
        self.url = f"http://127.0.0.1:{port}"

    async def get(self, path, **parameters):
        """Return an answer of its API."""
        response = await treq.get(self.url + path, params=parameters)
        answer = msgspec.json.decode(await response.content())
        assert answer["status"] == "success", answer
        return answer["data"]

    async def values(self, expression):
        """Return the current numbers of an expression, without those that are undefined because nothing happened."""
        data = await self.get("/api/v1/query", query=expression)
        return [value for each in data["result"] if not math.isnan(value := float(each["value"][1]))]

    async def rules(self):
        """Return the alerts that it has loaded, each with its health."""
        return (await self.get("/api/v1/rules"))["groups"][0]["rules"]

    async def alerts(self):
        """Return the names of alerts that fire, or would after their delay."""
        return {alert["labels"]["alertname"] for alert in (await self.get("/api/v1/alerts"))["alerts"]}


def start_prometheus(launch, directory, target):
    """Start Prometheus on a free port, with the alerts, scraping four times a second."""
    configuration = directory / "prometheus.yml"
    configuration.write_text(
        "global: {scrape_interval: 250ms, evaluation_interval: 250ms}\n"
        f"rule_files: ['{RULES}']\n"
        f"scrape_configs: [{{job_name: solisync, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    port = free_port()
    options = {
        "config.file": configuration,
        "storage.tsdb.path": directory / "numbers",
        "web.listen-address": f"127.0.0.1:{port}",
        "log.level": "warn",
    }
    process = launch("prometheus", *(f"--{name}={value}" for name, value in options.items()))
    wait_until_listening(process, port)
    return Prometheus(process, port)


async def play(process, number):
    """Send a few requests of each counted kind."""
    player = await process.player(f"player_{number}")
    spent = player.tokens.refresh_token
    await player.refresh()
    await process.ask("POST", "/api/auth/refresh", body={"refresh_token": spent})
    token = player.tokens.access_token
    for streak in (1, 2):
        await process.ask("POST", "/api/sync/push", body=progress_of(stats__win_streak_current=streak), bearer=token)
    for path in ("/nowhere", MISSING_REPLAY, "/api/daily-challenge"):
        await process.ask("GET", path)
    batch, address = {"session_id": "s", "events": [{}]}, new_address()
    for _ in range(6):
        await process.ask("POST", "/api/analytics", body=batch, address=address)


@pytest.mark.needs("prometheus")
async def test_every_query_of_the_dashboard_has_data(serve, launch, place, reactor, shared_dsn, figure):
    """Each parses with Grafana's variables filled in, and finds numbers while a service with two workers is used."""
    truncate(shared_dsn)
    port = free_port()
    listen = f"tcp:{port}:interface=127.0.0.1"
    process = await serve(shared_dsn, SOLISYNC_METRICS_LISTEN=listen, SOLISYNC_WORKERS="2")
    await deferToThread(wait_until_ready, process, 2)
    prometheus = await deferToThread(start_prometheus, launch, place, f"127.0.0.1:{port}")
    open_ones = {_filled(expression) for expression, _ in queries() if not named(expression).metrics & NOT_EVERYWHERE}
    count = len(open_ones)
    number = 0
    last = time.monotonic() + PATIENCE
    while open_ones:
        assert time.monotonic() < last, open_ones
        number += 1
        await play(process, number)
        open_ones = {expression for expression in open_ones if not await prometheus.values(expression)}
    figure(f"{count} queries answered after {number} rounds of play")
    assert [rule["name"] for rule in await prometheus.rules()] == [rule["alert"] for rule in rules()]
    while {rule["health"] for rule in await prometheus.rules()} != {"ok"}:  # not evaluated yet
        await deferLater(reactor, 0.1)
    assert "SolisyncDown" not in await prometheus.alerts()
    assert process.stop() == 0
    while "SolisyncDown" not in await prometheus.alerts():
        await deferLater(reactor, 0.1)


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("count", [1, 2])
async def test_promtool_accepts_the_metrics(serve, shared_dsn, count):
    """It also finds names against Prometheus' conventions."""
    port = free_port()
    listen = f"tcp:{port}:interface=127.0.0.1"
    process = await serve(shared_dsn, SOLISYNC_METRICS_LISTEN=listen, SOLISYNC_WORKERS=count)
    truncate(shared_dsn)
    await play(process, 1)
    exposed = await (await http_client(keep=False).get(f"http://127.0.0.1:{port}/metrics")).content()
    done = subprocess.run(["promtool", "check", "metrics"], input=exposed, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def _filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression.removesuffix(" > 0")  # a panel that shows nothing until there is a fault


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(
    "words",
    [("check", "rules", RULES), ("test", "rules", ROOT / "tests" / "deploy" / "solisync.rules.test.yml")],
    ids=lambda words: words[0],
)
def test_alerts_are_valid_and_fire_when_they_should(words):
    """promtool checks them and runs their tests."""
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
