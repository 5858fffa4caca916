"""What some services want to be told otherwise than OpenAI: reasoning, marks for the cache, an order of their own.

Facts: each provider's reference of its chat endpoint; provider document "OpenAI Chat Completions", section 9; for
Mistral's order the validator of requests in ``mistral_common`` and the error 3230 of its API.
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

__all__ = ["add_details", "add_reasoning", "in_mistrals_order"]


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


def in_mistrals_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """*messages* as Mistral takes them.

    The system speaks at the beginning alone. The user does not speak behind the results of tools ("Unexpected role 'user'
    after role 'tool'"): the model has to say something between. An answer at the end is one to go on with.
    """
    found = [message for message in messages if message["role"] == "system"]
    for message in messages:
        if message["role"] == "system":
            continue
        if found and found[-1]["role"] == "tool" and message["role"] == "user":
            found.append({"role": "assistant", "content": "I have the results."})
        found.append(message)
    if found[-1]["role"] == "assistant":
        found[-1] = {**found[-1], "prefix": True}
    return found
