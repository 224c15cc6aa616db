"""The solver finds wins that the checker verifies."""

import pytest

from solisync.klondike import DRAW_MODES, Status, check_literally, find_win, recorded
from tests.klondike.vectors import encoded

SEEDS = (1, 2**64 - 3)
SMALL = 394


@pytest.mark.parametrize("draw_mode", DRAW_MODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_found_win_is_verified_with_its_score(seed, draw_mode):
    win = find_win(seed, draw_mode)
    replay = {"mode": "Classic", "draw_mode": draw_mode, "seed": seed, "final_score": win.score}
    verdict = check_literally(encoded(replay | {"moves": [recorded(move) for move in win.moves]}))
    assert (verdict.status, verdict.undos, verdict.score) == (Status.VERIFIED, 0, win.score)


def test_search_ends_with_its_budget():
    """The deal is one that the default budget wins."""
    assert find_win(SEEDS[0], "DrawOne", budget=50) is None


def test_search_ends_when_all_positions_are_visited():
    """The deal has few positions, and no win."""
    assert find_win(SMALL, "DrawThree", budget=10**9) is None
