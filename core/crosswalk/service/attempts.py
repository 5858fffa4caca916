"""The decisions of one call, without I/O: the next endpoint, the wait before it, and the end of the call."""

from __future__ import annotations

import random
from collections.abc import Iterable

import attrs

from crosswalk.errors import CrosswalkError, ErrorInfo
from crosswalk.service.cooling import Cooling
from crosswalk.service.policy import RetryPolicy
from crosswalk.types.response import ChatResponse

__all__ = ["Failure", "RetryState"]


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
    """

    info: ErrorInfo
    retry_after: float | None = None
    response: ChatResponse | None = None
    error: CrosswalkError | None = None
    cancelled: bool = False
    is_final: bool = False
    is_retry_requested: bool = False


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
    """

    def __init__(self, endpoints: Iterable[int], policy: RetryPolicy, cooling: Cooling) -> None:
        self._policy = policy
        self._cooling = cooling
        self._left = list(endpoints)
        self._go_on()

    def _go_on(self) -> None:
        """Choose the next of the remaining endpoints."""
        left = self._left
        chosen = next((one for one in left if len(left) == 1 or self._cooling.admits(one)), left[0])
        self.passed_over = left[: left.index(chosen)]
        left.remove(chosen)
        self.endpoint = chosen
        self.attempt = 1
        # An endpoint that has failed lately is worth a single attempt, as long as there are others.
        self._most = 1 if left and self._cooling.is_cooling(chosen) else self._policy.attempts

    def after(self, failure: Failure | None, *, shown: bool) -> float | None:
        """Return the seconds to wait before the next attempt, or ``None`` if there is none.

        Args:
            failure: the failure that ended this attempt, or ``None`` if it succeeded.
            shown: whether the consumer has seen a token of it.
        """
        policy = self._policy
        self._note(failure, shown=shown)
        if (
            failure is None
            or failure.cancelled
            or failure.is_final
            or (shown and not policy.after_first_token)
        ):
            return None
        info = failure.info
        asked = failure.retry_after or 0.0
        is_listed = info.kind in policy.kinds or failure.is_retry_requested
        worth_it = info.retryable and is_listed and asked <= policy.max_retry_after
        if worth_it and self.attempt < self._most:
            # Full jitter: random below a bound that doubles. Beyond 2**1000 a float overflows, and any bound is reached.
            bound = min(policy.max_seconds, policy.initial_seconds * 2.0 ** min(self.attempt - 1, 1000))
            self.attempt += 1
            return asked + random.uniform(0, bound)
        if self._left and info.kind in policy.failover_kinds:
            self._go_on()
            return 0.0
        return None

    def _note(self, failure: Failure | None, *, shown: bool) -> None:
        if failure is None or (failure.cancelled and shown):
            self._cooling.answered(self.endpoint)
        elif failure.response is None or failure.cancelled:
            pass  # nothing was sent, or the caller left: this is no evidence about the server
        elif failure.info.kind in self._policy.kinds:
            self._cooling.failed(self.endpoint)
        else:
            self._cooling.answered(self.endpoint)  # if only that the request is wrong
