"""The decisions of one call, without I/O: who is asked next, after how long, and when it is over."""

from __future__ import annotations

import random

import attrs

from crosswalk.errors import CrosswalkError, ErrorInfo
from crosswalk.service.policy import RetryPolicy
from crosswalk.types.response import ChatResponse

__all__ = ["Failure", "RetryState"]


@attrs.frozen
class Failure:
    """Why an attempt failed.

    Attributes:
        info: what went wrong, in canonical words.
        retry_after: the seconds that the server asks the client to wait; ``None`` when it does not say.
        response: the error response with what came; ``None`` where nothing was sent.
        error: what is raised when nobody is left to ask; ``None`` to give the response.
        cancelled: it was ended by the caller.
        is_final: nobody else is asked either: nothing was sent, and whoever wrote the request has to know.
    """

    info: ErrorInfo
    retry_after: float | None = None
    response: ChatResponse | None = None
    error: CrosswalkError | None = None
    cancelled: bool = False
    is_final: bool = False


class RetryState:
    """Where a call stands: at which endpoint, in which attempt.

    Args:
        endpoints: how many there are.
        policy: what is tried again.
    """

    def __init__(self, endpoints: int, policy: RetryPolicy) -> None:
        self._endpoints = endpoints
        self._policy = policy
        self.endpoint = 0
        """Which endpoint is asked, from 0."""
        self.attempt = 1
        """The number of the attempt at it, from 1."""

    def after(self, failure: Failure, *, shown: bool) -> float | None:
        """The seconds to wait before the next attempt; ``None`` when there is none.

        Args:
            failure: what ended this attempt.
            shown: whether the consumer has seen a token of it.
        """
        policy, info = self._policy, failure.info
        if failure.cancelled or failure.is_final or (shown and not policy.after_first_token):
            return None
        asked = failure.retry_after or 0.0
        worth_it = info.retryable and info.kind in policy.kinds and asked <= policy.max_retry_after
        if worth_it and self.attempt < policy.attempts:
            # Full jitter: random below a bound that doubles. Beyond 2**1000 a float ends, and any bound is reached.
            bound = min(policy.max_seconds, policy.initial_seconds * 2.0 ** min(self.attempt - 1, 1000))
            self.attempt += 1
            return asked + random.uniform(0, bound)
        if self.endpoint + 1 < self._endpoints and info.kind in policy.failover_kinds:
            self.endpoint += 1
            self.attempt = 1
            return 0.0
        return None
