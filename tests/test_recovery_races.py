"""Races of recoveries, over HTTP against two processes on one database."""

import itertools
from collections import Counter
from datetime import timedelta

from solisync.rules.recovery import digest
from tests.harness.concurrency import at_once
from tests.harness.http_requests import ask
from tests.harness.players import players
from tests.harness.postgres import run_sql

NEW = "another horse"
CODES = "INSERT INTO recovery_codes SELECT id, %s, now() FROM users WHERE username = %s"
LINK = "INSERT INTO reset_tokens SELECT id, %s, now() + %s FROM users WHERE username = %s"


def recover(node, name, code):
    body = {"username": name, "code": code, "new_password": NEW}
    return ask(node, "POST", "/api/auth/recover", body)


def reset(node, token):
    return ask(node, "POST", "/api/auth/reset", {"token": token, "new_password": NEW})


async def test_recovery_code_and_reset_link_work_once_under_races(nodes, shared_dsn, no_deadlocks):
    """Of 24 recoveries with one code and 24 resets with one link, on both nodes together, each has one 200."""
    players(shared_dsn, 2)
    run_sql(shared_dsn, CODES, (digest("0" * 16), "player0"))
    run_sql(shared_dsn, LINK, (digest("token"), timedelta(hours=1), "player1"))
    ways = [lambda node: recover(node, "player0", "0000-0000-0000-0000"), lambda node: reset(node, "token")]
    jobs = list(itertools.islice(itertools.product(range(24), nodes, ways), 48))
    answers = await at_once(12, lambda job: (ways.index(job[2]), job[2](job[1])[0]), jobs)
    assert Counter(answers) == {(way, status): 1 if status == 200 else 23 for way in (0, 1) for status in (200, 401)}
    assert run_sql(shared_dsn, "SELECT count(*) FROM refresh_tokens") == [(2,)]


async def test_recovery_reset_and_deletion_races_leave_no_row(nodes, shared_dsn, no_deadlocks):
    """A player's code, link and deletion run together, without a 5xx and without a deadlock."""
    made = players(shared_dsn, 12)
    for number in range(12):
        run_sql(shared_dsn, CODES, (digest("0" * 16), f"player{number}"))
        run_sql(shared_dsn, LINK, (digest(f"token{number}"), timedelta(hours=1), f"player{number}"))
    both = itertools.cycle(nodes)

    def job(item):
        kind, number = item
        if kind == "recover":
            return recover(next(both), f"player{number}", "0" * 16)[0]
        if kind == "reset":
            return reset(next(both), f"token{number}")[0]
        return ask(next(both), "DELETE", "/api/account", bearer=made[number][2])[0]

    kinds = list(itertools.permutations(("recover", "reset", "delete")))
    jobs = [(kind, number) for number in range(12) for kind in kinds[number % len(kinds)]]
    assert set(await at_once(12, job, jobs)) <= {200, 401}
    for table in ("users", "refresh_tokens", "recovery_codes", "reset_tokens"):
        assert run_sql(shared_dsn, f"SELECT count(*) FROM {table}") == [(0,)]
