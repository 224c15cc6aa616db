"""Pages for players as they are served (docs/pages.md); other tests cover their behaviour in a browser."""

import gzip
import re
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from solisync.klondike.daily import OFFSETS
from solisync.klondike.deal import deal
from solisync.klondike.rules import card_text
from solisync.rules.challenge import daily_challenge
from solisync.rules.html_pages import ReplayData, SharedReplay, replay_head
from solisync.rules.replays import VerdictAnswer
from solisync.rules.texts import long_date, verdict_text
from solisync.web.kept_replies import ACCEPT_MAX, as_list, takes_gzip
from solisync.web.page_build import CLIENT_FILES, PLAYERS_FILES, stripped
from solisync.web.resources.html_pages import PAGE_BYTES, Pages
from tests.harness.boards import verified
from tests.harness.constants import ROOT
from tests.harness.html_page import Page, check_policies
from tests.harness.http_requests import Connection
from tests.harness.payloads import replay
from tests.harness.postgres import truncate
from tests.harness.service import start
from tests.harness.strategies import texts

STATIC = {
    "/": "home",
    "/replays": "replays",
    "/play": "play",
    "/leaderboard": "leaderboard",
    "/daily": "daily",
    "/account": "account",
}
DAY = "/daily/2026-04-26"
NOBODY = "00000000-0000-0000-0000-000000000000"
REPLAY = {
    "mode": "Classic",
    "draw_mode": "DrawThree",
    "final_score": 650,
    "time_seconds": 251,
    "recorded_at": "2026-05-19",
    "seed": 2**64 - 1,
}


async def upload(server, client, **fields):
    """Return the id of a new replay of this player."""
    return await client.upload_replay(msgspec.json.encode(REPLAY | fields))


async def share(server):
    """Return the path of a new replay's page."""
    return f"/replays/{await upload(server, await server.player('Ann'))}"


def check_page(answer, *, status=200):
    """Check that a reply is HTML with the policies of all pages, cacheable as they are; return the parsed page."""
    assert answer.status == status
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["vary"] == "Accept-Encoding"
    check_policies(answer)
    page = Page(answer.content)
    assert page.inline == []
    return page


@pytest.mark.parametrize(("path", "name"), STATIC.items())
async def test_page_has_title_description_and_script(server, path, name):
    """Previews of links have the same texts, and a picture. The data of `/` and `/daily` has the day."""
    answer = await server.ask("GET", path)
    page = check_page(answer)
    assert page.title == page.named["og:title"] != ""
    assert page.named["description"] == page.named["og:description"] != ""
    picture = (await server.ask("GET", page.named["og:image"])).content
    assert picture[16:24] == bytes.fromhex("000004b0 00000276")  # 1200 by 630 pixels
    assert len(picture) < 30_000
    today = (await server.ask("GET", "/api/daily-challenge")).json["date"]
    assert msgspec.json.decode(page.data).get("date") == (today if name in ("home", "daily") else None)
    assert re.search(rf'src="/web/[0-9a-f]{{16}}/{name}\.js"', answer.content.decode())
    assert "robots" not in page.named
    assert ("html", ("lang",)) in page.elements


def test_preview_has_whole_addresses_of_the_site():
    """Programs that show previews don't complete a path. Without the address of the site there is none to give."""
    assert PLAIN.named["og:url"] == f"https://play.example.org/replays/{NOBODY}"
    assert PLAIN.named["og:image"] == "https://play.example.org/web/share.png"


