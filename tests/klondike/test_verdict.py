"""Verdicts: verified and refuted replays, and the reasons."""

import copy
import random
import time

import pytest

from solisync.klondike import ENGINE_VERSION, Reason, Status, Verdict, check, check_literally, recorded
from solisync.klondike import verdict as verdicts
from solisync.klondike.rules import COLUMNS, FOUNDATIONS, Move
from solisync.klondike.scoring import PREFERRED, RULESETS
from solisync.klondike.search import Search
from tests.klondike.vectors import BY_NAME, checked, encoded, is_explained, read, started, wins

NAMES = [ruleset.name for ruleset in RULESETS]


def won(**changes):
    """Return a replay that was won without an undo, with these changes."""
    return wins("2026-05-19", undo=False)[0]["replay"] | changes


def moved(source, target, count=1):
    return {"Move": {"from": source, "to": target, "count": count}}


@pytest.mark.parametrize("ruleset", NAMES)
def test_game_without_undos_is_verified_literally(ruleset):
    """The newer ruleset verifies Zen games of the older one.

    Other games of the older one wait for a search by the newer.
    """
    for win in wins(ruleset, undo=False):
        replay = win["replay"]
        verdict = checked(encoded(replay))
        name = NAMES[0] if replay["mode"] == "Zen" else ruleset
        waits = name != NAMES[0] and replay["mode"] != "Challenge"
        assert check_literally(encoded(replay)) == (Verdict(status=Status.PENDING) if waits else verdict)
        moves = len(replay["moves"])
        assert verdict == Verdict(
            status=Status.VERIFIED, ruleset=name, undos=0, score=replay["final_score"], moves=moves
        )


@pytest.mark.parametrize("ruleset", NAMES)
def test_game_with_undos_is_verified_by_a_search(ruleset, full):
    """The literal check leaves it pending. The search finds the same score, with no more undos than there were."""
    for win in wins(ruleset, undo=True, full=full):
        replay, undos = win["replay"], win["truth"]["undos"]
        body = encoded(replay)
        assert check_literally(body) == Verdict(status=Status.PENDING)
        verdict = checked(body)
        assert (verdict.status, verdict.score, verdict.reason) == ("verified", replay["final_score"], None)
        assert verdict.moves == len(replay["moves"])
        assert verdict.undos == len(verdict.undo_places) <= undos
        assert verdict.ruleset == (NAMES[0] if replay["mode"] == "Zen" else ruleset)
        assert is_explained(read(replay), BY_NAME[verdict.ruleset], verdict.undo_places)


@pytest.mark.parametrize("ruleset", NAMES)
def test_recorded_places_of_undos_are_used(ruleset, full):
    """The preferred ruleset needs no search for them; the older one follows a search by the preferred one."""
    for win in wins(ruleset, undo=True, full=full)[:3]:
        found = checked(encoded(win["replay"]))
        body = encoded(win["replay"] | {"undo_places": list(found.undo_places)})
        literally = found if found.ruleset == NAMES[0] else Verdict(status=Status.PENDING)
        assert check_literally(body) == literally
        assert check(body) == found


def test_recorded_places_of_undos_are_used_in_mode_zen():
    """The game begins with a click on the stock that was undone."""
    replay = won(mode="Zen", final_score=0)
    replay["moves"] = ["StockClick", *replay["moves"]]
    verdict = check_literally(encoded(replay | {"undo_places": [1]}))
    assert (verdict.status, verdict.undos, verdict.undo_places) == ("verified", 1, (1,))


@pytest.mark.parametrize(
    "places", [None, {}, "0", [0], [5, 4], [-1], [10**6], [1.5], [True], ["1"], [0] * 10_000, [[0]]], ids=repr
)
def test_wrong_places_of_undos_count_as_absent(places):
    """A list of the wrong form, or of other places, changes no verdict."""
    assert check(encoded(won(undo_places=places))) == check(encoded(won()))


