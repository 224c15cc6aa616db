"""What an act is, and how one is performed: docs/moderation.md "The record of acts"."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import Code, NotFound
from ..events.notices import Notice, Publish, ReplayStored, SessionsEnded, boards_changed
from ..postgres.database import Database
from ..postgres.statement import Call
from ..postgres.transaction import Transaction
from ..process.audit import Event, audit
from ..rules.administration import NOTE_MAX, Reason, check_text
from ..rules.shapes import is_id
from ..storage import acts, boards, replays
from ..storage.accounts import Player
from ..storage.acts import Actor, TargetKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of an act: whether it has changed anything, and `before` and `after` in words, for the record.

    `steps` are statements to run last. `sessions_ended`: sessions of the player or the account have ended; `queued`: a
    replay waits to be checked. `result` is for the caller.
    """

    changed: bool
    before: str | None = None
    after: str | None = None
    steps: tuple[Call, ...] = ()
    sessions_ended: bool = False
    queued: bool = False
    result: Any = None


NOTHING = Done(changed=False)
NOT_FOUND: dict[TargetKind, Code] = {"player": "user_not_found", "replay": "replay_not_found"}


@dataclass(frozen=True, slots=True)
class Act:
    """A kind of act: its name in the record, what it is done to, and the function that does it.

    `run(transaction, player, …)` gets the player, whose row is locked, as `player`, and for a replay its id as
    `replay_id`, then what `perform` was given. `event` is the event of the account that the act is too.
    """

    name: str
    target: TargetKind
    run: Callable[..., Awaitable[Done]]
    event: Event | None = None


def act(
    *, on: TargetKind, name: str | None = None, event: Event | None = None
) -> Callable[[Callable[..., Awaitable[Done]]], Act]:
    """Return the decorator that makes an Act of a function, by default with the name of the function."""
    return lambda run: Act(name or run.__name__, on, run, event)


@dataclass(frozen=True, slots=True)
class Why:
    """The reason of an act, and a note on it. Raises BadRequest for a note that is too long."""

    reason: Reason | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if self.note is not None:
            object.__setattr__(self, "note", check_text(self.note, "note", NOTE_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """Performs acts on a database, as this actor, and tells all processes by `publish`."""

    database: Database
    publish: Publish
    by: Actor
    why: Why = field(default_factory=Why)

    async def perform(self, act: Act, target: str, **given: Any) -> Done:
        """Do this to the player or the replay of this id, and record it unless nothing has changed.

        Everything is one transaction. Raises NotFound if the target doesn't exist (any more) or `target` isn't an id.
        """
        if not is_id(target):
            raise NotFound(NOT_FOUND[act.target])
        player, done, changed = await self.database.transact(self._perform, act, target, given)
        if done.changed:
            audit("act", user_id=player.id, reason=f"{act.name} by {self.by.kind}:{self.by.name}")
            if act.event is not None:
                audit(act.event, user_id=player.id)
            notices: list[Notice] = [*boards_changed(changed, with_player=act.target == "player")]
            if done.sessions_ended:
                notices.append(SessionsEnded(player.id))
            if done.queued:
                notices.append(ReplayStored())
            if notices:
                self.publish(*notices)
        return done

    def log_for_all(self, what: str) -> None:
        """Log what was done to everybody at once, which is no act on a player and has no row in the record."""
        why = ": ".join(each for each in (self.why.reason, self.why.note) if each)
        audit("act", reason=f"{what} by {self.by.kind}:{self.by.name}" + (f", {why}" if why else ""))

    async def _perform(
        self, transaction: Transaction, act: Act, target: str, given: dict[str, Any]
    ) -> tuple[Player, Done, tuple[str, ...]]:
        replay_id = None if act.target == "player" else target
        player = await self._lock(transaction, target, replay_id)
        if replay_id is not None:
            given = {"replay_id": replay_id, **given}

        async def run(transaction: Transaction) -> Done:
            done = await act.run(transaction, player, **given)
            if done.steps:
                await transaction.run_all(*done.steps)
            return done

        done, changed = await boards.changed_by(transaction, player.id, run)
        if not done.changed:
            return player, done, ()
        record = acts.recording(
            act.name,
            act.target,
            by=self.by,
            reason=self.why.reason,
            note=self.why.note,
            user_id=player.id,
            replay_id=replay_id,
            before=done.before,
            after=done.after,
        )
        await transaction.commit_with(*record)
        return player, done, changed

    async def _lock(self, transaction: Transaction, target: str, replay_id: str | None) -> Player:
        user_id = target if replay_id is None else await replays.owner(transaction, replay_id)
        player = None if user_id is None else await acts.lock_player(transaction, user_id)
        if player is None:
            raise NotFound(NOT_FOUND["player" if replay_id is None else "replay"])
        return player
