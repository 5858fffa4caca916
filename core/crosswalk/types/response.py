"""The one response type, the same for every provider, the paths of its fields, and the error that it may report."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeVar, final, get_args

import attrs

from crosswalk.lazy import pattern
from crosswalk.plain_errors import CrosswalkError, ResponseValidationError
from crosswalk.text import brief, summary
from crosswalk.types.delta import ResponseDelta, as_finish_reason
from crosswalk.types.json import FrozenObject
from crosswalk.types.message import ChatMessage, Role, ToolCall
from crosswalk.types.usage import Provenance, ProviderAttempt, ResponseMetadata, UsageInfo, counted_tokens
from crosswalk.types.values import (
    NO_CAUSE,
    NO_RAW_EVENTS,
    PAUSES,
    ContentFilterResult,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    IncompleteReason,
    RawEvents,
    Segment,
    SegmentType,
    TokenLogprob,
    altered,
    as_optional_tuple,
    as_raw_events,
    as_tuple,
    as_utc,
    check_count,
    check_is,
    check_items,
    check_optional_text,
    check_text,
    error_segment,
    new_id,
    now,
    read_error,
    wrong_type,
)
from crosswalk.words import suggests_names

T = TypeVar("T")

# -------------------------------------------------------------------------------- response
# The one response type: the answer of a model, in the same form for every provider.


_NON_CONTENT_PATHS = {"id", "created", "metadata.request_duration", "metadata.time_to_first_token"}


_CUT_REASONS: Final = {
    FinishReason.LENGTH: IncompleteReason.LENGTH,
    FinishReason.CONTENT_FILTER: IncompleteReason.CONTENT_FILTER,
    FinishReason.ERROR: IncompleteReason.ERROR,
    FinishReason.CANCELLED: IncompleteReason.CANCELLED,
}
_MADE_UP_PROVENANCE: Final = {
    "id": Provenance.SYNTHETIC,
    "created": Provenance.SYNTHETIC,
    "metadata.request_duration": Provenance.ABSENT,
}
"""The marks of a response that a factory makes without metadata."""


def _unknown_part(
    provenance: Mapping[str, Provenance], path: str, message: ChatMessage
) -> IncompleteReason | None:
    """Return why the answer at *path*, with this *message*, is incomplete as far as only *provenance* shows it."""
    if provenance.get(f"{path}finish_reason") in (Provenance.UNMAPPED, Provenance.ABSENT):
        return IncompleteReason.UNKNOWN_FINISH_REASON
    # Marks of all answers: an event or a part of an unknown type may belong to any of them.
    has_unknown_event = provenance.get("metadata.extensions") is Provenance.UNMAPPED
    has_unknown_part = provenance.get("message.content") is Provenance.UNMAPPED
    if has_unknown_event or (has_unknown_part and not message.tool_calls):
        return IncompleteReason.UNKNOWN_EVENT
    return IncompleteReason.UNREAD if provenance.get(f"{path}message") is Provenance.UNMAPPED else None


def _incomplete_reason(
    answer: Alternative | ChatResponse, unknown_reason: IncompleteReason | None
) -> IncompleteReason | None:
    """Return why *answer* is incomplete, given the *unknown_reason* part of it."""
    cut_reason = _CUT_REASONS.get(answer.finish_reason)
    if cut_reason is not None:
        return cut_reason
    if unknown_reason is not None and unknown_reason is not IncompleteReason.UNREAD:
        return unknown_reason
    if answer.refusal is not None:
        return IncompleteReason.REFUSAL
    calls = answer.message.tool_calls or ()
    if answer.finish_reason is FinishReason.TOOL_CALLS and not calls:
        return IncompleteReason.MISSING_CALL
    if not all(call.has_valid_arguments for call in calls):
        return IncompleteReason.INVALID_ARGUMENTS
    if unknown_reason is not None:
        return unknown_reason
    return IncompleteReason.PAUSED if answer.raw_finish_reason in PAUSES else None


@brief
@attrs.frozen
class Alternative:
    """A further answer to the same request (``n > 1``).

    Attributes:
        index: the choice's number, from the provider.
        message: the message of the assistant.
        finish_reason: why this answer ended.
        raw_finish_reason: the provider's own word for that, or ``None`` if it gave none.
        refusal: why the model declined, or ``None`` if it did not.
        segments: the typed parts, in order.
        logprobs: its tokens, or ``None`` if not requested.
        unknown: an unknown finish word, an unknown event or unread text, as the ``provenance`` of the response shows it,
            or ``None`` for none of them. The response fills it in.

    Raises:
        ResponseValidationError: an invalid finish reason (``ACODE-RSP-003``), or a field of another type.
    """

    index: int
    message: ChatMessage
    finish_reason: FinishReason = attrs.field(converter=as_finish_reason)
    raw_finish_reason: str | None = None
    refusal: str | None = None
    segments: tuple[Segment, ...] = attrs.field(default=(), converter=as_tuple)
    logprobs: tuple[TokenLogprob, ...] | None = attrs.field(default=None, converter=as_optional_tuple)
    unknown: IncompleteReason | None = attrs.field(default=None, eq=False, metadata={"json_key": None})

    def __attrs_post_init__(self) -> None:
        check_count(self, "index")
        check_is(self, "message", ChatMessage)
        if self.message.role is not Role.ASSISTANT:
            raise ResponseValidationError(
                f"an answer has a message of the assistant, not of the {self.message.role}"
            )
        check_optional_text(self, "raw_finish_reason", "refusal")
        check_items(self, "segments", Segment)
        check_items(self, "logprobs", TokenLogprob)
        if self.unknown is not None:
            check_is(self, "unknown", IncompleteReason)

    @property
    def is_complete(self) -> bool:
        """Whether the model finished this answer by itself (``stop``), and it is whole."""
        return self.finish_reason is FinishReason.STOP and self.incomplete_reason is None

    @property
    def incomplete_reason(self) -> IncompleteReason | None:
        """Why this answer is not whole, or ``None`` if it is, by the rules of :attr:`ChatResponse.incomplete_reason`."""
        return _incomplete_reason(self, self.unknown)

    def __repr__(self) -> str:
        return summary(
            "Alternative",
            [
                ("index", self.index),
                ("finish_reason", self.finish_reason.value),
                ("text", self.message.text),
            ],
        )


def with_unknown_parts(
    alternatives: Iterable[Alternative], provenance: Mapping[str, Provenance]
) -> tuple[Alternative, ...]:
    """Return *alternatives*, each with what the *provenance* of their response shows of it."""
    return tuple(
        altered(answer, unknown=_unknown_part(provenance, f"alternatives[{position}].", answer.message))
        for position, answer in enumerate(alternatives)
    )


@suggests_names
@brief
@final
@attrs.frozen(repr=False, eq=False)
class ChatResponse:
    """A model's complete answer to one request.

    Two responses are equal if their ids are. :meth:`same_content` compares their content.

    Attributes:
        id: the provider's id, or a made-up one. Never empty.
        message: the text of the assistant and the tools that it asks for.
        finish_reason: why generation ended.
        usage: tokens taken.
        metadata: provider, model, timing, and the provider's remaining fields.
        created: the provider's time of creation, else the time when it was read, in UTC.
        model: the model that answered, or ``unknown`` if the answer does not name it.
        refusal: why the model declined, or what went wrong for an error response, which always has
            one. ``None`` otherwise.
        content_filter_results: moderation verdicts, or ``None`` if the provider gave none.
        raw_finish_reason: the provider's own word for why it ended, verbatim, or ``None`` if it gave none.
        segments: the typed parts of the answer, in the order in which they came.
        logprobs: the tokens of the answer, or ``None`` if not requested.
        alternatives: the choices after the first (``n > 1``).
        attempts: every attempt at this request, in order, or empty if none was recorded.
        raw_events: the provider's bytes, event by event, or empty if dropped (``keep_raw=False``).

    Raises:
        ResponseValidationError: an empty id (``ACODE-RSP-001``), no message (``-002``),
            an invalid finish reason (``-003``), an empty model (``-006``), a message of another role, or a field of
            another type.
    """

    id: str
    message: ChatMessage
    finish_reason: FinishReason = attrs.field(converter=as_finish_reason)
    usage: UsageInfo
    metadata: ResponseMetadata
    created: datetime = attrs.field(converter=as_utc)
    model: str = attrs.field(metadata={"json_next": "raw_finish_reason"})
    refusal: str | None = None
    content_filter_results: tuple[ContentFilterResult, ...] | None = attrs.field(
        default=None, converter=as_optional_tuple
    )
    raw_finish_reason: str | None = None
    segments: tuple[Segment, ...] = attrs.field(default=(), converter=as_tuple)
    logprobs: tuple[TokenLogprob, ...] | None = attrs.field(default=None, converter=as_optional_tuple)
    alternatives: tuple[Alternative, ...] = attrs.field(default=(), converter=as_tuple)
    attempts: tuple[ProviderAttempt, ...] = attrs.field(default=(), converter=as_tuple)
    raw_events: RawEvents = attrs.field(default=NO_RAW_EVENTS, converter=as_raw_events)

    def __attrs_post_init__(self) -> None:
        if not self.id or not isinstance(self.id, str):
            raise ResponseValidationError("Response ID cannot be empty", code="ACODE-RSP-001")
        if type(self.message) is not ChatMessage:
            raise ResponseValidationError("Response message cannot be null", code="ACODE-RSP-002")
        if self.message.role is not Role.ASSISTANT:
            raise ResponseValidationError(
                f"a response has a message of the assistant, not of the {self.message.role}"
            )
        if type(self.usage) is not UsageInfo:
            raise wrong_type(self, "usage", "a UsageInfo")
        if type(self.metadata) is not ResponseMetadata:
            raise wrong_type(self, "metadata", "a ResponseMetadata")
        id, model = self.id, self.model
        if not (type(id) is type(model) is str and id.isascii() and model.isascii()):
            check_text(self, "id", "model")
        if not model:
            raise ResponseValidationError("Model ID cannot be empty", code="ACODE-RSP-006")
        raw_reason = self.raw_finish_reason
        if self.refusal is not None or not (
            raw_reason is None or (type(raw_reason) is str and raw_reason.isascii())
        ):
            check_optional_text(self, "refusal", "raw_finish_reason")
        for segment in self.segments:
            if type(segment) is not Segment:
                check_items(self, "segments", Segment)
        if self.finish_reason is FinishReason.ERROR and self.refusal is None:
            failure_segment = self._error_segment()
            object.__setattr__(
                self, "refusal", NO_CAUSE if failure_segment is None else failure_segment.content or NO_CAUSE
            )
        if self.content_filter_results:
            check_items(self, "content_filter_results", ContentFilterResult)
        if self.logprobs:
            check_items(self, "logprobs", TokenLogprob)
        if self.alternatives:
            check_items(self, "alternatives", Alternative)
            marked_alternatives = with_unknown_parts(self.alternatives, self.metadata.provenance)
            object.__setattr__(self, "alternatives", marked_alternatives)
        if self.attempts:
            check_items(self, "attempts", ProviderAttempt)
        token_count = counted_tokens(self.usage, self.metadata.provenance)
        if self.metadata.completion_tokens != token_count:
            object.__setattr__(self, "metadata", self.metadata.with_completion_tokens(token_count))

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, ChatResponse) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def same_content(self, other: ChatResponse) -> bool:
        """Return whether both are equal in every field but id, creation time, raw bytes and measured times."""
        return self._comparable() == other._comparable()

    def _comparable(self) -> tuple[Any, ...]:
        ignored_fields = {"id", "created", "raw_events", "metadata", "attempts"}
        fields = (f.name for f in attrs.fields(type(self)) if f.name not in ignored_fields)
        metadata = self.metadata
        # An id and a time are made up or sent, measured or not: none of it is content.
        provenance = {
            path: mark for path, mark in metadata.provenance.items() if path not in _NON_CONTENT_PATHS
        }
        return (
            *(getattr(self, name) for name in fields),
            tuple(attrs.evolve(attempt, latency_ms=None) for attempt in self.attempts),
            (metadata.provider_id, metadata.model_id, metadata.extensions, provenance),
        )

    @property
    def is_complete(self) -> bool:
        """Whether the model finished the first answer by itself (``stop``), and it is whole."""
        return self.finish_reason is FinishReason.STOP and self.incomplete_reason is None

    @property
    def incomplete_reason(self) -> IncompleteReason | None:
        """Why the first answer is not whole, or ``None`` if it is, with or without tool calls.

        It is about the answer in ``message``. Each of ``alternatives`` has a reason of its own. Fields in the extensions
        never count, except for an answer without any content (``unread``).
        """
        provenance = self.metadata.provenance
        return _incomplete_reason(self, _unknown_part(provenance, "", self.message))

    @property
    def is_truncated(self) -> bool:
        """Whether a limit cut the answer."""
        return self.finish_reason is FinishReason.LENGTH

    @property
    def has_tool_calls(self) -> bool:
        """Whether the model asks for tools."""
        return bool(self.message.tool_calls)

    @property
    def text(self) -> str:
        """The answer's text, or ``""`` when it has none."""
        return self.message.text

    @property
    def reasoning(self) -> str:
        """The reasoning that the provider showed, or ``""`` when it showed none."""
        return "".join(s.content for s in self.segments if s.type is SegmentType.REASONING)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model asks for, or empty when it asks for none."""
        return self.message.tool_calls or ()

    @property
    def tokens_per_second(self) -> float | None:
        """Completion tokens per second, or ``None`` when the count or the time is unknown."""
        return self.metadata.tokens_per_second

    @property
    def error_info(self) -> ErrorInfo | None:
        """The provider's report of its failure, or ``None`` if this is not an error response."""
        if self.finish_reason is not FinishReason.ERROR:
            return None
        segment = self._error_segment()
        if segment is not None:
            return read_error(segment)
        return ErrorInfo(ErrorKind.UNKNOWN, self.refusal or NO_CAUSE)

    def _error_segment(self) -> Segment | None:
        return next((segment for segment in self.segments if segment.type is SegmentType.ERROR), None)

    def raise_for_error(self) -> ChatResponse:
        """This response, unless it is an error response.

        Raises:
            ProviderError: the subclass for the kind of error, with the response as its ``response``.
        """
        info = self.error_info
        if info is None:
            return self
        error: CrosswalkError = error_of(self, info)
        raise error

    @classmethod
    def success(
        cls,
        message: ChatMessage,
        usage: UsageInfo,
        model: str,
        metadata: ResponseMetadata | None = None,
    ) -> ChatResponse:
        """A response that the model finished by itself."""
        return cls._made(message, FinishReason.STOP, usage, model, metadata)

    @classmethod
    def truncated(
        cls,
        message: ChatMessage,
        usage: UsageInfo,
        model: str,
        metadata: ResponseMetadata | None = None,
    ) -> ChatResponse:
        """A response that a limit cut."""
        return cls._made(message, FinishReason.LENGTH, usage, model, metadata)

    @classmethod
    def tool_calls_required(
        cls,
        message: ChatMessage,
        usage: UsageInfo,
        model: str,
        metadata: ResponseMetadata | None = None,
    ) -> ChatResponse:
        """A response that asks for tools.

        Raises:
            ResponseValidationError: the message has no tool calls.
        """
        if not message.tool_calls:
            raise ResponseValidationError("a response that requires tool calls needs some")
        return cls._made(message, FinishReason.TOOL_CALLS, usage, model, metadata)

    @classmethod
    def refused(
        cls,
        refusal: str,
        usage: UsageInfo = UsageInfo.EMPTY,
        model: str = "unknown",
        metadata: ResponseMetadata | None = None,
        *,
        finish_reason: FinishReason = FinishReason.STOP,
    ) -> ChatResponse:
        """Return a response in which the model declined, with the arguments of :meth:`success`.

        Pass ``finish_reason=FinishReason.CONTENT_FILTER`` if moderation declined, not the model.
        """
        segments = (Segment(SegmentType.REFUSAL, refusal),)
        message = ChatMessage.assistant()
        return cls._made(message, finish_reason, usage, model, metadata, refusal=refusal, segments=segments)

    @classmethod
    def error(
        cls,
        error: str | ErrorInfo,
        usage: UsageInfo = UsageInfo.EMPTY,
        model: str = "unknown",
        metadata: ResponseMetadata | None = None,
        *,
        message: ChatMessage | None = None,
    ) -> ChatResponse:
        """Return a response that failed.

        Args:
            error: what went wrong. Its cleaned text becomes ``refusal``.
            usage: tokens consumed before the failure.
            model: the model that was asked.
            metadata: provider and timing, or ``None`` for an unknown provider.
            message: the part of the answer that came before the failure, or ``None`` if none did.
        """
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        return cls._made(
            message or ChatMessage.assistant(),
            FinishReason.ERROR,
            usage,
            model,
            metadata,
            refusal=info.message,
            segments=(error_segment(info),),
        )

    @classmethod
    def from_deltas(cls, deltas: Iterable[ResponseDelta]) -> ChatResponse:
        """Return the response that *deltas* add up to, in whatever order they come.

        Raises:
            ResponseValidationError: the final delta or one before it is missing (``ACODE-RSP-008``),
                or an index repeats (``-010``).
        """
        from crosswalk.types.stream import accumulate  # a door up, named in the contracts

        return accumulate(deltas)

    def parsed(self, kind: type[T]) -> T:
        """Return the text as a value of *kind*: a type, or whatever else :func:`crosswalk.structured.parse` takes.

        Raises:
            StructuredAnswerError: the response has no valid value of that type. Its ``errors`` say why.
            SchemaDefinitionError: *kind* cannot be a schema.
        """
        from crosswalk.structured.parser import parse  # a door up, named in the contracts

        return parse(self, kind).unwrap()

    @classmethod
    def _made(
        cls,
        message: ChatMessage,
        finish_reason: FinishReason,
        usage: UsageInfo,
        model: str,
        metadata: ResponseMetadata | None,
        *,
        refusal: str | None = None,
        segments: tuple[Segment, ...] = (),
    ) -> ChatResponse:
        if metadata is None:
            provenance = dict(_MADE_UP_PROVENANCE)
            if usage is UsageInfo.EMPTY:
                provenance["usage"] = Provenance.ABSENT
            metadata = ResponseMetadata("unknown", model, provenance=provenance)
        return cls(
            id=new_id(),
            message=message,
            finish_reason=finish_reason,
            usage=usage,
            metadata=metadata,
            created=now(),
            model=model,
            refusal=refusal,
            segments=segments,
        )

    def to_dict(self) -> dict[str, Any]:
        """The canonical JSON as dictionaries and lists, for other libraries."""
        from crosswalk.codec.canonical import to_jsonable  # a door up, named in the contracts

        jsonable: dict[str, Any] = to_jsonable(self)
        return jsonable

    def __repr__(self) -> str:
        return summary(
            "ChatResponse",
            [
                ("id", self.id),
                ("model", self.model),
                ("finish_reason", self.finish_reason.value),
                ("usage", self.usage.total_tokens),
                ("text", self.text),
                ("tool_calls", len(self.tool_calls) or None),
                ("refusal", self.refusal),
            ],
        )


