"""The cache in the memory of this process, on cachetools."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from crosswalk.structured.cache_stored import (
    DEFAULT_NEGATIVE_TTL,
    DEFAULT_TTL,
    MAX_ENTRIES,
    StoredCache,
    check_max_entries,
)

if TYPE_CHECKING:
    from cachetools import TLRUCache

__all__ = ["MemoryCache"]

V = TypeVar("V")


class MemoryCache(StoredCache):
    """An :class:`AnswerCache` in memory, for the threads and tasks of this process.

    Entries are kept as the same bytes as in Redis: nobody can change a value that another was given.

    Args:
        max_entries: how many entries it holds; when full, the least recently used goes.
        ttl: seconds that a value lives.
        negative_ttl: seconds that a failure lives; ``None`` to store no failures.
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
        super().__init__(
            MemoryStore[bytes](max_entries, clock), ttl=ttl, negative_ttl=negative_ttl, clock=clock
        )


class MemoryStore(Generic[V]):
    """A :class:`Store` in memory; it takes values of any kind."""

    waits: ClassVar[bool] = False

    def __init__(self, max_entries: int, clock: Callable[[], float]) -> None:
        check_max_entries(max_entries)
        from cachetools import TLRUCache

        self._lock = threading.Lock()
        # With each value its time to live.
        self._entries: TLRUCache[str, tuple[V, float]] = TLRUCache(
            max_entries, lambda _key, value, now: now + value[1], timer=clock
        )

    def read(self, key: str) -> V | None:
        """See :meth:`Store.read`."""
        with self._lock:
            found = self._entries.get(key)
        return None if found is None else found[0]

    def write(self, key: str, stored: V, ttl: float) -> int:
        """See :meth:`Store.write`."""
        with self._lock:
            self._entries.pop(key, None)
            self._entries.expire()
            before = len(self._entries)
            self._entries[key] = (stored, ttl)
            return before + 1 - len(self._entries)

    def clear(self) -> None:
        """See :meth:`Store.clear`."""
        with self._lock:
            self._entries.clear()

    def size(self) -> int:
        """See :meth:`Store.size`."""
        with self._lock:
            self._entries.expire()
            return len(self._entries)
