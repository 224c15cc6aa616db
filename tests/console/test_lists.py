"""Pages of the console's lists: docs/console.md "Lists"."""

from dataclasses import replace

import pytest
import pytest_twisted

from solisync.storage.players import history, player_lists
from solisync.storage.replays import listed_replays
from solisync.web.console import players

HAPPENED = """
    INSERT INTO account_history (happened_at, user_id, event, client, times)
    SELECT now() - n * interval '1 s', id, event, '203.0.113.7', 1
    FROM users, generate_series(1, %s) AS n, unnest(ARRAY['register', 'opted in', 'avatar changed']) AS event
    ORDER BY n DESC, username DESC
"""
FILLED = """
    INSERT INTO users (id, username, password_hash, created_at, avatar_extension)
    SELECT gen_random_uuid(), CASE n % 2 WHEN 0 THEN 'p' ELSE 'P' END || n, 'x', now(), 'png'
    FROM generate_series(10, 16) AS n;
    UPDATE users SET guest = true;
    INSERT INTO refresh_tokens (jti, user_id, expires_at, used_at)
    SELECT gen_random_uuid(), id, now() + n * interval '1 h', now() + (n - 9) * interval '1 h'
    FROM users, generate_series(1, 2) AS n
    WHERE username IN ('P11', 'p12', 'P13');
    INSERT INTO leaderboard (user_id, display_name, visible, recorded_at)
    SELECT id, 'Queen ' || username, true, now() FROM users;
    INSERT INTO replays (id, user_id, received_at, body, size, mode, draw_mode, time_seconds, final_score, recorded_at)
    SELECT gen_random_uuid(), id, now() - n * interval '1 s', '', 0, 'Zen', 'DrawOne', '1', '1', '2026-01-01'
    FROM users, generate_series(1, 7) AS n WHERE username = 'p10';
    INSERT INTO suspensions SELECT id, now() - row_number() OVER () * interval '1 s', NULL, NULL, true FROM users;
    INSERT INTO profile_locks SELECT id, now() FROM users;
    INSERT INTO admin_acts (actor_kind, actor, act, target) SELECT 'shell', 'bob', 'lock', 'player'
    FROM generate_series(1, 7);
    INSERT INTO admin_notes (act_id, user_id) SELECT admin_acts.id, users.id FROM admin_acts, users
    WHERE username = 'p10'
"""


@pytest_twisted.async_fixture
async def player(console, server):
    """Seven rows of each kind, and an admin who has signed in; return the id of the player who has most of them."""
    await console.sign_in("root")
    server.sql(FILLED)
    server.sql(HAPPENED, (1,))
    ((user_id,),) = server.sql("SELECT id::text FROM users WHERE username = 'p10'")
    return user_id


LISTS = [
    ("/players?q=p", "players", "after"),
    ("/players?q=1&where=part", "players", "after"),
    ("/players?q=queen&where=display_name", "players", "after"),
    ("/players?q=203.0.113.7&where=address", "visitors", "after"),
    ("/players?", "players", "after"),
    ("/players?sort=last_used", "players", "after"),
    ("/players?sort=bytes&state=guests", "players", "after"),
    ("/players?sort=last_used&state=suspended", "players", "after"),
    ("/players?state=locked", "players", "after"),
    ("/players/{id}/replays?", "replays", "before"),
    ("/players/{id}/replays?verdict=pending", "replays", "before"),
    ("/players/{id}/history?", "history", "before"),
    ("/replays?", "replays", "before"),
    ("/review?kind=names", "profiles", "before"),
    ("/review?kind=avatars", "profiles", "before"),
    ("/review?kind=players", "players", "before"),
    ("/review?kind=replays", "replays", "before"),
    ("/acts?", "acts", "before"),
    ("/acts?player={id}", "acts", "before"),
]


@pytest.mark.parametrize(("path", "name", "cursor"), LISTS)
async def test_pages_add_up_to_the_list(console, player, path, name, cursor):
    """Each row is on one page, in order, and the last page has no cursor. Invalid cursors and sizes return 400."""
    path = path.format(id=player)
    whole = await console.get(path)
    assert whole["next"] is None
    rows, page = [], {"next": ""}
    while page["next"] is not None:
        place = f"&{cursor}={page['next']}" if page["next"] else ""
        page = await console.get(f"{path}&limit=3{place}")
        assert 0 < len(page[name]) <= 3
        rows += page[name]
    assert len(rows) >= 7
    assert rows == whole[name]
    for query in ("limit=0", "limit=101", "limit=x", "limit=1&limit=2", f"{cursor}=%00", f"{cursor}=1&{cursor}=1"):
        assert (await console.ask("GET", f"{path}&{query}")).status == 400, query


async def test_players_are_sorted(console, server, player):
    """The greatest value comes first, players without one last; `state` keeps the order, and q excludes both."""
    server.sql(
        "UPDATE users SET created_at = created_at + n * interval '1 s' FROM (SELECT id AS who, row_number() OVER"
        " (ORDER BY username) AS n FROM users) AS numbered WHERE id = who"
    )
    server.sql(
        "INSERT INTO replay_usage (user_id, used_bytes, replays) SELECT id, 1000, 2 FROM users WHERE username = 'p12'"
    )
    server.sql("DELETE FROM suspensions WHERE user_id = (SELECT id FROM users WHERE username = 'P13')")
    keys = {
        "newest": lambda each: each["created_at"],
        "last_used": lambda each: each["used_at"] or "",
        "replays": lambda each: each["replays"],
        "bytes": lambda each: each["bytes"],
    }
    for order, key in keys.items():
        for state, count in (("", 7), ("&state=suspended", 6), ("&state=guests", 7)):
            if not state and order in ("replays", "bytes"):
                count = 2
            found = (await console.get(f"/players?sort={order}{state}"))["players"]
            values = [key(each) for each in found]
            assert (values, len(values)) == (sorted(values, reverse=True), count), (order, state)
            assert len(set(values)) > 1
    assert (await console.get("/players"))["players"] == (await console.get("/players?sort=newest"))["players"]
    for query in ("q=p&sort=bytes", "q=p&state=locked", "sort=fun", "after=1", "after=-1.x", "after=-2." + player):
        assert (await console.ask("GET", f"/players?{query}")).status == 400, query


