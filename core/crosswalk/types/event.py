"""Deltas as typed events, in the words of the Responses API."""

from __future__ import annotations

from enum import StrEnum
from types import NoneType
from typing import Any, final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import brief, short_repr
from crosswalk.types._value import as_tuple, check_is, check_items, one_of, unchecked
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.finish import IncompleteReason
from crosswalk.types.json import as_frozen_value
from crosswalk.types.metadata import ProviderAttempt
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import Segment


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


def delta_event(kind: StreamEventType, delta: ResponseDelta, raw: Any = None) -> StreamEvent:
    """The event of type *kind* that *delta* is, for a caller that has checked its parts: most of any stream."""
    return unchecked(
        StreamEvent,
        event_type=kind,
        delta=delta,
        segments=() if delta.segment is None else (delta.segment,),
        raw_event=None if raw is None else as_frozen_value(raw),
    )
