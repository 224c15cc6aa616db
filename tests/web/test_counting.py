"""Counting games over HTTP, by devices of one player at two processes (docs/sync.md "How games are counted")."""

import json
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.harness.concurrency import at_once
from tests.harness.constants import PASSWORD
from tests.harness.devices import Device, Truth, counts_in, payload_of, play
from tests.harness.http_requests import ask
from tests.harness.postgres import run_sql, truncate

GAMES = st.fixed_dictionaries({"won": st.booleans(), "score": st.integers(0, 700), "seconds": st.integers(40, 900)})
GAME = {"won": True, "score": 101, "seconds": 100}
PUSH, PULL = ("POST", "/api/sync/push"), ("GET", "/api/sync/pull")


def call(node, method, path, body=None, token=None):
    """Send a request that must succeed, and return the JSON of the reply."""
    status, answer, _ = ask(node, method, path, body, bearer=token)
    assert status == 200, answer
    return answer


def register(node, name="ann"):
    return call(node, "POST", "/api/auth/register", {"username": name, "password": PASSWORD})["access_token"]


def begin(node, name="ann"):
    return call(node, "POST", "/api/auth/login", {"username": name, "password": PASSWORD})


def log_in(node, name="ann"):
    return begin(node, name)["access_token"]


def refresh(node, pair):
    return call(node, "POST", "/api/auth/refresh", {"refresh_token": pair["refresh_token"]})


def push(node, token, counts):
    return counts_in(call(node, *PUSH, payload_of(counts), token))


def pull(node, token):
    return counts_in(call(node, *PULL, token=token))


def versions(dsn):
    """Return the versions of all rows of progress and sessions."""
    tables = ("users", "refresh_tokens", "sync_states", "known_states")
    return [run_sql(dsn, f"SELECT ctid::text, xmin::text, xmax::text FROM {table} ORDER BY 1") for table in tables]


class Histories(RuleBasedStateMachine):
    """Devices that start, play, push, pull, lose or repeat or delay messages, and log in again, in any order.

    Each device has one session at a time, and may use an older access token of it.
    """

    nodes = ()

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed):
        truncate(self.nodes[0].dsn)
        self.random = Random(seed)
        register(self.node)
        self.truth, self.devices, self.late, self.stored = Truth(), [], [], None
        self.pairs, self.older = [], []  # each device's newest tokens, and its earlier access tokens

    @property
    def node(self):
        return self.random.choice(self.nodes)

    @precondition(lambda self: len(self.devices) < 4)
    @rule(pulls=st.booleans())
    def start(self, pulls):
        self.devices.append(Device())
        self.pairs.append(None)
        self.older.append([])
        self.log_in_again(len(self.devices) - 1, pulls)

    @precondition(lambda self: self.devices)
    @rule(which=st.integers(0, 3), pulls=st.booleans(), ends=st.booleans())
    def log_in_again(self, which, pulls, ends=False):
        """Begin a new session. Requests of the ended session are lost, or carry a token without a session."""
        which %= len(self.devices)
        if ends and self.pairs[which]:
            call(self.node, "POST", "/api/auth/logout", {"refresh_token": self.pairs[which]["refresh_token"]})
        else:
            self.late = [each for each in self.late if each[0] != which]
        self.pairs[which], self.older[which] = begin(self.node), []
        if pulls:
            self.devices[which].take_maximum(pull(self.node, self.pairs[which]["access_token"]))

    @precondition(lambda self: self.devices)
    @rule(which=st.integers(0, 3))
    def refresh(self, which):
        which %= len(self.devices)
        self.older[which].append(self.pairs[which]["access_token"])
        self.pairs[which] = refresh(self.node, self.pairs[which])

    def token(self, which):
        """Return an access token of a device, mostly the newest."""
        return self.random.choice([*self.older[which][-1:], *2 * [self.pairs[which]["access_token"]]])

    @precondition(lambda self: self.devices)
    @rule(which=st.integers(0, 3), game=GAMES)
    def play(self, which, game):
        self.devices[which % len(self.devices)].play(game)
        self.truth.play(game)

    @precondition(lambda self: self.devices)
    @rule(which=st.integers(0, 3), fate=st.sampled_from(["taken", "ignored", "lost", "repeated", "late", "never sent"]))
    def push(self, which, fate):
        which %= len(self.devices)
        device, token = self.devices[which], self.token(which)
        pushed = device.pushes()
        if fate == "late":
            self.late.append((which, token, pushed))
        if fate in ("late", "never sent"):
            return
        answer = self.store(token, pushed)
        if fate == "repeated":
            answer = self.store(token, pushed)
        if fate == "taken":
            device.take_maximum(answer)

    @precondition(lambda self: self.devices)
    @rule(which=st.integers(0, 3), taken=st.booleans())
    def pull(self, which, taken):
        which %= len(self.devices)
        answer = pull(self.node, self.token(which))
        if taken:
            self.devices[which].take_maximum(answer)

    @precondition(lambda self: self.late)
    @rule()
    def arrive_late(self):
        _, token, pushed = self.late.pop(self.random.randrange(len(self.late)))
        self.store(token, pushed)

    @rule()
    def crash(self):
        """Lose the memory, as in a crash of the database."""
        run_sql(self.nodes[0].dsn, "TRUNCATE known_states")

    @precondition(lambda self: self.devices)
    @rule(which=st.integers(0, 3))
    def push_to_an_old_node(self, which):
        """Push as an older version does: store the greater counters and leave the memory alone."""
        pushed = self.devices[which % len(self.devices)].pushes()
        stored = run_sql(self.nodes[0].dsn, "SELECT payload FROM sync_states")
        if not stored:
            return
        before = counts_in({"merged": json.loads(stored[0][0])})
        device = Device(before)
        device.take_maximum(pushed)
        merged = json.loads(stored[0][0])
        new = payload_of(device.counts)
        merged["stats"] |= {
            name: new["stats"][name]
            for name in ("games_played", "games_won", "lifetime_score", "draw_one_wins", "draw_three_wins")
        } | {
            "avg_time_seconds": device.counts.time // max(device.counts.games_won, 1),
            "games_lost": device.counts.games_played - device.counts.games_won,
        }
        merged["progress"]["total_xp"] = new["progress"]["total_xp"]
        run_sql(self.nodes[0].dsn, "UPDATE sync_states SET payload = %s", (json.dumps(merged),))
        self.stored = counts_in({"merged": merged})

    def store(self, token, pushed):
        answer = push(self.node, token, pushed)
        before = self.stored or answer
        for reached in (pushed, before):  # the result of merging by maxima alone
            assert all(map(int.__ge__, answer[:4], reached[:4]))
        self.stored = answer
        return answer

    @invariant()
    def is_true(self):
        if getattr(self, "stored", None) is not None:
            self.truth.check(self.stored)