async def test_home_page_and_daily_page_show_the_day_of_the_database(reactor, shared_dsn):
    """A node whose clock is a day ahead shows that day and links to its game. A day to come has a page."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, now=lambda: datetime.now(UTC) + timedelta(days=1))
    try:
        ((today, after),) = running.sql(
            "SELECT today, today + 1 FROM (SELECT (now() AT TIME ZONE 'UTC')::date AS today) AS clock"
        )
        for path in ("/", "/daily"):
            answer = await running.ask("GET", path)
            data = msgspec.json.decode(check_page(answer).data)
            assert data["date"] in (str(today), str(after)), path  # midnight may come
            assert f'href="/play?daily={data["date"]}"' in answer.content.decode()
            assert data["deal"] == str(daily_challenge(date.fromisoformat(data["date"])).seed)
        to_come = await running.ask("GET", f"/daily/{after + timedelta(days=1)}")
        page = check_page(to_come, status=404)
        assert to_come.headers["error-code"] == "day_not_found"
        assert f"Opens on {long_date(after + timedelta(days=1))}" in "".join(page.texts)
    finally:
        await running.service.stopService()


async def test_home_page_counts_the_winners_of_today(server):
    """The page shows no replay of them."""
    assert "won it so far" not in (await server.ask("GET", "/")).content.decode()
    client = await server.player("Ann")
    await client.opt_in("Ann")
    verified(server.dsn, (await client.me()).id, 600)
    server.sql(
        "UPDATE board_evidence SET board = 'daily/' || (now() AT TIME ZONE 'UTC')::date WHERE board LIKE 'daily/%'"
    )
    assert "1 player has won it so far." in (await server.ask("GET", "/")).content.decode()


async def test_page_of_a_replay_has_its_title_and_data(server):
    """The title and the description suit previews. The data has the verdict, and the seed as text."""
    client = await server.player("Ann")
    replay_id = await upload(server, client, final_score=650.0)
    answer = await server.ask("GET", f"/replays/{replay_id}")
    page = check_page(answer)
    assert page.title == page.named["og:title"] == "Ann won with 650 points in 4:11, draw three – Solitaire"
    assert page.named["description"] == page.named["og:description"]
    assert page.named["description"] == verdict_text(VerdictAnswer("pending", *[None] * 6))
    data = msgspec.json.decode(page.data)
    (recent,) = (await server.ask("GET", "/api/replays/recent")).json
    shown = {name: recent[name] for name in recent if name not in ("seed", "verdict")}
    assert data["replay"] == shown | {"listed": True, "avatar_url": None}
    assert data["verdict"] == (await server.ask("GET", f"/api/replays/{replay_id}/verdict")).json
    assert '"final_score":650.0' in page.data
    assert '/replay.js"></script>' in answer.content.decode()


async def test_page_of_an_unlisted_replay_is_not_indexed(server):
    """The link works with `noindex`, until the replay is listed again."""
    client = await server.player("Ann")
    replay_id = await upload(server, client)
    before = await server.ask("GET", f"/replays/{replay_id}")
    await client.set_listed(replay_id, False)
    answer = await server.ask("GET", f"/replays/{replay_id}", {"If-None-Match": before.headers["etag"]})
    page = check_page(answer)
    assert page.named["robots"] == "noindex"
    assert msgspec.json.decode(page.data)["replay"]["listed"] is False
    await client.set_listed(replay_id, True)
    assert (await server.ask("GET", f"/replays/{replay_id}")).content == before.content


async def test_page_of_a_replay_shows_a_new_verdict(server):
    """The page gets another tag, so caches fetch it again."""
    shared = await share(server)
    before = await server.ask("GET", shared)
    server.sql(
        "INSERT INTO verdicts (replay_id, status, reason, engine, checked_at)"
        " SELECT id, 'refuted', 'illegal_move', 1, now() FROM replays"
    )
    answer = await server.ask("GET", shared, {"If-None-Match": before.headers["etag"]})
    page = check_page(answer)
    assert page.title == "Ann claims 650 points in 4:11, draw three – Solitaire"
    verdict = msgspec.json.decode(page.data)["verdict"]
    assert (verdict["status"], verdict["reason"]) == ("refuted", "illegal_move")


async def test_page_of_a_day_has_its_deal_and_goal(server):
    """The deal is text, and the goal has the fields of the API. Past days have pages too."""
    page = check_page(await server.ask("GET", DAY))
    data = msgspec.json.decode(page.data)
    today = (await server.ask("GET", "/api/daily-challenge")).json
    assert data == {
        "today": today["date"],
        "date": "2026-04-26",
        "deal": "1364344767969826",
        "goal": {"description": "Win within 8 minutes", "target_score": None, "max_time_secs": 480},
    }
    data = msgspec.json.decode(check_page(await server.ask("GET", f"/daily/{today['date']}")).data)
    assert data["deal"] == str(today["seed"])
    assert data["goal"] == {name: today[name] for name in ("description", "target_score", "max_time_secs")}
    home = msgspec.json.decode(check_page(await server.ask("GET", "/")).data)
    assert [*home["deals"]][-1] == today["date"]
    assert home["deals"][today["date"]] == home["deal"]
    assert len(home["deals"]) == 2
    assert (await server.ask("GET", "/daily/0001-01-01")).status == 200


async def test_page_of_a_day_says_whether_its_deal_can_be_won(server, monkeypatch):
    """A day of the table does. A day that is over says so, and its deal is played as that day's."""
    hidden = "<p hidden>This deal can be won, drawing one card or three.</p>"
    day = (await server.ask("GET", DAY)).content.decode()
    assert hidden in day
    assert "<p >This day is over. You can still play its deal.</p>" in day
    assert 'href="/play?daily=2026-04-26"' in day
    today = date.today()  # both days, because midnight may come
    for each in (today, today + timedelta(1)):
        monkeypatch.setitem(OFFSETS, each, 0)
    page = (await server.ask("GET", "/daily")).content.decode()
    assert hidden.replace(" hidden", " ") in page
    assert "<p hidden>This day is over." in page
    assert re.search(r'href="/play\?daily=\d{4}-\d\d-\d\d"', page)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"/replays/{NOBODY}", "replay_not_found"),
        ("/replays/xqz", "replay_not_found"),
        (f"/replays/{NOBODY.upper()}0", "replay_not_found"),
        ("/daily/2026-02-29", "day_not_found"),
        ("/daily/2026-2-3", "day_not_found"),
        ("/daily/today", "day_not_found"),
        ("/daily/0000-00-00", "day_not_found"),
        ("/players/nobody", "player_not_found"),
        ("/players/a.b~c", "player_not_found"),
    ],
)
async def test_missing_page_is_an_html_error(server, path, code):
    """The page has the status and the code, without anything of the path, even if the client has an ETag."""
    answer = await server.ask("GET", path)
    page = check_page(answer, status=404)
    assert answer.headers["error-code"] == code
    assert page.data == "{}"
    assert path.rpartition("/")[2].encode() not in answer.content
    assert b'class="missing"' in answer.content
    for tag in (answer.headers["etag"], "*"):
        assert (await server.ask("GET", path, {"If-None-Match": tag})).status == 404
    head = await server.ask("HEAD", path)
    assert (head.status, head.content, head.headers["error-code"]) == (404, b"", code)


