"""Processor time that the most expensive bodies take on the reactor."""

import time

import msgspec
import pytest

from solisync.errors import BadRequest
from solisync.rules.analytics import read_batch
from solisync.rules.documents import read_pushed, read_stored
from solisync.rules.json_body import read_json
from solisync.rules.leaderboard import OptIn
from solisync.rules.merge import merge
from solisync.rules.replays import read_replay
from solisync.rules.sync import check_bounds
from tests.harness.payloads import NOW, encode, progress_of, replay

MIB = 2**20
TARGET = 0.05
BUSY = 10  # how many times slower than the targets a busy machine may be


def filled(body, unit):
    """A body of a MiB: an object with one more field, an array or (by its unit) a text with as many units as fit."""
    text = unit.startswith(b"\\")
    before, after = body[:-1] + (b',"zz":"' if text else b',"zz":['), b'"}' if text else b"0]}"
    return before + unit * ((MIB - len(before) - len(after)) // len(unit)) + after


def achievements(count):
    record = {"unlocked": True, "unlock_date": "2026-01-02T10:00:00Z", "reward_granted": True}
    return encode(progress_of(achievements=[{"id": f"a{number}", **record} for number in range(count)]))


def unknown_fields(count):
    names = {chr(0x4E00 + number % 20_000) + str(number // 20_000): 1 for number in range(count)}
    return PROGRESS[:-1] + b"," + msgspec.json.encode(names)[1:]


def large_doubles():
    before, after = PROGRESS.split(b'"unlocked_card_backs": [')
    return before + b'"unlocked_card_backs": [' + b"1e308," * ((MIB - len(PROGRESS)) // 6 - 10) + after


def opt_in(body):
    read_json(body, OptIn)


def push(body, stored=None):
    pushed, saved = read_pushed(body).document, stored and read_stored(stored)
    check_bounds(pushed, saved)
    merged, _ = merge(pushed, saved, NOW)
    check_bounds(merged, saved)
    merged.encode()


def push_again(body):
    push(body, body)


ARRAYS, DEEP, STRINGS, HALVES = b"[],", b"[" * 61 + b"]" * 61 + b",", b'["["],', rb"\ud800"
OPT_IN, PROGRESS, DOUBLES = b'{"display_name":"Ann"}', encode(progress_of()), encode(progress_of(stats__games_won=1.0))
BODIES = {
    "opt-in, empty arrays": (opt_in, lambda: filled(OPT_IN, ARRAYS)),
    "opt-in, arrays 62 deep": (opt_in, lambda: filled(OPT_IN, DEEP)),
    "opt-in, brackets in strings": (opt_in, lambda: filled(OPT_IN, STRINGS)),
    "opt-in, half surrogates": (opt_in, lambda: filled(OPT_IN, HALVES)),
    "replay, half surrogates": (read_replay, lambda: filled(replay(), HALVES)),
    "replay without a field, half surrogates": (read_replay, lambda: filled(b'{"x":1}', HALVES)),
    "analytics, half surrogates": (read_batch, lambda: filled(b'{"session_id":"s","events":[]}', HALVES)),
    "push of 9,000 achievements": (push, lambda: achievements(9_000)),
    "push of 9,000 achievements that are stored": (push_again, lambda: achievements(9_000)),
    "push of 2,000 achievements that are stored": (push_again, lambda: achievements(2_000)),
    "push of 95,000 unknown fields": (push, lambda: unknown_fields(95_000)),
    "push, empty arrays": (push_again, lambda: filled(PROGRESS, ARRAYS)),
    "push, half surrogates": (push_again, lambda: filled(PROGRESS, HALVES)),
    "push of large doubles": (push, large_doubles),
    "push of doubles, half surrogates": (push, lambda: filled(DOUBLES, HALVES)),
}


@pytest.mark.parametrize("name", BODIES)
def test_most_expensive_bodies_take_tens_of_milliseconds(name, figure):
    """The bodies are a MiB each, accepted or refused."""
    work, make = BODIES[name]
    body, least, outcome = make(), TARGET * BUSY, 200
    for _ in range(5):
        began = time.process_time()
        try:
            work(body)
        except BadRequest:
            outcome = 400
        least = min(least, time.process_time() - began)
    figure(f"{name}: {outcome} after {least * 1000:.1f} ms")
    assert least < TARGET * BUSY
