"""The bounds of processes that read uploaded replays: priority, memory, processor time, privileges."""

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
_NOBODY = 65_534  # where no user has that name


def confine(priority: int) -> None:
    """Set the bounds of this process, and its priority, a nice value. Call it once all modules are loaded.

    The garbage collector is off from then on: there are no cycles, and many tuples to look through.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service to act on
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, max(priority, os.getpriority(os.PRIO_PROCESS, 0)))
    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # not every platform can
            resource.setrlimit(limit, (most, most))
    _give_up_privileges()
    gc.disable()


def allow(seconds: float) -> None:
    """Have the kernel send SIGXCPU after so many seconds more of processor time, rounded up, as it counts them.

    That is by samples, which on a busy machine may be more than the time that a process is told of.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))


def _give_up_privileges() -> None:
    """Never gain any by running a program, and be nobody instead of root, as far as the platform allows."""
    with suppress(AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid():
        return
    try:
        user = pwd.getpwnam("nobody")
        uid, gid = user.pw_uid, user.pw_gid
    except KeyError:
        uid = gid = _NOBODY
    with suppress(OSError):  # a container's root may lack the capability, or its namespace this user
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
