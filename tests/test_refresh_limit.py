"""One statement counts and carries out a refresh: limit and rotation hold together, over two processes."""

import itertools
import time
from collections import Counter
from uuid import uuid4

from twisted.internet.threads import deferToThread

from tests.harness.concurrency import at_once
from tests.harness.http_requests import ask, new_address, refresh
from tests.harness.players import players
from tests.harness.postgres import run_sql

MOST = 10  # requests of an address in a minute
EXPIRIES = "UPDATE users SET access_expiries = ARRAY(SELECT generate_series(%s - 61, %s + 60)::bigint)"
SESSIONS = "SELECT count(*) FROM refresh_tokens"


def refresh_from(process, token, address):
    return ask(process, "POST", "/api/auth/refresh", {"refresh_token": token}, address=address)


async def spend(nodes, pairs):
    """Spend tokens together, each from its address, on both nodes in turn; return the statuses in that order."""
    jobs = [(node, *pair) for node, pair in zip(itertools.cycle(nodes), pairs, strict=False)]
    return [status for status, _, _ in await at_once(20, lambda job: refresh_from(*job), jobs)]


async def test_token_used_40_times_is_spent_once_and_counted_ten_times(nodes, shared_dsn, no_deadlocks):
    """All uses come from one address. One gets 200, nine get 401, and the others get 429."""
    ((_, token, _),) = players(shared_dsn, 1)
    statuses = await spend(nodes, [(token, new_address())] * 40)
    assert Counter(statuses) == {200: 1, 401: MOST - 1, 429: 40 - MOST}
    assert run_sql(shared_dsn, SESSIONS) == [(1,)]


async def test_refresh_over_the_limit_spends_nothing(nodes, shared_dsn, no_deadlocks):
    """Of 40 players behind one address ten are served; the others succeed from another address."""
    tokens = [token for _, token, _ in players(shared_dsn, 40)]
    address = new_address()
    statuses = await spend(nodes, [(token, address) for token in tokens])
    assert Counter(statuses) == {200: MOST, 429: 40 - MOST}
    again = await spend(nodes, [(token, new_address()) for token in tokens])
    assert again == [401 if status == 200 else 200 for status in statuses]
    assert run_sql(shared_dsn, SESSIONS) == [(40,)]


async def test_tokens_used_from_many_addresses_are_spent_once(nodes, shared_dsn, no_deadlocks):
    """Some requests wait for the limit of an address, others for a player. There is no deadlock."""
    tokens = [token for _, token, _ in players(shared_dsn, 4)]
    addresses = [new_address() for _ in range(8)]
    uses = [(tokens[(number // 8) % 4], addresses[(number * 3) % 8]) for number in range(80)]  # ten from each address
    statuses = await spend(nodes, uses)
    assert Counter(statuses) == {200: 4, 401: 76}
    assert {token for (token, _), status in zip(uses, statuses, strict=True) if status == 200} == set(tokens)


async def test_refreshes_and_deletions_leave_no_orphans(nodes, shared_dsn, no_deadlocks, full):
    """Ten players behind each address refresh and delete their accounts. No 5xx occurs, and no row is left."""
    count = 1_000 if full else 80
    made = players(shared_dsn, count)
    addresses = [new_address() for _ in range(count // MOST)]
    both = itertools.cycle(nodes)

    def job(item):
        kind, token, address = item
        if kind == "refresh":
            return kind, refresh_from(next(both), token, address)[0]
        return kind, ask(next(both), "DELETE", "/api/account", bearer=token)[0]

    jobs = []
    for number, (_, token, access) in enumerate(made):
        pair = [("refresh", token, addresses[number // MOST]), ("delete", access, None)]
        jobs += pair if number % 2 else pair[::-1]
    answers = Counter(await at_once(20, job, jobs))
    assert answers["delete", 200] == count
    assert set(answers) <= {("delete", 200), ("refresh", 200), ("refresh", 401)}
    assert run_sql(shared_dsn, "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM refresh_tokens)") == [(0, 0)]


async def test_declined_refresh_counts_and_spends_nothing(nodes, shared_dsn):
    """When every second of the last minute is taken, ten get 503 with Retry-After 1, and the eleventh 429."""
    ((_, token, _),) = players(shared_dsn, 1)
    wanted, address = int(time.time()) + 86_400, new_address()
    run_sql(shared_dsn, EXPIRIES, (wanted, wanted))
    *declined, last = [await deferToThread(refresh_from, nodes[0], token, address) for _ in range(MOST + 1)]
    for status, body, headers in declined:
        assert (status, body, headers["retry-after"]) == (503, {"error": "service unavailable"}, "1")
    assert last[0] == 429
    run_sql(shared_dsn, "UPDATE users SET access_expiries = NULL")
    assert (await deferToThread(refresh, nodes[1], token))[0] == 200


async def test_every_invalid_refresh_counts_towards_the_limit(nodes, shared_dsn):
    """Invalid JSON, and missing, foreign and spent tokens count. Then a valid refresh is refused, too."""
    (_, token, _), (_, fresh, _) = players(shared_dsn, 2)
    address = new_address()

    def send(body, node=nodes[0]):
        return ask(node, "POST", "/api/auth/refresh", body, address=address)[0]

    def run():
        assert send({"refresh_token": token}) == 200
        assert [send(b"nonsense"), send({}), send(b"\xff"), send({"refresh_token": 1})] == [400] * 4
        assert [send({"refresh_token": text}) for text in ("", "x", str(uuid4()), token, token)] == [401] * 5
        for node in nodes:
            assert [send(body, node) for body in ({"refresh_token": fresh}, b"nonsense", {"refresh_token": "x"})] == [
                429
            ] * 3
        assert refresh(nodes[0], fresh)[0] == 200

    await deferToThread(run)