def test_places_of_undos_count_as_absent_in_mode_challenge():
    """Mode Challenge has no undo."""
    replay = won(mode="Challenge")
    replay["moves"] = ["StockClick", *replay["moves"]]
    assert check(encoded(replay | {"undo_places": [1]})) == check(encoded(replay))


def explained_by_both():
    """The end of a won game with a move made there and back; the board it begins on, and the score it claims.

    The older ruleset gives that score to all moves; the newer one does if both moves were undone.
    """
    whole = read(wins("2026-05-19", undo=False)[2]["replay"])
    playing, boards = started(whole, PREFERRED), []
    for move in whole.moves:
        boards.append(playing.board)
        playing.play(move)
    first, there, back = boards[61], Move(COLUMNS[0], COLUMNS[2], 5), Move(COLUMNS[2], COLUMNS[0], 5)
    moves = (*whole.moves[61:71], there, back, *whole.moves[71:])
    scores = []
    for ruleset in RULESETS:
        game = started(whole, ruleset, first)
        assert all(game.play(move) for move in moves)
        assert game.won
        scores.append(game.score)
    assert scores[0] == scores[1] + 15
    replay = wins("2026-05-19", undo=False)[2]["replay"]
    return replay | {"moves": list(map(recorded, moves)), "final_score": scores[1]}, first


def test_preferred_ruleset_wins_if_both_explain_a_game(monkeypatch):
    """The preferred ruleset wins even with undos where the older one needs none."""
    replay, first = explained_by_both()
    monkeypatch.setattr(verdicts, "deal", lambda seed: first)
    assert check_literally(encoded(replay)) == Verdict(status=Status.PENDING)
    verdict = check(encoded(replay))
    assert (verdict.status, verdict.ruleset, verdict.undos) == ("verified", "2026-05-19", 2)


def test_older_ruleset_has_its_turn_when_the_preferred_one_takes_too_long():
    """The last part of the time is reserved for it."""
    replay = wins("2026-05-01", undo=True)[0]["replay"]
    verdict = check(encoded(replay), used=lambda: verdicts.PREFERRED_SHARE)
    assert (verdict.status, verdict.ruleset) == ("verified", "2026-05-01")
    assert 0 < verdict.undos == len(verdict.undo_places)


@pytest.mark.parametrize(("lacking", "status"), [(NAMES[:1], "verified"), (NAMES, "undecided")])
def test_older_ruleset_has_its_turn_when_the_preferred_one_lacks_memory(monkeypatch, lacking, status):
    """A search without memory ends without a result, under either ruleset."""

    class Greedy(Search):
        def __init__(self, recording, first, ruleset, spend):
            super().__init__(recording, first, ruleset, spend)
            self._is_greedy = ruleset.name in lacking

        def run(self):
            if self._is_greedy:
                raise MemoryError
            return super().run()

    monkeypatch.setattr(verdicts, "Search", Greedy)
    verdict = check(encoded(wins("2026-05-01", undo=True)[0]["replay"]))
    ruleset, reason = ("2026-05-01", None) if status == "verified" else (None, Reason.BUDGET)
    assert (verdict.status, verdict.ruleset, verdict.reason) == (status, ruleset, reason)


def test_farmed_points_count_only_under_the_older_ruleset():
    """An ace that moves from foundation to foundation scores each time there, without end."""
    replay = wins("2026-05-01", undo=False)[0]["replay"]
    ace, move = next((at, move) for at, move in enumerate(read(replay).moves) if move.target in FOUNDATIONS)
    home = {"Foundation": move.target}
    hops = [moved(home, {"Foundation": 3 - move.target}), moved({"Foundation": 3 - move.target}, home)] * 450
    moves = replay["moves"][: ace + 1] + hops + replay["moves"][ace + 1 :]
    verdict = check_literally(encoded(replay | {"moves": moves, "final_score": replay["final_score"] + 9_000}))
    assert (verdict.status, verdict.ruleset) == ("verified", "2026-05-01")


FORGERIES = ["score", "far score", "gone", "click gone", "click added", "swapped", "target", "seed", "cut"]


