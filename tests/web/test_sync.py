"""Cloud saves over HTTP (docs/protocol.md "Progress")."""

import json
import random
from uuid import UUID

import pytest

from solisync.rules.sync import PAYLOAD_MAX_BYTES
from tests.harness.concurrency import gather
from tests.harness.payloads import NIL, U32, U64, encode, progress_of
from tests.harness.players import players
from tests.harness.strategies import examples, payloads
from tests.web.calls import opt_in, push


async def pull(server, client):
    """Pull and return the merged payload."""
    answer = await server.ask("GET", "/api/sync/pull", bearer=client.tokens.access_token)
    assert answer.status == 200
    return answer.json["merged"]


async def test_first_pull_returns_the_defaults(server):
    """Counts are zero, and times are earlier than any push. A pull stores nothing."""
    client = await server.player("ann")
    me = await client.me()
    answer = await server.ask("GET", "/api/sync/pull", bearer=client.tokens.access_token)
    merged = answer.json["merged"]
    assert answer.json["conflicts"] == []
    assert merged["user_id"] == me.id
    assert merged["stats"]["fastest_win_seconds"] == U64
    assert merged["stats"]["last_modified"] == merged["progress"]["last_modified"] == "1970-01-01T00:00:00Z"
    assert merged["progress"]["unlocked_card_backs"] == [0]
    assert merged["last_modified"] == answer.json["server_time"]
    assert server.sql("SELECT count(*) FROM sync_states") == [(0,)]


async def test_pull_returns_the_result_of_the_last_push(server):
    client = await server.player("ann")
    answer = await push(server, client, progress_of(stats__games_won=3, stats__games_played=5, zz_new={"a": [1.50]}))
    assert answer.status == 200
    assert await pull(server, client) == answer.json["merged"]
    assert answer.json["merged"]["zz_new"] == {"a": [1.50]}
    assert answer.json["merged"]["stats"]["games_lost"] == 2


async def test_payload_of_a_rust_client_is_accepted(server):
    """The payload has the nil id, nanoseconds, offsets, absent fields and 2^64-1; the client can decode the reply."""
    client = await server.player("ann")
    body = b"""{"user_id":"00000000-0000-0000-0000-000000000000","stats":{"games_played":4294967295,
    "games_won":4294967295,"games_lost":0,"win_streak_current":7,"win_streak_best":9,"avg_time_seconds":18446744073709551615,
    "fastest_win_seconds":18446744073709551615,"lifetime_score":18446744073709551615,"best_single_score":4294967295,
    "draw_one_wins":1,"draw_three_wins":0,"last_modified":"2026-04-26T10:11:12.123456789Z"},"achievements":[
    {"id":"first_win","unlocked":true,"unlock_date":"2026-04-26T12:11:12.999999999+02:00","reward_granted":false}],
    "progress":{"total_xp":18446744073709551615,"level":3,"daily_challenge_last_completed":null,
    "daily_challenge_streak":0,"weekly_goal_progress":{"\\ud83d\\ude00":4294967295},"unlocked_card_backs":[0,4294967295],
    "unlocked_backgrounds":[],"last_modified":"2026-04-26T12:11:12.5+02:00"},
    "last_modified":"2026-04-26T10:11:12.000000001Z"}"""
    answer = await push(server, client, body)
    assert answer.status == 200, answer
    merged = answer.json["merged"]
    assert b"18446744073709551615" in answer.content
    assert merged["user_id"] == NIL
    assert merged["stats"]["last_modified"] == "2026-04-26T10:11:12.123457Z"
    assert merged["achievements"][0]["unlock_date"] == "2026-04-26T10:11:13Z"
    assert merged["progress"]["level"] == U32
    assert merged["progress"]["daily_challenge_history"] == []
    for name, value in [*merged["stats"].items(), *merged["progress"].items()]:
        if type(value) is int:
            wide = name in ("avg_time_seconds", "lifetime_score", "total_xp") or name.endswith("fastest_win_seconds")
            assert 0 <= value <= (U64 if wide else U32), name


