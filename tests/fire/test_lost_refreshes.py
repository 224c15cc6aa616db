"""Refreshes with lost requests or answers: no player has to log in again."""

from contextlib import suppress
from random import Random

import pytest

from solisync.rules.accounts import TokenPair
from tests.harness.concurrency import gather
from tests.harness.http_requests import http_client, new_address
from tests.harness.players import players

AT_ONCE = 8


class LossyNetwork:
    """A network that passes requests on, each from its own address, and loses half of the answers.

    Of these, half lose their request already.
    """

    def __init__(self, seed):
        self._random = Random(seed)
        self._http = http_client(keep=True)
        self.lost = self.unsent = 0

    async def request(self, method, url, headers, **options):
        lost = self._random.random() < 0.5
        self.lost += lost
        if lost and self._random.random() < 0.5:
            self.unsent += 1
            raise ConnectionError
        headers = {**headers, "X-Forwarded-For": new_address()}
        response = await self._http.request(method, url, headers=headers, **options)
        if lost:
            await response.content()
            raise ConnectionError
        return response


@pytest.mark.short
async def test_lost_answers_of_refreshes_end_no_session(server, full, figure):
    """Each client repeats a refresh until it has the answer.

    In the end each session has one live token: the client's.
    """
    count, each = (250, 40) if full else (10, 30)
    network = LossyNetwork(20261124)
    clients = []
    for _, refresh_token, access_token in players(server.dsn, count):
        clients.append(server.client())
        clients[-1]._http = network
        clients[-1].tokens = TokenPair(access_token, refresh_token)

    async def refresh_often(client):
        for _ in range(each):
            with suppress(ConnectionError):
                await client.refresh()

    await gather(AT_ONCE, refresh_often, clients)
    assert server.sql("SELECT count(*), count(DISTINCT user_id) FROM refresh_tokens") == [(count, count)]
    assert network.lost > count * each // 3
    for client in clients:  # ApiError if the session had ended
        await _until_answered(client)
    assert server.sql("SELECT count(*), count(DISTINCT user_id) FROM refresh_tokens") == [(count, count)]
    figure(f"{count * each} refreshes, {network.lost} answers lost, {network.unsent} of them unsent: no login lost")


async def _until_answered(client):
    while True:
        try:
            return await client.refresh()
        except ConnectionError:
            continue
