"""Which endpoints are not worth asking first, for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable

from crosswalk.service.policy import RetryPolicy

__all__ = ["Cooling"]


class Cooling:
    """Which endpoints have failed lately, so that calls ask others first (a circuit breaker).

    An endpoint cools down once as many attempts in a row have failed as a call makes there, for
    :attr:`RetryPolicy.cool_down_seconds`. Then one call tries it: unless that is answered it cools down for as long again.
    For several threads.

    Args:
        endpoints: how many there are.
        policy: what is tried again.
        timer: a monotonic clock, in seconds.
    """

    def __init__(self, endpoints: int, policy: RetryPolicy, timer: Callable[[], float]) -> None:
        self._policy = policy
        self._timer = timer
        self._failures = [0] * endpoints
        self._until: list[float | None] = [None] * endpoints
        self._lock = threading.Lock()

    def is_cooling(self, endpoint: int) -> bool:
        """Whether *endpoint* has failed, and not been answered since."""
        return self._until[endpoint] is not None

    def admits(self, endpoint: int) -> bool:
        """Whether *endpoint* may be asked before others; where it cools down, this one call may, once its time is over."""
        with self._lock:
            until = self._until[endpoint]
            if until is not None:
                if self._timer() < until:
                    return False
                self._until[endpoint] = self._timer() + self._policy.cool_down_seconds
            return True

    def answered(self, endpoint: int) -> None:
        """It has answered."""
        with self._lock:
            self._failures[endpoint] = 0
            self._until[endpoint] = None

    def failed(self, endpoint: int) -> None:
        """An attempt at it has failed."""
        with self._lock:
            self._failures[endpoint] += 1
            if self._policy.cool_down_seconds and self._failures[endpoint] >= self._policy.attempts:
                self._until[endpoint] = self._timer() + self._policy.cool_down_seconds
