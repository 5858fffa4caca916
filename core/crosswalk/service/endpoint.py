"""The target of requests: a provider's server, its name for the model, and the key, which is removed from its texts."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import attrs

from crosswalk.config import COUNT, TIME_LIMIT, TIME_LIMIT_OR_NONE, WAIT
from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.lazy import pattern
from crosswalk.plugin.hooks import Access, Sign
from crosswalk.plugin.registry import Mapper
from crosswalk.text import brief, holds_key as holds_key, shown_url, summary
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
        connect: until the connection is open, with the tunnel of a proxy and TLS, and again until the request is written.
        first_token: from sending the request to the first content, reasoning or tool call (streams only).
        between_tokens: from one token to the next (streams only). Keep-alives do not count as tokens. The time that
            the consumer takes does not count either.
        between_bytes: until the next byte arrives (streams only). Keep-alives count as bytes.
        whole: from sending the request to the end of an answer that is not streamed. After this limit the attempt is not
            repeated at the same endpoint. If the rest of an error's body is late, its status decides that.
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
            raise ConfigurationError(f"timeout must be Timeouts, or {TIME_LIMIT.words}", key="timeout")
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
            there with one of *kinds*, a refused key or spent money, in any calls, or one with a ``Retry-After`` above
            *max_retry_after*. A longer ``Retry-After`` counts up to an hour. Then one call tries it, once, before the
            others. 0 for never.
        failover_kinds: the errors after which the next endpoint is tried. By default, blocks by moderation are not among
            them: using a more lenient provider is the application's decision.
        after_first_token: start over even if the consumer of a stream has seen tokens. A ``response.retried`` event
            then declares everything before it void.
        repeat_started: repeat an attempt at the same endpoint even if the server may have read the prompt, and charge for
            it, and send a request once more over another connection if a kept one ends without a byte. Otherwise only an
            attempt is repeated that has reached no server, or that one has turned away with HTTP 429, 503 or 529.

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


class StepTimeout(TimeoutError):
    """A step of sending a request took too long: to write it."""


class OpeningTimeout(StepTimeout):
    """A connection was not opened within :attr:`Timeouts.connect`."""


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
    if "ConnectTimeout" in names or isinstance(error, OpeningTimeout):
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
_DURATION = pattern(r"[0-9]+(\.[0-9]+)?s")


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


_LONGEST_WAIT: Final = 1e9
"""The seconds that stand for any longer wait."""
_FAR_YEAR = pattern(r"\s[1-9]\d{4,}\s")


def _seconds_of(text: str) -> float | None:
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return min(float(text), _LONGEST_WAIT)
    from email.utils import parsedate_to_datetime  # seldom needed

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return _LONGEST_WAIT if _FAR_YEAR.search(text) else None


def _retry_delay_of(error: Any) -> float | None:
    """Return the wait in a ``google.rpc.RetryInfo`` among the details of *error*."""
    match error[0] if isinstance(error, list) and error else error:
        case {"error": {"details": list(details)}}:
            for detail in details:
                match detail:
                    case {"@type": str(kind), "retryDelay": str(delay)} if kind.endswith(
                        "/google.rpc.RetryInfo"
                    ):
                        return _seconds_of(delay[:-1]) if _DURATION.fullmatch(delay) else None
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


_LONGEST_PAUSE: Final = 3600.0
"""The most seconds of a requested pause. One call tries the endpoint then."""


class ServerFailures:
    """The known failures of a server. Services that share it leave the server alone together.

    Attributes:
        count: the number of attempts in a row that have failed there.
        cool_down_end: the time until which others are tried before it, by the timer of the services. ``None`` if it has
            answered since it failed.
        has_alternative: whether one of the services has another endpoint. Otherwise it never cools down.
        lock: is held while these change.
    """

    def __init__(self) -> None:
        self.count = 0
        self.cool_down_end: float | None = None
        self.has_alternative = False
        self.lock = threading.RLock()  # a signal's handler may make a call


class Cooling:
    """The endpoints that have failed lately, so that calls try others first (a circuit breaker).

    An endpoint cools down for :attr:`RetryPolicy.cool_down_seconds` after :attr:`RetryPolicy.attempts` attempts in a row
    have failed there, or if its server asks for a longer pause than :attr:`RetryPolicy.max_retry_after`, and then as long
    as that, but not longer than an hour. Then one call tries it. If that fails, it cools down again. A single endpoint
    never cools down. Safe for several threads.

    Args:
        servers: what is known of the failures of each endpoint's server.
        policy: the retry policy.
        timer: a monotonic clock, in seconds.
    """

    def __init__(
        self, servers: Sequence[ServerFailures], policy: RetryPolicy, timer: Callable[[], float]
    ) -> None:
        self._servers = servers
        self._policy = policy
        self._timer = timer
        for server in servers if len(servers) > 1 else ():
            server.has_alternative = True

    def is_cooling(self, endpoint: int) -> bool:
        """Whether *endpoint* has failed, and not answered since."""
        return self._servers[endpoint].cool_down_end is not None

    def is_passed_over(self, endpoint: int) -> bool:
        """Whether others are tried before *endpoint* now."""
        cool_down_end = self._servers[endpoint].cool_down_end
        return cool_down_end is not None and self._timer() < cool_down_end

    def admits(self, endpoint: int) -> bool:
        """Whether *endpoint* may be tried before others. After its cool-down, this one call may try it."""
        server = self._servers[endpoint]
        with server.lock:
            if self.is_passed_over(endpoint):
                return False
            if self.is_cooling(endpoint):
                server.cool_down_end = self._timer() + self._policy.cool_down_seconds
            return True

    def answered(self, endpoint: int) -> float | None:
        """Note that it has answered. Return 0 if this ends its cool-down, or ``None`` if it did not cool down."""
        server = self._servers[endpoint]
        with server.lock:
            was_cooling = self.is_cooling(endpoint)
            server.count, server.cool_down_end = 0, None
            return 0.0 if was_cooling else None

    def failed(self, endpoint: int, retry_after: float | None = None) -> float | None:
        """Note that an attempt at it has failed, and that its server asks to be left alone for *retry_after* seconds.

        Return the seconds of a cool-down that begins, or ``None``.
        """
        server, policy = self._servers[endpoint], self._policy
        seconds = policy.cool_down_seconds if server.has_alternative else 0
        with server.lock:
            was_cooling = self.is_cooling(endpoint)
            server.count += 1
            pause = retry_after or 0.0
            if seconds and (server.count >= policy.attempts or pause > policy.max_retry_after):
                seconds = max(seconds, min(pause, _LONGEST_PAUSE))
                server.cool_down_end = self._timer() + seconds
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
        """Return the seconds to wait before the next attempt, or ``None`` without one.

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
            return self._cooling.failed(self.endpoint, failure.retry_after)
        return self._cooling.answered(self.endpoint)  # if only that the request is wrong


