"""The cores that this process may use: those of its affinity, as far as the CPU limits of its cgroups allow."""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process can keep busy, at least 1; `root` has the directories proc and sys."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *map(math.ceil, _limits(root))]))


def _limits(root: Path) -> Iterator[float]:
    """Yield the limits of this process's cgroup and of those around it, in cores.

    A container may see the path that its cgroup has on the host, although only that cgroup is mounted, as the top.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, files = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):  # version 1
            top, files = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        cgroup = PurePosixPath(path.lstrip("/"))
        for each in (cgroup, *cgroup.parents):
            match " ".join(_read(top / each / file) for file in files).split():
                case [quota, period] if quota.isdigit():  # neither "max" nor "-1"
                    yield int(quota) / int(period)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
