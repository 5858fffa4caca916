"""Tool calls in a conversation: unique ids, and a result for each call.

Servers repeat ids from answer to answer, and so do the ids that mapping assigns when a server sends none. Some
providers refuse a conversation with duplicate ids, and all refuse one with a call that has no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from crosswalk.request import Turn
from crosswalk.service.turns import message_of
from crosswalk.types.message import Role, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import IncompleteReason, Segment, SegmentType

_CUT: dict[IncompleteReason | None, str] = {
    IncompleteReason.ERROR: "error",
    IncompleteReason.CANCELLED: "cancelled",
    IncompleteReason.CONTENT_FILTER: "content_filter",
    IncompleteReason.LENGTH: "length",
    IncompleteReason.UNKNOWN_FINISH_REASON: "an unknown finish reason",
    IncompleteReason.UNKNOWN_EVENT: "an unknown event",
}


def calls_of(turn: Turn) -> tuple[ToolCall, ...]:
    """Return the tool calls of *turn*."""
    return message_of(turn).tool_calls or ()


def cut_reason(turn: Turn) -> str | None:
    """Return why *turn* was cut, or ``None`` if it was not.

    The calls of a cut answer must not run: one may be incomplete.
    """
    if not isinstance(turn, ChatResponse):
        return None
    return _CUT.get(turn.incomplete_reason)


def open_calls(turns: Sequence[Turn]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of *turns* that have no result."""
    answered: set[str | None] = set()
    for turn in reversed(turns):
        message = message_of(turn)
        if message.role is not Role.TOOL:
            return tuple(call for call in calls_of(turn) if call.id not in answered)
        answered.add(message.tool_call_id)
    return ()


def with_unique_ids(calls: Iterable[ToolCall], taken: set[str]) -> tuple[ToolCall, ...]:
    """Return *calls* with ids that are not in *taken*, renamed where necessary, and add them to *taken*."""
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
    """Return *answer* with *calls*, which differ from its own only in their ids."""
    if tuple(calls) == answer.tool_calls:
        return answer
    message = attrs.evolve(answer.message, tool_calls=calls)
    return attrs.evolve(answer, message=message, segments=_renamed_segments(answer, calls))


def _renamed_segments(answer: ChatResponse, calls: Sequence[ToolCall]) -> list[Segment]:
    """Return the segments of *answer* with the ids of *calls*. Tool call segments have the order of the calls."""
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
