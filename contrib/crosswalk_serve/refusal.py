"""A request that is not served, in no form yet."""

from __future__ import annotations

from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind

__all__ = ["Refusal"]


class Refusal(CrosswalkError):
    """A request is refused; whoever knows the client's form writes it.

    Attributes:
        info: what is wrong, in canonical words; its status is that of the answer.
        retry_after: in how many seconds to come again; ``None`` to say nothing of it.
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
