"""The stretches of a recording that may have been undone: the core of the search for undos.

A *branch* off a position is a stretch of moves that were all undone. Its first move starts at that position. Every
other move starts at a position within the branch, after the undos that lead back there. At the end, undos lead back to
the position that the branch is off.

After its first move, a branch is a *chain*: a sequence of branches off the position after that move, which may be
empty. Each beginning of a chain is a chain too, because undos are possible at any time.
"""

from collections.abc import Callable, Iterator

from .game import UNDO_DEPTH
from .positions import Position, Positions, Transition
from .rules import STOCK, STOCK_CLICK, MoveEvent

LONGEST = 200
"""Longer branches are ignored, because the recursion has a call for each move of a branch."""

_AHEAD = 8
_ENOUGH = UNDO_DEPTH


class Branches:
    """The branches of a recording. A stretch goes from one place to another, its end, which it doesn't include.

    Numbers of turns of the waste above `most_turns` count as equal. `spend` is called with the amount of work done, and
    may raise to stop the work.
    """

    def __init__(self, positions: Positions, *, most_turns: int, spend: Callable[[int], None]) -> None:
        self.was_cut = False
        """Whether a branch longer than LONGEST was ignored."""
        self._positions = positions
        self._most_turns = most_turns
        self._spend = spend
        self._reached: dict[tuple[Position, int, int], tuple[int, int]] = {}
        self._turns: dict[tuple[Position, int, int, int], frozenset[int]] = {}
        self._clicks = [0]  # for each place, the number of clicks on the stock before it
        for kind in positions.kinds:
            self._clicks.append(self._clicks[-1] + (positions.moves[kind] == STOCK_CLICK))

    def step(self, position: Position, place: int) -> Transition | None:
        """Make the move recorded at a place, to be undone later; return None if it is refused, or wins the game."""
        step = self._positions.step(position, place)
        return None if step is None or step.position.is_won else step

    def reach(self, start: int, after: Position, place: int) -> int:
        """Return an end after `place` for the branch whose first move, at `start`, leads to the position `after`.

        If the branch has no such end, return its last one.
        """
        # Fast path: looks some places farther than asked, because the next question is about the next place; a fifth
        # less time for branches many moves deep, see docs/performance.md
        horizon = min(self._positions.end, place - place % _AHEAD + _AHEAD)
        end = self._reach(after, start + 1, horizon, UNDO_DEPTH - 1)
        if end > start + LONGEST:
            self.was_cut = True
        return min(end, start + LONGEST)

    def turns(self, start: int, after: Position, end: int) -> frozenset[int]:
        """The possible numbers of turns of the waste within a branch, without its first move."""
        return self._chain_turns(after, start + 1, end, UNDO_DEPTH - 1)

    def depths(self, start: int, after: Position, end: int, turns: int | None) -> dict[int, int]:
        """Return a way to play a branch: for each place, how many earlier moves of the branch aren't undone by then.

        `turns` is one of the numbers from `turns()`, or None for any number.
        """
        depths = {start: 0}
        self._lay_out(after, start + 1, end, 1, turns, depths)
        return depths

    def _reach(self, position: Position, place: int, horizon: int, room: int) -> int:
        """The end of the longest chain off a position from `place` on, or the horizon if that comes first.

        `room` is the number of further moves that the game could undo; with more, it would forget the oldest one.
        """
        room = _at_most_enough(room, horizon - place)
        key = (position, place, room)
        known, known_horizon = self._reached.get(key, (0, 0))
        if known < known_horizon or horizon <= known_horizon:
            return min(known, horizon)
        self._spend(1)
        longest = place
        step = self.step(position, place) if place < horizon and room else None
        if step is not None:
            # After a shorter first branch, the next branches may reach further.
            for end in range(self._reach(step.position, place + 1, horizon, room - 1), place, -1):
                longest = max(longest, self._reach(position, end, horizon, room))
                if longest == horizon:
                    break
        self._reached[key] = longest, horizon
        return longest

    def _chain_turns(self, position: Position, place: int, end: int, room: int) -> frozenset[int]:
        """The possible numbers of turns of the waste within a chain; empty if there is no chain with this end."""
        if self._reach(position, place, end, room) < end:
            return frozenset()
        clicks = self._clicks[end] - self._clicks[place]
        if clicks * self._positions.draw <= len(position.board[STOCK]):
            return frozenset((0,))  # too few clicks to empty the stock and turn the waste over
        key = (position, place, end, _at_most_enough(room, end - place))
        if key not in self._turns:
            found = set()
            for _, _, turns in self._splits(position, place, end, room):
                found.add(min(sum(turns), self._most_turns))
                if len(found) > self._most_turns:
                    break  # all possible numbers
            self._turns[key] = frozenset(found)
        return self._turns[key]

    def _splits(
        self, position: Position, place: int, end: int, room: int
    ) -> Iterator[tuple[Position, int, tuple[int, int, int]]]:
        """Yield the ways to split a chain into its first branch and the rest.

        Each way has the position after the first move, the end of that branch, and three numbers. These count the turns
        of the waste by the first move, by the rest of the branch, and by the rest of the chain.
        """
        step = self.step(position, place)
        if step is None or not room:
            return
        self._spend(end - place)
        first = int(step.event is MoveEvent.WASTE_TURNED_OVER)
        for middle in range(self._reach(step.position, place + 1, end, room - 1), place, -1):
            for behind in self._chain_turns(position, middle, end, room):
                for inside in self._chain_turns(step.position, place + 1, middle, room - 1):
                    yield step.position, middle, (first, inside, behind)

    def _lay_out(
        self, position: Position, place: int, end: int, depth: int, turns: int | None, depths: dict[int, int]
    ) -> None:
        while place < end:
            after, middle, (_, inside, behind) = next(
                split
                for split in self._splits(position, place, end, UNDO_DEPTH - depth)
                if turns is None or min(sum(split[2]), self._most_turns) == turns
            )
            depths[place] = depth
            self._lay_out(after, place + 1, middle, depth + 1, None if turns is None else inside, depths)
            place, turns = middle, None if turns is None else behind


def _at_most_enough(room: int, moves: int) -> int:
    """`room`, or a constant if it is enough for `moves`, so that cached results apply at any depth."""
    return _ENOUGH if room >= moves else room