def forge(replay, how, chance):
    replay = copy.deepcopy(replay)
    moves = replay["moves"]
    clicks = [place for place, move in enumerate(moves) if move == "StockClick"]
    others = [place for place, move in enumerate(moves) if move != "StockClick"]
    if how == "score":
        replay["final_score"] = max(0, replay["final_score"] + chance.choice([-50, -15, -5, 5, 15, 50]))
    elif how == "far score":
        replay["final_score"] += 1000
    elif how == "gone":
        del moves[chance.choice(others)]
    elif how == "click gone":
        del moves[chance.choice(clicks)]
    elif how == "click added":
        moves.insert(chance.randrange(len(moves)), "StockClick")
    elif how == "swapped":
        place = chance.choice([place for place in range(len(moves) - 1) if moves[place] != moves[place + 1]])
        moves[place : place + 2] = reversed(moves[place : place + 2])
    elif how == "target":
        moves[chance.choice(others)]["Move"]["to"] = {"Tableau": chance.randrange(7)}
    elif how == "seed":
        replay["seed"] ^= 1
    else:
        del moves[chance.randrange(10, len(moves)) :]
    return replay


@pytest.mark.parametrize("how", FORGERIES)
def test_forgery_is_verified_only_if_it_is_a_won_game(how):
    """The plain engine decides. Forgeries far from a won game are never verified."""
    chance = random.Random(how)
    replays = [win["replay"] for name in NAMES for undo in (False, True) for win in wins(name, undo=undo)[1:2]]
    statuses = []
    for replay in replays:
        forged = forge(replay, how, chance)
        verdict = check(encoded(forged), steps=80_000)
        statuses.append(verdict.status)
        if verdict.status is Status.VERIFIED:
            assert is_explained(read(forged), BY_NAME[verdict.ruleset], verdict.undo_places)
            assert verdict.score == forged["final_score"]
        else:
            assert verdict.reason in (Reason.NO_EXPLANATION, Reason.ILLEGAL_MOVE, Reason.BUDGET)
    if how in ("far score", "gone", "target", "seed", "cut"):
        assert Status.VERIFIED not in statuses
        assert Status.REFUTED in statuses


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"final_score": -5}, "score"),
        ({"final_score": 92}, "score"),
        ({"final_score": 90.5}, "score"),
        ({"mode": "Zen"}, "score"),
        ({"moves": [moved("Stock", "Waste", 0)]}, "illegal_move"),
        ({"moves": [moved({"Tableau": 1}, {"Tableau": 1})]}, "illegal_move"),
        ({"moves": [moved("Waste", {"Tableau": 1}, 10**9)]}, "illegal_move"),
        ({"moves": ["StockClick"] * 10_000}, "no_explanation"),
    ],
)
def test_impossible_score_or_move_is_refuted_without_a_search(changes, reason):
    """Too few moves are refuted by counting them."""
    verdict = check(encoded(won(**changes)), steps=1)
    assert (verdict.status, verdict.reason) == ("refuted", reason)


def test_score_is_compared_as_a_number():
    """650.0 is 650, and the verdict has the integer."""
    replay = won()
    verdict = check_literally(encoded(replay | {"final_score": float(replay["final_score"])}))
    assert verdict == check_literally(encoded(replay))
    assert type(verdict.score) is int


def test_mode_challenge_is_decided_literally():
    """The reason is the one nearest to a win of both rulesets."""
    for name in NAMES:
        replay = next(win["replay"] for win in wins(name, undo=False) if win["replay"]["mode"] == "Challenge")
        cases = [
            ({"final_score": replay["final_score"] + 5}, "score"),
            ({"moves": replay["moves"][:-1]}, "not_won"),
            ({"moves": [*replay["moves"], "StockClick"]}, "illegal_move"),
        ]
        for changes, reason in cases:
            verdict = check_literally(encoded(replay | changes))
            assert (verdict.status, verdict.reason) == ("refuted", reason)
    explained = wins("2026-05-19", undo=True)[0]["replay"]
    assert check(encoded(explained | {"mode": "Challenge"})).status is Status.REFUTED


