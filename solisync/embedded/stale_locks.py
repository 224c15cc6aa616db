"""The lock files that a killed server has left, whose process id another process has by now.

PostgreSQL doesn't start if the process in its lock file lives. After a kill of a container, the next one has the same
few process ids again, so a worker may have the id of the killed server.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from . import owned_files


def take_over(cluster: Path, locks: Iterable[Path]) -> None:
    """Write the id of this process, the server's parent, into lock files whose process is no server of `cluster`.

    Call this with the lock of the data directory, and after the server has refused to start: then none but a server
    that is ending may still run. PostgreSQL takes a lock file with its parent's id for a leftover, and still looks for
    processes of a killed server in the shared memory that the file names.
    """
    for lock in locks:
        with suppress(OSError):
            first, end, rest = owned_files.read(lock).partition("\n")
            if not (first.isdecimal() and _may_be_server(int(first), cluster)):
                owned_files.write(lock, f"{os.getpid()}{end}{rest}")


def _may_be_server(pid: int, cluster: Path) -> bool:
    """Whether a process is a server of `cluster`; also True if the process is gone, or this system has no /proc."""
    try:
        program, *words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.path.basename(program) == b"postgres" and os.path.samefile(words[words.index(b"-D") + 1], cluster)
    except OSError:
        return True
    except ValueError:  # no -D
        return False
