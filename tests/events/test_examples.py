"""The clients that docs/live.md shows receive their events, and stop at final reasons."""

import re
import subprocess

import pytest
from twisted.internet.threads import deferToThread

from tests.harness.concurrency import until
from tests.harness.constants import PATIENCE, ROOT
from tests.harness.event_streams import won

PAGE = (ROOT / "docs" / "live.md").read_text("utf-8")


def example(language):
    """Return the code in this language."""
    (code,) = re.findall(rf"```{language}\n(.+?)```", PAGE, re.S)
    return code


async def test_python_example_works(server, reactor):
    """The example reports each revision, opens its stream again, and returns the reason of a final end."""
    ann = await server.player()
    program, revisions = {}, []
    exec(example("python"), program)
    token = ann.tokens.access_token
    ended = deferToThread(program["listen"], f"127.0.0.1:{server.port}", lambda: token, revisions.append)
    await until(reactor, lambda: revisions == [None])
    await won(ann)
    await until(reactor, lambda: len(revisions) == 2)
    streams = server.service.parts.live_streams
    streams._end_all(streams._open, "slow")
    await until(reactor, lambda: len(revisions) == 3)
    assert revisions[1] == revisions[2]
    await ann.delete_account()
    assert await ended == "account_deleted"


@pytest.mark.needs("node")
async def test_javascript_example_works(server, reactor):
    """The example reports each revision, and returns the reason of a final end."""
    ann = await server.player()
    code = example("javascript").replace('"/api/events"', f'"{server.url}/api/events"')
    program = f"{code}\nlisten(() => '{ann.tokens.access_token}', console.log).then(console.log)"
    running = deferToThread(
        subprocess.run, ["node", "-e", program], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    streams = server.service.parts.live_streams
    await until(reactor, lambda: len(streams) == 1)
    await won(ann)
    await ann.delete_account()
    first, second, reason = (await running).stdout.split()
    assert (first, len(second), reason) == ("null", 32, "account_deleted")
