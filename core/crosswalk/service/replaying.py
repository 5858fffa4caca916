"""A complete response as the events of a stream, for an answer that existed before its request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.service.events import EventMaker
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.event import StreamEvent, StreamEventType
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.tools import ToolCall, ToolCallDelta

__all__ = ["replayed"]

_TEXTS = {
    SegmentType.TEXT: "content_delta",
    SegmentType.REASONING: "reasoning_delta",
    SegmentType.REFUSAL: "refusal_delta",
}
_OF_A_CALL = frozenset({"id", "name", "type"})


def replayed(response: ChatResponse) -> list[StreamEvent]:
    """Yield the events of *response*: a delta for each part, and the last one, which carries it."""
    maker = EventMaker()
    events = [StreamEvent(StreamEventType.CREATED)]
    answers: list[ChatResponse | Alternative] = [*response.alternatives, response]
    for answer in answers:
        for delta in _deltas(answer):
            events += maker.events(delta)
    final = ResponseDelta(
        finish_reason=response.finish_reason,
        raw_finish_reason=response.raw_finish_reason,
        usage=response.usage,
        logprobs=response.logprobs,
    )
    return [*events, StreamEvent.terminal(response, maker.numbered(final))]


def _deltas(answer: ChatResponse | Alternative) -> Iterator[ResponseDelta]:
    """Return the parts of *answer*, and for an alternative its end."""
    choice = answer.index if isinstance(answer, Alternative) else 0
    calls = {call.id: (number, call) for number, call in enumerate(answer.message.tool_calls or ())}
    if not answer.segments and answer.message.text:  # made by hand, of a message alone
        yield ResponseDelta(content_delta=answer.message.text, choice=choice)
    for segment in answer.segments:
        is_call = segment.type is SegmentType.TOOL_CALL
        call = calls.pop(str(segment.metadata.get("id")), None) if is_call else None
        if call is not None:
            yield _call(call, choice)
            more = {key: value for key, value in segment.metadata.items() if key not in _OF_A_CALL}
        elif segment.type in _TEXTS:
            if segment.content:
                said: dict[str, Any] = {_TEXTS[segment.type]: segment.content}
                yield ResponseDelta(choice=choice, **said)
            more = dict(segment.metadata)
        else:
            yield ResponseDelta(segment=segment, choice=choice)
            continue
        if more or segment.annotations:
            yield ResponseDelta(segment=Segment(segment.type, "", more, segment.annotations), choice=choice)
    for left in calls.values():
        yield _call(left, choice)
    if isinstance(answer, Alternative):
        yield ResponseDelta(
            finish_reason=answer.finish_reason,
            raw_finish_reason=answer.raw_finish_reason,
            logprobs=answer.logprobs,
            choice=choice,
        )


def _call(numbered: tuple[int, ToolCall], choice: int) -> ResponseDelta:
    number, call = numbered
    return ResponseDelta(
        tool_call_delta=ToolCallDelta(number, call.id, call.name, call.arguments, call.kind), choice=choice
    )
