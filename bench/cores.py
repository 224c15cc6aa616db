"""Cores: a service, PostgreSQL and the load generator each stay on cores of their own while services are compared.

Otherwise the kernel decides again and again which of them share a core, and a ratio depends on that.
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
    """Divide these cores: one is the service's, and on two, PostgreSQL shares the other with the generator.

    The generator needs a part of a core. If there is only one core, it is for all.
    """
    if len(cores) < 2:
        return Layout(cores, cores, cores)
    first, *others = sorted(cores)
    last = {others[-1]}
    return Layout({first}, set(others[:-1]) or last, last)


def pin(pids: Iterable[int], cores: set[int]) -> None:
    """Let processes run on these cores only, with all their threads; new threads and children inherit that.

    Nothing happens where the system doesn't allow it.
    """
    for pid in pids:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)


@contextmanager
def pinned(pids: Callable[[], tuple[list[int], list[int], list[int]]]) -> Iterator[None]:
    """Pin processes to the cores of a layout while this lasts.

    `pids` lists the processes that each part of a layout is for.
    """
    usable = os.sched_getaffinity(0)
    for group, cores in zip(pids(), layout(usable), strict=True):
        pin(group, cores)
    yield
    for group in pids():
        pin(group, usable)
