"""A model of the resources that players need, from measured constants; docs/scaling.md shows its tables.

All constants are for an *active* player, who plays on that day. The habits are assumptions: replace them by the metrics
of a running service. Costs and sizes were measured for 1.0.0.
"""

from dataclasses import dataclass
from math import ceil

# The day of an active player: two sittings and eight games. Three games are won, and their replays uploaded.
REQUESTS_A_DAY = {
    "refresh": 2.0,
    "me": 2.0,
    "pull": 2.0,
    "push": 8.0,
    "upload": 3.0,
    "recent": 2.0,
    "challenge": 1.0,
    "leaderboard": 2.0,
    "analytics": 4.0,
    "login": 0.05,
}
# Microseconds of processor time for a request, in a process of solisync and in PostgreSQL.
SERVICE_US = {
    "refresh": 667,
    "me": 232,
    "pull": 292,
    "push": 740,
    "upload": 981,
    "recent": 158,
    "challenge": 114,
    "leaderboard": 139,
    "analytics": 1_869,  # of 50 events
    "login": 346_000,  # bcrypt
}
DATABASE_US = {
    "refresh": 809,
    "me": 52,
    "pull": 125,
    "push": 528,
    "upload": 936,
    "analytics": 1_486,
    "login": 1_765,
}
CHECK_US = 12_000  # of a checker, for a replay; seven of eight are checked literally, one by a search
COMMITS = ("refresh", "push", "upload", "analytics", "login")
ROWS_A_YEAR = {"replays": 3 * 365, "verdicts": 3 * 365, "board_evidence": 3 * 365 * 1.7, "analytics_events": 16 * 365}
# Rows of a player, active or not, whose number doesn't grow over the years.
ROWS = {
    "users": 1.0,
    "sync_states": 1.0,
    "refresh_tokens": 1.5,
    "known_states": 1.5,
    "leaderboard": 0.3,
    "replay_usage": 1.0,
    "avatars": 0.1,
    "analytics_names": 1.0,
}
# Bytes of a row, including its part of the indexes and its out-of-line values.
ROW_BYTES: dict[str, float] = {
    "analytics_events": 347,
    "analytics_names": 279,
    "avatars": 22_381,
    "board_evidence": 375,
    "known_states": 336,
    "leaderboard": 295,
    "refresh_tokens": 295,
    "replay_usage": 147,
    "replays": 1_409,
    "sync_states": 918,
    "users": 393,
    "verdicts": 198,
}

PEAK = 3.0  # the ratio of the busiest hour's requests to the average hour's
BUSY = 0.6  # the planned load of a core at that hour
CONNECTIONS = 8  # of a process
ACTIVE = 0.2  # the share of accounts that play on a day
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of an installation at its busiest hour, and the yearly growth of its disk."""

    requests: float  # a second
    commits: float  # a second
    service_cores: int
    database_cores: int
    checker_cores: int
    connections: int
    disk_gib: float  # data that grows with the number of accounts
    growth_gib: float  # a year, without analytics
    analytics_gib: float  # a year


def needs(players: int, active: float = ACTIVE) -> Needs:
    """The needs of `players` accounts, of which the share `active` plays on a day."""
    peak = players * active * PEAK / 86_400  # a second, of anything that an active player does once a day
    service = sum(REQUESTS_A_DAY[name] * us for name, us in SERVICE_US.items())
    database = sum(REQUESTS_A_DAY[name] * us for name, us in DATABASE_US.items())
    processes = _cores(peak * service)
    growing = {table: rows * ROW_BYTES[table] * players * active / GIB for table, rows in ROWS_A_YEAR.items()}
    analytics = growing.pop("analytics_events")
    return Needs(
        requests=peak * sum(REQUESTS_A_DAY.values()),
        commits=peak * sum(REQUESTS_A_DAY[name] for name in COMMITS),
        service_cores=processes,
        database_cores=_cores(peak * database),
        checker_cores=_cores(peak * REQUESTS_A_DAY["upload"] * CHECK_US),
        connections=processes * CONNECTIONS,
        disk_gib=sum(rows * ROW_BYTES[table] for table, rows in ROWS.items()) * players / GIB,
        growth_gib=sum(growing.values()),
        analytics_gib=analytics,
    )


def _cores(microseconds: float) -> int:
    return max(1, ceil(microseconds / 1e6 / BUSY))


def sizes_table() -> str:
    """Bytes of a row of each table, and the bytes that an active player adds in a year."""
    lines = [
        "| table | bytes a row | rows a player | bytes a player | bytes a year of an active player |",
        "|---|--:|--:|--:|--:|",
    ]
    for table, size in sorted(ROW_BYTES.items()):
        rows, yearly = ROWS.get(table), ROWS_A_YEAR.get(table)
        kept = ["", ""] if rows is None else [f"{rows:g}", f"{rows * size:,.0f}"]
        lines.append(
            " | ".join([f"| {table}", f"{size:,.0f}", *kept, "" if yearly is None else f"{yearly * size:,.0f}"]) + " |"
        )
    return "\n".join(lines)


def needs_table(counts: tuple[int, ...] = (1_000, 100_000, 1_000_000, 10_000_000)) -> str:
    """The needs of these numbers of accounts."""
    found = [needs(count) for count in counts]
    rows = {
        "requests a second": [f"{each.requests:,.1f}" for each in found],
        "of them commits": [f"{each.commits:,.1f}" for each in found],
        "cores of solisync": [f"{each.service_cores:,}" for each in found],
        "cores of PostgreSQL": [f"{each.database_cores:,}" for each in found],
        "cores that check replays": [f"{each.checker_cores:,}" for each in found],
        "connections": [f"{each.connections:,}" for each in found],
        "disk, GiB": [f"{each.disk_gib:,.1f}" for each in found],
        "more in a year, GiB": [f"{each.growth_gib:,.1f}" for each in found],
        "and of analytics, GiB": [f"{each.analytics_gib:,.1f}" for each in found],
    }
    head = f"| accounts | {' | '.join(f'{count:,}' for count in counts)} |"
    return "\n".join(
        [
            head,
            "|---" + "|--:" * len(counts) + "|",
            *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()),
        ]
    )


def habits_table() -> str:
    """The requests of an active player in a day, and the cost of each."""
    lines = ["| request | a day | solisync, µs | PostgreSQL, µs |", "|---|--:|--:|--:|"]
    lines += [
        f"| {name} | {count:g} | {SERVICE_US[name]:,} | {DATABASE_US.get(name, 0):,} |"
        for name, count in REQUESTS_A_DAY.items()
    ]
    return "\n".join(lines)
