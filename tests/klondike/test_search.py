"""The search finds the fewest possible undos, and none where no undos explain the game."""

import random
from dataclasses import replace
from itertools import product

import pytest

from solisync.klondike import branches, game
from solisync.klondike.deal import deal
from solisync.klondike.rules import COLUMNS, FOUNDATIONS, STOCK_CLICK, WASTE, Move
from solisync.klondike.scoring import PREFERRED, RULESETS
from solisync.klondike.search import Budget, OutOfBudgetError, Search
from tests.klondike.exhaustive import fewest_undos
from tests.klondike.vectors import is_explained, legal_moves, read, started, wins

MOST = 4
CANDIDATES = [STOCK_CLICK]
CANDIDATES += [Move(source, target, 1) for source, target in product([*COLUMNS, WASTE], [*FOUNDATIONS, *COLUMNS])]
CANDIDATES += [Move(source, target, size) for source, target, size in product(COLUMNS, COLUMNS, (2, 3, 4))]


def endgame(chance, undo_depth):
    """The last moves of a won game, with undone moves, and sometimes forged: a recording and a board."""
    ruleset = chance.choice(RULESETS)
    replays = [win["replay"] for win in wins(ruleset.name, undo=False) if win["replay"]["mode"] != "Challenge"]
    whole = read(chance.choice(replays))
    length = chance.randint(8, 40)
    before = started(whole, ruleset)
    for move in whole.moves[:-length]:
        before.play(move)
    playing, moves, undos = started(whole, ruleset, before.board), [], 0
    for move in whole.moves[-length:]:
        undone = 0
        while undos + undone < MOST and undone < undo_depth and chance.random() < (0.5 if undone else 0.15):
            candidates = legal_moves(playing.board, whole.draw, ruleset, CANDIDATES)
            tried = STOCK_CLICK if STOCK_CLICK in candidates and chance.random() < 0.5 else chance.choice(candidates)
            playing.play(tried)
            moves.append(tried)
            undone += 1
            if chance.random() < 0.3:
                undone -= playing.undo()
                undos += 1
        for _ in range(undone):
            undos += playing.undo()
        assert playing.play(move)
        moves.append(move)
    score = playing.score
    if chance.random() < 0.5 and not whole.is_zen:
        score = max(0, score + chance.choice([-100, -50, -30, -20, -15, -5, 5, 15, 20, 30]))
    if chance.random() < 0.2:
        del moves[chance.randrange(len(moves))]
    if chance.random() < 0.2:
        moves.insert(chance.randrange(len(moves)), STOCK_CLICK)
    return replace(whole, moves=tuple(moves), final_score=score), before.board


@pytest.mark.parametrize("undo_depth", [64, 1, 2])
def test_search_agrees_with_the_exhaustive_search(undo_depth, monkeypatch):
    """The numbers of undos agree in true and forged endgames, under each ruleset and undo depth."""
    monkeypatch.setattr(game, "UNDO_DEPTH", undo_depth)
    monkeypatch.setattr(branches, "UNDO_DEPTH", undo_depth)
    chance = random.Random(undo_depth)
    outcomes = set()
    for _ in range(25):
        recording, first = endgame(chance, undo_depth)
        for ruleset in RULESETS:
            expected = fewest_undos(recording, first, ruleset, MOST, undo_depth=undo_depth)
            found = Search(recording, first, ruleset, Budget().spend).run()
            if found is None:
                assert expected is None
                continue
            assert is_explained(recording, ruleset, found, first)
            assert len(found) > MOST if expected is None else len(found) == expected
            outcomes.add(len(found))
    assert len(outcomes) > 2


def deepened(whole, ruleset, chance, *, count, depth):
    """Return a won game with this many branches, each undone immediately, up to `depth` moves deep; and its undos."""
    playing, moves, undos = started(whole, ruleset), [], 0
    places = set(chance.sample(range(len(whole.moves)), count))
    for place, move in enumerate(whole.moves):
        made = 0
        for _ in range(chance.randint(1, depth) if place in places else 0):
            candidates = legal_moves(playing.board, whole.draw, ruleset, CANDIDATES)
            if candidates:
                tried = (
                    STOCK_CLICK if STOCK_CLICK in candidates and chance.random() < 0.4 else chance.choice(candidates)
                )
                made += playing.play(tried) is not None
                moves.append(tried)
        undos += sum(playing.undo() for _ in range(made))
        playing.play(move)
        moves.append(move)
    return replace(whole, moves=tuple(moves), final_score=playing.score), undos


@pytest.mark.parametrize(("count", "depth"), [(3, 12), (8, 4), (15, 2)])
def test_search_finds_many_moves_undone_together(count, depth):
    """People undo that way. The result has no more undos than there were."""
    chance = random.Random(count)
    for ruleset in RULESETS:
        whole = read(wins(ruleset.name, undo=False)[0]["replay"])
        recording, undos = deepened(whole, ruleset, chance, count=count, depth=depth)
        found = Search(recording, deal(recording.seed), ruleset, Budget().spend).run()
        assert len(found) <= undos
        assert is_explained(recording, ruleset, found)


def test_too_long_branch_leaves_the_search_undecided(monkeypatch):
    """A longer branch could have explained the game."""
    whole = read(wins("2026-05-19", undo=False)[0]["replay"])
    recording = replace(whole, final_score=whole.final_score + 5)
    assert Search(recording, deal(recording.seed), PREFERRED, Budget().spend).run() is None
    monkeypatch.setattr(branches, "LONGEST", 2)
    with pytest.raises(OutOfBudgetError):
        Search(recording, deal(recording.seed), PREFERRED, Budget().spend).run()


def test_budget_ends_the_search():
    """The budget is a number of steps, equal on all machines, or a caller that is asked regularly."""
    recording = read(wins("2026-05-19", undo=True)[2]["replay"])

    def search(spend):
        return Search(recording, deal(recording.seed), PREFERRED, spend).run()

    spent = []
    search(spent.append)
    needed = sum(spent)
    search(Budget(steps=needed + 2_000).spend)
    asked = []
    of_a_share = Budget(steps=needed + 2_000)
    of_a_share.share = 0.5
    for budget in (Budget(steps=needed // 2), of_a_share, Budget(used=lambda: asked.append(1) or len(asked) / 2)):
        with pytest.raises(OutOfBudgetError):
            search(budget.spend)
    assert len(asked) == 2
