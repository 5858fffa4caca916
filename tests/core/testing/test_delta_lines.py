"""Deltas as lines of a snapshot: each fact of a delta shows, and texts that differ in nothing else share a line."""

from __future__ import annotations

from crosswalk import (
    FinishReason,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCallDelta,
    UsageInfo,
)
from crosswalk.testing.pairing import delta_lines


def test_texts_in_a_row_share_a_line_and_the_cuts_show() -> None:
    pieces = [ResponseDelta(content_delta=text) for text in ("Hel", "", "lo\n")]
    assert delta_lines(pieces) == ["text: Hel¦¦lo\n"]
    assert delta_lines(pieces) != delta_lines([ResponseDelta(content_delta="Hello\n")])


def test_another_kind_another_choice_and_whatever_has_no_text_begin_a_line() -> None:
    deltas = [
        ResponseDelta(reasoning_delta="Hm"),
        ResponseDelta(content_delta="a"),
        ResponseDelta(content_delta="b", choice=1),
        ResponseDelta(refusal_delta="c", choice=1),
        ResponseDelta(extensions={"seed": 7}),
        ResponseDelta(extensions={"seed": 7}),
        ResponseDelta(content_delta="d"),
        ResponseDelta(extensions={"seed": 7}),
        ResponseDelta(content_delta="d"),
    ]
    assert delta_lines(deltas) == [
        "reasoning: Hm",
        "text: a",
        "text choice=1: b",
        "refusal choice=1: c",
        "| seed=7",
        "| seed=7",
        "text: d",
        "| seed=7",
        "text: d",
    ]


def test_calls_log_probabilities_segments_and_the_end() -> None:
    token = TokenLogprob(token="a", logprob=-0.5)
    deltas = [
        ResponseDelta(tool_call_delta=ToolCallDelta(index=0, id="call 1", name="f", arguments_delta="{")),
        ResponseDelta(tool_call_delta=ToolCallDelta(index=0, arguments_delta='"a"')),
        ResponseDelta(tool_call_delta=ToolCallDelta(index=0, arguments_delta=":1}")),
        ResponseDelta(content_delta="ab", logprobs=(token, token)),
        ResponseDelta(content_delta="a", reasoning_delta="b"),
        ResponseDelta(segment=Segment(SegmentType.ERROR, "broken")),
        ResponseDelta(
            finish_reason=FinishReason.STOP,
            raw_finish_reason="stop",
            usage=UsageInfo(prompt_tokens=1, completion_tokens=2),
        ),
    ]
    assert delta_lines(deltas) == [
        "arguments call=0 id='call 1' name=f: {",
        'arguments call=0: "a"¦:1}',
        "text logprobs=2: ab",
        "text reasoning_delta=b: a",
        "type=error content=broken",
        "finish_reason=stop usage.prompt_tokens=1 usage.completion_tokens=2 usage.total_tokens=3 raw_finish_reason=stop",
    ]


def test_values_show_their_type_and_long_ones_their_length() -> None:
    extensions = {
        "a": [1, 1.0, True, None, "true", "1", ""],
        "b": {},
        "c": {"d": []},
        "long": "x" * 61,
        "edge": "x" * 60,
    }
    (line,) = delta_lines([ResponseDelta(extensions=extensions)])
    assert line == (
        "| a[0]=1 a[1]=1.0 a[2]=true a[3]=null a[4]='true' a[5]='1' a[6]='' b={} c.d=[] "
        f"long='{'x' * 60}'(61) edge={'x' * 60}"
    )


def test_a_line_of_a_hundred_characters_takes_no_more() -> None:
    first = ResponseDelta(content_delta="x" * 93)  # with "text: " 99 characters
    more = [ResponseDelta(content_delta="y")] * 2
    assert delta_lines([first, *more]) == [f"text: {'x' * 93}¦y", "text: y"]
