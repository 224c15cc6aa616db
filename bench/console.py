"""`make bench-console`: fifty of the most expensive queries of admins at the same time, and what they cost players.

Players' requests are measured in pairs of a few seconds, with and without these queries. Most queries search for parts
of display names and usernames that no player has, so each search takes the longest possible time; the others ask for
findings. Each admin has a separate rate limit, and repeats the query after `Retry-After`.
"""

import argparse
import asyncio
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg2

from solisync.rules.recovery import digest

from .cells import Cell, Figures, Turn, load_cell
from .generator import connect
from .pairs import Pairs, Plan, compare
from .processes import free_port
from .report import say
from .stage import Stage
from .world import World

ASKERS = 50
QUESTIONS = ("/players?q=nobody&where=display_name", "/players?q=nobody&where=part", "/service/findings")
PAUSE_SECONDS = 0.5  # the pause before an admin asks again
SETTLING_SECONDS = 2.5  # the last search ends within 2 s


class Askers(threading.Thread):
    """Fifty admins, who send queries while `asking` is set; `statuses` counts the answers."""

    def __init__(self, port: int, cookies: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.asking = threading.Event()
        self.statuses: Counter[str] = Counter()
        self._port = port
        self._cookies = cookies

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        await asyncio.gather(*(self._ask(number, cookie) for number, cookie in enumerate(self._cookies)))

    async def _ask(self, number: int, cookie: str) -> None:
        question = QUESTIONS[number % len(QUESTIONS)]
        head = f"GET /api/admin{question} HTTP/1.1\r\nHost: localhost\r\nCookie: solisync-admin={cookie}\r\n\r\n"
        while True:
            while not self.asking.is_set():
                await asyncio.sleep(0.05)
            asker = await connect(self._port)
            while self.asking.is_set():
                answer = (await asker.ask(head.encode())).decode().lower()
                self.statuses[answer[9:12]] += 1
                await asyncio.sleep(float(answer.partition("retry-after: ")[2].partition("\r\n")[0] or PAUSE_SECONDS))
            asker.close()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Send queries during this context, and wait at its end for the last search."""
        self.asking.set()
        time.sleep(1)
        yield
        self.asking.clear()
        time.sleep(SETTLING_SECONDS)


def sign_in(dsn: str) -> list[str]:
    """Make the admins, each with a session, and return the values of their cookies."""
    secret = [secrets.token_urlsafe(32) for _ in range(ASKERS)]
    with psycopg2.connect(dsn) as database, database.cursor() as cursor:
        for number, each in enumerate(secret):
            name = f"admin{number}"
            cursor.execute("INSERT INTO admins (name) VALUES (%s)", (name,))
            cursor.execute(
                "INSERT INTO admin_sessions (admin, digest, begun_at, used_at, client)"
                " VALUES (%s, %s, now(), now(), 'unix')",
                (name, digest(each)),
            )
    return secret


def with_questions(cell: Cell, askers: Askers) -> Cell:
    """Make a cell that measures the same while admins send queries."""

    @contextmanager
    def opened() -> Iterator[Turn]:
        with cell.open() as turn:

            def asked(seconds: float) -> Figures:
                with askers.at_work():
                    return turn(seconds)

            yield asked

    return Cell(server="with questions", route=cell.route, open=opened)


def tell(what: str, name: str, pairs: Pairs) -> None:
    """Print the medians of a figure with and without queries, the ratio of the pairs, and the cores in use."""

    def medians(figure: str) -> str:
        asked, quiet = pairs.medians(figure)
        return f"{asked:.2f} with queries, {quiet:.2f} without"

    say(f"{what}: {medians(name)}; {pairs.ratio(name)} in {len(pairs)} pairs")
    for used in ("service_cores", "database_cores"):
        say(f"  {used}: {medians(used)}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--players", type=int, default=200_000)
    parser.add_argument("--pairs", type=int, default=9, help="the number of pairs of turns with and without queries")
    parser.add_argument("--seconds", type=float, default=4.0, help="the length of each turn")
    arguments = parser.parse_args()
    with Stage(World(players=arguments.players, replays=1)) as stage:
        stage.open()
        port = free_port()
        server = stage.solisync(SOLISYNC_ADMIN_LISTEN=f"tcp:{port}:interface=127.0.0.1")
        askers = Askers(port, sign_in(stage.dsn))
        askers.start()
        generator = stage.generator()
        for route, connections, name in (("push", 32, "rate"), ("health", 1, "p99")):
            cell = load_cell(generator, "solisync", server, route, stage.database_pids, connections=connections)
            plan = Plan(seconds=arguments.seconds, fewest=arguments.pairs, most=arguments.pairs)
            tell(f"{route}, {name}", name, compare(with_questions(cell, askers), cell, plan))
            say(f"  answers to queries so far: {dict(askers.statuses)}")


if __name__ == "__main__":
    main()
