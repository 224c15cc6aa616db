"""Install solisync, editable, with an extra, into .venv, unless it is installed: `environment.py [EXTRA]`.

This compares the content of setup.py's dependencies and entry points. A file that was only rewritten installs nothing,
so an installed environment works without a network. If pip fails but the installed packages can be imported, that is
only a warning.
"""

import ast
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
SIZES = {"": "190", "test": "350", "pages": "500", "bench": "400", "lock": "200"}  # MB
IMPORTED = {
    "": "solisync.commands.main",
    "test": "pytest",
    "pages": "playwright",
    "bench": "fastapi",
    "lock": "piptools",
}


def needed(extra):
    """A digest of the requirements of an extra."""
    tree = ast.parse((ROOT / "setup.py").read_text("utf-8"))
    (call,) = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setup"
    ]
    given = {word.arg: word.value for word in call.keywords}
    wanted = [ast.literal_eval(given[name]) for name in ("install_requires", "entry_points")]
    wanted.append(ast.literal_eval(given["extras_require"]).get(extra))
    return hashlib.sha256(repr([wanted, sys.version_info[:2]]).encode()).hexdigest()


def main(extra):
    """Install missing packages, and return the exit status."""
    stamp, wanted = ENVIRONMENT / f"installed{extra and '-'}{extra}", needed(extra)
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return 0
    print(f"Installing into .venv: about a minute, about {SIZES[extra]} MB, once.", flush=True)
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
    what = f"{ROOT}[{extra}]" if extra else str(ROOT)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    pip = [PYTHON, "-m", "pip", "install", *quiet, "--editable", what]
    done = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == 0:
        # pip would compile on a single core. Files that can't be compiled are for other versions of Python.
        compiling = [PYTHON, "-m", "compileall", "-qq", "-j", "0", ENVIRONMENT / "lib"]
        subprocess.run(compiling, check=False)
        for each in {"", extra}:
            (ENVIRONMENT / f"installed{each and '-'}{each}").write_text(needed(each))
        return 0
    modules = f"import {IMPORTED['']}, {IMPORTED[extra]}"
    if stamp.exists() and subprocess.run([PYTHON, "-c", modules], capture_output=True, check=False).returncode == 0:
        reason = ([line for line in done.stdout.splitlines() if "ERROR" in line] or ["it gave no reason"])[-1]
        print(f"warning: pip failed, continuing with the installed packages: {reason}", file=sys.stderr)
        return 0
    sys.stderr.write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or [""]))
