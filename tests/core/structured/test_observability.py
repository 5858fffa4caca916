"""The files under contrib/observability name only what is exported."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from crosswalk.structured.metrics import STAGES, MemoryCache, ParserMetrics, PrometheusExporter
from crosswalk.structured.result import ReasonCode
from pages import ROOT

FOLDER = ROOT / "contrib/observability"
GROUPS = yaml.safe_load((FOLDER / "response_parsing.rules.yml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
TARGETS = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [rule["expr"] for rule in RULES] + [target["expr"] for target in TARGETS]

FUNCTIONS = {"sum", "max", "rate", "increase", "by", "histogram_quantile"}
# What a scrape adds to every series.
SCRAPED = {"instance"}
SEED = {
    "response_parse_direct_parse_ok",
    "response_parse_extract_ok",
    "response_parse_repair_ok",
    "response_parse_final_failed",
    "response_parse_success_rate",
    "response_cache_hits",
    "response_cache_misses",
}
VALUES = {"stage": set(STAGES), "reason": set(ReasonCode)}


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """The labels that each exported metric really has."""
    metrics, registry = ParserMetrics(), CollectorRegistry()
    metrics.record("direct", "success", dict.fromkeys(STAGES, 0.1))
    PrometheusExporter(metrics, MemoryCache(), registry=registry)
    return {one.name: set(one.labels) for family in registry.collect() for one in family.samples}


def names_in(expression: str) -> set[str]:
    """The metrics of a PromQL expression: its words outside of matchers, ranges and groupings."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", " ", expression)
    return set(re.findall(r"[a-zA-Z_:][\w:]*", bare)) - FUNCTIONS


def labels_in(expression: str) -> set[str]:
    matched = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression)
    grouped = [
        label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")
    ]
    return {*matched, *grouped}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_what_is_exported(expression: str, exported: dict[str, set[str]]) -> None:
    names = names_in(expression)
    assert names
    assert names <= exported.keys()
    for name in names:
        assert labels_in(expression) <= exported[name]
    assert expression.count("(") == expression.count(")")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_matcher_names_a_value_that_occurs(expression: str) -> None:
    for label, value in re.findall(r'(\w+)\s*!?=\s*"([^"]*)"', expression):
        assert value in VALUES[label]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["expr"])
def test_a_legend_names_labels_that_the_query_leaves(target: dict[str, Any]) -> None:
    shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    left = labels_in(target["expr"]) if " by (" in target["expr"] else SCRAPED
    assert shown <= left


def test_every_exported_metric_is_on_the_dashboard(exported: dict[str, set[str]]) -> None:
    shown = {name for target in TARGETS for name in names_in(target["expr"])}
    assert exported.keys() - shown == {
        "response_parse_success_rate",  # shown as its parts, over all processes
        "response_parse_latency_seconds_created",  # prometheus-client adds it
    }


def test_the_metrics_of_the_seed_are_exported_under_its_names(exported: dict[str, set[str]]) -> None:
    assert exported.keys() >= SEED
    assert not any(exported[name] for name in SEED)


def test_the_rules_of_the_seed_stand_as_they_are() -> None:
    rules = {rule["alert"]: (rule["expr"], rule["for"]) for rule in GROUPS[0]["rules"]}
    assert GROUPS[0]["name"] == "response_parsing"
    assert rules == {
        "LowParseSuccessRate": ("response_parse_success_rate < 0.95", "5m"),
        "HighFallbackRate": ("response_parse_extract_ok / response_parse_direct_parse_ok > 0.1", "10m"),
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_is_complete(rule: dict[str, Any]) -> None:
    assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"].keys() == {"severity"}
    assert rule["annotations"]["summary"]
    assert re.search(r"[<>] [\d.]+$", rule["expr"])


def test_the_dashboard_is_one_that_grafana_can_import() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    [variable] = DASHBOARD["templating"]["list"]
    for target in [*panels, *TARGETS]:
        assert target["datasource"] == {"type": "prometheus", "uid": f"${{{variable['name']}}}"}
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def test_the_folder_holds_what_its_readme_names_and_no_package() -> None:
    files = {file.name for file in FOLDER.iterdir()}
    assert set(re.findall(r"^- `([\w.]+)`", (FOLDER / "README.md").read_text(), re.MULTILINE)) == files - {
        "README.md"
    }
    assert not [name for name in files if name.endswith(".py")]
