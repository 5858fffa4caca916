"""The cache of the whole process that a program fills by hand, under seed 002's names (its "Using the Cache").

A parser that caches by itself takes ``cache=MemoryCache()`` or ``cache=RedisCache(…)`` instead.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import attrs

from crosswalk.structured.cache import CacheStats, answer_key
from crosswalk.structured.cache_memory import MemoryStore
from crosswalk.structured.cache_stored import checked_ttl
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.response import StructuredResponse
from crosswalk.text import short_repr

__all__ = ["CacheEntry", "ResponseCache"]


@attrs.frozen(kw_only=True, repr=False)
class CacheEntry:
    """What was made of one answer.

    Attributes:
        raw_response: what the model wrote.
        parsed_json: the value as plain JSON; ``None`` where there is none.
        structured_response: the value; ``None`` where there is none.
        validation_result: whether there is a valid value.
        reason_code: why it ended so.
        fallback_used: the word for the stage.
        created_at: when it was stored, in seconds since 1970.
        ttl_seconds: how long it counts.
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


class ResponseCache:
    """Entries by key: the least recently used makes room, and each ceases to count after its time to live."""

    DEFAULT_TTL_ONLINE: Final = 300
    """Seconds that an entry counts in live traffic."""
    DEFAULT_TTL_CI: Final = 3600
    """Seconds that an entry counts in continuous integration."""
    MAX_CACHE_SIZE: Final = 1000
    """How many entries there are room for."""

    _instance: ClassVar[ResponseCache | None] = None
    _instance_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._store: MemoryStore[CacheEntry] = MemoryStore(self.MAX_CACHE_SIZE, time.monotonic)
        self._counts: Counter[str] = Counter()

    @classmethod
    def get_instance(cls) -> ResponseCache:
        """The one that all share."""
        with cls._instance_lock:
            if cls._instance is None:
                cls._instance = cls()
            return cls._instance

    @classmethod
    def reset(cls) -> None:
        """Empty the shared one and set its numbers to zero."""
        shared = cls.get_instance()
        shared.clear()
        with shared._lock:
            shared._counts.clear()

    @staticmethod
    def compute_key(
        model_id: str, prompt_version: str, query: str, doc_ids: Iterable[str], raw_text: str
    ) -> str:
        """The same key for the same arguments, in every process: 64 hexadecimal digits."""
        return answer_key(model_id, prompt_version, query, list(doc_ids), raw_text)

    def get(self, key: str) -> CacheEntry | None:
        """The entry under *key*; ``None`` where there is none that still counts."""
        entry = self._store.read(key)
        with self._lock:
            self._counts["misses" if entry is None else "hits"] += 1
            self._counts["negative_hits"] += entry is not None and not entry.validation_result
        return entry

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
        """Store an entry under *key* for *ttl_seconds*.

        Raises:
            ConfigurationError: *ttl_seconds* is not a positive number.
        """
        checked_ttl(ttl_seconds, "ttl_seconds")
        entry = CacheEntry(
            raw_response=raw_response,
            parsed_json=parsed_json,
            structured_response=structured_response,
            validation_result=validation_result,
            reason_code=reason_code,
            fallback_used=fallback_used,
            created_at=time.time(),
            ttl_seconds=ttl_seconds,
        )
        evicted = self._store.write(key, entry, ttl_seconds)
        with self._lock:
            self._counts["stores"] += 1
            self._counts["evictions"] += evicted

    def clear(self) -> None:
        """Remove all entries; the numbers stay."""
        self._store.clear()

    def stats(self) -> CacheStats:
        """What it did until now, in the form of every cache: the exporters take it."""
        with self._lock:
            return CacheStats(**self._counts)

    def size(self) -> int:
        """How many entries there are."""
        return self._store.size()

    def get_stats(self) -> dict[str, Any]:
        """``hits``, ``misses``, ``hit_rate`` (``None`` before the first look-up), ``size`` and ``max_size``."""
        now = self.stats()
        return {
            "hits": now.hits,
            "misses": now.misses,
            "hit_rate": now.hit_rate,
            "size": self.size(),
            "max_size": self.MAX_CACHE_SIZE,
        }
