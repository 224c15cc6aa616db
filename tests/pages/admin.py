"""An admin at the console, who signs in, opens pages and acts on players."""

from solisync.rules.administration import CODE_DIGITS
from solisync.rules.recovery import digest, new_code, read_code
from tests.harness.postgres import run_sql

HOSTILE = '<img src=x onerror="document.title=1">\u202e' + "e\u0301" * 5
PLAYER = "0b8f6f0e-6c53-4d0a-9c3e-2f1d8a7b5c41"
FILLED = """
    INSERT INTO users (id, username, password_hash, created_at, avatar_extension)
    VALUES (%(id)s, 'ann', 'x', now(), 'png');
    INSERT INTO avatars (user_id, image) VALUES (%(id)s, %(image)s);
    INSERT INTO leaderboard (user_id, display_name, visible, best_score, recorded_at)
    VALUES (%(id)s, %(hostile)s, true, 650, now());
    INSERT INTO refresh_tokens (jti, user_id, expires_at, session_id, begun_at, used_at, user_agent)
    VALUES (gen_random_uuid(), %(id)s, now() + interval '1 day', gen_random_uuid(), now(), now(), %(hostile)s);
    INSERT INTO account_history (happened_at, user_id, event, reason, client, times)
    SELECT now(), %(id)s, event, %(hostile)s, '203.0.113.7', 1
    FROM unnest(ARRAY['register', 'opted in', 'avatar changed', 'login']) AS event;
    INSERT INTO admins (name) VALUES ('root');
"""


def sign_in(visitor, dsn, path="/"):
    """Open a page of the console and fill in the sign-in over it."""
    code = new_code(CODE_DIGITS)
    put = "INSERT INTO admin_codes VALUES ('root', %s, now() + interval '1 minute')"
    run_sql(dsn, f"{put} ON CONFLICT (admin) DO UPDATE SET digest = excluded.digest", (digest(read_code(code, 26)),))
    page = visitor.page
    page.goto(path)
    page.fill("#sign-in-name", "root")
    page.fill("#sign-in-code", code)
    page.click("#sign-in button.main")
    page.wait_for_selector("#sign-in", state="detached")
    visitor.settle()
    return page


def paths(dsn):
    ((replay,),) = run_sql(dsn, "SELECT id::text FROM replays")
    kinds = ("names", "avatars", "players", "entries")
    return [
        "/",
        "/players",
        "/players?sort=bytes&state=suspended",
        "/players?q=a",
        "/players?q=203.0.113.7&where=address",
        f"/players/{PLAYER}",
        *(f"/review?kind={kind}" for kind in kinds),
        "/review?kind=names&seen=all",
        "/replays",
        f"/replays/{replay}",
        "/acts",
        "/acts?reason=spam&from=2026-01-01",
        "/service",
    ]


def choose(page, verb, reason="other", **fields):
    """Open the dialog of an act by its button, fill it in and confirm it, with three clicks."""
    page.click(f"button:has-text('{verb}')")
    for name, value in fields.items():
        page.fill(f"#act [name={name}]", value)
    page.select_option("#act-reason", reason)
    if reason == "other":
        page.fill("#act-note", "seen by hand")
    page.click("#act button:not([type])")
    page.wait_for_selector("#act", state="detached")
