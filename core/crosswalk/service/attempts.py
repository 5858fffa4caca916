"""The decisions of one call, without I/O: the next endpoint, the wait before it, and the endpoints that failed lately."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable

import attrs

from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.service.policy import RetryPolicy
from crosswalk.types.response import ChatResponse


class Cooling:
    """The endpoints that have failed lately, so that calls try others first (a circuit breaker).

    An endpoint cools down for :attr:`RetryPolicy.cool_down_seconds` after :attr:`RetryPolicy.attempts` attempts in a row
    have failed there. Then one call tries it. If that fails, it cools down for as long again. A single endpoint never cools
    down.
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

    def answered(self, endpoint: int) -> float | None:
        """Note that it has answered. Return 0 if this ends its cool-down, or ``None`` if it did not cool down."""
        with self._lock:
            was_cooling = self.is_cooling(endpoint)
            self._failures[endpoint] = 0
            self._until[endpoint] = None
            return 0.0 if was_cooling else None

    def failed(self, endpoint: int) -> float | None:
        """Note that an attempt at it has failed. Return the seconds of a cool-down that begins, or ``None``."""
        seconds = self._policy.cool_down_seconds if len(self._failures) > 1 else 0
        with self._lock:
            was_cooling = self.is_cooling(endpoint)
            self._failures[endpoint] += 1
            if seconds and self._failures[endpoint] >= self._policy.attempts:
                self._until[endpoint] = self._timer() + seconds
                return None if was_cooling else seconds
            return None


@attrs.frozen
class Failure:
    """Why an attempt failed.

    Attributes:
        info: the error, in canonical terms.
        retry_after: the seconds that the server asks the client to wait, or ``None`` if it does not.
        response: the error response with the partial answer, or ``None`` if nothing was sent.
        error: the exception to raise when no endpoint is left, or ``None`` to return the response.
        cancelled: it was ended by the caller.
        is_final: no other endpoint is tried either: nothing was sent, and the author of the request has to know, or the
            answer was received whole.
        is_retry_requested: the server asks for a retry (``x-should-retry: true``), whatever the kind of error.
        is_unstarted: surely no server has begun to work on the request.
    """

    info: ErrorInfo
    retry_after: float | None = None
    response: ChatResponse | None = None
    error: CrosswalkError | None = None
    cancelled: bool = False
    is_final: bool = False
    is_retry_requested: bool = False
    is_unstarted: bool = False


class RetryState:
    """The progress of a call: the current endpoint and attempt.

    Args:
        endpoints: the endpoints that can be used, in order.
        policy: the retry policy.
        cooling: the endpoints that have failed lately. Those are tried last, and once.

    Attributes:
        endpoint: the number of the current endpoint, from 0.
        attempt: the number of the attempt at it, from 1.
        passed_over: the endpoints before it in the order that cool down.
        cool_down: after an attempt, the seconds for which its endpoint is now tried last. It is 0 if the attempt ended a
            cool-down, and ``None`` if nothing changed.
    """

    cool_down: float | None = None

    def __init__(self, endpoints: Iterable[int], policy: RetryPolicy, cooling: Cooling) -> None:
        self._policy = policy
        self._cooling = cooling
        self._left = list(endpoints)
        self._go_on()

    def _go_on(self) -> None:
        """Choose the next of the remaining endpoints."""
        remaining = self._left
        chosen = next(
            (one for one in remaining if len(remaining) == 1 or self._cooling.admits(one)), remaining[0]
        )
        self.passed_over = remaining[: remaining.index(chosen)]
        remaining.remove(chosen)
        self.endpoint = chosen
        self.attempt = 1
        # An endpoint that has failed lately is worth a single attempt, as long as there are others.
        self._most = 1 if remaining and self._cooling.is_cooling(chosen) else self._policy.attempts

    def after(self, failure: Failure | None, *, shown: bool) -> float | None:
        """Return the seconds to wait before the next attempt, or ``None`` if there is none.

        Args:
            failure: the failure that ended this attempt, or ``None`` if it succeeded.
            shown: whether the consumer has seen a token of it.
        """
        policy = self._policy
        self.cool_down = self._note(failure, shown=shown)
        if (
            failure is None
            or failure.cancelled
            or failure.is_final
            or (shown and not policy.after_first_token)
        ):
            return None
        info = failure.info
        requested = failure.retry_after or 0.0
        is_listed = info.kind in policy.kinds or failure.is_retry_requested
        is_free = policy.repeat_started or failure.is_unstarted or failure.is_retry_requested
        worth_it = info.retryable and is_listed and is_free and requested <= policy.max_retry_after
        if worth_it and self.attempt < self._most:
            # Full jitter: random below a bound that doubles. Beyond 2**1000 a float overflows, and any bound is reached.
            bound = min(policy.max_seconds, policy.initial_seconds * 2.0 ** min(self.attempt - 1, 1000))
            self.attempt += 1
            return requested + random.uniform(0, bound)
        if self._left and info.kind in policy.failover_kinds:
            self._go_on()
            return 0.0
        return None

    def _note(self, failure: Failure | None, *, shown: bool) -> float | None:
        """Record what the attempt shows about its endpoint. Return the new :attr:`cool_down`."""
        if failure is None or (failure.cancelled and shown):
            return self._cooling.answered(self.endpoint)
        if failure.response is None or failure.cancelled:
            return None  # nothing was sent, or the caller left: this is no evidence about the server
        if failure.info.kind in self._policy.kinds or failure.info.kind is ErrorKind.AUTHENTICATION:
            return self._cooling.failed(self.endpoint)
        return self._cooling.answered(self.endpoint)  # if only that the request is wrong