def test_unreadable_replays_have_their_reason():
    """The literal check and the whole check return the same reason."""
    for body, reason in ((b"", "shape"), (b"{}", "no_seed"), (b'{"seed": 1}', "no_moves")):
        verdict = check(body)
        assert verdict == check_literally(body) == Verdict(status=Status.UNREADABLE, reason=Reason(reason))


ROUNDED = 2**60 + 2**8  # a double, as each of a rounded seed's neighbours is not


@pytest.mark.parametrize("seed", [ROUNDED, str(ROUNDED), 2**53 + 2, 2**63])
def test_rounded_seed_is_the_reason_of_a_refuted_replay(seed):
    """The rounded seed replaces any other reason of a refuted or undecided replay; the status stays."""
    clicks = ["StockClick"] * (verdicts.MOVES_MAX + 1)
    for changes, status in (({}, "refuted"), ({"final_score": 92}, "refuted"), ({"moves": clicks}, "undecided")):
        verdict = check(encoded(won(seed=seed, **changes)))
        assert verdict == Verdict(status=Status(status), reason=Reason.SEED_ROUNDED)
    assert check_literally(encoded(won(seed=seed))) == Verdict(status=Status.PENDING)
    assert check_literally(encoded(won(seed=seed, mode="Challenge"))).reason is Reason.SEED_ROUNDED
    assert check_literally(encoded(won(seed=seed, moves=[]))).reason is Reason.NO_MOVES


@pytest.mark.parametrize("seed", [0, 1364344768803968, 2**53, 2**53 + 1, ROUNDED + 1, 2**64 - 1])
def test_exact_seed_is_never_the_reason(seed):
    """No seed up to 2^53 is rounded, and a rounded seed is a double."""
    assert check(encoded(won(seed=seed, final_score=92))).reason is Reason.SCORE


def test_rounded_seed_does_not_prevent_a_proof(monkeypatch):
    """Some seeds are doubles by chance."""
    monkeypatch.setattr(verdicts, "deal", lambda seed, real=verdicts.deal: real(won()["seed"]))
    assert (check(encoded(won(seed=ROUNDED))).status, check(encoded(won(seed=ROUNDED))).reason) == ("verified", None)


def test_stopped_search_is_undecided():
    """The caller or the number of steps stops it. A recording far from any game isn't even played."""
    body = encoded(wins("2026-05-19", undo=True)[2]["replay"])
    undecided = Verdict(status=Status.UNDECIDED, reason=Reason.BUDGET)
    assert check(body, steps=10) == undecided
    assert check(body, used=lambda: 1) == undecided
    assert check_literally(encoded(won(moves=["StockClick"] * (verdicts.MOVES_MAX + 1)))) == undecided


def test_exception_of_the_caller_ends_the_search():
    """A checker can stop a search that way, too."""

    def interrupted():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        check(encoded(wins("2026-05-19", undo=True)[2]["replay"]), used=interrupted)


def test_plain_game_confirms_each_result_of_the_search(monkeypatch):
    """A mistaken search verifies nothing."""
    monkeypatch.setattr(Search, "run", lambda _: (1,))
    verdict = check(encoded(wins("2026-05-19", undo=True)[0]["replay"]))
    assert verdict == Verdict(status=Status.UNDECIDED, reason=Reason.CRASHED)


def test_literal_check_takes_milliseconds():
    """The figure is the fastest of a few runs of the longest game here."""
    body = encoded(max((win["replay"] for win in wins("2026-05-19", undo=False)), key=lambda each: len(each["moves"])))
    seconds = []
    for _ in range(5):
        started = time.process_time()
        check_literally(body)
        seconds.append(time.process_time() - started)
    assert min(seconds) < 0.02


def test_engine_version_is_a_positive_integer():
    assert ENGINE_VERSION >= 1
