"""The number of cores that a process may use, and that bcrypt uses (docs/operations.md "Several processes")."""

import os
import sys

import pytest

from solisync.process.cores import usable_cores
from tests.harness.processes import run

CORES = len(os.sched_getaffinity(0))
WIDTH = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from twisted.internet import reactor
from solisync.service import DNS_THREADS, make_service
from solisync.settings.settings import ServingSettings
environ = {"JWT_SECRET": "s" * 32, "SOLISYNC_DATA_DIR": sys.argv[1]}
make_service(ServingSettings.from_environ(environ), reactor)
print(reactor.getThreadPool().max - DNS_THREADS)
"""


@pytest.fixture
def many_cores(monkeypatch):
    """An affinity of eight cores, more than most machines of tests have."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


def machine(place, cgroup, **files):
    """Make the directories proc and sys, with the line of the process's cgroup, and files by their paths."""
    for name, text in {"proc/self/cgroup": cgroup, **files}.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return place


def test_affinity_bounds_the_cores(tmp_path):
    """Without cgroups, the process may use the cores of its affinity."""
    assert usable_cores(tmp_path) == CORES


def test_bcrypt_is_as_wide_as_the_affinity(tmp_path):
    """A service that may run on one core hashes one password at a time."""
    done = run(sys.executable, "-c", WIDTH, tmp_path)
    assert (done.out, done.err, done.status) == (["1"], [], 0)


@pytest.mark.parametrize(
    ("limit", "cores"), [("200000 100000", 2), ("150000 100000", 2), ("5000 100000", 1), ("max 100000", 8)]
)
def test_cpu_limit_of_a_container_bounds_the_cores(many_cores, tmp_path, limit, cores):
    """The container sees its own cgroup as the top. Part of a core counts as a core."""
    assert usable_cores(machine(tmp_path, "0::/", **{"sys/fs/cgroup/cpu.max": limit})) == cores


def test_smallest_limit_of_the_cgroups_around_counts(many_cores, tmp_path):
    """A unit's CPUQuota= holds, and so does its slice's."""
    files = {"sys/fs/cgroup/a.slice/b c.service/cpu.max": "500000 100000", "sys/fs/cgroup/a.slice/cpu.max": "3000 1000"}
    assert usable_cores(machine(tmp_path, "0::/a.slice/b c.service", **files)) == 3


@pytest.mark.parametrize(("quota", "cores"), [("250000", 3), ("-1", 8)])
def test_limit_of_version_1_bounds_the_cores(many_cores, tmp_path, quota, cores):
    """Docker on older hosts: the path is the host's, the container's own cgroup is mounted as the top."""
    files = {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota, "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}
    assert usable_cores(machine(tmp_path, "9:name=systemd:/docker/1f\n1:cpu,cpuacct:/docker/1f", **files)) == cores
