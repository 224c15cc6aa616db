"""The deal of a seed: Rust's `StdRng::seed_from_u64` and `shuffle` of rand 0.9, and the resulting board.

A card is its id, 0..51: suit = id // 13 (clubs, diamonds, hearts, spades), rank = id % 13 + 1.
"""

import re
from collections.abc import Iterator
from itertools import count
from struct import unpack

from .rules import COLUMNS, FACE_DOWN, Board

CARDS = 52
SEED_MAX = 2**64 - 1
EXACT_MAX = 2**53  # a double holds every integer up to it
SEED_PATTERN = "^(0|[1-9][0-9]{0,19})$"  # for seeds as text; `read_seed` checks the upper bound

_U32 = 2**32 - 1
_CONSTANTS = unpack("<4I", b"expand 32-byte k")
_COLUMN_ROUND = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONAL_ROUND = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_DOUBLE_ROUNDS = 6


def deal(seed: int) -> Board:
    """The board at the start of the game with this seed (0 to 2^64-1)."""
    deck = shuffled_deck(seed)
    columns = []
    for height in range(1, len(COLUMNS) + 1):
        column, deck = deck[:height], deck[height:]
        columns.append(bytes([*(card + FACE_DOWN for card in column[:-1]), column[-1]]))
    return (b"", b"", b"", b"", *columns, bytes(deck), b"")


def read_seed(value: object) -> int | None:
    """Return the seed from an integer, or from text without a sign, leading zeros or spaces; None for anything else.

    A whole float below 2^53 counts as an integer, because some JSON libraries write all numbers as doubles.
    """
    if isinstance(value, str) and re.fullmatch(SEED_PATTERN, value):
        value = int(value)
    elif isinstance(value, float):
        value = exact_integer(value)
    return value if type(value) is int and 0 <= value <= SEED_MAX else None


def exact_integer(value: float) -> int | float:
    """Return an integer for a whole double up to 2^53, which is exact; otherwise the double."""
    return int(value) if abs(value) < EXACT_MAX and value.is_integer() else value


def shuffled_deck(seed: int) -> list[int]:
    """The 52 card ids in the order of dealing: a forward Fisher-Yates shuffle, with several indices a random number."""
    words = _random_words(_key(seed))
    deck = list(range(CARDS))
    chunk, left = 0, 0  # a random number, and the number of indices that it still yields
    for i in range(1, CARDS):
        if not left:
            bound, left = _chunk_bound(i + 1)
            chunk = _below(bound, words)
        left -= 1
        chunk, j = divmod(chunk, i + 1) if left else (0, chunk)
        deck[i], deck[j] = deck[j], deck[i]
    return deck


def _chunk_bound(n: int) -> tuple[int, int]:
    """The product n·(n+1)·… of as many factors as stay below 2^32, and their number."""
    bound, factors = n, 1
    while bound * (n + factors) <= _U32:
        bound *= n + factors
        factors += 1
    return bound, factors


def _below(bound: int, words: Iterator[int]) -> int:
    """A number below `bound` by Canon's method: from one word, and a second one only if it could change the result."""
    high, low = divmod(next(words) * bound, 2**32)
    if low > 2**32 - bound and low + (next(words) * bound >> 32) >= 2**32:
        high += 1
    return high


def _key(seed: int) -> list[int]:
    """The eight words of the ChaCha key: the output of a PCG32 that starts at the seed."""
    key = []
    for _ in range(8):
        seed = (seed * 6364136223846793005 + 11634580027462260723) % 2**64
        word, turn = ((seed >> 18) ^ seed) >> 27 & _U32, seed >> 59
        key.append((word >> turn | word << (32 - turn)) & _U32)
    return key


def _random_words(key: list[int]) -> Iterator[int]:
    """The output of ChaCha with 12 rounds, a 64-bit block counter from 0 and a zero stream id, word by word."""
    for block in count():
        start = [*_CONSTANTS, *key, block & _U32, block >> 32, 0, 0]
        state = start.copy()
        for _ in range(_DOUBLE_ROUNDS):
            for a, b, c, d in _COLUMN_ROUND + _DIAGONAL_ROUND:
                _quarter_round(state, a, b, c, d)
        yield from ((x + y) & _U32 for x, y in zip(state, start, strict=True))


def _quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    """The quarter round of RFC 8439 §2.1."""
    for to, add, mix, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[to] = (state[to] + state[add]) & _U32
        mixed = state[mix] ^ state[to]
        state[mix] = (mixed << turn | mixed >> (32 - turn)) & _U32
