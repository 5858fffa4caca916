"""A cache of results in the memory of this process, on cachetools."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.types.json import dump_json

if TYPE_CHECKING:
    from cachetools import TLRUCache


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

        if type(max_entries) is not int or max_entries < 1:
            raise ConfigurationError("max_entries must be a positive integer", key="max_entries")
        self._ttl = checked_ttl(ttl, "ttl")
        self._negative_ttl = None if negative_ttl is None else checked_ttl(negative_ttl, "negative_ttl")
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
        seconds = (
            (self._negative_ttl if is_negative else self._ttl) if ttl is None else checked_ttl(ttl, "ttl")
        )
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


def checked_ttl(seconds: Any, name: str) -> float:
    """*seconds* as a number, which must be positive. *name* is the option that a message names."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise ConfigurationError(f"{name} must be a positive number of seconds", key=name)
    return float(seconds)


def answer_key(*parts: Any) -> str:
    """The same key for the same *parts*, texts, lists and ``None``, in every process: 64 hexadecimal digits."""
    return hashlib.sha256(dump_json(list(parts))).hexdigest()