async def test_id_returns_in_the_pushed_form(server):
    """The id is nil or the player's, in any spelling; another player's is refused."""
    client = await server.player("ann")
    mine = (await client.me()).id
    other = (await (await server.player("bob")).me()).id
    for spelled in (mine, mine.upper(), f"{{{mine}}}", f"urn:uuid:{mine}", UUID(mine).hex):
        answer = await push(server, client, progress_of(spelled))
        assert answer.json["merged"]["user_id"] == mine
    await push(server, client, progress_of(NIL))
    assert (await pull(server, client))["user_id"] == NIL
    for wrong in (other, "", "me", "\0", NIL[:-1] + "1"):
        answer = await push(server, client, progress_of(wrong))
        assert (answer.status, answer.json) == (400, {"error": "user_id mismatch"})


async def test_second_device_merges(server):
    """The second push is merged with the stored progress, and the reply lists conflicts."""
    phone = await server.player("ann")
    tablet = server.client()
    await tablet.login("ann", "canary password")
    await push(
        server, phone, progress_of(stats__games_won=50, stats__win_streak_current=0, stats__fastest_win_seconds=95)
    )
    answer = await push(
        server, tablet, progress_of(stats__games_won=3, stats__win_streak_current=3, stats__fastest_win_seconds=80)
    )
    stats = answer.json["merged"]["stats"]
    assert (stats["games_won"], stats["fastest_win_seconds"], stats["win_streak_current"]) == (50, 80, 3)
    assert answer.json["conflicts"] == [{"field": "win_streak_current", "local_value": "3", "remote_value": "0"}]


GRANTED = {"reward_granted": True}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"stats__games_won": -1}, "$.stats.games_won"),
        ({"stats__games_won": U32 + 1}, "$.stats.games_won"),
        ({"stats__games_won": 1.5}, "$.stats.games_won"),
        ({"stats__games_won": float(2**32)}, "$.stats.games_won"),
        ({"stats__games_won": -1.0}, "$.stats.games_won"),
        ({"stats__games_won": 1e300}, "$.stats.games_won"),
        ({"stats__fastest_win_seconds": 18446744073710000001}, "$.stats"),
        ({"stats__avg_time_seconds": 18446744073709552000}, "$.stats"),
        ({"stats__fastest_win_seconds": 2e19}, "$.stats"),
        ({"progress__unlocked_card_backs": [0.5]}, "$.progress.unlocked_card_backs[0]"),
        ({"stats__games_won": "1"}, "$.stats.games_won"),
        ({"stats__games_won": None}, "$.stats.games_won"),
        ({"stats__games_won": True}, "$.stats.games_won"),
        ({"stats__lifetime_score": U64 + 1}, "$.stats"),
        ({"stats__last_modified": "yesterday"}, "$.stats.last_modified"),
        ({"stats__last_modified": "0001-01-01T00:00:00+02:00"}, "$.stats"),
        ({"last_modified": "2026-11-20T00:00:00+0100"}, "$.last_modified"),
        ({"stats__last_modified": "2026-11-20T00:00:00.5-0130"}, "$.stats.last_modified"),
        ({"progress__last_modified": "2026-11-20T12:59:60Z"}, "$.progress.last_modified"),
        (
            {"achievements": [{"id": "a", "unlocked": 1 > 0, "unlock_date": "2026-11-20T00:00:00+0000", **GRANTED}]},
            "$.achievements[0].unlock_date",
        ),
        ({"progress__daily_challenge_history": ["2026-02-30"]}, "$.progress.daily_challenge_history[0]"),
        ({"progress__weekly_goal_progress": {"x" * 65: 1}}, "$.progress.weekly_goal_progress"),
        ({"progress__weekly_goal_progress": {"": 1}}, "$.progress.weekly_goal_progress"),
        ({"progress__unlocked_card_backs": [U32 + 1]}, "$.progress.unlocked_card_backs[0]"),
        (
            {"achievements": [{"id": "", "unlocked": True, "unlock_date": None, "reward_granted": True}]},
            "$.achievements[0].id",
        ),
        ({"achievements": {}}, "$.achievements"),
        ({"stats": None}, "$.stats"),
    ],
)
async def test_error_names_the_path_of_a_wrong_field(server, change, path):
    """A field that is out of range, of a wrong type or missing returns 400, and nothing is stored."""
    client = await server.player("ann")
    answer = await push(server, client, progress_of(**change))
    assert answer.status == 400
    assert path in answer.json["error"]
    assert server.sql("SELECT count(*) FROM sync_states") == [(0,)]


