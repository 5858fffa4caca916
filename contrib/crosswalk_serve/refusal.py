"""Refusals of requests, before they are written in the client's format."""

from __future__ import annotations

from typing import Final

import attrs

from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind

__all__ = ["LEFT", "Refusal", "for_client"]

LEFT: Final = 499
"""The status in logs if the client has left, as in nginx. It is never sent."""


class Refusal(CrosswalkError):
    """A request is refused. The endpoint writes the error in the client's format.

    Attributes:
        info: the error. Its status is that of the answer.
        retry_after: the seconds until the next attempt, or ``None`` for no advice.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        retryable = kind in (ErrorKind.RATE_LIMIT, ErrorKind.SERVER, ErrorKind.TIMEOUT)
        self.info = ErrorInfo(kind, message, retryable=retryable, status=status, code=code)
        self.retry_after = retry_after


_UNREACHED: Final = {
    "connect_error": ("cannot be reached", 502),
    "connect_timeout": ("cannot be reached", 504),
    "connection_lost": ("broke off", 502),
    "decoding_error": ("sent what cannot be unpacked", 502),
    "transport_timeout": ("took too long", 504),
}
"""Messages in place of those that contain a server's address, by code."""


def for_client(error: ErrorInfo) -> ErrorInfo:
    """Return a provider's *error* for a client. Refused credentials are the gateway's and not the client's, and the
    addresses of servers are private."""
    if error.code in _UNREACHED:
        text, status = _UNREACHED[error.code]
        return attrs.evolve(error, message=f"the server of this model {text}", status=status)
    if error.status is not None and 300 <= error.status < 400:
        text = f"the server of this model gave no answer (HTTP {error.status})"
        return ErrorInfo(ErrorKind.SERVER, text, status=502, code="no_answer")
    if error.kind is ErrorKind.AUTHENTICATION:
        return ErrorInfo(
            ErrorKind.SERVER,
            "the provider has refused the gateway's credentials",
            status=502,
            code="bad_credentials",
        )
    if error.status is None and error.kind in (ErrorKind.SERVER, ErrorKind.UNKNOWN):
        return attrs.evolve(error, status=502)  # the answer cannot be read, or has no end
    return error
