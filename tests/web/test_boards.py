"""Boards of verified replays over HTTP (docs/protocol.md "Boards")."""

from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import pytest
from msgspec import Raw

from solisync.rules.boards import RANKS, BoardEntry, Place, days_of, page
from solisync.rules.challenge import daily_challenge
from solisync.storage.players import leaderboard
from solisync.storage.replays import boards, own_replays
from tests.harness.boards import NOON, SEED, check, verified
from tests.harness.players import players
from tests.harness.postgres import run_sql

CLASSIC = "/api/boards/verified"
RULESETS = ["2026-05-19", "2026-05-19", "2026-05-01"]
NIL_ID = str(UUID(int=0))
LEAST = Place(-(2**31), NOON, NIL_ID).text
DAILY = "/api/boards/daily/2026-04-26"
DEAL = f"/api/boards/deals/{SEED}/DrawOne"


async def board(server, player, path=CLASSIC, status=200):
    """Return a board as a player sees it; the player's access token is the last argument."""
    answer = await server.ask("GET", path, bearer=player[-1])
    assert answer.status == status, answer
    return answer.json


async def scores(server, player, path=CLASSIC):
    return [entry["score"] for entry in (await board(server, player, path))["entries"]]


@pytest.fixture
def three(server):
    """Return three players who have opted in, as (id, refresh token, access token)."""
    made = players(server.dsn, 3)
    for number, (user, _, _) in enumerate(made):
        run_sql(
            server.dsn, "INSERT INTO leaderboard VALUES (%s, %s, NULL, NULL, now(), true)", (user, f"Name {number}")
        )
    return made


async def test_board_has_the_best_of_each_player(server, three):
    """The best score comes first; of equal scores, the earlier replay comes first."""
    ann, bob, eve = three
    verified(server.dsn, ann[0], 300)
    best = verified(server.dsn, ann[0], 500)
    verified(server.dsn, bob[0], 700, received_at=NOON + timedelta(seconds=1))
    verified(server.dsn, eve[0], 700)
    page = await board(server, ann)
    assert [(entry["rank"], entry["display_name"], entry["score"]) for entry in page["entries"]] == [
        (1, "Name 2", 700),
        (2, "Name 1", 700),
        (3, "Name 0", 500),
    ]
    assert page["next"] is None
    assert page["entries"][2] == {
        "rank": 3,
        "display_name": "Name 0",
        "score": 500,
        "time_seconds": 95.5,
        "moves": 120,
        "undos": 0,
        "mode": "Classic",
        "draw_mode": "DrawOne",
        "deal": str(SEED),
        "replay_id": best,
        "received_at": "2026-04-26T12:00:00Z",
        "own": True,
    }


@pytest.mark.parametrize(
    "received_at", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], ids=["year 1", "year 9999"]
)
def test_replay_of_any_day_has_its_boards(received_at):
    """An import may bring replays of the first and the last possible day."""
    seed = daily_challenge(received_at.date()).seed
    assert days_of(mode="Challenge", seed=seed, received_at=received_at) == [f"daily/{received_at.date()}"]


