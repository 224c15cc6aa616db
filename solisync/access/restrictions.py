"""The suspensions of players and the cutoffs of their access tokens (docs/security.md "Tokens and sessions")."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from twisted.internet.base import ReactorBase

from ..errors import DatabaseError, Unauthorized, Unavailable
from ..postgres.database import Database
from ..process.tasks import Shared
from ..rules.administration import suspension_error
from ..rules.guests import guest_refused
from ..rules.sessions import SessionRef
from ..storage.players import guests, restrictions

SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The suspensions with end and message, and the cutoffs of access tokens, by player, as of `number`."""

    number: int = -1
    suspended: dict[str, tuple[datetime | None, str | None]] = field(default_factory=dict)
    cutoffs: dict[str, int] = field(default_factory=dict)


class Restrictions:
    """The suspensions and cutoffs, at most SECONDS old. Without requests, there are no queries.

    Each query compares a number, which database triggers raise on a change, and loads the restrictions only if the
    number has changed. `on_change` is then called with the count of suspended players.
    """

    def __init__(
        self, *, database: Database, reactor: ReactorBase, on_change: Callable[[int], None] = lambda count: None
    ) -> None:
        self._database = database
        self._reactor = reactor
        self._on_change = on_change
        self._loaded = _Loaded()
        self._behind = 0  # the retention clock, by which suspensions end
        self._until = 0.0
        self._loading: Shared[None] | None = None

    @property
    def fresh(self) -> bool:
        """Whether `check` may be called without a `refresh` first."""
        return self._reactor.seconds() < self._until

    async def refuse_guest(self, player: str) -> None:
        """Raise Forbidden for a guest. A check before the work is enough, because no player becomes a guest."""
        if await self._database.run(guests.is_guest, player):
            raise guest_refused()

    async def refresh(self) -> None:
        """Load changes from the database, unless a loading has begun within SECONDS; raises Unavailable if it fails."""
        now, latest = self._reactor.seconds(), self._loading
        if latest is None or latest.failed or now >= latest.began + SECONDS:
            latest = self._loading = Shared(self._load(), began=now)
        try:
            await latest.outcome()
        except DatabaseError:
            raise Unavailable from None

    def check(self, claims: SessionRef) -> None:
        """Raise Forbidden if the player is suspended, and Unauthorized if the token is cut off."""
        suspension = self._loaded.suspended.get(claims.user_id)
        if suspension is not None:
            raise suspension_error(*suspension, self._behind)
        cutoff = self._loaded.cutoffs.get(claims.user_id)
        if cutoff is not None and claims.expiry <= cutoff:
            raise Unauthorized

    async def _load(self) -> None:
        began = self._reactor.seconds()
        found = await self._database.run(restrictions.load, self._loaded.number)
        self._behind = found.behind
        if found.suspended is not None:
            ends = zip(found.untils or (), found.messages or (), strict=True)
            suspended = dict(zip(found.suspended, ends, strict=True))
            cutoffs = dict(zip(found.cut_off or (), found.cutoffs or (), strict=True))
            self._loaded = _Loaded(found.number, suspended, cutoffs)
            self._on_change(len(suspended))
        self._until = began + SECONDS
