"""Counters of a parser: the stage that gave the value, the reason why there was none, and the duration.

Their size does not grow with the number of parses, and they contain no content.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from crosswalk.errors import ConfigurationError
from crosswalk.structured.reason import ReasonCode, Stage

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
_COUNTER: Final = dict(zip((stage.value for stage in Stage), COUNTERS, strict=False))
_NONE: Final[Mapping[str, float]] = MappingProxyType({})


class ParserMetrics:
    """Counts the parses of parsers. One may serve many parsers, threads and tasks at once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an exporter may parse
        self._exporter: Callable[[str, int], None] | None = None
        self._observers: list[Callable[[str, float], None]] = []
        self.reset()

    def record(self, stage: str, reason: str, seconds: Mapping[str, float] = _NONE) -> None:
        """Count one parse.

        Args:
            stage: the :class:`Stage` that gave the value, or ``failure`` if none did.
            reason: the :class:`ReasonCode`. With a value, any other than ``success`` marks a partial value.
            seconds: seconds by timed part, from :data:`STAGES`. Without ``total``, their sum counts as that.

        Raises:
            ConfigurationError: the stage, reason or timed part is unknown, or a duration is negative or not finite.
                Then nothing of it is counted.
        """
        if stage not in _COUNTER:
            raise ConfigurationError(f"a parse ends at one of {', '.join(_COUNTER)}")
        counter = _COUNTER[stage] if stage == "failure" or reason == "success" else "partial"
        total = {"total": sum(seconds.values())} if seconds else {}
        self._add(counter, 1, {**total, **seconds}, reason)

    def increment(self, counter: str, value: int = 1) -> None:
        """Count *value* outcomes that did not come as a parse.

        Raises:
            ConfigurationError: *counter* is not in :data:`COUNTERS`, or *value* is negative.
        """
        if counter not in COUNTERS or type(value) is not int or value < 0:
            raise ConfigurationError(
                f"a counter is one of {', '.join(COUNTERS)} and goes up, by whole numbers"
            )
        self._add(counter, value, _NONE)

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
        self._add("", 0, _NONE, reason)

    def set_exporter(self, exporter: Callable[[str, int], None] | None) -> None:
        """Call *exporter* with each counter that changes, by its full name, and its new value.

        It is called in the thread that parses, one call at a time, in the order of the values. Its exceptions do
        not reach the parser: they are logged. ``None`` removes it. For Prometheus and OpenTelemetry there are
        exporters in :mod:`crosswalk.structured.exporters`.
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
            self._reasons = dict.fromkeys(map(str, ReasonCode), 0)
            self._latency = dict.fromkeys(STAGES, (0, 0.0))

    def get_stats(self) -> dict[str, Any]:
        """All numbers at one moment, as plain objects.

        Returns:
            ``counters`` by outcome, ``latency`` by stage (``count``, and ``avg_ms``, ``None`` if nothing was timed),
            the number of parses by ``reason_codes``, and the ``success_rate``: the share of parses that gave a whole
            value, 0 to 1, or ``None`` if there were none.
        """
        with self._lock:
            parses = sum(self._counters.values())
            failed = self._counters["partial"] + self._counters["final_failed"]
            return {
                "counters": self._counters.copy(),
                "latency": {
                    stage: {"count": count, "avg_ms": total / count * 1000 if count else None}
                    for stage, (count, total) in self._latency.items()
                },
                "reason_codes": self._reasons.copy(),
                "success_rate": 1 - failed / parses if parses else None,
            }

    def _add(self, counter: str, value: int, seconds: Mapping[str, float], reason: str | None = None) -> None:
        if reason is not None and reason not in self._reasons:
            raise ConfigurationError(f"a reason is one of {', '.join(ReasonCode)}")
        if not all(stage in STAGES and 0 <= duration < math.inf for stage, duration in seconds.items()):
            raise ConfigurationError(f"a duration of {', '.join(STAGES)} is finite and not negative")
        with self._lock:
            if reason is not None:
                self._reasons[reason] += 1
            for stage, duration in seconds.items():
                count, total = self._latency[stage]
                self._latency[stage] = count + 1, total + duration
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
