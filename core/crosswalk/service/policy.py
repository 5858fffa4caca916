"""Time limits and retries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs

from crosswalk.errors import ConfigurationError, ErrorKind
from crosswalk.keywords import checks_keywords
from crosswalk.types.values import one_of


def _limit(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not (type(value) in (int, float) and 0 < value < math.inf):
        raise ConfigurationError(f"{attribute.name} must be seconds above 0, or None", key=attribute.name)


def _seconds(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if not (type(value) in (int, float) and 0 <= value < math.inf):
        raise ConfigurationError(f"{attribute.name} must be seconds from 0", key=attribute.name)


@checks_keywords()
@attrs.frozen(kw_only=True)
class Timeouts:
    """The time limits of one attempt, and of a whole call, in seconds, or ``None`` for no limit.

    Attributes:
        connect: until the connection is open, and again until the request is written to it.
        first_token: from sending the request to the first content, reasoning or tool call (streams only).
        between_tokens: from one token to the next (streams only). Keep-alives do not count as tokens. The time that
            the consumer takes does not count either.
        between_bytes: until the next byte arrives (streams only). Keep-alives count as bytes.
        whole: from sending the request to the end of an answer that is not streamed. After this limit the attempt is not
            repeated at the same endpoint.
        total: from sending the request to the end of any answer. The time that a stream's consumer takes counts. It is
            not repeated either.
        after_end: after the provider has ended the answer, for data that may follow, such as the usage. Then the answer
            is complete without it. Crosswalk waits for nothing after ``[DONE]``.
        call: for all attempts of a call and the waits between them, from its beginning. No attempt begins afterwards.

    Raises:
        ConfigurationError: a value that is not a number above 0.
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
        """Convert *timeout* to limits: a number bounds a whole answer, and in a stream the wait for the next byte.

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


@checks_keywords()
@attrs.frozen(kw_only=True)
class RetryPolicy:
    """The errors to retry, the number of attempts, and the waits between them.

    An attempt is repeated at the same endpoint if its error is of one of *kinds* and the provider does not declare
    a retry useless (a used-up quota). The server's ``x-should-retry`` decides, if it sends one.
    The wait is random, up to a bound that doubles with each attempt, on top of
    the server's ``Retry-After``. The next endpoint is tried if an endpoint has used up its attempts, or if its error is
    not worth repeating but of one of *failover_kinds*. An endpoint that keeps failing is tried last for a
    while, so that not every call waits for it.

    Attributes:
        attempts: the most attempts at one endpoint, or 1 for no retries.
        initial_seconds: the bound of the first wait.
        max_seconds: the highest bound of a wait.
        max_retry_after: the longest ``Retry-After`` to wait for. If it is longer, the endpoint is given up.
        kinds: the errors that are worth a retry.
        cool_down_seconds: the time for which an endpoint is tried last after *attempts* attempts in a row have failed
            there with one of *kinds*, in any calls. Then one call tries it, once, before the others. 0 for never.
        failover_kinds: the errors after which the next endpoint is tried. By default, blocks by moderation are not among
            them: using a more lenient provider is the application's decision.
        after_first_token: start over even if the consumer of a stream has seen tokens. A ``response.retried`` event
            then declares everything before it void.
        repeat_started: repeat an attempt at the same endpoint even if the server may have read the prompt, and charge for
            it. Otherwise only an attempt is repeated that has reached no server, or that one has turned away with HTTP 429,
            503 or 529.

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
    repeat_started: bool = True

    @classmethod
    def of(cls, retry: int | RetryPolicy | None) -> RetryPolicy:
        """Convert *retry* to a policy: a number is the number of times to repeat a failed attempt, 0 for never.

        Raises:
            ConfigurationError: it is neither a policy nor a whole number from 0.
        """
        if retry is None or isinstance(retry, RetryPolicy):
            return retry or cls()
        if type(retry) is not int or retry < 0:
            raise ConfigurationError("retry must be a RetryPolicy, or a whole number from 0", key="retry")
        return cls(attempts=retry + 1)
