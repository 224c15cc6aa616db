"""Tests that no word is broken or outside the window, on any page and with the longest names."""

from tests.harness.postgres import run_sql
from tests.pages.admin import sign_in
from tests.pages.crowd import WIDE, fill
from tests.pages.player import keep, opened, won_game
from tests.pages.visitor import Visitor, until

HEADER_MAX = 110  # pixels: two lines
WIDTHS = (320, 390, 768, 900, 1280, 1920)
# Words of more than 23 letters may be broken for lack of space; addresses, verdicts and times are shorter.
WRONG = """() => {
  const found = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(["the page is wider than the window", scrollWidth]);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let text; (text = texts.nextNode()); ) {
    const holder = text.parentElement;
    if (holder.closest(".unseen, script, noscript, svg, #board")) continue;
    const cell = holder.closest("td, th, dd");
    const elided = getComputedStyle(holder).textOverflow === "ellipsis" && text.data.trim();
    const inside = (right) => !cell || right <= cell.getBoundingClientRect().right + 1;
    if (elided && !inside(holder.getBoundingClientRect().right)) found.push(["out of its cell", elided]);
    for (const { index, 0: word } of elided ? [] : text.data.matchAll(/[^\\s-]+-?/g)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const lines = [...range.getClientRects()].filter(({ width }) => width);
      if (!lines.length) continue;
      const right = Math.max(...lines.map((line) => line.right));
      if (right > clientWidth + 1) found.push(["out of the window", word]);
      if (!cell) continue;
      const broken = new Set(lines.map(({ top }) => Math.round(top))).size > 1;
      if (broken && word.length < 24) found.push(["broken", word]);
      if (!inside(right)) found.push(["out of its cell", word]);
    }
  }
  return found.map((each) => each.join(": "));
}"""


def wrong(visitor, state):
    """Return the broken and hidden words of the page in its current state, at each width."""
    found = []
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 860})
        found += [f"{state}, {width} px: {each}" for each in sorted(set(visitor.page.evaluate(WRONG)))]
    return found


def test_words_stay_whole_on_the_players_pages(visit, running, site):
    """The player is first signed out and then signed in, with a name of 32 wide letters."""
    shared, claimed = fill(site, running.dsn)
    found = []
    paths = ["/", "/replays?check=all", f"/players/{WIDE}", "/daily", "/daily/2026-04-26", "/account", "/nothing"]
    paths += [f"/replays/{shared}", f"/replays/{claimed}", "/players/nobody", "/leaderboard"]
    out = visit()
    for path in paths:
        out.open(path)
        found += wrong(out, path)
    inside = visit()
    inside.sign_in(WIDE)
    for path in paths:
        inside.open(path)
        found += wrong(inside, f"{path}, signed in")
        inside.page.set_viewport_size({"width": 320, "height": 860})
        assert inside.page.locator("body > header").bounding_box()["height"] < HEADER_MAX, path
    inside.page.click("#tab-reported")
    inside.page.wait_for_selector("#reports table")
    found += wrong(inside, "self-reported")
    keep(inside.page, *won_game(2))
    opened(inside)
    until(inside.page, "result.innerText.includes('✓')")
    found += wrong(inside, "a win")
    guest = visit()
    keep(guest.page, *won_game(1))
    opened(guest)
    until(guest.page, "result.innerText.includes('Create a free account')")
    guest.sign_in(WIDE)
    opened(guest).wait_for_selector("#offer .bar")
    found += wrong(guest, "games played signed out")
    assert not found, "\n".join(found)


def test_words_stay_whole_in_the_console(chromium, running, site):
    """Every page shows names, notes and addresses of the greatest possible length."""
    shared, claimed = fill(site, running.dsn)
    ((wide,),) = run_sql(running.dsn, "SELECT id::text FROM users WHERE username = %s", (WIDE,))
    visitor = Visitor(chromium, running.console, reduced_motion="reduce")
    visitor.context.set_extra_http_headers({})
    sign_in(visitor, running.dsn)
    found = []
    kinds = ("names", "avatars", "players", "entries")
    for path in [
        "/",
        "/players?q=",
        "/players?q=a",
        "/players?state=locked",
        "/players?q=2001:db8:aaaa:bbbb::1&where=address",
        f"/players/{wide}",
        *(f"/review?kind={kind}" for kind in kinds),
        "/replays",
        f"/replays/{shared}",
        f"/replays/{claimed}",
        "/acts",
        "/service",
    ]:
        visitor.open(path)
        found += wrong(visitor, path)
    visitor.context.close()
    assert not found, "\n".join(found)