@pytest.mark.parametrize(
    "path",
    ["/nope", "/replays/", "/replays/a/b", "/daily/", "/account/", "//", "/index.html", "/web", "/web/", "/robots.txt"],
)
async def test_other_paths_are_json(server, path):
    """A path with a trailing slash is another path, and gets no redirect."""
    answer = await server.ask("GET", path)
    assert (answer.status, answer.json) == (404, {"error": "not found"})
    assert "location" not in answer.headers


@pytest.mark.parametrize("path", [*STATIC, "/replays/x", DAY, "/web/style.css"])
async def test_page_allows_get_and_head_alone(server, path):
    """Other methods return 405, even where the page is missing."""
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = await server.ask(method, path)
        assert (answer.status, answer.json) == (405, {"error": "method not allowed"})
        assert answer.headers["allow"] == "GET, HEAD"


async def test_page_depends_only_on_its_path_and_stored_data(server):
    """Caches mix up nothing: query, cookies, tokens, Host, Accept and language change nothing."""
    shared = await share(server)
    client = await server.player("bob")
    variants = [
        {"Cookie": f"solisync={client.tokens.refresh_token}; a=b"},
        {"Authorization": f"Bearer {client.tokens.access_token}"},
        {"Authorization": "Basic x"},
        {"Host": "evil.example"},
        {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"},
        {"Accept": "application/json"},
        {"Accept-Language": "de"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"User-Agent": "bot", "Referer": "https://evil.example"},
    ]
    for path in (*STATIC, shared, DAY, f"/replays/{NOBODY}"):
        plain = await server.ask("GET", path)
        for headers in variants:
            other = await server.ask("GET", path, headers)
            assert other.content == plain.content
            assert unvarying(other) == unvarying(plain)
        assert (await server.ask("GET", f"{path}?move=47&x=<script>&x=%00")).content == plain.content


def unvarying(answer):
    """Return the headers without the date and the request id."""
    return {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}


async def test_page_has_no_links_to_other_sites(server):
    """The page has no absolute link or redirect, and the service serves every reference."""
    shared = await share(server)
    seen = set()
    for path in (*STATIC, shared, DAY, f"/replays/{NOBODY}"):
        answer = await server.ask("GET", path)
        text = answer.content.decode()
        assert "://" not in text
        references = re.findall(r"""(?:href|src|action|poster|srcset)=["']?([^"'> ]*)""", text)
        assert not [reference for reference in references if not re.match(r"/(?!/)|#", reference)]
        seen |= {reference.partition("#")[0] for reference in references} - {""}
    assert len(seen) > 5
    for reference in seen:
        answer = await server.ask("GET", reference)
        assert (answer.status, "location" in answer.headers) == (200, False), reference


@pytest.mark.parametrize(
    "path", [*STATIC, DAY, "shared", "/web/style.css", "/web/home.js", "/web/icon.svg", "/api/docs"]
)
@pytest.mark.parametrize("coding", [None, "gzip"])
async def test_client_that_has_the_page_gets_a_304(server, path, coding):
    """The tag is a digest of the bytes that are sent. HEAD returns the same tag."""
    path = await share(server) if path == "shared" else path
    asked = {} if coding is None else {"Accept-Encoding": coding}
    head = await ask(server, "HEAD", path, None, asked)
    answer = await ask(server, "GET", path, None, asked)
    assert len(answer.content) == int(head.headers["content-length"])
    tag = answer.headers["etag"]
    assert tag == f'"{sha256(answer.content).hexdigest()[:32]}"' == head.headers["etag"]
    again = await ask(server, "GET", path, None, asked | {"If-None-Match": tag})
    assert (again.status, again.content, again.headers["etag"]) == (304, b"", tag)
    assert again.headers["cache-control"] == answer.headers["cache-control"]
    assert (await ask(server, "GET", path, None, asked | {"If-None-Match": '"other"'})).status == 200


async def ask(server, method, path, body, headers):
    """Send a request exactly as given, and return the raw reply: treq asks for gzip and unpacks it."""
    connection = Connection(server.port)
    try:
        return await deferToThread(connection.ask, method, path, body, headers=headers)
    finally:
        connection.close()


async def test_pages_and_files_are_compressed_on_request(server):
    """The content is the same, and no reply is larger than uncompressed."""
    shared = await share(server)
    files = ("/web/style.css", "/web/replay.js", "/web/icon.svg", "/api/docs", "/api/docs/swagger-ui.js")
    for path in (*STATIC, shared, DAY, f"/replays/{NOBODY}", *files):
        plain = await ask(server, "GET", path, None, {})
        packed = await ask(server, "GET", path, None, {"Accept-Encoding": "br, gzip;q=0.5"})
        assert "content-encoding" not in plain.headers
        if packed.headers.get("content-encoding") == "gzip":
            assert gzip.decompress(packed.content) == plain.content
            assert len(packed.content) < len(plain.content)
            assert packed.headers["etag"] != plain.headers["etag"]
        else:
            assert packed.content == plain.content
        assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
        assert (packed.status, packed.headers["content-type"]) == (plain.status, plain.headers["content-type"])


async def test_remembered_lists_are_compressed_on_request(server):
    """Equal bytes are compressed once. Without the header, the list is as before."""
    ann = await server.player("ann")
    await ann.opt_in("Ann")
    for _ in range(20):
        await ann.upload_replay(replay())
    token = {"Authorization": f"Bearer {ann.tokens.access_token}"}
    as_list.cache_clear()
    recent = "/api/replays/recent"
    for path, headers in {recent: {}, f"{recent}?before=": {}, "/api/leaderboard": token}.items():
        plain = await ask(server, "GET", path, None, headers)
        packed = [await ask(server, "GET", path, None, headers | {"Accept-Encoding": "gzip"}) for _ in range(2)]
        assert "content-encoding" not in plain.headers
        assert {answer.headers["vary"] for answer in (plain, *packed)} == {"Accept-Encoding"}
        for answer in packed:
            if answer.headers.get("content-encoding") == "gzip":
                assert len(answer.content) < len(plain.content) / 4
                assert gzip.decompress(answer.content) == plain.content
            else:
                assert path == "/api/leaderboard"  # which has one line
    assert (as_list.cache_info().misses, as_list.cache_info().hits) == (3, 6)


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZip", True),
        ("x-gzip", True),
        ("br, gzip", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzip;q=0.001", True),
        ("*;q=0", False),
        ("*, gzip;q=0", False),
        ("gzip, *;q=0", True),
        ("identity", False),
        ("gzipped", False),
        ("gzip;q=x", False),
        (",,gzip,", True),
        ("gzip" + " " * (ACCEPT_MAX - 4), True),
        ("gzip," * ACCEPT_MAX, False),
    ],
)
def test_accept_encoding_decides_about_gzip(header, takes):
    """RFC 9110 §12.5.3 has the rules."""
    assert takes_gzip(header) is takes


