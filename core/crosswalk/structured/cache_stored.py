"""The cache over any store of bytes: entries, times to live, statistics, single flight."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import ClassVar, ParamSpec, Protocol, TypeVar

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured.cache import CachedAnswer, CacheStats
from crosswalk.structured.cache_entry import StoredEntry, decode_entry, encode_entry
from crosswalk.structured.cache_flight import FlightAbandonedError, Flights

__all__ = [
    "DEFAULT_NEGATIVE_TTL",
    "DEFAULT_TTL",
    "MAX_ENTRIES",
    "MAX_TTL",
    "Store",
    "StoreError",
    "StoredCache",
    "check_max_entries",
    "checked_ttl",
]

log = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S")
P = ParamSpec("P")

DEFAULT_TTL = 300.0
"""Seconds that a value lives (seed 002, "Constants": ``DEFAULT_TTL_ONLINE``)."""
DEFAULT_NEGATIVE_TTL = 30.0
"""Seconds that a failure lives: the model may do better next time, and a parser may be mended."""
MAX_TTL = 1e9
"""Seconds that an entry lives at most: thirty years."""
MAX_ENTRIES = 1000
"""Entries that a cache holds at most (seed 002, "Constants": ``MAX_CACHE_SIZE``)."""


class StoreError(CrosswalkError):
    """A store could not be reached, or refused. It stays inside the cache, which counts it."""


class Store(Protocol):
    """Where the bytes are. It drops what is older than its time to live, and the least recently used when full.

    Every method may be called from many threads at once and raises nothing but :class:`StoreError`.
    """

    waits: ClassVar[bool]
    """Whether it waits for something outside this process, so that tasks have to ask it from a thread."""

    def read(self, key: str) -> bytes | None:
        """The bytes under *key*, which are now the most recently used; ``None`` where there are none."""
        ...

    def write(self, key: str, stored: bytes, ttl: float) -> int:
        """Keep *stored* for *ttl* seconds, and say how many other entries had to go for it."""
        ...

    def clear(self) -> None:
        """Drop all."""
        ...

    def size(self) -> int:
        """How many entries there are."""
        ...


class StoredCache:
    """An :class:`AnswerCache` over a :class:`Store`.

    Args:
        store: where the bytes are.
        ttl: seconds that a value lives.
        negative_ttl: seconds that a failure lives; ``None`` to store no failures.
        clock: seconds, from any beginning; the same for all that share the store.

    Raises:
        ConfigurationError: a time to live is not a positive number.
    """

    def __init__(
        self, store: Store, *, ttl: float, negative_ttl: float | None, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._ttl = checked_ttl(ttl, "ttl")
        self._negative_ttl = None if negative_ttl is None else checked_ttl(negative_ttl, "negative_ttl")
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._is_failing = False
        self._lock = threading.Lock()
        self._flights: Flights[bytes | None] = Flights()

    def get_or_parse(
        self,
        key: str,
        produce: Callable[[], R],
        dump: Callable[[R], CachedAnswer],
        load: Callable[[CachedAnswer], R | None],
        *,
        ttl: float | None = None,
    ) -> R:
        """See :meth:`AnswerCache.get_or_parse`."""
        _check_optional(ttl)
        while True:
            stored = self._read(key)
            if (result := self._use(key, stored, load)) is not None:
                return result
            flight, leads = self._flights.join(key)
            if leads:
                with self._flights.landing(key, flight) as landing:
                    landing.outcome = self._read(key)  # it may have come between looking and joining
                    if landing.outcome == stored or (result := self._use(key, landing.outcome, load)) is None:
                        self._count("misses")
                        result = produce()
                        landing.outcome = self._keep(key, dump(result), ttl)
                return result
            try:
                result = self._use(key, flight.wait(), load, "shared_hits")
            except FlightAbandonedError:
                continue
            except Exception:
                self._count("misses")
                raise
            if result is None:
                self._count("misses")
                result = produce()
                self._keep(key, dump(result), ttl)
            return result

    async def get_or_parse_async(
        self,
        key: str,
        produce: Callable[[], Awaitable[R]],
        dump: Callable[[R], CachedAnswer],
        load: Callable[[CachedAnswer], R | None],
        *,
        ttl: float | None = None,
    ) -> R:
        """See :meth:`AnswerCache.get_or_parse_async`; the same steps as in :meth:`get_or_parse`, awaited."""
        _check_optional(ttl)
        while True:
            stored = await self._ask(self._read, key)
            if (result := self._use(key, stored, load)) is not None:
                return result
            flight, leads = self._flights.join(key)
            if leads:
                with self._flights.landing(key, flight) as landing:
                    landing.outcome = await self._ask(self._read, key)
                    if landing.outcome == stored or (result := self._use(key, landing.outcome, load)) is None:
                        self._count("misses")
                        result = await produce()
                        landing.outcome = await self._ask(self._keep, key, dump(result), ttl)
                return result
            try:
                result = self._use(key, await flight.wait_async(), load, "shared_hits")
            except FlightAbandonedError:
                continue
            except Exception:
                self._count("misses")
                raise
            if result is None:
                self._count("misses")
                result = await produce()
                await self._ask(self._keep, key, dump(result), ttl)
            return result

    def get(self, key: str) -> CachedAnswer | None:
        """What is stored under *key*; ``None`` where there is nothing of use."""
        answer = self._use(key, self._read(key), _as_it_is)
        if answer is None:
            self._count("misses")
        return answer

    def put(self, key: str, answer: CachedAnswer, *, ttl: float | None = None) -> None:
        """Store *answer* under *key* for *ttl* seconds; ``None`` for the cache's own time to live.

        Raises:
            ConfigurationError: *ttl* is not a positive number.
        """
        _check_optional(ttl)
        self._keep(key, answer, ttl)

    def clear(self) -> None:
        """Remove all entries; the statistics stay."""
        try:
            self._store.clear()
        except StoreError as error:
            self._failed(error)

    def stats(self) -> CacheStats:
        """What the cache did until now, seen from this process; it does not ask the store."""
        with self._lock:
            return CacheStats(**self._counts)

    def size(self) -> int | None:
        """How many entries there are; ``None`` where the store cannot say."""
        try:
            return self._store.size()
        except StoreError as error:
            self._failed(error)
            return None

    def reset_stats(self) -> None:
        """Start the statistics again at zero; the entries stay."""
        with self._lock:
            self._counts.clear()

    # --------------------------------------------------------------------------------------- the steps

    async def _ask(self, step: Callable[P, S], *args: P.args, **kwargs: P.kwargs) -> S:
        """Take *step*, in a thread where the store waits for something."""
        if self._store.waits:
            return await asyncio.to_thread(step, *args, **kwargs)
        return step(*args, **kwargs)

    def _read(self, key: str) -> bytes | None:
        try:
            return self._store.read(key)
        except StoreError as error:
            self._failed(error)
            return None

    def _use(
        self, key: str, stored: bytes | None, load: Callable[[CachedAnswer], R | None], *counters: str
    ) -> R | None:
        """The result that *stored* holds, counted as a hit; ``None`` where there is none that still counts."""
        if stored is None:
            return None
        entry = decode_entry(stored)
        if entry is not None and entry.key == key:
            if entry.expires_at <= self._clock():
                return None
            result = self._load(load, entry.answer)
            if result is not None:
                self._count("hits", *counters, *(["negative_hits"] if entry.answer.is_negative else []))
                return result
        self._count("rejected")
        return None

    def _load(self, load: Callable[[CachedAnswer], R | None], answer: CachedAnswer) -> R | None:
        try:
            return load(answer)
        except Exception as error:  # whatever a stranger's entry makes of a reader, it is a miss
            log.warning("a cache entry was refused with %s", type(error).__name__)
            return None

    def _keep(self, key: str, answer: CachedAnswer, ttl: float | None) -> bytes | None:
        """Store *answer*, and give its bytes; ``None`` where there are none, or where it would live no time."""
        own = self._negative_ttl if answer.is_negative else self._ttl
        seconds = own if ttl is None or own is None else ttl
        stored = encode_entry(StoredEntry(key, self._clock() + (seconds or self._ttl), answer))
        if stored is None or seconds is None:
            return stored
        try:
            evicted = self._store.write(key, stored, seconds)
        except StoreError as error:
            self._failed(error)
        else:
            self._is_failing = False
            self._count("stores", evictions=evicted)
        return stored

    def _count(self, *names: str, evictions: int = 0) -> None:
        with self._lock:
            for name in names:
                self._counts[name] += 1
            self._counts["evictions"] += evictions

    def _failed(self, error: StoreError) -> None:
        # Said once, until an entry can be written again: with a store that is away, every parse comes here.
        log.log(
            logging.DEBUG if self._is_failing else logging.WARNING,
            "the cache works without its store: %s",
            error,
        )
        self._is_failing = True
        self._count("errors")


def _as_it_is(answer: CachedAnswer) -> CachedAnswer:
    return answer


def _check_optional(ttl: float | None) -> None:
    if ttl is not None:
        checked_ttl(ttl, "ttl")


def checked_ttl(seconds: float, name: str) -> float:
    """*seconds*, where an entry can live so long.

    Raises:
        ConfigurationError: it cannot.
    """
    if not 0 < seconds <= MAX_TTL:
        raise ConfigurationError(
            f"{name}: a time to live is a positive number of seconds, {MAX_TTL:.0e} at most"
        )
    return seconds


def check_max_entries(count: int) -> None:
    """Refuse what is no number of entries.

    Raises:
        ConfigurationError: *count* is no integer, or not positive.
    """
    if type(count) is not int or count < 1:
        raise ConfigurationError("max_entries: a cache holds at least one entry")