@pytest.mark.parametrize(
    ("replay", "boards"),
    [
        ({}, {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne", DAILY, DEAL}),
        (
            {"draw_mode": "DrawThree"},
            {CLASSIC, f"{CLASSIC}?draw_mode=DrawThree", DAILY, DEAL.replace("DrawOne", "DrawThree")},
        ),
        ({"mode": "Challenge"}, {DAILY, DEAL}),
        ({"mode": "Zen"}, set()),
        ({"seed": 7}, {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne", "/api/boards/deals/7/DrawOne"}),
        ({"seed": None}, {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne"}),
        ({"received_at": NOON.replace(hour=0)}, {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne", DAILY, DEAL}),
        (
            {"received_at": NOON.replace(hour=0) - timedelta(microseconds=1)},
            {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne", DEAL},
        ),
        (
            {"received_at": NOON + timedelta(hours=23, minutes=59)},
            {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne", DAILY, DEAL},
        ),
        ({"received_at": NOON + timedelta(hours=24)}, {CLASSIC, f"{CLASSIC}?draw_mode=DrawOne", DEAL}),
        ({"status": "refuted"}, set()),
        ({"status": "undecided"}, set()),
        ({"ruleset": "2026-05-01"}, set()),
    ],
)
async def test_replay_is_on_the_boards_of_its_mode_deal_and_day(server, three, replay, boards):
    """A board is chosen by mode, draw mode, deal or upload time. The board of a day lasts 36 hours."""
    ann = three[0]
    verified(server.dsn, ann[0], 300, **replay)
    every = [
        CLASSIC,
        f"{CLASSIC}?draw_mode=DrawOne",
        f"{CLASSIC}?draw_mode=DrawThree",
        DAILY,
        "/api/boards/daily/2026-04-25",
    ]
    every += ["/api/boards/daily/2026-04-27", DEAL, DEAL.replace("DrawOne", "DrawThree"), "/api/boards/deals/7/DrawOne"]
    assert {path for path in every if await scores(server, ann, path)} == boards


async def test_board_shows_the_next_best_when_a_replay_loses_its_place(server, three):
    """Deletion, unlisting or another verdict removes a replay; listing brings it back."""
    ann = three[0]
    replays = {score: verified(server.dsn, ann[0], score) for score in (100, 200, 300, 400)}
    assert await scores(server, ann) == [400]
    assert (await server.ask("DELETE", f"/api/replays/{replays[400]}", bearer=ann[-1])).status == 200
    assert await scores(server, ann) == [300]
    for listed, expected in ((False, 200), (True, 300), (False, 200)):
        path = f"/api/replays/{replays[300]}/listed"
        assert (await server.ask("PUT", path, body={"listed": listed}, bearer=ann[-1])).status == 200
        assert await scores(server, ann, DAILY) == await scores(server, ann) == [expected]
    check(server.dsn, replays[200], 0, status="refuted")
    assert await scores(server, ann) == [100]
    check(server.dsn, replays[200], 250)
    assert await scores(server, ann, DEAL) == [250]


def test_evidence_is_ranked_as_it_is_inserted(server, three):
    """One statement inserts the rows of the player, the day and the deal; no statement updates them later."""
    replay = verified(server.dsn, three[0][0], 300)
    found = "SELECT board, ranked, cmin::text FROM board_evidence WHERE replay_id = %s AND board NOT LIKE 'classic%%'"
    boards, ranked, commands = zip(*sorted(run_sql(server.dsn, found, (replay,))), strict=True)
    assert boards == ("daily/2026-04-26", f"deal/{SEED}/DrawOne", "own")
    assert ranked == (True, True, False)
    assert len(set(commands)) == 1


async def test_boards_show_only_players_who_opted_in(server, three):
    """Opting out removes a player from all boards immediately. Opting in adds all replays verified until then."""
    ann, bob, _ = three
    verified(server.dsn, ann[0], 300)
    assert (await server.ask("DELETE", "/api/leaderboard/opt-in", bearer=ann[-1])).status == 200
    verified(server.dsn, ann[0], 400)
    verified(server.dsn, ann[0], 200, seed=7)
    assert await scores(server, bob) == await scores(server, bob, DAILY) == []
    assert (
        await server.ask("POST", "/api/leaderboard/opt-in", body={"display_name": "Ann"}, bearer=ann[-1])
    ).status == 200
    assert await scores(server, bob) == await scores(server, bob, DEAL) == [400]
    assert await scores(server, bob, "/api/boards/deals/7/DrawOne") == [200]


async def test_deleted_player_leaves_every_board(server, three):
    """No entry or evidence is left. With the deleted player's token, boards are readable for a day, without `own`."""
    ann, bob, _ = three
    for number in range(50):
        verified(server.dsn, ann[0], number, seed=number)
    verified(server.dsn, bob[0], 5)
    assert (await server.ask("DELETE", "/api/account", bearer=ann[-1])).status == 200
    page = await board(server, ann)
    assert [(entry["score"], entry["own"]) for entry in page["entries"]] == [(5, False)]
    assert run_sql(server.dsn, "SELECT DISTINCT user_id::text FROM board_evidence") == [(bob[0],)]


async def test_change_names_the_boards_on_which_the_player_has_changed(server, open_database, three):
    """Streams name the classic board, days and the leaderboard, so boards of deals are left out."""
    (ann, *_), (bob, *_), _ = three
    best, other, _ = [verified(server.dsn, user, score) for user, score in ((ann, 500), (ann, 300), (bob, 400))]
    database = open_database(size=1)
    delete, opt_out = own_replays.delete, leaderboard.opt_out
    for work, given, changed in (
        (delete, [ann, other], ()),
        (delete, [ann, best], ("daily/2026-04-26", "verified")),
        (delete, [ann, best], ()),
        (opt_out, [ann], ("leaderboard",)),
        (opt_out, [bob], ("daily/2026-04-26", "leaderboard", "verified")),
        (opt_out, [bob], ()),
    ):
        assert (await database.transact(boards.changed_by, given[0], work, *given))[1] == changed, (work, given)


def test_entries_beyond_ten_thousand_have_no_rank():
    """Storage counts the entries before the first one of a page."""
    entry = BoardEntry(RANKS - 2, "Ann", 700, Raw(b"95"), 100, 0, "Classic", "DrawOne", "1", NIL_ID, NOON, False)
    found = page([entry] * 4, 3)
    assert [each.rank for each in found.entries] == [RANKS - 1, RANKS, None]
    assert found.next is not None


async def test_pages_repeat_and_skip_nothing_while_rows_change(server):
    """Every unchanged entry is on exactly one page, and ranks continue across pages."""
    made = players(server.dsn, 57)
    for number, (user, _, _) in enumerate(made):
        run_sql(server.dsn, "INSERT INTO leaderboard VALUES (%s, 'x', NULL, NULL, now(), true)", (user,))
        verified(server.dsn, user, 100 * (number % 5), received_at=NOON + timedelta(seconds=number % 3))
    caller, seen, after, ranks = made[0], [], "", []
    while True:
        page = await board(server, caller, f"{CLASSIC}?limit=10{after}")
        seen += [entry["replay_id"] for entry in page["entries"]]
        ranks += [entry["rank"] for entry in page["entries"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
        if len(seen) == 20:  # delete the row at which the next page begins
            assert (await server.ask("DELETE", f"/api/replays/{seen.pop()}", bearer=made[0][-1])).status == 404
            run_sql(server.dsn, "DELETE FROM replays WHERE id = %s", (page["entries"][-1]["replay_id"],))
            ranks.pop()
    left = run_sql(
        server.dsn,
        "SELECT replay_id::text FROM board_evidence WHERE board = 'classic' AND ranked"
        " ORDER BY deficit, received_at, replay_id",
    )
    assert seen == [replay_id for (replay_id,) in left]
    assert ranks == [*range(1, 20), *range(20, 57)]


async def test_player_sees_the_neighbouring_entries(server):
    """The reply has up to ten neighbours on each side with ranks, or nothing for a player without an entry."""
    made = players(server.dsn, 30)
    for number, (user, _, _) in enumerate(made[:29]):
        run_sql(server.dsn, "INSERT INTO leaderboard VALUES (%s, 'x', NULL, NULL, now(), true)", (user,))
        verified(server.dsn, user, 1000 - number)
    for place, expected in ((0, range(1, 12)), (5, range(1, 17)), (15, range(6, 27)), (28, range(19, 30))):
        page = await board(server, made[place], f"{CLASSIC}?around=me")
        assert [entry["rank"] for entry in page["entries"]] == [*expected]
        assert [entry["rank"] for entry in page["entries"] if entry["own"]] == [place + 1]
        assert page["next"] is None
    assert await board(server, made[29], f"{CLASSIC}?around=me") == {"entries": [], "next": None}


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        (f"{CLASSIC}?draw_mode=DrawTwo", 400, "draw_mode must be one of DrawOne, DrawThree"),
        (f"{CLASSIC}?limit=101", 400, "limit must be a whole number from 1 to 100"),
        (f"{CLASSIC}?after={LEAST}", 400, "after must be what an earlier page gave as next"),
        (f"{CLASSIC}?around=you", 400, "around must be me"),
        (f"{CLASSIC}?around=me&limit=5", 400, "around must be me, without limit and after"),
        ("/api/boards/daily/2026-02-30", 404, "no such day"),
        ("/api/boards/daily/2026-4-26", 404, "no such day"),
        ("/api/boards/daily/9999-12-31", 404, "no such day"),
        ("/api/boards/daily/x", 404, "no such day"),
        ("/api/boards/deals/18446744073709551616/DrawOne", 404, "not found"),
        ("/api/boards/deals/01/DrawOne", 404, "not found"),
        ("/api/boards/deals/-1/DrawOne", 404, "not found"),
        ("/api/boards/deals/1/DrawTwo", 404, "not found"),
    ],
)
async def test_wrong_query_is_a_400_and_impossible_board_a_404(server, three, path, status, error):
    """The 400 gives the reason."""
    assert await board(server, three[0], path, status) == {"error": error}


async def test_leaderboard_shows_whether_the_best_score_is_verified(server, three):
    """A verified Classic replay of the player proves the score, listed or not."""
    ann, bob, eve = three
    for (user, _, _), score in zip(three, (500, 600, 700), strict=True):
        run_sql(server.dsn, "UPDATE leaderboard SET best_score = %s WHERE user_id = %s", (score, user))
    replay = verified(server.dsn, ann[0], 500)
    run_sql(server.dsn, "UPDATE replays SET unlisted = true WHERE id = %s", (replay,))
    verified(server.dsn, bob[0], 599)
    verified(server.dsn, bob[0], 600, ruleset="2026-05-01")
    verified(server.dsn, eve[0], 700, mode="Challenge")
    entries = (await server.ask("GET", "/api/leaderboard", bearer=ann[-1])).json
    assert [(entry["best_score"], entry["verified"]) for entry in entries] == [(700, False), (600, False), (500, True)]


def test_ranked_rows_are_right_after_random_changes(server, full):
    """Replays, verdicts and opt-ins change in random order; the rows are the best of players who opted in."""
    random = Random(15)
    users = [user for user, _, _ in players(server.dsn, 4)]
    sql = lambda statement, *values: run_sql(server.dsn, statement, values)  # noqa: E731
    for _ in range(600 if full else 120):
        user, chance = random.choice(users), random.random()
        known = [replay for (replay,) in sql("SELECT id FROM replays WHERE user_id = %s", user)]
        if chance < 0.4 or not known:
            verified(
                server.dsn,
                user,
                random.randrange(5),
                seed=random.choice([SEED, 7]),
                mode=random.choice(["Classic", "Zen", "Challenge"]),
                ruleset=random.choice(RULESETS),
            )
        elif chance < 0.5:
            sql("DELETE FROM replays WHERE id = %s", random.choice(known))
        elif chance < 0.7:
            sql(
                "UPDATE replays SET unlisted = CASE WHEN unlisted IS NULL THEN true END WHERE id = %s",
                random.choice(known),
            )
        elif chance < 0.85:
            status, ruleset = random.choice(["verified", "refuted"]), random.choice(RULESETS)
            check(server.dsn, random.choice(known), random.randrange(5), status=status, ruleset=ruleset)
        else:
            sql(
                "INSERT INTO leaderboard VALUES (%s, 'x', NULL, NULL, now(), %s) ON CONFLICT (user_id) DO UPDATE SET"
                " visible = excluded.visible",
                user,
                random.random() < 0.5,
            )
        expected = sql(
            "SELECT DISTINCT ON (user_id, board) board, user_id, replays.id FROM replays"
            " JOIN verdicts ON replay_id = id CROSS JOIN LATERAL unnest(boards || CASE WHEN mode = 'Classic'"
            " THEN ARRAY['classic', 'classic/' || draw_mode] END || CASE WHEN mode <> 'Zen'"
            " THEN ARRAY['deal/' || seed || '/' || draw_mode] END) AS board JOIN leaderboard USING (user_id)"
            " WHERE visible AND unlisted IS NULL AND ruleset = '2026-05-19'"
            " ORDER BY user_id, board, score DESC, replays.received_at, replays.id"
        )
        ranked = sql("SELECT board, user_id, replay_id FROM board_evidence WHERE ranked")
        assert sorted(map(str, ranked)) == sorted(map(str, expected))
