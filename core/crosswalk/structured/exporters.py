"""What Prometheus and OpenTelemetry are told: one table of metrics, read when they ask.

The counts go out under the names in the table, without the ``_total`` that both systems give to counters: they
are exported as gauges (Prometheus) and up-down counters (OpenTelemetry), which a reset may also bring back to zero.
Durations are a summary, which OpenTelemetry does not have: there its parts are metrics of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import Final, Protocol, TypeAlias

import attrs

from crosswalk.structured.cache import CacheStats
from crosswalk.structured.metrics import COUNTERS, METRIC_PREFIX, MetricsSnapshot, ParserMetrics

__all__ = ["FAMILIES", "CountingCache", "Family", "FamilyKind", "Point", "Reading"]

CACHE_PREFIX: Final = "response_cache_"


class CountingCache(Protocol):
    """A cache that can be exported: an :class:`AnswerCache`, or a :class:`ResponseCache`."""

    def stats(self) -> CacheStats:
        """What it did until now."""
        ...

    def size(self) -> int | None:
        """How many entries there are; ``None`` where the store cannot say."""
        ...


class FamilyKind(Enum):
    """What the values of a metric are."""

    COUNT = "count"
    """Numbers that add up over processes."""
    GAUGE = "gauge"
    """Numbers that do not."""
    SUMMARY = "summary"
    """Quantiles of a duration, with its ``_sum`` and ``_count``."""


@attrs.frozen
class Point:
    """One value of a metric.

    Attributes:
        value: the value.
        labels: the label values by name.
        suffix: what follows the name of the metric, for the parts of a summary.
    """

    value: float
    labels: Mapping[str, str] = attrs.field(factory=dict)
    suffix: str = ""


@attrs.frozen
class Reading:
    """What was counted at one moment: each of the two is asked once, and only if somebody wants to know.

    Attributes:
        metrics: the metrics of parsers.
        cache: the cache; ``None`` where none is exported.
    """

    metrics: ParserMetrics
    cache: CountingCache | None

    @cached_property
    def parses(self) -> MetricsSnapshot:
        """The numbers of the parsers."""
        return self.metrics.snapshot()

    @cached_property
    def cache_stats(self) -> CacheStats | None:
        """The numbers of the cache; ``None`` where none is exported."""
        return None if self.cache is None else self.cache.stats()


_Points: TypeAlias = Callable[[Reading], Iterator[Point]]


@attrs.frozen
class Family:
    """One metric.

    Attributes:
        name: as it is exported.
        kind: what its values are.
        help: what it says, in one sentence.
        labels: the names of its labels.
        points: gives its values in a reading; none where there is nothing to say.
    """

    name: str
    kind: FamilyKind
    help: str
    labels: tuple[str, ...]
    points: _Points


def _outcome(name: str) -> _Points:
    return lambda reading: iter([Point(reading.parses.counters[name])])


def _success_rate(reading: Reading) -> Iterator[Point]:
    if reading.parses.success_rate is not None:
        yield Point(reading.parses.success_rate)


def _labelled(label: str, counts: Callable[[MetricsSnapshot], Mapping[str, int]]) -> _Points:
    return lambda reading: (Point(count, {label: said}) for said, count in counts(reading.parses).items())


def _latencies(reading: Reading) -> Iterator[Point]:
    for stage, latency in reading.parses.latencies.items():
        for share, seconds in latency.quantiles.items():
            yield Point(seconds, {"stage": stage, "quantile": str(share)})
        yield Point(latency.total, {"stage": stage}, "_sum")
        yield Point(latency.count, {"stage": stage}, "_count")


def _cache_count(name: str) -> _Points:
    def points(reading: Reading) -> Iterator[Point]:
        if reading.cache_stats is not None:
            yield Point(getattr(reading.cache_stats, name))

    return points


def _cache_size(reading: Reading) -> Iterator[Point]:
    size = None if reading.cache is None else reading.cache.size()
    if size is not None:
        yield Point(size)


_OUTCOMES: Final = {
    "direct_parse_ok": "Answers whose whole text was the JSON.",
    "extract_ok": "Answers whose JSON was extracted from fences or prose.",
    "repair_ok": "Answers whose JSON was repaired.",
    "partial": "Answers that end in the middle and were given as partial values.",
    "final_failed": "Answers that gave no value.",
}
_CACHE: Final = {
    "hits": "Look-ups that found an answer.",
    "misses": "Look-ups that found none.",
    "negative_hits": "Look-ups that found a failure; they are also hits.",
    "shared_hits": "Look-ups that got the answer another caller was making; they are also hits.",
    "stores": "Entries written.",
    "evictions": "Entries that made room for others before their time.",
    "rejected": "Entries found corrupt or foreign; they are also misses.",
    "errors": "Operations that the store refused or could not be reached for.",
}

FAMILIES: Final = (
    *(
        Family(METRIC_PREFIX + name, FamilyKind.COUNT, _OUTCOMES[name], (), _outcome(name))
        for name in COUNTERS
    ),
    Family(
        "response_parse_success_rate",
        FamilyKind.GAUGE,
        "Share of parses that gave a whole value, 0 to 1.",
        (),
        _success_rate,
    ),
    Family(
        "response_parse_reasons",
        FamilyKind.COUNT,
        "Parses by reason code.",
        ("reason",),
        _labelled("reason", lambda parses: parses.reasons),
    ),
    Family(
        "response_parse_schema_versions",
        FamilyKind.COUNT,
        "Parses by the schema version that the document names.",
        ("schema_version",),
        _labelled("schema_version", lambda parses: parses.schema_versions),
    ),
    Family(
        "response_parse_latency_seconds",
        FamilyKind.SUMMARY,
        "Duration of a stage since the start, in seconds.",
        ("stage",),
        _latencies,
    ),
    *(
        Family(CACHE_PREFIX + name, FamilyKind.COUNT, text, (), _cache_count(name))
        for name, text in _CACHE.items()
    ),
    Family(
        "response_cache_size",
        FamilyKind.GAUGE,
        "Entries at this moment.",
        (),
        _cache_size,
    ),
)
"""All that is exported."""
