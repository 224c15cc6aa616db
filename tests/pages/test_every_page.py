"""Checks of every page: requests go only to the service, the keyboard reaches everything, and no content jumps."""

import pytest

from tests.checking.uploads import game
from tests.pages.visitor import Game

PATHS = ("/", "/replays", "/daily", "/leaderboard", "/account", "/daily/2026-04-26")
SHIFTS = """new PerformanceObserver(list => {
  for (const {value} of list.getEntries()) window.shifted = (window.shifted ?? 0) + value;
}).observe({type: "layout-shift", buffered: true})"""
SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}


def test_no_inline_script_runs(visitor, site):
    """Pages have no inline scripts, and the policy blocks added ones."""
    replay_id = Game(site).upload(game())
    for path in (*PATHS, f"/replays/{replay_id}"):
        page = visitor.open(path)
        assert (
            page.locator("script:not([src]):not([type='application/json']), style, [style*='url'], [onclick]").count()
            == 0
        )
    page.evaluate("""() => {
      const script = document.createElement("script");
      try { script.textContent = "window.ran = 1"; document.body.append(script); } catch {}
      try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 1'>"); } catch {}
    }""")
    assert page.evaluate("window.ran") is None
    assert any("policy" in text for text in visitor.complaints)  # shows that the visitor records violations
    visitor.complaints.clear()


def test_keyboard_reaches_everything_that_can_be_used(visitor, site):
    """Tab reaches every control, and each control has an outline while it has the focus."""
    replay_id = Game(site).upload(game())
    visitor.sign_in()
    for path in ("/", "/replays", "/leaderboard", "/daily", "/account", f"/replays/{replay_id}"):
        page = visitor.open(path)
        wanted = page.evaluate("""() => [...document.querySelectorAll(
          "a[href], summary, button:enabled, input:enabled, select:enabled, [tabindex='0']")]
          .filter(each => each.checkVisibility() && !each.closest("#transcript") && each.tabIndex === 0).length""")
        reached = set()
        for _ in range(wanted + 230):
            page.keyboard.press("Tab")
            found = page.evaluate("""() => {
              const it = document.activeElement;
              if (it === document.body) return null;
              it.dataset.seen ??= Math.random();
              const seen = it.id === "file" ? it.previousElementSibling : it;
              return [it.dataset.seen, getComputedStyle(seen).outlineStyle, it.outerHTML,
                !!it.closest("#transcript")];
            }""")
            if found is None:
                break
            key, outline, html, in_transcript = found
            assert outline != "none", html
            if not in_transcript:
                reached.add(key)
        assert len(reached) == wanted, path
    tab = visitor.open("/leaderboard")
    tab.focus("#tab-verified")
    tab.keyboard.press("ArrowRight")
    assert tab.is_visible("#reported")
    assert tab.evaluate("document.activeElement.id") == "tab-reported"


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_jumps(visit, site, figure, width):
    """The layout shift stays within the limit called good, on a slow line and a processor six times as slow."""
    shared = f"/replays/{Game(site).upload(game(0, undo=True))}"
    wrong = f"/replays/{Game(site, 'bob').upload(game(1, final_score=1))}"
    for path in ("/", "/play", "/replays", "/daily", "/leaderboard", "/account", "/players/ann", shared, wrong):
        visitor = visit(width=width)
        visitor.context.add_init_script(SHIFTS)
        tools = visitor.context.new_cdp_session(visitor.page)
        tools.send("Network.enable")
        tools.send("Network.emulateNetworkConditions", SLOW)
        tools.send("Emulation.setCPUThrottlingRate", {"rate": 6})
        visitor.open(path)
        shift = visitor.page.evaluate("window.shifted ?? 0")
        figure(f"{path.split('-')[0]}, {width} px: layout shift {shift:.3f}")
        assert shift < 0.1, path
        visitor.context.close()


def test_unavailable_page_reloads_by_itself(visitor, site):
    """The page retries after the time in `retry_after`, until the service returns the page."""
    away = "<script type=module src=/web/away.js></script><script type=application/json id=data>{}</script>"
    body = away.replace("{}", '{"retry_after": 1}') + "<p id=said></p><a id=me></a><b id=streak></b>"
    visitor.context.add_init_script("Math.random = () => 0.01")
    visitor.context.route(
        "**/replays",
        lambda route: (
            route.fulfill(status=503, content_type="text/html", body=body)
            if visitor.requested.count(f"{site}/replays") < 3
            else route.continue_()
        ),
    )
    visitor.page.goto("/replays")
    visitor.page.wait_for_selector("h1")
    assert visitor.page.inner_text("h1") == "Replays"


@pytest.mark.parametrize("path", ["/nothing", "/replays/00000000-0000-4000-8000-000000000000"])
def test_unknown_address_leads_to_the_start(visitor, path):
    page = visitor.page
    assert page.goto(path).status == 404
    assert page.inner_text("h1") == "Page not found"
    page.get_by_role("link", name="Go to the home page").click()
    page.wait_for_url(f"{visitor.site}/")
