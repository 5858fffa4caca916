"""Ids of tool calls: each result must tell which call it answers, whatever the server calls them.

Servers repeat ids from answer to answer, and so do those that mapping makes up where a server sends none; some
providers refuse a conversation in which an id is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from crosswalk.types import ChatResponse, Segment, SegmentType, ToolCall

__all__ = ["own_calls", "with_calls"]


def own_calls(calls: Iterable[ToolCall], taken: set[str]) -> tuple[ToolCall, ...]:
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
    left = list(zip(answer.tool_calls, calls, strict=True))
    segments = []
    for segment in answer.segments:
        if segment.type is SegmentType.TOOL_CALL:
            said = segment.metadata.get("id")
            pair = next((pair for pair in left if pair[0].id == said), None)
            if pair is not None:
                left.remove(pair)
                segment = attrs.evolve(segment, metadata={**segment.metadata, "id": pair[1].id})
        segments.append(segment)
    return segments
