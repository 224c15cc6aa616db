"""Secrets stay secret. The fixtures `logs` and `postgres` check the logs of all other tests at their end."""

from contextlib import suppress
from pathlib import Path

from solisync.access.tokens import Tokens
from solisync.client import ApiError
from solisync.settings.settings import ServingSettings
from tests.harness.canaries import SECRETS, leaked
from tests.harness.console import Console, table
from tests.harness.constants import PASSWORD, PREVIOUS_SECRET
from tests.harness.service import environment


def test_settings_and_tokens_show_no_secret():
    """The repr and str of objects with a secret don't contain it."""
    settings = ServingSettings.from_environ(environment("dbname=x", JWT_SECRET_PREVIOUS=PREVIOUS_SECRET))
    shown = "".join(
        f"{thing!r}{thing!s}"
        for thing in (settings, Tokens(settings.jwt_secret, previous=settings.jwt_secret_previous))
    )
    assert not [secret for secret in SECRETS if secret in shown]


async def test_no_log_line_contains_a_secret(server, administrate, logs, postgres):
    """Secrets are passwords, tokens, codes, reset links, the signing secret and the database's password."""
    client = await server.player("ann")  # so that this test alone has something to look at
    await client.refresh()
    codes = (await client.make_recovery_codes(PASSWORD)).codes
    link = (await administrate("users", "link", "ann", "--json")).json["path"]
    token = link.partition("#")[2]
    for code in codes[0], codes[0]:  # the second time in vain
        with suppress(ApiError):
            await server.client().recover("ann", code, PASSWORD)
    newer = (await administrate("users", "link", "ann", "--json")).json["path"].partition("#")[2]
    for each in token, newer, newer:
        with suppress(ApiError):
            await server.client().reset(each, PASSWORD)
    files = [*logs.glob("*.log"), *Path(postgres.data_dir).glob("*.log")]
    assert sum(file.stat().st_size for file in files) > 1_000
    assert not leaked(files, *codes, token, newer)


async def test_no_log_line_contains_codes_or_cookies_of_admins(server, administrate, logs, postgres):
    """Spent and refused codes count, too. No answer of the console contains them."""
    console = Console(server.service.admin_address.port, administrate)
    await console.sign_in("ann")
    codes = [(await administrate("admins", "code", "ann", "--json")).json["code"] for _ in range(2)]
    for code in reversed(codes):  # the newer one, and one that counts no more
        await console.ask("POST", "/session", {"name": "ann", "code": code})
    cookie = console.cookie.partition("=")[2]
    paths = ("/me", "/service", "/service/findings", "/service/settings", "/service/migrations", "/admins", "/acts")
    answers = "".join([(await console.ask("GET", path)).content.decode() for path in (*paths, "/openapi.json")])
    spelled = [text for code in codes for text in (code, code.replace("-", ""))]
    assert not [secret for secret in (*SECRETS, *spelled, cookie) if secret in answers]
    files = [*logs.glob("*.log"), *Path(postgres.data_dir).glob("*.log")]
    assert not leaked(files, *spelled, cookie)
    shown = "".join(arguments())
    assert not [secret for secret in (*spelled, cookie) if secret in shown]


def test_no_url_of_the_console_has_a_secret():
    """A server gets ids, filters and names in addresses. The code of a link is in the fragment."""
    named = {name for route in table() for name in (*route.variables, *route.parameters)}
    searched = {"q", "where", "state", "verdict", "held", "kind", "act", "actor", "player", "after", "before", "limit"}
    searched |= {"days", "sort", "reason", "admin", "seen", "from", "to"}
    assert named == searched | {"user_id", "replay_id", "session_id", "name"}


def arguments():
    """Return the command lines of all processes, which every user of the machine can read."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield file.read_text("utf-8", "replace")
