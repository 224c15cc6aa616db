"""The moves that a board accepts, their results, and their scores."""

import pytest

from solisync.klondike.game import UNDO_DEPTH, Game
from solisync.klondike.rules import (
    FACE_DOWN,
    PILE_NAMES,
    STOCK_CLICK,
    Move,
    MoveEvent,
    can_be_legal,
    is_won,
    needs_leniency,
    play,
)
from solisync.klondike.scoring import MAY_1, MAY_19

CLUBS, DIAMONDS, HEARTS, SPADES = range(0, 52, 13)
ACE, TWO, THREE, FOUR, FIVE, QUEEN, KING = 0, 1, 2, 3, 4, 11, 12


def board(**piles):
    """Return a board with these cards in these piles, and nothing else."""
    return tuple(bytes(piles.get(name, ())) for name in PILE_NAMES)


def move(source, target, size=1):
    return Move(PILE_NAMES.index(source), PILE_NAMES.index(target), size)


def accepts(start, *words, lenient=False):
    return play(start, move(*words), 1, lenient=lenient) is not None


def game(start, ruleset=MAY_19, draw=1, **options):
    return Game(start, ruleset, draw=draw, **options)


@pytest.mark.parametrize(
    "words",
    [
        ("t0", "t0", 1),
        ("t0", "t1", 0),
        ("t0", "t1", 3),
        ("t0", "t1", 10**30),
        ("t0", "s", 1),
        ("t0", "w", 1),
        ("s", "w", 0),
        ("s", "w", 1),
        ("s", "t1", 1),
        ("w", "s", 1),
        ("t5", "t1", 1),
    ],
)
def test_malformed_move_is_refused(words):
    """Examples are the same pile twice, no cards or too many, the stock as source, or an empty pile."""
    start = board(s=[CLUBS], w=[CLUBS + KING], t0=[SPADES + THREE, HEARTS + TWO], t1=[HEARTS + FOUR])
    for lenient in (False, True):
        assert not accepts(start, *words, lenient=lenient)


@pytest.mark.parametrize(
    ("column", "cards", "accepted"),
    [
        ([HEARTS + FOUR], [SPADES + THREE], True),
        ([HEARTS + FOUR], [CLUBS + THREE, DIAMONDS + TWO], True),
        ([HEARTS + FOUR], [DIAMONDS + THREE], False),
        ([HEARTS + FOUR], [SPADES + TWO], False),
        ([HEARTS + FOUR], [SPADES + FIVE], False),
        ([HEARTS + FOUR], [SPADES + THREE, HEARTS + ACE], False),
        ([HEARTS + FOUR], [SPADES + THREE, SPADES + TWO], False),
        ([HEARTS + FOUR], [SPADES + THREE + FACE_DOWN, HEARTS + TWO], False),
        ([HEARTS + ACE], [SPADES + KING], False),
        ([], [SPADES + KING], True),
        ([], [SPADES + KING, HEARTS + QUEEN], True),
        ([], [SPADES + KING + FACE_DOWN, HEARTS + QUEEN], False),
        ([], [SPADES + QUEEN], False),
    ],
)
def test_column_takes_the_next_lower_rank_of_the_other_colour(column, cards, accepted):
    """An empty column takes a king. A run of face-up cards moves as one."""
    assert accepts(board(t0=column, t1=cards), "t1", "t0", len(cards)) is accepted


@pytest.mark.parametrize(
    ("foundation", "card", "accepted"),
    [
        ([], HEARTS + ACE, True),
        ([], HEARTS + TWO, False),
        ([HEARTS], HEARTS + TWO, True),
        ([HEARTS], DIAMONDS + TWO, False),
        ([HEARTS], HEARTS + THREE, False),
        (range(CLUBS, CLUBS + 13), DIAMONDS + ACE, False),
    ],
)
def test_foundation_takes_an_ace_or_the_next_rank(foundation, card, accepted):
    """Any empty foundation takes any ace; one card moves at a time."""
    assert accepts(board(f1=foundation, t0=[card]), "t0", "f1") is accepted
    assert accepts(board(f1=foundation, w=[card]), "w", "f1") is accepted
    assert not accepts(board(f1=foundation, t0=[card, card]), "t0", "f1", 2)


def test_only_the_lenient_rules_move_an_ace_between_foundations_or_a_run_from_the_waste():
    """Both moves are `needs_leniency`. Neither ruleset accepts a run that doesn't fit."""
    start = board(f0=[CLUBS], t0=[HEARTS + FOUR], w=[HEARTS + THREE, SPADES + THREE, HEARTS + TWO])
    for words in (("f0", "f1", 1), ("w", "t0", 2)):
        assert needs_leniency(move(*words))
        assert accepts(start, *words, lenient=True)
        assert not accepts(start, *words)
    assert not accepts(start, "w", "t0", 3, lenient=True)
    assert not needs_leniency(move("w", "t0"))
    assert not needs_leniency(STOCK_CLICK)


def test_card_returns_from_a_foundation_to_a_column():
    start = board(f0=[CLUBS, CLUBS + TWO], t0=[HEARTS + THREE])
    assert accepts(start, "f0", "t0")
    assert not accepts(start, "f0", "t0", 2)


def test_column_turns_up_its_last_card():
    """The card beneath the moved ones lies face up immediately."""
    played = play(board(t0=[CLUBS + FACE_DOWN, SPADES + FACE_DOWN, HEARTS]), move("t0", "f0"), 1, lenient=False)
    assert played.board == board(f0=[HEARTS], t0=[CLUBS + FACE_DOWN, SPADES])
    assert played.event is MoveEvent.CARD_TURNED_UP


