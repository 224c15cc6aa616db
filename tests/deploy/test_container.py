"""The duties of a command in a container: as the first process, it must clean up after all others."""

import os
import signal

import pytest
from twisted.internet.threads import deferToThread

from tests.harness.concurrency import wait_for
from tests.harness.constants import PATIENCE
from tests.harness.entry_points import SOLISYNC, start
from tests.harness.processes import PARENT, PROC, children, postmaster, processes_in, stat_fields
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


# Starts processes of a user until one has a certain process id.
OTHERS_FIRST = 'until [ "${last:-0}" -ge "$0" ]; do setpriv --reuid="$1" sleep 1000 & last=$!; done; shift; exec "$@"'


@pytest.mark.needs("unshare", "setpriv")
async def test_service_starts_where_another_process_has_the_id_of_the_killed_server(launch, reactor, place):
    """After a kill of a container, the next one has the same few ids again, for example for more workers."""
    data = place / "data"
    words = SOLISYNC
    for count in (1, 3, 2):
        process = start(launch, *NAMESPACE, *words, "--workers", count, data_dir=data)
        await ready(reactor, process.client())
        os.kill(child(process.pid), signal.SIGKILL)
        await deferToThread(process.popen.wait, PATIENCE)
        user = (data / "postgresql").stat().st_uid
        words = ("sh", "-c", OTHERS_FIRST, postmaster(data), user, *SOLISYNC)
