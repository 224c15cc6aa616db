"""What operators see of guests, and commands about guests: docs/administration.md "Players"."""

import pytest

from solisync.errors import Forbidden

WARNING = "'{}' is a guest without a key, which can't sign in again"


@pytest.fixture
def guest(server):
    """Begin a guest, perhaps with a key; return its username."""

    async def guest(key=None):
        client = server.client()
        await client.guest(key)
        return (await client.me()).username

    return guest


@pytest.mark.parametrize("order", ["name", "registered"])
async def test_list_of_guests_has_no_players(administrate, server, guest, order):
    """The list of players has both."""
    await server.player("ann")
    name = await guest()
    listed = []
    for more in (["--guests"], []):
        done = await administrate("users", "list", "--order", order, *more, "--json")
        listed.append([record["username"] for record in done.records])
    assert (listed[0], sorted(listed[1])) == ([name], ["ann", name])


async def test_guests_are_counted_apart(administrate, server, guest):
    """The number of players in the status doesn't include guests."""
    await server.player("ann")
    await guest()
    status = (await administrate("status", "--json")).json
    assert (status["players"], status["guests"]) == (1, 1)


async def test_facts_of_a_player_show_whether_it_is_a_guest(administrate, server, guest):
    await server.player("ann")
    shown = [(await administrate("users", "show", name, "--json")).json["guest"] for name in ("ann", await guest())]
    assert shown == [False, True]


@pytest.mark.parametrize("words", [("users", "suspend"), ("sessions", "revoke")], ids=" ".join)
async def test_ending_the_sessions_of_a_guest_prints_a_warning(administrate, server, guest, words):
    """A guest without a key has no way back; for another guest or a player there is no warning."""
    await server.player("ann")
    name = await guest()
    assert WARNING.format(name) in " ".join((await administrate(*words, name, "--yes")).progress)
    for other in ("ann", await guest("k" * 22)):
        assert (await administrate(*words, other, "--yes")).progress == []


async def test_guest_gets_no_reset_link(administrate, server, guest):
    """A link would set a password for an account that has no username to log in with."""
    await administrate("users", "link", await guest(), fails=Forbidden)
    assert server.sql("SELECT count(*) FROM reset_tokens") == [(0,)]