@pytest.mark.parametrize(("draw", "drawn"), [(1, [[3], [2], [1], [0]]), (3, [[1, 2, 3], [0]])])
def test_click_draws_from_the_stock_or_turns_the_waste_over(draw, drawn):
    """Drawn cards keep their order. The waste becomes the stock in reverse; if both are empty, the click is refused."""
    now = start = board(s=[0, 1, 2, 3])
    waste = []
    for cards in drawn:
        waste += cards
        now, event = play(now, STOCK_CLICK, draw, lenient=False)
        assert (now[-1], event) == (bytes(waste), MoveEvent.NONE)
    assert play(now, STOCK_CLICK, draw, lenient=False) == (board(s=waste[::-1]), MoveEvent.WASTE_TURNED_OVER)
    assert play(board(), STOCK_CLICK, draw, lenient=False) is None
    assert start == board(s=[0, 1, 2, 3])


def test_impossible_moves_are_refused_by_every_board():
    """Examples use the stock, the waste as a target, the same pile, no card, or too many cards."""
    for words in (("t0", "t1", 13), ("w", "t0", 13), ("f0", "f1", 1), ("f0", "t0", 1), ("t0", "f0", 1)):
        assert can_be_legal(move(*words))
    assert can_be_legal(STOCK_CLICK)
    never = [("s", "w", 0), ("s", "t0", 1), ("t0", "w", 1), ("t0", "s", 1), ("t0", "t0", 1), ("t0", "t1", 0)]
    never += [("t0", "t1", 14), ("t0", "f0", 2), ("f0", "t0", 2), ("w", "f0", 2)]
    for words in never:
        assert not can_be_legal(move(*words)), words


@pytest.mark.parametrize(
    ("words", "now", "before"),
    [
        (("t0", "f0"), 15, 10),
        (("w", "f0"), 10, 10),
        (("w", "t1"), 5, 5),
        (("f1", "t2"), -15, 0),
        (("t0", "t3"), 5, 0),
    ],
)
def test_each_move_scores_by_its_ruleset(words, now, before):
    """A card turned up counts with the move, before the floor at 0."""
    piles = {"t0": [SPADES + FACE_DOWN, HEARTS], "w": [CLUBS], "t1": [DIAMONDS + TWO]}
    piles |= {"f1": [DIAMONDS, DIAMONDS + TWO], "t2": [SPADES + THREE], "t3": [CLUBS + TWO]}
    for ruleset, points in ((MAY_19, now), (MAY_1, before)):
        playing = game(board(**piles), ruleset)
        playing.score = 100
        assert playing.play(move(*words))
        assert playing.score == 100 + points
        for score in (0, 5):
            playing = game(board(**piles), ruleset)
            playing.score = score
            playing.play(move(*words))
            assert playing.score == max(0, score + points)


@pytest.mark.parametrize(("draw", "fines"), [(1, [0, 100, 100, 100, 100]), (3, [0, 0, 0, 20, 20])])
def test_turning_the_waste_over_costs_points_by_ruleset(draw, fines):
    """Drawing one card, the second turn costs; drawing three, the fourth. In the older ruleset none does."""
    for ruleset, expected in ((MAY_19, fines), (MAY_1, [0] * 5)):
        playing = game(board(s=[0]), ruleset, draw)
        for fine in expected:
            playing.score = 500
            playing.play(STOCK_CLICK)
            playing.play(STOCK_CLICK)
            assert playing.score == 500 - fine


def test_undo_costs_15_points_off_the_score_before_the_move():
    """Board and number of moves are restored. The number of turns of the waste isn't."""
    playing = game(board(t0=[HEARTS], t1=[SPADES], w=[CLUBS]))
    playing.play(move("t0", "f0"))
    playing.play(move("t1", "f1"))
    assert playing.undo()
    assert (playing.score, playing.moves) == (0, 1)
    playing.score = 50
    playing.play(STOCK_CLICK)
    assert playing.undo()
    assert (playing.score, playing.turns, playing.board) == (35, 1, board(f0=[HEARTS], t1=[SPADES], w=[CLUBS]))


def test_last_64_moves_can_be_undone():
    """A game without undo refuses all."""
    playing = game(board(s=[0, 1]))
    for _ in range(UNDO_DEPTH + 5):
        playing.play(STOCK_CLICK)
    assert [playing.undo() for _ in range(UNDO_DEPTH + 1)] == [True] * 64 + [False]
    strict = game(board(s=[0, 1]), undo=False)
    strict.play(STOCK_CLICK)
    assert not strict.undo()


def test_won_game_accepts_no_move_and_no_undo():
    """A game is won when each foundation has a whole suit."""
    suits = [range(suit, suit + 13) for suit in (CLUBS, DIAMONDS, HEARTS, SPADES)]
    playing = game(board(f0=suits[0], f1=suits[1], f2=suits[2], f3=suits[3][:-1], t0=[SPADES + KING]))
    assert not playing.won
    assert playing.play(move("t0", "f3"))
    assert playing.won
    assert is_won(playing.board)
    assert not playing.play(move("f3", "t0"))
    assert not playing.undo()


def test_zen_has_neither_points_nor_penalties():
    playing = game(board(t0=[HEARTS]), zen=True)
    playing.play(move("t0", "f0"))
    assert playing.score == 0
    playing.undo()
    assert playing.score == 0
