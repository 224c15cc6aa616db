"""The dashboard and the alerts of deploy/ ask for what the service tells; tests/deploy tries them with Prometheus."""

import json
import re

import pytest
import yaml

from solisync.commands.smoke import smoke
from tests.harness.constants import ROOT
from tests.harness.postgres import truncate
from tests.harness.processes import free_port
from tests.harness.scraping import DOCUMENTED, Scraped
from tests.promql import DASHBOARD, named, panels, queries, rules

TOLD_BY_PROMETHEUS = {"up", "job", "instance"}
NOT_SHOWN = set()  # metrics that the dashboard leaves out, each for a reason
DOCS = (ROOT / "docs" / "metrics.md").read_text("utf-8")
RULE_TESTS = ROOT / "tests" / "deploy" / "solisync.rules.test.yml"
ALERT_ROW = re.compile(r"^\| `(Solisync\w+)` \|", re.MULTILINE)
QUESTIONS = re.findall(r"\| `(.+)` \|$", DOCS.partition("\n## Questions\n")[2].partition("\n## ")[0], re.MULTILINE)


async def after_a_session(serve, reactor, dsn):
    """What a scrape has after a whole session and a request that took no route: the labels of each sample, by name."""
    truncate(dsn)
    port = free_port()
    process = await serve(dsn, SOLISYNC_METRICS_LISTEN=f"tcp:{port}:interface=127.0.0.1")
    await smoke(process.url, reactor)
    await process.ask("GET", "/nowhere")
    found = {}
    for name, labels in await Scraped(process, port).numbers():
        found.setdefault(name, []).append(dict(labels))
    return found


@pytest.mark.limit(60)
async def test_every_expression_names_what_there_is(serve, reactor, shared_dsn):
    """Its metrics and labels are in a scrape, and every value or pattern for a label fits a sample that is there.

    So it is with the answers to the questions in docs/metrics.md.
    """
    samples = await after_a_session(serve, reactor, shared_dsn)
    assert QUESTIONS
    for expression in [expression for expression, _ in queries()] + [rule["expr"] for rule in rules()] + QUESTIONS:
        told = named(expression)
        assert told.metrics, expression
        assert told.metrics <= samples.keys() | TOLD_BY_PROMETHEUS, expression
        labels = {label for name in told.metrics for sample in samples.get(name, []) for label in sample}
        assert told.groups <= labels | TOLD_BY_PROMETHEUS, expression
        for metric, label, pattern in told.matchers:
            values = {sample.get(label) for sample in samples.get(metric, [])}
            if label == "status":  # nothing has failed
                assert None not in values, expression
            elif label not in TOLD_BY_PROMETHEUS:
                assert any(re.fullmatch(pattern, value) for value in values), (expression, label)


def test_every_metric_is_shown():
    """Each metric of docs/metrics.md is in the dashboard, unless it is left out on purpose."""
    documented = {name for name, _ in DOCUMENTED.findall(DOCS)}
    shown = {name.removesuffix("_bucket") for expression, _ in queries() for name in named(expression).metrics}
    assert shown == documented - NOT_SHOWN


def test_legends_name_what_tells_the_lines_apart():
    """A legend has exactly the labels that its expression groups by; one without groups shows one line for a node."""
    for expression, legend in queries():
        used = set(re.findall(r"{{(\w+)}}", legend))
        if legend:
            assert used == (named(expression).groups - {"le"} or used & {"instance"}), expression


def test_the_dashboard_is_in_order():
    """Panels have numbers of their own, lie side by side without gaps or overlaps, and ask the chosen Prometheus."""
    everything = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in everything)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert sorted(cells) == [(x, y) for x in range(24) for y in range(max(y for _, y in cells) + 1)]
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            selected = [label for _, label, _ in named(target["expr"]).matchers]
            assert selected.count("job") == selected.count("instance") > 0, target["expr"]


def test_every_alert_is_documented_and_tried():
    """docs/metrics.md says what to do about each, and promtool is told when each fires and when it doesn't."""
    names = [rule["alert"] for rule in rules()]
    assert ALERT_ROW.findall(DOCS) == names
    cases = [
        case for test in yaml.safe_load(RULE_TESTS.read_text("utf-8"))["tests"] for case in test["alert_rule_test"]
    ]
    for fires in (True, False):
        assert {case["alertname"] for case in cases if bool(case["exp_alerts"]) is fires} == set(names)
    for rule in rules():
        mentioned = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert mentioned <= (named(rule["expr"]).groups or TOLD_BY_PROMETHEUS), rule["alert"]
