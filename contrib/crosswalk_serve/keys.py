"""Keys, their rights, and the use of their limits, counted in this process or in Redis."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorKind
from crosswalk_serve.config import Key
from crosswalk_serve.http_errors import Refusal

if TYPE_CHECKING:
    from redis.asyncio import Redis


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


_MINUTE: Final = 60
_DAY: Final = 86400
_MICRO: Final = 1_000_000
_KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key")
"""The headers for a client's key, besides ``Authorization: Bearer``."""
_LONGEST: Final = 512
SHORTEST: Final = 24
"""The least number of characters of a key. Keys that people make up are shorter, and can be guessed."""


@attrs.frozen
class Caller:
    """The sender of a request.

    Attributes:
        name: the name of the key in the file, or ``None`` if the gateway has no keys.
        key: the key with its rights.
    """

    name: str | None
    key: Key | None

    def may_ask(self, model: str) -> bool:
        """Return whether the caller may ask for *model*, the name in the file."""
        return self.key is None or self.key.may_ask(model)


def new_key() -> str:
    """Return a new random key."""
    return f"cw-{secrets.token_urlsafe(32)}"


class Keyring:
    """The keys of a gateway.

    Args:
        keys: the keys by name. If empty, everybody may ask.
    """

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self._callers = [Caller(name, key) for name, key in keys.items()]

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Return the sender of a request with *headers*, which hold the key in the way of one of the SDKs.

        Every key is compared completely, so the time reveals nothing.

        Raises:
            Refusal: the request has no key, two different keys, or an unknown key. The message does not say which.
        """
        if not self._callers:
            return Caller(None, None)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        raw = {headers.get(name, "").strip() for name in _KEY_HEADERS}
        raw |= {token.strip()} if scheme.lower() == "bearer" else set()
        raw -= {""}
        result = None
        if len(raw) == 1 and len(key := raw.pop()) <= _LONGEST:
            for caller in self._callers:
                if caller.key is not None and caller.key.hash.fits(key):
                    result = caller
        if result is None:
            raise Refusal(ErrorKind.AUTHENTICATION, "no valid API key was given", code="invalid_api_key")
        return result


@attrs.frozen
class Reservation:
    """The part of a key's budget that is set aside for a request.

    Attributes:
        amount: in millionths of a US dollar.
        day: the number of its day, or ``None`` without a budget.
    """

    amount: int = 0
    day: int | None = None


class Quotas:
    """The use of the callers' limits.

    Args:
        counters: the counters.
        clock: returns seconds since 1970.
    """

    def __init__(self, counters: Counters, clock: Callable[[], float] = time) -> None:
        self._counters = counters
        self._clock = clock
        self._running: Counter[str | None] = Counter()  # the running requests by the name of the key

    @contextmanager
    def place(self, caller: Caller) -> Iterator[None]:
        """Reserve a place for one more request of *caller*.

        Raises:
            Refusal: the key has reached its limit of concurrent requests.
        """
        most = None if caller.key is None else caller.key.concurrent_requests
        if most is not None and self._running[caller.name] >= most:
            text = f"the key's limit: more than {most} requests at once"
            raise Refusal(ErrorKind.RATE_LIMIT, text, code="rate_limit_exceeded", retry_after=1)
        self._running[caller.name] += 1
        try:
            yield
        finally:
            self._running[caller.name] -= 1

    async def admit(self, caller: Caller, dollars: float = 0.0) -> Reservation:
        """Count a request of *caller*, and reserve the *dollars* that it may cost. :meth:`spend` settles them.

        Raises:
            Refusal: a limit is reached, or the counts are not available.
        """
        key = caller.key
        if key is None or not key.is_limited:
            return Reservation()
        used = self._used
        try:
            tokens = key.tokens_per_minute
            if tokens is not None and await used(caller, "tokens", _MINUTE, 0) >= tokens:
                raise self._over(f"more than {tokens} tokens a minute", _MINUTE)
            requests = key.requests_per_minute
            if requests is not None and await used(caller, "requests", _MINUTE, 1) > requests:
                raise self._over(f"more than {requests} requests a minute", _MINUTE)
            return await self._reserve(caller, dollars, key.budget_per_day)
        except CountError:
            raise Refusal(
                ErrorKind.SERVER, "the limits of the key cannot be checked now", status=503, retry_after=5
            ) from None

    async def _reserve(self, caller: Caller, dollars: float, budget: float | None) -> Reservation:
        if budget is None:
            return Reservation()
        amount, most, day = math.ceil(dollars * _MICRO), budget * _MICRO, self._number(_DAY)
        total = await self._used(caller, "cost", _DAY, amount, day)
        if total > most or total - amount >= most:
            await self._used(caller, "cost", _DAY, -amount, day)
            is_empty = total - amount >= most
            raw = "is used up" if is_empty else f"has not the ${dollars:.2f} left that this request may cost"
            raise self._over(f"the budget of the day {raw}", _DAY, code="insufficient_quota")
        return Reservation(amount, day)

    async def spend(
        self, caller: Caller, tokens: int, dollars: float, reserved: Reservation | None = None
    ) -> None:
        """Count the use of an answer to *caller* in place of what was *reserved* for it.

        If the counters are not available, it is not counted.
        """
        key, amount = caller.key, round(dollars * _MICRO)
        if reserved is not None and reserved.day is not None:
            amount -= reserved.amount
        try:
            if key is not None and key.tokens_per_minute is not None and tokens:
                await self._used(caller, "tokens", _MINUTE, tokens)
            if key is not None and key.budget_per_day is not None and amount:
                await self._used(caller, "cost", _DAY, amount, None if reserved is None else reserved.day)
        except CountError:
            pass  # the next request is refused while they are away

    def _number(self, window: int) -> int:
        return int(self._clock()) // window

    async def _used(
        self, caller: Caller, what: str, window: int, amount: int, number: int | None = None
    ) -> int:
        number = self._number(window) if number is None else number
        return await self._counters.add(f"{what}:{number}:{caller.name}", amount, (number + 1) * window)

    def _over(self, what: str, window: int, code: str = "rate_limit_exceeded") -> Refusal:
        wait = window - int(self._clock()) % window
        return Refusal(ErrorKind.RATE_LIMIT, f"the key's limit: {what}", code=code, retry_after=wait)