def test_no_history_counts_a_game_that_was_not_played(nodes, full):
    """The counts never exceed the games played, and never fall below the result of maxima alone."""
    machine = type("Histories", (Histories,), {"nodes": nodes})
    machine.TestCase.settings = settings(
        max_examples=400 if full else 5, stateful_step_count=40, deadline=None, suppress_health_check=[*HealthCheck]
    )
    run_state_machine_as_test(machine, settings=machine.TestCase.settings)


async def test_simultaneous_pushes_of_devices_lose_no_game(nodes, full):
    """Four devices at two processes pull, then play and push as fast as they can; the sum is exact."""
    rounds = 100 if full else 15
    register(nodes[0])

    def run(number):
        node, device = nodes[number % 2], Device()
        token = log_in(node)
        device.take_up(pull(node, token))
        for turn in range(rounds):
            device.play(GAME)
            if turn % 3 == 0:
                device.take_up(pull(nodes[turn % 2], token))
            answer = push(nodes[turn % 2], token, device.pushes())
            device.synced = device.counts
            device.take_up(answer)

    await at_once(4, run, range(4))
    assert pull(nodes[0], log_in(nodes[0]))[:6] == (4 * rounds, 4 * rounds, 404 * rounds, 44 * rounds, 4 * rounds, 0)


def test_online_and_offline_games_of_two_devices_add_up(nodes):
    """One device plays 5 games after the first 100 and the other 7: the service counts 112."""
    register(nodes[0])
    phone, tablet = log_in(nodes[0]), log_in(nodes[1])
    assert pull(nodes[0], phone) == pull(nodes[1], tablet)
    hundred = Device()
    for _ in range(100):
        hundred.play(GAME)
    push(nodes[0], phone, hundred.counts)
    assert pull(nodes[1], tablet) == hundred.counts
    five, seven = Device(hundred.counts), Device(hundred.counts)
    for device, count in ((five, 5), (seven, 7)):
        for _ in range(count):
            device.play(GAME)
    assert push(nodes[0], phone, five.counts).games_played == 105
    assert push(nodes[1], tablet, seven.counts).games_played == 112
    assert push(nodes[0], phone, five.counts).games_played == 112
    assert pull(nodes[0], phone)[:2] == (112, 112)


