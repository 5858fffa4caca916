"""Prometheus and OpenTelemetry get the same, under the names of the seed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from crosswalk.errors import CrosswalkError
from crosswalk.structured.metrics import MemoryCache, OpenTelemetryExporter, ParserMetrics, PrometheusExporter

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
Scrape = Callable[[], Samples]


def sample(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def prometheus(metrics: ParserMetrics, cache: MemoryCache | None) -> Scrape:
    registry = CollectorRegistry()
    PrometheusExporter(metrics, cache, registry=registry)

    def scrape() -> Samples:
        families = list(text_string_to_metric_families(generate_latest(registry).decode()))
        stricter = list(parse_openmetrics(generate_openmetrics(registry).decode()))
        found, again = (
            {sample(one.name, **one.labels): one.value for family in each for one in family.samples}
            for each in (families, stricter)
        )
        assert found.keys() == again.keys()
        # prometheus-client also says when it made each histogram.
        return {key: value for key, value in found.items() if not key[0].endswith("_created")}

    return scrape


def opentelemetry(metrics: ParserMetrics, cache: MemoryCache | None) -> Scrape:
    reader = InMemoryMetricReader()
    OpenTelemetryExporter(metrics, cache, meter_provider=MeterProvider([reader], shutdown_on_exit=False))

    def scrape() -> Samples:
        data = reader.get_metrics_data()
        found: Samples = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                assert scope.scope.name == "crosswalk.structured"
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        labels = {name: str(value) for name, value in (point.attributes or {}).items()}
                        if isinstance(point, HistogramDataPoint):
                            found[sample(f"{metric.name}_sum", **labels)] = point.sum
                            found[sample(f"{metric.name}_count", **labels)] = point.count
                        else:
                            found[sample(metric.name, **labels)] = point.value
        return found

    return scrape


@pytest.fixture(params=[prometheus, opentelemetry])
def exporter(request: pytest.FixtureRequest) -> Callable[[ParserMetrics, MemoryCache | None], Scrape]:
    made: Callable[[ParserMetrics, MemoryCache | None], Scrape] = request.param
    return made


def busy(metrics: ParserMetrics, cache: MemoryCache) -> None:
    """Let something of everything happen."""
    metrics.record("direct", "success", {"parse": 0.25, "total": 0.5})
    metrics.record("extract", "success", {"parse": 0.25, "extract": 0.25})
    metrics.record("repair", "truncated", {"repair": 0.5})
    metrics.record("failure", "repair_failed")
    cache.put("a", 1)
    cache.put("b", 2, is_negative=True)
    for key in "abc":
        cache.get(key)


def test_what_was_counted_is_exported(exporter: Callable[..., Scrape]) -> None:
    metrics, cache = ParserMetrics(), MemoryCache()
    scrape = exporter(metrics, cache)
    busy(metrics, cache)
    samples = {place: value for place, value in scrape().items() if "le" not in dict(place[1]) and value}
    assert samples == {
        sample("response_parse_direct_parse_ok"): 1,
        sample("response_parse_extract_ok"): 1,
        sample("response_parse_partial"): 1,
        sample("response_parse_final_failed"): 1,
        sample("response_parse_success_rate"): 0.5,
        sample("response_parse_reasons", reason="success"): 2,
        sample("response_parse_reasons", reason="truncated"): 1,
        sample("response_parse_reasons", reason="repair_failed"): 1,
        sample("response_parse_latency_seconds_sum", stage="parse"): 0.5,
        sample("response_parse_latency_seconds_sum", stage="extract"): 0.25,
        sample("response_parse_latency_seconds_sum", stage="repair"): 0.5,
        sample("response_parse_latency_seconds_sum", stage="total"): 1.5,
        sample("response_parse_latency_seconds_count", stage="parse"): 2,
        sample("response_parse_latency_seconds_count", stage="extract"): 1,
        sample("response_parse_latency_seconds_count", stage="repair"): 1,
        sample("response_parse_latency_seconds_count", stage="total"): 3,
        sample("response_cache_hits"): 2,
        sample("response_cache_misses"): 1,
        sample("response_cache_size"): 2,
    }


def test_the_exposition_is_what_promtool_accepts() -> None:
    """Its rules for what we export: a bucket, a sum and a count belong to a histogram. Each metric has its help."""
    registry = CollectorRegistry()
    metrics, cache = ParserMetrics(), MemoryCache()
    busy(metrics, cache)
    PrometheusExporter(metrics, cache, registry=registry)
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    assert [one.name for one in families if one.type == "histogram"] == ["response_parse_latency_seconds"]
    for family in families:
        assert family.documentation.endswith(".")
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", family.name)
        assert not family.name.endswith(("_total", "_info", "_milliseconds", "_ms"))
        if family.type != "histogram":
            assert family.type == "gauge"
            assert not family.name.endswith(("_count", "_sum", "_bucket"))
            assert not any({"quantile", "le"} & one.labels.keys() for one in family.samples)


def test_each_reading_is_of_its_moment(exporter: Callable[..., Scrape]) -> None:
    metrics = ParserMetrics()
    scrape = exporter(metrics, None)
    assert scrape()[sample("response_parse_final_failed")] == 0
    metrics.record("failure", "refusal")
    assert scrape()[sample("response_parse_final_failed")] == 1
    metrics.reset()
    assert scrape()[sample("response_parse_final_failed")] == 0


def test_what_is_not_known_is_not_exported(exporter: Callable[..., Scrape]) -> None:
    names = {name for name, _ in exporter(ParserMetrics(), None)()}
    assert not {name for name in names if name.startswith("response_cache")}
    assert "response_parse_success_rate" not in names


def test_two_exporters_do_not_share_a_registry() -> None:
    registry = CollectorRegistry()
    first = PrometheusExporter(ParserMetrics(), registry=registry)
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        PrometheusExporter(ParserMetrics(), registry=registry)
    first.close()
    PrometheusExporter(ParserMetrics(), registry=registry)


def test_the_default_registry_is_the_one_of_prometheus_client() -> None:
    exporter = PrometheusExporter(ParserMetrics())
    try:
        assert b"response_parse_final_failed 0.0" in generate_latest()
    finally:
        exporter.close()
    assert b"response_parse" not in generate_latest()


@pytest.mark.parametrize(
    ("kind", "library", "extra"),
    [
        (PrometheusExporter, "prometheus_client", "prometheus"),
        (OpenTelemetryExporter, "opentelemetry.metrics", "otel"),
    ],
)
def test_it_says_what_to_install(
    kind: Callable[[ParserMetrics], object], library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(CrosswalkError, match=rf"pip install 'crosswalk-llm\[{extra}\]'"):
        kind(ParserMetrics())
