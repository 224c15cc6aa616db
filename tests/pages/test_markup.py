"""The markup of every page, as sent and as scripts change it, is valid HTML (the Nu validator)."""

import json
import shutil
import subprocess

import pytest

from tests.checking.uploads import game
from tests.harness.constants import PATIENCE
from tests.pages.admin import paths, sign_in
from tests.pages.visitor import Game

VNU = "vnu-jar@26.9.27"
PATHS = ("/", "/replays", "/daily", "/daily/2026-04-26", "/leaderboard", "/account", "/play", "/reset", "/players/ann")
# On narrow screens rows are blocks, which without these roles would be no rows to screen readers (page.js).
ROLES = "The “role” attribute must not be used on a “t.*"
OPTIONS = ("--format", "json", "--stdout", "--exit-zero-always", "--errors-only", "--filterpattern", ROLES)
MISSING = [program for program in ("java", "npm") if shutil.which(program) is None]


@pytest.fixture(scope="session")
def validated(tmp_path_factory):
    """Return what the validator finds in texts by their names. Its package is fetched once."""
    place = tmp_path_factory.mktemp("validator")
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", VNU]
    subprocess.run(install, cwd=place, check=True, capture_output=True, timeout=PATIENCE)

    def validated(texts):
        for number, text in enumerate(texts.values()):
            (place / f"{number}.html").write_text(text)
        files = [f"{number}.html" for number in range(len(texts))]
        words = ["java", "-jar", "node_modules/vnu-jar/build/dist/vnu.jar", *OPTIONS, *files]
        found = subprocess.run(words, cwd=place, check=True, capture_output=True, text=True, timeout=PATIENCE)
        messages = json.loads(found.stdout)["messages"]
        names = [*texts]
        return {
            (names[int(each["url"].rpartition("/")[2].removesuffix(".html"))], each["message"], each.get("extract"))
            for each in messages
        }

    return validated


def both(visitor, path, texts, name):
    """Add the text of a page as it was sent, and as its scripts have changed it."""
    texts[f"{name}{path}, as sent"] = visitor.page.request.get(path).text()
    visitor.open(path)
    texts[f"{name}{path}"] = "<!doctype html>\n" + visitor.page.evaluate("document.documentElement.outerHTML")


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.limit(5 * PATIENCE)
def test_pages_for_players_are_valid(visitor, site, validated):
    """Signed in and signed out."""
    texts = {}
    ann = Game(site)
    ann.seen_as("Ann")
    replay = f"/replays/{ann.upload(game())}"
    for path in (*PATHS, replay):
        both(visitor, path, texts, "signed out ")
    visitor.sign_in()
    for path in (*PATHS, replay):
        both(visitor, path, texts, "signed in ")
    assert validated(texts) == set()


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.limit(5 * PATIENCE)
def test_pages_of_the_console_are_valid(console, running, validated):
    visitor = console()
    sign_in(visitor, running.dsn)
    texts = {}
    for path in paths(running.dsn):
        both(visitor, path, texts, "console ")
    assert validated(texts) == set()
