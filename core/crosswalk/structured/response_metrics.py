"""The metrics of the whole process, under seed 002's names (its "API Reference")."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from crosswalk.structured.metrics import ParserMetrics
from crosswalk.structured.response_cache import ResponseCache

__all__ = ["ResponseMetrics", "get_parse_stats", "reset_stats"]


class _Reset:
    """A method that the seed calls on the class, and that every :class:`ParserMetrics` has."""

    def __get__(self, instance: ResponseMetrics | None, owner: type[ResponseMetrics]) -> Callable[[], None]:
        metrics = owner.get_instance() if instance is None else instance

        def reset() -> None:
            ParserMetrics.reset(metrics)
            metrics.set_exporter(None)

        return reset


class ResponseMetrics(ParserMetrics):
    """What :meth:`ResponseParser.parse_with_fallbacks` counts in: one for the process, see :meth:`get_instance`."""

    _instance: ClassVar[ResponseMetrics | None] = None
    _instance_lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def get_instance(cls) -> ResponseMetrics:
        """The one that all share."""
        with cls._instance_lock:
            if cls._instance is None:
                cls._instance = cls()
            return cls._instance

    reset = _Reset()
    """``ResponseMetrics.reset()`` sets the shared one to zero and takes its exporter away; on an instance, that one."""

    def get_success_rate(self) -> float:
        """The share of parses that gave a whole value, 0 to 1; 1 where there were none, as none failed."""
        rate = self.success_rate
        return 1.0 if rate is None else rate


def get_parse_stats() -> dict[str, Any]:
    """All numbers of the process: ``parsing``, ``cache`` and ``slo`` with the ``success_rate``."""
    metrics = ResponseMetrics.get_instance()
    return {
        "parsing": metrics.get_stats(),
        "cache": ResponseCache.get_instance().get_stats(),
        "slo": {"success_rate": metrics.get_success_rate()},
    }


def reset_stats() -> None:
    """Set the metrics of the process to zero and empty its cache."""
    ResponseMetrics.reset()
    ResponseCache.reset()
