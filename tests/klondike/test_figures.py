"""The promises of docs/verification.md in figures, over all vectors; runs with --fire.

KLONDIKE_VECTORS names a directory with more vectors than the repository has.
"""

import random
import statistics
import time
from collections import Counter

import pytest

from solisync.klondike import PREFERRED, check, check_literally, make_timeline, recorded
from solisync.klondike.deal import shuffled_deck
from solisync.klondike.scoring import RULESETS
from tests.klondike.test_search import deepened
from tests.klondike.test_traces import follow
from tests.klondike.test_verdict import FORGERIES, forge
from tests.klondike.vectors import BY_NAME, DIRECTORY, encoded, is_explained, lines, read, wins

pytestmark = pytest.mark.long
SECONDS = 5  # in which a checker must be done
BUSY = 10  # how much slower than promised the machine of a test may be


def timed(work, *arguments, **options):
    """Return the result of some work, and the CPU seconds that it took."""
    started = time.process_time()
    result = work(*arguments, **options)
    return result, time.process_time() - started


def checked(replay):
    """Return the verdict, and its seconds of CPU time; allow ten times as long as a checker may take."""
    began = time.process_time()
    return timed(check, encoded(replay), used=lambda: (time.process_time() - began) / (SECONDS * BUSY))


def spread(values, unit="s"):
    ordered = sorted(values)
    return (
        f"median {statistics.median(ordered):.3f} {unit}, p95 {ordered[int(len(ordered) * 0.95)]:.3f} {unit},"
        f" most {ordered[-1]:.3f} {unit}"
    )


def test_all_decks_and_trace_attempts_agree():
    deals = lines("deals", DIRECTORY)
    assert all(shuffled_deck(deal["seed"]) == deal["deck"] for deal in deals)
    print(f"\n{len(deals)} deals")
    for ruleset in RULESETS:
        traces = lines(f"traces_{ruleset.name}", DIRECTORY)
        print(f"{ruleset.name}: {len(traces)} traces, {sum(follow(trace, ruleset) for trace in traces)} attempts")


@pytest.mark.parametrize("ruleset", BY_NAME)
def test_games_without_undos_are_verified_in_time(ruleset):
    """The literal check takes under 5 ms.

    Games of the older ruleset take a search of under a second. A timeline has under 150 bytes a move.
    """
    replays = [win["replay"] for win in wins(ruleset, undo=False, directory=DIRECTORY)]
    literal, searched, sizes = [], [], []
    for replay in replays:
        body = encoded(replay)
        verdict = check_literally(body)
        literal.append(min(timed(check_literally, body)[1] for _ in range(3)))
        if verdict.status == "pending":
            verdict, seconds = checked(replay)
            searched.append(seconds)
        assert (verdict.status, verdict.undos) == ("verified", 0)
        sizes.append(len(make_timeline(body, verdict)) / len(replay["moves"]))
    print(f"\n{ruleset}: {len(replays)} games, {spread([each * 1000 for each in literal], 'ms')};", end=" ")
    print(f"timeline at most {max(sizes):.0f} bytes a move", end="")
    print(f"; {len(searched)} searches, {spread(searched)}" if searched else "")
    assert bool(searched) == (ruleset != PREFERRED.name)
    assert max(literal) < 0.005 * BUSY
    assert max(searched, default=0) < BUSY
    assert max(sizes) < 150


@pytest.mark.parametrize("ruleset", BY_NAME)
def test_99_of_100_games_with_undos_are_verified_in_time(ruleset):
    """Half of them take less than 0.1 s. No verdict has more undos than there were."""
    games = wins(ruleset, undo=True, directory=DIRECTORY)
    outcomes = [(win, *checked(win["replay"])) for win in games]
    verified = [(win, verdict, seconds) for win, verdict, seconds in outcomes if verdict.status == "verified"]
    differences = Counter(verdict.undos - win["truth"]["undos"] for win, verdict, _ in verified)
    within = [sum(seconds < most for _, _, seconds in verified) for most in (SECONDS, 1)]
    print(f"\n{ruleset}: {len(games)} games, {within[0]} verified within {SECONDS} s, {within[1]} within 1 s;", end=" ")
    print(f"{spread([seconds for *_, seconds in outcomes])}; undos more than there were: {dict(differences)}")
    assert len(verified) >= 0.99 * len(games)
    assert statistics.median(seconds for *_, seconds in outcomes) < 0.1 * BUSY
    assert max(differences) <= 0
    assert all(verdict.score == win["replay"]["final_score"] for win, verdict, _ in verified)


@pytest.mark.parametrize(("count", "depth"), [(3, 12), (2, 25)])
@pytest.mark.parametrize("ruleset", BY_NAME)
def test_nine_of_ten_games_with_deep_branches_are_verified_in_time(ruleset, count, depth):
    """The undos lead to the recorded score."""
    chance = random.Random(f"{count} {depth}")
    replays = [win["replay"] for win in wins(ruleset, undo=False, directory=DIRECTORY)]
    seconds, verified = [], 0
    for replay in [each for each in replays if each["mode"] not in ("Zen", "Challenge")]:
        deep, _ = deepened(read(replay), BY_NAME[ruleset], chance, count=count, depth=depth)
        changed = replay | {"moves": list(map(recorded, deep.moves)), "final_score": deep.final_score}
        verdict, took = checked(changed)
        verified += verdict.status == "verified" and took < SECONDS * BUSY
        seconds.append(took)
    print(
        f"\n{ruleset}: {len(seconds)} games, {count} branches up to {depth} moves deep: {verified} verified,", end=" "
    )
    print(spread(seconds))
    assert verified >= 0.9 * len(seconds)


@pytest.mark.parametrize("how", FORGERIES)
def test_verified_forgeries_are_won_games(how):
    """The plain engine finds each of them won, with the recorded score."""
    chance = random.Random(how)
    statuses, seconds = Counter(), []
    for ruleset in BY_NAME:
        for undo in (False, True):
            replays = [win["replay"] for win in wins(ruleset, undo=undo, directory=DIRECTORY)]
            for replay in [each for each in replays if each["mode"] not in ("Zen", "Challenge")][:6]:
                forged = forge(replay, how, chance)
                verdict, took = checked(forged)
                statuses[str(verdict.status)] += 1
                seconds.append(took)
                if verdict.status == "verified":
                    assert is_explained(read(forged), BY_NAME[verdict.ruleset], verdict.undo_places)
    print(f"\n{how}: {dict(statuses)}, {spread(seconds)}")
