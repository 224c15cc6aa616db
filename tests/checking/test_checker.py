"""The program of a checker process: it answers any input within its bounds (docs/security.md "Bounds")."""

import os
import pwd
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solisync.checking.checker import CPU_SECONDS
from solisync.checking.confinement import MEMORY_BYTES
from solisync.checking.messages import FRAME_MAX, READY, Answer, Frames, Job, compressed_timeline, frame
from solisync.klondike import ENGINE_VERSION, Reason, Status, check, check_literally
from tests.checking.uploads import encoded, endless, game, refuted
from tests.harness.checker import SEARCH_SECONDS
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import CHECKER
from tests.harness.payloads import REPLAY_HEADER
from tests.harness.processes import PROC, cpu_ticks
from tests.harness.strategies import costly, unknown

MIB = 2**20
DRAWS = 10_000
MOVE = '{"Move":{"from":{"Tableau":0},"to":{"Tableau":1},"count":1}}'


class Checker:
    """A checker process, and an answer for each job; another process when it has ended in order."""

    def __init__(self, command=CHECKER):
        self._command = command
        self._unanswered = []
        self._start()

    def _start(self):
        self.popen = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.pid = self.popen.pid
        self._frames = Frames()
        self._payloads = []
        assert self.receive() == READY

    def receive(self):
        while not self._payloads:
            data = os.read(self.popen.stdout.fileno(), 65_536)
            if not data:
                self._start_again()
            self._payloads += self._frames.feed(data)
        return self._payloads.pop(0)

    def _start_again(self):
        assert self.popen.wait() == 0
        self.close()
        self._start()
        for job in self._unanswered:
            self._write(job)

    def close(self):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()
        with suppress(BrokenPipeError):
            self.popen.stdin.close()

    def send(self, body, *, search):
        self._unanswered.append(frame(msgspec.msgpack.encode(Job(search, body))))
        self._write(self._unanswered[-1])

    def _write(self, job):
        with suppress(BrokenPipeError):
            self.popen.stdin.write(job)
            self.popen.stdin.flush()

    def answer(self):
        payload = self.receive()
        self._unanswered.pop()
        return msgspec.msgpack.decode(payload, type=Answer)

    def ask(self, body, *, search):
        self.send(body, search=search)
        return self.answer()


@contextmanager
def running(*command):
    checker = Checker(command or CHECKER)
    try:
        yield checker
    finally:
        checker.close()


@pytest.fixture(scope="module")
def shared_checker():
    with running() as checker:
        yield checker


@pytest.fixture
def checker(shared_checker):
    """A checker that keeps running: one that is about to end has been replaced."""
    shared_checker.ask(encoded(game()), search=False)
    return shared_checker


def header(**changes):
    return {**REPLAY_HEADER, "seed": 1, "mode": "Classic", "draw_mode": "DrawOne", "final_score": 700, **changes}


@pytest.mark.parametrize("replay", [game(), game(undo=True), refuted()], ids=["literal", "undos", "refuted"])
def test_checker_returns_the_verdict_of_the_engine(checker, replay):
    """Literal checks and searches agree with it. A verified replay also gets the digest of its timeline."""
    body = encoded(replay)
    for search, verdict in ((False, check_literally(body)), (True, check(body))):
        found = checker.ask(body, search=search)
        assert (found.search, found.engine) == (search, ENGINE_VERSION)
        assert found.verdict.status is verdict.status
        assert found.verdict == verdict
        timeline = compressed_timeline(body, verdict)
        assert found.timeline_digest == (None if timeline is None else sha256(timeline).digest())


def test_literal_checks_interrupt_a_search(checker, figure):
    """Literal checks are answered first.

    The search gets its whole budget in addition, and not more. After a search that took much memory the process ends
    in order, which frees the memory.
    """
    checker.send(encoded(endless()), search=True)
    body = encoded(game())
    before, slowest = cpu_ticks(checker.pid), 0.0
    for _ in range(30):
        began = time.monotonic()
        found = checker.ask(body, search=False)
        slowest = max(slowest, time.monotonic() - began)
        assert (found.search, found.verdict.status) == (False, Status.VERIFIED)
    found = checker.answer()
    used = (cpu_ticks(checker.pid) - before) / os.sysconf("SC_CLK_TCK")
    figure(f"a literal check during a search: {slowest * 1000:.0f} ms; all of it took {used:.1f} s of processor time")
    assert (found.search, found.verdict.reason) == (True, Reason.BUDGET)
    assert used < SEARCH_SECONDS + 2
    assert checker.popen.wait(PATIENCE) == 0


def test_checker_can_gain_no_privileges(checker):
    """Programs that it runs get none. A checker of a service that runs as root is the user nobody, in no group."""
    checker.ask(encoded(game()), search=True)
    status = dict(line.split(":\t", 1) for line in (PROC / str(checker.pid) / "status").read_text().splitlines())
    assert status["NoNewPrivs"] == "1"
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
        assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
        assert status["Groups"].split() == []
        assert int(status["CapEff"], 16) == 0


def limits(checker, name):
    """Return a soft and a hard limit of the process, as the kernel shows them."""
    (line,) = [line for line in (PROC / str(checker.pid) / "limits").read_text().splitlines() if line.startswith(name)]
    return line.removeprefix(name).split()[:2]


def test_checker_has_a_memory_limit(checker):
    assert limits(checker, "Max address space") == [str(MEMORY_BYTES)] * 2


