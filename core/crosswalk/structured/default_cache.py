"""The metrics and the cache of the whole process.

A parser with a separate count or cache takes ``metrics=ParserMetrics()`` and ``cache=MemoryCache()`` instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

import attrs

from crosswalk.structured.cache import MAX_ENTRIES, MemoryCache, answer_key, checked_ttl
from crosswalk.structured.metrics import ParserMetrics
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.response import StructuredResponse
from crosswalk.text import brief, short_repr

_METRICS: Final = ParserMetrics()


class ResponseMetrics:
    """The metrics in which :meth:`ResponseParser.parse_with_fallbacks` counts."""

    @staticmethod
    def get_instance() -> ParserMetrics:
        """The shared instance."""
        return _METRICS

    @staticmethod
    def reset() -> None:
        """Set the shared one to zero and take its exporter away."""
        _METRICS.reset()
        _METRICS.set_exporter(None)


@brief
@attrs.frozen(kw_only=True, repr=False)
class CacheEntry:
    """The stored result for one answer.

    Attributes:
        raw_response: the text of the model.
        parsed_json: the value as plain JSON, or ``None`` if there is none.
        structured_response: the value, or ``None`` if there is none.
        validation_result: whether there is a valid value.
        reason_code: why it ended so.
        fallback_used: the word for the stage.
        created_at: when it was stored, in seconds since 1970.
        ttl_seconds: how long it counts, in seconds.
    """

    raw_response: str
    parsed_json: dict[str, Any] | None
    structured_response: StructuredResponse | None
    validation_result: bool
    reason_code: ReasonCode
    fallback_used: str
    created_at: float
    ttl_seconds: float

    __repr__ = short_repr("validation_result", "reason_code", "fallback_used", "ttl_seconds", "raw_response")


class ResponseCache(MemoryCache):
    """The cache that a program fills by hand, one for the process."""

    DEFAULT_TTL_ONLINE: Final = 300
    """Seconds that an entry counts in live traffic."""
    DEFAULT_TTL_CI: Final = 3600
    """Seconds that an entry counts in continuous integration."""
    MAX_CACHE_SIZE: Final = MAX_ENTRIES
    """The greatest number of entries."""

    @staticmethod
    def get_instance() -> ResponseCache:
        """The shared instance."""
        return _CACHE

    @staticmethod
    def reset() -> None:
        """Empty the shared one and set its numbers to zero."""
        _CACHE.clear()
        _CACHE.reset_stats()

    @staticmethod
    def compute_key(
        model_id: str, prompt_version: str, query: str, doc_ids: Iterable[str], raw_text: str
    ) -> str:
        """The same key for the same arguments, in every process: 64 hexadecimal digits."""
        return answer_key(model_id, prompt_version, query, list(doc_ids), raw_text)

    def set(
        self,
        key: str,
        raw_response: str,
        parsed_json: dict[str, Any] | None,
        structured_response: StructuredResponse | None,
        validation_result: bool,
        reason_code: ReasonCode,
        fallback_used: str,
        ttl_seconds: float = DEFAULT_TTL_ONLINE,
    ) -> None:
        """Store a :class:`CacheEntry` under *key* for *ttl_seconds*.

        Raises:
            ConfigurationError: *ttl_seconds* is not a positive number.
        """
        entry = CacheEntry(
            raw_response=raw_response,
            parsed_json=parsed_json,
            structured_response=structured_response,
            validation_result=validation_result,
            reason_code=ReasonCode(reason_code),
            fallback_used=str(fallback_used),
            created_at=time.time(),
            ttl_seconds=checked_ttl(ttl_seconds, "ttl_seconds"),
        )
        self.put(key, entry, ttl=ttl_seconds)

    def get_stats(self) -> dict[str, Any]:
        """``hits``, ``misses``, ``hit_rate`` (``None`` before the first look-up), ``size`` and ``max_size``."""
        now = self.stats()
        counts = {"hits": now.hits, "misses": now.misses, "hit_rate": now.hit_rate}
        return {**counts, "size": self.size(), "max_size": MAX_ENTRIES}


_CACHE: Final = ResponseCache()


def get_parse_stats() -> dict[str, Any]:
    """All numbers of the process: ``parsing``, ``cache`` and ``slo`` with the ``success_rate``."""
    return {
        "parsing": _METRICS.get_stats(),
        "cache": _CACHE.get_stats(),
        "slo": {"success_rate": _METRICS.get_success_rate()},
    }


def reset_stats() -> None:
    """Set the metrics of the process to zero and empty its cache."""
    ResponseMetrics.reset()
    ResponseCache.reset()
