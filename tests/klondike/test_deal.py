"""The deal uses the random numbers of rand 0.9."""

from solisync.klondike.deal import _key, _random_words, deal, shuffled_deck
from solisync.klondike.rules import COLUMNS, FACE_DOWN, STOCK
from tests.klondike.vectors import lines


def test_decks_equal_those_of_the_game():
    """The vectors have seeds at both ends of the range."""
    vectors = lines("deals")
    assert {0, 42, 2**53 + 1, 2**64 - 1} <= {vector["seed"] for vector in vectors}
    for vector in vectors:
        assert shuffled_deck(vector["seed"]) == vector["deck"]


def test_generator_equals_stdrng_for_seed_42():
    """Key and first words are those of `StdRng::seed_from_u64(42)`."""
    key = "7ba18fa4 0a3d3258 cca1b8ea b8140169 75c88c2b 54f7b418 a16e448d f220dfe4"
    assert _key(42) == [int(word, 16) for word in key.split()]
    words = _random_words(_key(42))
    assert [next(words) for _ in range(4)] == [572990626, 2261546851, 1068323197, 2330987027]


def test_board_is_dealt_from_the_front_of_the_deck():
    """Column c gets c+1 cards, the last one face up; the other 24 are the stock, the last card its top."""
    board, deck = deal(7), shuffled_deck(7)
    dealt = [card for pile in COLUMNS for card in board[pile]]
    assert [card % FACE_DOWN for card in dealt] + list(board[STOCK]) == deck
    assert [len(board[pile]) for pile in COLUMNS] == [1, 2, 3, 4, 5, 6, 7]
    for pile in COLUMNS:
        assert [card >= FACE_DOWN for card in board[pile]] == [True] * (len(board[pile]) - 1) + [False]
