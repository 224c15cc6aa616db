"""The dashboard and the alerts of deploy/ fit docs/metrics.md; tests/deploy tries their expressions."""

import json
import re

import yaml

from solisync.web.route import Json
from tests.harness.constants import ROOT
from tests.harness.error_codes import table
from tests.harness.scraping import DOCUMENTED

DASHBOARD = ROOT / "deploy" / "grafana" / "solisync.json"
RULES = ROOT / "deploy" / "prometheus" / "solisync.rules.yml"
RULE_TESTS = ROOT / "tests" / "deploy" / "solisync.rules.test.yml"
DOCS = (ROOT / "docs" / "metrics.md").read_text("utf-8")
ALERT_ROW = re.compile(r"^\| `(Solisync\w+)` \|", re.MULTILINE)
NOT_SHOWN = set()  # metrics that the dashboard leaves out, each for a reason


def named(text):
    """Return the metrics that a text names; a histogram by its name in docs/metrics.md."""
    return {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"\bsolisync_\w+", text)}


def test_dashboard_shows_every_metric_and_no_other():
    """The test lists the metrics left out on purpose. Alerts name no others."""
    documented = {name for name, _ in DOCUMENTED.findall(DOCS)}
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    shown = named(" ".join(target["expr"] for panel in panels for target in panel.get("targets", ())))
    assert shown == documented - NOT_SHOWN
    assert named(RULES.read_text("utf-8")) <= documented


def test_dashboard_is_well_formed():
    """Panels have unique numbers, lie side by side without gaps or overlaps, and query the chosen Prometheus."""
    everything = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in everything)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert sorted(cells) == [(x, y) for x in range(24) for y in range(max(y for _, y in cells) + 1)]
    assert {panel["datasource"]["uid"] for panel in everything if panel["type"] != "row"} == {"${datasource}"}


def test_alert_on_slow_requests_leaves_out_passwords():
    """bcrypt slows down every route that takes a password. SolisyncSlow and its panel leave out only those."""
    for text in (RULES.read_text("utf-8"), DASHBOARD.read_text("utf-8")):
        (pattern,) = re.findall(r'route!~\\?"(/.+?)\\?"', text)
        left_out = {route.path for route in table() if re.fullmatch(pattern, route.path)}
        assert left_out == {route.path for route in table() if takes_password(route)}


def takes_password(route):
    """Return whether a field of the body is a password."""
    return isinstance(route.body, Json) and any("password" in name for name in route.body.shape.__struct_fields__)


def test_every_alert_is_documented_and_tested():
    """docs/metrics.md has a remedy for each; promtool has tests of when each fires and when it doesn't."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    names = [rule["alert"] for group in groups for rule in group["rules"]]
    assert ALERT_ROW.findall(DOCS) == names
    cases = [
        case for test in yaml.safe_load(RULE_TESTS.read_text("utf-8"))["tests"] for case in test["alert_rule_test"]
    ]
    for fires in (True, False):
        assert {case["alertname"] for case in cases if bool(case["exp_alerts"]) is fires} == set(names)
