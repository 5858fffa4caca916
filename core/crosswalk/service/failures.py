"""What an exchange says beside its answer: what the HTTP library's errors mean, and the headers of a refusal."""

from __future__ import annotations

import time
from collections.abc import Mapping

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service.endpoint import where

__all__ = ["failure_of", "request_id_of", "retry_after_of", "timeout_info"]


def failure_of(error: Exception, host: tuple[str, int | None]) -> ErrorInfo | None:
    """What a client's *error* means; ``None`` for one that is no failure of the exchange.

    Its own text is not used: it may quote a header. ``httpcore`` and ``httpx`` and their successors have errors of the
    same names.

    Args:
        error: what the HTTP library raised.
        host: the server's name and port, for the message; ``None`` for the port of the scheme.
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
        via = "the proxy refused a connection" if "ProxyError" in names else "cannot connect"
        return ErrorInfo(ErrorKind.SERVER, f"{via} to {server}", retryable=True, code="connect_error")
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
        return ErrorInfo(
            ErrorKind.SERVER, f"the connection to {server} broke", retryable=True, code="connection_lost"
        )
    return None


def timeout_info(name: str, message: str) -> ErrorInfo:
    """What it means that the time limit *name* has passed."""
    return ErrorInfo(ErrorKind.TIMEOUT, message, retryable=True, code=f"{name}_timeout")


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """The seconds that ``Retry-After`` asks to wait; ``None`` without one, or where it is unreadable."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 20:
            return float(text) / unit
        from email.utils import parsedate_to_datetime  # seldom needed

        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The server's own id of the request, to find it in its logs; ``None`` when it sends none."""
    for name in ("x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id"):
        if headers.get(name):
            return headers[name][:200]
    return None