# ----------------------------------------------------------------------------- --before

# ------------------------------------------------------------------------------- redaction
# Removes the credentials of a request from a server's texts: some servers repeat them in their errors.


_MARK = "<secret>"
_MIN_SECRET_LENGTH = 4
"""Shorter values reveal nothing, and occur in many words."""
_MIN_PART_LENGTH = 8
"""The number of characters from which a part of a credential is removed too."""


class Redaction:
    """Removes credentials from texts: plain, in URLs, base64 or hex, and fragments left by cleaning and cutting.

    A text may have been cut, also before it came here. So what begins a credential at its end is removed too. Blanks and
    line breaks in a credential of 8 characters or more do not hide it.

    Args:
        values: of headers: credentials, with or without a scheme such as ``Bearer`` before them.
        secrets: further credentials.
    """

    def __init__(self, values: Iterable[str], secrets: Iterable[str] = ()) -> None:
        credentials = {*(value.rpartition(" ")[2] for value in values), *secrets}
        self._values = [value for value in credentials if len(value) >= _MIN_SECRET_LENGTH]
        encodings = {form for value in self._values for form in encoded_forms(value)}
        parts = {
            p for value in self._values for p in re.split(r"[^\w-]+", value) if len(p) >= _MIN_PART_LENGTH
        }
        secret_forms = sorted({*self._values, *encodings, *parts}, key=len, reverse=True)
        self._forms = "\n".join(secret_forms).lower()
        dense_forms = ("".join(form.split()) for form in secret_forms)
        self._long_forms = tuple(form.lower() for form in dense_forms if len(form) >= _MIN_PART_LENGTH)
        self._pattern = (
            re.compile("|".join(map(re.escape, secret_forms)), re.IGNORECASE) if secret_forms else None
        )

    @property
    def finds_any(self) -> bool:
        """Whether there are credentials to remove."""
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        """Return *text* without them."""
        if self._pattern is None:
            return text
        return self._without_cut_one(self._without_wrapped_ones(self._pattern.sub(_MARK, text)))

    def _without_wrapped_ones(self, text: str) -> str:
        """Return *text* without credentials that have blanks or line breaks in them."""
        words = text.split()
        if len(words) < 2:  # as most of what is no error
            return text
        dense_text = "".join(words).lower()
        for form in self._long_forms:
            if form in dense_text:
                text = re.sub(r"\s*".join(map(re.escape, form)), _MARK, text, flags=re.IGNORECASE)
        return text

    def _without_cut_one(self, text: str) -> str:
        """Return *text*, which may have been cut in the middle of a credential, without what begins one at its end."""
        is_marked = text.endswith("…")
        head, shortest = text[: len(text) - is_marked], _MIN_SECRET_LENGTH if is_marked else _MIN_PART_LENGTH
        if len(head) < shortest or head[-shortest:].lower() not in self._forms:  # mostly, and fast
            return text
        for form in self._forms.split("\n"):
            for length in range(len(form) - 1, shortest - 1, -1):
                if head[-length:].lower() == form[:length]:
                    return f"{head[:-length]}{_MARK}{text[len(head) :]}"
        return text

    def __repr__(self) -> str:
        return "Redaction()"


