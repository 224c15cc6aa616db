"""The definition of an act, and how an act is performed: docs/moderation.md "The record of acts"."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from twisted.internet.defer import CancelledError

from ..errors import Code, DatabaseError, NotFound
from ..events.notices import Notice, Publish, ReplayStored, SessionsEnded, boards_changed
from ..postgres.database import Database
from ..postgres.statement import Call
from ..postgres.transaction import Transaction
from ..process.audit import Event, audit
from ..rules.administration import NOTE_MAX, Reason, check_text
from ..rules.shapes import is_id
from ..storage.operators import acts, large_accounts
from ..storage.operators.acts import Actor, TargetKind
from ..storage.operators.large_accounts import Waiting
from ..storage.players.accounts import Player
from ..storage.replays import boards, replays
from .large_accounts import settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of an act: whether it changed anything, and the states `before` and `after` in words, for the record.

    `steps` are statements to run last. `sessions_ended` is true if sessions of the player, or the account, have ended.
    `queued` is true if a replay now waits for a check. `notices` are other notices. `result` is for the caller.
    `settled` is false while the lists and boards of a large account follow. `perform` adds the `player` before the act.
    """

    changed: bool
    before: str | None = None
    after: str | None = None
    steps: tuple[Call, ...] = ()
    sessions_ended: bool = False
    queued: bool = False
    notices: tuple[Notice, ...] = ()
    result: Any = None
    settled: bool = True
    player: Player | None = None


NOTHING = Done(changed=False)
NOT_FOUND: dict[TargetKind, Code] = {"player": "player_not_found", "replay": "replay_not_found"}


@dataclass(frozen=True, slots=True)
class Act:
    """A kind of act: its name in the record, the kind of its target, and the function that does it.

    `run(transaction, player, …)` gets the player, whose row is locked, the `replay_id` if the target is a replay, and
    the arguments of `perform`. `event` is the account event that the act also causes, if any.
    """

    name: str
    target: TargetKind
    run: Callable[..., Awaitable[Done]]
    event: Event | None = None


def act(
    *, on: TargetKind, name: str | None = None, event: Event | None = None
) -> Callable[[Callable[..., Awaitable[Done]]], Act]:
    """Return a decorator that turns a function into an Act, named like the function unless `name` is given."""
    return lambda run: Act(name or run.__name__, on, run, event)


@dataclass(frozen=True, slots=True)
class Why:
    """The reason for an act, and a note on it. Raises BadRequest if the note is invalid."""

    reason: Reason | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        if self.note is not None:
            object.__setattr__(self, "note", check_text(self.note, "note", NOTE_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """Performs acts on a database as this actor, and notifies all processes by `publish`.

    `forget` empties this process's caches of public lists: an act has changed them, or the outcome of one is unknown.
    With `settling`, an act on a large account ends when its lists and boards have followed.
    """

    database: Database
    publish: Publish
    by: Actor
    why: Why = field(default_factory=Why)
    settling: bool = False
    forget: Callable[[], None] = lambda: None

    async def perform(self, act: Act, target: str, **given: Any) -> Done:
        """Perform an act on the player or the replay with this id, and record the act if it changed anything.

        All of it is one transaction. Raises NotFound if the target doesn't exist, or if `target` isn't an id.
        """
        if not is_id(target):
            raise NotFound(NOT_FOUND[act.target])
        try:
            player, done, changed, waiting = await self.database.transact(self._perform, act, target, given)
        except (DatabaseError, CancelledError):
            self.forget()
            raise
        if done.changed:
            self.forget()
            audit("act", user_id=player.id, reason=f"{act.name} by {self.by.kind}:{self.by.name}")
            if act.event is not None:
                audit(act.event, user_id=player.id)
            notices: list[Notice] = [*boards_changed(changed, with_player=act.target == "player"), *done.notices]
            if done.sessions_ended:
                notices.append(SessionsEnded(player.id))
            if done.queued:
                notices.append(ReplayStored())
            if notices:
                self.publish(*notices)
        done = replace(done, player=player)
        if waiting is None:
            return done
        if not self.settling:
            return replace(done, settled=False)
        await settle(self.database, self.publish, waiting)
        return done

    def log_for_all(self, what: str) -> None:
        """Log an operation on all players or replays, which isn't an act and has no row in the record."""
        why = ": ".join(each for each in (self.why.reason, self.why.note) if each)
        audit("act", reason=f"{what} by {self.by.kind}:{self.by.name}" + (f", {why}" if why else ""))

    async def _perform(
        self, transaction: Transaction, act: Act, target: str, given: dict[str, Any]
    ) -> tuple[Player, Done, tuple[str, ...], Waiting | None]:
        replay_id = None if act.target == "player" else target
        player = await self._lock(transaction, target, replay_id)
        if replay_id is not None:
            given = {"replay_id": replay_id, **given}

        async def run(transaction: Transaction) -> Done:
            done = await act.run(transaction, player, **given)
            if done.steps:
                await transaction.run(*done.steps)
            return done

        done, changed = await boards.changed_by(transaction, player.id, run)
        waiting = await large_accounts.waiting_of(transaction, player.id)
        if not done.changed:
            return player, done, (), waiting
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
        return player, done, changed, waiting

    async def _lock(self, transaction: Transaction, target: str, replay_id: str | None) -> Player:
        """Lock the player. While this waits for the row of a guest, a player may join the guest and get the replay."""
        user_id = target if replay_id is None else await replays.owner(transaction, replay_id)
        while user_id is not None:
            player = await acts.lock_player(transaction, user_id)
            if player is not None:
                return player
            user_id = None if replay_id is None else await replays.owner(transaction, replay_id)
        raise NotFound(NOT_FOUND["player" if replay_id is None else "replay"])