async def test_files_have_their_types(server):
    """The service serves every file of the players' pages and of the client; caches keep them but ask each time."""
    text = "; charset=utf-8"
    types = {".js": f"text/javascript{text}", ".css": f"text/css{text}", ".svg": f"image/svg+xml{text}"}
    files = sorted([*(PLAYERS_FILES / "web").iterdir(), *CLIENT_FILES.iterdir()])
    assert len(files) > 5
    for file in files:
        answer = await server.ask("GET", f"/web/{file.name}")
        assert answer.status == 200
        assert answer.content == file.read_bytes() or file.suffix in (".js", ".css")
        assert answer.headers["content-type"] == types.get(file.suffix, "image/png")
        assert answer.headers["cache-control"] == "public, no-cache"
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_scripts_are_served_without_comments_and_indentation(server):
    """Line numbers stay the same. Texts that look like comments stay too."""
    script = """// @ts-check
/** What it
 * does. @type {number} */
const a = /** @type {any} */ (b) / 2; // half
const address = "http://a/*"; // an address
const c = d / 2 / e, name = 'it\\'s // not', text = `/* ${c} // */`;
  if (!/^[/"]\\/\\//.test(name)) f(/"/, a / b); /* both */ g();
"""
    assert (
        stripped(script)
        == """


const a = (b) / 2;
const address = "http://a/*";
const c = d / 2 / e, name = 'it\\'s // not', text = `/* ${c} // */`;
if (!/^[/"]\\/\\//.test(name)) f(/"/, a / b); g();
"""
    )
    for file in (*(PLAYERS_FILES / "web").glob("*.js"), *CLIENT_FILES.glob("*.js")):
        served = (await server.ask("GET", f"/web/{file.name}")).content.decode()
        assert "@param" not in served
        assert "@ts-check" not in served
        assert len(served.splitlines()) == len(file.read_text("utf-8").splitlines())


