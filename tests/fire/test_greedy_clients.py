"""One account or one connection that sends as much as it can: other clients are served as usual.

Source: docs/security.md "Bounds".
"""

import json
import subprocess
import sys

import pytest
from twisted.internet.defer import gatherResults
from twisted.internet.threads import deferToThread

from tests.fire.raw import Watch, head, percentile, running
from tests.harness.constants import ROOT
from tests.harness.payloads import encode, progress_of
from tests.harness.postgres import truncate

MAX_BODY = 1_048_576
SECONDS = 8
TARGET_SECONDS = 0.06  # of others' /health at the 95th percentile, and of their /api/me at the median
BUSY = 10  # how many times slower than the targets a busy machine may be


def filled(beginning, item, end):
    """Return a body of at most 1 MiB with as many of the item as fit, separated by commas."""
    count = (MAX_BODY - len(beginning) - len(end)) // (len(item) + 1)
    return beginning + ",".join([item] * count) + end


def achievements():
    one = {"unlocked": True, "unlock_date": "2026-01-01T00:00:00Z", "reward_granted": False}
    return json.dumps(progress_of(achievements=[{"id": f"{number:06}"} | one for number in range(9_500)]))


def unknown_keys():
    body = json.dumps(progress_of())
    return filled(body[:-1] + ",", '"a":1', "}").replace('"a"', '"b"', 1)


def halves():
    text = "\\ud800" * 170_000
    return json.dumps(progress_of())[:-1] + f', "zz": "{text}"}}'


REPLAY = '{"mode":"Zen","draw_mode":"DrawOne","final_score":1,"time_seconds":1,"recorded_at":"2026-01-01","x":'
ATTACKS = {
    "empty arrays": ("POST", "/api/replays", lambda: filled(REPLAY + "[", "[]", "]}"), 1),
    "half surrogates": ("POST", "/api/replays", lambda: filled(REPLAY[:-5] + ',"x":["', "\\ud800" * 8, '"}'), 1),
    "stored half surrogates": ("POST", "/api/sync/push", halves, 1),
    "achievements": ("POST", "/api/sync/push", achievements, 1),
    "unknown keys": ("POST", "/api/sync/push", unknown_keys, 1),
    "plain replays": ("POST", "/api/replays", lambda: REPLAY + '"' + "x" * (MAX_BODY - len(REPLAY) - 4) + '"}', 1),
    "pipelined": ("GET", "/health", str, 1500),
    "pipelined 404": ("GET", "/nope", str, 1500),
}


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("attack", ATTACKS)
async def test_greedy_client_delays_no_other(serve, shared_dsn, figure, attack, connections):
    """One account sends the most expensive requests, on one connection or on eight."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    ann, bob = await process.player("ann"), await process.player("bob")
    method, path, body, ahead = ATTACKS[attack]
    content = body().encode()
    assert len(content) <= MAX_BODY
    lines = [f"Content-Length: {len(content)}"] if content else []
    if method == "POST":
        lines.append(f"Authorization: Bearer {ann.tokens.access_token}")
    request = head(method, path, *lines) + content
    bearer = f"Authorization: Bearer {bob.tokens.access_token}"
    watch = Watch(process, {"health": head("GET", "/health"), "me": head("GET", "/api/me", bearer)})
    command = [sys.executable, "-m", "tests.fire.attacker", process.port, connections, SECONDS, ahead]

    def run():
        return subprocess.run([*map(str, command)], input=request, capture_output=True, cwd=ROOT, check=True).stdout

    with running(watch):
        answered = (await deferToThread(run)).decode().strip()
    health, me = percentile(watch.seconds["health"], 0.95), percentile(watch.seconds["me"], 0.5)
    figure(f"{answered} of {len(content)} bytes: health p95 {health * 1000:.0f} ms, me p50 {me * 1000:.0f} ms; {watch}")
    assert health < TARGET_SECONDS * BUSY
    assert me < TARGET_SECONDS * BUSY


def large_progress():
    """Return progress of 0.9 MB, within all bounds."""
    one = {"unlocked": True, "unlock_date": "2026-01-01T00:00:00Z", "reward_granted": False}
    records = [{"id": f"{number:06}"} | one for number in range(1_990)]
    return progress_of(achievements=records, **{f"zz{number}": 70 * [100] for number in range(1_990)})


async def push_onto(process, player):
    """A push that is merged with large progress, and the answers that it may get."""
    return request_of(player, "/api/sync/push", progress_of())


async def join_in_vain(process, player):
    """A join of two large documents that have too many records together."""
    guest = process.client()
    token = (await guest.guest()).refresh_token
    body = large_progress()
    body["achievements"] = [{**each, "id": f"b{each['id']}"} for each in body["achievements"]]
    answer = await process.ask("POST", "/api/sync/push", body=body, bearer=guest.tokens.access_token)
    assert answer.status == 200, answer
    return request_of(player, "/api/me/join", {"guest_refresh_token": token})


def request_of(player, path, body):
    bearer, content = f"Authorization: Bearer {player.tokens.access_token}", encode(body)
    return head("POST", path, bearer, f"Content-Length: {len(content)}") + content


@pytest.mark.parametrize("way", [push_onto, join_in_vain])
async def test_small_requests_about_large_progress_delay_no_other(serve, shared_dsn, figure, way):
    """Five accounts, on two connections each, have large progress that each of their requests is about."""
    truncate(shared_dsn)
    process = await serve(shared_dsn)
    requests, body = [], large_progress()
    assert 900_000 < len(encode(body)) < MAX_BODY
    for number in range(5):
        player = await process.player(f"ann{number}")
        answer = await process.ask("POST", "/api/sync/push", body=body, bearer=player.tokens.access_token)
        assert answer.status == 200, answer
        requests.append(await way(process, player))
    bob = await process.player("bob")
    bearer = f"Authorization: Bearer {bob.tokens.access_token}"
    watch = Watch(process, {"health": head("GET", "/health"), "me": head("GET", "/api/me", bearer)})
    command = [*map(str, (sys.executable, "-m", "tests.fire.attacker", process.port, 2, SECONDS, 1))]

    def run(request):
        return subprocess.run(command, input=request, capture_output=True, cwd=ROOT, check=True).stdout

    with running(watch):
        answered = await gatherResults([deferToThread(run, request) for request in requests])
    health, me = percentile(watch.seconds["health"], 0.95), percentile(watch.seconds["me"], 0.5)
    told = ", ".join(each.decode().strip() for each in answered)
    figure(f"{way.__name__}: {told}: health p95 {health * 1000:.1f} ms, me p50 {me * 1000:.1f} ms; {watch}")
    assert health < TARGET_SECONDS * BUSY
    assert me < TARGET_SECONDS * BUSY
