"""The verdict on an uploaded replay. docs/verification.md "Verdicts" explains what it proves, and what it doesn't."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from .deal import deal
from .game import Game
from .recording import Reason, Recording, UnreadableError, read_recording
from .rules import Board, can_be_legal, needs_leniency
from .scoring import OLDER, PREFERRED, RULESETS, STEP, Ruleset
from .search import STEPS, Budget, OutOfBudgetError, Search

ENGINE_VERSION = 3
"""Incremented by every change that may change a verdict."""

MOVES_MAX = 20_000
"""Longer recordings stay undecided; games are far shorter."""

PREFERRED_SHARE = 0.8
"""The share of a budget for the search under the preferred ruleset; the rest usually suffices for the older one."""

_CLOSEST_LAST = (Reason.ILLEGAL_MOVE, Reason.NOT_WON, Reason.SCORE)


class Status(StrEnum):
    """The status of a replay."""

    PENDING = "pending"
    VERIFIED = "verified"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a check. `ruleset`, `undos`, `score` and `moves` are None unless the status is VERIFIED."""

    status: Status
    reason: Reason | None = None
    ruleset: str | None = None
    undos: int | None = None
    """The fewest undos with which the recorded moves win with the claimed score under that ruleset."""
    score: int | None = None
    moves: int | None = None
    """The number of recorded moves, including undone ones."""
    undo_places: tuple[int, ...] = ()
    """For each undo, the index of the recorded move that followed it, ascending."""


def check_literally(body: bytes) -> Verdict:
    """Play an uploaded replay move by move, in milliseconds; PENDING if only a search for undos can decide.

    This never raises, for any bytes.
    """
    try:
        recording = read_recording(body)
    except UnreadableError as error:
        return Verdict(status=Status.UNREADABLE, reason=error.reason)
    return _blaming_seed(recording, _literal_verdict(recording))


def check(body: bytes, *, used: Callable[[], float] = lambda: 0.0, steps: int = STEPS) -> Verdict:
    """Check an uploaded replay: literally, then by searches for undos; never PENDING.

    Every few milliseconds, `used` must return the used share of the caller's time, at least 1 if all is used. The
    searches take at most `steps` steps, about 600,000 a second. If time, steps or memory run out, the verdict is
    UNDECIDED. Raises only errors of `used`.
    """
    try:
        recording = read_recording(body)
    except UnreadableError as error:
        return Verdict(status=Status.UNREADABLE, reason=error.reason)
    return _blaming_seed(recording, _whole_verdict(recording, Budget(steps=steps, used=used)))


def _whole_verdict(recording: Recording, budget: Budget) -> Verdict:
    verdict = _literal_verdict(recording)
    if verdict.status is not Status.PENDING:
        return verdict
    return _search(recording, budget)


def _search(recording: Recording, budget: Budget) -> Verdict:
    first = deal(recording.seed)
    verdict = Verdict(status=Status.REFUTED, reason=Reason.NO_EXPLANATION)
    rulesets = _rulesets(recording)
    for ruleset in rulesets:
        for undo_places in _told(recording):
            if _flaw(recording, first, ruleset, undo_places) is None:
                return _verified(recording, ruleset, undo_places)
        budget.share = 1.0 if ruleset is rulesets[-1] else PREFERRED_SHARE
        try:
            found = Search(recording, first, ruleset, budget.spend).run()
        except (OutOfBudgetError, MemoryError):  # the next search can use the freed memory
            verdict = Verdict(status=Status.UNDECIDED, reason=Reason.BUDGET)
            continue
        if found is not None:
            # The plain game decides, so that a bug in the search can't verify a replay.
            if _flaw(recording, first, ruleset, found):
                return Verdict(status=Status.UNDECIDED, reason=Reason.CRASHED)
            return _verified(recording, ruleset, found)
    return verdict


def _literal_verdict(recording: Recording) -> Verdict:
    if len(recording.moves) > MOVES_MAX:
        return Verdict(status=Status.UNDECIDED, reason=Reason.BUDGET)
    first = deal(recording.seed)
    flaws = []
    for ruleset in RULESETS:
        for undo_places in _told(recording):
            flaw = _flaw(recording, first, ruleset, undo_places)
            if flaw is None:
                if ruleset is OLDER and recording.allows_undo and PREFERRED in _rulesets(recording):
                    return Verdict(status=Status.PENDING)  # with undos it may fit the preferred ruleset
                return _verified(recording, ruleset, undo_places)
            flaws.append(flaw)
    if not _can_be_score(recording):
        return Verdict(status=Status.REFUTED, reason=Reason.SCORE)
    if not all(map(can_be_legal, recording.moves)):
        return Verdict(status=Status.REFUTED, reason=Reason.ILLEGAL_MOVE)
    if not recording.allows_undo:
        return Verdict(status=Status.REFUTED, reason=max(flaws, key=_CLOSEST_LAST.index))
    return Verdict(status=Status.PENDING)


def _told(recording: Recording) -> tuple[tuple[int, ...], ...]:
    """The places of undos to try without a search: first the client's, then none."""
    return (recording.undo_places, ()) if recording.undo_places else ((),)


def _rulesets(recording: Recording) -> tuple[Ruleset, ...]:
    """The rulesets under which the recorded moves may have been accepted; one is enough for Zen, which never scores."""
    if any(map(needs_leniency, recording.moves)):
        return (OLDER,)
    return (PREFERRED,) if recording.is_zen else RULESETS


def _blaming_seed(recording: Recording, verdict: Verdict) -> Verdict:
    """The verdict, with another reason if the seed may have been rounded, so that the moves fit another deal."""
    if recording.seed_may_be_rounded and verdict.status in (Status.REFUTED, Status.UNDECIDED):
        return replace(verdict, reason=Reason.SEED_ROUNDED)
    return verdict


def _verified(recording: Recording, ruleset: Ruleset, undo_places: tuple[int, ...] = ()) -> Verdict:
    return Verdict(
        status=Status.VERIFIED,
        ruleset=ruleset.name,
        undos=len(undo_places),
        score=recording.final_score,
        moves=len(recording.moves),
        undo_places=undo_places,
    )


def _can_be_score(recording: Recording) -> bool:
    """Whether any game can end with the claimed score."""
    score = recording.final_score
    return score == 0 or (score is not None and score > 0 and score % STEP == 0 and not recording.is_zen)


def _flaw(recording: Recording, first: Board, ruleset: Ruleset, undo_places: Sequence[int] = ()) -> Reason | None:
    """The reason why a recording with undos at these places isn't a won game with the claimed score, or None."""
    game = Game(first, ruleset, draw=recording.draw, zen=recording.is_zen, undo=recording.allows_undo)
    undos = Counter(undo_places)
    for place, move in enumerate(recording.moves):
        if not all(game.undo() for _ in range(undos[place])) or game.play(move) is None:
            return Reason.ILLEGAL_MOVE
    if not game.won:
        return Reason.NOT_WON
    return None if game.score == recording.final_score else Reason.SCORE