async def test_style_sheets_are_served_with_their_imports(server):
    """A page then loads one file."""
    board = (await server.ask("GET", "/web/board.css")).content.decode()
    for name in ("play.css", "replay.css"):
        served = (await server.ask("GET", f"/web/{name}")).content.decode()
        assert served.startswith(board)
        assert "/*" not in served
        assert "@import" not in served


@pytest.mark.parametrize("name", ["nope.js", "..", "../layout.html", "%2e%2e%2flayout.html", "home.js/", "layout.html"])
async def test_page_paths_serve_no_other_file(server, name):
    answer = await server.ask("GET", f"/web/{name}")
    assert (answer.status, answer.json) == (404, {"error": "not found"})


async def test_page_costs_at_most_one_round_trip(reactor, shared_dsn):
    """The home page and those of replays, days and players need one; other pages and files none."""
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn)
    try:
        replay_id = await upload(running, await running.player("Ann"))
        database = running.service.parts.database
        calls = []
        original = database.run
        database.run = lambda work, *arguments, **more: calls.append(work) or original(work, *arguments, **more)
        for path in (*STATIC.keys() - {"/", "/daily"}, "/web/style.css", "/replays/x", "/daily/x"):
            await running.ask("GET", path)
        assert calls == []
        for path in (
            "/",
            f"/replays/{replay_id}",
            f"/replays/{NOBODY}",
            "/daily",
            DAY,
            "/daily/2999-01-01",
            "/players/x",
        ):
            calls.clear()
            await running.ask("GET", path)
            assert len(calls) == 1
    finally:
        await running.service.stopService()


