"""Build the files of a release into dist/, from the last commit, and check them: `release_check.py`.

The files are the source distribution, the wheel built from it, a bill of materials of an installation (CycloneDX), the
npm package of the client, both crates, and the digests of these. The wheel is installed into a separate environment
outside the checkout, where it plays a session with its own database, and so do the installed clients. The documented
upgrade, from 1.0.0 in one checkout, must install the same modules. This needs git, npm, cargo and their indexes. The
tools have a separate environment too.
"""

import hashlib
import json
import lzma
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile
from datetime import date, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "release"
DIST = ROOT / "dist"
TOOLS = ("build>=1.6", "cyclonedx-bom>=7.5,<8")
FIRST = "d4b717a96c48"  # the commit of version 1.0.0
READY_SECONDS = 60
DEALS_DAYS = 400
NPM = ("--no-audit", "--no-fund", "--no-package-lock")
EXAMPLE = "node_modules/solisync/examples/play.js"


def run(*words: object, **options: object) -> str:
    """Return the output of a command; its failure ends the check."""
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}release check failed: {Path(str(words[0])).name} ended with {done.returncode}")
    return done.stdout


def check_what_is_written(version: str) -> None:
    """Check the changelog's newest section, the kept database of this version, and the days whose deals are chosen."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    first = re.search(r"^## (.+)$", text, re.M)
    last = max(file.name for file in (ROOT / "migrations").glob("[0-9]*.sql"))
    dump = ROOT / "tests" / "upgrading" / f"{version}.sql.xz"
    if not dump.exists() or f"'{last}'" not in lzma.decompress(dump.read_bytes()).decode():
        sys.exit(f"release check failed: {dump.relative_to(ROOT)} is not a database with {last}: make release-dump")
    if first is None or not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", first[1]):
        sys.exit(f"release check failed: CHANGELOG.md does not begin with the section {version} (year-month-day)")
    begin, digits = (ROOT / "solisync" / "klondike" / "daily.txt").read_text("ascii").split()[-2:]
    end = date.fromisoformat(begin) + timedelta(len(digits))
    if end - date.today() < timedelta(DEALS_DAYS):
        sys.exit(f"release check failed: daily.txt ends in less than {DEALS_DAYS} days, see CONTRIBUTING.md")


def environment(name: str) -> Path:
    """Make an empty virtual environment, and return its Python."""
    run(sys.executable, "-m", "venv", "--clear", "--without-pip", PLACE / name)
    return PLACE / name / "bin" / "python"


def install(python: Path, *what: object) -> None:
    """Install packages with their dependencies into the environment of this Python."""
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    run(sys.executable, "-m", "pip", f"--python={python}", "install", *quiet, *what)


def build(python: Path) -> Path:
    """Build the last commit into dist/, and return the wheel."""
    run("git", "archive", f"--output={PLACE / 'source.tar'}", "HEAD", cwd=ROOT)
    with tarfile.open(PLACE / "source.tar") as archive:
        archive.extractall(PLACE / "source", filter="data")
    shutil.rmtree(DIST, ignore_errors=True)
    date = run("git", "show", "--no-patch", "--format=%ct", "HEAD", cwd=ROOT).strip()
    environ = os.environ | {"SOURCE_DATE_EPOCH": date}
    run(python, "-m", "build", "--outdir", DIST, PLACE / "source", env=environ)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def build_client() -> Path:
    """Build the npm package into dist/, and return a folder in which it is installed."""
    package, game = PLACE / "source" / "clients" / "javascript", PLACE / "game"
    run("npm", "install", *NPM, cwd=package)
    run("npm", "pack", "--pack-destination", DIST, cwd=package)
    (archive,) = DIST.glob("*.tgz")
    game.mkdir()
    run("npm", "install", *NPM, archive, cwd=game)
    return game


def build_crates(version: str) -> Path:
    """Build the crates into dist/, and return a compiled example."""
    crates, built = PLACE / "source" / "clients" / "rust", PLACE / "source" / "build" / "rust"
    run("cargo", "package", "--quiet", "--allow-dirty", "--workspace", "--exclude", "solisync-bevy-example", cwd=crates)
    for name in ("solisync-client", "solisync-klondike"):
        shutil.copy(built / "package" / f"{name}-{version}.crate", DIST)
    run("cargo", "build", "--quiet", "--package", "solisync-client", "--example", "play", cwd=crates)
    return built / "debug" / "examples" / "play"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/ready", timeout=5) as answer:  # noqa: S310
            return answer.status == 200
    except OSError:
        return False


def smoke(bin: Path, version: str, game: Path, play: Path) -> None:
    """Start the installed service away from the checkout, play a session and the clients' examples, and stop it."""
    said = run(bin / "solisync", "--version", cwd="/").strip()
    if said != f"solisync {version}":
        sys.exit(f"release check failed: the installation is {said}")
    run(bin / "twistd", "solisync", "--help", cwd="/")
    url = f"http://127.0.0.1:{free_port()}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOLISYNC_", "PG", "PYTHON"))}
    environ = kept | {"JWT_SECRET": secrets.token_hex(32), "DATABASE_URL": ""}
    environ["SOLISYNC_AUTH_LIMIT"] = "60/60"  # the session alone reaches the default
    words = [bin / "solisync", f"--listen=tcp:{url.rpartition(':')[2]}:interface=127.0.0.1"]
    log = PLACE / "service.log"
    with log.open("w") as file:
        service = subprocess.Popen(
            [*words, f"--data-dir={PLACE / 'data'}"], cwd="/", env=environ, stdout=file, stderr=file
        )
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not is_ready(url):
            if service.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{log.read_text()}release check failed: the installed service isn't ready")
            time.sleep(0.1)
        print(run(bin / "solisync", "--smoke", url, cwd="/", env=environ).splitlines()[-1])
        print(f"the npm package plays: {run('node', EXAMPLE, url, 'device', cwd=game).strip()}")
        print(f"the crate plays: {run(play, url, 'crate', cwd=game).strip()}")
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(READY_SECONDS)


