"""The search for undos: which of the recorded moves were undone, so that the others are a won game with that score.

Clients record neither an undo nor that a move was undone. So each recorded move was either *kept*, or undone at some
time, and all undone ones are out of the way when a kept one is made. What was undone therefore consists of branches
(branches.py) off the positions of the game that was kept, and there are as many undos as moves in them. An undo gives
back the score before the undone move, less a penalty: a branch costs one penalty, whatever happened inside. Turns of
the waste stay counted. docs/verification.md "How undos are found" says more.

The search goes by the number of undos, fewest first, and for each number through the recording, place by place.
Nothing is left out that could lead to the claimed score: when nothing is left to try, there is no explanation.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate

from .branches import Branches
from .positions import Position, Positions, Transition
from .recording import Recording
from .rules import COLUMNS, FOUNDATIONS, WASTE, Board, MoveEvent
from .scoring import CARD_HOME, UNDO_PENALTY, WASTE_TO_COLUMN, Ruleset

STEPS = 6_000_000
"""Some ten seconds' worth, and less than 200 MiB."""

_STEPS_BETWEEN_QUESTIONS = 2_000

History = tuple["History", int, Position, int, int | None] | None
"""The branches behind a standing: those before, and of the last one start, first position, end and inner turns."""

Standing = tuple[int, int]
"""How a game stands: turns of the waste (up to those that are free), score."""

Standings = dict[Standing, History]
"""All ways to stand at one place with one position after one number of undos; for each, one history."""


class OutOfBudgetError(Exception):
    """A search was stopped before it was complete."""


class Budget:
    """Counts the steps of searches, and asks `used` every 2,000 steps, a few milliseconds, which share is used up.

    `used` can look at a clock, or at memory, and gives 1 or more when all of it is used up; other work can be done
    inside of it. A search may use what is left up to `share`, which its caller sets, of the steps as of the rest.
    """

    def __init__(self, *, steps: int = STEPS, used: Callable[[], float] = lambda: 0.0) -> None:
        self.share = 1.0
        self._steps = steps
        self._spent = 0
        self._question = _STEPS_BETWEEN_QUESTIONS
        self._used = used

    def spend(self, steps: int) -> None:
        """Count some steps; raises OutOfBudgetError if the share is used up."""
        self._spent += steps
        if self._spent < self._question:
            return
        self._question = self._spent + _STEPS_BETWEEN_QUESTIONS
        if self._spent >= self._steps * self.share or self._used() >= self.share:
            raise OutOfBudgetError


class _Scale:
    """What the ruleset gives and takes in the recording."""

    def __init__(self, ruleset: Ruleset, recording: Recording, positions: Positions) -> None:
        self._card_turned_up = ruleset.card_turned_up
        self._factor = 0 if recording.is_zen else 1
        free_turns, fine = ruleset.fines[recording.draw]
        self.fine = fine * self._factor
        self.free_turns = free_turns if self.fine else 0
        self.penalty = UNDO_PENALTY * self._factor
        self.points = [[ruleset.points(move, event) * self._factor for event in MoveEvent] for move in positions.moves]
        backwards = recording.moves[::-1]
        self._from_foundation = _still_to_come(move.source in FOUNDATIONS for move in backwards)
        self._from_waste = _still_to_come(move.source == WASTE and move.target in COLUMNS for move in backwards)

    def most_to_come(self, position: Position, place: int) -> int:
        """What the rest of the game can score at most: each card goes home, leaves the waste and is turned up once."""
        return self._factor * (
            CARD_HOME * (position.away + self._from_foundation[place])
            + WASTE_TO_COLUMN * min(position.undealt, self._from_waste[place])
            + self._card_turned_up * position.face_down
        )


def _still_to_come(backwards: Iterable[bool]) -> list[int]:
    """For each place, of how many moves from there on this is true."""
    return [*accumulate(backwards, initial=0)][::-1]


class _Branch:
    """A branch off a position: where it starts, its first move, and how games stand that come back from it.

    Fast path: what a branch costs is worked out once, not at each of its ends, a quarter less time for branches many
    moves deep, see docs/performance.md.
    """

    __slots__ = ("first", "histories", "reach", "settled", "start", "unsettled")

    def __init__(self, start: int, first: Transition) -> None:
        self.start = start
        self.first = first
        self.reach = start + 1
        """An end that the branch can have; it may also last longer."""
        self.settled: list[Standing] = []
        """The standings that are the same however often the waste is turned over inside of the branch."""
        self.histories: list[History] = []
        """For each of the settled standings, the branches before this one."""
        self.unsettled: list[tuple[Standing, History]] = []
        """The other standings, as they are behind the first move, with the branches before this one."""


Ways = dict[Position, Standings]
OpenBranches = dict[int, dict[Position, list[_Branch]]]
"""Branches by the place that they have come to and the position that they are off."""