async def test_page_has_its_facts_without_a_script(server):
    """A replay's page has heading, facts and verdict in its HTML, a day's page the goal and the deal."""
    path = await share(server)
    page = Page((await server.ask("GET", path)).content)
    texts = " ".join("".join(page.texts).split())
    assert "Ann won with 650 points" in texts
    assert "We are still checking this game." in texts
    for fact in ("Time 4:11", "Moves –", "Draw Draw three", "Mode Classic", "Played 19 May 2026", f"Deal {2**64 - 1}"):
        name, _, value = fact.partition(" ")
        assert f"{name}{value}" in texts
    server.sql(
        "INSERT INTO verdicts (replay_id, status, ruleset, undos, score, moves, boards, engine, checked_at)"
        " SELECT id, 'verified', '2026-05-19', 2, 650, 1104, '{}', 1, now() FROM replays"
    )
    texts = "".join(Page((await server.ask("GET", path)).content).texts)
    assert "Verified: with 2 undos where marked, these moves win this deal with exactly 650 points." in texts
    assert "1,104 moves, 2 undos" in texts
    day = (await server.ask("GET", DAY)).content.decode()
    texts = "".join(Page(day.encode()).texts)
    assert "Deal of Sunday, 26 April 2026" in texts
    assert "Win within 8 minutes" in texts
    assert "No player on the leaderboard has won it yet." in texts
    up = [card_text(board[-1]) for board in deal(1364344767969826)[4:11]]
    assert f'aria-label="The cards that lie face up: {", ".join(up)}."' in day
    assert day.count("<i></i>") == 21
    assert 'href="/daily/2026-04-25"' in day
    assert 'href="/daily/2026-04-27"' in day


async def test_time_of_a_game_is_one_that_html_allows(server):
    """The list and the page of the game have three digits of a second at most. The replay keeps its spelling."""
    client = await server.player("Ann")
    replay_id = await upload(server, client, recorded_at="2026-11-20t10:11:12.123456789+01:00")
    for path in ("/players/Ann", f"/replays/{replay_id}"):
        html = (await server.ask("GET", path)).content.decode()
        assert re.findall(r'<time datetime="([^"]+)"', html) == ["2026-11-20T10:11:12.123+01:00"]
    assert "123456789" in (await server.ask("GET", f"/api/replays/{replay_id}")).content.decode()


async def test_page_of_a_day_has_its_winners(server):
    """The page has the number of players on the day's board and the best score. Today has no following day."""
    for name, score in (("Ann", 600), ("Bob", 715)):
        client = await server.player(name)
        await client.opt_in(name)
        verified(server.dsn, (await client.me()).id, score)
    texts = "".join(Page((await server.ask("GET", DAY)).content).texts)
    assert "2 players on the leaderboard won it. The best score is 715." in texts
    today = (await server.ask("GET", "/daily")).content.decode()
    assert 'id="later" href="/daily" hidden' in today
    assert "No player on the leaderboard has won it yet." in today


async def test_page_of_a_player_lists_replays(server):
    """Listed replays come newest first, with a link to older ones. Search engines don't index the page."""
    client = await server.player("Ann")
    ids = [await upload(server, client, final_score=600 + number) for number in range(22)]
    await client.set_listed(ids[21], False)
    answer = await server.ask("GET", "/players/Ann")
    page = check_page(answer)
    assert page.title == "Ann – Solitaire"
    assert page.named["robots"] == "noindex"
    links = re.findall(r'href="/replays/([^"]+)"', answer.content.decode())
    assert links == ids[20:0:-1]
    data = msgspec.json.decode(page.data)
    assert (data["username"], data["avatar_url"]) == ("Ann", None)
    older = (await server.ask("GET", f"/api/players/Ann/replays?before={data['next']}")).json
    assert [replay["id"] for replay in older["replays"]] == ids[:1]
    await client.delete_account()
    check_page(await server.ask("GET", "/players/Ann"), status=404)


