"""Clients over raw sockets: crowds that do what no HTTP library does, and a watch on the answers to other clients.

All of them are threads of the test and mostly wait, so that the cores are left to the service.
"""

import select
import socket
import threading
import time
from collections import Counter, defaultdict, deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.harness.constants import PATIENCE
from tests.harness.processes import descriptors

TICK_SECONDS = 0.05
TICKS = 20  # in which each connection sends one byte
OPENED_PER_TICK = 40
LOOK_SECONDS = 0.1
REST_SECONDS = 1.0  # before a client that was cut comes back


def head(method, path, *lines):
    """Return the header of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *lines, "\r\n"]).encode()


@contextmanager
def running(*threads):
    """Run these while the block lasts; an error in one of them fails the test."""
    with ExitStack() as stack:
        for thread in threads:
            stack.callback(thread.end)
            thread.start()
        yield


class Busy(threading.Thread):
    """A thread that runs `turn` again and again until its end is requested."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ending = threading.Event()
        self.cpu_seconds = 0.0
        self.error = None

    def run(self):
        try:
            while not self.ending.is_set():
                self.turn()
        except BaseException as error:
            self.error = error
        self.cpu_seconds = time.thread_time()

    def end(self):
        self.ending.set()
        self.join(10)
        self.close()
        if self.error is not None:
            raise self.error


def percentile(values, share):
    """Return the value that this share of all values doesn't exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class Watch(Busy):
    """A watch that sends `requests`, by name, every 10 ms; it keeps the time of each, and the peak of the memory."""

    def __init__(self, process, requests):
        super().__init__()
        self.process = process
        self.requests = requests
        self.seconds = defaultdict(list)
        self.first_rss = self.peak_rss = rss(process.pid)
        self.files = set()
        self._look_again = 0.0
        self._connection = socket.create_connection(("127.0.0.1", process.port), timeout=PATIENCE)

    def turn(self):
        for name, request in self.requests.items():
            began = time.perf_counter()
            status, _ = ask(self._connection, request)
            self.seconds[name].append(time.perf_counter() - began)
            assert status == 200, (name, status)
            self.ending.wait(0.01)
        if time.monotonic() > self._look_again:
            self._look_again = time.monotonic() + LOOK_SECONDS
            self.peak_rss = max(self.peak_rss, rss(self.process.pid))
            self.files |= regular_files(self.process.pid)

    def close(self):
        self._connection.close()

    def p99(self, name):
        return percentile(self.seconds[name], 0.99)

    @property
    def growth_mib(self):
        """Return the growth of the process' memory, from the beginning of the watch to the peak, in MiB."""
        return (self.peak_rss - self.first_rss) / 2**20

    def __str__(self):
        times = ", ".join(
            f"{name} p99 {self.p99(name) * 1000:.1f} max {max(values) * 1000:.0f} ms of {len(values)}"
            for name, values in self.seconds.items()
        )
        return f"{times}; memory {self.first_rss / 2**20:.0f} {self.growth_mib:+.1f} MiB"


def ask(connection, request):
    """Send one request on a blocking connection; return (status, body)."""
    connection.sendall(request)
    return read_answer(connection)


