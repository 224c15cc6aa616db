"""Which stretches of a recording can have been undone: the heart of the search for undos.

A *branch* off a position is a stretch of moves that were all undone. The first is made on that position, each other one
on one inside of the branch, after as many undos as it takes to be back there; at the end, undos lead back to where the
branch is off. Behind its first move, a branch is a *chain*: branches off the position after that move, one after
another, or none. The beginning of a chain is a chain too, because undos are possible at any time.
"""

from collections.abc import Callable, Iterator

from .game import UNDO_DEPTH
from .positions import Position, Positions, Transition
from .rules import STOCK, STOCK_CLICK, MoveEvent

LONGEST = 200
"""Longer branches are not looked for, because the functions call themselves once for each move of a branch."""

_AHEAD = 8
_ENOUGH = UNDO_DEPTH


class Branches:
    """The branches of a recording. A stretch goes from one place to another, its end, which is not in it.

    `most_turns`: more turns of the waste than that are not told apart. `spend` is called with the amount of work done,
    and may raise to stop it.
    """

    def __init__(self, positions: Positions, *, most_turns: int, spend: Callable[[int], None]) -> None:
        self.was_cut = False
        """Whether a branch that is longer than LONGEST was left out."""
        self._positions = positions
        self._most_turns = most_turns
        self._spend = spend
        self._reached: dict[tuple[Position, int, int], tuple[int, int]] = {}
        self._turns: dict[tuple[Position, int, int, int], frozenset[int]] = {}
        self._clicks = [0]  # for each place, how many clicks on the stock come before it
        for kind in positions.kinds:
            self._clicks.append(self._clicks[-1] + (positions.moves[kind] == STOCK_CLICK))

    def step(self, position: Position, place: int) -> Transition | None:
        """Make the move recorded at a place, to be undone later; None if it is refused, or wins."""
        step = self._positions.step(position, place)
        return None if step is None or step.position.is_won else step

    def reach(self, start: int, after: Position, place: int) -> int:
        """An end behind `place` that a branch can have whose first move, at `start`, leads to the position `after`.

        If it has none, the last end of that branch.
        """
        # Fast path: looks some places farther than asked, because the next question is about the next place; a fifth
        # less time for branches many moves deep, see docs/performance.md
        horizon = min(self._positions.end, place - place % _AHEAD + _AHEAD)
        end = self._reach(after, start + 1, horizon, UNDO_DEPTH - 1)
        if end > start + LONGEST:
            self.was_cut = True
        return min(end, start + LONGEST)

    def turns(self, start: int, after: Position, end: int) -> frozenset[int]:
        """How often the waste can be turned over within a branch, its first move not counted."""
        return self._chain_turns(after, start + 1, end, UNDO_DEPTH - 1)

    def depths(self, start: int, after: Position, end: int, turns: int | None) -> dict[int, int]:
        """One way to play a branch: for each of its places, how many of its moves are not undone when that one is made.

        `turns` is one of those that `turns()` gives, or None for any.
        """
        depths = {start: 0}
        self._lay_out(after, start + 1, end, 1, turns, depths)
        return depths

    def _reach(self, position: Position, place: int, horizon: int, room: int) -> int:
        """The end of the longest chain off a position from `place` on, or the horizon if that comes first.

        `room` is how many moves more the game can undo than those that are made: it forgets the oldest otherwise.
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
            # a shorter first branch can leave the moves behind it to others that last longer
            for end in range(self._reach(step.position, place + 1, horizon, room - 1), place, -1):
                longest = max(longest, self._reach(position, end, horizon, room))
                if longest == horizon:
                    break
        self._reached[key] = longest, horizon
        return longest

    def _chain_turns(self, position: Position, place: int, end: int, room: int) -> frozenset[int]:
        """How often the waste can be turned over within a chain; empty if there is no chain with this end."""
        if self._reach(position, place, end, room) < end:
            return frozenset()
        clicks = self._clicks[end] - self._clicks[place]
        if clicks * self._positions.draw <= len(position.board[STOCK]):
            return frozenset((0,))  # they can't empty the stock and click once more
        key = (position, place, end, _at_most_enough(room, end - place))
        if key not in self._turns:
            found = set()
            for _, _, turns in self._splits(position, place, end, room):
                found.add(min(sum(turns), self._most_turns))
                if len(found) > self._most_turns:
                    break  # that is all there can be
            self._turns[key] = frozenset(found)
        return self._turns[key]

    def _splits(
        self, position: Position, place: int, end: int, room: int
    ) -> Iterator[tuple[Position, int, tuple[int, int, int]]]:
        """The ways to split a chain into its first branch and the rest.

        For each way: the position after the first move, the end of that branch, and how often the waste is turned over
        by the first move, by the rest of the branch, and by the rest of the chain.
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
    """The same for all that is enough for so many moves, so that what is known of a position holds at any depth."""
    return _ENOUGH if room >= moves else room