class Search:
    """The search for the undos of one recording under one ruleset; the game began with the board `first`.

    The recording must claim a whole number of points. `spend` is called with the work done, and may raise to stop it.
    """

    def __init__(self, recording: Recording, first: Board, ruleset: Ruleset, spend: Callable[[int], None]) -> None:
        assert recording.final_score is not None
        self._claimed = recording.final_score
        self._positions = Positions(first, recording.moves, draw=recording.draw, lenient=ruleset.lenient)
        self._scale = _Scale(ruleset, recording, self._positions)
        self._branches = Branches(self._positions, most_turns=self._scale.free_turns, spend=spend)
        self._standings: dict[Standing, Standing] = {}
        self._spend = spend

    def run(self) -> tuple[int, ...] | None:
        """The fewest undos that explain the recording: for each, the move before which it happened; None without any.

        Raises OutOfBudgetError when there may be an explanation all the same, and whatever `spend` raises.
        """
        first = self._positions.first
        if first.deadline < 0:
            return None
        ways: Ways = {first: {(0, 0): None}}
        branches: OpenBranches = {0: {}}
        while branches:
            ways, branches = self._pass(ways, branches)
            for standings in ways.values():
                for (_, score), history in standings.items():
                    if score == self._claimed:
                        return self._undo_places(history)
            ways = {}
        if self._branches.was_cut:
            raise OutOfBudgetError
        return None

    def _pass(self, ways: Ways, branches: OpenBranches) -> tuple[Ways, OpenBranches]:
        """Go through the recording with one number of undos.

        `ways` are those at the first place and `branches` those that end at each place. Returns the ways to win, and
        the branches that end one place later, with one undo more.
        """
        longer: OpenBranches = defaultdict(dict)
        for place in range(min(branches), self._positions.end):
            for position, open_branches in branches.get(place, {}).items():
                self._return(position, open_branches, place, ways)
                if place < position.deadline:
                    lasting = [branch for branch in open_branches if self._lasts(branch, place)]
                    if lasting:
                        longer[place + 1][position] = lasting
            ways = self._move(ways, place, longer)
        return ways, longer

    def _return(self, position: Position, branches: list[_Branch], place: int, ways: Ways) -> None:
        """Undo what is left of branches off a position."""
        least = self._claimed - self._scale.most_to_come(position, place)
        free_turns = self._scale.free_turns
        arrived = ways.get(position, {})
        for branch in branches:
            start, after = branch.start, branch.first.position
            self._spend(1 + len(branch.settled) + len(branch.unsettled))
            for standing, history in zip(branch.settled, branch.histories, strict=True):
                if standing not in arrived and standing[1] >= least:
                    arrived[standing] = (history, start, after, place, None)
            for (turns, score), history in branch.unsettled:
                for inner in self._branches.turns(start, after, place):
                    if score >= least:
                        standing = (min(turns + inner, free_turns), score)
                        arrived.setdefault(standing, (history, start, after, place, inner))
        if arrived:
            ways[position] = arrived

    def _lasts(self, branch: _Branch, place: int) -> bool:
        """Whether a branch can go on with the move at a place."""
        if branch.reach <= place:
            branch.reach = self._branches.reach(branch.start, branch.first.position, place)
        return branch.reach > place

    def _move(self, ways: Ways, place: int, longer: OpenBranches) -> Ways:
        """Make the move at a place, in each way: to keep it, and to begin a branch with it."""
        kept: Ways = {}
        for position, standings in ways.items():
            self._spend(len(standings))
            step = self._positions.step(position, place)
            if step is None:
                continue
            after = step.position
            if place < after.deadline and (not after.is_won or place + 1 == self._positions.end):
                self._keep(standings, place, step, kept)
            if place < position.deadline and not after.is_won:
                longer[place + 1].setdefault(position, []).append(self._branch(standings, place, step))
        return kept

    def _branch(self, standings: Standings, place: int, step: Transition) -> _Branch:
        """The branch that begins with a move, for games that stand so before it."""
        branch = _Branch(place, step)
        turned_over = step.event is MoveEvent.WASTE_TURNED_OVER
        scale = self._scale
        for (turns, score), history in standings.items():
            turns = min(turns + turned_over, scale.free_turns)
            standing = (turns, max(0, score - scale.penalty))
            standing = self._standings.setdefault(standing, standing)  # or equal ones take most of the memory
            if turns == scale.free_turns:
                branch.settled.append(standing)
                branch.histories.append(history)
            else:
                branch.unsettled.append((standing, history))
        return branch

    def _keep(self, standings: Standings, place: int, step: Transition, kept: Ways) -> None:
        position, event = step
        kind = self._positions.kinds[place]
        scale = self._scale
        least = self._claimed - scale.most_to_come(position, place + 1)
        arrived = kept.get(position, {})
        for (turns, score), history in standings.items():
            if event is not MoveEvent.WASTE_TURNED_OVER:
                score = max(0, score + scale.points[kind][event])
            elif turns < scale.free_turns:
                turns += 1
            else:
                score = max(0, score - scale.fine)
            if score >= least:
                arrived.setdefault((turns, score), history)
        if arrived:
            kept[position] = arrived

    def _undo_places(self, history: History) -> tuple[int, ...]:
        depths: dict[int, int] = {}
        while history is not None:
            history, start, after, end, turns = history
            depths |= self._branches.depths(start, after, end, turns)
        places: list[int] = []
        undoable = 0  # how many moves of a branch are made and not undone
        for place in range(self._positions.end):
            depth = depths.get(place, 0)
            places += [place] * (undoable - depth)
            undoable = depth + 1 if place in depths else 0
        return tuple(places)
