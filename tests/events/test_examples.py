"""The client that docs/live.md shows in Python; tests/test_tutorial.py compiles the one in Rust."""

import re

from twisted.internet.threads import deferToThread

from tests.harness.concurrency import until
from tests.harness.constants import ROOT
from tests.harness.event_streams import won

PAGE = (ROOT / "docs" / "live.md").read_text("utf-8")


async def test_python_example_works(server, reactor):
    """The example reports each revision, opens its stream again, and returns the reason of a final end."""
    ann = await server.player()
    program, revisions = {}, []
    exec(re.search(r"```python\n(.+?)```", PAGE, re.S)[1], program)
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