HOSTILE = {
    "10,000 clicks on the stock": encoded(header(moves=["StockClick"] * DRAWS)),
    "1 MiB of clicks": (encoded(header(moves=[]))[:-2] + b",".join([b'"Draw"'] * 149_000) + b"]}")[:MIB],
    "1 MiB of moves": encoded(header(moves=[]))[:-2] + ",".join([MOVE] * 16_000).encode() + b"]}",
    "a win with 10,000 more clicks": encoded({**game(), "moves": ["StockClick"] * DRAWS + game()["moves"]}),
    "there and back": encoded(
        header(
            moves=[
                {"Move": {"from": {"Tableau": a}, "to": {"Tableau": 1 - a}, "count": 1}} for a in (0, 1) for _ in "ab"
            ]
            * 2_000
        )
    ),
    "a deep one": b'{"moves": ' + b"[" * 200_000,
    "a long number": b'{"seed": ' + b"9" * 900_000 + b"}",
    "seed 2^64": encoded(header(seed=2**64)),
    "seed -1": encoded(header(seed=-1)),
    "seed 1.5": encoded(header(seed=1.5)),
    "a score of 10^400": encoded(header()).replace(b"700", b"1" + b"0" * 400),
    "half a surrogate": b'{"\\ud800": 1, "seed": 1, "moves": ["\\udfff"]}',
    "no UTF-8": b"\xff\xfe",
    "nothing": b"",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.limit(600)
def test_hostile_uploads_get_a_verdict_within_budget(checker, body, figure):
    """The checker then continues with the next one."""
    began = cpu_ticks(checker.pid)
    literal = checker.ask(body, search=False)
    found = literal if literal.verdict.status is not Status.PENDING else checker.ask(body, search=True)
    used = (cpu_ticks(checker.pid) - began) / os.sysconf("SC_CLK_TCK")
    figure(f"{found.verdict.status} {found.verdict.reason}, {used:.2f} s")
    assert found.verdict.status is not Status.PENDING
    assert used < CPU_SECONDS + 1


places = st.sampled_from(["mode", "draw_mode", "final_score", "seed", "moves", "time_seconds"])
inputs = st.sampled_from([*game()["moves"][:20], "StockClick", "Draw"]) | unknown


@costly(150)
@given(st.dictionaries(places, unknown, max_size=3), st.lists(inputs, max_size=8))
def test_any_json_in_any_place_gets_a_verdict(shared_checker, changes, moves):
    """One process answers all of them without a crash."""
    body = encoded({**game(), "moves": [*moves, *game()["moves"]], **changes})
    literal = shared_checker.ask(body, search=False)
    if literal.verdict.status is Status.PENDING:
        assert shared_checker.ask(body, search=True).verdict.status is not Status.PENDING


def test_checker_ends_with_its_input():
    """The end of the input interrupts a search. The checker ignores SIGINT, which is for the service."""
    with running() as checker:
        checker.send(encoded(endless()), search=True)
        os.kill(checker.pid, signal.SIGINT)
        time.sleep(0.2)
        assert checker.popen.poll() is None
        checker.popen.stdin.close()
        assert checker.popen.wait(PATIENCE) == 0


def test_search_without_a_clock_is_ended_by_a_signal():
    """The verdict is undecided each time, and the process continues."""
    program = "from solisync.checking import checker; checker.SEARCH_SECONDS = 99; checker.CPU_SECONDS = 0.5"
    program += "; checker.KEPT_BYTES = 2**40"
    with running(sys.executable, "-P", "-c", f"{program}; checker.main(0)") as checker:
        for _ in range(2):
            assert checker.ask(encoded(endless()), search=True).verdict.reason is Reason.BUDGET
            assert checker.ask(encoded(game()), search=False).verdict.status is Status.VERIFIED
            assert checker.popen.poll() is None


def test_proof_without_an_end_is_ended_by_a_signal():
    """The verdict stays, the processor time of the proof counts, and the process continues."""
    program = "import itertools; from solisync.checking import checker; checker.CPU_SECONDS = 0.5"
    program += "; checker.prove = lambda body: max(n % 7 for n in itertools.count())"
    with running(sys.executable, "-P", "-c", f"{program}; checker.main(0)") as checker:
        found = checker.ask(encoded(refuted()), search=False)
        assert (found.verdict, found.proved) == (check_literally(encoded(refuted())), None)
        assert found.cpu_seconds > 0.1
        assert checker.ask(encoded(game()), search=False).verdict.status is Status.VERIFIED


def test_each_job_has_its_own_processor_time_limit():
    """The checker resets the limit of the kernel for each job."""
    with running() as checker:
        allowed = []
        for _ in range(3):
            checker.ask(encoded(game()), search=False)
            allowed.append(int(limits(checker, "Max cpu time")[0]))
        assert all(CPU_SECONDS <= seconds <= CPU_SECONDS + 3 for seconds in allowed)


def test_clock_that_goes_back_counts_as_no_time():
    """A counter can't add a negative processor time."""
    back = "ticks = itertools.count(10_000, -1); checker.time.process_time = lambda: next(ticks) / 1000"
    program = f"import itertools; from solisync.checking import checker; {back}; checker.main(0)"
    with running(sys.executable, "-P", "-c", program) as checker:
        for search in (False, True):
            assert checker.ask(encoded(game()), search=search).cpu_seconds == 0


def test_frame_has_a_bound():
    """Otherwise the service could wait for a message without end."""
    with pytest.raises(ValueError, match="too long"):
        list(Frames().feed((FRAME_MAX + 1).to_bytes(4, "big")))
    parts = frame(b"one") + frame(b"") + frame(b"three")
    frames, found = Frames(), []
    for byte in parts:
        found += frames.feed(bytes([byte]))
    assert found == [b"one", b"", b"three"]
    assert frames.is_empty
