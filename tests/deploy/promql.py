"""Names in an expression of Prometheus' language, as far as tests need them, and where solisync's expressions are."""

import json
import re
from typing import NamedTuple

import yaml

from tests.harness.constants import ROOT

DASHBOARD = ROOT / "deploy" / "grafana" / "solisync.json"
RULES = ROOT / "deploy" / "prometheus" / "solisync.rules.yml"
# Without values here: the service has no embedded database, no backup was made, and no round of housekeeping has run.
NOT_EVERYWHERE = {
    "solisync_disk_free_bytes",
    "solisync_last_backup_timestamp_seconds",
    "solisync_housekeeping_last_run_timestamp_seconds",
}

_STRING = r'"(?:[^"\\]|\\.)*"'
_SELECTOR = re.compile(rf'(\w+)\{{((?:[^"}}]|{_STRING})*)\}}')
_MATCHER = re.compile(rf"(\w+)\s*(=~|!~|!=|=)\s*({_STRING})")
_GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
_RANGE = re.compile(r"\[[^]]*\]")
_NAME = re.compile(r"\b[a-zA-Z_]\w*\b(?!\s*\()")
_KEYWORDS = {"sum", "max", "count", "by", "on", "and", "or", "unless", "offset"}


class Matcher(NamedTuple):
    """`metric{label=~"pattern"}`, or with another operator."""

    metric: str
    label: str
    pattern: str


class Named(NamedTuple):
    """Names in an expression."""

    metrics: set[str]
    matchers: list[Matcher]
    groups: set[str]


def named(expression):
    """Parse an expression."""
    matchers = [
        Matcher(metric, label, re.escape(value) if operator in ("=", "!=") else value)
        for metric, inside in _SELECTOR.findall(expression)
        for label, operator, quoted in _MATCHER.findall(inside)
        for value in [json.loads(quoted)]
    ]
    bare = _RANGE.sub("", _SELECTOR.sub(r"\1", expression))
    groups = {label.strip() for labels in _GROUPING.findall(bare) for label in labels.split(",")}
    metrics = set(_NAME.findall(_GROUPING.sub("", bare))) - _KEYWORDS
    return Named(metrics, matchers, groups)


def panels():
    """Return the panels of the dashboard that show data."""
    return [panel for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if panel["type"] != "row"]


def queries():
    """Return every expression of the dashboard, with the legend of its lines."""
    return [(target["expr"], target["legendFormat"]) for panel in panels() for target in panel["targets"]]


def rules():
    """Return every alert."""
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]
