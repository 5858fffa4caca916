"""Prometheus and OpenTelemetry: counters are read when they ask, durations are a histogram.

They need the extras ``prometheus`` and ``otel``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.structured.cache import CacheStats, MemoryCache
from crosswalk.structured.metrics import BOUNDS, COUNTERS, METRIC_PREFIX, STAGES, ParserMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from crosswalk.structured.default_cache import ResponseCache

__all__ = ["OpenTelemetryExporter", "PrometheusExporter"]

LATENCY: Final = "response_parse_latency_seconds"
_HELP: Final = {
    LATENCY: "Duration of a stage, in seconds.",
    **{f"{METRIC_PREFIX}{name}": f"Parses that ended as {name}." for name in COUNTERS},
    "response_parse_success_rate": "Share of parses that gave a whole value, 0 to 1.",
    "response_parse_reasons": "Parses by reason code.",
    "response_parse_schema_versions": "Parses by the schema version that the document names.",
    **{f"response_cache_{field.name}": f"The cache's {field.name}." for field in attrs.fields(CacheStats)},
    "response_cache_size": "Entries in the cache at this moment.",
}


def _samples(
    metrics: ParserMetrics, cache: MemoryCache | type[ResponseCache] | None
) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Each number at this moment, with its labels, by metric."""
    now = metrics.snapshot()
    numbers: dict[str, float] = {METRIC_PREFIX + name: count for name, count in now.counters.items()}
    if now.success_rate is not None:
        numbers["response_parse_success_rate"] = now.success_rate
    if cache is not None:
        counts = {**attrs.asdict(cache.stats()), "size": cache.size()}
        numbers |= {f"response_cache_{name}": count for name, count in counts.items()}
    versions = now.schema_versions.items()
    return {
        **{name: [({}, number)] for name, number in numbers.items()},
        "response_parse_reasons": [({"reason": reason}, n) for reason, n in now.reasons.items()],
        "response_parse_schema_versions": [({"schema_version": version}, n) for version, n in versions],
    }


class PrometheusExporter:
    """Exports *metrics*, and *cache*, to the scrapers of *registry*.

    Counts go out as gauges, because Prometheus adds ``_total`` to the name of a counter. Durations are a histogram of
    prometheus-client, from now on.

    Args:
        metrics: the metrics to export.
        cache: the cache with the statistics to export, or ``None`` for none.
        registry: ``None`` for the default registry of prometheus-client.

    Raises:
        CrosswalkError: prometheus-client is not installed.
        ValueError: *registry* has metrics of these names already.
    """

    def __init__(
        self,
        metrics: ParserMetrics,
        cache: MemoryCache | type[ResponseCache] | None = None,
        *,
        registry: CollectorRegistry | None = None,
    ) -> None:
        client = _import("prometheus_client", "prometheus-client", "prometheus")
        self._samples = functools.partial(_samples, metrics, cache)
        self._registry = client.REGISTRY if registry is None else registry
        self._histogram = client.Histogram(LATENCY, _HELP[LATENCY], ["stage"], buckets=BOUNDS, registry=None)
        for stage in STAGES:
            self._histogram.labels(stage)  # at 0 before the first parse
        for collector in (self, self._histogram):
            self._registry.register(collector)
        metrics.add_observer(lambda stage, seconds: self._histogram.labels(stage).observe(seconds))

    def collect(self) -> Iterable[Metric]:
        """Return the counts at this moment. Called at every scrape."""
        families = {family.name: family for family in self.describe()}
        for name, samples in self._samples().items():
            for labels, value in samples:
                families[name].add_sample(name, labels, value)
        return [family for family in families.values() if family.samples]

    def describe(self) -> Iterable[Metric]:
        """The counts without values: a registry asks them for clashes of names."""
        from prometheus_client.core import Metric

        return [Metric(name, text, "gauge") for name, text in _HELP.items() if name != LATENCY]

    def close(self) -> None:
        """Take the metrics away again."""
        for collector in (self, self._histogram):
            self._registry.unregister(collector)


class OpenTelemetryExporter:
    """Exports *metrics*, and *cache*, to the readers of *meter_provider*.

    OpenTelemetry cannot remove instruments: make one exporter for each pair of metrics and provider.

    Args:
        metrics: the metrics to export.
        cache: the cache with the statistics to export, or ``None`` for none.
        meter_provider: ``None`` for the global one.

    Raises:
        CrosswalkError: opentelemetry-api is not installed.
    """

    def __init__(
        self,
        metrics: ParserMetrics,
        cache: MemoryCache | type[ResponseCache] | None = None,
        *,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        otel = _import("opentelemetry.metrics", "opentelemetry-api", "otel")
        meter = otel.get_meter("crosswalk.structured", meter_provider=meter_provider)

        def observe(name: str, _: Any) -> list[Any]:
            samples = _samples(metrics, cache).get(name, ())
            return [otel.Observation(value, labels) for labels, value in samples]

        for name, text in _HELP.items():
            if name != LATENCY:
                meter.create_observable_gauge(name, [functools.partial(observe, name)], description=text)
        histogram = meter.create_histogram(
            LATENCY, unit="s", description=_HELP[LATENCY], explicit_bucket_boundaries_advisory=BOUNDS
        )
        metrics.add_observer(lambda stage, seconds: histogram.record(seconds, {"stage": stage}))


def _import(module: str, package: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CrosswalkError(f"exporting needs {package}: pip install 'crosswalk-llm[{extra}]'") from None
