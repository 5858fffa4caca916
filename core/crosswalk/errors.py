"""Every error that Crosswalk raises on purpose, as one tree.

Each error is named for the reader's situation and keeps its subject as attributes, so that a program
never has to read the message. Messages name provider, place and cause; they never quote content. Those that hold no
response are defined in ``plain_errors``, below the canonical types; those that a response raises, above it.

CrosswalkError
├── ResponseValidationError (ValueError)      a canonical value breaks a rule, ACODE-RSP-001 to -010
├── ToolCallArgumentsError (ValueError)       a tool call's arguments are no JSON object
├── CanonicalJSONError (ValueError)           stored canonical JSON cannot be read
├── ConfigurationError (ValueError)           a wrong key or value in the settings
├── PluginError                               a provider plugin is broken
│   └── UnknownProviderError (LookupError)    no plugin of that name
├── DetectionError (LookupError)              no provider, or more than one, recognizes a payload
├── MappingError                              a payload could not be mapped; keeps ``partial``
│   ├── FramingError                          the bytes are no frames
│   │   ├── InvalidJSONError                  an event that is not JSON
│   │   └── LimitError                        a limit was passed
│   │       ├── LineTooLongError
│   │       ├── NestingTooDeepError
│   │       ├── TooManyEventsError
│   │       └── StreamTooLargeError
│   ├── WireTypeError (TypeError)             a leaf has another type than the API promises
│   ├── UnknownEventError                     an event that the mapper does not know
│   ├── UnknownFinishReasonError              a finish word that the mapper does not know
│   ├── IncompleteStreamError                 the stream ended without its terminal signal
│   └── TrailingContentError                  more came after the answer's end: a second answer
└── ProviderError                             the provider itself answered with an error
    ├── RateLimitError, QuotaError, ContextOverflowError, ModelUnavailableError, AuthenticationError,
    ├── PermissionDeniedError, InvalidRequestError, ContentFilterError,
    └── ToolCallValidationError, ProviderTimeoutError, ServerError
"""

from __future__ import annotations

from typing import Self

from crosswalk.plain_errors import (
    CanonicalJSONError,
    ConfigurationError,
    CrosswalkError,
    DetectionError,
    PluginError,
    ResponseValidationError,
    ToolCallArgumentsError,
    UnknownProviderError,
)
from crosswalk.text import clean_message, json_type_name
from crosswalk.types.response import (
    AuthenticationError,
    ChatResponse,
    ContentFilterError,
    ContextOverflowError,
    InvalidRequestError,
    ModelUnavailableError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    QuotaError,
    RateLimitError,
    ServerError,
    ToolCallValidationError,
)
from crosswalk.types.values import ErrorInfo, ErrorKind

__all__ = [
    "AuthenticationError",
    "CanonicalJSONError",
    "ConfigurationError",
    "ContentFilterError",
    "ContextOverflowError",
    "CrosswalkError",
    "DetectionError",
    "ErrorInfo",
    "ErrorKind",
    "FramingError",
    "IncompleteStreamError",
    "InvalidJSONError",
    "InvalidRequestError",
    "LimitError",
    "LineTooLongError",
    "MappingError",
    "ModelUnavailableError",
    "NestingTooDeepError",
    "PermissionDeniedError",
    "PluginError",
    "ProviderError",
    "ProviderTimeoutError",
    "QuotaError",
    "RateLimitError",
    "ResponseValidationError",
    "ServerError",
    "StreamTooLargeError",
    "TooManyEventsError",
    "ToolCallArgumentsError",
    "ToolCallValidationError",
    "TrailingContentError",
    "UnknownEventError",
    "UnknownFinishReasonError",
    "UnknownProviderError",
    "WireTypeError",
]