async def test_only_required_fields_are_required(server):
    client = await server.player("ann")
    optional = {
        "daily_challenge_longest_streak",
        "daily_challenge_history",
        "daily_won_later",
        "weekly_goal_week_iso",
        "challenge_index",
        *(
            f"{mode}_{best}"
            for mode in ("classic", "zen", "challenge")
            for best in ("best_score", "fastest_win_seconds")
        ),
    }
    for part in (None, "stats", "progress"):
        for name in progress_of()[part] if part else progress_of():
            payload = progress_of()
            del (payload[part] if part else payload)[name]
            answer = await push(server, client, payload)
            assert answer.status == (200 if name in optional else 400), name
            assert answer.status == 200 or f"`{name}`" in answer.json["error"]


async def test_too_large_result_is_refused_and_not_stored(server):
    """Two halves fit alone, but not together: the service returns 400, and keeps the first half."""
    client = await server.player("ann")
    half = "x" * (PAYLOAD_MAX_BYTES * 6 // 10)
    first = await push(server, client, progress_of(zz_a=half))
    assert first.status == 200
    answer = await push(server, client, progress_of(zz_b=half))
    assert (answer.status, answer.json) == (400, {"error": "sync payload too large"})
    assert await pull(server, client) == first.json["merged"]


NEVER_SPELLINGS = [
    b"18446744073709552000",
    b"1.8446744073709552e19",
    b"18446744073709552000.0",
    b"18446744073709551616",
    b"18446744073709000000",
    b"18446744073710000000",
    b"null",
]


@pytest.mark.parametrize("never", NEVER_SPELLINGS)
async def test_never_may_be_spelled_as_a_double(server, never):
    """A number near 2^64-1 and JavaScript's null mean never: 2^64-1, or 0 in the times of the modes."""
    client = await server.player("ann")
    mine = progress_of(
        stats__classic_fastest_win_seconds=U64, stats__zen_fastest_win_seconds=U64, stats__zen_best_score=7
    )
    answer = await push(server, client, encode(mine).replace(b"18446744073709551615", never))
    assert answer.status == 200, answer
    stats = answer.json["merged"]["stats"]
    assert (stats["fastest_win_seconds"], stats["zen_best_score"]) == (U64, 7)
    assert (stats["classic_fastest_win_seconds"], stats["zen_fastest_win_seconds"]) == (0, 0)
    assert b":18446744073709551615," in answer.content


@pytest.mark.parametrize("number", [b"18446744073710000001", b"1.9e19"])
async def test_time_beyond_never_is_refused(server, number):
    """A greater number can't be a rounded 2^64-1."""
    client = await server.player("ann")
    body = encode(progress_of()).replace(b"18446744073709551615", number)
    assert (await push(server, client, body)).status == 400


async def test_streak_of_a_single_device_falls_when_a_game_is_lost(server):
    """A device pulls, wins twice and loses. It gets its streak back each time, without a conflict."""
    client = await server.player("ann")
    await pull(server, client)
    for won, played, streak in [(1, 1, 1), (2, 2, 2), (2, 3, 0), (3, 4, 1)]:
        mine = progress_of(
            stats__games_won=won, stats__games_played=played, stats__win_streak_current=streak, stats__win_streak_best=2
        )
        answer = await push(server, client, mine)
        assert (answer.json["merged"]["stats"]["win_streak_current"], answer.json["conflicts"]) == (streak, [])


async def test_push_ignores_days_of_the_future(server):
    """A clock that is years ahead neither fails the push nor leaves a date in the progress."""
    client = await server.player("ann")
    mine = progress_of(
        progress__daily_challenge_last_completed="2099-01-01",
        progress__daily_challenge_streak=4,
        progress__daily_challenge_history=["2026-01-01", "2099-01-01"],
        progress__weekly_goal_week_iso="2099-W01",
    )
    answer = await push(server, client, mine)
    progress = answer.json["merged"]["progress"]
    assert answer.status == 200, answer
    assert progress["daily_challenge_last_completed"] is progress["weekly_goal_week_iso"] is None
    assert (progress["daily_challenge_streak"], progress["daily_challenge_history"]) == (0, ["2026-01-01"])


def as_doubles(value):
    match value:
        case dict():
            return {name: as_doubles(each) for name, each in value.items()}
        case list():
            return [as_doubles(each) for each in value]
        case int():
            return float(value)
    return value


async def test_counters_may_be_spelled_as_doubles(server):
    """Whole numbers with a point or an exponent are integers. Unknown fields keep their spelling."""
    client = await server.player("ann")
    whole = progress_of(
        stats__games_played=95,
        stats__lifetime_score=1000,
        progress__unlocked_card_backs=[0, 3],
        progress__weekly_goal_progress={"1.0": 2},
        progress__weekly_goal_week_iso="2.0",
    )
    expected = (await push(server, client, whole)).json["merged"]
    server.sql("DELETE FROM sync_states")
    answer = await push(server, client, {**as_doubles(whole), "zz": [1.0, 1e3]})
    assert answer.status == 200, answer
    assert b'"zz":[1.0, 1000.0]' in answer.content
    merged = answer.json["merged"]
    for part in ("stats", "progress"):
        assert encode(merged[part]) == encode(expected[part])  # as text, because 95 differs from 95.0


async def test_doubles_and_half_surrogate_pairs_may_be_in_one_document(server):
    """JavaScript writes both: numbers as doubles, and texts as UTF-16 that may have been cut within a pair."""
    client = await server.player("ann")
    halves = r'["\ud800","\u0000","\\ud800"]'
    pushed = as_doubles(progress_of(stats__games_played=95, zz=json.loads(halves)))
    pushed["stats"] |= {"fastest_win_seconds": None, "cut": "\ud83d"}
    answer = await push(server, client, json.dumps(pushed, separators=(",", ":")).encode())
    assert answer.status == 200, answer
    for field in ('"games_played":95,', f'"fastest_win_seconds":{U64},', r'"cut":"\ud83d"', f'"zz":{halves}'):
        assert field.encode() in answer.content


async def test_longest_names_may_be_spelled_as_pairs_beside_half_a_surrogate_pair(server):
    """A pair is one of the 64 characters that the id of an achievement and the name of a goal may have."""
    client = await server.player("ann")
    name = "😀" * 64
    record = {"id": name, "unlocked": False, "unlock_date": None, **GRANTED}
    pushed = progress_of(achievements=[record], progress__weekly_goal_progress={name: 1}, zz="\ud83d")
    answer = await push(server, client, pushed)
    assert answer.status == 200, answer
    assert json.loads(answer.content)["merged"]["achievements"] == [record]


@pytest.mark.parametrize("field", ["last_modified", "stats.last_modified", "achievements[0].unlock_date"])
async def test_leap_second_is_refused(server, field):
    """A time with second 60 returns 400 with the field's name, even if other numbers are doubles."""
    client = await server.player("ann")
    record = {"id": "first_win", "unlocked": True, "unlock_date": "2026-12-31T23:59:59Z", **GRANTED}
    pushed = progress_of(achievements=[record], zz={"last_modified": "2026-12-31T23:59:60Z"})
    assert (await push(server, client, pushed)).status == 200
    wrong = progress_of(achievements=[record])
    parts = {"last_modified": wrong, "stats.last_modified": wrong["stats"], "achievements[0].unlock_date": record}
    parts[field][field.rpartition(".")[2]] = "2026-12-31T23:59:60Z"
    for body in (wrong, {**wrong, "stats": as_doubles(wrong["stats"])}):
        answer = await push(server, client, body)
        assert (answer.status, answer.headers["error-code"]) == (400, "bad_field")
        assert answer.json["error"].endswith(f"`$.{field}`")


async def test_text_that_looks_like_a_time_may_have_any_spelling(server):
    """Fields for times need a colon in the offset; other fields don't. An escaped wrong time is refused too."""
    client = await server.player("ann")
    texts = progress_of(zz="2026-11-20T00:00:00+0100", progress__weekly_goal_progress={"a:00:00+0100": 1})
    assert (await push(server, client, texts)).status == 200
    hidden = encode(progress_of(last_modified="2026-11-20T00:00:00+0100")).replace(b"+0100", rb"+01\u00300")
    assert (await push(server, client, hidden)).status == 400


HALVES = rb"""{"zz": "half \ud800 of \uDFFF a pair, \ud83d\ude00, \\ud800 \u0000 0000", "zz_\ud83d\ude00": "\udc00", """


async def test_half_a_surrogate_pair_in_an_unknown_field_is_kept_as_its_escape(server):
    """Pull returns the field byte for byte, wherever it is, even after another device's push."""
    client = await server.player("ann")
    record = {"id": "\U0001f600", "unlocked": True, "unlock_date": None, "reward_granted": False}
    payload = progress_of(achievements=[record], progress__weekly_goal_progress={"\U0001f600\0": 1})
    body = encode(payload).replace(b'"stats": {', b'"stats": ' + HALVES).replace(b'{"id"', HALVES + b'"id"')
    body = HALVES + body.replace(b'"progress": {', b'"progress": ' + HALVES)[1:]
    assert body.count(rb"half \ud800 of") == 4
    answer = await push(server, client, body)
    assert answer.status == 200, answer
    for pushed in (body, encode(payload), body):
        assert (await push(server, client, pushed)).status == 200
        pulled = await server.ask("GET", "/api/sync/pull", bearer=client.tokens.access_token)
        for field in HALVES[1:-2].split(b', "'):
            name, _, value = field.strip(b'"').partition(b'": ')
            assert pulled.content.count(b'":' + value) == 4, name
    opted_in = await opt_in(server, client, "Ann")
    assert opted_in.status == 200  # opting in reads the stored progress
    merged = (await client.pull()).merged
    assert [record.id for record in merged.achievements] == ["\U0001f600"]
    assert merged.progress.weekly_goal_progress == {"\U0001f600\0": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"achievements": [{"id": "\ud800", "unlocked": True, "unlock_date": None, "reward_granted": True}]},
        {"progress__weekly_goal_progress": {"\ud800": 1}},
        {"progress__weekly_goal_week_iso": "2026-W17\udfff"},
        {"stats__\ud800": 1},
        {"\udfff": 1},
    ],
    ids=["id", "goal", "week", "name in stats", "name"],
)
async def test_half_a_surrogate_pair_in_a_known_field_is_refused(server, change):
    """A name with one returns 400 too."""
    client = await server.player("ann")
    answer = await push(server, client, progress_of(zz="\ud83d\ude00 \ud800", **change))
    assert answer.status == 400
    assert answer.json["error"].startswith("request body")


