"""The cache in Redis, for many processes and machines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, cast

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured.cache_stored import (
    DEFAULT_NEGATIVE_TTL,
    DEFAULT_TTL,
    MAX_ENTRIES,
    StoredCache,
    StoreError,
    check_max_entries,
)

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisCache"]

PAUSE = 1.0
"""Seconds for which a Redis that could not be reached is not asked again: each try may cost a whole timeout."""
DEFAULT_TIMEOUT = 0.5
"""Seconds to wait for Redis: a parse takes less than a millisecond, so to wait long for its result is no gain."""


class RedisCache(StoredCache):
    """An :class:`AnswerCache` in Redis, shared by all that use the same *namespace*.

    A Redis that is down, slow or full is a miss, and counted; one that could not be reached is left alone for a
    second. Single flight holds within this process; two
    processes that miss at once both parse.

    Args:
        client: a client of redis-py, which may be used for other things as well; it is not closed.
        namespace: what all keys start with.
        max_entries: how many entries the namespace holds; when full, the least recently used goes.
        ttl: seconds that a value lives.
        negative_ttl: seconds that a failure lives; ``None`` to store no failures.
        clock: seconds since the epoch; the machines that share a namespace should agree about them.

    Raises:
        ConfigurationError: *max_entries* or a time to live is not positive, or *client* decodes what it reads.
        CrosswalkError: redis is not installed.
    """

    def __init__(
        self,
        client: Redis,
        *,
        namespace: str = "crosswalk:answers",
        max_entries: int = MAX_ENTRIES,
        ttl: float = DEFAULT_TTL,
        negative_ttl: float | None = DEFAULT_NEGATIVE_TTL,
        clock: Callable[[], float] = time.time,
    ) -> None:
        store = RedisStore(client, namespace, max_entries, clock)
        super().__init__(store, ttl=ttl, negative_ttl=negative_ttl, clock=clock)

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        namespace: str = "crosswalk:answers",
        max_entries: int = MAX_ENTRIES,
        ttl: float = DEFAULT_TTL,
        negative_ttl: float | None = DEFAULT_NEGATIVE_TTL,
    ) -> RedisCache:
        """A cache with a client of its own, which does not try again and waits *timeout* seconds at most.

        Args:
            url: ``redis://[[user]:password@]host[:port][/database]``, ``rediss://…`` or ``unix://…``.
            timeout: seconds to wait for a connection, and for an answer.
            namespace: what all keys start with.
            max_entries: how many entries the namespace holds.
            ttl: seconds that a value lives.
            negative_ttl: seconds that a failure lives; ``None`` to store no failures.

        Raises:
            ConfigurationError: *url* is none of Redis, or a number is not positive.
            CrosswalkError: redis is not installed.
        """
        redis = _redis()
        try:
            client = redis.Redis.from_url(
                url,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
            )
        except ValueError:  # its message may quote the password
            raise ConfigurationError("url: no address of a Redis (redis://, rediss:// or unix://)") from None
        return cls(client, namespace=namespace, max_entries=max_entries, ttl=ttl, negative_ttl=negative_ttl)


class RedisStore:
    """A :class:`Store` in Redis.

    An entry is a string with an expiry. Two sorted sets hold the keys by last use and by expiry: Redis itself can
    evict by use only for a whole server, not for one namespace.
    """

    waits: ClassVar[bool] = True

    def __init__(self, client: Redis, namespace: str, max_entries: int, clock: Callable[[], float]) -> None:
        check_max_entries(max_entries)
        redis = _redis()
        if client.connection_pool.connection_kwargs.get("decode_responses"):
            # One entry that is no text would leave its connection in the middle of an answer.
            raise ConfigurationError("client: an entry is bytes; use a client without decode_responses")
        self._unreachable = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._away_until = 0.0
        self._failures = (redis.RedisError, OSError, UnicodeError)
        self._client = client
        self._max_entries = max_entries
        self._clock = clock
        self._entry = f"{namespace}:entry:"
        self._used = f"{namespace}:used"
        self._expiry = f"{namespace}:expiry"

    def read(self, key: str) -> bytes | None:
        """See :meth:`Store.read`."""
        with self._asking(), self._client.pipeline(transaction=False) as pipe:
            pipe.get(self._entry + key)
            pipe.zadd(self._used, {key: self._clock()}, xx=True)
            stored = pipe.execute()[0]
        return cast("bytes | None", stored)

    def write(self, key: str, stored: bytes, ttl: float) -> int:
        """See :meth:`Store.write`."""
        with self._asking():
            now = self._clock()
            with self._client.pipeline() as pipe:
                pipe.set(self._entry + key, stored, px=max(round(ttl * 1000), 1))
                pipe.zadd(self._used, {key: now})
                pipe.zadd(self._expiry, {key: now + ttl})
                pipe.zrangebyscore(self._expiry, "-inf", now)
                pipe.zcard(self._used)
                *_, expired, count = pipe.execute()
            self._remove(expired)
            excess = count - len(expired) - self._max_entries
            if excess <= 0:
                return 0
            popped = cast("list[tuple[bytes, float]]", self._client.zpopmin(self._used, excess))
            oldest = [member for member, _ in popped]
            self._remove(oldest)
            return len(oldest)

    def clear(self) -> None:
        """See :meth:`Store.clear`."""
        with self._asking():
            self._client.delete(self._used, self._expiry)
            batch: list[bytes] = []
            for name in self._client.scan_iter(match=f"{_literal(self._entry)}*", count=1000):
                batch.append(name)
                if len(batch) == 1000:
                    self._client.delete(*batch)
                    batch.clear()
            if batch:
                self._client.delete(*batch)

    def size(self) -> int:
        """See :meth:`Store.size`."""
        with self._asking():
            return int(self._client.zcount(self._expiry, f"({self._clock()}", "+inf"))

    def _remove(self, members: list[bytes]) -> None:
        if not members:
            return
        with self._client.pipeline() as pipe:
            pipe.delete(*(self._entry.encode() + member for member in members))
            pipe.zrem(self._used, *members)
            pipe.zrem(self._expiry, *members)
            pipe.execute()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        if self._clock() < self._away_until:
            raise StoreError("Redis: could not be reached a moment ago")
        try:
            yield
        except self._failures as error:
            if isinstance(error, self._unreachable):
                self._away_until = self._clock() + PAUSE
            raise StoreError(f"Redis: {type(error).__name__}") from None


def _literal(text: str) -> str:
    """*text* in a pattern of Redis, standing for itself."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", text)


def _redis() -> ModuleType:
    try:
        import redis
    except ImportError:
        raise CrosswalkError("a cache in Redis needs redis: pip install 'crosswalk-llm[redis]'") from None
    return redis
