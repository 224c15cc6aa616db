"""Checks of the settings: variables, secret, proxies, limits, open files, access to the console; and of the deals."""

import math
import resource
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

from twisted.internet.endpoints import TCP4ServerEndpoint, TCP6ServerEndpoint, UNIXServerEndpoint, serverFromString

from ..access.rate_limit import AUTH
from ..events.streams import room_for_streams
from ..klondike.daily import LAST_DAY
from ..rules.browser_sessions import is_loopback
from ..settings.settings import ServingSettings, unknown_variables
from . import Finding, fine, note, wrong

SECRET_BITS = 100  # below that, a secret looks like words or a pattern
DEALS_DAYS = 60
EVERYBODY = 1  # a network with a prefix of at most this length has at least half of all addresses


def names(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check for variables that look like settings but aren't."""
    for name, advice in unknown_variables(environ):
        yield wrong("settings", f"{name} is not a setting", advice)


def deals(today: date) -> Finding:
    """Check that the deals of the coming days can be won."""
    if LAST_DAY - today < timedelta(DEALS_DAYS):
        return note("deals", f"those after {LAST_DAY} perhaps can't be won", "install a newer version on all nodes")
    return fine("deals", f"those of the days to {LAST_DAY} can be won")


def secret(name: str, value: bytes) -> Finding:
    """Check that a secret for tokens looks random, by the entropy of its bytes."""
    counts = Counter(value).values()
    bits = -sum(count * math.log2(count / len(value)) for count in counts)
    if bits < SECRET_BITS:
        return wrong(
            "secret",
            f"{name} is easy to guess: with it, an attacker can log in as any player",
            "use the output of: openssl rand -hex 32 (this logs all players out)",
        )
    return fine("secret", f"{name} has {len(value)} bytes")


def secret_file(file: Path) -> Iterator[Finding]:
    """Check that the file with the secret isn't readable by all users."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError:
        return  # reported with the settings
    if mode & 0o004:
        yield wrong("secret", f"all users of this machine can read {file}", f"chmod o-r {file}")


def proxies(settings: ServingSettings) -> Iterator[Finding]:
    """Check that the trusted proxies fit the listening address."""
    endpoint = serverFromString(None, settings.listen) if settings.listen.startswith(("tcp", "ssl", "unix")) else None
    wide = [network for network in settings.trusted_proxies if network.prefixlen <= EVERYBODY]
    if wide:
        yield wrong(
            "proxy",
            f"SOLISYNC_TRUSTED_PROXIES trusts {wide[0]}: a player can claim any address and evade all rate limits",
            "list only the addresses of the proxies",
        )
    elif isinstance(endpoint, UNIXServerEndpoint):
        yield fine("proxy", "every client of the unix socket is trusted")
    elif settings.trusted_proxies:
        yield fine("proxy", f"{len(settings.trusted_proxies)} addresses or ranges are trusted")
    elif getattr(endpoint, "_interface", "") in ("127.0.0.1", "::1", "localhost"):
        yield note(
            "proxy",
            "it listens only on this machine, and trusts no proxy: behind one, all players would share a rate limit",
            "if there is a proxy, set SOLISYNC_TRUSTED_PROXIES=127.0.0.1",
        )
    else:
        yield fine("proxy", "no proxy is trusted, which is right if players connect directly")


def auth_limit(settings: ServingSettings) -> Iterator[Finding]:
    """Check that the limit doesn't allow faster guesses of passwords than the default."""
    limit = settings.auth_limit
    if limit.most * AUTH.seconds > AUTH.most * limit.seconds:
        yield note(
            "limit",
            f"one address may log in {limit.most} times in {limit.seconds} s, which is above the default of"
            f" {AUTH.most} in {AUTH.seconds}: passwords are guessed that much faster",
            "unset SOLISYNC_AUTH_LIMIT unless many players share an address",
        )


def streams(settings: ServingSettings) -> Iterator[Finding]:
    """Check that a process may open as many files as its streams need."""
    if settings.streams:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = room_for_streams(settings.streams, hard)
        if most < settings.streams:
            text = f"{hard:,} open files are enough for {most:,} streams, not for {settings.streams:,}"
            yield note("streams", text, "raise LimitNOFILE= of the unit or ulimit -Hn, or lower SOLISYNC_STREAMS")
        else:
            yield fine("streams", f"up to {most:,} in each process")


def console(settings: ServingSettings) -> Iterator[Finding]:
    """Check which machines reach the console, if it is on."""
    if settings.admin_listen is None:
        if settings.admin_hosts:
            yield note("console", "SOLISYNC_ADMIN_HOSTS is set, but the console is off", "set SOLISYNC_ADMIN_LISTEN")
        return
    names = f"; over HTTPS it is {', '.join(sorted(settings.admin_hosts))}" if settings.admin_hosts else ""
    if settings.admin_listen.startswith("systemd:"):
        yield fine("console", f"systemd passes its socket{names}")
        return
    endpoint = serverFromString(None, settings.admin_listen)
    if not isinstance(endpoint, TCP4ServerEndpoint | TCP6ServerEndpoint):
        path = getattr(endpoint, "_address", "")
        yield fine("console", f"users who may write to {path} reach it{names}")
    elif is_loopback(endpoint._interface):
        yield fine("console", f"only this machine reaches it{names}")
    elif settings.admin_hosts:
        advice = "allow only the proxy through the firewall"
        yield note("console", f"other machines reach it at {endpoint._interface}{names}", advice)
    else:
        text = f"other machines would reach it at {endpoint._interface}, so the service doesn't start"
        yield wrong("console", text, "use a unix socket or a loopback address, or set SOLISYNC_ADMIN_HOSTS")
