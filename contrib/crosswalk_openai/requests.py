"""What two services want to be told beside what OpenAI's form says: reasoning, and marks for the cache.

Facts: each provider's reference of its chat endpoint; provider document "OpenAI Chat Completions", section 9.
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    CacheMark,
    ChatRequest,
    ChatResponse,
    Role,
    Segment,
    SegmentType,
    Turn,
    cache_mark,
    is_of,
    message_of,
    reasoning_of,
)

__all__ = ["add_details", "add_reasoning"]


def add_reasoning(turn: Turn, request: ChatRequest, said: dict[str, Any]) -> None:
    """Add what DeepSeek wants: its reasoning back beside its tool calls, while it refuses it elsewhere."""
    if message_of(turn).tool_calls and (reasoning := reasoning_of(turn, request)):
        said["reasoning_content"] = reasoning


def add_details(turn: Turn, request: ChatRequest, said: dict[str, Any]) -> None:
    """Add what OpenRouter wants: reasoning back in details, each with the signature that came with it.

    It takes marks for the cache on the parts of a message, and passes them on to who has such.
    """
    if request.cache_marks:
        systems = [other for other in request.messages if message_of(other).role is Role.SYSTEM]
        mark = cache_mark(request, "system" if systems and turn is systems[-1] else turn)
        if mark is not None:
            _mark(said, mark)
    if isinstance(turn, ChatResponse) and is_of(turn, request):
        details = [_detail(segment) for segment in turn.segments if segment.type is SegmentType.REASONING]
        if details:
            said["reasoning_details"] = details


def _mark(said: dict[str, Any], mark: CacheMark) -> None:
    content = said["content"]
    if isinstance(content, str) and content:
        content = said["content"] = [{"type": "text", "text": content}]
    if content:
        content[-1]["cache_control"] = {"type": "ephemeral", **({"ttl": mark.ttl} if mark.ttl else {})}


def _detail(segment: Segment) -> dict[str, Any]:
    said = segment.metadata.thawed()
    if "encrypted" in said:
        data = said.pop("encrypted")
        return {**said, "type": "reasoning.encrypted", "data": data}
    return {**said, "type": "reasoning.text", "text": segment.content}
