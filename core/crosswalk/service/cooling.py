"""The endpoints that are not worth trying first, for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable

from crosswalk.service.policy import RetryPolicy

__all__ = ["Cooling"]


class Cooling:
    """The endpoints that have failed lately, so that calls try others first (a circuit breaker).

    An endpoint cools down for :attr:`RetryPolicy.cool_down_seconds` after :attr:`RetryPolicy.attempts` attempts in a row
    have failed there. Then one call tries it. If that fails, it cools down for as long again.
    Safe for several threads.

    Args:
        endpoints: their number.
        policy: the retry policy.
        timer: a monotonic clock, in seconds.
    """

    def __init__(self, endpoints: int, policy: RetryPolicy, timer: Callable[[], float]) -> None:
        self._policy = policy
        self._timer = timer
        self._failures = [0] * endpoints
        self._until: list[float | None] = [None] * endpoints
        self._lock = threading.Lock()

    def is_cooling(self, endpoint: int) -> bool:
        """Whether *endpoint* has failed, and not answered since."""
        return self._until[endpoint] is not None

    def admits(self, endpoint: int) -> bool:
        """Whether *endpoint* may be tried before others. After its cool-down, this one call may try it."""
        with self._lock:
            until = self._until[endpoint]
            if until is not None:
                if self._timer() < until:
                    return False
                self._until[endpoint] = self._timer() + self._policy.cool_down_seconds
            return True

    def answered(self, endpoint: int) -> None:
        """Note that it has answered."""
        with self._lock:
            self._failures[endpoint] = 0
            self._until[endpoint] = None

    def failed(self, endpoint: int) -> None:
        """Note that an attempt at it has failed."""
        with self._lock:
            self._failures[endpoint] += 1
            if self._policy.cool_down_seconds and self._failures[endpoint] >= self._policy.attempts:
                self._until[endpoint] = self._timer() + self._policy.cool_down_seconds