@pytest.mark.parametrize("order", ["replays", "bytes"])
async def test_list_by_replays_has_one_page(console, server, player, order):
    """The page has up to 100 players by default, or as many as `limit`."""
    server.sql(
        "INSERT INTO users (id, username, password_hash, created_at)"
        " SELECT gen_random_uuid(), 'many' || n, 'x', now() FROM generate_series(11, 120) AS n"
    )
    server.sql(
        "INSERT INTO replay_usage (user_id, used_bytes, replays)"
        " SELECT id, 4096 * substr(username, 5)::int, substr(username, 5)::int FROM users WHERE username LIKE 'many%'"
    )
    page = await console.get(f"/players?sort={order}")
    assert [each["username"] for each in page["players"]] == [f"many{n}" for n in range(120, 20, -1)]
    assert page["next"] is None
    assert len((await console.get(f"/players?sort={order}&limit=7"))["players"]) == 7


@pytest.mark.parametrize("order", ["newest", "last_used", "replays", "bytes"])
async def test_list_of_a_state_has_the_2000_latest_players(console, server, player, order):
    """The list says that more players are in the state."""
    server.sql(
        "INSERT INTO users (id, username, password_hash, created_at, guest)"
        " SELECT gen_random_uuid(), 'g' || n, 'x', now() - n * interval '1 s', true FROM generate_series(1, %s) AS n",
        (player_lists.MEMBERS - 7,),
    )
    first = f"/players?state=guests&sort={order}&limit=100"
    assert (await console.get(first))["more"] is False
    server.sql(
        "INSERT INTO users (id, username, password_hash, created_at, guest)"
        " SELECT gen_random_uuid(), 'old' || n, 'x', '2020-01-01', true FROM generate_series(1, 9) AS n"
    )
    names, page = [], {"next": ""}
    while page["next"] is not None:
        page = await console.get(first + (page["next"] and f"&after={page['next']}"))
        assert page["more"] is True
        names += [each["username"] for each in page["players"]]
    assert len(names) == len(set(names)) == player_lists.MEMBERS + 1
    assert sum(name.startswith("old") for name in names) == 1


async def test_history_pages_keep_events_whose_times_are_out_of_order(console, server, player):
    """An event may be stored after later ones. No page skips or repeats a line."""
    server.sql("UPDATE account_history SET happened_at = now() + (id % 3) * interval '1 minute'")
    server.sql(HAPPENED, (4,))
    rows, place = [], ""
    while place is not None:
        page = await console.get(f"/players/{player}/history?limit=2{place and '&before=' + place}")
        rows += page["history"]
        place = page["next"]
    assert len(rows) == 7 + 3 + 3 * 4
    assert sum(row["by"] is not None for row in rows) == 7


async def test_player_with_many_changes_is_listed_once(console, server, player):
    """The line has the time of the latest change."""
    server.sql(HAPPENED, (3,))
    first = await console.get("/review?limit=4")
    rest = await console.get(f"/review?limit=4&before={first['next']}")
    names = [each["username"] for each in first["profiles"] + rest["profiles"]]
    assert len(names) == len(set(names)) == 7
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("module", "bound", "path", "name"),
    [
        (listed_replays, "AMONG", "/replays?verdict=verified", "replays"),
        (history, "CHANGES", "/review?kind=names", "profiles"),
    ],
)
async def test_search_continues_on_the_next_page(console, server, player, monkeypatch, module, bound, path, name):
    """A page reads a bounded number of rows. It has a cursor even if it found nothing."""
    server.sql("DELETE FROM leaderboard")
    for key, value in [*vars(module).items()]:
        query = getattr(value, "statement", value)
        if not hasattr(query, "sql"):
            continue
        text = query.sql.replace(f"LIMIT {getattr(module, bound)}", "LIMIT 3")
        text = text.replace(f"OFFSET {getattr(module, bound) - 1}", "OFFSET 2")
        if text != query.sql:
            owner, attribute = (module, key) if value is query else (value, "statement")
            monkeypatch.setattr(owner, attribute, replace(query, sql=text))
    pages, place = 0, ""
    while place is not None:
        page = await console.get(f"{path}&limit=2{place and '&before=' + place}")
        assert page[name] == []
        place, pages = page["next"], pages + 1
    assert pages == 3


async def test_timed_out_search_for_a_part_continues_on_the_next_page(console, player, monkeypatch):
    monkeypatch.setattr(players, "PART_SECONDS", -1.0)
    for where in ("part", "display_name"):
        first = await console.get(f"/players?q=1&where={where}")
        assert first["next"] is not None
        rest = await console.get(f"/players?q=1&where={where}&after={first['next']}")
        assert (len(first["players"]), rest["players"], rest["next"]) == (7, [], None)
