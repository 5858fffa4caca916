"""What clients are told of a request that is not served, in no form yet."""

from __future__ import annotations

from typing import Final

import attrs

from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind

__all__ = ["LEFT", "Refusal", "for_client"]

LEFT: Final = 499
"""The status of a request whose client has left, as nginx has it; nobody is sent it."""


class Refusal(CrosswalkError):
    """A request is refused; whoever knows the client's form writes it.

    Attributes:
        info: what is wrong, in canonical words; its status is that of the answer.
        retry_after: in how many seconds to come again, or ``None`` to say nothing of it.
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
"""What the service tells with a server's address; by its codes."""


def for_client(error: ErrorInfo) -> ErrorInfo:
    """A provider's *error* as a client is to see it: whose credentials were refused are the gateway's, not the client's, and
    where its servers stand, and whether they are elsewhere now, is nobody's business."""
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
        return attrs.evolve(error, status=502)  # what came cannot be read, or has no end
    return error
