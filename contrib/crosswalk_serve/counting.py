"""Counts that grow until they expire, in this process or in Redis, for the limits of keys."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Protocol

from crosswalk.errors import ConfigurationError, CrosswalkError

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["CountError", "Counters", "MemoryCounters", "RedisCounters", "connect"]


class CountError(CrosswalkError):
    """A count is not available now, because Redis is away."""


class Counters(Protocol):
    """Whole numbers by name. Each is forgotten when its time is over."""

    async def add(self, name: str, amount: int, until: float) -> int:
        """Add *amount* to the count of *name*, and return the new count. It is forgotten at the time *until*.

        Raises:
            CountError: the count cannot be reached.
        """


class MemoryCounters:
    """:class:`Counters` of this process alone.

    Args:
        clock: returns seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[int, float]] = {}
        self._sweep_at = 0.0

    async def add(self, name: str, amount: int, until: float) -> int:
        """See :class:`Counters`."""
        now = self._clock()
        if now >= self._sweep_at:
            self._counts = {key: stored for key, stored in self._counts.items() if stored[1] > now}
            self._sweep_at = now + 60
        count, end = self._counts.get(name, (0, until))
        count = amount if end <= now else count + amount
        self._counts[name] = count, until
        return count


class RedisCounters:
    """:class:`Counters` in Redis, for all processes and machines that use the same *prefix*.

    Args:
        client: an asynchronous client of redis-py. It is not closed.
        prefix: the prefix of all keys.
    """

    def __init__(self, client: Redis, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    async def add(self, name: str, amount: int, until: float) -> int:
        """See :class:`Counters`."""
        from redis import RedisError

        key = f"{self._prefix}:count:{name}"
        try:
            async with self._client.pipeline() as pipe:
                pipe.incrby(key, amount)
                pipe.expireat(key, int(until) + 1)
                count, _ = await pipe.execute()
        except (RedisError, OSError) as error:
            raise CountError(f"Redis: {type(error).__name__}") from None
        return int(count)


def connect(url: str, seconds: float = 1.0) -> Redis:
    """Return a client of the Redis at *url*, which waits *seconds* at most for an answer.

    Raises:
        ConfigurationError: *url* is not a Redis URL, or redis-py is not installed.
    """
    try:
        from redis.asyncio import Redis
    except ImportError:
        raise ConfigurationError(
            "redis needs the extra: pip install 'crosswalk-llm[redis]'", key="redis"
        ) from None
    try:
        return Redis.from_url(url, socket_timeout=seconds, socket_connect_timeout=seconds)
    except ValueError:  # its message may quote the password
        raise ConfigurationError(
            "expected an address of a Redis: redis://, rediss:// or unix://", key="redis.url"
        ) from None
