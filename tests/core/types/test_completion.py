"""Late facts about a part of an answer: a signature after the reasoning that it signs."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import (
    ChatResponse,
    CitationRef,
    FinishReason,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCallDelta,
)

SIGNED = Segment(SegmentType.REASONING, "", {"signature": "s1"})


def segments(*parts: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Type, content and metadata of what deltas with *parts* add up to."""
    deltas = [ResponseDelta(number, **part) for number, part in enumerate(parts)]
    deltas.append(ResponseDelta(len(deltas), finish_reason=FinishReason.STOP))
    found = ChatResponse.from_deltas(deltas).segments
    return [(s.type.value, s.content, s.metadata.thawed()) for s in found]


def test_a_signature_joins_the_reasoning_that_was_just_streamed() -> None:
    """Byte for byte, on the segment that it signs. Later text is another segment."""
    found = segments(
        {"reasoning_delta": "Let "}, {"reasoning_delta": "me."}, {"segment": SIGNED}, {"reasoning_delta": "More."}
    )  # fmt: skip
    assert found == [("reasoning", "Let me.", {"signature": "s1"}), ("reasoning", "More.", {})]


def test_an_empty_segment_divides_two_parts_of_its_type() -> None:
    """Two blocks of text stay two, and the divider is not a segment itself."""
    found = segments({"content_delta": "a"}, {"segment": Segment(SegmentType.TEXT)}, {"content_delta": "b"})
    assert found == [("text", "a", {}), ("text", "b", {})]


def test_annotations_join_too() -> None:
    """A citation of the text before it."""
    deltas = [
        ResponseDelta(0, content_delta="cited"),
        ResponseDelta(1, segment=Segment(SegmentType.TEXT, annotations=(CitationRef(source="u"),))),
        ResponseDelta(2, finish_reason=FinishReason.STOP),
    ]
    (segment,) = ChatResponse.from_deltas(deltas).segments
    assert (segment.content, segment.annotations) == ("cited", (CitationRef(source="u"),))


def test_more_about_a_tool_call_joins_it_unless_it_names_a_call_of_its_own() -> None:
    """A signature on a call of the client's. A server's own call stays apart."""
    call = {"tool_call_delta": ToolCallDelta(0, "c", "go", "{}")}
    signed = Segment(SegmentType.TOOL_CALL, "", {"signature": "s"})
    assert segments(call, {"segment": signed}) == [
        ("tool_call", "{}", {"id": "c", "name": "go", "signature": "s"})
    ]
    server = Segment(SegmentType.TOOL_CALL, "", {"type": "web_search", "id": "w"})
    assert [kind[2] for kind in segments(call, {"segment": server})] == [
        {"id": "c", "name": "go"},
        {"type": "web_search", "id": "w"},
    ]


@pytest.mark.parametrize(
    "before",
    [[], [{"content_delta": "a"}], [{"reasoning_delta": "r"}, {"segment": SIGNED}]],
    ids=["nothing", "another type", "said already"],
)
def test_what_completes_nothing_is_a_segment_of_its_own(before: list[dict[str, Any]]) -> None:
    """Nothing is dropped for want of a part that it could belong to."""
    assert segments(*before, {"segment": SIGNED})[-1] == ("reasoning", "", {"signature": "s1"})