class MappingError(CrosswalkError):
    """A provider's payload could not be mapped.

    Attributes:
        provider: the provider id; ``None`` before it is known.
        place: where in the input, such as ``event 3, choices[0].delta.content``.
        partial: what was received before, as a response that is marked as an error;
            ``None`` when nothing was.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        place: str | None = None,
        partial: ChatResponse | None = None,
    ) -> None:
        super().__init__(message)
        self.cause = message
        self.provider = provider
        self.place = place
        self.partial = partial

    def locate(self, *, provider: str, event: str) -> Self:
        """Fill in what the raiser could not know: the provider and the event it was reading."""
        if self.provider is None:
            self.provider = provider
        if self.place is None:
            self.place = event
        elif not self.place.startswith(("event ", "after ", "at the ")):
            self.place = f"{event}, {self.place}"
        return self

    def __str__(self) -> str:
        location = ", ".join(part for part in (self.provider, self.place) if part)
        return f"{location}: {self.cause}" if location else self.cause


class FramingError(MappingError):
    """The bytes cannot be cut into frames, or a frame is no event."""


class InvalidJSONError(FramingError):
    """An event, or a whole body, is not JSON.

    Attributes:
        offset: the byte inside the event at which reading failed, or ``None`` when unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        provider: str | None = None,
        place: str | None = None,
        partial: ChatResponse | None = None,
    ) -> None:
        super().__init__(message, provider=provider, place=place, partial=partial)
        self.offset = offset


class LimitError(FramingError):
    """The input passes one of the :class:`crosswalk.Limits`.

    Attributes:
        limit: the limit that was passed, in its own unit.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: int,
        provider: str | None = None,
        place: str | None = None,
        partial: ChatResponse | None = None,
    ) -> None:
        super().__init__(message, provider=provider, place=place, partial=partial)
        self.limit = limit


class LineTooLongError(LimitError):
    """One line, frame or body is longer than ``Limits.line_bytes``."""


class NestingTooDeepError(LimitError):
    """One event is nested deeper than ``Limits.depth``."""


class TooManyEventsError(LimitError):
    """One stream has more events than ``Limits.events``."""


class StreamTooLargeError(LimitError):
    """One stream has more bytes than ``Limits.total_bytes``."""


class WireTypeError(MappingError, TypeError):
    """A leaf of a payload has another type than the provider's API promises.

    Attributes:
        expected: the type in JSON's words, such as ``"string"``.
        got: the type that was found, in JSON's words.
    """

    def __init__(
        self,
        place: str,
        *,
        expected: str,
        got: object,
        provider: str | None = None,
        partial: ChatResponse | None = None,
    ) -> None:
        self.expected = expected
        self.got = json_type_name(got)
        super().__init__(
            f"expected {expected}, got {self.got}", provider=provider, place=place, partial=partial
        )


class UnknownEventError(MappingError):
    """An event of a type that the mapper does not know.

    Attributes:
        event_type: the type as the provider named it, shortened, or ``None`` when it has none.
    """

    def __init__(
        self,
        message: str,
        *,
        event_type: str | None = None,
        provider: str | None = None,
        place: str | None = None,
        partial: ChatResponse | None = None,
    ) -> None:
        super().__init__(clean_message(message), provider=provider, place=place, partial=partial)
        self.event_type = event_type


class UnknownFinishReasonError(MappingError):
    """A finish word that the mapper does not know.

    Attributes:
        reason: the word as the provider sent it.
    """

    def __init__(
        self,
        reason: str,
        *,
        provider: str | None = None,
        place: str | None = None,
        partial: ChatResponse | None = None,
    ) -> None:
        shown_reason = clean_message(reason, 60)
        super().__init__(
            f"unknown finish reason {shown_reason!r}", provider=provider, place=place, partial=partial
        )
        self.reason = reason


class IncompleteStreamError(MappingError):
    """A stream, or a body, ended without its provider's terminal signal."""


class TrailingContentError(MappingError):
    """Content came after its answer had ended: the input holds a second answer, or is out of order."""
