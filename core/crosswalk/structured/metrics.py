"""Counters of a parser: which stage gave the value, why there was none, how long it took.

Nothing here grows with the number of parses, and nothing here is content: stages, reasons, versions and durations.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.structured.percentiles import LatencySummary, StageLatency

__all__ = ["MetricsError", "MetricsSnapshot", "ParseRecord", "ParserMetrics"]

log = logging.getLogger(__name__)

METRIC_PREFIX: Final = "response_parse_"
"""What stands before a counter's name where it is exported."""

COUNTERS: Final = ("direct_parse_ok", "extract_ok", "repair_ok", "partial", "final_failed")
"""The outcomes; every parse is exactly one of them. ``partial`` is a value from an answer that ends in the
middle, which the caller asked for: neither a success nor a failure of the chain."""

STAGES: Final = ("parse", "extract", "repair", "total")
"""What is timed: the three stages of the chain, and the whole parse."""

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
_FAILURE: Final = "failure"
_SUCCESS: Final = "success"

ExporterCallback: TypeAlias = Callable[[str, int], None]
"""Called with a metric's full name and its current value."""


class MetricsError(CrosswalkError, ValueError):
    """Something that cannot be counted: an unknown counter or stage, or a duration that is none."""


@attrs.frozen(slots=False)  # a frozen class with slots takes twice the time to make
class ParseRecord:
    """One parse, as it is counted.

    Attributes:
        stage: the stage that gave the value: ``direct``, ``extract`` or ``repair``; ``failure`` where none did.
        reason: the reason code. With a value, ``None`` counts as ``success``, and any other than ``success`` marks
            a partial value; without a value, ``None`` counts as ``other``.
        seconds_by_stage: seconds by what is timed, of :data:`STAGES`. Stages that were not reached are absent;
            without ``total``, the sum of the others counts as the total.
        schema_version: the version that the document names; ``None`` where it names none.
    """

    stage: str
    reason: str | None = None
    seconds_by_stage: Mapping[str, float] = attrs.field(factory=dict)
    schema_version: str | None = None


@attrs.frozen(kw_only=True)
class MetricsSnapshot:
    """All numbers at one moment; they belong together.

    Attributes:
        counters: how many parses by outcome, every one of :data:`COUNTERS`.
        reasons: how many parses by reason code; only those that occurred.
        schema_versions: how many parses by the version that the document names; only those that occurred.
        latencies: durations, every one of :data:`STAGES`.
        exporter_errors: how many times the exporter raised.
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
        self._clear()

    def _clear(self) -> None:
        self._counters = dict.fromkeys(COUNTERS, 0)
        self._reasons: dict[str, int] = {}
        self._versions: dict[str, int] = {}
        self._latencies = {stage: StageLatency() for stage in STAGES}
        self._exporter_errors = 0

    def record(self, record: ParseRecord) -> None:
        """Count one parse.

        Raises:
            MetricsError: the stage or what is timed is unknown, or a duration is negative or not finite; then
                nothing of it is counted.
        """
        reason, version, seconds = _reason(record), record.schema_version, record.seconds_by_stage
        counter = _counter(record.stage, reason)
        for stage, duration in seconds.items():
            if stage not in self._latencies or not 0 <= duration < math.inf:
                _check_duration(stage, duration)
        if seconds and "total" not in seconds:
            seconds = {**seconds, "total": sum(seconds.values())}
        with self._lock:
            self._counters[counter] += 1
            _count(self._reasons, reason)
            if version is not None:
                _count(self._versions, version)
            for stage, duration in seconds.items():
                self._latencies[stage].add(duration)
        if self._exporter is not None:
            self._export(counter)

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
        self._export(counter)

    def record_latency(self, stage: str, latency_ms: float) -> None:
        """Count one duration, in milliseconds, that did not come with a :class:`ParseRecord`.

        Raises:
            MetricsError: *stage* is none of :data:`STAGES`, or the duration is negative or not finite.
        """
        _check_duration(stage, latency_ms)
        with self._lock:
            self._latencies[stage].add(latency_ms / 1000)

    def record_failure(self, reason: str) -> None:
        """Count one reason that did not come with a :class:`ParseRecord`."""
        with self._lock:
            _count(self._reasons, str(reason))

    def set_exporter(self, exporter: ExporterCallback | None) -> None:
        """Call *exporter* with each counter that changes, by its full name, and its new value.

        It is called in the thread that parses, one call at a time, in the order of the values. What it raises does
        not reach the parser: it is logged and counted. ``None`` takes it away. Prometheus and OpenTelemetry have
        exporters of their own, see :mod:`crosswalk.structured.exporters`; they also tell of the success rate and of
        the cache, which are no counters of a parse.

        Raises:
            MetricsError: *exporter* cannot be called.
        """
        if exporter is not None and not callable(exporter):
            raise MetricsError("an exporter is a function of a name and a value")
        self._exporter = exporter

    def snapshot(self) -> MetricsSnapshot:
        """All numbers at this moment."""
        with self._lock:
            return MetricsSnapshot(
                counters=MappingProxyType(dict(self._counters)),
                reasons=MappingProxyType(dict(self._reasons)),
                schema_versions=MappingProxyType(dict(self._versions)),
                latencies=MappingProxyType(
                    {stage: each.summary() for stage, each in self._latencies.items()}
                ),
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
        """Start again at zero; the exporter stays."""
        with self._lock:
            self._clear()

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

    def _export(self, counter: str) -> None:
        exporter = self._exporter
        if exporter is None:
            return
        with self._export_lock:
            value = self._counters[counter]  # read here, so that an older value never follows a newer one
            try:
                exporter(METRIC_PREFIX + counter, value)
            except Exception as error:
                with self._lock:
                    self._exporter_errors += 1
                log.warning("the metrics exporter raised %s", type(error).__name__)


def _counter(stage: str, reason: str) -> str:
    if stage == _FAILURE:
        return "final_failed"
    if stage not in _OK:
        raise MetricsError(f"a parse ends at one of {', '.join([*_OK, _FAILURE])}")
    return _OK[stage] if reason == _SUCCESS else "partial"


def _reason(record: ParseRecord) -> str:
    if record.reason is not None:
        return record.reason
    return OTHER if record.stage == _FAILURE else _SUCCESS


def _check_duration(stage: str, seconds: float) -> None:
    if stage not in STAGES:
        raise MetricsError(f"what is timed is one of {', '.join(STAGES)}")
    if not 0 <= seconds < math.inf:
        raise MetricsError(f"the duration of {stage} is negative or not finite")


def _count(counts: dict[str, int], label: str) -> None:
    if label not in counts:
        is_new = len(counts) < MAX_LABELS and len(label) <= MAX_LABEL_LENGTH and label.isprintable()
        label = str(label) if is_new else OTHER
        counts.setdefault(label, 0)
    counts[label] += 1


def _milliseconds(latency: LatencySummary) -> dict[str, float | int | None]:
    def ms(seconds: float | None) -> float | None:
        return None if seconds is None else seconds * 1000

    return {
        "count": latency.count,
        "avg_ms": ms(latency.mean),
        "min_ms": ms(latency.shortest),
        "max_ms": ms(latency.longest),
        **{f"p{round(share * 100)}_ms": ms(latency.quantiles.get(share)) for share in (0.5, 0.95, 0.99)},
    }
