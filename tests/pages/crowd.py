"""A database with the longest possible names and values beside ordinary ones."""

from datetime import UTC, datetime

from solisync.commands.smoke import PIXEL
from tests.checking.uploads import game, refuted
from tests.harness.boards import check, verified
from tests.harness.postgres import run_sql
from tests.pages.visitor import Game

WIDE = "W" * 32
WIDE_ADMIN = "m" * 32
AGENT = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/137.0.0.0"
NOTE = "Asked twice by mail to choose another name. " + "No-answer_" * 30
HAPPENED = """
    UPDATE refresh_tokens SET user_agent = %(agent)s;
    INSERT INTO account_history (happened_at, user_id, event, reason, client, times)
    SELECT now() - interval '50 minutes', id, event, %(reason)s, '2001:db8:aaaa:bbbb::/64', 1000
    FROM users, unnest(ARRAY['register', 'opted in', 'avatar changed', 'login']) AS event;
    WITH done AS (
        INSERT INTO admin_acts (actor_kind, actor, act, target, reason)
        SELECT 'admin', actor, act, 'player', 'takeover'
        FROM unnest(ARRAY[%(admin)s, 'root']) AS actor, unnest(ARRAY['remove_avatar', 'end_sessions', 'name']) AS act
        RETURNING id
    )
    INSERT INTO admin_notes (act_id, user_id, note, before, after)
    SELECT done.id, users.id, %(note)s, %(wide)s, 'A player' FROM done, users WHERE username = %(wide)s;
    INSERT INTO admins (name) VALUES ('root'), (%(admin)s);
    INSERT INTO suspensions (user_id, since, until, message, was_visible)
    SELECT id, now(), '2199-05-01', %(note)s, false FROM users WHERE username IN ('guest', %(suspended)s);
    INSERT INTO profile_locks SELECT id, now() FROM users WHERE username IN (%(wide)s, %(suspended)s);
    UPDATE users SET avatar_extension = 'png' WHERE username IN ('ann', %(wide)s);
    INSERT INTO avatars (user_id, image) SELECT id, %(image)s FROM users WHERE avatar_extension IS NOT NULL
"""


def fill(site, dsn):
    """Store players, replays and acts. Return the ids of a verified and of a refuted replay of the player WIDE."""
    wide, ann = Game(site, WIDE), Game(site, "ann")
    suspended = "M" * 32
    for player in (wide, ann, Game(site, "guest"), Game(site, suspended)):
        player.seen_as({"ann": "Ann of the Hill"}.get(player.name, player.name))
        ((user_id,),) = run_sql(dsn, "SELECT id::text FROM users WHERE username = %s", (player.name,))
        verified(dsn, user_id, 1_234_567, mode="TimeAttack", draw_mode="DrawThree", received_at=datetime.now(UTC))
        verified(dsn, user_id, 1_234_567, status="unreadable")
        today = player.call("GET", "/api/daily-challenge")["seed"]
        check(dsn, player.upload({**game(), "seed": today, "moves": []}), 1_234)
    run_sql(dsn, "UPDATE leaderboard SET best_score = 1234567890, best_time_secs = 1234567")
    shared = wide.upload(game(0, undo=True))
    ann.upload(game(1))
    claimed = wide.upload(refuted())
    given = {"agent": AGENT, "note": NOTE, "reason": NOTE[:64], "wide": WIDE, "admin": WIDE_ADMIN}
    run_sql(dsn, HAPPENED, {**given, "suspended": suspended, "image": PIXEL})
    return shared, claimed