async def test_player_without_listed_replays_has_no_page(server):
    """The reply is the same as for an unknown player."""
    client = await server.player("Ann")
    replay_id = await upload(server, client)
    await client.set_listed(replay_id, False)
    assert (await server.ask("GET", "/players/Ann")).status == 404
    await client.set_listed(replay_id, True)
    assert (await server.ask("GET", "/players/Ann")).status == 200
    assert (await server.ask("GET", "/players/ann")).status == 404


async def test_suspended_player_has_no_page(server):
    """The page of a replay has the player's name without a link."""
    shared = await share(server)
    assert '<a href="/players/Ann">Ann</a> won with' in (await server.ask("GET", shared)).content.decode()
    server.sql("INSERT INTO suspensions (user_id, since, was_visible) SELECT id, now(), false FROM users")
    assert (await server.ask("GET", "/players/Ann")).status == 404
    page = (await server.ask("GET", shared)).content.decode()
    assert "/players/" not in page
    assert Page(page.encode()).named["robots"] == "noindex"
    assert ">Ann won with" in page


async def test_every_page_has_the_operators_name_and_links(reactor, shared_dsn):
    """Titles, headers and footers have them, even on error pages, and always escaped."""
    settings = {
        "SOLISYNC_SITE_NAME": "Ann's <b>cards</b>",
        "SOLISYNC_SITE_LINKS": "Privacy & <i>=https://a.example/?a&b%2Cc, Contact=mailto:a@a.example,Game=/game",
    }
    truncate(shared_dsn)
    running = await start(reactor, shared_dsn, settings=settings)
    try:
        shared = await share(running)
        for path in (*STATIC, shared, DAY, "/players/Ann", f"/replays/{NOBODY}", "/nope"):
            answer = await running.ask("GET", path, {"Accept": "text/html"})
            page = Page(answer.content)
            assert page.title.endswith("Ann's <b>cards</b>")
            assert "Ann's <b>cards</b>" in page.texts
            assert "Privacy & <i>" in page.texts
            assert '<a href="https://a.example/?a&amp;b%2Cc">' in answer.content.decode()
            assert '<a href="/game">Game</a>' in answer.content.decode()
    finally:
        await running.service.stopService()


MARKUP = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "-->",
    "]]>",
    "'\"><img src=x onerror=alert(1)>",
    "</title><svg onload=alert(1)>",
    "&lt;b&gt;&amp;&#60;",
    "$main ${data} $$ $",
    "{{7*7}}",
    "\u2028\u2029\ufeff\u202e",
    "\\u003c\\",
    "\x00\x01\r\n\t",
)
hostile = texts() | st.lists(st.sampled_from(MARKUP), max_size=3).map("".join)


def replay_page(shown, *, gzip):
    """Return the reply with the page of a replay that is stored like this."""
    database = SimpleNamespace(run=lambda *_: _done(shown))
    pages = Pages(
        database=database,
        site_url="https://play.example.org",
        site_name="Cards <&> more",
        site_links=(("<Privacy>", 'https://example.org/"?a&b'),),
        public_avatars=False,
    )
    return Deferred.fromCoroutine(pages.replay(replay_id=NOBODY, if_none_match=None, gzip=gzip)).result


def rendered(shown):
    """Return the text of the page."""
    return replay_page(shown, gzip=False).body


async def _done(result):
    return result


def shared_replay(text, **fields):
    texts = dict.fromkeys(("username", "avatar_url", "deal", "draw_mode", "mode", "recorded_at"), text)
    numbers = {"time_seconds": msgspec.Raw(b"1"), "final_score": msgspec.Raw(b"1")}
    received = datetime(2026, 5, 19, tzinfo=UTC)
    shown = SharedReplay(id=NOBODY, received_at=received, listed=True, **texts | numbers | fields)
    return ReplayData(shown, VerdictAnswer("pending", *[None] * 6))


