"""A simple search for undos, as a reference: before each move it tries every number of undos.

It keeps a real list of moves to undo, so that it shares no idea with solisync.klondike.search. It is fast enough for
a few undos.
"""

from solisync.klondike.rules import MoveEvent, is_won, play
from solisync.klondike.scoring import UNDO_PENALTY


def fewest_undos(recording, first, ruleset, most, *, undo_depth):
    """Return the fewest undos that explain a recording under a ruleset, or None if `most` aren't enough."""
    explained = (undos for undos in range(most + 1) if _explains(recording, first, ruleset, undos, undo_depth))
    return next(explained, None)


def _explains(recording, first, ruleset, undos, undo_depth):
    games = [(0, first, 0, 0, (), undos)]
    while games:
        place, board, score, turns, history, left = games.pop()
        if place == len(recording.moves):
            if is_won(board) and score == recording.final_score:
                return True
            continue
        if is_won(board):
            continue
        while True:
            played = play(board, recording.moves[place], recording.draw, lenient=ruleset.lenient)
            if played is not None:
                now = turns + (played.event is MoveEvent.WASTE_TURNED_OVER)
                points = ruleset.fine(recording.draw, now) if now > turns else None
                points = ruleset.points(recording.moves[place], played.event) if points is None else points
                after = 0 if recording.is_zen else max(0, score + points)
                undoable = (*history, (board, score))[-undo_depth:]
                games.append((place + 1, played.board, after, now, undoable, left))
            if not left or not history:
                break
            *history, (board, score) = history
            score = 0 if recording.is_zen else max(0, score - UNDO_PENALTY)
            left -= 1
    return False
