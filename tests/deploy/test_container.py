"""The duties of a command in a container: as the first process, it must clean up after all others."""

import os
import signal

import pytest
from twisted.internet.threads import deferToThread

from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.processes import PARENT, PROC, children, processes_in, stat_fields
from tests.harness.service import ready

AS_WE_ARE = () if os.geteuid() == 0 else ("--map-current-user",)
NAMESPACE = ("unshare", *AS_WE_ARE, "--pid", "--fork", "--mount-proc")


def child(pid):
    """Return the only child of a process, once it has one."""
    (found,) = wait_for(lambda: children(pid))
    return found


@pytest.mark.needs("unshare")
@pytest.mark.parametrize("count", [1, 2])
async def test_service_works_as_the_first_process_of_a_container(launch, reactor, place, count):
    """As process 1 it serves, restarts a killed database, and ends with status 0 on SIGTERM."""
    words = (*NAMESPACE, *SOLISYNC, "--workers", count)
    process = start(launch, *words, data_dir=place / "data")
    await ready(reactor, process.client())
    first = child(process.pid)
    (numbers,) = [line for line in (PROC / str(first) / "status").read_text().splitlines() if line.startswith("NSpid")]
    assert numbers.split()[-1] == "1"
    (server,) = [pid for pid in processes_in(place / "data") if int(stat_fields(PROC / str(pid))[PARENT]) == first]
    os.kill(server, signal.SIGKILL)
    await deferToThread(wait_for, lambda: "restarting it" in process.log)
    await ready(reactor, process.client())
    os.kill(first, signal.SIGTERM)
    assert await deferToThread(process.popen.wait, PATIENCE) == 0
    assert "Traceback" not in process.log
    assert not processes_in(place / "data")
