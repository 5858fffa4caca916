"""The parts of a candidate's content (section 2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from crosswalk import (
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    get_boolean,
    get_object,
    get_string,
)
from crosswalk_gemini.answer import Answer
from crosswalk_gemini.calls import call_deltas

__all__ = ["SERVER_TOOLS", "part_deltas"]

SERVER_TOOLS = {
    "executableCode": "code",
    "codeExecutionResult": "output",
    "toolCall": "args",
    "toolResponse": "response",
}
"""What the server's own tools were asked and answered, each with the field that becomes the segment's content."""


def part_deltas(
    part: dict[str, Any], place: str, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """The deltas of one part; of a part of a kind that is not known, none: it stays in the extensions.

    A signature belongs to the very part that carries it. Text, reasoning and calls are streamed as deltas,
    which have no room for it; it follows them in a segment of the same type without content, which joins them.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    signature = get_string(part, "thoughtSignature", place)
    signed = {"signature": signature} if signature else {}
    kind = SegmentType.TEXT
    call = get_object(part, "functionCall", place)
    if call is not None:
        kind = SegmentType.TOOL_CALL
        for fragment in call_deltas(call, f"{place}.functionCall", answer, state):
            yield ResponseDelta(state.next_index(), tool_call_delta=fragment, choice=answer.choice)
    text = get_string(part, "text", place)
    thought = get_boolean(part, "thought", place)
    if thought:
        kind = SegmentType.REASONING
    if text and thought:
        yield ResponseDelta(state.next_index(), reasoning_delta=text, choice=answer.choice)
    elif text:
        answer.said.append(text)
        answer.produced = True
        yield ResponseDelta(state.next_index(), text, choice=answer.choice)
    for segment in _segments(part, place, signed):
        signed = {}
        answer.produced = answer.produced or (segment.type is SegmentType.MEDIA and not thought)
        yield ResponseDelta(state.next_index(), segment=segment, choice=answer.choice)
    if signed:
        carrier = Segment(kind, "", signed)
        yield ResponseDelta(state.next_index(), segment=carrier, choice=answer.choice)


def _segments(part: dict[str, Any], place: str, signed: dict[str, Any]) -> Iterator[Segment]:
    """The parts that come whole: media and what the server's own tools did."""
    data = get_object(part, "inlineData", place)
    if data is not None:
        yield _media(data, "data", {"encoding": "base64", **signed}, part, f"{place}.inlineData")
    file = get_object(part, "fileData", place)
    if file is not None:
        yield _media(file, "fileUri", {"encoding": "url", **signed}, part, f"{place}.fileData")
    for kind, field in SERVER_TOOLS.items():
        item = get_object(part, kind, place)
        if item is not None:
            if kind in ("toolCall", "toolResponse"):
                value = get_object(item, field, f"{place}.{kind}")
                content = "" if value is None else orjson.dumps(value).decode()
            else:
                content = get_string(item, field, f"{place}.{kind}") or ""
            said = {name: value for name, value in item.items() if name != field}
            yield Segment(SegmentType.TOOL_CALL, content, {"type": kind, **said, **signed})


def _media(
    data: dict[str, Any], field: str, said: dict[str, Any], part: dict[str, Any], place: str
) -> Segment:
    media_type = get_string(data, "mimeType", place)
    name = get_string(data, "displayName", place)
    if media_type:
        said["media_type"] = media_type
    if name:
        said["name"] = name
    if part.get("thought") is True:
        said["thought"] = True
    return Segment(SegmentType.MEDIA, get_string(data, field, place) or "", said)