async def test_merge_beyond_a_bound_is_refused_and_not_stored(server):
    """Two halves keep the bounds alone, but not together: the 400 names the bound."""
    client = await server.player("ann")
    first = await push(server, client, progress_of(progress__unlocked_card_backs=[*range(600)]))
    assert first.status == 200
    answer = await push(server, client, progress_of(progress__unlocked_card_backs=[*range(600, 1_200)]))
    assert answer.status == 400
    assert answer.json == {"error": "sync payload may have at most 1,000 unlocked card backs"}
    assert await pull(server, client) == first.json["merged"]


async def test_progress_beyond_the_bounds_can_still_be_pushed(server):
    """Progress from before the bounds stays and can be pulled and pushed, but nothing is added to it."""
    client = await server.player("ann")
    merged = (await push(server, client, progress_of())).json["merged"]
    merged["progress"]["unlocked_card_backs"] = [*range(1_500)]
    server.sql("UPDATE sync_states SET payload = %s", (encode(merged).decode(),))
    merged = await pull(server, client)
    merged["stats"]["games_won"] = merged["stats"]["games_played"] = 7
    answer = await push(server, client, merged)
    assert answer.status == 200
    assert answer.json["merged"]["stats"]["games_won"] == 7
    assert answer.json["merged"]["progress"]["unlocked_card_backs"] == [*range(1_500)]
    assert (await push(server, client, progress_of(progress__unlocked_card_backs=[1_500]))).status == 400


