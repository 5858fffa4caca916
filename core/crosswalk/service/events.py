"""Deltas as the events of a stream (seed 003)."""

from __future__ import annotations

from typing import Any

from crosswalk.types._value import altered
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.event import StreamEvent, StreamEventType, delta_event
from crosswalk.types.segment import SegmentType

__all__ = ["EventMaker", "is_output"]

_KINDS = (
    ("reasoning_delta", StreamEventType.REASONING_DELTA),
    ("content_delta", StreamEventType.OUTPUT_TEXT_DELTA),
    ("refusal_delta", StreamEventType.REFUSAL_DELTA),
    ("tool_call_delta", StreamEventType.FUNCTION_CALL_ARGUMENTS_DELTA),
)
_OF_SEGMENT = {
    SegmentType.REASONING: StreamEventType.REASONING_DELTA,
    SegmentType.REFUSAL: StreamEventType.REFUSAL_DELTA,
    SegmentType.TOOL_CALL: StreamEventType.FUNCTION_CALL_ARGUMENTS_DELTA,
}


def is_output(delta: ResponseDelta) -> bool:
    """Whether *delta* holds something that the model put out, and not only facts about the answer."""
    return (
        delta.content_delta is not None
        or delta.reasoning_delta is not None
        or delta.tool_call_delta is not None
        or delta.refusal_delta is not None
        or delta.segment is not None
    )


class EventMaker:
    """Makes the events of one answer, whose deltas are numbered without gaps."""

    def __init__(self) -> None:
        self._next = 0

    def events(self, delta: ResponseDelta, raw: Any = None) -> list[StreamEvent]:
        """The events for *delta*, one for each kind of text in it: some servers say two things at once.

        What is only about the answer as a whole, such as a count of tokens so far, is a ``response.created``.
        """
        if (
            delta.content_delta is not None
            and delta.reasoning_delta is None
            and delta.refusal_delta is None
            and delta.tool_call_delta is None
        ):  # as most are
            return [delta_event(StreamEventType.OUTPUT_TEXT_DELTA, self.numbered(delta), raw)]
        said = [(name, kind) for name, kind in _KINDS if getattr(delta, name) is not None]
        if len(said) > 1:
            name, kind = said[0]
            head = ResponseDelta(delta.index, choice=delta.choice, **{name: getattr(delta, name)})
            first = delta_event(kind, self.numbered(head), raw)
            return [first, *self.events(altered(delta, **{name: None}), raw)]
        if said:
            kind = said[0][1]
        elif delta.segment is not None:
            kind = _OF_SEGMENT.get(delta.segment.type, StreamEventType.OUTPUT_TEXT_DELTA)
        else:
            kind = StreamEventType.CREATED
        return [delta_event(kind, self.numbered(delta), raw)]

    def numbered(self, delta: ResponseDelta) -> ResponseDelta:
        """*delta* with the next number."""
        index = self._next
        self._next = index + 1
        return delta if delta.index == index else altered(delta, index=index)
