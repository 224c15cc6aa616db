"""The routes of the service itself: analytics, health and the description of this interface."""

from ...access.rate_limit import ANALYTICS
from ...rules.analytics import Batch, Receipt, read_batch
from ...rules.health import Alive, Ready
from ..resources import Resources
from ..resources.openapi import OpenApi
from ..route import Content, Json, Route, aliased, get, post


def operations(resources: Resources, openapi: OpenApi) -> tuple[Route, ...]:
    """Analytics, health, and the two forms of the OpenAPI document."""
    return (
        post(
            "/api/analytics",
            resources.analytics.receive,
            name="report",
            tag="analytics",
            summary="Report what happened in a game",
            limit=ANALYTICS,
            body=Json(Batch, read_batch),
            answer=Receipt,
            errors=("batch_too_large",),
        ),
        *aliased(
            get(
                "/api/health",
                resources.health.live,
                name="live",
                tag="health",
                summary="Whether the process is alive",
                answer=Alive,
            ),
            alias="/health",
        ),
        *aliased(
            get(
                "/api/health/ready",
                resources.health.ready,
                name="ready",
                tag="health",
                summary="Whether the service can do its work",
                answer=Ready,
            ),
            alias="/health/ready",
        ),
        get(
            "/api/openapi.json",
            openapi.document,
            name="openapi",
            tag="docs",
            summary="This interface as an OpenAPI 3.1 document",
        ),
        get(
            "/api/docs",
            resources.docs.page,
            name="docs",
            tag="docs",
            summary="This interface as a page for people",
            answer=Content(("text/html",)),
        ),
        get(
            "/api/docs/{name}",
            resources.docs.asset,
            name="docs_asset",
            summary="A part of that page",
        ),
    )
