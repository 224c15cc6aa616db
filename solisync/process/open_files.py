"""How many files and connections this process may have open."""

import resource

RESERVED = 512  # for what else is open: connections of requests and of the database, logs, pipes


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # a hard limit that the system itself doesn't allow
        return soft
    return hard


def room_for_streams(wanted: int, limit: int) -> int:
    """How many streams a process may have with this limit of open files, of those `wanted`."""
    if limit == resource.RLIM_INFINITY:
        return wanted
    return max(0, min(wanted, (limit - RESERVED) // 2))