def test_pull_of_known_progress_writes_nothing(nodes, shared_dsn):
    """The service remembers only replies that are new to the session."""
    token = register(nodes[0])
    push(nodes[0], token, play(Device().counts, **GAME))
    pull(nodes[0], token)
    before = versions(shared_dsn)
    for _ in range(5):
        pull(nodes[0], token)
    assert versions(shared_dsn) == before


@pytest.mark.parametrize("end", ["logout", "session", "sessions", "password", "account"])
def test_ending_a_session_deletes_its_memory(nodes, shared_dsn, end):
    """Another player's memory stays."""
    token, other = register(nodes[0]), register(nodes[0], "bob")
    pull(nodes[0], token)
    pull(nodes[0], other)
    (session,) = call(nodes[0], "GET", "/api/sessions", token=token)
    if end == "logout":
        pair = call(nodes[0], "POST", "/api/auth/login", {"username": "ann", "password": PASSWORD})
        pull(nodes[0], pair["access_token"])
        call(nodes[0], "POST", "/api/auth/logout", {"refresh_token": pair["refresh_token"]})
        assert run_sql(shared_dsn, "SELECT count(*) FROM known_states") == [(2,)]
        return
    method, path, body = {
        "session": ("DELETE", f"/api/sessions/{session['id']}", None),
        "sessions": ("DELETE", "/api/sessions", None),
        "password": ("PUT", "/api/me/password", {"current_password": PASSWORD, "new_password": PASSWORD}),
        "account": ("DELETE", "/api/account", None),
    }[end]
    call(nodes[0], method, path, body, token)
    assert run_sql(shared_dsn, "SELECT count(*) FROM known_states") == [(1,)]


def test_push_with_a_token_of_no_session_is_not_counted_again(nodes):
    """A token from before a refresh may belong to the same device, whose session has pushed the games."""
    pair = call(nodes[0], "POST", "/api/auth/register", {"username": "ann", "password": PASSWORD})
    device = Device(pull(nodes[0], pair["access_token"]))
    newer = refresh(nodes[0], pair)["access_token"]
    for number, token in enumerate([newer, pair["access_token"], newer, newer, pair["access_token"], newer], 1):
        device.play(GAME)
        assert push(nodes[number % 2], token, device.counts).games_played == number


def won(number):
    """Return the counts of a device with so many won games."""
    device = Device()
    for _ in range(number):
        device.play(GAME)
    return device.counts


def test_late_push_after_a_crash_is_not_the_latest_state_of_its_device(nodes, shared_dsn):
    """The late push may be older than the forgotten one, so games pushed between them aren't counted again."""
    register(nodes[0])
    phone, tablet = log_in(nodes[0]), log_in(nodes[1])
    for token in (phone, tablet):
        pull(nodes[0], token)
    assert push(nodes[0], phone, won(39)).games_played == 39
    assert push(nodes[1], tablet, won(21)).games_played == 60
    run_sql(shared_dsn, "TRUNCATE known_states")
    assert push(nodes[1], phone, won(27)).games_played == 60
    assert push(nodes[0], phone, won(43)).games_played == 60
    assert push(nodes[0], phone, won(62)).games_played == 62  # the push covers a reply, so counting continues from it
    assert push(nodes[0], phone, won(63)).games_played == 63


def test_only_the_reply_is_known_after_a_push_without_a_session(nodes):
    """An earlier push of the same device that arrives late in its session isn't counted again."""
    pair = call(nodes[0], "POST", "/api/auth/register", {"username": "ann", "password": PASSWORD})
    newer = refresh(nodes[0], pair)["access_token"]
    pull(nodes[0], newer)
    assert push(nodes[0], newer, won(30)).games_played == 30
    assert push(nodes[1], pair["access_token"], won(43)).games_played == 43
    assert push(nodes[0], newer, won(40)).games_played == 43
    assert push(nodes[1], newer, won(44)).games_played == 44


def test_other_change_of_a_payload_ends_the_memory(nodes, shared_dsn):
    """A statement that doesn't raise the revision is an older version's or an operator's."""
    token = register(nodes[0])
    push(nodes[0], token, play(Device().counts, **GAME))
    run_sql(shared_dsn, "UPDATE sync_states SET payload = payload")
    assert run_sql(shared_dsn, "SELECT count(*) FROM known_states") == [(1,)]
    run_sql(shared_dsn, "UPDATE sync_states SET payload = payload || ' '")
    assert run_sql(shared_dsn, "SELECT count(*) FROM known_states") == [(0,)]
    assert run_sql(shared_dsn, "SELECT counted FROM sync_states") == [(None,)]
