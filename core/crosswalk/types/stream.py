"""The contents of a stream: the delta of each event, the event that shows it, and the response that the deltas add up to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import Any, Final, Self, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, counted, short_repr
from crosswalk.types.answer import AnswerDraft, Built, ChoiceDraft
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import as_frozen_value
from crosswalk.types.message import ChatMessage, ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import ProviderAttempt, ResponseMetadata, UsageInfo
from crosswalk.types.values import (
    ContentFilterResult,
    ErrorInfo,
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
    check_is,
    check_items,
    maker,
    new_id,
    now,
    one_of,
)
from crosswalk.words import suggests_names

# ----------------------------------------------------------------------------------- event
# Deltas as typed events, in the words of the Responses API.


class StreamEventType(StrEnum):
    """The type of a stream event: a closed set."""

    CREATED = "response.created"
    """An answer begins. It is the first event, and no other."""
    IN_PROGRESS = "response.in_progress"
    """A fact about the whole answer, such as a count of tokens so far."""
    RETRIED = "response.retried"
    """Discard everything before: another attempt begins."""
    OUTPUT_TEXT_DELTA = "response.output_text.delta"
    REASONING_DELTA = "response.reasoning.delta"
    REFUSAL_DELTA = "response.refusal.delta"
    FUNCTION_CALL_ARGUMENTS_DELTA = "response.function_call_arguments.delta"
    CITATION_ADDED = "response.output_text.annotation.added"
    SAFETY_ADDED = "response.safety.added"
    MEDIA_ADDED = "response.media.added"
    ERROR_ADDED = "response.error.added"
    """Something failed inside the answer, such as a tool of the server. The answer continues."""
    COMPLETED = "response.completed"
    INCOMPLETE = "response.incomplete"
    """The answer is not whole: ``response.incomplete_reason`` says why."""
    ERROR = "response.error"


TERMINAL = frozenset({StreamEventType.COMPLETED, StreamEventType.INCOMPLETE, StreamEventType.ERROR})


def _as_event_type(value: object) -> StreamEventType:
    return one_of(StreamEventType, value, "unknown type of stream event")


@suggests_names
@brief
@final
@attrs.frozen(weakref_slot=False)
class StreamEvent:
    """One event of a stream on its way to an application.

    Attributes:
        event_type: its type.
        delta: its contribution, or ``None`` for an event that adds nothing.
        segments: whole segments that came with it.
        attempts: the attempts made so far, on the first and the last event.
        raw_event: the provider's own event, decoded and read-only, or ``None`` if dropped.
        response: the complete response. Set only, and always, on a terminal event.

    Raises:
        ResponseValidationError: a terminal event has no response, or another event has one. The type is unknown, or a
            field has another type.
    """

    event_type: StreamEventType = attrs.field(converter=_as_event_type)
    delta: ResponseDelta | None = None
    segments: tuple[Segment, ...] = attrs.field(default=(), converter=as_tuple)
    attempts: tuple[ProviderAttempt, ...] = attrs.field(default=(), converter=as_tuple)
    raw_event: Any = attrs.field(default=None, converter=as_frozen_value)
    response: ChatResponse | None = None

    def __attrs_post_init__(self) -> None:
        check_is(self, "delta", ResponseDelta, NoneType)
        check_is(self, "response", ChatResponse, NoneType)
        check_items(self, "segments", Segment)
        check_items(self, "attempts", ProviderAttempt)
        if (self.event_type in TERMINAL) != (self.response is not None):
            raise ResponseValidationError(
                f"{self.event_type}: the terminal event, and no other, carries the response"
            )

    @property
    def text(self) -> str:
        """The text that it appends, or ``""``."""
        return "" if self.delta is None else self.delta.text

    @classmethod
    def terminal(cls, response: ChatResponse, delta: ResponseDelta | None = None) -> StreamEvent:
        """Return the last event of a stream, for *response*: completed only if it is whole."""
        match response.incomplete_reason:
            case None:
                kind = StreamEventType.COMPLETED
            case IncompleteReason.ERROR:
                kind = StreamEventType.ERROR
            case _:
                kind = StreamEventType.INCOMPLETE
        return cls(kind, delta, response.segments, response.attempts, response=response)

    __repr__ = short_repr("event_type", "delta", "response")


def delta_event(kind: StreamEventType, delta: ResponseDelta, raw_event: Any = None) -> StreamEvent:
    """The event of type *kind* that *delta* is, for a caller that has checked its parts: most of any stream."""
    segments = () if delta.segment is None else (delta.segment,)
    return _EVENT_MAKER(kind, delta, segments, None if raw_event is None else as_frozen_value(raw_event))


_EVENT_MAKER: Final = maker(StreamEvent, "event_type", "delta", "segments", "raw_event")


_FIELD_EVENT_TYPES = (
    ("reasoning_delta", StreamEventType.REASONING_DELTA),
    ("content_delta", StreamEventType.OUTPUT_TEXT_DELTA),
    ("refusal_delta", StreamEventType.REFUSAL_DELTA),
    ("tool_call_delta", StreamEventType.FUNCTION_CALL_ARGUMENTS_DELTA),
)
_SEGMENT_EVENT_TYPES = {
    SegmentType.TEXT: StreamEventType.OUTPUT_TEXT_DELTA,
    SegmentType.REASONING: StreamEventType.REASONING_DELTA,
    SegmentType.REFUSAL: StreamEventType.REFUSAL_DELTA,
    SegmentType.TOOL_CALL: StreamEventType.FUNCTION_CALL_ARGUMENTS_DELTA,
    SegmentType.CITATION: StreamEventType.CITATION_ADDED,
    SegmentType.SAFETY: StreamEventType.SAFETY_ADDED,
    SegmentType.MEDIA: StreamEventType.MEDIA_ADDED,
    SegmentType.ERROR: StreamEventType.ERROR_ADDED,
}


class EventMaker:
    """Makes the events of one answer. Their deltas are numbered without gaps."""

    def __init__(self) -> None:
        self._next = 0

    def events(self, delta: ResponseDelta, raw_event: Any = None) -> list[StreamEvent]:
        """Return the events for *delta*, one for each kind of content: some servers send several kinds at once.

        Facts about the answer as a whole, such as a count of tokens so far, become a ``response.in_progress``.
        """
        if (
            delta.content_delta is not None
            and delta.reasoning_delta is None
            and delta.refusal_delta is None
            and delta.tool_call_delta is None
            and delta.segment is None
        ):  # as most are
            return [delta_event(StreamEventType.OUTPUT_TEXT_DELTA, self.numbered(delta), raw_event)]
        field_kinds = [(name, kind) for name, kind in _FIELD_EVENT_TYPES if getattr(delta, name) is not None]
        if delta.segment is not None:
            kind = _SEGMENT_EVENT_TYPES[delta.segment.type]
            if [kind] != [
                field_kind for _, field_kind in field_kinds
            ]:  # else it is the complete text that the piece is a part of
                field_kinds.append(("segment", kind))
        if not field_kinds:
            return [delta_event(StreamEventType.IN_PROGRESS, self.numbered(delta), raw_event)]
        events = []
        for name, kind in field_kinds[:-1]:
            field_delta = ResponseDelta(delta.index, choice=delta.choice, **{name: getattr(delta, name)})
            events.append(delta_event(kind, self.numbered(field_delta), raw_event))
            delta = altered(delta, **{name: None})
        return [*events, delta_event(field_kinds[-1][1], self.numbered(delta), raw_event)]

    def numbered(self, delta: ResponseDelta) -> ResponseDelta:
        """Return *delta* with the next number."""
        index = self._next
        self._next = index + 1
        return delta if delta.index == index else altered(delta, index=index)


# --------------------------------------------------------------------------------- builder
# A response, put together step by step.


class ResponseBuilder:
    """Builds a :class:`ChatResponse` step by step.

    Message, finish reason, usage and metadata must be set. The id and the time of creation are made
    if you do not set them, and the model is the metadata's. Each ``with_…`` returns the builder.

    Args:
        id_factory: makes an id if none is set.
        clock: returns the time of creation, with a time zone.
    """

    def __init__(
        self, *, id_factory: Callable[[], str] = new_id, clock: Callable[[], datetime] = now
    ) -> None:
        self._id_factory = id_factory
        self._clock = clock
        self._fields: dict[str, Any] = {}

    def with_id(self, id: str) -> Self:
        """Set the response's id."""
        return self._with("id", id)

    def with_message(self, message: ChatMessage) -> Self:
        """Set the message of the assistant."""
        return self._with("message", message)

    def with_finish_reason(self, reason: FinishReason | str, *, raw: str | None = None) -> Self:
        """Set why it ended, and the provider's own word for that."""
        self._with("raw_finish_reason", raw)
        return self._with("finish_reason", reason)

    def with_usage(self, usage: UsageInfo) -> Self:
        """Set the tokens taken."""
        return self._with("usage", usage)

    def with_metadata(self, metadata: ResponseMetadata) -> Self:
        """Set provider, model and timing."""
        return self._with("metadata", metadata)

    def with_model(self, model: str) -> Self:
        """Set the model if it is not the metadata's."""
        return self._with("model", model)

    def with_created(self, created: datetime) -> Self:
        """Set the time of creation."""
        return self._with("created", created)

    def with_refusal(self, refusal: str | None) -> Self:
        """Set why the model declined, or ``None`` if it did not."""
        return self._with("refusal", refusal)

    def with_content_filter_results(self, results: Iterable[ContentFilterResult] | None) -> Self:
        """Set the report of moderation, or ``None`` without one."""
        return self._with("content_filter_results", as_optional_tuple(results))

    def with_segments(self, segments: Iterable[Segment]) -> Self:
        """Set the typed parts of the answer."""
        return self._with("segments", as_tuple(segments))

    def with_logprobs(self, logprobs: Iterable[TokenLogprob] | None) -> Self:
        """Set the tokens of the answer, or ``None`` if they were not requested."""
        return self._with("logprobs", as_optional_tuple(logprobs))

    def with_alternatives(self, alternatives: Iterable[Alternative]) -> Self:
        """Set the choices after the first."""
        return self._with("alternatives", as_tuple(alternatives))

    def with_attempts(self, attempts: Iterable[ProviderAttempt]) -> Self:
        """Set every attempt at the request, in order."""
        return self._with("attempts", as_tuple(attempts))

    def with_raw_events(self, events: Iterable[bytes] | RawEvents) -> Self:
        """Set the provider's bytes, event by event."""
        return self._with("raw_events", as_raw_events(events))

    def _with(self, field: str, value: Any) -> Self:
        self._fields[field] = value
        return self

    def build(self) -> ChatResponse:
        """Return the validated response. The builder can continue and build another.

        Raises:
            ResponseValidationError: a required field is missing (``ACODE-RSP-002`` for the message,
                ``-003`` for the finish reason, ``-008`` otherwise) or invalid.
        """
        fields = dict(self._fields)
        if fields.get("message") is None:
            raise ResponseValidationError("Response message cannot be null", code="ACODE-RSP-002")
        if "finish_reason" not in fields:
            raise ResponseValidationError("Invalid finish reason value: none", code="ACODE-RSP-003")
        missing_names = [name for name in ("usage", "metadata") if fields.get(name) is None]
        if missing_names:
            raise ResponseValidationError(
                f"Cannot build incomplete response: no {' and no '.join(missing_names)}",
                code="ACODE-RSP-008",
            )
        if "id" not in fields:
            fields["id"] = self._id_factory()
        if "created" not in fields:
            fields["created"] = self._clock()
        if "model" not in fields:
            fields["model"] = fields["metadata"].model_id
        return ChatResponse(**fields)


