"""The metrics of the whole process, under seed 002's names (its "API Reference")."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from crosswalk.structured.metrics import ParserMetrics
from crosswalk.structured.response_cache import ResponseCache

__all__ = ["ResponseMetrics", "get_parse_stats", "reset_stats"]


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

    @classmethod
    def reset(cls) -> None:
        """Set the shared one to zero and take its exporter away."""
        shared = cls.get_instance()
        ParserMetrics.reset(shared)
        shared.set_exporter(None)

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