def read_answer(connection):
    """Return the next answer on a blocking connection, which must have a length: (status, body)."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        assert more, f"closed after {data!r}"
        data += more
    top, _, body = data.partition(b"\r\n\r\n")
    (length,) = (int(line.split(b":")[1]) for line in top.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        more = connection.recv(65536)
        assert more, f"closed after {len(body)} of {length} bytes"
        body += more
    return int(top[9:12]), body


def volley(port, requests):
    """Send all requests together, each on its own connection: [(status, seconds until the answer)]."""
    waiting, answers = {}, []
    with select.epoll() as epoll:
        for _ in requests:
            client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            epoll.register(client, select.EPOLLIN)
            waiting[client.fileno()] = client
        began = time.monotonic()
        for client, request in zip(waiting.values(), requests, strict=True):
            client.sendall(request)
        while waiting:
            for number, _ in epoll.poll():
                with waiting.pop(number) as client:
                    epoll.unregister(client)
                    answers.append((read_answer(client)[0], time.monotonic() - began))
    return answers


def pipeline(port, requests):
    """Send all requests over one connection, a few ahead of the answers at most; return the statuses."""
    statuses = Counter()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        answers = client.makefile("rb")
        for some in batched(requests, 20):
            client.sendall(b"".join(some))
            for _ in some:
                statuses[next_status(answers)] += 1
    return statuses


def batched(items, most):
    """Yield the items in lists of at most `most`."""
    items = iter(items)
    while some := list(islice(items, most)):
        yield some


def next_status(answers):
    """Read one answer from a file of answers; return its status."""
    status = int(answers.readline()[9:12])
    length = 0
    while (line := answers.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    answers.read(length)
    return status


def pour(port, request, block, blocks):
    """Send a request and endless blocks without reading; return the bytes sent before the connection ended."""
    sent = 0
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        try:
            client.sendall(request)
            for _ in range(blocks):
                client.sendall(block)
                sent += len(block)
        except ConnectionError:
            pass
    return sent


def rss(pid):
    """Return the memory of a process in bytes."""
    return int((Path("/proc") / str(pid) / "statm").read_text().split()[1]) * 4096


def regular_files(pid):
    """Return the open files of a process that are neither sockets nor pipes nor devices."""
    return {name for name in descriptors(pid) if name.startswith("/") and not name.startswith("/dev/")}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of slow clients: what each sends first, whether it then sends a byte a second, and whether it reads."""

    name: str
    opening: bytes
    drips: bool = True
    reads: bool = True


class Crowd(Busy):
    """`each` slow clients of every kind together; a client that is cut connects again."""

    def __init__(self, port, kinds, each):
        super().__init__()
        self.port = port
        self.lives = defaultdict(list)  # by kind: seconds until the service ended a connection
        self.statuses = defaultdict(Counter)
        self._missing = deque((0.0, kind) for _ in range(each) for kind in kinds)
        self._open = {}
        self._epoll = select.epoll()
        self._ticks = 0

    def turn(self):
        for _ in range(OPENED_PER_TICK):
            if self._missing and self._missing[0][0] <= time.monotonic():
                self._begin(self._missing.popleft()[1])
        due = time.monotonic() + TICK_SECONDS
        while (left := due - time.monotonic()) > 0:
            for number, event in self._epoll.poll(left):
                self._hear(number, event)
        self._ticks += 1
        for number, (client, kind, _) in list(self._open.items()):
            if kind.drips and (number + self._ticks) % TICKS == 0:
                try:
                    client.send(b"x")
                except OSError:
                    self._lose(number)

    def _begin(self, kind):
        client = socket.socket()
        if not kind.reads:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        client.sendall(kind.opening)
        client.setblocking(False)
        # without EPOLLIN only the end of the connection is reported
        self._epoll.register(client, select.EPOLLIN if kind.reads else 0)
        self._open[client.fileno()] = client, kind, time.monotonic()

    def _hear(self, number, event):
        client, kind, _ = self._open[number]
        try:
            data = client.recv(65536) if kind.reads else b""
        except OSError:
            data = b""
        if data:
            self.statuses[kind.name][int(data[9:12])] += 1
        else:
            self._lose(number)

    def _lose(self, number):
        client, kind, began = self._open.pop(number)
        self.lives[kind.name].append(time.monotonic() - began)
        client.close()
        self._missing.append((time.monotonic() + REST_SECONDS, kind))

    def oldest(self, name):
        """Return the age in seconds of the longest connection of a kind, open or closed."""
        ages = [time.monotonic() - began for _, kind, began in self._open.values() if kind.name == name]
        return max(ages + self.lives[name], default=0)

    def close(self):
        for client, _, _ in self._open.values():
            client.close()
        self._epoll.close()
