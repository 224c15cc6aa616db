"""Builds the site for players from the parts of the process."""

from .error_replies import as_json, as_page
from .parts import Parts
from .players_app import PlayersApp, Restrictions
from .resources import player_routes
from .resources.html_pages import Pages
from .wire.site import Site


def make_site(parts: Parts) -> Site:
    """Build the site, which doesn't listen yet."""
    settings = parts.settings
    pages = None
    if settings.pages:
        pages = parts.make(
            Pages,
            site_name=settings.site_name,
            site_links=settings.site_links,
            public_avatars=settings.public_avatars,
        )
    app = PlayersApp(
        player_routes(parts, pages),
        reactor=parts.reactor,
        limiter=parts.limiter,
        large_bodies=parts.large_bodies,
        tokens=parts.tokens,
        restrictions=parts.make(Restrictions, on_change=parts.metrics.suspended.set),
        metrics=parts.metrics,
        observer=parts.history.observe,
        now=parts.now,
        handler_seconds=parts.handler_seconds,
        present_error=as_json if pages is None else as_page(pages),
    )
    return parts.make(
        Site,
        resource=app,
        admit=app.admit,
        trusted_proxies=settings.trusted_proxies,
        cors_origins=settings.cors_origins,
        access_lines=settings.access_log,
    )
