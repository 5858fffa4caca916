"""Who may ask, and how much: keys, and what each has used of its limits."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import time
from typing import Final

import attrs

from crosswalk.errors import ErrorKind
from crosswalk_serve.config import Key
from crosswalk_serve.counting import CountError, Counters
from crosswalk_serve.refusal import Refusal

__all__ = ["Caller", "Keyring", "Quotas", "new_key"]

_MINUTE: Final = 60
_DAY: Final = 86400
_MICRO: Final = 1_000_000
_KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key")
"""Where a client may send its key, besides ``Authorization: Bearer``."""
_LONGEST: Final = 512
SHORTEST: Final = 24
"""The characters of a key at least: what people think of themselves is shorter, and can be guessed."""


@attrs.frozen
class Caller:
    """Who asks.

    Attributes:
        name: what the file calls the key; ``None`` where there are no keys.
        key: what it may.
    """

    name: str | None
    key: Key | None

    def may_ask(self, model: str) -> bool:
        """Whether it may ask for *model*, the name in the file."""
        return self.key is None or self.key.may_ask(model)


def new_key() -> str:
    """A key that nobody can guess."""
    return f"cw-{secrets.token_urlsafe(32)}"


class Keyring:
    """The keys of a gateway.

    Args:
        keys: by name; none, and everybody may ask.
    """

    def __init__(self, keys: Mapping[str, Key]) -> None:
        self._callers = [Caller(name, key) for name, key in keys.items()]

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Who sends a request with *headers*: the key as the SDKs send it.

        Every key is looked at, to its end, so that the time tells nothing.

        Raises:
            Refusal: no key, two different ones, or one that is none of these; which of them is not said.
        """
        if not self._callers:
            return Caller(None, None)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        said = {headers.get(name, "").strip() for name in _KEY_HEADERS}
        said |= {token.strip()} if scheme.lower() == "bearer" else set()
        said -= {""}
        found = None
        if len(said) == 1 and len(key := said.pop()) <= _LONGEST:
            for caller in self._callers:
                if caller.key is not None and caller.key.hash.fits(key):
                    found = caller
        if found is None:
            raise Refusal(ErrorKind.AUTHENTICATION, "no valid API key was given", code="invalid_api_key")
        return found


class Quotas:
    """What callers have used of their limits.

    Args:
        counters: where it is counted.
        clock: seconds since 1970.
    """

    def __init__(self, counters: Counters, clock: Callable[[], float] = time) -> None:
        self._counters = counters
        self._clock = clock
        self._running: Counter[str | None] = Counter()  # requests by the name of the key

    @contextmanager
    def place(self, caller: Caller) -> Iterator[None]:
        """A place for one more request of *caller*.

        Raises:
            Refusal: as many run as its key may have at once.
        """
        most = None if caller.key is None else caller.key.concurrent_requests
        if most is not None and self._running[caller.name] >= most:
            said = f"the key's limit: more than {most} requests at once"
            raise Refusal(ErrorKind.RATE_LIMIT, said, code="rate_limit_exceeded", retry_after=1)
        self._running[caller.name] += 1
        try:
            yield
        finally:
            self._running[caller.name] -= 1

    async def admit(self, caller: Caller) -> None:
        """Count a request of *caller*.

        Raises:
            Refusal: one of its limits is reached, or nobody can tell.
        """
        key = caller.key
        if key is None or not key.is_limited:
            return
        used = self._used
        try:
            if (
                key.budget_per_day is not None
                and await used(caller, "cost", _DAY, 0) >= key.budget_per_day * _MICRO
            ):
                raise self._over("the budget of the day is used up", _DAY, code="insufficient_quota")
            tokens = key.tokens_per_minute
            if tokens is not None and await used(caller, "tokens", _MINUTE, 0) >= tokens:
                raise self._over(f"more than {tokens} tokens a minute", _MINUTE)
            requests = key.requests_per_minute
            if requests is not None and await used(caller, "requests", _MINUTE, 1) > requests:
                raise self._over(f"more than {requests} requests a minute", _MINUTE)
        except CountError:
            raise Refusal(
                ErrorKind.SERVER, "the limits of the key cannot be checked now", status=503, retry_after=5
            ) from None

    async def spend(self, caller: Caller, tokens: int, dollars: float) -> None:
        """Count what an answer to *caller* took; where it cannot be counted, it is not."""
        key = caller.key
        try:
            if key is not None and key.tokens_per_minute is not None and tokens:
                await self._used(caller, "tokens", _MINUTE, tokens)
            if key is not None and key.budget_per_day is not None and dollars:
                await self._used(caller, "cost", _DAY, round(dollars * _MICRO))
        except CountError:
            pass  # the next request is refused by it, as long as it is away

    async def _used(self, caller: Caller, what: str, window: int, amount: int) -> int:
        number = int(self._clock()) // window
        return await self._counters.add(f"{what}:{number}:{caller.name}", amount, (number + 1) * window)

    def _over(self, what: str, window: int, code: str = "rate_limit_exceeded") -> Refusal:
        wait = window - int(self._clock()) % window
        return Refusal(ErrorKind.RATE_LIMIT, f"the key's limit: {what}", code=code, retry_after=wait)
