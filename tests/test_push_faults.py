"""Pushes beside deletions, resets and opt-ins (docs/protocol.md "Progress")."""

import random

import bcrypt

from solisync.storage.players import accounts
from tests.harness.concurrency import gather
from tests.harness.constants import PASSWORD
from tests.harness.payloads import progress_of, replay


async def test_pushes_race_with_deletions_resets_and_opt_ins(nodes, open_database, no_deadlocks, full):
    """Many random rounds on a few players cause no 5xx, no deadlock, and no row without its player."""
    database = open_database(size=2)
    rounds = 1_000 if full else 100
    chance = random.Random(11)
    names = [f"player_{number}" for number in range(12)]
    players = {name: await nodes[0].player(name) for name in names}
    quick_hash = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    statuses = []

    async def ask(method, path, name, body=None):
        token = players[name].tokens.access_token
        answer = await chance.choice(nodes).ask(method, path, body=body, bearer=token)
        statuses.append(answer.status)

    async def again(name):
        client = chance.choice(nodes).client()
        answer = await client_register(client, name)
        if answer:
            players[name] = client

    async def client_register(client, name):
        try:
            return await client.register(name, PASSWORD)
        except Exception as error:
            statuses.append(error.status)
            return None

    async def step(number):
        name = chance.choice(names)
        kinds = {"push": 9, "replay": 4, "pull": 2, "opt in": 3, "opt out": 1, "reset": 2, "delete": 1, "register": 2}
        (kind,) = chance.choices(list(kinds), list(kinds.values()))
        if kind == "push":
            await ask("POST", "/api/sync/push", name, progress_of(stats__best_single_score=number + 1))
        elif kind == "replay":
            await ask("POST", "/api/replays", name, replay(final_score=number))
        elif kind == "pull":
            await ask("GET", "/api/sync/pull", name)
        elif kind == "opt in":
            await ask("POST", "/api/leaderboard/opt-in", name, {"display_name": name})
        elif kind == "opt out":
            await ask("DELETE", "/api/leaderboard/opt-in", name)
        elif kind == "reset":
            await database.transact(accounts.reset_password, name, quick_hash)
        elif kind == "delete":
            await ask("DELETE", "/api/account", name)
        else:
            await again(name)

    await gather(16, step, range(rounds))
    print({status: statuses.count(status) for status in sorted(set(statuses))})
    assert set(statuses) <= {200, 404, 409, 429}  # who opts in and out more often than one may
    assert statuses.count(200) > 0.3 * rounds
    for table in ("sync_states", "leaderboard", "refresh_tokens", "replays"):
        orphans = f"SELECT count(*) FROM {table} WHERE user_id NOT IN (SELECT id FROM users)"
        assert nodes[0].sql(orphans) == [(0,)], table
