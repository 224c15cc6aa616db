"""The limits of processes that read uploaded replays: priority, memory, processor time, privileges."""

import ctypes
import gc
import os
import pwd
import resource
import signal
import time
from contextlib import suppress

MEMORY_BYTES = 256 * 2**20

_PR_SET_NO_NEW_PRIVS = 38
_NOBODY = 65_534  # if no user has that name


def confine(priority: int) -> None:
    """Set the limits of this process, and its priority, a nice value. Call this after loading all modules.

    This also switches the garbage collector off, because it would search many tuples for cycles that don't exist.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service handles Ctrl-C
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(priority, os.getpriority(os.PRIO_PROCESS, 0)))
    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # not every platform supports this
            resource.setrlimit(limit, (most, most))
    _give_up_privileges()
    gc.disable()


def allow(seconds: float) -> None:
    """Make the kernel send SIGXCPU after this many more seconds of processor time, rounded up.

    The kernel counts by samples, which on a busy machine may be more than the time that it reports to the process.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))


def _give_up_privileges() -> None:
    """Run as `nobody` instead of root, and let no program gain privileges, as far as the platform allows."""
    with suppress(AttributeError):  # only Linux has prctl
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid():
        return
    try:
        user = pwd.getpwnam("nobody")
        uid, gid = user.pw_uid, user.pw_gid
    except KeyError:
        uid = gid = _NOBODY
    with suppress(OSError):  # a container's root may lack the capability, or its namespace may lack this user
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
