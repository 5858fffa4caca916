"""Every error that Crosswalk raises on purpose, as one tree.

Each error is named for the reader's situation and keeps its subject as attributes, so that a program
never has to read the message. Messages name provider, place and cause; they never quote content.

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
    ├── RateLimitError, ContextOverflowError, ModelUnavailableError, AuthenticationError,
    ├── PermissionDeniedError, InvalidRequestError, ContentFilterError,
    └── ToolCallValidationError, ProviderTimeoutError, ServerError
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeVar

import attrs

from crosswalk.text import clean_message, short_repr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosswalk.types.response import ChatResponse

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


class CrosswalkError(Exception):
    """The root of every error that Crosswalk raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by state, so that errors survive the way back from a worker process."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[CrosswalkError], args: tuple[Any, ...], state: dict[str, Any]) -> CrosswalkError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ResponseValidationError(CrosswalkError, ValueError):
    """A canonical value breaks one of its rules (seed 000, table "Error Codes").

    Attributes:
        code: ``ACODE-RSP-001`` to ``ACODE-RSP-010``; ``None`` for a rule outside that table.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code


class ToolCallArgumentsError(CrosswalkError, ValueError):
    """The arguments of a tool call are not a JSON object.

    Attributes:
        name: the tool's name.
        call_id: the call's id.
    """

    def __init__(self, message: str, *, name: str, call_id: str) -> None:
        super().__init__(message)
        self.name = name
        self.call_id = call_id


class CanonicalJSONError(CrosswalkError, ValueError):
    """Stored canonical JSON cannot be read back.

    Attributes:
        problems: one sentence each, ``problem @ $.path``.
    """

    def __init__(self, message: str, *, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class ConfigurationError(CrosswalkError, ValueError):
    """A setting has an unknown key or a wrong value.

    Attributes:
        key: the setting's dotted name or environment variable; ``None`` when the file itself is at fault.
        source: the file or ``"environment"``.
    """

    def __init__(self, message: str, *, key: str | None = None, source: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.source = source


class PluginError(CrosswalkError):
    """A provider plugin cannot be imported or breaks the hookspec.

    Attributes:
        plugin: the provider id.
        distribution: the installed distribution that ships it; ``None`` when it was registered in the
            program.
    """

    def __init__(self, message: str, *, plugin: str, distribution: str | None = None) -> None:
        super().__init__(message)
        self.plugin = plugin
        self.distribution = distribution


class UnknownProviderError(PluginError, LookupError):
    """No provider of that name is installed or registered, or it is blocked.

    Attributes:
        known: the provider ids that could be resolved instead.
    """

    def __init__(self, message: str, *, plugin: str, known: Sequence[str] = ()) -> None:
        super().__init__(message, plugin=plugin)
        self.known = tuple(known)


class DetectionError(CrosswalkError, LookupError):
    """No provider recognizes a payload, or several do equally.

    Attributes:
        candidates: the provider ids that recognize it; empty when none does.
    """

    def __init__(self, message: str, *, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


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
        where = ", ".join(part for part in (self.provider, self.place) if part)
        return f"{where}: {self.cause}" if where else self.cause


class FramingError(MappingError):
    """The bytes cannot be cut into frames, or a frame is no event."""


class InvalidJSONError(FramingError):
    """An event, or a whole body, is not JSON.

    Attributes:
        offset: the byte inside the event at which reading failed; ``None`` when unknown.
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
    """An event of a type that the mapper does not know (seed 003: no silent fallback).

    Attributes:
        event_type: the type as the provider named it, shortened; ``None`` when it has none.
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
        shown = clean_message(reason, 60)
        super().__init__(f"unknown finish reason {shown!r}", provider=provider, place=place, partial=partial)
        self.reason = reason


class IncompleteStreamError(MappingError):
    """A stream, or a body, ended without its provider's terminal signal."""


class TrailingContentError(MappingError):
    """Content came after its answer had ended: the input holds a second answer, or is out of order."""


class ErrorKind(StrEnum):
    """What kind of error a provider reported, the same words for every provider (design, section 5)."""

    RATE_LIMIT = "rate_limit"
    CONTEXT_OVERFLOW = "context_overflow"
    MODEL_UNAVAILABLE = "model_unavailable"
    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    INVALID_REQUEST = "invalid_request"
    CONTENT_FILTER = "content_filter"
    TOOL_CALL_VALIDATION = "tool_call_validation"
    TIMEOUT = "timeout"
    SERVER = "server"
    UNKNOWN = "unknown"


E = TypeVar("E", bound=StrEnum)


def one_of(words: type[E], value: object, wrong: str, *, code: str | None = None) -> E:
    """*value* as one of *words*.

    Raises:
        ResponseValidationError: it is none of them: *wrong*, with *code*.
    """
    if isinstance(value, str):
        try:
            return words(value)
        except ValueError:
            pass
    got = repr(value[:40]) if isinstance(value, str) else json_type_name(value)
    raise ResponseValidationError(f"{wrong}: {got}", code=code)


def _as_kind(value: object) -> ErrorKind:
    return one_of(ErrorKind, value, "unknown kind of error")


@attrs.frozen(repr=False)
class ErrorInfo:
    """What a provider said about its failure, in canonical words.

    Attributes:
        kind: one of the closed taxonomy.
        message: the provider's own words, cleaned of secrets, paths and control characters and cut to 500
            characters (NFR-023).
        retryable: whether the same request may succeed later.
        status: the HTTP status; ``None`` for an error inside a stream.
        code: the provider's own code or type word; ``None`` when it sent none.
        raw: the provider's error payload: JSON, or text when it was no JSON; ``None`` when it sent none.

    Raises:
        ResponseValidationError: the kind is none of :class:`ErrorKind`.
    """

    kind: ErrorKind = attrs.field(converter=_as_kind)
    message: str = attrs.field(converter=clean_message)
    retryable: bool = False
    status: int | None = None
    code: str | None = None
    raw: Any = attrs.field(default=None, hash=False)

    __repr__ = short_repr("kind", "status", "code", "retryable", "message")


class ProviderError(CrosswalkError):
    """The provider answered with an error; raised by ``ChatResponse.raise_for_error()``.

    Attributes:
        info: what the provider said, or ``None`` when the response holds no more than a text.
        response: the error response with everything received before the failure.
        correlation_id: the response's id, to find the exchange in the logs (NFR-037).
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
        """The class for *kind*; :class:`ProviderError` itself for ``unknown``."""
        return _BY_KIND.get(kind, ProviderError)


class RateLimitError(ProviderError):
    """Too many requests or tokens; usually worth a later retry."""

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
    """The server refuses the request as it stands."""

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


def json_type_name(value: object) -> str:
    """The JSON word for the type of *value*: ``null``, ``boolean``, ``number`` …; the type's name where JSON has none."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list | tuple):
        return "array"
    return "object" if isinstance(value, Mapping) else type(value).__name__
