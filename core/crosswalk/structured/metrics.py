"""Counters of a parser: which stage gave the value, why there was none, how long it took.

Nothing here grows with the number of parses, and nothing here is content.
"""

from __future__ import annotations

import logging
import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import CrosswalkError

__all__ = ["LatencySummary", "MetricsError", "MetricsSnapshot", "ParseRecord", "ParserMetrics"]

log = logging.getLogger(__name__)

METRIC_PREFIX: Final = "response_parse_"
"""What stands before a counter's name where it is exported."""
COUNTERS: Final = ("direct_parse_ok", "extract_ok", "repair_ok", "partial", "final_failed")
"""The outcomes; every parse is exactly one of them. ``partial`` is a value from an answer that ends in the
middle, which the caller asked for: neither a success nor a failure of the chain."""
STAGES: Final = ("parse", "extract", "repair", "total")
"""What is timed: the three stages of the chain, and the whole parse."""
BOUNDS: Final = (1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The upper bounds of the histogram of durations, in seconds."""
OTHER: Final = "other"
"""The label of reasons and versions that are not counted apart: too many, too long, or not printable."""
MAX_LABELS: Final = 64
"""How many reasons, and how many versions, are counted apart. A version is what the model wrote: anything."""
MAX_LABEL_LENGTH: Final = 32
"""How many characters a reason or a version may have to be counted apart."""

_SEED_REASONS: Final = dict.fromkeys(
    ("success", "invalid_json", "schema_missing_field", "schema_type_error", "invariant_violation"), 0
)
_OK: Final = {"direct": "direct_parse_ok", "extract": "extract_ok", "repair": "repair_ok"}

ExporterCallback: TypeAlias = Callable[[str, int], None]
"""Called with a metric's full name and its current value."""
Observer: TypeAlias = Callable[[str, float], None]
"""Called with a stage and the seconds it took."""


class MetricsError(CrosswalkError, ValueError):
    """Something that cannot be counted: an unknown counter or stage, or a duration that is none."""


@attrs.frozen(slots=False)  # a frozen class with slots takes twice the time to make
class ParseRecord:
    """One parse, as it is counted.

    Attributes:
        stage: the stage that gave the value: ``direct``, ``extract`` or ``repair``; ``failure`` where none did.
        reason: the reason code. With a value, ``None`` counts as ``success``, and any other than ``success`` marks
            a partial value; without a value, ``None`` counts as ``other``.
        seconds_by_stage: seconds by what is timed, of :data:`STAGES`. Without ``total``, their sum counts as that.
        schema_version: the version that the document names; ``None`` where it names none.
    """

    stage: str
    reason: str | None = None
    seconds_by_stage: Mapping[str, float] = attrs.field(factory=dict)
    schema_version: str | None = None


@attrs.frozen(kw_only=True)
class LatencySummary:
    """How long something took, over all the times it was measured.

    Attributes:
        count: how many times it was measured.
        total: the sum, in seconds.
        shortest: the shortest time, in seconds; ``None`` where nothing was measured.
        longest: the longest time, in seconds; ``None`` where nothing was measured.
        buckets: how many times it took at most so long, for each of :data:`BOUNDS`.
    """

    count: int = 0
    total: float = 0.0
    shortest: float | None = None
    longest: float | None = None
    buckets: tuple[int, ...] = (0,) * len(BOUNDS)

    @property
    def mean(self) -> float | None:
        """The mean, in seconds; ``None`` where nothing was measured."""
        return self.total / self.count if self.count else None

    def with_one(self, seconds: float) -> LatencySummary:
        """The same with one duration more."""
        first = bisect_left(BOUNDS, seconds)
        return LatencySummary(
            count=self.count + 1,
            total=self.total + seconds,
            shortest=seconds if self.shortest is None else min(self.shortest, seconds),
            longest=seconds if self.longest is None else max(self.longest, seconds),
            buckets=tuple(n + (at >= first) for at, n in enumerate(self.buckets)),
        )


@attrs.frozen(kw_only=True)
class MetricsSnapshot:
    """All numbers at one moment; they belong together.

    Attributes:
        counters: how many parses by outcome, every one of :data:`COUNTERS`.
        reasons: how many parses by reason code; only those that occurred.
        schema_versions: how many parses by the version that the document names; only those that occurred.
        latencies: durations, every one of :data:`STAGES`.
        exporter_errors: how many times an exporter raised.
    """

    counters: Mapping[str, int]
    reasons: Mapping[str, int]
    schema_versions: Mapping[str, int]
    latencies: Mapping[str, LatencySummary]
    exporter_errors: int = 0

    @property
    def parses(self) -> int:
        """How many parses there were."""
        return sum(self.counters.values())

    @property
    def success_rate(self) -> float | None:
        """The share of parses that gave a whole value, 0 to 1; ``None`` where there were none."""
        ok = sum(self.counters[name] for name in _OK.values())
        return ok / self.parses if self.parses else None


class ParserMetrics:
    """Counts what parsers do; one may serve many parsers, threads and tasks at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._export_lock = threading.RLock()  # an exporter may parse
        self._exporter: ExporterCallback | None = None
        self._observers: list[Observer] = []
        self.reset()

    def record(self, record: ParseRecord) -> None:
        """Count one parse.

        Raises:
            MetricsError: the stage or what is timed is unknown, or a duration is negative or not finite; then
                nothing of it is counted.
        """
        is_failure, seconds = record.stage == "failure", dict(record.seconds_by_stage)
        reason = record.reason or (OTHER if is_failure else "success")
        if not is_failure and record.stage not in _OK:
            raise MetricsError(f"a parse ends at one of {', '.join([*_OK, 'failure'])}")
        counter = "final_failed" if is_failure else _OK[record.stage] if reason == "success" else "partial"
        for stage, duration in seconds.items():
            _check_duration(stage, duration)
        if seconds:
            seconds.setdefault("total", sum(seconds.values()))
        with self._lock:
            self._counters[counter] += 1
            _count(self._reasons, reason)
            if record.schema_version is not None:
                _count(self._versions, record.schema_version)
            for stage, duration in seconds.items():
                self._latencies[stage] = self._latencies[stage].with_one(duration)
        self._export(counter, seconds)

    def increment(self, counter: str, value: int = 1) -> None:
        """Count *value* outcomes that did not come as a :class:`ParseRecord`.

        Raises:
            MetricsError: *counter* is none of :data:`COUNTERS`, or *value* is negative.
        """
        if counter not in COUNTERS:
            raise MetricsError(f"a counter is one of {', '.join(COUNTERS)}")
        if type(value) is not int or value < 0:
            raise MetricsError("a counter goes up, by whole numbers")
        with self._lock:
            self._counters[counter] += value
        self._export(counter, {})

    def record_latency(self, stage: str, latency_ms: float) -> None:
        """Count one duration, in milliseconds, that did not come with a :class:`ParseRecord`.

        Raises:
            MetricsError: *stage* is none of :data:`STAGES`, or the duration is negative or not finite.
        """
        _check_duration(stage, latency_ms)
        with self._lock:
            self._latencies[stage] = self._latencies[stage].with_one(latency_ms / 1000)
        self._export("", {stage: latency_ms / 1000})

    def record_failure(self, reason: str) -> None:
        """Count one reason that did not come with a :class:`ParseRecord`."""
        with self._lock:
            _count(self._reasons, str(reason))

    def set_exporter(self, exporter: ExporterCallback | None) -> None:
        """Call *exporter* with each counter that changes, by its full name, and its new value.

        It is called in the thread that parses, one call at a time, in the order of the values. What it raises does
        not reach the parser: it is logged and counted. ``None`` takes it away. Prometheus and OpenTelemetry have
        exporters of their own, see :mod:`crosswalk.structured.exporters`.

        Raises:
            MetricsError: *exporter* cannot be called.
        """
        if exporter is not None and not callable(exporter):
            raise MetricsError("an exporter is a function of a name and a value")
        self._exporter = exporter

    def add_observer(self, observer: Observer) -> None:
        """Call *observer* with each stage that is timed and its seconds; for histograms outside of this process."""
        self._observers.append(observer)

    def snapshot(self) -> MetricsSnapshot:
        """All numbers at this moment."""
        with self._lock:
            return MetricsSnapshot(
                counters=MappingProxyType(dict(self._counters)),
                reasons=MappingProxyType(dict(self._reasons)),
                schema_versions=MappingProxyType(dict(self._versions)),
                latencies=MappingProxyType(dict(self._latencies)),
                exporter_errors=self._exporter_errors,
            )

    @property
    def success_rate(self) -> float | None:
        """The share of parses that gave a whole value, 0 to 1; ``None`` where there were none."""
        return self.snapshot().success_rate

    def get_success_rate(self) -> float:
        """As :attr:`success_rate`, and 1 where there were no parses: none failed."""
        rate = self.success_rate
        return 1.0 if rate is None else rate

    def reset(self) -> None:
        """Start again at zero; exporters stay."""
        with self._lock:
            self._counters = dict.fromkeys(COUNTERS, 0)
            self._reasons: Counter[str] = Counter()
            self._versions: Counter[str] = Counter()
            self._latencies = dict.fromkeys(STAGES, LatencySummary())
            self._exporter_errors = 0

    def get_stats(self) -> dict[str, Any]:
        """All numbers as plain objects: ``counters``, ``latency`` by stage in milliseconds, ``reason_codes``."""
        now = self.snapshot()
        return {
            "counters": dict(now.counters),
            "latency": {stage: _milliseconds(latency) for stage, latency in now.latencies.items()},
            "reason_codes": {**_SEED_REASONS, **now.reasons},
            "schema_versions": dict(now.schema_versions),
            "success_rate": now.success_rate,
        }

    def _export(self, counter: str, seconds: Mapping[str, float]) -> None:
        if self._exporter is None and not self._observers:
            return
        with self._export_lock:
            try:
                if self._exporter is not None and counter:
                    # Read here, so that an older value never follows a newer one.
                    self._exporter(METRIC_PREFIX + counter, self._counters[counter])
                for observer in self._observers:
                    for stage, duration in seconds.items():
                        observer(stage, duration)
            except Exception as error:
                with self._lock:
                    self._exporter_errors += 1
                log.warning("the metrics exporter raised %s", type(error).__name__)


def _check_duration(stage: str, seconds: float) -> None:
    if stage not in STAGES:
        raise MetricsError(f"what is timed is one of {', '.join(STAGES)}")
    if not 0 <= seconds < math.inf:
        raise MetricsError(f"the duration of {stage} is negative or not finite")


def _count(counts: Counter[str], label: str) -> None:
    if label not in counts and (
        len(counts) >= MAX_LABELS or len(label) > MAX_LABEL_LENGTH or not label.isprintable()
    ):
        label = OTHER
    counts[str(label)] += 1


def _milliseconds(latency: LatencySummary) -> dict[str, float | int | None]:
    times = {"avg_ms": latency.mean, "min_ms": latency.shortest, "max_ms": latency.longest}
    return {
        "count": latency.count,
        **{name: None if each is None else each * 1000 for name, each in times.items()},
    }
