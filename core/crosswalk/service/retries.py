"""The decisions of one call, without I/O: time limits, retries, the next endpoint, and why an attempt failed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from crosswalk.config import COUNT, TIME_LIMIT, TIME_LIMIT_OR_NONE, WAIT
from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.lazy import pattern
from crosswalk.service.endpoint import where
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance, ProviderAttempt
from crosswalk.types.values import FinishReason, SegmentType, altered, checks_keywords, one_of

if TYPE_CHECKING:
    import ssl


# ---------------------------------------------------------------------------------- policy
# Time limits and retries.


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

    connect: float | None = attrs.field(default=10.0, validator=TIME_LIMIT_OR_NONE)
    first_token: float | None = attrs.field(default=None, validator=TIME_LIMIT_OR_NONE)
    between_tokens: float | None = attrs.field(default=None, validator=TIME_LIMIT_OR_NONE)
    between_bytes: float | None = attrs.field(default=600.0, validator=TIME_LIMIT_OR_NONE)
    whole: float | None = attrs.field(default=600.0, validator=TIME_LIMIT_OR_NONE)
    total: float | None = attrs.field(default=None, validator=TIME_LIMIT_OR_NONE)
    after_end: float | None = attrs.field(default=5.0, validator=TIME_LIMIT_OR_NONE)
    call: float | None = attrs.field(default=None, validator=TIME_LIMIT_OR_NONE)

    @classmethod
    def of(cls, timeout: float | Timeouts | None) -> Timeouts:
        """Convert *timeout* to limits: a number bounds a whole answer, and in a stream the wait for the next byte.

        Raises:
            ConfigurationError: it is neither limits nor a number above 0.
        """
        if timeout is None or isinstance(timeout, Timeouts):
            return timeout or cls()
        if not TIME_LIMIT.fits(timeout):
            raise ConfigurationError("timeout must be Timeouts, or seconds above 0", key="timeout")
        return cls(whole=timeout, between_bytes=timeout)


def _as_kinds(value: Iterable[str]) -> frozenset[ErrorKind]:
    return frozenset(one_of(ErrorKind, kind, "unknown kind of error") for kind in value)


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
            there with one of *kinds*, a refused key or spent money, in any calls. Then one call tries it, once, before the
            others. 0 for never.
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

    attempts: int = attrs.field(default=3, validator=COUNT)
    initial_seconds: float = attrs.field(default=0.5, validator=WAIT)
    max_seconds: float = attrs.field(default=8.0, validator=WAIT)
    max_retry_after: float = attrs.field(default=60.0, validator=WAIT)
    cool_down_seconds: float = attrs.field(default=30.0, validator=WAIT)
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


# -------------------------------------------------------------------------------- failures
# Why an attempt failed, and what is recorded of it.


def failure_of(error: Exception, host: tuple[str, int | None]) -> ErrorInfo | None:
    """Return the meaning of a client's *error*, or ``None`` if it is not a failure of the exchange.

    Its own text is not used: it may quote a header. ``httpcore`` and ``httpx`` and their successors have errors of the
    same names.

    Args:
        error: the exception of the HTTP library.
        host: the server's name and port, for the message, or ``None`` for the port of the scheme.
    """
    names = {
        kind.__name__ for kind in type(error).__mro__ if kind.__module__.startswith(("httpx", "httpcore"))
    }
    server = where(host)
    if "ConnectTimeout" in names:
        return timeout_info("connect", f"no connection to {server}")
    if "TimeoutException" in names or isinstance(error, TimeoutError):
        return timeout_info("transport", f"{server} took too long")
    if names & {"ConnectError", "ProxyError"}:
        if (certificate_error := _untrusted(error)) is not None:
            cause = (
                f"the certificate of {server} is not trusted: {certificate_error.verify_message}; see verify="
            )
            return ErrorInfo(ErrorKind.SERVER, cause, retryable=False, code="untrusted_certificate")
        cause = f"cannot connect to {server}; start the server there, or name another address"
        if "ProxyError" in names:
            cause = f"the proxy refused a connection to {server}"
        return ErrorInfo(ErrorKind.SERVER, cause, retryable=True, code="connect_error")
    if names & {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"}:
        name = type(error).__name__
        return ErrorInfo(
            ErrorKind.INVALID_REQUEST, f"the request to {server} is not HTTP ({name})", code="not_http"
        )
    if "DecodingError" in names:
        return ErrorInfo(
            ErrorKind.SERVER,
            f"the content encoding of {server} is broken",
            retryable=True,
            code="decoding_error",
        )
    if names & {"TransportError", "StreamError", "NetworkError", "ProtocolError"} or isinstance(
        error, OSError
    ):
        detail = ", or its answer is not HTTP" if "RemoteProtocolError" in names else ""
        cause = f"the connection to {server} broke{detail}"
        return ErrorInfo(ErrorKind.SERVER, cause, retryable=True, code="connection_lost")
    return None


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return the failed verification that is the cause of *error*, or ``None``."""
    import ssl

    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def timeout_info(name: str, message: str) -> ErrorInfo:
    """Return the error for an expired time limit *name*. An answer that took all of its time is not requested again."""
    retryable = name not in ("whole", "total")
    return ErrorInfo(ErrorKind.TIMEOUT, message, retryable=retryable, code=f"{name}_timeout")


