"""Deltas as the events of a stream."""

from __future__ import annotations

from typing import Any

from crosswalk.types.delta import ResponseDelta
from crosswalk.types.stream import StreamEvent, StreamEventType, delta_event
from crosswalk.types.values import SegmentType, altered

_KINDS = (
    ("reasoning_delta", StreamEventType.REASONING_DELTA),
    ("content_delta", StreamEventType.OUTPUT_TEXT_DELTA),
    ("refusal_delta", StreamEventType.REFUSAL_DELTA),
    ("tool_call_delta", StreamEventType.FUNCTION_CALL_ARGUMENTS_DELTA),
)
_OF_SEGMENT = {
    SegmentType.TEXT: StreamEventType.OUTPUT_TEXT_DELTA,
    SegmentType.REASONING: StreamEventType.REASONING_DELTA,
    SegmentType.REFUSAL: StreamEventType.REFUSAL_DELTA,
    SegmentType.TOOL_CALL: StreamEventType.FUNCTION_CALL_ARGUMENTS_DELTA,
    SegmentType.CITATION: StreamEventType.CITATION_ADDED,
    SegmentType.SAFETY: StreamEventType.SAFETY_ADDED,
    SegmentType.MEDIA: StreamEventType.MEDIA_ADDED,
    SegmentType.ERROR: StreamEventType.ERROR_ADDED,
}


def is_output(delta: ResponseDelta) -> bool:
    """Whether *delta* holds output of the model, and not only facts about the answer.

    An empty text does not count: some servers send it to announce a text.
    """
    return bool(
        delta.content_delta
        or delta.reasoning_delta
        or delta.tool_call_delta is not None
        or delta.refusal_delta
        or delta.segment is not None
    )


class EventMaker:
    """Makes the events of one answer. Their deltas are numbered without gaps."""

    def __init__(self) -> None:
        self._next = 0

    def events(self, delta: ResponseDelta, raw: Any = None) -> list[StreamEvent]:
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
            return [delta_event(StreamEventType.OUTPUT_TEXT_DELTA, self.numbered(delta), raw)]
        payload = [(name, kind) for name, kind in _KINDS if getattr(delta, name) is not None]
        if delta.segment is not None:
            kind = _OF_SEGMENT[delta.segment.type]
            if [kind] != [
                own for _, own in payload
            ]:  # else it is the complete text that the piece is a part of
                payload.append(("segment", kind))
        if not payload:
            return [delta_event(StreamEventType.IN_PROGRESS, self.numbered(delta), raw)]
        events = []
        for name, kind in payload[:-1]:
            head = ResponseDelta(delta.index, choice=delta.choice, **{name: getattr(delta, name)})
            events.append(delta_event(kind, self.numbered(head), raw))
            delta = altered(delta, **{name: None})
        return [*events, delta_event(payload[-1][1], self.numbered(delta), raw)]

    def numbered(self, delta: ResponseDelta) -> ResponseDelta:
        """Return *delta* with the next number."""
        index = self._next
        self._next = index + 1
        return delta if delta.index == index else altered(delta, index=index)
