"""The route table, the source of dispatch, authorisation, rate limits, bodies and the OpenAPI document."""

from ...settings import ServingSettings
from ..openapi import OpenApi
from ..resources import Resources
from ..route import Route
from .browsing import browsing
from .games import games
from .players import players
from .service import service
from .watching import watching


def routes(settings: ServingSettings, resources: Resources) -> tuple[Route, ...]:
    """Every route of the service; those that begin or continue a session share one limit."""
    table = (
        *players(resources, settings.auth_limit, public_avatars=settings.public_avatars),
        *games(resources),
        *watching(resources),
        *service(resources, OpenApi(lambda: table)),
        *(browsing(resources, settings.auth_limit) if settings.pages else ()),
    )
    return table
