"""The exporter for Prometheus; needs the extra ``prometheus``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from crosswalk.errors import CrosswalkError
from crosswalk.structured.exporters import FAMILIES, CountingCache, Family, FamilyKind, Reading
from crosswalk.structured.metrics import ParserMetrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["PrometheusExporter"]


class PrometheusExporter:
    """Shows *metrics*, and *cache*, to whoever scrapes *registry*; costs the parser nothing.

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
            raise CrosswalkError(
                "exporting to Prometheus needs prometheus-client: pip install 'crosswalk-llm[prometheus]'"
            ) from None
        self._metrics = metrics
        self._cache = cache
        self._registry = prometheus_client.REGISTRY if registry is None else registry
        self._registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """All metrics at this moment; called at every scrape."""
        reading = Reading(self._metrics, self._cache)
        for family in FAMILIES:
            exported = _described(family)
            for point in family.points(reading):
                exported.add_sample(family.name + point.suffix, dict(point.labels), point.value)
            if exported.samples:
                yield exported

    def describe(self) -> Iterable[Metric]:
        """The metrics without values: a registry asks them for clashes of names."""
        return [_described(family) for family in FAMILIES]

    def close(self) -> None:
        """Take the metrics away again."""
        self._registry.unregister(self)


def _described(family: Family) -> Metric:
    from prometheus_client.core import Metric

    return Metric(family.name, family.help, "summary" if family.kind is FamilyKind.SUMMARY else "gauge")
