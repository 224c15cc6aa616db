"""Signing in to the console (docs/console.md "Signing in").

`SigningIn` has the routes of admins' own sessions. `LiveSecrets` knows which codes and sessions are live.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import ClassVar, Generic, TypeVar

from twisted.internet.base import ReactorBase
from twisted.internet.task import deferLater

from ...access.rate_limit import LocalRateLimit
from ...errors import NotFound, Unauthorized
from ...postgres.database import Database
from ...process.audit import audit
from ...process.tasks import Shared, Task, shielded
from ...rules.administration import CODE_DIGITS, AdminSession, Myself, SignedIn, SignIn, new_session_secret
from ...rules.browser_sessions import SessionCookie
from ...rules.recovery import digest, read_code
from ...rules.shapes import Ok, canonical_uuid
from ...storage.operators import admins
from ..wire.reply import Reply
from .declaring import delete, get, post


class SigningIn:
    """The sessions of admins. A right code always begins a session: wrong codes, however many, can't lock an admin out.

    Wrong codes share a query (LiveSecrets), and only they count against the limit of their address.
    """

    tag: ClassVar[str] = "session"

    def __init__(self, *, database: Database, reactor: ReactorBase, wrong_codes: LocalRateLimit) -> None:
        self._database = database
        self._codes = LiveSecrets(partial(database.run, admins.live_codes), reactor=reactor)
        self._wrong_codes = wrong_codes

    @post(
        "/session",
        name="sign_in",
        summary="Begin a session with a one-time code",
        protected=False,
        sets_cookie=True,
        limit=None,
        answer=SignedIn,
        errors=("invalid_credentials", "rate_limited"),
    )
    async def begin(self, body: SignIn, admin_cookie: SessionCookie, address: str, user_agent: str | None) -> Reply:
        """Exchange a code for a session."""
        code = body.name, digest(read_code(body.code, CODE_DIGITS) or "")  # the digest of "" matches no code
        if await self._codes.knows(code):
            self._codes.forget(code)  # so a repeated code costs only one statement per loading
            secret = new_session_secret()
            session = await self._database.run(
                admins.begin, *code, secret=digest(secret), client=address, user_agent=user_agent
            )
            if session is not None:
                audit("admin signed in", reason=session.admin)
                signed_in = SignedIn(session.admin, session.expires_at)
                return Reply.of(signed_in).with_headers({"Set-Cookie": admin_cookie.holding(secret)})
        self._wrong_codes.count(address)
        audit("admin sign-in refused")
        raise Unauthorized("invalid_credentials", "invalid credentials")

    @delete(
        "/session",
        name="sign_out",
        summary="End the session",
        protected=False,
        sets_cookie=True,
        limit=None,
        answer=Ok,
    )
    async def end(self, admin_cookie: SessionCookie) -> Reply:
        """End the session of the cookie, if there is one."""
        if admin_cookie.token is not None:
            await self._database.run(admins.end_by_secret, digest(admin_cookie.token))
        return Reply.of(Ok()).with_headers({"Set-Cookie": admin_cookie.cleared})

    @get("/me", summary="Show the signed-in admin and the admin's sessions")
    async def myself(self, admin: AdminSession) -> Myself:
        """Return the admin of this session, and the admin's live sessions."""
        sessions = await self._database.run(admins.sessions, admin.admin)
        return Myself(admin.admin, admin.expires_at, admin.id, sessions)

    @delete(
        "/me/sessions/{session_id}",
        name="end_own_session",
        summary="End one of one's own sessions",
        errors=("session_not_found",),
    )
    async def end_one(self, session_id: str, admin: AdminSession) -> Ok:
        """End one of the admin's own sessions."""
        known = canonical_uuid(session_id)
        if known is None or not await self._database.run(admins.end, admin.admin, known):
            raise NotFound("session_not_found")
        return Ok()


LOADINGS_APART = 0.02  # seconds

T = TypeVar("T", bound=Hashable)


class LiveSecrets(Generic[T]):
    """The live secrets, those neither ended nor expired, as of the latest loading by `load`, which returns digests.

    An unknown secret waits for the next loading to begin and end. All unknown secrets share that loading, so they cost
    one query per LOADINGS_APART, however many arrive. A known secret must still be confirmed by the database.
    """

    def __init__(self, load: Callable[[], Task[Iterable[T]]], *, reactor: ReactorBase) -> None:
        self._load = load
        self._reactor = reactor
        self._live: set[T] = set()
        self._began = float("-inf")
        self._latest: Shared[None] | None = None
        self._coming: Shared[None] | None = None

    async def knows(self, secret: T) -> bool:
        """Whether this secret was live at a recent loading; raises the errors of a loading."""
        if secret not in self._live:
            if self._coming is None:
                self._coming = Shared(self._load_after(self._latest))
            await self._coming.outcome()
        return secret in self._live

    def forget(self, secret: T) -> None:
        """Treat this secret as unknown until the next loading."""
        self._live.discard(secret)

    async def _load_after(self, former: Shared[None] | None) -> None:
        if former is not None:
            await shielded(former.ended)
        await deferLater(self._reactor, max(self._began + LOADINGS_APART - self._reactor.seconds(), 0))
        self._began = self._reactor.seconds()
        self._latest, self._coming = self._coming, None
        self._live = set(await self._load())
