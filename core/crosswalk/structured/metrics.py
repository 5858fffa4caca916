"""What a parser counts and keeps: its metrics, their exporters, and a cache of results."""

from __future__ import annotations

import functools
import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from crosswalk.config import COUNT, TIME_LIMIT, TIME_LIMIT_OR_NONE
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured.result import ReasonCode, Stage
from crosswalk.types.json import dump_json

if TYPE_CHECKING:
    from cachetools import TLRUCache
    from opentelemetry.metrics import MeterProvider
    from prometheus_client import CollectorRegistry, Metric


# --------------------------------------------------------------------------------- metrics
# Counters of a parser: the stage that gave the value, the reason why there was none, and the duration.
#
# Their size does not grow with the number of parses, and they contain no content.


log = logging.getLogger(__name__)

METRIC_PREFIX: Final = "response_parse_"
"""The prefix of a counter's name when it is exported."""
COUNTERS: Final = ("direct_parse_ok", "extract_ok", "repair_ok", "final_failed", "partial")
"""The outcomes. Every parse is exactly one of them. ``partial`` is a value from an answer that ends in the
middle, which the caller asked for: neither a success nor a failure of the chain."""
STAGES: Final = ("parse", "extract", "repair", "total")
"""The timed parts: the three stages of the chain, and the whole parse."""
BOUNDS: Final = (1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The upper bounds of the histograms of durations that exporters make, in seconds."""
_COUNTER_BY_STAGE: Final = dict(zip((stage.value for stage in Stage), COUNTERS, strict=False))
_NO_SECONDS: Final[Mapping[str, float]] = MappingProxyType({})


class ParserMetrics:
    """Counts the parses of parsers. One may serve many parsers, threads and tasks at once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an exporter may parse
        self._exporter: Callable[[str, int], None] | None = None
        self._observers: list[Callable[[str, float], None]] = []
        self.reset()

    def record(self, stage: str, reason: str, seconds: Mapping[str, float] = _NO_SECONDS) -> None:
        """Count one parse.

        Args:
            stage: the :class:`Stage` that gave the value, or ``failure`` if none did.
            reason: the :class:`ReasonCode`. With a value, any other than ``success`` marks a partial value.
            seconds: seconds by timed part, from :data:`STAGES`. Without ``total``, their sum counts as that.

        Raises:
            ConfigurationError: the stage, reason or timed part is unknown, or a duration is negative or not finite.
                Then nothing of it is counted.
        """
        if stage not in _COUNTER_BY_STAGE:
            raise ConfigurationError(f"a parse ends at one of {', '.join(_COUNTER_BY_STAGE)}")
        counter = _COUNTER_BY_STAGE[stage] if stage == "failure" or reason == "success" else "partial"
        total_entry = {"total": sum(seconds.values())} if seconds else {}
        self._add(counter, 1, {**total_entry, **seconds}, reason)

    def increment(self, counter: str, value: int = 1) -> None:
        """Count *value* outcomes that did not come as a parse.

        Raises:
            ConfigurationError: *counter* is not in :data:`COUNTERS`, or *value* is negative.
        """
        if counter not in COUNTERS or type(value) is not int or value < 0:
            raise ConfigurationError(
                f"a counter is one of {', '.join(COUNTERS)} and goes up, by whole numbers"
            )
        self._add(counter, value, _NO_SECONDS)

    def record_latency(self, stage: str, latency_ms: float) -> None:
        """Count one duration, in milliseconds, that did not come with a parse.

        Raises:
            ConfigurationError: *stage* is not in :data:`STAGES`, or the duration is negative or not finite.
        """
        self._add("", 0, {stage: latency_ms / 1000})

    def record_failure(self, reason: str) -> None:
        """Count one reason that did not come with a parse.

        Raises:
            ConfigurationError: *reason* is not a :class:`ReasonCode`.
        """
        self._add("", 0, _NO_SECONDS, reason)

    def set_exporter(self, exporter: Callable[[str, int], None] | None) -> None:
        """Call *exporter* with each counter that changes, by its full name, and its new value.

        It is called in the thread that parses, one call at a time, in the order of the values. Its exceptions do
        not reach the parser: they are logged. ``None`` removes it. For Prometheus and OpenTelemetry there are
        exporters in :mod:`crosswalk.structured.metrics`.
        """
        self._exporter = exporter

    def add_observer(self, observer: Callable[[str, float], None]) -> None:
        """Call *observer* with each stage that is timed and its seconds, for histograms outside of this process."""
        self._observers.append(observer)

    def get_success_rate(self) -> float:
        """The share of parses that gave a whole value, 0 to 1, and 1 if there were no parses: none failed."""
        rate = self.get_stats()["success_rate"]
        return 1.0 if rate is None else float(rate)

    def reset(self) -> None:
        """Start again at zero. Exporters stay."""
        with self._lock:
            self._counters = dict.fromkeys(COUNTERS, 0)
            self._reason_counts = dict.fromkeys(map(str, ReasonCode), 0)
            self._latencies = dict.fromkeys(STAGES, (0, 0.0))

    def get_stats(self) -> dict[str, Any]:
        """All numbers at one moment, as plain objects.

        Returns:
            ``counters`` by outcome, ``latency`` by stage (``count``, and ``avg_ms``, ``None`` if nothing was timed),
            the number of parses by ``reason_codes``, and the ``success_rate``: the share of parses that gave a whole
            value, 0 to 1, or ``None`` if there were none.
        """
        with self._lock:
            parse_count = sum(self._counters.values())
            failed_count = self._counters["partial"] + self._counters["final_failed"]
            return {
                "counters": self._counters.copy(),
                "latency": {
                    stage: {"count": count, "avg_ms": total / count * 1000 if count else None}
                    for stage, (count, total) in self._latencies.items()
                },
                "reason_codes": self._reason_counts.copy(),
                "success_rate": 1 - failed_count / parse_count if parse_count else None,
            }

    def _add(self, counter: str, value: int, seconds: Mapping[str, float], reason: str | None = None) -> None:
        if reason is not None and reason not in self._reason_counts:
            raise ConfigurationError(f"a reason is one of {', '.join(ReasonCode)}")
        if not all(stage in STAGES and 0 <= duration < math.inf for stage, duration in seconds.items()):
            raise ConfigurationError(f"a duration of {', '.join(STAGES)} is finite and not negative")
        with self._lock:
            if reason is not None:
                self._reason_counts[reason] += 1
            for stage, duration in seconds.items():
                count, total = self._latencies[stage]
                self._latencies[stage] = count + 1, total + duration
            if counter:
                self._counters[counter] += value
            try:
                if counter and self._exporter is not None:
                    self._exporter(METRIC_PREFIX + counter, self._counters[counter])
                for observer in self._observers:
                    for stage, duration in seconds.items():
                        observer(stage, duration)
            except Exception as error:
                log.warning("the metrics exporter raised %s", type(error).__name__)


# ----------------------------------------------------------------------------------- cache
# A cache of results in the memory of this process, on cachetools.


DEFAULT_TTL: Final = 300.0
"""Seconds that a value lives."""
DEFAULT_NEGATIVE_TTL: Final = 30.0
"""Seconds that a failure lives: the model may do better next time."""
MAX_ENTRIES: Final = 1000
"""Entries that a cache holds at most."""


@attrs.frozen(kw_only=True)
class CacheStats:
    """The statistics of a cache. ``hits + misses`` is the number of look-ups.

    Attributes:
        hits: look-ups that found something.
        misses: look-ups that did not.
    """

    hits: int = 0
    misses: int = 0

    @property
    def hit_rate(self) -> float | None:
        """The share of look-ups that found something, 0 to 1, or ``None`` where there were none."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else None


class AnswerCache(Protocol):
    """A cache of results. Its methods may be called from many threads at once."""

    def get(self, key: Hashable) -> Any:
        """Return the value stored under *key*, or ``None`` if there is none."""

    def put(self, key: Hashable, value: Any, *, ttl: float | None = None, is_negative: bool = False) -> None:
        """Store *value* under *key* for *ttl* seconds, or for the cache's own time for a value or a failure."""


class MemoryCache:
    """An :class:`AnswerCache` in memory.

    It gives every caller the very value that was stored, so do not change a value that came out of it.

    Args:
        max_entries: the greatest number of entries. When full, the least recently used one is removed.
        ttl: seconds that a value lives.
        negative_ttl: seconds that a failure lives, or ``None`` to store no failures.
        clock: seconds, from any beginning.

    Raises:
        ConfigurationError: *max_entries* or a time to live is not positive.
    """

    def __init__(
        self,
        max_entries: int = MAX_ENTRIES,
        *,
        ttl: float = DEFAULT_TTL,
        negative_ttl: float | None = DEFAULT_NEGATIVE_TTL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from cachetools import TLRUCache

        COUNT.check("max_entries", max_entries)
        TIME_LIMIT.check("ttl", ttl)
        TIME_LIMIT_OR_NONE.check("negative_ttl", negative_ttl)
        self._ttl = ttl
        self._negative_ttl = negative_ttl
        self._lock = threading.Lock()
        # With each value its time to live.
        self._entries: TLRUCache[Hashable, tuple[Any, float]] = TLRUCache(
            max_entries, lambda _, entry, now: now + entry[1], timer=clock
        )
        self.reset_stats()

    def get(self, key: Hashable) -> Any:
        """Return the value stored under *key*, or ``None`` if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._misses += 1
                return None
            self._hits += 1
            return entry[0]

    def put(self, key: Hashable, value: Any, *, ttl: float | None = None, is_negative: bool = False) -> None:
        """Store *value* under *key*.

        Args:
            key: covers everything that the value depends on.
            value: any value that is not changed later.
            ttl: seconds to live, or ``None`` for the cache's default.
            is_negative: whether it is a failure.

        Raises:
            ConfigurationError: *ttl* is not a positive number.
        """
        TIME_LIMIT_OR_NONE.check("ttl", ttl)
        seconds = ttl or (self._negative_ttl if is_negative else self._ttl)
        if seconds is None:
            return
        with self._lock:
            self._entries[key] = (value, seconds)

    def clear(self) -> None:
        """Remove all entries. The statistics stay."""
        with self._lock:
            self._entries.clear()

    def size(self) -> int:
        """The number of entries that count at this moment."""
        with self._lock:
            self._entries.expire()
            return len(self._entries)

    def stats(self) -> CacheStats:
        """The statistics until now."""
        with self._lock:
            return CacheStats(hits=self._hits, misses=self._misses)

    def reset_stats(self) -> None:
        """Set the statistics to zero."""
        self._hits = self._misses = 0


def answer_key(*parts: Any) -> str:
    """The same key for the same *parts*, texts, lists and ``None``, in every process: 64 hexadecimal digits."""
    return hashlib.sha256(dump_json(list(parts))).hexdigest()


# ------------------------------------------------------------------------------- exporters
# Prometheus and OpenTelemetry: counters are read when they ask, durations are a histogram.
#
# They need the extras ``prometheus`` and ``otel``.


LATENCY: Final = "response_parse_latency_seconds"
_DURATION_HELP: Final = "Duration of a stage, in seconds."
_HELP_TEXTS: Final = {
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
    parse_stats = metrics.get_stats()
    numbers = {METRIC_PREFIX + name: count for name, count in parse_stats["counters"].items()}
    if parse_stats["success_rate"] is not None:
        numbers["response_parse_success_rate"] = parse_stats["success_rate"]
    if cache is not None:
        stats = cache.stats()
        counts = {"hits": stats.hits, "misses": stats.misses, "size": cache.size()}
        numbers |= {f"response_cache_{name}": count for name, count in counts.items()}
    return {
        **{name: [({}, number)] for name, number in numbers.items()},
        "response_parse_reasons": [({"reason": name}, n) for name, n in parse_stats["reason_codes"].items()],
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
            LATENCY, _DURATION_HELP, ["stage"], buckets=BOUNDS, registry=self._registry
        )
        self._registry.register(self)
        for stage in STAGES:
            self._histogram.labels(stage)  # at 0 before the first parse
        metrics.add_observer(lambda stage, seconds: self._histogram.labels(stage).observe(seconds))

    def collect(self) -> Iterable[Metric]:
        """Return the counts at this moment. Called at every scrape."""
        from prometheus_client import Metric

        for name, samples in self._samples().items():
            family = Metric(name, _HELP_TEXTS[name], "gauge")
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

        for name, text in _HELP_TEXTS.items():
            meter.create_observable_gauge(name, [functools.partial(observe, name)], description=text)
        histogram = meter.create_histogram(
            LATENCY, unit="s", description=_DURATION_HELP, explicit_bucket_boundaries_advisory=BOUNDS
        )
        metrics.add_observer(lambda stage, seconds: histogram.record(seconds, {"stage": stage}))


def _missing(package: str, extra: str) -> CrosswalkError:
    return CrosswalkError(f"exporting needs {package}: pip install 'crosswalk-llm[{extra}]'")