# ----------------------------------------------------------------------------------- paths
# The paths of a response's canonical fields, as ``metadata.provenance`` writes them.


_STEP_PATTERN: Final = pattern(r"(\w+)(?:\[\d+\])?")


@lru_cache(maxsize=256)
def is_canonical(path: str) -> bool:
    """Return whether a response has a field, or a computed one, at *path*, such as ``message.tool_calls[0].id``.

    Every path inside a provider's own fields, such as the extensions, counts as one.
    """
    kinds: tuple[Any, ...] = (ChatResponse,)
    for step in path.split("."):
        if FrozenObject in kinds:
            return True
        match = _STEP_PATTERN.fullmatch(step)
        owners = [kind for kind in kinds if match is not None and _has(kind, match[1])]
        if match is None or not owners:
            return False
        kinds = tuple(kind for owner in owners for kind in _held(owner, match[1]))
    return True


def _has(kind: Any, name: str) -> bool:
    return (
        isinstance(kind, type)
        and attrs.has(kind)
        and (name in attrs.fields_dict(kind) or isinstance(getattr(kind, name, None), property))
    )


def _held(kind: Any, name: str) -> Iterator[Any]:
    """Return the classes of field *name* of *kind*. For a list they are the classes of an item."""
    field = attrs.fields_dict(kind).get(name)
    # Read from the text of the annotation: to evaluate the annotations of a class takes milliseconds.
    for type_name in re.findall(r"\w+", "" if field is None else str(field.type)):
        annotated_type = getattr(sys.modules[kind.__module__], type_name, None)
        yield from get_args(annotated_type) or (annotated_type,)


# -------------------------------------------------------------------------- provider error
# The errors of ``ChatResponse.raise_for_error``: one for each kind of failure, with the response that reports it.


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
        return _ERRORS_BY_KIND.get(kind, ProviderError)


class RateLimitError(ProviderError):
    """Too many requests or tokens. Usually worth a later retry."""

    kind = ErrorKind.RATE_LIMIT


class QuotaError(ProviderError):
    """The account has no money left. The request fails until somebody pays, but another provider may take it."""

    kind = ErrorKind.QUOTA


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


_ERRORS_BY_KIND = {
    error.kind: error
    for error in (
        RateLimitError,
        QuotaError,
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
