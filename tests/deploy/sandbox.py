"""Run a command under the restrictions of solisync.service, as far as that can be done without systemd.

    python -m tests.deploy.sandbox STATE_DIRECTORY COMMAND…

As root the command also gets the restrictions of the file system, and runs as the user nobody. Namespaces of users and
devices are not imitated.
"""

import ctypes
import os
import pwd
import subprocess
import sys
from pathlib import Path

from tests.deploy.units import SERVICE, settings

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
CLONE_NEWNS, CLONE_NEWIPC = 0x20000, 0x8000000
PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN = 38, 65, 1
SCMP_ACT_ALLOW, SCMP_ACT_EPERM = 0x7FFF0000, 0x00050001


def groups():
    """Return the system calls in each group that systemd knows."""
    listed = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, check=True)
    found = {}
    for line in listed.stdout.decode().splitlines():
        word = line.strip()
        if word and not word.startswith("#"):
            if not line.startswith(" "):
                members = found.setdefault(word, [])
            else:
                members.append(word)
    return found


def allowed(lines):
    """Return the names of the system calls that these lines of SystemCallFilter= allow."""
    known = groups()

    def expand(word):
        if not word.startswith("@"):
            return {word}
        return set().union(*map(expand, known[word]))

    names = set()
    for line in lines:
        words = set().union(*map(expand, line.removeprefix("~").split()))
        names = names - words if line.startswith("~") else names | words
    return names


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, options=None):
    encoded = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    check(LIBC.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]), f"mount {target}")


def open_the_way(directory):
    """Let every user reach this directory, in this process' view of the files: Python may be in a home directory."""
    for ancestor in reversed(Path(directory).parents):
        if not ancestor.stat().st_mode & 0o001:
            original = os.open(directory, os.O_PATH)
            mount("tmpfs", ancestor, "tmpfs", 0, "mode=755")
            os.makedirs(directory)
            mount(f"/proc/self/fd/{original}", directory, None, MS_BIND)


def close_file_system(unit, state_directory):
    """Apply ProtectSystem=strict except for the state directory, PrivateIPC= and ProcSubset=pid."""
    check(LIBC.unshare(CLONE_NEWNS | CLONE_NEWIPC), "unshare")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    open_the_way(sys.base_prefix)
    mount(state_directory, state_directory, None, MS_BIND)
    if unit["ProtectSystem"] == ["strict"]:
        mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    mount("tmpfs", "/var/tmp", "tmpfs", 0, "mode=1777")  # PrivateTmp=; not /tmp, where the tests have their places
    mount("proc", "/proc", "proc", 0, f"subset={unit['ProcSubset'][0]},hidepid={unit['ProtectProc'][0]}")
    nobody = pwd.getpwnam("nobody")
    os.chown(state_directory, nobody.pw_uid, nobody.pw_gid)
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def filter_calls(names):
    """Fail every other system call with EPERM, here and in all children."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(SCMP_ACT_EPERM)))
    for name in names:
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            check(seccomp.seccomp_rule_add(context, ctypes.c_uint32(SCMP_ACT_ALLOW), number, 0), name)
    check(seccomp.seccomp_load(context), "seccomp_load")


def main(state_directory, *command):
    unit = settings(SERVICE)
    names = allowed(unit["SystemCallFilter"])
    if os.geteuid() == 0:
        close_file_system(unit, state_directory)
    if unit["NoNewPrivileges"] == ["yes"]:
        check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        check(LIBC.prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0), "no memory to write and execute")
    os.umask(int(unit["UMask"][0], 8))
    filter_calls(names)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
