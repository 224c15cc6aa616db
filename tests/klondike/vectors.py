"""Answers of the game's own engine: deals, traces of moves, won games; and helpers to write and play moves."""

import gzip
import json
import os
from collections import Counter
from functools import cache
from pathlib import Path

from solisync.klondike import check
from solisync.klondike.deal import deal
from solisync.klondike.game import Game
from solisync.klondike.recording import read_recording
from solisync.klondike.rules import FACE_DOWN, PILE_NAMES, is_won, play
from solisync.klondike.scoring import RULESETS

HERE = Path(__file__).resolve().parent / "vectors"
DIRECTORY = Path(os.environ.get("KLONDIKE_VECTORS", HERE))
BY_NAME = {ruleset.name: ruleset for ruleset in RULESETS}
SECONDS_LONG = {"wins_with_undo_2026-05-01": (1, 4, 7)}  # wins whose search takes more than a second


@cache
def lines(name, directory=HERE):
    """The objects of a file of vectors, one a line: `deals`, `wins_2026-05-19`, …"""
    (path,) = directory.glob(f"{name}.jsonl*")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def wins(ruleset, *, undo, full=True, directory=HERE):
    """Won games, each with its replay as uploaded and its real moves; without `full`, those of a short search."""
    name = f"wins_{'with_undo_' if undo else ''}{ruleset}"
    long = () if full else SECONDS_LONG.get(name, ())
    return [win for place, win in enumerate(lines(name, directory)) if place not in long]


def encoded(replay):
    return json.dumps(replay).encode()


@cache
def checked(body):
    """Return the verdict of a whole check, cached for all tests."""
    return check(body)


def read(replay):
    return read_recording(encoded(replay))


def move_of(recorded):
    """Return a recorded move as the engine has it; for a whole list, read_recording does the same."""
    fields = {"seed": 0, "mode": "Zen", "draw_mode": "DrawOne", "final_score": 0, "moves": [recorded]}
    return read(fields).moves[0]


def board_text(board):
    """A board in one line, piles by name, cards bottom to top, face-down ones in parentheses: `f0:0 1|…|t0:(7) 3|…`."""
    piles = []
    for name, pile in sorted(zip(PILE_NAMES, board, strict=True)):
        least = 0 if name == "s" else FACE_DOWN
        cards = (f"({card % FACE_DOWN})" if card >= least else str(card) for card in pile)
        piles.append(f"{name}:{' '.join(cards)}")
    return "|".join(piles)


def started(recording, ruleset, board=None):
    """Return a game in which a recording can be played."""
    first = deal(recording.seed) if board is None else board
    return Game(first, ruleset, draw=recording.draw, zen=recording.is_zen, undo=recording.allows_undo)


def is_explained(recording, ruleset, undo_places, board=None):
    """Return whether the plain game accepts every move with these undos, and ends won with the recorded score."""
    game = started(recording, ruleset, board)
    undos = Counter(undo_places)
    for place, move in enumerate(recording.moves):
        if not all(game.undo() for _ in range(undos[place])) or game.play(move) is None:
            return False
    return game.won and game.score == recording.final_score


def legal_moves(board, draw, ruleset, candidates):
    """Return the candidates that the board accepts, and that don't win."""
    played = ((move, play(board, move, draw, lenient=ruleset.lenient)) for move in candidates)
    return [move for move, after in played if after and not is_won(after.board)]


def fnv(text):
    """Return the 64-bit FNV-1a hash in hex."""
    digest = 0xCBF29CE484222325
    for byte in text.encode():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return f"{digest:016x}"