_WAITS = pattern(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,[^,]*|[^,]+")
"""The values of a ``Retry-After``: a date contains a comma."""
_DURATION = pattern(r"[0-9]{1,15}(\.[0-9]{1,9})?s")


def retry_after_of(headers: Mapping[str, str], error: Any = None) -> float | None:
    """Return the seconds that a server asks to wait, or ``None`` if the header is missing or unreadable.

    If a header was sent twice, as by some proxies, the longest wait counts.

    Args:
        headers: the answer's headers.
        error: its error payload: Google's servers put the wait there (``RetryInfo``), and send no header.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        values = (_seconds_of(text.strip()) for text in _WAITS.findall(headers.get(name, "")))
        waits = [value for value in values if value is not None]
        if waits:
            return max(waits) / unit
    return _retry_delay_of(error)


def _seconds_of(text: str) -> float | None:
    if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 20:
        return float(text)
    from email.utils import parsedate_to_datetime  # seldom needed

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _retry_delay_of(error: Any) -> float | None:
    """Return the wait in a ``google.rpc.RetryInfo`` among the details of *error*."""
    match error[0] if isinstance(error, list) and error else error:
        case {"error": {"details": list(details)}}:
            for detail in details:
                match detail:
                    case {"@type": str(kind), "retryDelay": str(delay)} if kind.endswith(
                        "/google.rpc.RetryInfo"
                    ):
                        return float(delay[:-1]) if _DURATION.fullmatch(delay) else None
    return None


def should_retry(headers: Mapping[str, str], info: ErrorInfo) -> ErrorInfo:
    """Return *info* with the retryability from the server's ``x-should-retry``, or *info* itself without that header."""
    retryable = {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())
    return info if retryable is None else attrs.evolve(info, retryable=retryable)


_UNSTARTED_STATUSES = (429, 503, 529)
"""The statuses of a server that has not begun to work on a request. Anthropic's is 529."""
_UNREACHED_CODES = ("connect_error", "connect_timeout")
"""The codes of failures before a request was sent."""


def is_unstarted(status: object, code: str | None) -> bool:
    """Return whether surely no server has begun to work on a failed request, so that a repetition is not paid twice.

    Args:
        status: the HTTP status of its answer, or ``None`` if none came.
        code: the code of its failure.
    """
    return code in _UNREACHED_CODES if status is None else status in _UNSTARTED_STATUSES


def is_paid(response: ChatResponse) -> bool:
    """Whether the server generated *response*, an error, to its end: it sent a finish word and token counts."""
    return bool(response.raw_finish_reason and response.usage.total_tokens)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the server's own id of the request, for a search in its logs, or ``None`` if it sends none."""
    for name in ("x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id"):
        if headers.get(name):
            return headers[name][:200]
    return None


CANCELLED = ErrorInfo(ErrorKind.UNKNOWN, "cancelled by the caller", code="cancelled")
"""The error information of an answer that the caller ended."""


def as_cancelled(partial: ChatResponse) -> ChatResponse:
    """Turn *partial*, an error response with :data:`CANCELLED`, into an answer that the caller ended."""
    segments = partial.segments[:-1]
    refusals = [s.content for s in segments if s.type is SegmentType.REFUSAL]
    alternatives = (
        attrs.evolve(answer, finish_reason=FinishReason.CANCELLED)
        if answer.finish_reason is FinishReason.ERROR
        else answer
        for answer in partial.alternatives
    )
    return attrs.evolve(
        partial,
        finish_reason=FinishReason.CANCELLED,
        segments=segments,
        refusal="".join(refusals) if refusals else None,
        alternatives=alternatives,
    )


def completed(
    response: ChatResponse, model: str | None, attempts: Iterable[ProviderAttempt], *, is_stream: bool
) -> ChatResponse:
    """Return *response* with all *attempts*.

    If a server does not name the model that answered, it is assumed to be the requested one. The time to the
    first token is unknown for an answer that arrived whole.

    Args:
        response: the answer.
        model: the requested model, or ``None`` if it is unknown.
        attempts: every attempt at the request, in order.
        is_stream: whether the answer came as a stream.
    """
    metadata = response.metadata
    if not is_stream and metadata.time_to_first_token is not None:
        metadata = altered(metadata, time_to_first_token=None)
    if model is not None and metadata.provenance.get("model") is Provenance.ABSENT:
        provenance = {**metadata.provenance, "model": Provenance.DERIVED}
        metadata = attrs.evolve(metadata, model_id=model, provenance=provenance)
        response = attrs.evolve(response, model=model)
    return altered(response, metadata=metadata, attempts=tuple(attempts))


# -------------------------------------------------------------------------------- attempts
# The decisions of one call, without I/O: the next endpoint, the wait before it, and the endpoints that failed lately.


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
        self._failure_counts = [0] * endpoints
        self._cool_down_ends: list[float | None] = [None] * endpoints
        self._lock = threading.Lock()

    def is_cooling(self, endpoint: int) -> bool:
        """Whether *endpoint* has failed, and not answered since."""
        return self._cool_down_ends[endpoint] is not None

    def is_passed_over(self, endpoint: int) -> bool:
        """Whether others are tried before *endpoint* now."""
        cool_down_end = self._cool_down_ends[endpoint]
        return cool_down_end is not None and self._timer() < cool_down_end

    def admits(self, endpoint: int) -> bool:
        """Whether *endpoint* may be tried before others. After its cool-down, this one call may try it."""
        with self._lock:
            if self.is_passed_over(endpoint):
                return False
            if self.is_cooling(endpoint):
                self._cool_down_ends[endpoint] = self._timer() + self._policy.cool_down_seconds
            return True

    def answered(self, endpoint: int) -> float | None:
        """Note that it has answered. Return 0 if this ends its cool-down, or ``None`` if it did not cool down."""
        with self._lock:
            was_cooling = self.is_cooling(endpoint)
            self._failure_counts[endpoint] = 0
            self._cool_down_ends[endpoint] = None
            return 0.0 if was_cooling else None

    def failed(self, endpoint: int) -> float | None:
        """Note that an attempt at it has failed. Return the seconds of a cool-down that begins, or ``None``."""
        seconds = self._policy.cool_down_seconds if len(self._failure_counts) > 1 else 0
        with self._lock:
            was_cooling = self.is_cooling(endpoint)
            self._failure_counts[endpoint] += 1
            if seconds and self._failure_counts[endpoint] >= self._policy.attempts:
                self._cool_down_ends[endpoint] = self._timer() + seconds
                return None if was_cooling else seconds
            return None


@attrs.frozen
class AttemptFailure:
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


_ACCOUNT_KINDS = (ErrorKind.AUTHENTICATION, ErrorKind.QUOTA)
"""Errors that the next request meets as well."""


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
        endpoints = self._left
        chosen_endpoint = next(
            (one for one in endpoints if len(endpoints) == 1 or self._cooling.admits(one)), endpoints[0]
        )
        self.passed_over = endpoints[: endpoints.index(chosen_endpoint)]
        endpoints.remove(chosen_endpoint)
        self.endpoint = chosen_endpoint
        self.attempt = 1
        # An endpoint that has failed lately is worth a single attempt, as long as there are others.
        self._max_attempts = (
            1 if endpoints and self._cooling.is_cooling(chosen_endpoint) else self._policy.attempts
        )

    def after(self, failure: AttemptFailure | None, *, shown: bool) -> float | None:
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
        requested_seconds = failure.retry_after or 0.0
        is_listed = info.kind in policy.kinds or failure.is_retry_requested
        is_free = policy.repeat_started or failure.is_unstarted or failure.is_retry_requested
        is_worth_retrying = (
            info.retryable and is_listed and is_free and requested_seconds <= policy.max_retry_after
        )
        if is_worth_retrying and self.attempt < self._max_attempts:
            # Full jitter: random below a bound that doubles. Beyond 2**1000 a float overflows, and any bound is reached.
            bound = min(policy.max_seconds, policy.initial_seconds * 2.0 ** min(self.attempt - 1, 1000))
            self.attempt += 1
            return requested_seconds + random.uniform(0, bound)
        if self._left and info.kind in policy.failover_kinds:
            self._go_on()
            return 0.0
        return None

    def _note(self, failure: AttemptFailure | None, *, shown: bool) -> float | None:
        """Record what the attempt shows about its endpoint. Return the new :attr:`cool_down`."""
        if failure is None or (failure.cancelled and shown):
            return self._cooling.answered(self.endpoint)
        if failure.response is None or failure.cancelled:
            return None  # nothing was sent, or the caller left: this is no evidence about the server
        if failure.info.kind in self._policy.kinds or failure.info.kind in _ACCOUNT_KINDS:
            return self._cooling.failed(self.endpoint)
        return self._cooling.answered(self.endpoint)  # if only that the request is wrong
