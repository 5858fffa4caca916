"""Estimates the token counts that no server has made: of a request, and of an answer that ended before its counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from crosswalk.service import ChatRequest, message_of
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    FinishReason,
    Provenance,
    SegmentType,
    dump_json,
)

__all__ = ["by_length", "prompt_tokens"]

_BYTES: Final = 4
"""The bytes of a token, about: a limit that a client passes by leaving early would be none."""
_SAID: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.TOOL_CALL, SegmentType.REFUSAL)
_COUNTS: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
_NONE: Final = (Provenance.ABSENT, Provenance.CUT)


def prompt_tokens(request: ChatRequest) -> int:
    """Estimate the tokens of the conversation and the tools in *request* by their length. Media do not count."""
    messages = [message_of(turn) for turn in request.messages]
    texts = [message.text for message in messages]
    texts += [call.arguments for message in messages for call in message.tool_calls or ()]
    tools = [[tool.name, tool.description, tool.parameters.thawed()] for tool in request.tools]
    return _tokens([*texts, *(dump_json(tool).decode() for tool in tools)])


def by_length(response: ChatResponse, asked: Iterable[ChatMessage | ChatResponse]) -> ChatResponse:
    """*response* with counts by length, where the server has not counted to the end, or less than that.

    Args:
        response: the answer; one that was counted stays as it is, and so does one that says nothing, such as most errors.
        asked: the conversation that it answers.
    """
    usage, metadata = response.usage, response.metadata
    is_cut = response.finish_reason in (FinishReason.ERROR, FinishReason.CANCELLED)
    if not is_cut and not any(metadata.provenance.get(count) in _NONE for count in _COUNTS):
        return response
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    raw = [one.content for answer in answers for one in answer.segments if one.type in _SAID]
    if not any(raw):
        return response
    counts = attrs.evolve(
        usage,
        prompt_tokens=max(usage.prompt_tokens, _tokens(message_of(turn).text for turn in asked)),
        completion_tokens=max(usage.completion_tokens, _tokens(raw)),
    )
    known = {path: mark for path, mark in metadata.provenance.items() if path not in _COUNTS}
    return attrs.evolve(response, usage=counts, metadata=attrs.evolve(metadata, provenance=known))


def _tokens(texts: Iterable[str]) -> int:
    return -(-sum(len(text.encode()) for text in texts) // _BYTES)
