"""Cores: during comparisons, a service, PostgreSQL and the load generator each stay on separate cores.

Otherwise the kernel keeps moving them between shared cores, which changes the ratios.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple


class Layout(NamedTuple):
    """The cores of the service, of PostgreSQL and of the load generator."""

    service: set[int]
    database: set[int]
    generator: set[int]


def layout(cores: set[int]) -> Layout:
    """Divide these cores: the service gets one. If there are two, PostgreSQL and the generator share the other.

    The generator needs only part of a core. If there is only one core, all share it.
    """
    if len(cores) < 2:
        return Layout(cores, cores, cores)
    first, *others = sorted(cores)
    last = {others[-1]}
    return Layout({first}, set(others[:-1]) or last, last)


def pin(pids: Iterable[int], cores: set[int]) -> None:
    """Pin processes and all their threads to these cores; new threads and children inherit that.

    This does nothing if the system doesn't allow it.
    """
    for pid in pids:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)


@contextmanager
def pinned(pids: Callable[[], tuple[list[int], list[int], list[int]]]) -> Iterator[None]:
    """Pin processes to the cores of a layout during this context.

    `pids` lists the processes for each part of the layout.
    """
    usable = os.sched_getaffinity(0)
    for group, cores in zip(pids(), layout(usable), strict=True):
        pin(group, cores)
    yield
    for group in pids():
        pin(group, usable)
