"""The table of the console's routes, and what their OpenAPI document says of itself."""

from ...rules.console import Myself, SignedIn, SignIn
from ...rules.shapes import Ok
from ..resources.openapi import Interface, OpenApi
from ..route import Json, Route
from .act_routes import act_routes
from .acts import Acts
from .inspections import Inspections
from .overview import Overviews
from .pages import page_routes
from .players import PlayerViews
from .reading_routes import reading_routes
from .replays import ReplayViews
from .route import delete, get, post
from .signing_in import SigningIn

INTERFACE = Interface(
    "solisync administration",
    "Administration of players and their data, on a listener of its own.",
    {
        "session": "Sessions of admins",
        "players": "Players, and what is done to them",
        "replays": "Replays, and what is done to them",
        "service": "What is new, what was done, and how the service is",
        "docs": "This interface",
    },
    ("session", {"type": "apiKey", "in": "cookie", "name": "solisync-admin"}),
)


def routes(
    *,
    signing_in: SigningIn,
    acts: Acts,
    players: PlayerViews,
    replays: ReplayViews,
    overviews: Overviews,
    inspections: Inspections,
) -> tuple[Route, ...]:
    """Every route of the console; all that change something are for its own pages alone."""
    openapi = OpenApi(lambda: table, INTERFACE)
    table: tuple[Route, ...] = (
        *_session(signing_in),
        *reading_routes(players, replays, overviews, inspections),
        *act_routes(acts),
        *page_routes(),
        get("/openapi.json", openapi.document, name="openapi", tag="docs", summary="This interface"),
    )
    return table


def _session(signing_in: SigningIn) -> tuple[Route, ...]:
    return (
        post(
            "/session",
            signing_in.begin,
            name="sign_in",
            protected=False,
            limit=None,
            tag="session",
            summary="Begin a session with a one-time code",
            body=Json(SignIn),
            answer=SignedIn,
            errors=("invalid_credentials", "rate_limited"),
        ),
        delete(
            "/session",
            signing_in.end,
            name="sign_out",
            protected=False,
            limit=None,
            tag="session",
            summary="End the session",
            answer=Ok,
        ),
        get(
            "/me",
            signing_in.myself,
            name="myself",
            tag="session",
            summary="Who is signed in, and their sessions",
            answer=Myself,
        ),
        delete(
            "/me/sessions/{session_id}",
            signing_in.end_one,
            name="end_own_session",
            tag="session",
            summary="End one of one's own sessions",
            answer=Ok,
            errors=("session_not_found",),
        ),
    )
