"""Prometheus and OpenTelemetry: counters are read when they ask, durations are a histogram.

They need the extras ``prometheus`` and ``otel``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from crosswalk.errors import CrosswalkError
from crosswalk.structured.cache import MemoryCache
from crosswalk.structured.metrics import BOUNDS, COUNTERS, METRIC_PREFIX, STAGES, ParserMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from prometheus_client import CollectorRegistry, Metric


LATENCY: Final = "response_parse_latency_seconds"
_DURATION: Final = "Duration of a stage, in seconds."
_HELP: Final = {
    **{f"{METRIC_PREFIX}{name}": f"Parses that ended as {name}." for name in COUNTERS},
    "response_parse_success_rate": "Share of parses that gave a whole value, 0 to 1.",
    "response_parse_reasons": "Parses by reason code.",
    "response_cache_hits": "Look-ups in the cache that found a result.",
    "response_cache_misses": "Look-ups in the cache that found none.",
    "response_cache_size": "Entries in the cache at this moment.",
}


def _samples(
    metrics: ParserMetrics, cache: MemoryCache | None
) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Each number at this moment, with its labels, by metric."""
    now = metrics.get_stats()
    numbers = {METRIC_PREFIX + name: count for name, count in now["counters"].items()}
    if now["success_rate"] is not None:
        numbers["response_parse_success_rate"] = now["success_rate"]
    if cache is not None:
        stats = cache.stats()
        counts = {"hits": stats.hits, "misses": stats.misses, "size": cache.size()}
        numbers |= {f"response_cache_{name}": count for name, count in counts.items()}
    return {
        **{name: [({}, number)] for name, number in numbers.items()},
        "response_parse_reasons": [({"reason": name}, n) for name, n in now["reason_codes"].items()],
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
        cache: MemoryCache | None = None,
        *,
        registry: CollectorRegistry | None = None,
    ) -> None:
        try:
            import prometheus_client as client
        except ImportError:
            raise _missing("prometheus-client", "prometheus") from None
        self._samples = functools.partial(_samples, metrics, cache)
        self._registry = client.REGISTRY if registry is None else registry
        # The histogram finds a clash of names.
        self._histogram = client.Histogram(
            LATENCY, _DURATION, ["stage"], buckets=BOUNDS, registry=self._registry
        )
        self._registry.register(self)
        for stage in STAGES:
            self._histogram.labels(stage)  # at 0 before the first parse
        metrics.add_observer(lambda stage, seconds: self._histogram.labels(stage).observe(seconds))

    def collect(self) -> Iterable[Metric]:
        """Return the counts at this moment. Called at every scrape."""
        from prometheus_client import Metric

        for name, samples in self._samples().items():
            family = Metric(name, _HELP[name], "gauge")
            for labels, value in samples:
                family.add_sample(name, labels, value)
            yield family

    def close(self) -> None:
        """Take the metrics away again."""
        self._registry.unregister(self)
        self._registry.unregister(self._histogram)


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
        cache: MemoryCache | None = None,
        *,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            import opentelemetry.metrics as otel
        except ImportError:
            raise _missing("opentelemetry-api", "otel") from None
        meter = otel.get_meter("crosswalk.structured", meter_provider=meter_provider)

        def observe(name: str, _: Any) -> list[otel.Observation]:
            samples = _samples(metrics, cache).get(name, ())
            return [otel.Observation(value, labels) for labels, value in samples]

        for name, text in _HELP.items():
            meter.create_observable_gauge(name, [functools.partial(observe, name)], description=text)
        histogram = meter.create_histogram(
            LATENCY, unit="s", description=_DURATION, explicit_bucket_boundaries_advisory=BOUNDS
        )
        metrics.add_observer(lambda stage, seconds: histogram.record(seconds, {"stage": stage}))


def _missing(package: str, extra: str) -> CrosswalkError:
    return CrosswalkError(f"exporting needs {package}: pip install 'crosswalk-llm[{extra}]'")