PLAIN = Page(rendered(shared_replay("ann")))


@given(hostile)
def test_no_text_becomes_markup(text):
    """Whatever a name or a field of a replay contains, the page has the same elements."""
    shown = shared_replay(text)
    content = rendered(shown)
    page = Page(content)
    assert page.elements == PLAIN.elements
    assert text in "".join(page.texts)
    assert page.inline == []
    assert msgspec.json.decode(page.data) == msgspec.json.decode(msgspec.json.encode(shown))
    assert not set("<>&") & set(page.data)
    title, description = replay_head(shown)
    assert text in title
    assert page.title == page.named["og:title"] == f"{title} – Cards <&> more"
    assert page.named["description"] == page.named["og:description"] == description


def test_scripts_load_pictures_when_they_are_seen():
    """`loading` counts only in front of `src`, and the place of a picture has its size before the picture comes."""
    scripts = [path.read_text("utf-8") for path in (ROOT / "solisync" / "static").rglob("*.js")]
    pictures = [rest for script in scripts for rest in script.split('h("img", ')[1:]]
    assert len(pictures) == 3
    for picture in pictures:
        assert re.match(r'\{\s+loading: "lazy",\s+width: "\d+",\s+height: "\d+",\s+src\b', picture)


@pytest.mark.parametrize(("length", "compressed"), [(1_000, True), (PAGE_BYTES, False)])
def test_page_is_compressed_only_up_to_page_bytes(length, compressed):
    """The reactor compresses and remembers no larger page, so its memory is bounded."""
    reply = replay_page(shared_replay("x" * length), gzip=True)
    assert ("Content-Encoding" in reply.headers) is compressed


async def test_name_full_of_markup_is_escaped(server):
    """A database that was altered by hand may have such a name; the test covers the whole service."""
    replay_id = await upload(server, await server.player("Ann"))
    plain = Page((await server.ask("GET", f"/replays/{replay_id}")).content)
    name = "</script><b a='\"&amp;$data"
    server.sql("UPDATE users SET username = %s", (name,))
    page = check_page(await server.ask("GET", f"/replays/{replay_id}"))
    assert page.elements == plain.elements
    assert page.title == f"{name} won with 650 points in 4:11, draw three – Solitaire"
    assert any(name in text for text in page.texts)
    assert msgspec.json.decode(page.data)["replay"]["username"] == name


OFF = [*STATIC, "/players/ann", "/replays/x", f"/replays/{NOBODY}", DAY, "/daily/x", "/web/style.css", "/web/x"]
OFF += ["/offline", "/web/0123456789abcdef/style.css", "/manifest.webmanifest", "/sw.js"]
SESSIONS = ["/api/session", "/api/session/refresh", "/api/session/password"]


async def test_page_paths_are_unknown_when_pages_are_off(reactor, shared_dsn):
    """Every method and body gets the reply of an unknown path."""
    settings = {"SOLISYNC_PAGES": "off", "SOLISYNC_CORS_ORIGINS": "https://game.example"}
    running = await start(reactor, shared_dsn, settings=settings)
    try:
        for path in (*OFF, *SESSIONS):
            for method, body in (("GET", None), ("HEAD", None), ("POST", b"{}"), ("DELETE", None), ("OPTIONS", None)):
                headers = {
                    "Content-Type": "application/json",
                    "Sec-Fetch-Site": "same-origin",
                    "Origin": "https://game.example",
                    "Access-Control-Request-Method": "POST",
                }
                answer = await ask(running, method, path, body, headers)
                unknown = await ask(running, method, "/nope", body, headers)
                assert answer.status == 404
                assert (answer.content, unvarying(answer)) == (unknown.content, unvarying(unknown)), (method, path)
        document = (await running.ask("GET", "/api/openapi.json")).json
        assert not [path for path in document["paths"] if path.startswith("/api/session/") or path == "/api/session"]
    finally:
        await running.service.stopService()
