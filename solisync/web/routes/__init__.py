"""The route table, the source of dispatch, authorisation, rate limits, bodies and the OpenAPI document."""

from ...settings.settings import ServingSettings
from ..resources import Resources
from ..resources.openapi import OpenApi
from ..route import Route
from .new_passwords import new_passwords
from .operations import operations
from .pages import pages
from .players import players
from .progress import progress
from .replays import replays


def routes(settings: ServingSettings, resources: Resources) -> tuple[Route, ...]:
    """Every route of the service; those that begin or continue a session share one limit."""
    table = (
        *players(resources, settings.auth_limit, public_avatars=settings.public_avatars),
        *new_passwords(resources, settings.auth_limit),
        *progress(resources, streams=settings.streams > 0),
        *replays(resources),
        *operations(resources, OpenApi(lambda: table)),
        *(pages(resources, settings.auth_limit) if settings.pages else ()),
    )
    return table
