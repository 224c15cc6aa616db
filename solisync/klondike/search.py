"""The search for undos: find the recorded moves that were undone, so that the others win with the claimed score.

Clients record neither undos nor which moves were undone. So each recorded move was either *kept*, or undone before the
next kept move. The undone moves therefore form branches (branches.py) off the positions of the kept game, and there are
as many undos as moves in branches. An undo restores the score before the undone move, less a penalty, so a branch costs
one penalty in all. Undone turns of the waste still count. See docs/verification.md "How undos are found".

The search tries numbers of undos, fewest first, and for each number goes through the recording place by place. It
leaves out nothing that could lead to the claimed score: if it finds nothing, there is no explanation.
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
"""These take about ten seconds, and less than 200 MiB."""

_STEPS_BETWEEN_QUESTIONS = 2_000

History = tuple["History", int, Position, int, int | None] | None
"""The branches that led to a standing: the earlier ones, and the last one's start, first position, end, inner turns."""

Standing = tuple[int, int]
"""The state of a game beside its board: turns of the waste (at most the free ones), and the score."""

Standings = dict[Standing, History]
"""All standings at a place with a position after a number of undos, each with one of its histories."""


class OutOfBudgetError(Exception):
    """A search was stopped before it was complete."""


class Budget:
    """Counts the steps of searches, and calls `used` every 2,000 steps, which take a few milliseconds.

    `used` returns the used share of a resource such as time or memory, at least 1 if all is used; it may also do other
    work. A search must end when it has used `share`, which its caller sets, of the steps or of that resource.
    """

    def __init__(self, *, steps: int = STEPS, used: Callable[[], float] = lambda: 0.0) -> None:
        self.share = 1.0
        self._steps = steps
        self._spent = 0
        self._question = _STEPS_BETWEEN_QUESTIONS
        self._used = used

    def spend(self, steps: int) -> None:
        """Count steps; raise OutOfBudgetError if the share is used up."""
        self._spent += steps
        if self._spent < self._question:
            return
        self._question = self._spent + _STEPS_BETWEEN_QUESTIONS
        if self._spent >= self._steps * self.share or self._used() >= self.share:
            raise OutOfBudgetError


class _Scale:
    """The points and penalties of the ruleset, for the moves of the recording."""

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
        """The most points of the rest of the game: each card goes home, leaves the waste and is turned up once."""
        return self._factor * (
            CARD_HOME * (position.away + self._from_foundation[place])
            + WASTE_TO_COLUMN * min(position.undealt, self._from_waste[place])
            + self._card_turned_up * position.face_down
        )


def _still_to_come(backwards: Iterable[bool]) -> list[int]:
    """For each place, the number of moves from there on for which the condition is true."""
    return [*accumulate(backwards, initial=0)][::-1]


class _Branch:
    """A branch off a position: its start, its first move, and the standings of games after it.

    Fast path: what a branch costs is worked out once, not at each of its ends, a quarter less time for branches many
    moves deep, see docs/performance.md.
    """

    __slots__ = ("first", "histories", "reach", "settled", "start", "unsettled")

    def __init__(self, start: int, first: Transition) -> None:
        self.start = start
        self.first = first
        self.reach = start + 1
        """An end that the branch can have; there may be later ones."""
        self.settled: list[Standing] = []
        """The standings that don't depend on the turns of the waste within the branch."""
        self.histories: list[History] = []
        """For each of the settled standings, the branches before this one."""
        self.unsettled: list[tuple[Standing, History]] = []
        """The other standings, as after the first move, with the branches before this one."""


Ways = dict[Position, Standings]
OpenBranches = dict[int, dict[Position, list[_Branch]]]
"""Branches by the place that they have reached, and by the position that they are off."""


class Search:
    """The search for the undos of a recording under a ruleset; the game began with the board `first`.

    The recording must claim a whole score. `spend` is called with the amount of work done, and may raise to stop it.
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
        """Return the fewest undos that explain the recording, each as the move that followed it, or None.

        Raises OutOfBudgetError if the search was incomplete, and any error of `spend`.
        """
        first = self._positions.first
        if first.last_chance < 0:
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
        """Go through the recording with a fixed number of undos.

        `ways` are the ways at the first place, `branches` the branches that can end at each place. Returns the ways to
        win, and the branches that can end one place later, with one more undo.
        """
        longer: OpenBranches = defaultdict(dict)
        for place in range(min(branches), self._positions.end):
            for position, open_branches in branches.get(place, {}).items():
                self._return(position, open_branches, place, ways)
                if place < position.last_chance:
                    lasting = [branch for branch in open_branches if self._lasts(branch, place)]
                    if lasting:
                        longer[place + 1][position] = lasting
            ways = self._move(ways, place, longer)
        return ways, longer

    def _return(self, position: Position, branches: list[_Branch], place: int, ways: Ways) -> None:
        """Undo the remaining moves of branches off a position."""
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
        """Whether a branch can continue with the move at a place."""
        if branch.reach <= place:
            branch.reach = self._branches.reach(branch.start, branch.first.position, place)
        return branch.reach > place

    def _move(self, ways: Ways, place: int, longer: OpenBranches) -> Ways:
        """Make the move at a place in all ways: as a kept move, and as the first move of a branch."""
        kept: Ways = {}
        for position, standings in ways.items():
            self._spend(len(standings))
            step = self._positions.step(position, place)
            if step is None:
                continue
            after = step.position
            if place < after.last_chance and (not after.is_won or place + 1 == self._positions.end):
                self._keep(standings, place, step, kept)
            if place < position.last_chance and not after.is_won:
                longer[place + 1].setdefault(position, []).append(self._branch(standings, place, step))
        return kept

    def _branch(self, standings: Standings, place: int, step: Transition) -> _Branch:
        """The branch that begins with a move, for games with these standings before it."""
        branch = _Branch(place, step)
        turned_over = step.event is MoveEvent.WASTE_TURNED_OVER
        scale = self._scale
        for (turns, score), history in standings.items():
            turns = min(turns + turned_over, scale.free_turns)
            standing = (turns, max(0, score - scale.penalty))
            standing = self._standings.setdefault(standing, standing)  # equal standings would take most of the memory
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
        undoable = 0  # the moves of a branch that are made and not yet undone
        for place in range(self._positions.end):
            depth = depths.get(place, 0)
            places += [place] * (undoable - depth)
            undoable = depth + 1 if place in depths else 0
        return tuple(places)
