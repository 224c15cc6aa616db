"""`make soak`: mixed load at about half of the service's capacity, for long, to see whether anything grows.

Players come, play for a minute and delete their accounts, so the stored data stays about the same. Every few seconds
the memory, the descriptors and the database's connections are written down; at the end the slope of each is printed.
The exit status is 1 when a request went wrong or something grew.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

import psycopg2

from tests.fire.load import Player
from tests.harness.constants import BIN, PATIENCE, SECRET
from tests.harness.processes import clean_environment, free_port

PLAYERS = 8
LIFE_SECONDS = 60
SAMPLE_SECONDS = 5
WARM_UP = 0.2  # of the time: caches and heaps fill up
GROWTH = 0.1  # how much more at the end is no growth


def main():
    """Run the soak test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="solisync-soak-") as name:
        Path(name).chmod(0o755)
        port = free_port()
        variables = clean_environment(
            JWT_SECRET=SECRET,
            SOLISYNC_DATA_DIR=f"{name}/data",
            SOLISYNC_LISTEN=f"tcp:{port}:interface=127.0.0.1",
            SOLISYNC_TRUSTED_PROXIES="127.0.0.1",
            SOLISYNC_LOG_FORMAT="json",
        )
        with open(f"{name}/log", "wb") as log:
            service = subprocess.Popen([BIN / "solisync"], env=variables, stdout=log, stderr=log)
        try:
            wait_until_ready(port)
            good = soak(service, port, f"host={name}/data/run user=solisync dbname=postgres", 60 * minutes)
        finally:
            service.terminate()
            service.wait(PATIENCE)
        tracebacks = Path(name, "log").read_text("utf-8").count("Traceback")
        print(f"tracebacks in the log: {tracebacks}")
    sys.exit(0 if good and not tracebacks else 1)


def wait_until_ready(port):
    """Wait until the service has opened its database."""
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=PATIENCE).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the service does not get ready")


def soak(service, port, dsn, seconds):
    """Measure the service's capacity, then use half of it for `seconds`; return whether all went well."""
    began = time.monotonic()
    sprint = Crowd(port, pause=0.0)
    time.sleep(min(15.0, seconds / 10))
    counts = sprint.stop()
    each = PLAYERS * (time.monotonic() - began) / sum(counts.values())
    print(
        f"flat out: {PLAYERS / each:.0f} requests/s; now about half of that for {seconds / 60:.0f} minutes", flush=True
    )
    crowd = Crowd(port, pause=each)
    samples = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and service.poll() is None:
        time.sleep(SAMPLE_SECONDS)
        samples.append((time.monotonic() - began, *look(service.pid, dsn)))
        if len(samples) % 12 == 0:
            print("{:6.0f} s  {:6.1f} MiB  {:4.0f} descriptors  {:3.0f} connections".format(*samples[-1]), flush=True)
    counts = crowd.stop()
    rate = sum(counts.values()) / seconds
    print(f"{sum(counts.values())} requests, {rate:.0f}/s: {dict(sorted(counts.items(), key=str))}")
    settled = samples[int(len(samples) * WARM_UP) :]
    flat = [report(what, settled, column) for column, what in enumerate(("MiB", "descriptors", "connections"), 1)]
    print(*crowd.wrong[:10], sep="\n")
    return all(flat) and not crowd.wrong and set(counts) <= {200, 401, 503} and service.poll() is None


def look(pid, dsn):
    """Return resident memory in MiB, open descriptors and database connections."""
    resident = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    connection = psycopg2.connect(dsn)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'solisync'")
        ((connections,),) = cursor.fetchall()
    connection.close()
    return resident, len(os.listdir(f"/proc/{pid}/fd")), connections


def report(what, samples, column):
    """Print the slope of a column; return whether its last third is at most GROWTH above its first."""
    times, values = [sample[0] for sample in samples], [sample[column] for sample in samples]
    slope = statistics.linear_regression(times, values).slope * 3600
    third = len(values) // 3
    first, last = statistics.mean(values[:third]), statistics.mean(values[-third:])
    print(f"{what}: {slope:+.2f} an hour; first third {first:.1f}, last third {last:.1f}, most {max(values):.1f}")
    return last <= first * (1 + GROWTH) + 1


class Crowd:
    """Players in threads, each replaced by another after LIFE_SECONDS."""

    def __init__(self, port, pause):
        self._port = port
        self._pause = pause
        self._over = threading.Event()
        self.counts, self.wrong = Counter(), []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(PLAYERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, number):
        while not self._over.is_set():
            player = Player(lambda: [self._port], self._over, f"{number}.{time.monotonic()}", pause=self._pause)
            player.run(LIFE_SECONDS)
            player.leave()
            with self._lock:
                self.counts += player.statuses
                self.wrong += player.wrong

    def stop(self):
        """End the players; return the number of requests by status."""
        self._over.set()
        for thread in self._threads:
            thread.join(60)
        return self.counts


if __name__ == "__main__":
    main()
