"""The exporter for OpenTelemetry; needs the extra ``otel``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from crosswalk.errors import CrosswalkError
from crosswalk.structured.exporters import FAMILIES, CountingCache, Family, FamilyKind, Reading
from crosswalk.structured.metrics import ParserMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

__all__ = ["OpenTelemetryExporter"]


class OpenTelemetryExporter:
    """Shows *metrics*, and *cache*, to the readers of *meter_provider*; costs the parser nothing.

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
            raise CrosswalkError(
                "exporting to OpenTelemetry needs opentelemetry-api: pip install 'crosswalk-llm[otel]'"
            ) from None
        self._readings = _Readings(metrics, cache)
        meter = get_meter("crosswalk.structured", meter_provider=meter_provider)
        for family in FAMILIES:
            for suffix in ("", "_sum", "_count") if family.kind is FamilyKind.SUMMARY else ("",):
                adds_up = family.kind is FamilyKind.COUNT or suffix
                create = meter.create_observable_up_down_counter if adds_up else meter.create_observable_gauge
                create(family.name + suffix, [self._observer(family, suffix)], description=family.help)

    def _observer(self, family: Family, suffix: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        from opentelemetry.metrics import Observation

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            reading = self._readings.for_metric(family.name + suffix)
            points = [point for point in family.points(reading) if point.suffix == suffix]
            return [Observation(point.value, dict(point.labels)) for point in points]

        return observe


class _Readings:
    """The reading at hand: each metric is asked for by itself, and those of one collection belong together."""

    def __init__(self, metrics: ParserMetrics, cache: CountingCache | None) -> None:
        self._metrics = metrics
        self._cache = cache
        self._lock = threading.Lock()
        self._reading = Reading(metrics, cache)
        self._told: set[str] = set()

    def for_metric(self, name: str) -> Reading:
        """The reading at hand; a new one where *name* has been told of it already: a new collection."""
        with self._lock:
            if name in self._told or not self._told:
                self._reading = Reading(self._metrics, self._cache)
                self._told = set()
            self._told.add(name)
            return self._reading
