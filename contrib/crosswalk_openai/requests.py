"""What two services want to be told beside what OpenAI's form says: reasoning, and marks for the cache.

Facts: each provider's reference of its chat endpoint; provider document "OpenAI Chat Completions", section 9.
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    CacheMark,
    ChatRequest,
    ChatResponse,
    HTTPRequest,
    Role,
    Segment,
    SegmentType,
    cache_mark,
    is_of,
    message_of,
    reasoning_of,
)

__all__ = ["with_details", "with_reasoning"]


def with_reasoning(built: HTTPRequest, request: ChatRequest) -> HTTPRequest:
    """*built* for DeepSeek: it wants its reasoning back beside its tool calls, and refuses it elsewhere."""
    for turn, said in zip(request.messages, built.body["messages"], strict=True):
        if message_of(turn).tool_calls and (reasoning := reasoning_of(turn, request)):
            said["reasoning_content"] = reasoning
    return built


def with_details(built: HTTPRequest, request: ChatRequest) -> HTTPRequest:
    """*built* for OpenRouter: it wants reasoning back in details, each with the signature that came with it.

    It takes marks for the cache on the parts of a message, and passes them on to who has such.
    """
    systems = [turn for turn in request.messages if message_of(turn).role is Role.SYSTEM]
    for turn, said in zip(request.messages, built.body["messages"], strict=True):
        mark = cache_mark(request, turn)
        if systems and turn is systems[-1]:
            mark = cache_mark(request, "system")
        if mark is not None:
            _mark(said, mark)
        if isinstance(turn, ChatResponse) and is_of(turn, request):
            details = [_detail(segment) for segment in turn.segments if segment.type is SegmentType.REASONING]
            if details:
                said["reasoning_details"] = details
    return built


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
