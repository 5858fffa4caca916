"""Prometheus and OpenTelemetry: counters are read when they ask, durations are a histogram.

They need the extras ``prometheus`` and ``otel``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from crosswalk.errors import CrosswalkError
from crosswalk.structured.cache import CacheStats
from crosswalk.structured.metrics import BOUNDS, METRIC_PREFIX, STAGES, ParserMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["OpenTelemetryExporter", "PrometheusExporter"]

LATENCY: Final = "response_parse_latency_seconds"
_HELP: Final = {
    "response_parse_direct_parse_ok": "Answers whose whole text was the JSON.",
    "response_parse_extract_ok": "Answers whose JSON was extracted from fences or prose.",
    "response_parse_repair_ok": "Answers whose JSON was repaired.",
    "response_parse_partial": "Answers that end in the middle and were given as partial values.",
    "response_parse_final_failed": "Answers that gave no value.",
    "response_parse_success_rate": "Share of parses that gave a whole value, 0 to 1.",
    "response_parse_reasons": "Parses by reason code.",
    "response_parse_schema_versions": "Parses by the schema version that the document names.",
    "response_cache_hits": "Look-ups that found an answer.",
    "response_cache_misses": "Look-ups that found none.",
    "response_cache_negative_hits": "Look-ups that found a failure; they are also hits.",
    "response_cache_stores": "Entries written.",
    "response_cache_evictions": "Entries that made room for others before their time.",
    "response_cache_size": "Entries at this moment.",
}
_LABELS: Final = {"response_parse_reasons": "reason", "response_parse_schema_versions": "schema_version"}


class CountingCache(Protocol):
    """A cache whose numbers can be shown."""

    def stats(self) -> CacheStats:
        """What it did until now."""

    def size(self) -> int:
        """How many entries there are."""


def _values(metrics: ParserMetrics, cache: CountingCache | None) -> Iterator[tuple[str, str, float]]:
    """Each number at this moment: its metric, its label (empty for none), its value."""
    now = metrics.snapshot()
    for name, count in now.counters.items():
        yield METRIC_PREFIX + name, "", count
    if now.success_rate is not None:
        yield "response_parse_success_rate", "", now.success_rate
    for reason, count in now.reasons.items():
        yield "response_parse_reasons", reason, count
    for version, count in now.schema_versions.items():
        yield "response_parse_schema_versions", version, count
    if cache is not None:
        stats = cache.stats()
        for name in ("hits", "misses", "negative_hits", "stores", "evictions"):
            yield f"response_cache_{name}", "", getattr(stats, name)
        yield "response_cache_size", "", cache.size()


class PrometheusExporter:
    """Shows *metrics*, and *cache*, to what scrapes *registry*.

    Counts go out as gauges, because Prometheus adds ``_total`` to the name of a counter.

    Args:
        metrics: what to show.
        cache: the cache whose statistics to show; ``None`` for none.
        registry: ``None`` for the default registry of prometheus-client.

    Raises:
        CrosswalkError: prometheus-client is not installed.
        ValueError: *registry* has metrics of these names already.
    """

    def __init__(
        self,
        metrics: ParserMetrics,
        cache: CountingCache | None = None,
        *,
        registry: CollectorRegistry | None = None,
    ) -> None:
        try:
            import prometheus_client
        except ImportError:
            raise _not_installed("Prometheus", "prometheus-client", "prometheus") from None
        self._metrics, self._cache = metrics, cache
        self._registry = prometheus_client.REGISTRY if registry is None else registry
        self._registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """All metrics at this moment; called at every scrape."""
        families = {family.name: family for family in self.describe()}
        for name, label, value in _values(self._metrics, self._cache):
            families[name].add_sample(name, {_LABELS[name]: label} if label else {}, value)
        for stage, latency in self._metrics.snapshot().latencies.items():
            bounds = [(str(bound), count) for bound, count in zip(BOUNDS, latency.buckets, strict=True)]
            families[LATENCY].add_metric([stage], [*bounds, ("+Inf", latency.count)], latency.total)  # type: ignore[attr-defined]
        return [family for family in families.values() if family.samples]

    def describe(self) -> Iterable[Metric]:
        """The metrics without values: a registry asks them for clashes of names."""
        from prometheus_client.core import HistogramMetricFamily, Metric

        gauges = [Metric(name, text, "gauge") for name, text in _HELP.items()]
        return [*gauges, HistogramMetricFamily(LATENCY, "Duration of a stage, in seconds.", labels=["stage"])]

    def close(self) -> None:
        """Take the metrics away again."""
        self._registry.unregister(self)


class OpenTelemetryExporter:
    """Shows *metrics*, and *cache*, to the readers of *meter_provider*.

    OpenTelemetry has no way to take instruments away: make one exporter for each pair of metrics and provider.

    Args:
        metrics: what to show.
        cache: the cache whose statistics to show; ``None`` for none.
        meter_provider: ``None`` for the global one.

    Raises:
        CrosswalkError: opentelemetry-api is not installed.
    """

    def __init__(
        self,
        metrics: ParserMetrics,
        cache: CountingCache | None = None,
        *,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            from opentelemetry.metrics import get_meter
        except ImportError:
            raise _not_installed("OpenTelemetry", "opentelemetry-api", "otel") from None
        self._metrics, self._cache = metrics, cache
        meter = get_meter("crosswalk.structured", meter_provider=meter_provider)
        for name, text in _HELP.items():
            is_gauge = name.endswith(("_rate", "_size"))
            create: Any = (
                meter.create_observable_gauge if is_gauge else meter.create_observable_up_down_counter
            )
            create(name, [self._observer(name)], description=text)
        histogram = meter.create_histogram(
            LATENCY,
            unit="s",
            description="Duration of a stage, in seconds.",
            explicit_bucket_boundaries_advisory=BOUNDS,
        )
        attributes = {stage: {"stage": stage} for stage in STAGES}
        metrics.add_observer(lambda stage, seconds: histogram.record(seconds, attributes[stage]))

    def _observer(self, metric: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        from opentelemetry.metrics import Observation

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [
                Observation(value, {_LABELS[name]: label} if label else {})
                for name, label, value in _values(self._metrics, self._cache)
                if name == metric
            ]

        return observe


def _not_installed(what: str, package: str, extra: str) -> CrosswalkError:
    return CrosswalkError(f"exporting to {what} needs {package}: pip install 'crosswalk-llm[{extra}]'")
