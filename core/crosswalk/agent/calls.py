"""Tool calls in a conversation: each has an id of its own and, once it goes on, a result.

Servers repeat ids from answer to answer, and so do those that mapping makes up where a server sends none; some
providers refuse a conversation in which an id is there twice, and all refuse one in which a call has no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from crosswalk.service.request import Turn
from crosswalk.service.turns import message_of
from crosswalk.types.finish import IncompleteReason
from crosswalk.types.message import Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.tools import ToolCall

__all__ = ["calls_of", "cut_reason", "open_calls", "with_calls", "with_unique_ids"]

_CUT: dict[IncompleteReason | None, str] = {
    IncompleteReason.ERROR: "error",
    IncompleteReason.CANCELLED: "cancelled",
    IncompleteReason.CONTENT_FILTER: "content_filter",
    IncompleteReason.LENGTH: "length",
    IncompleteReason.UNKNOWN_FINISH_REASON: "an unknown finish reason",
    IncompleteReason.UNKNOWN_EVENT: "an unknown event",
}


def calls_of(turn: Turn) -> tuple[ToolCall, ...]:
    """What *turn* asks to be run."""
    return message_of(turn).tool_calls or ()


def cut_reason(turn: Turn) -> str | None:
    """What ended *turn* before its time, as far as is known, so that none of its calls may be run: one may be half."""
    if not isinstance(turn, ChatResponse):
        return None
    return _CUT.get(turn.incomplete_reason)


def open_calls(turns: Sequence[Turn]) -> tuple[ToolCall, ...]:
    """The calls at the end of *turns* that nobody has answered."""
    answered: set[str | None] = set()
    for turn in reversed(turns):
        message = message_of(turn)
        if message.role is not Role.TOOL:
            return tuple(call for call in calls_of(turn) if call.id not in answered)
        answered.add(message.tool_call_id)
    return ()


def with_unique_ids(calls: Iterable[ToolCall], taken: set[str]) -> tuple[ToolCall, ...]:
    """*calls* with ids that are not *taken*, changed where need be; adds them to *taken*."""
    own: list[ToolCall] = []
    for call in calls:
        id, number = call.id, 1
        while id in taken:
            number += 1
            id = f"{call.id}_{number}"
        taken.add(id)
        own.append(call if id == call.id else attrs.evolve(call, id=id))
    return tuple(own)


def with_calls(answer: ChatResponse, calls: Sequence[ToolCall]) -> ChatResponse:
    """*answer* with *calls* in the place of its own, which they are but for their ids."""
    if tuple(calls) == answer.tool_calls:
        return answer
    message = attrs.evolve(answer.message, tool_calls=calls)
    return attrs.evolve(answer, message=message, segments=_renamed_segments(answer, calls))


def _renamed_segments(answer: ChatResponse, calls: Sequence[ToolCall]) -> list[Segment]:
    """The segments of *answer*; those of its calls stand in the order of the calls."""
    pairs = list(zip(answer.tool_calls, calls, strict=True))
    segments = []
    for segment in answer.segments:
        if segment.type is SegmentType.TOOL_CALL:
            segment_id = segment.metadata.get("id")
            pair = next((pair for pair in pairs if pair[0].id == segment_id), None)
            if pair is not None:
                pairs.remove(pair)
                segment = attrs.evolve(segment, metadata={**segment.metadata, "id": pair[1].id})
        segments.append(segment)
    return segments
