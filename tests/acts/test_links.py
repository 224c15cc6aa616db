"""Acts, recovery codes and reset links: docs/administration.md "Players"."""

from datetime import timedelta

from solisync.acts import players
from solisync.rules.recovery import CODES
from tests.harness.constants import PASSWORD


async def test_suspension_deletes_the_link_and_keeps_the_codes(server, acting):
    """After the suspension, only the player's own codes may give access."""
    client = await server.player("ann")
    user_id = (await client.me()).id
    await client.make_recovery_codes(PASSWORD)
    done = await acting.perform(players.link, user_id, token_digest=b"x" * 32)
    assert done.result.utcoffset() == timedelta(0)
    await acting.perform(players.suspend, user_id)
    counts = "SELECT (SELECT count(*) FROM recovery_codes), (SELECT count(*) FROM reset_tokens)"
    assert server.sql(counts) == [(CODES, 0)]
