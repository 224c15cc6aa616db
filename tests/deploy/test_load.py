"""deploy/load: the script for k6, run by node with a stand-in for k6."""

import os

import pytest
from twisted.internet.threads import deferToThread

from solisync.postgres.migrate import load_migrations, migrate
from tests.harness.constants import PASSWORD, ROOT
from tests.harness.entry_points import SOLISYNC
from tests.harness.postgres import run_sql
from tests.harness.processes import run

HUGE = '"zz_huge":18446744073709551615,'
WON = (
    "SELECT (payload::json->'stats'->>'games_won')::int, (payload::json->'stats'->>'games_lost')::int FROM sync_states"
)


@pytest.mark.needs("node", "curl")
async def test_load_script_plays_games(reactor, serve, empty_database, place):
    """A made-up player logs in and plays a game in each round, without an error. Large numbers stay exact."""
    await migrate(reactor, empty_database, load_migrations())
    words = ["seed", "--players=1", "--password-stdin"]
    assert run(*SOLISYNC, *words, stdin=PASSWORD.encode(), DATABASE_URL=empty_database).status == 0
    run_sql(
        empty_database, "UPDATE sync_states SET payload = replace(payload, '\"stats\":{', '\"stats\":{' || %s)", (HUGE,)
    )
    ((won, lost),) = run_sql(empty_database, WON)
    service = await serve(empty_database)
    variables = {
        "BASE_URL": service.url,
        "PLAYERS": 1,
        "PASSWORD": PASSWORD,
        "TMPDIR": place,
        "PATH": os.environ["PATH"],
    }
    script = ROOT / "deploy" / "load" / "solisync.js"
    played = await deferToThread(lambda: run("node", ROOT / "tests" / "deploy" / "k6.mjs", script, "4", **variables))
    assert played.status == 0, played.out + played.err
    assert played.out == ["ok login 200"] + ["ok pull 200", "ok push 200", "ok board 200"] * 3
    assert run_sql(empty_database, WON) == [(won, lost + 3)]
    assert run_sql(empty_database, "SELECT position(%s in payload) > 0 FROM sync_states", (HUGE[:-1],)) == [(True,)]
