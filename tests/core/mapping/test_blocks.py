"""Answers made of blocks: their texts stay apart, their calls are read whole or in pieces, of several ends the first counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from crosswalk import FinishReason, WireTypeError
from crosswalk.plugin.state import End
from crosswalk.plugins import (
    Blocks,
    ErrorKind,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    Texts,
    TokenLogprob,
    error_info,
    refined,
    take_end,
)

T = SegmentType


def said(deltas: Iterable[ResponseDelta]) -> list[Any]:
    """The contents of each of *deltas*, as a text, or as the type and content of a segment."""
    return [
        (delta.segment.type, delta.segment.content)
        if delta.segment is not None
        else delta.content_delta or delta.reasoning_delta or delta.refusal_delta or delta.tool_call_delta
        for delta in deltas
    ]


def test_two_texts_of_one_type_are_two_where_their_blocks_are() -> None:
    texts, first, second = Texts(), object(), object()
    found = [
        *texts.say(T.TEXT, first, "a"),
        *texts.say(T.TEXT, first, "b"),
        *texts.say(T.TEXT, second, "c"),
        *texts.say(T.REASONING, first, "d"),
        *texts.say(T.REASONING, second, "e"),
        *texts.keep(second, "signature", "s"),
        *texts.say(T.REASONING, first, "f"),
        *texts.keep(second, "signature", "t"),
        *texts.say(T.REFUSAL, first, "g"),
    ]
    texts.end()
    found += texts.say(T.REFUSAL, second, "h")
    assert said(found) == [
        "a", "b", (T.TEXT, ""), "c", "d", (T.REASONING, ""), "e", (T.REASONING, ""), "f",
        (T.REASONING, ""), (T.REASONING, ""), "g", "h",
    ]  # fmt: skip
    kept = [delta.segment.metadata for delta in found if delta.segment is not None]
    assert kept == [{}, {}, {"signature": "s"}, {}, {"signature": "t"}]


def test_nothing_is_no_delta_but_an_empty_text_is_one() -> None:
    texts = Texts()
    assert list(texts.say(T.TEXT, 1, None)) == list(texts.say(T.REASONING, 1, "")) == []
    assert list(texts.keep(1, "signature", "")) == []
    assert [delta.content_delta for delta in texts.say(T.TEXT, 1, "")] == [""]
    tokens = (TokenLogprob("a", -1.0),)
    assert [delta.logprobs for delta in texts.say(T.TEXT, 1, None, tokens)] == [tokens]


def test_what_waits_for_its_end_comes_once() -> None:
    blocks = Blocks()
    first, second = blocks.open(0), blocks.open(1)
    blocks.hold(first, "use", {"name": "f", "input": {"x": 1}})
    blocks.hold(second, "use", {"name": "g"})
    state = MappingState("any")
    assert list(blocks.argue(second, {"text": '{"y":'}, "text", state)) == []
    assert list(blocks.argue(second, {"text": "2}"}, "text", state)) == []
    event = {"index": 0}
    assert said(blocks.stop(event)) == [(T.TOOL_CALL, '{"x":1}')]
    assert event == {}
    assert said(blocks.flush()) == [(T.TOOL_CALL, '{"y":2}')]
    assert list(blocks.flush()) == list(blocks.stop({})) == []


def test_an_index_that_names_no_open_block_is_left() -> None:
    blocks = Blocks()
    blocks.open(0)
    for event, left in (({"index": 0}, {}), ({"index": 0}, {"index": 0}), ({"index": 7}, {"index": 7})):
        assert list(blocks.stop(event)) == []
        assert event == left
    assert list(Blocks().stop({})) == []
    with pytest.raises(WireTypeError, match="index"):
        blocks.stop({"index": "0"})


@pytest.mark.parametrize(
    ("given", "pieces", "arguments", "left"),
    [
        ({}, ['{"a"', ":1}", ""], '{"a":1}', {}),
        (None, ['{"a":1}'], '{"a":1}', {}),
        ({"a": 1}, ["{}"], '{"a":1}', {"text": "{}"}),
    ],
)
def test_a_call_whole_or_in_pieces(given: Any, pieces: list[str], arguments: str, left: Any) -> None:
    blocks, state = Blocks(), MappingState("any")
    block = blocks.open(3)
    wire = {"key": "call_1", "name": "f", "input": given, "more": 1}
    deltas = [blocks.call(block, wire, state, id="key")]
    assert wire == {"more": 1}
    for piece in pieces:
        event = {"text": piece}
        deltas += blocks.argue(block, event, "text", state)
    assert event == left
    calls = [delta.tool_call_delta for delta in deltas if delta.tool_call_delta is not None]
    assert (calls[0].index, calls[0].id, calls[0].name) == (0, "call_1", "f")
    assert "".join(call.arguments_delta or "" for call in calls) == arguments


def test_a_call_ends_the_text_before_it() -> None:
    blocks, state = Blocks(), MappingState("any")
    first, second = blocks.open(0), blocks.open(1)
    blocks.call(second, {"id": "c", "name": "f"}, state)
    blocks.say(T.TEXT, first, "a")
    blocks.argue(second, {"text": "{}"}, "text", state)
    assert said(blocks.say(T.TEXT, second, "b")) == ["b"]
    blocks.insert(Segment(T.CITATION, "c"))
    assert said(blocks.say(T.TEXT, first, "d")) == ["d"]


@pytest.mark.parametrize(
    ("before", "sent", "default", "given", "left"),
    [
        (None, "end", None, ["end"], {}),
        (None, None, None, [], {}),
        (None, None, "", [""], {}),
        (End(FinishReason.ERROR, None), "end", None, ["end"], {}),
        (End(FinishReason.STOP, "end"), "end", "", [], {}),
        (End(FinishReason.STOP, "end"), None, "", [], {}),
        (End(FinishReason.STOP, "end"), "length", "", [], {"why": "length"}),
    ],
)
def test_the_first_end_counts(
    before: End | None, sent: str | None, default: str | None, given: list[str], left: dict[str, Any]
) -> None:
    state, part = MappingState("any"), {"why": sent}
    if before is not None:
        state.ends[0] = before
    found = take_end(part, "why", state, default=default)
    assert [delta.raw_finish_reason for delta in found] == given
    assert part == left
    with pytest.raises(WireTypeError, match="why"):
        take_end({"why": 7}, "why", state)


def test_an_error_refined() -> None:
    info = error_info(400, "no")
    assert refined(info, None) is info
    assert (refined(info, ErrorKind.SERVER).kind, refined(info, ErrorKind.SERVER).retryable) == (
        "server",
        True,
    )
    assert not refined(info, ErrorKind.SERVER, retryable=False).retryable
