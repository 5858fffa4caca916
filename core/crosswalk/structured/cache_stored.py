"""The cache over any store of bytes: entries, times to live, statistics, single flight."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Final, ParamSpec, Protocol, TypeVar, cast

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured.cache import CachedAnswer, CacheStats
from crosswalk.structured.cache_entry import StoredEntry, decode_entry, encode_entry

__all__ = ["StoreError"]

log = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S")
P = ParamSpec("P")

DEFAULT_TTL = 300.0
"""Seconds that a value lives."""
DEFAULT_NEGATIVE_TTL = 30.0
"""Seconds that a failure lives: the model may do better next time, and a parser may be mended."""
MAX_TTL = 1e9
"""Seconds that an entry lives at most: thirty years."""
MAX_ENTRIES = 1000
"""Entries that a cache holds at most."""


_is_inside_parse: Final[ContextVar[bool]] = ContextVar("_is_inside_parse", default=False)
"""Whether this call is made by a parse that others may wait for. It waits for nobody, so no two wait for each other."""


class _ParseAbandonedError(Exception):
    """The caller that parsed was cancelled; those that waited have to see for themselves."""


def _under_way() -> Future[Any]:
    """A future that the cancellation of one who waits for it does not cancel."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


@attrs.define(eq=False)
class ParseUnderWay:
    """The parse of one key, which others that want the same wait for.

    Attributes:
        thread: the thread that parses.
        outcome: what it gives; an exception where it raised one.
        is_negative: whether what it gives is a failure.
    """

    thread: int = attrs.field(factory=threading.get_ident)
    outcome: Future[Any] = attrs.field(factory=_under_way)
    is_negative: bool = False

    def wait(self) -> Any:
        """What the parse gives, or what it raised."""
        return self.outcome.result()

    async def wait_async(self) -> Any:
        """As :meth:`wait`, in a task."""
        return await asyncio.wrap_future(self.outcome)


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
        self._under_way: dict[str, ParseUnderWay] = {}

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
            parse, is_ours = self._join(key, may_wait_for_this_thread=False)
            if is_ours:
                with self._leading(key, parse):
                    answer, result = self._use(key, self._read(key), load)
                    if result is None:
                        self._count("misses")
                        result = produce()
                        answer = dump(result)
                        self._keep(key, answer, ttl)
                    self._finish(parse, answer, result)
                return result
            try:
                result = cast("R", parse.wait())
            except _ParseAbandonedError:
                continue
            except Exception:
                self._count("misses")
                raise
            self._count_shared(parse)
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
            parse, is_ours = self._join(key, may_wait_for_this_thread=True)
            if is_ours:
                with self._leading(key, parse):
                    answer, result = self._use(key, await self._ask(self._read, key), load)
                    if result is None:
                        self._count("misses")
                        result = await produce()
                        answer = dump(result)
                        await self._ask(self._keep, key, answer, ttl)
                    self._finish(parse, answer, result)
                return result
            try:
                result = cast("R", await parse.wait_async())
            except _ParseAbandonedError:
                continue
            except Exception:
                self._count("misses")
                raise
            self._count_shared(parse)
            return result

    def get(self, key: str) -> CachedAnswer | None:
        """What is stored under *key*; ``None`` where there is nothing of use."""
        answer, _ = self._use(key, self._read(key), _as_it_is)
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

    def _join(self, key: str, *, may_wait_for_this_thread: bool) -> tuple[ParseUnderWay, bool]:
        """The parse of *key*, and whether it is the caller's own."""
        parse = ParseUnderWay()
        if _is_inside_parse.get():
            return parse, True
        with self._lock:
            other = self._under_way.setdefault(key, parse)
        if other is parse:
            return parse, True
        if other.thread == parse.thread and not may_wait_for_this_thread:
            return parse, True  # what parses is a task of the loop that this call holds up
        return other, False

    @contextmanager
    def _leading(self, key: str, parse: ParseUnderWay) -> Iterator[None]:
        """The parse itself: with its end those that wait are told the result, or the exception."""
        token = _is_inside_parse.set(True)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised if isinstance(raised, Exception) else _ParseAbandonedError()
            raise
        finally:
            _is_inside_parse.reset(token)
            with self._lock:
                if self._under_way.get(key) is parse:
                    del self._under_way[key]
            if error is not None:
                parse.outcome.set_exception(error)

    def _finish(self, parse: ParseUnderWay, answer: CachedAnswer | None, result: R) -> None:
        parse.is_negative = answer is not None and answer.is_negative
        parse.outcome.set_result(result)

    def _count_shared(self, parse: ParseUnderWay) -> None:
        self._count("hits", "shared_hits", *(["negative_hits"] if parse.is_negative else []))

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
        self, key: str, stored: bytes | None, load: Callable[[CachedAnswer], R | None]
    ) -> tuple[CachedAnswer | None, R | None]:
        """What *stored* holds, counted as a hit, and the result of it; nothing where there is none that still counts."""
        if stored is None:
            return None, None
        entry = decode_entry(stored)
        if entry is not None and entry.key == key:
            if entry.expires_at <= self._clock():
                return None, None
            result = self._load(load, entry.answer)
            if result is not None:
                self._count("hits", *(["negative_hits"] if entry.answer.is_negative else []))
                return entry.answer, result
        self._count("rejected")
        return None, None

    def _load(self, load: Callable[[CachedAnswer], R | None], answer: CachedAnswer) -> R | None:
        try:
            return load(answer)
        except Exception as error:  # whatever a stranger's entry makes of a reader, it is a miss
            log.warning("a cache entry was refused with %s", type(error).__name__)
            return None

    def _keep(self, key: str, answer: CachedAnswer, ttl: float | None) -> None:
        own = self._negative_ttl if answer.is_negative else self._ttl
        seconds = own if ttl is None or own is None else ttl
        if seconds is None:
            return
        stored = encode_entry(StoredEntry(key, self._clock() + seconds, answer))
        if stored is None:
            return
        try:
            evicted = self._store.write(key, stored, seconds)
        except StoreError as error:
            self._failed(error)
        else:
            self._is_failing = False
            self._count("stores", evictions=evicted)

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
