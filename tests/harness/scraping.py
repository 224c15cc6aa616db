"""The service's metrics, read like Prometheus."""

import re

from prometheus_client.parser import text_string_to_metric_families
from twisted.internet.task import deferLater

from tests.harness.http_requests import http_client

DOCUMENTED = re.compile(r"^\| `(solisync_\w+)`(?: \(([\w, `]+)\))? \|", re.MULTILINE)  # a row of docs/metrics.md


class Scraped:
    """A service with a listener for metrics."""

    def __init__(self, process, port):
        self.process = process
        self.url = f"http://127.0.0.1:{port}/metrics"

    async def numbers(self):
        """All samples, by name and labels."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in await self.families()
            for sample in family.samples
        }

    async def families(self):
        """All metric families, parsed."""
        response = await http_client(keep=False).get(self.url)
        assert response.code == 200
        assert response.headers.getRawHeaders("content-type")[0].startswith("text/plain")
        return list(text_string_to_metric_families(await response.text()))

    async def value(self, name, **labels):
        """The value of a sample; 0 without that sample."""
        return (await self.numbers()).get((f"solisync_{name}", frozenset(labels.items())), 0)

    async def added(self, before, name, **labels):
        """The increase of a sample since `before`, a result of `numbers`."""
        key = (f"solisync_{name}", frozenset(labels.items()))
        return await self.value(name, **labels) - before.get(key, 0)

    async def reaches(self, wanted, name, **labels):
        """Wait until a sample has this value: gauges are set only every second."""
        from twisted.internet import reactor

        while await self.value(name, **labels) != wanted:
            await deferLater(reactor, 0.05)
