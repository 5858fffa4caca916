"""The errors of ``ChatResponse.raise_for_error``: one for each kind of failure, with the response that reports it."""

from __future__ import annotations

from crosswalk.plain_errors import CrosswalkError
from crosswalk.types.error_info import ErrorInfo, ErrorKind
from crosswalk.types.response import ChatResponse


class ProviderError(CrosswalkError):
    """The provider answered with an error. ``ChatResponse.raise_for_error()`` raises it.

    Attributes:
        info: the provider's report, or ``None`` if the response holds no more than a text.
        response: the error response with everything received before the failure.
        correlation_id: the response's id, to find the exchange in the logs.
    """

    kind = ErrorKind.UNKNOWN

    def __init__(
        self, message: str, *, info: ErrorInfo | None = None, response: ChatResponse | None = None
    ) -> None:
        super().__init__(message)
        self.info = info
        self.response = response
        self.correlation_id = response.id if response is not None else None

    @staticmethod
    def of_kind(kind: ErrorKind) -> type[ProviderError]:
        """Return the class for *kind*, or :class:`ProviderError` itself for ``unknown``."""
        return _BY_KIND.get(kind, ProviderError)


class RateLimitError(ProviderError):
    """Too many requests or tokens. Usually worth a later retry."""

    kind = ErrorKind.RATE_LIMIT


class ContextOverflowError(ProviderError):
    """The prompt does not fit into the model's context window."""

    kind = ErrorKind.CONTEXT_OVERFLOW


class ModelUnavailableError(ProviderError):
    """The model does not exist on this server or is not loaded."""

    kind = ErrorKind.MODEL_UNAVAILABLE


class AuthenticationError(ProviderError):
    """The credentials are missing or wrong."""

    kind = ErrorKind.AUTHENTICATION


class PermissionDeniedError(ProviderError):
    """The credentials do not allow this."""

    kind = ErrorKind.PERMISSION


class InvalidRequestError(ProviderError):
    """The server refuses the request in its present form."""

    kind = ErrorKind.INVALID_REQUEST


class ContentFilterError(ProviderError):
    """The provider's moderation blocked the request."""

    kind = ErrorKind.CONTENT_FILTER


class ToolCallValidationError(ProviderError):
    """The model's tool call was invalid and the server gave up."""

    kind = ErrorKind.TOOL_CALL_VALIDATION


class ProviderTimeoutError(ProviderError):
    """The server ran out of time."""

    kind = ErrorKind.TIMEOUT


class ServerError(ProviderError):
    """The server failed."""

    kind = ErrorKind.SERVER


_BY_KIND = {
    error.kind: error
    for error in (
        RateLimitError,
        ContextOverflowError,
        ModelUnavailableError,
        AuthenticationError,
        PermissionDeniedError,
        InvalidRequestError,
        ContentFilterError,
        ToolCallValidationError,
        ProviderTimeoutError,
        ServerError,
    )
}


def error_of(response: ChatResponse, info: ErrorInfo) -> ProviderError:
    """Return the error to raise for *response*, an error response that contains *info*."""
    status = f" (HTTP {info.status})" if info.status is not None else ""
    text = f"{response.metadata.provider_id}: {info.kind}{status}: {info.message} [{response.id[:80]}]"
    return ProviderError.of_kind(info.kind)(text, info=info, response=response)