async def test_any_legal_payload_can_be_stored(server, full):
    """Hypothesis makes payloads: a push, a pull and a second push return 200 and the same progress."""
    client = await server.player("ann")
    for payload in examples(payloads, 150 if full else 15):
        server.sql("DELETE FROM sync_states")
        answer = await push(server, client, payload)
        assert answer.status == 200, answer
        merged = await pull(server, client)
        assert merged == answer.json["merged"]
        again = (await push(server, client, merged)).json["merged"]
        for part in (merged, again):
            part["last_modified"] = part["stats"]["last_modified"] = part["progress"]["last_modified"] = None
        assert again == merged


@pytest.mark.parametrize("has_row", [False, True], ids=["the first push", "later pushes"])
async def test_simultaneous_pushes_of_one_player_are_all_kept(nodes, has_row):
    """Two processes get 200 pushes together, and the final state has every acknowledged value."""
    client = await nodes[0].player("ann")
    if has_row:
        await push(nodes[0], client, progress_of())

    async def send(number):
        payload = progress_of(
            progress__unlocked_card_backs=[number],
            progress__weekly_goal_progress={f"goal {number}": number},
            achievements=[{"id": f"a{number}", "unlocked": True, "unlock_date": None, "reward_granted": False}],
        )
        answer = await push(nodes[number % 2], client, payload)
        return number if answer.status == 200 else None

    acknowledged = {number for number in await gather(200, send, range(200)) if number is not None}
    merged = await pull(nodes[1], client)
    assert len(acknowledged) == 200
    assert acknowledged <= set(merged["progress"]["unlocked_card_backs"])
    assert {f"a{number}" for number in acknowledged} == {record["id"] for record in merged["achievements"]}
    assert set(merged["progress"]["weekly_goal_progress"]) == {f"goal {number}" for number in acknowledged}


