"""The crates `solisync-client` and `solisync-klondike`, in clients/rust."""

import contextlib
import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib

import pytest
from twisted.internet.threads import deferToThread

from clients.conformance.truth import Games
from solisync import __version__
from tests import rust_types
from tests.clients.test_conformance import conform
from tests.clients.test_full_disk import small_disk  # noqa: F401
from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.processes import clean_environment, free_port
from tests.process.test_certificates import Issued

RUST = ROOT / "clients" / "rust"
BUILT = ROOT / "build" / "rust"
TRACES = ROOT / "tests" / "klondike" / "vectors" / "traces_2026-05-19.jsonl.gz"
OTHERS = {
    "x86_64-pc-windows-gnu": ["--features", "ureq"],
    "aarch64-apple-darwin": ["--features", "ureq"],
    "aarch64-linux-android": ["--features", "ureq"],
    "wasm32-unknown-unknown": ["--features", "web"],
}
FREE = set(tomllib.loads((RUST / "deny.toml").read_text("utf-8"))["licenses"]["allow"])
CRATES_MOST = 40
SIZE_MOST = 2_500_000

needs_cargo = pytest.mark.needs("cargo")
patient = pytest.mark.limit(20 * PATIENCE)


def cargo(*words, **variables):
    """Run cargo in the workspace; return its output."""
    env = clean_environment(**variables)
    done = subprocess.run(["cargo", *words], env=env, cwd=RUST, capture_output=True, text=True, timeout=18 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed_targets():
    """The systems for which the standard library is installed."""
    if shutil.which("rustup") is None:
        return []
    return subprocess.run(
        ["rustup", "target", "list", "--installed"], capture_output=True, text=True, check=True
    ).stdout.split()


def test_crates_have_the_version_of_the_service():
    versions = re.findall(r'"(\d+\.\d+\.\d+)"', (RUST / "Cargo.toml").read_text("utf-8"))
    assert versions == [__version__, __version__]  # of the crates, and of what one needs of the other


def test_messages_and_codes_are_those_of_the_openapi_document():
    """`make docs` writes them, and rustfmt formats them."""
    assert rust_types.FILE.read_text("utf-8") == rust_types.types()


@needs_cargo
@patient
def test_code_has_no_warnings():
    """Clippy reports what the oldest supported Rust doesn't have, too."""
    cargo("fmt", "--all", "--check")
    cargo("clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings")
    packages = ["--package", "solisync-client", "--package", "solisync-klondike"]
    cargo("doc", "--quiet", "--no-deps", *packages, RUSTDOCFLAGS="--deny warnings")


@needs_cargo
@patient
def test_crates_pass_their_own_tests(tmp_path):
    """The tests include the examples of both READMEs, and games of the original engine."""
    traces = tmp_path / "traces.jsonl"
    traces.write_bytes(gzip.decompress(TRACES.read_bytes()))
    cargo("test", "--quiet", "--workspace", "--", "--include-ignored", SOLISYNC_TRACES=str(traces))


@needs_cargo
@patient
def test_crates_can_be_published():
    cargo("publish", "--quiet", "--dry-run", "--allow-dirty", "--workspace")


@needs_cargo
@patient
@pytest.mark.parametrize("target", OTHERS)
def test_crates_compile_for_other_systems(target):
    """TLS needs a C compiler for the other system, so this leaves it out."""
    if target not in installed_targets():
        pytest.skip(f"rustup target add {target}")
    options = ["--quiet", "--target", target, "--no-default-features"]
    cargo("check", *options, "--package", "solisync-client", *OTHERS[target])
    cargo("check", *options, "--package", "solisync-klondike")


@needs_cargo
@patient
def test_dependencies_are_few_and_free(figure):
    """A game on Linux, with TLS, compiles at most 40 crates."""
    options = ["--package", "solisync-client", "--edges", "normal", "--prefix", "none", "--format", "{p} | {l}"]
    lines = {line.removesuffix(" (*)") for line in cargo("tree", *options).splitlines()}
    crates = {line.split(" ")[0]: line.split(" | ")[1] for line in lines}
    figure(f"{len(crates)} crates")
    assert len(crates) <= CRATES_MOST
    for crate, licence in crates.items():
        chosen = [set(re.findall(r"[\w.-]+", part)) - {"AND", "WITH"} for part in re.split(r" OR |/", licence)]
        assert any(names and names <= FREE for names in chosen), (crate, licence)


@needs_cargo
@patient
def test_cargo_deny_accepts_the_dependencies_for_all_systems():
    if shutil.which("cargo-deny") is None:
        pytest.skip("cargo install cargo-deny")
    cargo("deny", "--all-features", "check", "licenses", "bans", "sources")


@needs_cargo
@patient
def test_program_with_the_client_stays_small(figure):
    cargo("build", "--quiet", "--release", "--package", "solisync-client", "--example", "play")
    size = (BUILT / "release" / "examples" / "play").stat().st_size
    figure(f"{size / 1e6:.2f} MB")
    assert size <= SIZE_MOST


@pytest.fixture(scope="module")
def examples():
    """The directory of the compiled examples."""
    cargo("build", "--quiet", "--package", "solisync-client", "--examples")
    return BUILT / "debug" / "examples"


@needs_cargo
@patient
@pytest.mark.parametrize("options", [[], ["--random", os.environ.get("SCENARIOS") or "50"]], ids=["all", "by chance"])
def test_client_passes_scenarios(examples, options, figure):
    """The client leaves out the scenarios in which two processes share a store."""
    passed, lines = conform(options, [examples / "driver"])
    assert passed, "\n".join(lines)
    assert all("share a store" in line for line in lines if line.startswith("left out"))
    figure(f"rust: {lines[-1]}")


class Device:
    """A driver that runs, with a store and no service."""

    def __init__(self, program, store):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([program], text=True, **pipes)
        self.do("open", url="http://127.0.0.1:9", store=str(store), clock=0)

    def do(self, command, **fields):
        """Return the answer to a command: its `ok`, or the code of the error."""
        print(json.dumps({"id": 1, "do": command, **fields}), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        return answer["ok"] if "ok" in answer else answer["error"]["code"]

    def kill(self):
        """Kill the driver."""
        self.process.kill()
        self.process.communicate()


@needs_cargo
@patient
def test_full_disk_loses_no_game(small_disk, examples):  # noqa: F811
    """The game is kept in memory, and stored with the next one as soon as there is room."""
    games = Games()
    device = Device(examples / "driver", small_disk)
    assert device.do("finish", game=games.won()) == {}
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    assert device.do("finish", game=games.won()) == "storage"
    (small_disk / "ballast").unlink()
    assert device.do("finish", game=games.lost()) == {}
    device.kill()
    device = Device(examples / "driver", small_disk)
    for game in (games.lost(), games.won()):
        assert device.do("finish", game=game) == {}
    journal = json.loads((small_disk / "solisync-2.json").read_text("utf-8"))
    device.kill()
    ids = [entry["game"]["game_id"] for entry in journal["players"][""]["games"]]
    assert [int(each[-1]) for each in ids] == [1, 2, 3, 4, 5]


@pytest.fixture(scope="module")
def chain():
    """The certificates of an authority, of one below it, and of a host."""
    root = Issued("Root", is_authority=True)
    intermediate = Issued("Intermediate", root, is_authority=True)
    return root, intermediate, Issued("localhost", intermediate, is_authority=False)


def is_open(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE):
        return True
    return False


@needs_cargo
@patient
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from within Twisted, which reads certificates
async def test_client_trusts_chains_that_lead_to_a_known_authority(launch, examples, chain, shared_dsn, place):
    """The client refuses an unknown authority, and a chain with a gap, and keeps the games."""
    root, intermediate, leaf = chain
    (place / "root.pem").write_bytes(root.pem)

    def serve(certificates):
        port = free_port()
        (place / f"{port}.pem").write_bytes(leaf.key_pem + certificates)
        endpoint = f"ssl:{port}:interface=127.0.0.1:privateKey={place}/{port}.pem:certKey={place}/{port}.pem"
        start(launch, *SOLISYNC, dsn=shared_dsn, endpoint=endpoint)
        wait_for(lambda: is_open(port))
        return f"https://localhost:{port}"

    def play(url, *certificates):
        words = [examples / "play", url, place / "device", *certificates]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        return (done.stdout + done.stderr).strip()

    whole = await deferToThread(serve, leaf.pem + intermediate.pem)
    gap = await deferToThread(serve, leaf.pem)
    assert "UnknownIssuer" in await deferToThread(play, whole)
    assert "UnknownIssuer" in await deferToThread(play, gap, place / "root.pem")
    assert await deferToThread(play, whole, place / "root.pem") == "won 3, verified"


PAGE = """<!doctype html>
<script type="module">
import init, { answer } from "./page.js";
await init();
globalThis.answer = answer;
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A folder with the driver for browsers."""
    lock = (RUST / "Cargo.lock").read_text("utf-8")
    wanted = re.search(r'name = "wasm-bindgen"\nversion = "(.+)"', lock)[1]
    tool = shutil.which("wasm-bindgen")
    found = tool and subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    if "wasm32-unknown-unknown" not in installed_targets() or found != wanted:
        pytest.skip(f"rustup target add wasm32-unknown-unknown; cargo install wasm-bindgen-cli@{wanted}")
    options = ["--target", "wasm32-unknown-unknown", "--no-default-features", "--features", "web"]
    cargo("build", "--quiet", "--package", "solisync-client", "--example", "page", *options)
    folder = tmp_path_factory.mktemp("page")
    module = BUILT / "wasm32-unknown-unknown" / "debug" / "examples" / "page.wasm"
    subprocess.run([tool, "--target", "web", "--no-typescript", "--out-dir", folder, module], check=True)
    (folder / "page.html").write_text(PAGE)
    return folder


@needs_cargo
@patient
@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    "options", [["--only", "the device is killed"], ["--random", "10"]], ids=["kills", "by chance"]
)
def test_client_passes_scenarios_in_chromium(page, options, figure):
    """All scenarios take five minutes there: `python -m clients.conformance.chromium FOLDER` is the driver."""
    passed, lines = conform(options, [sys.executable, "-m", "clients.conformance.chromium", page])
    assert passed, "\n".join(lines)
    figure(f"rust in chromium: {lines[-1]}")


@needs_cargo
@patient
@pytest.mark.needs("node")
def test_both_clients_take_turns_on_one_store(examples, figure):
    """At each start of a device, the other client continues."""
    programs = [examples / "driver", "+", "node", ROOT / "clients" / "javascript" / "driver.js"]
    passed, lines = conform([], [sys.executable, "-m", "tests.clients.turns", *programs])
    assert passed, "\n".join(lines)
    figure(f"rust and node: {lines[-1]}")
