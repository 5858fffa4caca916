"""An answer of the model as it goes back to the API: the blocks that it was made of.

Facts: Anthropic's reference of "Create a Message"; provider document "Anthropic Messages".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from crosswalk.plugins import (
    ChatRequest,
    ChatResponse,
    Segment,
    SegmentType,
    ToolCall,
    Turn,
    arguments_object,
    as_json_object,
    segments_of,
)

__all__ = ["answer_blocks"]

_SAYS = (SegmentType.TEXT, SegmentType.CITATION)


def answer_blocks(turn: Turn, request: ChatRequest) -> list[dict[str, Any]]:
    """The blocks of a model's *turn*; reasoning goes back as it came, or not at all.

    Which citation belongs to which text the bytes of an answer tell that came from this provider; without them the nearest
    text gets the citations.
    """
    segments = segments_of(turn, request)
    is_cited = any(segment.type is SegmentType.CITATION for segment in segments)
    texts = deque(_received(turn) if is_cited and isinstance(turn, ChatResponse) else ())
    blocks: list[dict[str, Any]] = []
    for says, run in groupby(segments, lambda segment: segment.type in _SAYS):
        if says:
            blocks += _texts(list(run), texts)
        else:
            blocks += filter(None, map(_block, run))
    return blocks


def _block(segment: Segment) -> dict[str, Any] | None:
    """The block of a *segment* that is no text; ``None`` where there is none to send."""
    said = segment.metadata.thawed()
    match segment.type:
        case SegmentType.REASONING if "encrypted" in said:
            return {"type": "redacted_thinking", "data": said["encrypted"]}
        case SegmentType.REASONING if "signature" in said:
            return {"type": "thinking", "thinking": segment.content, "signature": said["signature"]}
        case SegmentType.TOOL_CALL if str(said.get("type")).endswith("_tool_result"):
            return said
        case SegmentType.TOOL_CALL if "type" in said:
            return {**said, "input": as_json_object(segment.content) or {}}
        case SegmentType.TOOL_CALL if "name" in said:
            call = ToolCall(said["id"], said["name"], segment.content)
            return {**said, "type": "tool_use", "input": arguments_object(call)}
    return None


def _texts(run: list[Segment], received: deque[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The text blocks of a *run* of texts and citations: those that were *received*, where they say the same."""
    text = "".join(segment.content for segment in run if segment.type is SegmentType.TEXT)
    said, taken = "", []
    while received and len(said) < len(text):
        taken.append(received.popleft())
        said += taken[-1]["text"]
    if said == text and any(segment.type is SegmentType.CITATION for segment in run):
        yield from taken
        return
    citations: list[dict[str, Any]] = []
    block: dict[str, Any] | None = None
    for segment in run:
        if segment.type is SegmentType.CITATION:
            if "type" in segment.metadata:
                citations.append({**segment.metadata.thawed(), "cited_text": segment.content})
        elif segment.content:
            block = {"type": "text", "text": segment.content}
            if citations:
                block["citations"], citations = citations, []
            yield block
    if block is not None and citations:
        block["citations"] = [*block.get("citations", ()), *citations]


def _received(answer: ChatResponse) -> Iterator[dict[str, Any]]:
    """The blocks with text of *answer* as its bytes have them."""
    blocks: list[Any] = []
    opened: dict[Any, dict[str, Any]] = {}
    for event in answer.raw_events:
        match event:
            case {"content": list(whole)} | {"message": {"content": list(whole)}}:
                blocks += whole
            case {"content_block": dict(block)}:
                opened[event.get("index")] = block
                blocks.append(block)
            case {"delta": {"type": "text_delta", "text": str(text)}}:
                _extend(opened, event, "text", text)
            case {"delta": {"type": "citations_delta", "citation": dict(citation)}}:
                _extend(opened, event, "citations", [citation])
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text), "citations": citations} if text:
                found = [item for item in citations if type(item) is dict] if type(citations) is list else []
                del block["citations"]
                yield block | ({"citations": found} if found else {})
            case {"type": "text", "text": str(text)} if text:
                yield block


def _extend(opened: dict[Any, dict[str, Any]], event: dict[str, Any], name: str, more: Any) -> None:
    block = opened.get(event.get("index"))
    if block is not None:
        before = block.get(name)
        block[name] = (before if type(before) is type(more) else type(more)()) + more
