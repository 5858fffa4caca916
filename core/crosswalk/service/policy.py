"""How long to wait, and what to try again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs

from crosswalk.errors import ConfigurationError, ErrorKind
from crosswalk.types._value import one_of

__all__ = ["RetryPolicy", "Timeouts"]


def _limit(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not (type(value) in (int, float) and 0 < value < math.inf):
        raise ConfigurationError(f"{attribute.name} must be seconds above 0, or None", key=attribute.name)


def _seconds(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not (type(value) in (int, float) and 0 <= value < math.inf):
        raise ConfigurationError(f"{attribute.name} must be seconds from 0", key=attribute.name)


@attrs.frozen(kw_only=True)
class Timeouts:
    """How long one attempt, and a whole call, may take, in seconds; ``None`` for as long as it likes.

    Attributes:
        connect: until the connection is there; until it was written to, too.
        first_token: from sending the request to the first content, reasoning or tool call; of streams alone.
        between_tokens: without any, once the first has come; of streams alone. Keep-alives do not count, nor does
            the time that the consumer takes.
        between_bytes: until the next byte comes; of streams alone. Keep-alives count as bytes.
        whole: from sending the request to the end of an answer that is not streamed; it is not repeated at the same
            endpoint.
        total: from sending the request to the end of any answer; the time that a stream's consumer takes counts. Not
            repeated either.
        after_end: for what may follow once the provider has said that the answer is over, such as the usage, before
            it is taken as it is; nothing is waited for after ``[DONE]``.
        call: for all attempts of a call and the waits between them, from its beginning; no attempt begins when it is over.

    Raises:
        ConfigurationError: a value that is no number above 0.
    """

    connect: float | None = attrs.field(default=10.0, validator=_limit)
    first_token: float | None = attrs.field(default=None, validator=_limit)
    between_tokens: float | None = attrs.field(default=None, validator=_limit)
    between_bytes: float | None = attrs.field(default=600.0, validator=_limit)
    whole: float | None = attrs.field(default=600.0, validator=_limit)
    total: float | None = attrs.field(default=None, validator=_limit)
    after_end: float | None = attrs.field(default=5.0, validator=_limit)
    call: float | None = attrs.field(default=None, validator=_limit)

    @classmethod
    def of(cls, timeout: float | Timeouts | None) -> Timeouts:
        """The limits that *timeout* stands for: a number bounds a whole answer, and in a stream the wait for the next byte.

        Raises:
            ConfigurationError: it is neither limits nor a number above 0.
        """
        if timeout is None or isinstance(timeout, Timeouts):
            return timeout or cls()
        if type(timeout) not in (int, float) or not 0 < timeout < math.inf:
            raise ConfigurationError("timeout must be Timeouts, or seconds above 0", key="timeout")
        return cls(whole=timeout, between_bytes=timeout)


def _as_kinds(value: Iterable[str]) -> frozenset[ErrorKind]:
    return frozenset(one_of(ErrorKind, kind, "unknown kind of error") for kind in value)


def _whole(_: Any, attribute: attrs.Attribute[int], value: object) -> None:
    if type(value) is not int or value < 1:
        raise ConfigurationError(f"{attribute.name} must be a whole number of at least 1", key=attribute.name)


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """What is tried again, how often, and after how long.

    An attempt is repeated at the same endpoint when its error is of one of *kinds* and the provider does not say that
    a retry is useless (a used-up quota). The wait is random, up to a bound that doubles with each attempt, on top of
    what the server asked for by ``Retry-After``. When an endpoint has had its attempts, or its error is not worth
    repeating but of one of *failover_kinds*, the next endpoint is asked. One that goes on failing is asked last for a
    while, so that not every call waits for it.

    Attributes:
        attempts: how often one endpoint is asked at most; 1 for no retries.
        initial_seconds: the bound of the first wait.
        max_seconds: the highest bound of a wait.
        max_retry_after: the longest ``Retry-After`` that is waited for; at a longer one the endpoint is given up.
        kinds: which errors are worth a retry.
        cool_down_seconds: how long an endpoint is asked last, once *attempts* attempts in a row have failed there with one
            of *kinds*, whichever calls they were of; then one call tries it, once, before the others. 0 for never.
        failover_kinds: for which errors the next endpoint is asked. Not for what moderation blocked, by default: going
            to a provider that minds less is the application's decision.
        after_first_token: start over even when the consumer of a stream has seen tokens. It is told by a
            ``response.retried``: what came before it is void.

    Raises:
        ConfigurationError: a number out of its bounds. ResponseValidationError: an unknown kind.
    """

    attempts: int = attrs.field(default=3, validator=_whole)
    initial_seconds: float = attrs.field(default=0.5, validator=_seconds)
    max_seconds: float = attrs.field(default=8.0, validator=_seconds)
    max_retry_after: float = attrs.field(default=60.0, validator=_seconds)
    cool_down_seconds: float = attrs.field(default=30.0, validator=_seconds)
    kinds: frozenset[ErrorKind] = attrs.field(
        default=frozenset({ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER}), converter=_as_kinds
    )
    failover_kinds: frozenset[ErrorKind] = attrs.field(
        default=frozenset(ErrorKind) - {ErrorKind.CONTENT_FILTER}, converter=_as_kinds
    )
    after_first_token: bool = False

    @classmethod
    def of(cls, retry: int | RetryPolicy | None) -> RetryPolicy:
        """The policy that *retry* stands for: a number says how often a failed attempt is repeated, 0 for never.

        Raises:
            ConfigurationError: it is neither a policy nor a whole number from 0.
        """
        if retry is None or isinstance(retry, RetryPolicy):
            return retry or cls()
        if type(retry) is not int or retry < 0:
            raise ConfigurationError("retry must be a RetryPolicy, or a whole number from 0", key="retry")
        return cls(attempts=retry + 1)
