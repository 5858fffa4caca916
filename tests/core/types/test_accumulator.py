"""DeltaAccumulator: deltas add up to a response."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from crosswalk.errors import ErrorInfo, ErrorKind, ResponseValidationError
from crosswalk.types import (
    ChatResponse,
    Correction,
    FinishReason,
    FrozenObject,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
)
from crosswalk.types.stream import DeltaAccumulator
from strategies import segments, token_logprobs, tuples, unfolded, usage_infos

CREATED = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)


def stream(*said: Any, end: Any = FinishReason.STOP) -> list[ResponseDelta]:
    """Deltas in order: a text, or a dict of fields. The final one has *end*."""
    deltas = [
        ResponseDelta(index, **({"content_delta": item} if isinstance(item, str) else item))
        for index, item in enumerate(said)
    ]
    return deltas if end is None else [*deltas, ResponseDelta(len(deltas), finish_reason=end)]


def accumulated(deltas: list[ResponseDelta], **fields: Any) -> DeltaAccumulator:
    """An accumulator that has them."""
    accumulator = DeltaAccumulator(**{"id": "r", "created": CREATED, **fields})
    for delta in deltas:
        accumulator.append(delta)
    return accumulator


def built(*said: Any, end: Any = FinishReason.STOP) -> ChatResponse:
    """The response of that stream."""
    return accumulated(stream(*said, end=end)).build()


def call(
    index: int, id: str | None = None, name: str | None = None, text: str | None = None
) -> dict[str, Any]:
    """The fields of a delta with a fragment of a tool call."""
    return {"tool_call_delta": ToolCallDelta(index, id, name, text)}


# ------------------------------------------------------------------------------------------ what is added up


def test_reasoning_and_refusal_have_their_own_place() -> None:
    """Design, section 4: segments in the order in which they came. Each text in its field."""
    response = built(
        {"reasoning_delta": "Let"}, {"reasoning_delta": " me"}, "So", {"refusal_delta": "no"}, "!"
    )
    assert (response.reasoning, response.text, response.refusal) == ("Let me", "So!", "no")
    assert [(s.type.value, s.content) for s in response.segments] == [
        ("reasoning", "Let me"),
        ("text", "So"),
        ("refusal", "no"),
        ("text", "!"),
    ]


def test_one_delta_may_bring_everything() -> None:
    """P2: a body is a stream of length one: reasoning, text, refusal, call, segment, in that order."""
    image = Segment(SegmentType.MEDIA, "QQ==")
    delta = ResponseDelta(
        0, content_delta="x", tool_call_delta=ToolCallDelta(0, "c", "f", "{}"), finish_reason=FinishReason.TOOL_CALLS, usage=UsageInfo(1, 2), reasoning_delta="think", refusal_delta="no",
        segment=image, raw_finish_reason="tool_calls", logprobs=(TokenLogprob("x", -1.0),), choice=0, extensions=FrozenObject({"a": 1}),
    )  # fmt: skip
    response = accumulated([delta]).build()
    assert [s.type.value for s in response.segments] == ["reasoning", "text", "refusal", "tool_call", "media"]
    assert response.tool_calls == (ToolCall("c", "f", "{}"),)
    assert (response.finish_reason, response.raw_finish_reason) == ("tool_calls", "tool_calls")
    assert (response.usage, response.logprobs) == (UsageInfo(1, 2), (TokenLogprob("x", -1.0),))
    assert response.metadata.extensions == {"a": 1}


def test_no_text_is_none_and_empty_text_is_empty() -> None:
    """A field that was not sent is not passed off as empty (P8)."""
    assert built(end="stop").message.content is None
    assert built("").message.content == ""
    assert built("").segments == ()
    assert built({"refusal_delta": ""}).refusal is None


def test_an_empty_text_beside_reasoning_does_not_cut_it() -> None:
    """Ollama sends an empty content with every piece of reasoning: that is one segment, not thousands."""
    pieces = [{"content_delta": "", "reasoning_delta": piece} for piece in ("a", "b", "c")]
    assert built(*pieces, "x").segments == (
        Segment(SegmentType.REASONING, "abc"),
        Segment(SegmentType.TEXT, "x"),
    )


def test_whole_segments_count_as_what_they_are() -> None:
    """A segment of text is text of the answer, one of refusal is its refusal."""
    response = built(
        {"segment": Segment(SegmentType.TEXT, "a")}, "b", {"segment": Segment(SegmentType.REFUSAL, "no")}
    )
    assert (response.text, response.refusal) == ("ab", "no")
    assert accumulated(stream({"segment": Segment(SegmentType.TEXT, "a")}, "b")).current.text == "ab"


def test_logprobs_are_joined_in_order() -> None:
    """An empty list of them was asked for. ``None`` was not."""
    one, two = TokenLogprob("a", -1.0), TokenLogprob("b", -2.0)
    assert built({"logprobs": (one,)}, {"logprobs": (two, one)}).logprobs == (one, two, one)
    assert built({"content_delta": "x", "logprobs": ()}).logprobs == ()
    assert built("x").logprobs is None


def test_usage_is_replaced_not_added() -> None:
    """FR-071, FR-073: running counts. The last one counts, and what it leaves out is not taken back."""
    accumulator = accumulated(stream({"usage": UsageInfo(5, 1, cached_tokens=3)}, {"usage": UsageInfo(5, 9)}))
    assert accumulator.usage == UsageInfo(5, 9, cached_tokens=3)
    assert accumulator.total_tokens == 14
    assert accumulator.build().usage == UsageInfo(5, 9, cached_tokens=3)


def test_without_usage_there_is_none() -> None:
    """P8: a missing count is not zero."""
    response = built("x")
    assert response.usage == UsageInfo.EMPTY
    assert response.metadata.provenance["usage"] is Provenance.ABSENT
    assert response.tokens_per_second is None
    assert accumulated(stream("x")).total_tokens == 0


def test_extensions_are_merged() -> None:
    """Design, section 5: equal values once, lists in order, changing scalars by the last one."""
    pieces: list[dict[str, Any]] = [
        {"extensions": {"model": "m", "ids": [1], "n": 1}},
        {"extensions": {"ids": [2], "n": 2}},
        {"extensions": {"choices": [{"index": 0, "a": 1}]}},
        {"extensions": {"choices": [{"index": 0, "b": 2}]}},
    ]
    deltas = stream(*pieces)
    response = accumulated(deltas).build()
    assert response.metadata.extensions == {
        "model": "m",
        "ids": [1, 2],
        "n": 2,
        "choices": [{"index": 0, "a": 1, "b": 2}],
    }
    assert deltas[0].extensions == {"model": "m", "ids": [1], "n": 1}, "the deltas stay as they were"


def test_a_built_response_does_not_change() -> None:
    """NFR-013: also when more deltas come after a partial one was built."""
    accumulator = accumulated(stream({"extensions": {"ids": [1]}}, {"extensions": {"ids": [2]}}, end=None))
    before = accumulator.build_partial("cut")
    accumulator.append(ResponseDelta(2, extensions=FrozenObject({"ids": [3]})))
    assert before.metadata.extensions == {"ids": [1, 2]}
    assert accumulator.build_partial("cut").metadata.extensions == {"ids": [1, 2, 3]}


# ---------------------------------------------------------------------------------------------- tool calls


def test_fragments_are_merged_by_index() -> None:
    """FR-069, AC-079: ids and names once, arguments joined, calls in order of their index."""
    response = built(
        call(1, "b", "g"),
        call(0, "a", "f", '{"x"'),
        call(1, text="{}"),
        call(0, text=":1}"),
        end="tool_calls",
    )
    assert response.tool_calls == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}"))
    assert [(s.content, s.metadata.thawed()) for s in response.segments] == [
        ("{}", {"id": "b", "name": "g"}),
        ('{"x":1}', {"id": "a", "name": "f"}),
    ]


@pytest.mark.parametrize("again", ["a", "other", ""])
def test_ids_and_names_are_never_joined_on(again: str) -> None:
    """Design, section 5: the first stays, whatever later fragments repeat."""
    response = built(call(0, "a", "f", "{"), call(0, again, again, "}"), end="tool_calls")
    assert response.tool_calls == (ToolCall("a", "f", "{}"),)


def test_a_late_id_and_name_are_taken() -> None:
    """Some servers send them after the first arguments."""
    response = built(call(0, "", "", "{"), call(0, "a", "f", "}"), end="tool_calls")
    assert response.tool_calls == (ToolCall("a", "f", "{}"),)


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_id_is_made_and_marked(missing: str | None) -> None:
    """Design, section 5: always the same, none that is taken, marked where the canonical JSON has it."""
    response = built(call(1, missing, "f"), call(3, "call_1", "g"), call(7, missing, "h"), end="tool_calls")
    assert [made.id for made in response.tool_calls] == ["call_1_", "call_1", "call_7"]
    marked = {p: why for p, why in response.metadata.provenance.items() if p.endswith("].id")}
    assert marked == {
        "message.tool_calls[0].id": Provenance.SYNTHETIC,
        "message.tool_calls[2].id": Provenance.SYNTHETIC,
    }
    assert [segment.metadata["id"] for segment in response.segments] == ["call_1_", "call_1", "call_7"]


@pytest.mark.parametrize("end", ["stop", "tool_calls"])
def test_a_call_without_a_name_is_refused(end: str) -> None:
    """P4: an answer that says it is whole must be."""
    with pytest.raises(ResponseValidationError, match="tool call 0 has no name"):
        built(call(0, "a", text="{}"), end=end)


@pytest.mark.parametrize("end", ["length", "content_filter", "error", "cancelled"])
def test_in_a_cut_answer_a_call_without_a_name_is_a_segment(end: str) -> None:
    """P4: an answer that was cut keeps what it has."""
    response = built(call(0, "a", text='{"x'), call(1, None, "g"), end=end)
    assert response.tool_calls == (ToolCall("call_1", "g", ""),)
    assert response.segments[0] == Segment(SegmentType.TOOL_CALL, '{"x', FrozenObject({"id": "a"}))
    assert response.metadata.provenance["message.tool_calls[0].id"] is Provenance.SYNTHETIC


@pytest.mark.parametrize(("end", "arguments", "why"), [("tool_calls", "{}", "derived"), ("length", "", None)])
def test_a_call_without_arguments(end: str, arguments: str, why: str | None) -> None:
    """For a whole answer it is one with none, and that is marked. For one that was cut it is unknown (P4, P8)."""
    response = built(call(0, "a", "f"), call(1, "b", "g", "{}"), end=end)
    assert [made.arguments for made in response.tool_calls] == [arguments, "{}"]
    assert response.segments[0].content == arguments
    assert response.metadata.provenance.get("message.tool_calls[0].arguments") == why
    assert "message.tool_calls[1].arguments" not in response.metadata.provenance


# ------------------------------------------------------------------------------------------ several choices


@pytest.mark.parametrize(
    ("correction", "texts", "arguments"),
    [
        (Correction("text", "X", 1, 3), ["aX", "d"], "{}"),
        (Correction("text", "", 0, 2), ["cd"], "{}"),
        (Correction("text", "Z", 4, 4), ["ab", "cd"], "{}"),
        (Correction("tool_call", "[]", 0, 2, 0), ["ab", "cd"], "[]"),
        (Correction("tool_call", "[]", 0, 2, 7), ["ab", "cd"], "{}"),
    ],
)
def test_a_correction_replaces_characters(correction: Any, texts: list[str], arguments: str) -> None:
    """Characters that did not come are not replaced, and more text follows as before."""
    deltas = [
        ResponseDelta(0, content_delta="a"),
        ResponseDelta(1, content_delta="b"),
        ResponseDelta(2, tool_call_delta=ToolCallDelta(0, "1", "f", "{}")),
        ResponseDelta(3, content_delta="cd"),
        ResponseDelta(4, correction=correction),
        ResponseDelta(5, content_delta="!", finish_reason="tool_calls"),
    ]
    response = ChatResponse.from_deltas(deltas)
    said = [segment.content for segment in response.segments if segment.type == "text"]
    assert (said, response.tool_calls[0].arguments) == ([*texts[:-1], texts[-1] + "!"], arguments)


def test_choices_are_kept_apart() -> None:
    """``n > 1``: the first is the answer, the others are alternatives, each with its own end and parts."""
    deltas = [
        ResponseDelta(0, content_delta="a"),
        ResponseDelta(1, content_delta="b", choice=2),
        ResponseDelta(2, content_delta="A"),
        ResponseDelta(3, choice=1, tool_call_delta=ToolCallDelta(0, None, "f")),
        ResponseDelta(4, choice=2, refusal_delta="no", logprobs=(TokenLogprob("b", -1.0),)),
        ResponseDelta(5, choice=1, finish_reason=FinishReason.TOOL_CALLS, raw_finish_reason="tool_use"),
        ResponseDelta(6, choice=2, finish_reason=FinishReason.LENGTH),
        ResponseDelta(7, finish_reason=FinishReason.STOP),
    ]
    response = accumulated(deltas).build()
    assert response.text == "aA"
    first, second = response.alternatives
    assert (first.index, first.finish_reason, first.raw_finish_reason) == (1, "tool_calls", "tool_use")
    assert first.message.tool_calls == (ToolCall("call_1_0", "f"),)
    assert (second.index, second.message.content, second.refusal) == (2, "b", "no")
    assert (second.finish_reason, second.logprobs) == ("length", (TokenLogprob("b", -1.0),))
    assert response.metadata.provenance["alternatives[0].message.tool_calls[0].id"] is Provenance.SYNTHETIC


def test_a_choice_that_has_not_ended_is_incomplete() -> None:
    """FR-077: every choice has an end. In an error response the open ones failed too."""
    open_choice = {"content_delta": "b", "choice": 1}
    with pytest.raises(ResponseValidationError, match="choice 1 has not ended") as caught:
        built("a", open_choice)
    assert caught.value.code == "ACODE-RSP-008"
    assert built("a", open_choice, end="error").alternatives[0].finish_reason is FinishReason.ERROR
    partial = accumulated(stream("a", open_choice, end=None)).build_partial("cut")
    assert partial.alternatives[0].finish_reason is FinishReason.ERROR


# ------------------------------------------------------------------------------------------------- order


def refused(accumulator: DeltaAccumulator, delta: ResponseDelta) -> str:
    """The code with which *delta* is refused."""
    with pytest.raises(ResponseValidationError) as caught:
        accumulator.append(delta)
    return str(caught.value.code)


def test_a_gap_is_incomplete() -> None:
    """FR-077, design section 6: ``-008``, naming the delta that is missing."""
    accumulator = accumulated(
        [ResponseDelta(0, content_delta="a"), ResponseDelta(2, finish_reason=FinishReason.STOP)]
    )
    with pytest.raises(ResponseValidationError, match="delta 1 has not come") as caught:
        accumulator.build()
    assert caught.value.code == "ACODE-RSP-008"
    assert (accumulator.delta_count, accumulator.is_complete, accumulator.finish_reason) == (2, False, None)
    accumulator.append(ResponseDelta(1, content_delta="b"))
    assert (accumulator.build().text, accumulator.is_complete) == ("ab", True)


@pytest.mark.parametrize("deltas", [[], stream("a", "b", end=None)])
def test_without_its_final_delta_a_stream_is_incomplete(deltas: list[ResponseDelta]) -> None:
    """FR-077, AC-083: ``-008``."""
    with pytest.raises(ResponseValidationError, match="the final delta has not come") as caught:
        accumulated(deltas).build()
    assert caught.value.code == "ACODE-RSP-008"


@pytest.mark.parametrize("index", [0, 1, 3])
def test_a_repeated_index_is_refused(index: int) -> None:
    """Design, section 6: ``-010``, whether it was added already or waits. Nothing is changed by it."""
    accumulator = accumulated(
        [
            ResponseDelta(0, content_delta="a"),
            ResponseDelta(1, content_delta="b"),
            ResponseDelta(3, content_delta="d"),
        ]
    )
    assert refused(accumulator, ResponseDelta(index, content_delta="again")) == "ACODE-RSP-010"
    assert (accumulator.delta_count, accumulator.current.text) == (3, "ab")


def test_what_comes_after_the_final_delta_is_refused() -> None:
    """Design, section 6: ``-010``, in whichever order they come. A refused delta is not kept."""
    final = ResponseDelta(1, finish_reason=FinishReason.STOP)
    in_order = accumulated([ResponseDelta(0, content_delta="a"), final])
    assert refused(in_order, ResponseDelta(2, content_delta="late")) == "ACODE-RSP-010"
    assert refused(in_order, ResponseDelta(5, content_delta="later")) == "ACODE-RSP-010"
    assert refused(in_order, final) == "ACODE-RSP-010"
    waiting = accumulated([ResponseDelta(2, content_delta="late"), ResponseDelta(0, content_delta="a")])
    assert refused(waiting, final) == "ACODE-RSP-010"
    through = accumulated([ResponseDelta(2, content_delta="late"), final])
    assert refused(through, ResponseDelta(0, content_delta="a")) == "ACODE-RSP-010"
    for accumulator in (in_order, waiting, through):
        assert accumulator.is_complete
        assert (accumulator.delta_count, accumulator.build().text) == (2, "a")


def test_a_second_end_of_the_first_choice_is_refused() -> None:
    """FR-060: there is one final delta."""
    accumulator = accumulated(stream("a"))
    assert refused(accumulator, ResponseDelta(2, finish_reason=FinishReason.STOP)) == "ACODE-RSP-010"


# -------------------------------------------------------------------------------------------- properties

EXTENSIONS = st.fixed_dictionaries(
    {}, optional={"a": st.integers(0, 3), "list": st.lists(st.integers(0, 3)), "o": st.just({"b": None})}
)
CALLS = st.builds(
    ToolCallDelta, st.integers(0, 2), st.none() | st.just("c"), st.just("f"), st.none() | st.text()
)
SAYINGS = st.fixed_dictionaries(
    {"content_delta": st.none() | st.text(max_size=5), "extensions": EXTENSIONS.map(FrozenObject)},
    optional={
        "reasoning_delta": st.text(max_size=5),
        "refusal_delta": st.text(max_size=5),
        "tool_call_delta": CALLS,
        "usage": usage_infos,
        "segment": segments,
        "logprobs": tuples(token_logprobs),
        "choice": st.integers(0, 2),
    },
).filter(lambda fields: fields["content_delta"] is not None or "reasoning_delta" in fields)


@st.composite
def streams(draw: st.DrawFn) -> list[ResponseDelta]:
    """The deltas of a complete stream, in order, with up to three choices."""
    said = draw(st.lists(SAYINGS, max_size=8))
    ends: list[dict[str, Any]] = [
        {"choice": 1, "finish_reason": "stop"},
        {"choice": 2, "finish_reason": "stop"},
    ]
    final = {"finish_reason": draw(st.sampled_from(FinishReason)), "usage": draw(st.none() | usage_infos)}
    return [ResponseDelta(index, **fields) for index, fields in enumerate([*said, *ends, final])]


@pytest.mark.sweep
@given(streams(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(deltas: list[ResponseDelta], random: Any) -> None:
    """NFR-014: any permutation gives the same response."""
    shuffled = deltas.copy()
    random.shuffle(shuffled)
    assert unfolded(accumulated(shuffled).build()) == unfolded(accumulated(deltas).build())


@pytest.mark.sweep
@given(streams(), st.data())
def test_splitting_texts_changes_nothing_but_the_count(
    deltas: list[ResponseDelta], data: st.DataObject
) -> None:
    """P3: how the text is cut into deltas is not content."""
    finer: list[ResponseDelta] = []
    for delta in deltas:
        text = delta.content_delta
        alone = delta.reasoning_delta is None
        if text is not None and alone and data.draw(st.booleans()):
            cut = data.draw(st.integers(0, len(text)))
            finer.append(ResponseDelta(len(finer), content_delta=text[:cut], choice=delta.choice))
            delta = attrs.evolve(delta, content_delta=text[cut:])
        finer.append(attrs.evolve(delta, index=len(finer)))
    whole, split = accumulated(deltas), accumulated(finer)
    assert unfolded(split.build()) == unfolded(whole.build())
    assert (whole.delta_count, split.delta_count) == (len(deltas), len(finer))


@given(streams())
def test_from_deltas_is_the_accumulator(deltas: list[ResponseDelta]) -> None:
    """FR-115: one code path."""
    assert ChatResponse.from_deltas(deltas).same_content(accumulated(deltas).build())


@pytest.mark.sweep
@given(streams())
def test_a_partial_answer_is_never_refused(deltas: list[ResponseDelta]) -> None:
    """P4: wherever a stream breaks off, what came is kept, as an error."""
    accumulator = DeltaAccumulator()
    for delta in deltas[:-1]:
        accumulator.append(delta)
        partial = accumulator.build_partial("cut")
        assert partial.finish_reason is FinishReason.ERROR
        assert partial.text == accumulator.current.text
        assert partial.message.tool_calls == (accumulator.current.tool_calls or None)


@pytest.mark.sweep
def test_appends_from_eight_threads_lose_nothing() -> None:
    """FR-076, AC-085: each thread appends every eighth delta. All are there, in order."""
    count = 4000
    deltas = [
        ResponseDelta(i, content_delta=f"{i} ", extensions=FrozenObject({"ids": [i]})) for i in range(count)
    ]
    accumulator = DeltaAccumulator()
    ready = threading.Barrier(8)

    def work(number: int) -> None:
        ready.wait()
        for delta in deltas[number::8]:
            accumulator.append(delta)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accumulator.append(ResponseDelta(count, finish_reason=FinishReason.STOP))
    response = accumulator.build()
    assert response.text == "".join(f"{i} " for i in range(count))
    assert response.metadata.extensions == {"ids": list(range(count))}
    assert accumulator.delta_count == count + 1


# ---------------------------------------------------------------------------------------- partial answers


def test_current_is_a_live_view() -> None:
    """FR-075: it shows what has come by the time one looks, without what waits for an earlier delta."""
    accumulator = DeltaAccumulator()
    current = accumulator.current
    assert (current.text, current.reasoning, current.tool_calls, current.segments) == ("", "", (), ())
    assert (current.finish_reason, current.usage, current.delta_count) == (None, None, 0)
    for delta in stream({"reasoning_delta": "hm"}, "Hel", call(0, "c"), end=None):
        accumulator.append(delta)
    accumulator.append(ResponseDelta(4, content_delta="later"))
    assert (current.text, current.reasoning, current.message.content) == ("Hel", "hm", "Hel")
    assert (current.tool_calls, len(current.segments)) == ((), 3)
    accumulator.append(
        ResponseDelta(3, tool_call_delta=ToolCallDelta(0, None, "f", '{"x'), usage=UsageInfo(1, 2))
    )
    assert current.tool_calls == (ToolCall("c", "f", '{"x'),)
    assert (current.text, current.usage) == ("Hellater", UsageInfo(1, 2))
    accumulator.append(ResponseDelta(5, finish_reason=FinishReason.LENGTH))
    assert (current.finish_reason, current.delta_count) == (FinishReason.LENGTH, 6)
    assert repr(current) == "PartialResponse(6 deltas, finish_reason=length)"


def test_looking_changes_nothing() -> None:
    """A look in the middle neither makes ids nor marks anything."""
    accumulator = accumulated(stream(call(0, None, "f"), end=None))
    assert accumulator.current.tool_calls[0].id == "call_0"
    accumulator.append(ResponseDelta(1, tool_call_delta=ToolCallDelta(0, "real")))
    accumulator.append(ResponseDelta(2, finish_reason=FinishReason.TOOL_CALLS))
    response = accumulator.build()
    assert response.tool_calls[0].id == "real"
    assert "message.tool_calls[0].id" not in response.metadata.provenance


def test_a_partial_answer_is_an_error_response() -> None:
    """P4: the cause, and everything that came before it."""
    accumulator = accumulated(
        stream("Hel", {"usage": UsageInfo(3, 1)}, end=None), provider_id="ollama", model="m"
    )
    partial = accumulator.build_partial(ErrorInfo(ErrorKind.TIMEOUT, "too slow"))
    assert (partial.text, partial.usage, partial.refusal) == ("Hel", UsageInfo(3, 1), "too slow")
    assert partial.error_info == ErrorInfo(ErrorKind.TIMEOUT, "too slow")
    assert (partial.metadata.provider_id, partial.model) == ("ollama", "m")
    assert accumulator.build_partial("cut").error_info == ErrorInfo(ErrorKind.UNKNOWN, "cut")


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ([{"segment": Segment(SegmentType.ERROR, "no /etc/x/y")}], "no <path>"),
        ([{"refusal_delta": "I will not"}], "I will not"),
        (["x"], "the generation failed"),
    ],
)
def test_an_error_at_the_end_always_has_a_refusal(said: list[Any], refusal: str) -> None:
    """FR-097, NFR-023: what went wrong, cleaned; else what the model said; else that it failed."""
    assert built(*said, end="error").refusal == refusal


# ----------------------------------------------------------------------------------------------- envelope


def test_what_is_not_in_the_deltas_is_said_beside_them() -> None:
    """P8: who answered and when is the provider's word, and then nothing is marked."""
    accumulator = accumulated(stream({"usage": UsageInfo(1, 10)}), model="m", provider_id="vllm")
    accumulator.answer.request_duration = timedelta(seconds=2)
    accumulator.answer.time_to_first_token = timedelta(seconds=1)
    accumulator.answer.raw_events.append(b"{}")
    accumulator.answer.provenance["finish_reason"] = Provenance.DERIVED
    response = accumulator.build()
    assert (response.id, response.created, response.model) == ("r", CREATED, "m")
    assert (response.metadata.provider_id, response.metadata.model_id) == ("vllm", "m")
    assert response.metadata.request_duration == timedelta(seconds=2)
    assert response.metadata.time_to_first_token == timedelta(seconds=1)
    assert response.tokens_per_second == 5.0
    assert list(response.raw_events) == [{}]
    assert response.metadata.provenance == {"finish_reason": Provenance.DERIVED}


def test_what_nobody_said_is_made_up_and_marked() -> None:
    """P5, P8: by the injected factories. Synthetic, or absent."""
    accumulator = DeltaAccumulator(id_factory=lambda: "made", clock=lambda: CREATED)
    accumulator.append(ResponseDelta(0, finish_reason=FinishReason.STOP))
    response = accumulator.build()
    assert (response.id, response.created, response.model) == ("made", CREATED, "unknown")
    assert response.metadata.provenance == {
        "id": Provenance.SYNTHETIC,
        "created": Provenance.SYNTHETIC,
        "model": Provenance.ABSENT,
        "usage": Provenance.ABSENT,
        "metadata.request_duration": Provenance.ABSENT,
    }


def test_the_answer_shows_no_content() -> None:
    """NFR-020: it holds the provider's bytes."""
    accumulator = DeltaAccumulator()
    accumulator.answer.raw_events.append(b"secret")
    assert "secret" not in repr(accumulator.answer)


def test_a_delta_that_nobody_has_numbered_is_refused() -> None:
    """Its place is not known. The mapping numbers what a hook gives."""
    total = DeltaAccumulator()
    with pytest.raises(ResponseValidationError, match="was not numbered"):
        total.append(ResponseDelta(content_delta="x"))
