"""Every expression of the dashboard, the alerts and docs/metrics.md names metrics and labels that a scrape has."""

import re

import pytest
from twisted.internet.task import deferLater

from solisync.commands.smoke import smoke
from tests.deploy.promql import NOT_EVERYWHERE, named, panels, queries, rules
from tests.harness.console import Console
from tests.harness.constants import ROOT
from tests.harness.postgres import truncate
from tests.harness.processes import free_port
from tests.harness.scraping import Scraped

TOLD_BY_PROMETHEUS = {"up", "job", "instance"}
DOCS = (ROOT / "docs" / "metrics.md").read_text("utf-8")
QUESTIONS = re.findall(r"\| `(.+)` \|$", DOCS.partition("\n## Questions\n")[2].partition("\n## ")[0], re.MULTILINE)


async def after_a_session(serve, reactor, dsn):
    """The labels of each sample, by name, after a whole session, a request without a route, and a refused admin."""
    truncate(dsn)
    port, admin_port = free_port(), free_port()
    listen = {"SOLISYNC_METRICS_LISTEN": port, "SOLISYNC_ADMIN_LISTEN": admin_port}
    process = await serve(dsn, **{name: f"tcp:{number}:interface=127.0.0.1" for name, number in listen.items()})
    await smoke(process.url, reactor)
    await process.ask("GET", "/nowhere")
    await Console(admin_port, None).ask("POST", "/session", {"name": "nobody", "code": "123456"})
    await deferLater(reactor, 1.5)  # gauges are set once a second
    found = {}
    for name, labels in await Scraped(process, port).numbers():
        found.setdefault(name, []).append(dict(labels))
    return found


@pytest.mark.long
async def test_every_expression_names_existing_metrics_and_labels(serve, reactor, shared_dsn):
    """Every value or pattern for a label fits a sample. The answers to questions in docs/metrics.md are included."""
    samples = await after_a_session(serve, reactor, shared_dsn)
    assert QUESTIONS
    for expression in [expression for expression, _ in queries()] + [rule["expr"] for rule in rules()] + QUESTIONS:
        told = named(expression)
        assert told.metrics, expression
        assert told.metrics <= samples.keys() | TOLD_BY_PROMETHEUS | NOT_EVERYWHERE, expression
        labels = {label for name in told.metrics for sample in samples.get(name, []) for label in sample}
        assert told.groups <= labels | TOLD_BY_PROMETHEUS, expression
        for metric, label, pattern in told.matchers:
            values = {sample.get(label) for sample in samples.get(metric, [])}
            if label == "status":  # nothing has failed
                assert None not in values, expression
            elif label not in TOLD_BY_PROMETHEUS:
                assert any(re.fullmatch(pattern, value) for value in values), (expression, label)


def test_legends_name_the_labels_of_their_groups():
    """An expression without groups shows one line for a node."""
    for expression, legend in queries():
        used = set(re.findall(r"{{(\w+)}}", legend))
        if legend:
            assert used == (named(expression).groups - {"le"} or used & {"instance"}), expression


def test_every_panel_filters_by_the_chosen_instances():
    """The job and the instances are chosen at the top of the dashboard."""
    for panel in panels():
        for target in panel["targets"]:
            selected = [label for _, label, _ in named(target["expr"]).matchers]
            assert selected.count("job") == selected.count("instance") > 0, target["expr"]


def test_alert_texts_use_labels_that_the_alert_has():
    """A label comes from the groups of the expression, or is one of Prometheus' own."""
    for rule in rules():
        mentioned = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert mentioned <= (named(rule["expr"]).groups or TOLD_BY_PROMETHEUS), rule["alert"]
