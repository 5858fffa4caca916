"""Why an attempt failed, and what is recorded of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.lazy import pattern
from crosswalk.service.endpoint import where
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Provenance, ProviderAttempt
from crosswalk.types.values import FinishReason, SegmentType, altered

if TYPE_CHECKING:
    import ssl


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
        if (refused := _untrusted(error)) is not None:
            cause = f"the certificate of {server} is not trusted: {refused.verify_message}; see verify="
            return ErrorInfo(ErrorKind.SERVER, cause, retryable=False, code="untrusted_certificate")
        cause = f"cannot connect to {server}; start the server there, or give another base_url"
        if "ProxyError" in names:
            cause = f"the proxy refused a connection to {server}"
        return ErrorInfo(ErrorKind.SERVER, cause, retryable=True, code="connect_error")
    if names & {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL"}:
        name = type(error).__name__
        return ErrorInfo(ErrorKind.INVALID_REQUEST, f"the request to {server} is no HTTP ({name})", code=name)
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


_TURNED_AWAY = (429, 503, 529)
"""The statuses of a server that has not begun to work on a request. Anthropic's is 529."""
_UNREACHED = ("connect_error", "connect_timeout")
"""The codes of failures before a request was sent."""


def is_unstarted(status: object, code: str | None) -> bool:
    """Return whether surely no server has begun to work on a failed request, so that a repetition is not paid twice.

    Args:
        status: the HTTP status of its answer, or ``None`` if none came.
        code: the code of its failure.
    """
    return code in _UNREACHED if status is None else status in _TURNED_AWAY


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
        payload = {**metadata.provenance, "model": Provenance.DERIVED}
        metadata = attrs.evolve(metadata, model_id=model, provenance=payload)
        response = attrs.evolve(response, model=model)
    return altered(response, metadata=metadata, attempts=tuple(attempts))