# ----------------------------------------------------------------------------- accumulator
# Deltas add up to a response.
#
# This module belongs to the types, not to the stream package that re-exports it, because ``ChatResponse.from_deltas``
# needs it. It depends on deltas only, on no provider and no wire format.


class PartialResponse:
    """The answer so far: a live view that copies nothing until you read a property."""

    def __init__(self, accumulator: DeltaAccumulator) -> None:
        self._accumulator = accumulator

    @property
    def text(self) -> str:
        """The text so far."""
        return self._accumulator._joined(SegmentType.TEXT)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return self._accumulator._joined(SegmentType.REASONING)

    @property
    def message(self) -> ChatMessage:
        """The message so far, without tool calls that have no name yet."""
        return self._accumulator._build_primary()[0]

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls so far, their arguments perhaps cut."""
        return self.message.tool_calls or ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The parts so far."""
        return self._accumulator._build_primary()[1]

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended, or ``None`` while it has not."""
        return self._accumulator.finish_reason

    @property
    def usage(self) -> UsageInfo | None:
        """The last usage report, or ``None`` before the first."""
        return self._accumulator.usage

    @property
    def delta_count(self) -> int:
        """The number of deltas in it."""
        return self._accumulator.delta_count

    def __repr__(self) -> str:
        return f"PartialResponse({counted(self.delta_count, 'delta')}, finish_reason={self.finish_reason})"


class DeltaAccumulator:
    """Adds up deltas to a response.

    Deltas may come from several threads and out of order. They are put in order by ``index``. Text is stored
    in lists and joined once. A later usage report replaces an earlier one.

    Args:
        id: the response's id, or ``None`` to make one.
        model: the model, or ``None`` if unknown.
        provider_id: the provider.
        created: the time of creation, or ``None`` to ask *clock*.
        id_factory: makes the id.
        clock: returns the time, with a time zone.

    Attributes:
        answer: the answer so far. You may add facts to it that no delta carries: how long it took, the provider's bytes,
            or why a value is not the provider's own.
    """

    def __init__(
        self,
        *,
        id: str | None = None,
        model: str | None = None,
        provider_id: str = "unknown",
        created: datetime | None = None,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.answer = answer = AnswerDraft(provider_id)
        answer.id, answer.model, answer.created = id, model, created
        answer.id_factory, answer.clock = id_factory, clock
        self._first_choice: ChoiceDraft = answer.choice(0)
        self._lock = threading.Lock()
        self._early_deltas: dict[int, ResponseDelta] = {}

    @property
    def delta_count(self) -> int:
        """The number of deltas that came, including those that wait for an earlier one."""
        return self.answer.delta_count + len(self._early_deltas)

    @property
    def total_tokens(self) -> int:
        """Tokens by the last usage report, or 0 before the first."""
        usage = self.answer.usage
        return usage.total_tokens if usage is not None else 0

    @property
    def usage(self) -> UsageInfo | None:
        """The last usage report, or ``None`` before the first."""
        return self.answer.usage

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended, or ``None`` while the final delta is missing."""
        return self._first_choice.finish

    @property
    def is_complete(self) -> bool:
        """Whether the final delta and every delta before it came."""
        return self._first_choice.finish is not None and not self._early_deltas

    @property
    def current(self) -> PartialResponse:
        """The answer so far, as a live view."""
        return PartialResponse(self)

    def append(self, delta: ResponseDelta) -> None:
        """Add *delta*. Safe from several threads at once.

        Raises:
            ResponseValidationError: its index came before, or lies after the final delta's, or it has none yet
                (``ACODE-RSP-010``). So may one that came too early and waited. A refused delta is not stored.
        """
        with self._lock:
            if delta.index != self.answer.delta_count:
                self._keep_early(delta)
                return
            self._add(delta)
            while self._early_deltas and self.answer.delta_count in self._early_deltas:
                self._add(self._early_deltas.pop(self.answer.delta_count))

    def _keep_early(self, delta: ResponseDelta) -> None:
        if delta.index < 0:
            raise _out_of_order(delta.index, "means that it was not numbered")
        if delta.index < self.answer.delta_count or delta.index in self._early_deltas:
            raise _out_of_order(delta.index, "came before")
        if self._first_choice.finish is not None:
            raise _out_of_order(delta.index, "lies after the final delta")
        self._early_deltas[delta.index] = delta

    def _add(self, delta: ResponseDelta) -> None:
        if self._first_choice.finish is not None:
            raise _out_of_order(delta.index, "lies after the final delta")
        self.answer.add(delta)
        if self._first_choice.finish is not None and self._early_deltas:
            refused_index = min(self._early_deltas)
            self._early_deltas.clear()
            raise _out_of_order(refused_index, "lies after the final delta")

    def build(self) -> ChatResponse:
        """The complete response.

        Raises:
            ResponseValidationError: the final delta, or one before it, is missing (``ACODE-RSP-008``).
        """
        with self._lock:
            if self._first_choice.finish is None:
                missing = f"delta {self.answer.delta_count}" if self._early_deltas else "the final delta"
                raise ResponseValidationError(
                    f"Cannot build incomplete response: {missing} has not come",
                    code="ACODE-RSP-008",
                )
            return self.answer.response(self._first_choice.finish)

    def build_partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Everything so far as an error response: for an answer that will not become complete."""
        with self._lock:
            return self.answer.partial(error)

    def _joined(self, kind: SegmentType) -> str:
        with self._lock:
            return self._first_choice.joined(kind)

    def _build_primary(self) -> Built:
        with self._lock:
            return self._first_choice.build("", 0, {}, partial=True)


def accumulate(deltas: Iterable[ResponseDelta]) -> ChatResponse:
    """The response that *deltas* add up to, whatever their order.

    Raises:
        ResponseValidationError: one is missing (``ACODE-RSP-008``) or repeated (``-010``).
    """
    accumulator = DeltaAccumulator()
    for delta in deltas:
        accumulator.append(delta)
    return accumulator.build()


def _out_of_order(index: int, cause: str) -> ResponseValidationError:
    return ResponseValidationError(
        f"Accumulator received out-of-order delta: index {index} {cause}", code="ACODE-RSP-010"
    )
