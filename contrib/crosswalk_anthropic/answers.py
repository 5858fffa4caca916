"""An answer of the model as it goes back to the API: the blocks that it was made of.

Facts: Anthropic's reference of "Create a Message"; provider document "Anthropic Messages".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import orjson

from crosswalk import ChatResponse, Segment, SegmentType, ToolCall
from crosswalk.service import ChatRequest, Turn, arguments_object, as_json_object, is_of, segments_of

__all__ = ["answer_blocks"]

_SAYS = (SegmentType.TEXT, SegmentType.CITATION)


def answer_blocks(turn: Turn, request: ChatRequest) -> list[dict[str, Any]]:
    """The blocks of a model's *turn*; reasoning goes back as it came, or not at all.

    Which citation belongs to which text, and what a call has beside name and arguments, the bytes of an answer tell that
    came from this provider; without them the nearest text gets the citations.
    """
    segments = segments_of(turn, request)
    received = _received(turn, segments) if is_of(turn, request) and isinstance(turn, ChatResponse) else []
    texts = deque(block for block in received if block.get("type") == "text" and block.get("text"))
    calls = iter([block for block in received if block.get("type") == "tool_use"])
    blocks: list[dict[str, Any]] = []
    for says, run in groupby(segments, lambda segment: segment.type in _SAYS):
        if says:
            blocks += _texts(list(run), texts)
            continue
        for segment in run:
            block = _block(segment)
            if block is not None and block["type"] == "tool_use":
                block = {**next(calls, {}), **block}
            if block is not None:
                blocks.append(block)
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
            return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call)}
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


def _received(answer: ChatResponse, segments: Iterable[Segment]) -> list[dict[str, Any]]:
    """The text and tool blocks of *answer* as its bytes have them, where its *segments* may not say all of them."""
    wanted = {SegmentType.CITATION, SegmentType.TOOL_CALL}
    if not any(segment.type in wanted for segment in segments):
        return []
    blocks: list[dict[str, Any]] = []
    opened: dict[Any, dict[str, Any]] = {}
    for frame in answer.raw_events.frames:
        event = orjson.loads(frame)  # it was read before
        match event:
            case {"content": list(whole)}:
                blocks += [_without_input(block) for block in whole]
            case {"message": {"content": list(whole)}}:
                blocks += [_without_input(block) for block in whole]
            case {"content_block": dict(block)}:
                opened[event.get("index")] = _without_input(block)
                blocks.append(opened[event.get("index")])
            case {"delta": {"type": "text_delta", "text": str(text)}}:
                _extend(opened, event, "text", text)
            case {"delta": {"type": "citations_delta", "citation": dict(citation)}}:
                _extend(opened, event, "citations", [citation])
    return [_tidy(block) for block in blocks]


def _extend(opened: dict[Any, dict[str, Any]], event: dict[str, Any], name: str, more: Any) -> None:
    block = opened.get(event.get("index"))
    if block is not None:
        block[name] = (block.get(name) or type(more)()) + more


def _without_input(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "input"}


def _tidy(block: dict[str, Any]) -> dict[str, Any]:
    """*block* without citations that are none."""
    return {name: value for name, value in block.items() if name != "citations" or value}
