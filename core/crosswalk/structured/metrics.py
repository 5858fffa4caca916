"""Counters of a parser: the stage that gave the value, the reason why there was none, and the duration.

Their size does not grow with the number of parses, and they contain no content.
"""

from __future__ import annotations

import copy
import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import CrosswalkError

__all__ = ["LatencySummary", "MetricsError", "MetricsSnapshot", "ParseRecord", "ParserMetrics"]

log = logging.getLogger(__name__)

METRIC_PREFIX: Final = "response_parse_"
"""The prefix of a counter's name when it is exported."""
COUNTERS: Final = ("direct_parse_ok", "extract_ok", "repair_ok", "partial", "final_failed")
"""The outcomes. Every parse is exactly one of them. ``partial`` is a value from an answer that ends in the
middle, which the caller asked for: neither a success nor a failure of the chain."""
STAGES: Final = ("parse", "extract", "repair", "total")
"""The timed parts: the three stages of the chain, and the whole parse."""
BOUNDS: Final = (1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The upper bounds of the histograms of durations that exporters make, in seconds."""
OTHER: Final = "other"
"""The label of reasons and versions that are not counted apart: too many, too long, or not printable."""
MAX_LABELS: Final = 64
"""The number of reasons, and of versions, that are counted apart. A version is written by the model: it may be anything."""
MAX_LABEL_LENGTH: Final = 32
"""The greatest number of characters of a reason or a version that is counted apart."""

_SEED_REASONS: Final = dict.fromkeys(
    ("success", "invalid_json", "schema_missing_field", "schema_type_error", "invariant_violation"), 0
)
_OK: Final = {"direct": "direct_parse_ok", "extract": "extract_ok", "repair": "repair_ok"}

ExporterCallback: TypeAlias = Callable[[str, int], None]
"""Called with a metric's full name and its current value."""
Observer: TypeAlias = Callable[[str, float], None]
"""Called with a stage and the seconds it took."""


class MetricsError(CrosswalkError, ValueError):
    """A value that cannot be counted: an unknown counter or stage, or an invalid duration."""


@attrs.frozen(slots=False)  # a frozen class with slots takes twice the time to make
class ParseRecord:
    """One parse, as it is counted.

    Attributes:
        stage: the stage that gave the value: ``direct``, ``extract`` or ``repair``, or ``failure`` if none did.
        reason: the reason code. With a value, ``None`` counts as ``success``, and any other than ``success`` marks
            a partial value. Without a value, ``None`` counts as ``other``.
        seconds_by_stage: seconds by timed part, from :data:`STAGES`. Without ``total``, their sum counts as that.
        schema_version: the version that the document names, or ``None`` if it names none.
    """

    stage: str
    reason: str | None = None
    seconds_by_stage: Mapping[str, float] = attrs.field(factory=dict)
    schema_version: str | None = None


@attrs.define(kw_only=True)
class LatencySummary:
    """The durations of a stage, over all measurements.

    Attributes:
        count: the number of measurements.
        total: the sum, in seconds.
        shortest: the shortest time, in seconds, or ``None`` if nothing was measured.
        longest: the longest time, in seconds, or ``None`` if nothing was measured.
    """

    count: int = 0
    total: float = 0.0
    shortest: float | None = None
    longest: float | None = None

    @property
    def mean(self) -> float | None:
        """The mean, in seconds, or ``None`` if nothing was measured."""
        return self.total / self.count if self.count else None

    def add(self, seconds: float) -> None:
        """Count one duration more."""
        self.count += 1
        self.total += seconds
        self.shortest = seconds if self.shortest is None else min(self.shortest, seconds)
        self.longest = seconds if self.longest is None else max(self.longest, seconds)

    def milliseconds(self) -> dict[str, float | int | None]:
        """The summary under the names of :meth:`ParserMetrics.get_stats`."""
        times = {"avg_ms": self.mean, "min_ms": self.shortest, "max_ms": self.longest}
        return {"count": self.count} | {name: each and each * 1000 for name, each in times.items()}


@attrs.define(kw_only=True)
class MetricsSnapshot:
    """A consistent snapshot of all numbers.

    Attributes:
        counters: the number of parses by outcome, every one of :data:`COUNTERS`.
        reasons: the number of parses by reason code, only those that occurred.
        schema_versions: the number of parses by the version that the document names, only those that occurred.
        latencies: durations, every one of :data:`STAGES`.
        exporter_errors: the number of times an exporter raised.
    """

    counters: dict[str, int] = attrs.field(factory=lambda: dict.fromkeys(COUNTERS, 0))
    reasons: Counter[str] = attrs.field(factory=Counter)
    schema_versions: Counter[str] = attrs.field(factory=Counter)
    latencies: dict[str, LatencySummary] = attrs.field(factory=lambda: {s: LatencySummary() for s in STAGES})
    exporter_errors: int = 0

    @property
    def parses(self) -> int:
        """The number of parses."""
        return sum(self.counters.values())

    @property
    def success_rate(self) -> float | None:
        """The share of parses that gave a whole value, 0 to 1, or ``None`` if there were none."""
        ok = sum(self.counters[name] for name in _OK.values())
        return ok / self.parses if self.parses else None


class ParserMetrics:
    """Counts the parses of parsers. One may serve many parsers, threads and tasks at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._export_lock = threading.RLock()  # an exporter may parse
        self._exporter: ExporterCallback | None = None
        self._observers: list[Observer] = []
        self._now = MetricsSnapshot()

    def record(self, record: ParseRecord) -> None:
        """Count one parse.

        Raises:
            MetricsError: the stage or timed part is unknown, or a duration is negative or not finite. Then
                nothing of it is counted.
        """
        counter = {**_OK, "failure": "final_failed"}.get(record.stage)
        if counter is None:
            raise MetricsError(f"a parse ends at one of {', '.join([*_OK, 'failure'])}")
        reason = record.reason or (OTHER if record.stage == "failure" else "success")
        if record.stage != "failure" and reason != "success":
            counter = "partial"
        seconds = dict(record.seconds_by_stage)
        if seconds:
            seconds.setdefault("total", sum(seconds.values()))
        self._add(counter, 1, seconds, reason, record.schema_version)

    def increment(self, counter: str, value: int = 1) -> None:
        """Count *value* outcomes that did not come as a :class:`ParseRecord`.

        Raises:
            MetricsError: *counter* is not in :data:`COUNTERS`, or *value* is negative.
        """
        if counter not in COUNTERS or type(value) is not int or value < 0:
            raise MetricsError(f"a counter is one of {', '.join(COUNTERS)} and goes up, by whole numbers")
        self._add(counter, value)

    def record_latency(self, stage: str, latency_ms: float) -> None:
        """Count one duration, in milliseconds, that did not come with a :class:`ParseRecord`.

        Raises:
            MetricsError: *stage* is not in :data:`STAGES`, or the duration is negative or not finite.
        """
        self._add("", 0, {stage: latency_ms / 1000})

    def record_failure(self, reason: str) -> None:
        """Count one reason that did not come with a :class:`ParseRecord`."""
        self._add("", 0, reason=reason)

    def set_exporter(self, exporter: ExporterCallback | None) -> None:
        """Call *exporter* with each counter that changes, by its full name, and its new value.

        It is called in the thread that parses, one call at a time, in the order of the values. Its exceptions do
        not reach the parser: they are logged and counted. ``None`` removes it. For Prometheus and OpenTelemetry there are
        exporters in :mod:`crosswalk.structured.exporters`.
        """
        self._exporter = exporter

    def add_observer(self, observer: Observer) -> None:
        """Call *observer* with each stage that is timed and its seconds, for histograms outside of this process."""
        self._observers.append(observer)

    def snapshot(self) -> MetricsSnapshot:
        """All numbers at this moment."""
        with self._lock:
            return copy.deepcopy(self._now)

    @property
    def success_rate(self) -> float | None:
        """The share of parses that gave a whole value, 0 to 1, or ``None`` if there were none."""
        return self.snapshot().success_rate

    def get_success_rate(self) -> float:
        """As :attr:`success_rate`, and 1 where there were no parses: none failed."""
        rate = self.success_rate
        return 1.0 if rate is None else rate

    def reset(self) -> None:
        """Start again at zero. Exporters stay."""
        with self._lock:
            self._now = MetricsSnapshot()

    def get_stats(self) -> dict[str, Any]:
        """All numbers as plain objects: ``counters``, ``latency`` by stage in milliseconds, ``reason_codes``."""
        now = self.snapshot()
        return {
            "counters": now.counters,
            "latency": {stage: latency.milliseconds() for stage, latency in now.latencies.items()},
            "reason_codes": {**_SEED_REASONS, **now.reasons},
            "schema_versions": dict(now.schema_versions),
            "success_rate": now.success_rate,
        }

    def _add(
        self,
        counter: str,
        value: int,
        seconds: Mapping[str, float] = MappingProxyType({}),
        reason: str | None = None,
        version: str | None = None,
    ) -> None:
        for stage, duration in seconds.items():
            if stage not in STAGES:
                raise MetricsError(f"what is timed is one of {', '.join(STAGES)}")
            if not 0 <= duration < math.inf:
                raise MetricsError(f"the duration of {stage} is negative or not finite")
        with self._lock:
            now = self._now
            if counter:
                now.counters[counter] += value
            for counts, label in ((now.reasons, reason), (now.schema_versions, version)):
                if label is not None:
                    counts[_label(counts, label)] += 1
            for stage, duration in seconds.items():
                now.latencies[stage].add(duration)
        with self._export_lock:
            try:
                if self._exporter is not None and counter:
                    # Read here, so that an older value never follows a newer one.
                    self._exporter(METRIC_PREFIX + counter, self._now.counters[counter])
                for observer in self._observers:
                    for stage, duration in seconds.items():
                        observer(stage, duration)
            except Exception as error:
                with self._lock:
                    self._now.exporter_errors += 1
                log.warning("the metrics exporter raised %s", type(error).__name__)


def _label(counts: Counter[str], label: str) -> str:
    is_countable = len(counts) < MAX_LABELS and len(label) <= MAX_LABEL_LENGTH and label.isprintable()
    return str(label) if label in counts or is_countable else OTHER