def upgrade(python: Path, version: str, wheel: Path) -> None:
    """Install 1.0.0 and then the last commit from one checkout, and check that only the wheel's modules are there."""
    checkout, head = PLACE / "checkout", run("git", "rev-parse", "HEAD", cwd=ROOT).strip()
    run("git", "clone", "--quiet", "--no-checkout", ROOT, checkout)
    for commit in (FIRST, head):
        run("git", "checkout", "--quiet", commit, cwd=checkout)
        install(python, "--no-deps", "--force-reinstall", checkout)
    said = run(python.parent / "solisync", "--version", cwd="/").strip()
    package = Path(run(python, "-c", "import solisync.service; print(solisync.__path__[0])", cwd="/").strip())
    found = {str(file.relative_to(package.parent)) for file in package.rglob("*.py")}
    wanted = {name for name in zipfile.ZipFile(wheel).namelist() if re.match(r"solisync/.*\.py$", name)}
    if said != f"solisync {version}" or found != wanted:
        sys.exit(f"release check failed: after an upgrade there are {said} and {sorted(found ^ wanted)}")
    print(f"an upgrade from 1.0.0 in one checkout installs {version}")


def main() -> None:
    """Run all checks; the first failure ends them with a line."""
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "solisync/__init__.py").read_text("utf-8"), re.M)[1]
    check_what_is_written(version)
    if missing := [program for program in ("git", "npm", "cargo") if shutil.which(program) is None]:
        sys.exit(f"release check failed: not installed: {', '.join(missing)}")
    if run("git", "status", "--porcelain", cwd=ROOT):
        sys.exit("release check failed: there are uncommitted changes, and a release is built from the last commit")
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    print(f"solisync {version}: building, and installing 250 MB in build/release, which takes some minutes", flush=True)
    tools, installed = environment("tools"), environment("installed")
    install(tools, "pip", *TOOLS)
    wheel = build(tools)
    install(installed, "--require-hashes", "--requirement", ROOT / "requirements.lock")
    install(installed, "--no-deps", wheel)
    run(sys.executable, "-m", "pip", f"--python={installed}", "check")
    smoke(installed.parent, version, build_client(), build_crates(version))
    bill = DIST / f"solisync-{version}.cdx.json"
    run(tools.parent / "cyclonedx-py", "environment", "--output-reproducible", "-o", bill, installed)
    packages = run(installed, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
    print(run(tools, ROOT / ".ci" / "licences.py", bill, packages, ROOT / "docs" / "licences.md"), end="")
    upgrade(installed, version, wheel)
    files = sorted(DIST.iterdir())
    digests = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (DIST / "SHA256SUMS").write_text("".join(digests))
    print("".join(digests) + f"{len(json.loads(bill.read_text())['components'])} packages; all checks passed")


if __name__ == "__main__":
    main()
