"""Check the JavaScript of the repository with prettier, eslint and tsc, or format it: `javascript.py check|format`.

The versions are in .ci/javascript. npm installs them beside that file once, and again after a change of the versions.
Without npm, this says so and checks nothing.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".ci" / "javascript"
BIN = TOOLS / "node_modules" / ".bin"
WIDTH = "--print-width=120"  # as ruff's
SCRIPTS = "{.ci,bench,clients,deploy,docs,solisync,tests}/**/*.{js,mjs}"  # but for node_modules
GENERATED = "!**/console_facts.js"  # by `make docs`
PROJECTS = (
    "tests/pages/tsconfig.json",
    "tests/pages/tsconfig.worker.json",
    "clients/javascript/tsconfig.json",
)


def install(npm: str) -> None:
    """Install the tools, unless these versions are installed."""
    stamp, lock = TOOLS / "node_modules" / "installed.json", TOOLS / "package-lock.json"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    print("Installing prettier, eslint and typescript into .ci/javascript: 60 MB, once.", flush=True)
    if subprocess.run([npm, "ci", "--silent"], cwd=TOOLS, check=False).returncode:
        sys.exit("npm could not install the tools that check JavaScript.")
    shutil.copy(lock, stamp)


def commands(*, write: bool) -> list[list[object]]:
    """Return the commands that format all scripts, or check them."""
    if write:
        return [[BIN / "prettier", WIDTH, "--log-level=warn", "--write", SCRIPTS, GENERATED]]
    types = ["--noEmit", "--emitDeclarationOnly", "false", "--typeRoots", TOOLS / "node_modules" / "@types"]
    return [
        [BIN / "prettier", WIDTH, "--log-level=warn", "--check", SCRIPTS, GENERATED],
        [BIN / "eslint", "--config", TOOLS / "eslint.config.js", SCRIPTS],
        *([BIN / "tsc", "--project", project, *types] for project in PROJECTS),
    ]


def main(what: str) -> None:
    """Run all commands, and fail if one fails."""
    npm = shutil.which("npm")
    if npm is None:
        print("npm is missing, so the JavaScript is not checked.")
        return
    install(npm)
    failed = [subprocess.run(command, cwd=ROOT, check=False).returncode for command in commands(write=what == "format")]
    sys.exit(max(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
