"""Administration at size: commands take little memory with any number of players and events."""

from tests.fire.measured import measure
from tests.harness.postgres import run_sql, truncate

MIB = 2**20
LIMIT_MIB = 160  # the interpreter with everything imported takes 60

COMMANDS = (
    ["users", "list"],
    ["users", "export", "player_1"],
    ["users", "list", "--json"],
    ["analytics", "export"],
    ["analytics", "export", "--format", "csv"],
    ["sessions", "revoke", "--everyone", "--yes"],
)


def test_memory_of_lists_and_exports_stays_flat(shared_dsn, full, figure):
    """There are a hundred thousand players, half a million events and one player's 64 MiB of replays."""
    players, events, replays = (100_000, 500_000, 64) if full else (3_000, 5_000, 16)
    truncate(shared_dsn)
    run_sql(
        shared_dsn,
        """
        INSERT INTO users SELECT gen_random_uuid(), 'player_' || n, 'x', now() FROM generate_series(1, %(players)s) n;
        INSERT INTO refresh_tokens SELECT gen_random_uuid(), id, now() + interval '1 d' FROM users;
        INSERT INTO analytics_events
        SELECT gen_random_uuid(), 's', NULL, 'e', '"' || repeat('b', 100) || '"', now(), now() - n * interval '1 s'
        FROM generate_series(1, %(events)s) n;
        INSERT INTO replays
        SELECT gen_random_uuid(), id, now() - n * interval '1 s', '"' || repeat('r', 1048574) || '"', 1048576,
            'Zen', 'DrawOne', '1', '1', NULL, '2026-01-01'
        FROM users, generate_series(1, %(replays)s) n WHERE username = 'player_1'
        """,
        {"players": players, "events": events, "replays": replays},
    )
    for words in COMMANDS if full else COMMANDS[:2]:
        mebibytes, seconds, _ = measure(shared_dsn, *words)
        figure(f"{' '.join(words)}: {mebibytes} MiB, {seconds:.1f} s")
        assert mebibytes < LIMIT_MIB
    truncate(shared_dsn)
