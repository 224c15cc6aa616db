"""The routes of the service itself: analytics, health and the description of this interface."""

from ...access.rate_limit import ANALYTICS
from ...rules.analytics import Batch, Receipt, read_batch
from ...rules.health import Alive, Ready
from ..resources import Resources
from ..resources.openapi import OpenApi
from ..route import Content, Json, Route, aliased


def operations(resources: Resources, openapi: OpenApi) -> tuple[Route, ...]:
    """Analytics, health, and the two forms of the OpenAPI document."""
    return (
        Route(
            method="POST",
            path="/api/analytics",
            name="report",
            tag="analytics",
            handler=resources.analytics.receive,
            summary="Report what happened in a game",
            limit=ANALYTICS,
            body=Json(Batch, read_batch),
            answer=Receipt,
            errors=("batch_too_large",),
        ),
        *aliased(
            Route(
                method="GET",
                path="/api/health",
                name="live",
                tag="health",
                handler=resources.health.live,
                summary="Whether the process is alive",
                answer=Alive,
            ),
            alias="/health",
        ),
        *aliased(
            Route(
                method="GET",
                path="/api/health/ready",
                name="ready",
                tag="health",
                handler=resources.health.ready,
                summary="Whether the service can do its work",
                answer=Ready,
            ),
            alias="/health/ready",
        ),
        Route(
            method="GET",
            path="/api/openapi.json",
            name="openapi",
            tag="docs",
            handler=openapi.document,
            summary="This interface as an OpenAPI 3.1 document",
        ),
        Route(
            method="GET",
            path="/api/docs",
            name="docs",
            tag="docs",
            handler=resources.docs.page,
            summary="This interface as a page for people",
            answer=Content(("text/html",)),
        ),
        Route(
            method="GET",
            path="/api/docs/{name}",
            name="docs_asset",
            tag="docs",
            handler=resources.docs.asset,
            summary="A part of that page",
            listed=False,
        ),
    )