async def test_pushes_of_many_players_do_not_deadlock(nodes, no_deadlocks, full):
    """100 players push many times over two processes, half of them on the leaderboard. No request fails with 5xx."""
    tokens = [access for _, _, access in players(nodes[0].dsn, 100)]
    chance = random.Random(7)
    order = [number for number in range(100) for _ in range(10 if full else 3)]
    chance.shuffle(order)
    statuses = []

    async def send(index):
        if index % 20 == 0:
            path, body = "/api/leaderboard/opt-in", {"display_name": "x"}
        else:
            path = "/api/sync/push"
            body = progress_of(stats__best_single_score=index + 1, progress__unlocked_card_backs=[index])
        answer = await nodes[index % 2].ask("POST", path, body=body, bearer=tokens[order[index]])
        statuses.append(answer.status)

    for offset in range(0, len(order), 100):
        await gather(100, send, range(offset, offset + 100))
    assert set(statuses) == {200}
    assert nodes[0].sql(
        "SELECT count(*) FROM leaderboard JOIN sync_states USING (user_id)"
        " WHERE best_score IS DISTINCT FROM (payload::jsonb #>> '{stats,best_single_score}')::int"
        " AND (payload::jsonb #>> '{stats,best_single_score}')::int > 0"
    ) == [(0,)]