_ESCAPED_BYTE: Final = re.compile("%[0-9A-F]{2}")
_UNQUOTED_CHARACTERS: Final = ("", "/", "!*'()~", "!*'();:@&=+$,/?#~")
"""The characters that encoders of URLs leave as they are: Python's two, and JavaScript's two."""


def encoded_forms(value: str) -> Iterator[str]:
    """Return the encodings of *value*, also amid other text: in URLs, JSON, hex and base64."""
    for unquoted_characters in _UNQUOTED_CHARACTERS:
        quoted_text = quote(value, safe=unquoted_characters, errors="replace")
        yield quoted_text
        yield _ESCAPED_BYTE.sub(lambda escape: escape[0].lower(), quoted_text)
    json_texts = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    for json_text in (
        *json_texts,
        *[json.dumps(text)[1:-1] for text in json_texts],
    ):  # also in a text that is JSON
        yield json_text
        yield json_text.replace("/", r"\/")
    value_bytes = value.encode(errors="replace")
    yield value_bytes.hex()
    yield value_bytes.hex().upper()
    for byte_offset in range(3):  # its position in a group of three bytes decides its base64 form
        base64_text = base64.b64encode(bytes(byte_offset) + value_bytes).rstrip(b"=").decode()
        # The first characters hold bits of the text before, the last one may hold bits of the text behind.
        stable_text = base64_text[
            -(-byte_offset * 8 // 6) : -1 if (byte_offset + len(value_bytes)) % 3 else None
        ]
        if len(stable_text) >= _MIN_PART_LENGTH:
            yield stable_text
            yield stable_text.replace("+", "-").replace("/", "_")


# -------------------------------------------------------------------------------- endpoint
# Where to send requests: a provider's server, its name for the model, and the key.


DISCOVERED: Final = "auto"
"""The provider of an endpoint given by its address alone: the first call detects the provider from the server."""


class Secret:
    """A credential that no ``repr``, ``str`` or log shows. A pickle, made for another process, contains it.

    Args:
        value: the credential itself, as it goes into a header.

    Raises:
        ConfigurationError: it is empty, or has characters that a header cannot carry. The message does not quote it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        given: object = value
        if not isinstance(given, str) or not given or not _is_header_text(given):
            raise ConfigurationError("a credential must be printable ASCII without line breaks, not empty")
        self._value = value

    def reveal(self) -> str:
        """The credential itself."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return self._value == other._value if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret('<secret>')"


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header, as HTTP defines it (RFC 9110, section 5.6.2)."""


def _is_header_text(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()


def _as_secret(value: str | Secret | None) -> Secret | None:
    return value if value is None or isinstance(value, Secret) else Secret(value)


def _check_model(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"{field.name} must be a text, not {type(value).__name__}", key=field.name)


_FRAMING: Final = ("content-length", "expect", "transfer-encoding")
"""The headers that say how the body is sent."""


def check_header_names(headers: object) -> None:
    """Refuse *headers* that are no headers by name, or that an HTTP client sets for itself.

    Raises:
        ConfigurationError: they are refused.
    """
    if not isinstance(headers, Mapping):
        raise ConfigurationError(
            f"headers must be headers by name, not {type(headers).__name__}", key="headers"
        )
    for name in headers:
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ConfigurationError(
                "the name of a header must be a token of ASCII characters", key="headers"
            )
        if name.lower() in _FRAMING:
            raise ConfigurationError(f"headers: {name} is set by the connection", key="headers")


def _as_headers(value: Mapping[str, str | Secret]) -> dict[str, Secret]:
    check_header_names(value)
    return {name: text if isinstance(text, Secret) else Secret(text) for name, text in value.items()}


_PROVIDER_AND_MODEL = re.compile(r"([^:/]+)[:/](.+)")
"""A provider id and a model in one text."""


@checks_keywords()
@brief
@attrs.frozen(repr=False)
class Endpoint:
    """A server to send requests to.

    Attributes:
        provider: the provider id, perhaps with a model: ``"ollama"``, ``"ollama:llama3.2"``, ``"ollama/llama3.2"``. An
            address alone (``"http://127.0.0.1:8000"``, or ``base_url=``) is enough too: Crosswalk then detects the provider
            from the server.
        model: the model for requests that name none, or ``None`` for the value of ``CROSSWALK_<PROVIDER>_MODEL``, else
            none.
        base_url: its address: ``http://127.0.0.1:8000`` or ``https://api.example.com/v1``, perhaps with a query, which
            is added to every request (never put secrets there: HTTP clients log it). ``None`` for the value of
            ``CROSSWALK_<PROVIDER>_BASE_URL``, else the provider's own variables
            (:class:`~crosswalk.plugin.Access`), else its default.
        api_key: the key, or ``None`` for the value of ``CROSSWALK_<PROVIDER>_API_KEY``, else the provider's own variables,
            else none.
        headers: more headers for every request, such as an organisation or another form of credentials. Their
            values are treated as secrets.
        takes_media: whether the model accepts images, sounds and files. If not, each one in the conversation is
            replaced by a text that names it, so that the conversation can continue there.
        model_class: the model or the class of models with the rules of this deployment, if it has another
            name, or ``None`` to look it up by the model's name. See the page "Models".

    Raises:
        ConfigurationError: a credential or a header that HTTP cannot carry, a model that is not text, a model or an address
            that is named twice, or neither a provider nor an address.
    """

    provider: str = DISCOVERED
    model: str | None = attrs.field(default=None, kw_only=True, validator=_check_model)
    base_url: str | None = attrs.field(default=None, kw_only=True)
    api_key: Secret | None = attrs.field(default=None, kw_only=True, converter=_as_secret)
    headers: Mapping[str, Secret] = attrs.field(factory=dict, kw_only=True, converter=_as_headers, hash=False)
    takes_media: bool = attrs.field(default=True, kw_only=True, converter=bool)
    model_class: str | None = attrs.field(default=None, kw_only=True, validator=_check_model)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.provider, str):
            raise ConfigurationError(
                f"provider must be a text, not {type(self.provider).__name__}", key="provider"
            )
        if "://" in self.provider:
            self._set_once("base_url", self.provider)
            object.__setattr__(self, "provider", DISCOVERED)
        elif match := _PROVIDER_AND_MODEL.fullmatch(self.provider):
            self._set_once("model", match[2])
            object.__setattr__(self, "provider", match[1])
        elif self.provider == DISCOVERED and self.base_url is None:
            raise ConfigurationError("an endpoint needs a provider or base_url=", key="provider")

    def _set_once(self, name: str, value: str) -> None:
        if getattr(self, name) is not None:
            raise ConfigurationError(f"{name} is given twice: in the first argument and as {name}=", key=name)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return summary(
            "Endpoint",
            [
                ("provider", self.provider),
                ("model", self.model),
                ("base_url", None if self.base_url is None else shown_url(self.base_url)),
            ],
        )


@brief
@attrs.frozen(repr=False)
class Route:
    """An endpoint with all that is needed to send it requests.

    Attributes:
        endpoint: the user's endpoint.
        mapper: the provider, resolved.
        base_url: the address of the server.
        headers: the headers of every request, the key among them, values as they go out.
        host: name and port, for messages and spans.
        server: a name for its address and credentials. Kept or sealed state is only for the server of this name.
        redact: removes the values of the headers from a text.
        sign: signs each request, or ``None`` if requests are not signed.
        secrets: further credentials that *redact* removes: those of the proxies.
    """

    endpoint: Endpoint
    mapper: Mapper
    base_url: str
    headers: Mapping[str, str]
    host: tuple[str, int | None]
    sign: Sign | None = None
    secrets: tuple[str, ...] = ()
    redact: Redaction = attrs.field(init=False)
    server: str = attrs.field(init=False)

    @redact.default
    def _redaction(self) -> Redaction:
        return Redaction(self.headers.values(), self.secrets)

    @server.default
    def _server(self) -> str:
        return sha256(repr((self.base_url, sorted(self.headers.items()))).encode()).hexdigest()[:32]

    @property
    def provider(self) -> str:
        """The provider id."""
        return self.endpoint.provider

    def __repr__(self) -> str:
        return f"Route({self.endpoint!r})"


def resolve(endpoint: Endpoint, mapper: Mapper, environ: Mapping[str, str] | None = None) -> Route:
    """Return everything that is needed to send requests to *endpoint*.

    Args:
        endpoint: the user's endpoint.
        mapper: its provider.
        environ: the environment, or ``None`` for the process's own.

    Raises:
        ConfigurationError: the server's address is missing, its URL is invalid or holds credentials, or a service on
            the internet has no key.
    """
    environment = os.environ if environ is None else environ
    access = mapper.info.access
    prefix = _prefix(endpoint.provider)
    model = endpoint.model or environment.get(f"{prefix}_MODEL", "").strip() or None
    if model != endpoint.model:
        endpoint = attrs.evolve(endpoint, model=model)
    base_url = _base_url(endpoint, access, environment)
    parts = urlsplit(base_url)
    key = endpoint.api_key or _from(
        environment, (f"{prefix}_API_KEY", *(access.api_key_variables if access else ()))
    )
    headers = {name: value.reveal() for name, value in endpoint.headers.items()}
    if key is not None:
        header, scheme = (
            (access.api_key_header, access.api_key_scheme) if access else ("Authorization", "Bearer")
        )
        headers = {header: f"{scheme} {key.reveal()}" if scheme else key.reveal(), **headers}
    elif access is not None and base_url == access.base_url and parts.scheme == "https" and not headers:
        variables = " or ".join((f"{prefix}_API_KEY", *access.api_key_variables))
        raise ConfigurationError(f"{endpoint.provider}: no API key; set {variables}", key="api_key")
    sign = None
    if access is not None and access.signer is not None and "authorization" not in map(str.lower, headers):
        sign = access.signer(base_url)
    return Route(endpoint, mapper, base_url, headers, (parts.hostname or "", parts.port), sign)


def base_url_variables(provider: str, access: Access | None) -> tuple[str, ...]:
    """The environment variables that may hold the address of *provider*'s server, by precedence.

    Args:
        provider: the provider id.
        access: the plugin's description of its server, or ``None`` if it has none.
    """
    return (f"{_prefix(provider)}_BASE_URL", *(access.base_url_variables if access else ()))


def _prefix(provider: str) -> str:
    return "CROSSWALK_" + "".join(c if c.isalnum() else "_" for c in provider.upper())


def _from(environ: Mapping[str, str], variables: tuple[str, ...]) -> Secret | None:
    for variable in variables:
        value = environ.get(variable, "").strip()
        if value:
            try:
                return Secret(value)
            except ConfigurationError as error:
                raise ConfigurationError(f"{variable}: {error}", key=variable, source="environment") from None
    return None


def _base_url(endpoint: Endpoint, access: Access | None, environ: Mapping[str, str]) -> str:
    source, base_url = "base_url", endpoint.base_url
    if base_url is None:
        variables = base_url_variables(endpoint.provider, access)
        for source in variables:
            base_url = environ.get(source, "").strip()
            if base_url:
                break
        else:
            if access is None:
                raise ConfigurationError(
                    f"{endpoint.provider}: no default address; pass base_url= or set {variables[0]}",
                    key="base_url",
                )
            return access.base_url if access.locate is None else access.locate()
    return _checked(_with_scheme(base_url, access), f"{endpoint.provider}: {source}")


def _with_scheme(url: str, access: Access | None) -> str:
    """Complete *url*, which may be a host alone, as in ``OLLAMA_HOST``. The default port is that of *access*."""
    if "://" in url or url.startswith("/"):
        return url
    host, _, path = url.partition("/")
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, ""
    default_port = urlsplit(access.base_url).port if access is not None else None
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name
    port = port or ("" if default_port is None else str(default_port))
    return "http://" + name + (f":{port}" if port else "") + (f"/{path}" if path else "")


def _checked(url: str, source: str) -> str:
    """Check *url* and return it. An error does not quote it: it may hold credentials."""
    problem: str | None = None
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        problem = "is not a URL"
    else:
        if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
            problem = "must be like http://host:port or https://host/path"
        elif parts.username is not None or parts.password is not None:
            problem = "must not hold credentials; give them as api_key= or headers="
        elif not _is_header_text(url) or " " in url:
            problem = "must be printable ASCII"
    if problem is not None:
        raise ConfigurationError(f"{source} {problem}", key="base_url")
    return url


@lru_cache(maxsize=256)
def join_url(base_url: str, path: str) -> str:
    """Return the URL of *path* below *base_url*, with both queries.

    Segments that end the base URL and also begin the path, as in ``…/v1`` and ``/v1/chat``, appear once.
    """
    base, _, base_query = base_url.partition("?")
    path, _, query = path.partition("?")
    scheme, _, remainder = base.rstrip("/").partition("://")
    host, *base_segments = remainder.split("/")
    path_segments = path.strip("/").split("/")
    shared_count = next(
        n
        for n in range(min(len(base_segments), len(path_segments)), -1, -1)
        if base_segments[len(base_segments) - n :] == path_segments[:n]
    )
    url = f"{scheme}://{'/'.join([host, *base_segments, *path_segments[shared_count:]])}"
    queries = "&".join(q for q in (query, base_query) if q)
    return f"{url}?{queries}" if queries else url


def where(host: tuple[str, int | None]) -> str:
    """The name and the port of a server, for people."""
    name, port = host
    return name if port is None else f"{name}:{port}"


def attributes(route: Route) -> dict[str, Any]:
    """Describe *route* in OpenTelemetry's terms."""
    host, port = route.host
    return {"server.address": host, **({} if port is None else {"server.port": port})}
