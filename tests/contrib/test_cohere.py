"""Cohere: the fact sheet as tables, trap by trap, and the conformance kit over invented captures."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatResponse,
    CitationRef,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    SegmentType,
    TokenLogprob,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    normalize,
)
from crosswalk.plugins import Recognition, UsageDetails
from crosswalk.testing import ProviderConformance
from crosswalk_cohere import plugin

USAGE = {
    "billed_units": {"input_tokens": 20.0, "output_tokens": 14.0},
    "tokens": {"input_tokens": 910.0, "output_tokens": 48.0},
}


class TestCohere(ProviderConformance):
    provider = "cohere"
    captures = "../captures/cohere"
    snapshots = "../../snapshots"


def read(*sent: Any, status: int = 200, **options: Any) -> ChatResponse:
    """The result of events: one is a body, several are a stream."""
    body = b"".join(orjson.dumps(event) + b"\n" for event in sent)
    return normalize(body, "cohere", status=status, **options)


def whole(*content: Any, word: Any = "COMPLETE", **more: Any) -> dict[str, Any]:
    """A body of v2, with the parts of the message that *more* gives."""
    parts = {k: more.pop(k) for k in ("tool_plan", "tool_calls", "citations", "role") if k in more}
    message = {"role": "assistant", "content": list(content) or None, **parts}  # type: ignore[misc]
    return {"id": "m1", "message": message, "finish_reason": word, "usage": USAGE, **more}


def says(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    event: dict[str, Any] = {"type": kind}
    if index is not None:
        event["index"] = index
    return {**event, "delta": {"message": message}} if message else event


def text(said: str, index: int | None = 0, **more: Any) -> dict[str, Any]:
    return {**says("content-delta", index, content={"text": said}), **more}


BEGIN = {
    **says("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[]),
    "id": "m1",
}
BLOCK = says("content-start", 0, content={"type": "text", "text": ""})


def end(word: Any = "COMPLETE", **more: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": word, "usage": USAGE, **more}}


def said(kind: str, **more: Any) -> dict[str, Any]:
    return {"is_finished": kind == "stream-end", "event_type": kind, **more}


V1 = {"response_id": "r", "generation_id": "g", "text": "Hi.", "finish_reason": "COMPLETE"}
ENDED = said(
    "stream-end", finish_reason="COMPLETE", response={k: v for k, v in V1.items() if k != "finish_reason"}
)


def chunk(**piece: Any) -> dict[str, Any]:
    return said("tool-calls-chunk", tool_call_delta=piece)


def stream(*between: Any) -> ChatResponse:
    return read(BEGIN, *between, end())


def segments(response: ChatResponse) -> list[tuple[str, str, dict[str, Any]]]:
    return [(s.type.value, s.content, s.metadata.thawed()) for s in response.segments]


def left(response: ChatResponse) -> Any:
    """The extensions, less what is charged."""
    found = response.metadata.extensions.thawed()
    assert found.pop("usage") == {"billed_units": USAGE["billed_units"]}
    return found


# Section 2: the answer.


def test_an_id_that_comes_last_is_the_id() -> None:
    begin = {"type": "message-start", "delta": None}
    response = read(begin, BLOCK, text("Hi"), {**end(), "id": "late"})
    assert response.id == "late"
    assert left(response) == {}
    other = read(BEGIN, BLOCK, text("Hi"), {**end(), "id": "late"})
    assert (other.id, left(other)) == ("m1", {"id": "late"})


def test_thinking_and_blocks_of_one_type_stay_apart() -> None:
    expected = [("reasoning", "Hm.", {}), ("text", "A", {}), ("text", "B", {})]
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "A"},
        {"type": "text", "text": "B"},
    ]
    assert segments(read(whole(*blocks))) == expected
    streamed = stream(
        says("content-start", 0, content={"type": "thinking", "thinking": ""}),
        says("content-delta", 0, content={"thinking": "Hm."}),
        says("content-end", 0),
        says("content-start", 1, content={"type": "text", "text": "A"}),
        says("content-end", 1),
        says("content-start", content={"type": "text", "text": ""}),
        text("B", None),
    )
    assert segments(streamed) == expected
    assert left(streamed) == {}


@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_a_block_that_begins_with_its_text_is_another_than_the_one_like_it(kind: str) -> None:
    start = says("content-start", 0, content={"type": kind, kind: "A"})
    streamed = stream(start, start, says("content-end", 0))
    assert segments(streamed) == [("text" if kind == "text" else "reasoning", "A", {})] * 2
    assert left(streamed) == {"message": {"content": [{"index": 0}]}}


def test_an_empty_text_is_no_missing_one() -> None:
    assert read(whole({"type": "text", "text": ""})).message.content == ""
    assert stream(BLOCK).message.content == ""
    assert read(whole()).message.content is None


def test_a_tool_plan_is_reasoning_that_says_what_it_is() -> None:
    thought = {"type": "thinking", "thinking": "Hm."}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    expected = [
        ("reasoning", "Hm.", {}),
        ("reasoning", "I will look.", {"kind": "tool_plan"}),
        ("tool_call", '{"a":1}', {"id": "c", "name": "f"}),
    ]
    body = read(whole(thought, tool_plan="I will look.", tool_calls=[call], word="TOOL_CALL"))
    start = {**call, "function": {"name": "f", "arguments": ""}}
    streamed = read(
        BEGIN,
        says("content-start", 0, content={"type": "thinking", "thinking": "Hm."}),
        says("content-end", 0),
        says("tool-plan-delta", tool_plan="I will"),
        says("tool-plan-delta", tool_plan=" look."),
        says("tool-call-start", 0, tool_calls=start),
        says("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"a":'}}),
        says("tool-call-delta", 0, tool_calls={"function": {"arguments": "1}"}}),
        says("tool-call-end", 0),
        end("TOOL_CALL"),
    )
    for response in (body, streamed):
        assert segments(response) == expected
        assert response.finish_reason is FinishReason.TOOL_CALLS
        assert left(response) == {}


def test_a_plan_alone_says_what_it_is_at_the_end() -> None:
    response = stream(says("tool-plan-delta", tool_plan="I will look."))
    assert segments(response) == [("reasoning", "I will look.", {"kind": "tool_plan"})]


def test_text_goes_on_after_a_call() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    response = stream(
        BLOCK,
        text("A"),
        says("tool-call-start", 0, tool_calls=call),
        says("tool-call-end", 0),
        says("content-start", 1, content={"type": "text"}),
        text("B", 1),
    )
    assert [s[:2] for s in segments(response)] == [("text", "A"), ("tool_call", "{}"), ("text", "B")]
    assert response.tool_calls[0].parsed() == {}


CITED = {
    "start": 0.0,
    "end": 4,
    "text": "Blue",
    "sources": [
        {"type": "document", "id": "d", "document": {"url": "https://example.org", "title": "Sky"}},
        {"type": "document", "id": "e", "document": {"url": 1, "title": "Sea"}},
        {"type": "tool", "id": "t", "tool_output": {"a": 1}},
    ],
    "content_index": 0,
    "type": "TEXT_CONTENT",
}


def test_a_stream_that_breaks_off_has_the_citations_so_far() -> None:
    with pytest.raises(IncompleteStreamError) as caught:
        read(BEGIN, BLOCK, text("Blue"), says("citation-start", 0, citations=CITED), text(" sk"))
    partial = caught.value.partial
    assert partial is not None
    assert partial.text == "Blue sk"
    assert partial.metadata.extensions == {"message": {"citations": [CITED]}}


def test_a_citation_without_sources_or_place() -> None:
    response = read(whole({"type": "text", "text": "A"}, citations=[{"text": "A", "start": 0}]))
    assert response.segments[1].annotations == (CitationRef(),)


def test_log_probabilities_of_single_tokens_are_typed_and_others_stay() -> None:
    single = {"text": "It", "token_ids": [12], "logprobs": [-0.25]}
    several = {"text": " is fine", "token_ids": [13, 14], "logprobs": [-0.5, -1]}
    body = read(whole({"type": "text", "text": "It is fine"}, logprobs=[single, several]))
    streamed = stream(BLOCK, text("It", logprobs=single), text(" is fine", logprobs=several))
    for response in (body, streamed):
        assert response.logprobs == (TokenLogprob("It", -0.25),)
        assert response.metadata.provenance["logprobs"] == "unmapped"
        assert left(response) == {"logprobs": [{"token_ids": [12]}, several]}
    bare = stream(BLOCK, text("It", logprobs={"token_ids": [12]}))
    assert (bare.logprobs, left(bare)) == (None, {"logprobs": [{"token_ids": [12]}]})
    silent = stream(BLOCK, text("", logprobs=single), text("A"))
    assert (silent.logprobs, silent.text) == ((TokenLogprob("It", -0.25),), "A")
    thought = {**says("content-delta", 0, content={"thinking": "It"}), "logprobs": single}
    thinking = stream(says("content-start", 0, content={"type": "thinking", "thinking": ""}), thought)
    assert (thinking.logprobs, thinking.reasoning) == ((TokenLogprob("It", -0.25),), "It")


def test_what_is_odd_stays_where_a_body_has_it() -> None:
    other = {"type": "image", "image": {"url": "u"}}
    body = read(whole({"type": "text", "text": "A"}, other, role="user", x=1))
    assert left(body) == {"message": {"role": "user", "content": [{}, other]}, "x": 1}
    call = {"id": "c", "type": "tool", "function": {"name": "f", "arguments": "", "strict": True}}
    streamed = read(
        {**BEGIN, "api": 2},
        says("content-start", 5, content={"type": "image", "image": {"url": "u"}}),
        says("content-delta", 5, content={"bytes": "a"}),
        says("content-delta", 5, content={"bytes": "a"}),
        says("content-end", 7),
        says("tool-call-start", 3, tool_calls=call),
        says("tool-call-end", 4),
        says("citation-start", 8),
        says("citation-start", 2, citations={"text": "A"}),
        says("citation-end", 9),
        {"type": "debug", "prompt": "<user>"},
        {**end("TOOL_CALL"), "at": 1},
        {**end("COMPLETE"), "delta": {"finish_reason": "COMPLETE", "at": 2}},
    )
    assert left(streamed) == {
        "api": 2,
        "message": {
            "content": [{"index": 5, **other, "deltas": [{"bytes": "a"}] * 2}, {"index": 7}],
            "tool_calls": [{"index": 3, "type": "tool", "function": {"strict": True}}, {"index": 4}],
            "citations": [
                {"index": 8, "type": "citation-start"},
                {"index": 2, "text": "A"},
                {"index": 9, "type": "citation-end"},
            ],
        },
        "prompt": "<user>",
        "at": 2,
        "finish_reason": "COMPLETE",
    }


def test_what_would_take_anothers_place_stays_below() -> None:
    event = {**end(), "usage": 1}
    response = read(BEGIN, BLOCK, text("A"), event)
    kept = {"usage": {"billed_units": USAGE["billed_units"]}}
    assert response.metadata.extensions == {"usage": 1, "delta": kept}
    odd = {**text("A"), "delta": {"message": {"content": {"text": "A"}}, "index": 7}}
    assert left(stream(BLOCK, odd)) == {"delta": {"index": 7}}


# Section 3: events.


@pytest.mark.parametrize("kind", ["content-middle", "typing", None])
def test_an_unknown_event_is_named(kind: str | None) -> None:
    with pytest.raises(UnknownEventError, match=kind or "no type"):
        read(BEGIN, {"type": kind, "x": 1}, end())
    kept = read(BEGIN, {"type": kind, "x": 1}, end(), unknown="keep")
    assert kept.metadata.extensions["x"] == 1


def test_a_second_message_is_an_error() -> None:
    for second in (BEGIN, whole({"type": "text", "text": "Hi"})):
        with pytest.raises(UnknownEventError, match="second message"):
            read(BEGIN, second, end())


@pytest.mark.parametrize(
    "event",
    [
        says("content-delta", -1, content={"text": "x"}),
        says("content-delta", 0, content={"text": 1}),
        says("content-delta", 0, content="x"),
        says("tool-call-start", 0, tool_calls=[{}]),
        end(error=1),
        end(1),
        {**end(), "id": 1},
        {**end(), "delta": 1},
        says("tool-plan-delta", tool_plan=1),
        whole({"type": "thinking", "thinking": 1}),
        whole("A"),
        whole(tool_calls=[{"function": {"arguments": {}}}]),
        {**V1, "tool_calls": [{"name": "f", "parameters": "{}"}]},
        chunk(name="f", index=0.5),
    ],
)
def test_what_decides_the_answer_is_right_or_raises(event: dict[str, Any]) -> None:
    with pytest.raises(WireTypeError):
        read(event)


def noted(response: ChatResponse) -> set[str]:
    start = "metadata.extensions."
    found = [path for path, why in response.metadata.provenance.items() if why == "mistyped"]
    assert all(path.startswith(start) for path in found)
    return {path.removeprefix(start) for path in found}


def at(value: Any, path: str) -> Any:
    for key in path.replace("[", ".").replace("]", "").split("."):
        value = value[int(key) if key.isdigit() else key]
    return value


def has_kept(response: ChatResponse, paths: set[str], sent: Any) -> bool:
    """Whether the value at *paths* was noted, and is in the extensions as it was *sent*."""
    kept = response.metadata.extensions.thawed()
    return noted(response) == paths and all(at(kept, path) == at(sent, path) for path in paths)


@pytest.mark.parametrize(
    ("usage", "paths"),
    [
        (5, {"usage"}),
        ({"tokens": [], "billed_units": 1}, {"usage.tokens", "usage.billed_units"}),
        ({"tokens": {"input_tokens": 12.5}}, {"usage.tokens.input_tokens"}),
        ({"tokens": {"output_tokens": -1}}, {"usage.tokens.output_tokens"}),
        ({"tokens": {"image_tokens": 1e300}}, {"usage.tokens.image_tokens"}),
        ({"tokens": {"reasoning_tokens": "4"}}, {"usage.tokens.reasoning_tokens"}),
        ({"cached_tokens": True}, {"usage.cached_tokens"}),
        (
            {"billed_units": {"input_tokens": "20", "output_tokens": []}},
            {"usage.billed_units.input_tokens", "usage.billed_units.output_tokens"},
        ),
    ],
)
def test_a_count_of_another_type_costs_itself_alone(usage: Any, paths: set[str]) -> None:
    message = {"type": "text", "text": "Hi"}
    v1 = {**V1, "meta": usage}
    for response in (
        read({**whole(message), "usage": usage}),
        read(BEGIN, BLOCK, text("Hi"), end(usage=usage)),
    ):
        assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
        assert has_kept(response, paths, {"usage": usage})
    in_v1 = {path.replace("usage", "meta", 1) for path in paths}
    for response in (read(v1), read({**ENDED, "response": v1})):
        assert response.text == "Hi."
        assert has_kept(response, in_v1, {"meta": usage})


def test_a_wrong_count_leaves_the_others() -> None:
    usage = {**USAGE, "tokens": {"input_tokens": "9", "output_tokens": 48.0}}
    response = read({**whole({"type": "text", "text": "Hi"}), "usage": usage})
    assert response.usage == UsageInfo(20, 48)
    assert response.metadata.provenance["usage.prompt_tokens"] == "derived"
    early = {**V1, "token_count": {"prompt_tokens": "60", "response_tokens": 4}}
    assert read(early).usage == UsageInfo(0, 4)
    assert has_kept(read(early), {"token_count.prompt_tokens"}, early)


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({"start": "0"}, {"start"}),
        ({"start": 0.5, "end": -1}, {"start", "end"}),
        ({"text": 1, "type": 2, "content_index": "0"}, {"text", "type", "content_index"}),
        ({"sources": {}}, {"sources"}),
        (
            {"sources": [1, {"id": 2, "document": "d"}]},
            {"sources[0]", "sources[1].id", "sources[1].document"},
        ),
        ({"document_ids": ["d", 1]}, {"document_ids"}),
        ({"document_ids": "d"}, {"document_ids"}),
    ],
)
def test_a_citation_of_another_type_is_still_one(more: dict[str, Any], paths: set[str]) -> None:
    cited = {**CITED, **more}
    body = read(whole({"type": "text", "text": "Blue sky"}, citations=[cited]))
    streamed = stream(BLOCK, text("Blue sky"), says("citation-start", 0, citations=cited))
    odd = stream(BLOCK, text("Blue sky"), says("citation-start", 3, citations=cited))
    v1 = read({**V1, "text": "Blue sky", "citations": [cited]})
    for response in (body, streamed, odd, v1):
        assert [s[0] for s in segments(response)] == ["text", "citation"]
        place = "citations[0]" if response is v1 else "message.citations[0]"
        sent: Any = {"citations": [cited]}
        assert has_kept(response, {f"{place}.{path}" for path in paths}, {**sent, "message": sent})


@pytest.mark.parametrize("given", [1, "c", [1]])
def test_what_is_no_citation_stays(given: Any) -> None:
    body = read(whole({"type": "text", "text": "A"}, citations=given))
    path = "message.citations[0]" if type(given) is list else "message.citations"
    assert has_kept(body, {path}, {"message": {"citations": given}})
    streamed = stream(BLOCK, text("A"), says("citation-start", 4, citations=given), says("citation-end", 0))
    assert (streamed.text, noted(streamed)) == ("A", {"message.citations"})
    assert left(streamed)["index"] == 4


@pytest.mark.parametrize(
    ("stretch", "paths"),
    [
        (1, {""}),
        ({"text": 1, "logprobs": [-0.5]}, {".text"}),
        ({"text": "A", "logprobs": -0.5}, {".logprobs"}),
        ({"text": "A", "logprobs": ["-0.5"]}, {".logprobs"}),
        ({"text": "A", "token_ids": 1, "logprobs": []}, {".token_ids"}),
    ],
)
def test_log_probabilities_of_another_type_stay(stretch: Any, paths: set[str]) -> None:
    body = read(whole({"type": "text", "text": "A"}, logprobs=[stretch]))
    assert (body.text, body.logprobs) == ("A", None)
    assert has_kept(body, {f"logprobs[0]{path}" for path in paths}, {"logprobs": [stretch]})
    streamed = stream(BLOCK, text("A", logprobs=stretch))
    assert (streamed.text, streamed.logprobs) == ("A", None)
    place = "logprobs[0]" if type(stretch) is dict else "logprobs"
    assert noted(streamed) == {f"{place}{path}" for path in paths}
    assert left(streamed) == {"logprobs": [stretch] if type(stretch) is dict else stretch}


def test_what_came_before_an_error_is_kept_of_a_body_too() -> None:
    said = {"type": "text", "text": "Hi"}
    for sent in (
        whole(said, tool_calls=[1]),
        whole(said, {"type": "text", "text": 1}),
        whole(said, word=1),
        {**V1, "text": "Hi", "tool_calls": [{"name": 1}]},
        {**V1, "text": "Hi", "finish_reason": 1},
        {"generations": [{"text": "Hi"}, {"text": 1}], "meta": {}},
    ):
        with pytest.raises(WireTypeError) as caught:
            read(sent)
        assert caught.value.partial is not None
        assert caught.value.partial.text == "Hi"


def test_null_takes_nothing_back() -> None:
    again = {"type": "message-end", "id": None, "at": None, "delta": {"finish_reason": None, "usage": None}}
    response = read(BEGIN, BLOCK, text("Hi"), {**end(), "at": 1}, again)
    assert (response.id, response.raw_finish_reason) == ("m1", "COMPLETE")
    assert response.usage == UsageInfo(910, 48)
    assert left(response) == {"at": 1}


def test_what_is_no_part_of_the_message_stays_where_it_is() -> None:
    debug = {"type": "debug", "delta": 5}
    odd = {"type": "content-end", "index": 0, "message": "x"}
    assert left(stream(BLOCK, text("Hi"), debug, odd)) == {"delta": 5, "message": "x"}


# Section 4: how it ended.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("COMPLETE", FinishReason.STOP),
        ("STOP_SEQUENCE", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("ERROR_LIMIT", FinishReason.LENGTH),
        ("ERROR_TOXIC", FinishReason.CONTENT_FILTER),
        ("USER_CANCEL", FinishReason.CANCELLED),
        ("ERROR", FinishReason.ERROR),
        ("TIMEOUT", FinishReason.ERROR),
    ],
)
def test_finish_reasons(word: str, reason: FinishReason) -> None:
    for response in (
        read(whole({"type": "text", "text": "Hi"}, word=word)),
        read(BEGIN, BLOCK, text("Hi"), end(word)),
        read({"text": "Hi", "response_id": "r", "finish_reason": word}),
    ):
        assert (response.finish_reason, response.raw_finish_reason) == (reason, word)
        assert response.text == "Hi"


@pytest.mark.parametrize(
    ("word", "message", "kind", "retryable"),
    [
        ("ERROR", "the model failed", ErrorKind.UNKNOWN, False),
        ("ERROR", None, ErrorKind.UNKNOWN, False),
        ("TIMEOUT", None, ErrorKind.TIMEOUT, True),
        (None, "the model failed", ErrorKind.UNKNOWN, False),
    ],
)
def test_what_failed_says_why(
    word: str | None, message: str | None, kind: ErrorKind, retryable: bool
) -> None:
    response = read(BEGIN, BLOCK, text("Hi"), end(word, error=message))
    error = response.segments[-1]
    assert error.type is SegmentType.ERROR
    assert error.content == (message or f"the provider ended the answer with '{word}'")
    assert (error.metadata["kind"], error.metadata["retryable"]) == (kind.value, retryable)
    assert (response.text, response.usage.completion_tokens) == ("Hi", 48)
    assert response.raw_finish_reason == (word or "")
    said_so = {"finish_reason": word, "error": message} if message else None
    assert error.metadata.thawed().get("raw") == said_so


def test_without_a_finish_word_it_is_incomplete() -> None:
    with pytest.raises(IncompleteStreamError):
        read(BEGIN, BLOCK, text("Hi"), {"type": "message-end"})
    with pytest.raises(IncompleteStreamError):
        read(whole({"type": "text", "text": "Hi"}, word=None))


# Section 5: usage.


@pytest.mark.parametrize(
    ("usage", "expected", "provenance"),
    [
        (USAGE, UsageInfo(910, 48), {}),
        ({**USAGE, "cached_tokens": 896.0}, UsageInfo(910, 48, 896), {}),
        (
            {"tokens": {"input_tokens": 5, "output_tokens": 9, "reasoning_tokens": 4}},
            UsageInfo(5, 9, None, 4),
            {},
        ),
        (
            {"tokens": {"input_tokens": 34, "output_tokens": 6, "image_tokens": 259}},
            UsageInfo(293, 6, details=UsageDetails(image_input_tokens=259)),
            {"usage.prompt_tokens": "derived"},
        ),
        (
            {"tokens": {"input_tokens": 34, "output_tokens": 6, "image_tokens": 0}},
            UsageInfo(34, 6, details=UsageDetails(image_input_tokens=0)),
            {},
        ),
        (
            {"billed_units": {"input_tokens": 20.0, "output_tokens": 14.0}},
            UsageInfo(20, 14),
            {"usage.prompt_tokens": "derived", "usage.completion_tokens": "derived"},
        ),
        (
            {"billed_units": {"output_tokens": 14.0}, "tokens": {}},
            UsageInfo(0, 14),
            {
                "usage.prompt_tokens": "absent",
                "usage.completion_tokens": "derived",
                "usage.total_tokens": "absent",
            },
        ),
        ({"billed_units": {"search_units": 1}}, UsageInfo.EMPTY, {"usage": "absent"}),
        ({}, UsageInfo.EMPTY, {"usage": "absent"}),
        (None, UsageInfo.EMPTY, {"usage": "absent"}),
    ],
)
def test_the_tokens_count_and_not_what_is_charged(
    usage: Any, expected: UsageInfo, provenance: dict[str, str]
) -> None:
    response = read({**whole({"type": "text", "text": "Hi"}), "usage": usage})
    assert response.usage == expected
    about = {k: str(v) for k, v in response.metadata.provenance.items() if k.startswith("usage")}
    assert about == provenance
    charged = (usage or {}).get("billed_units")
    assert response.metadata.extensions.thawed().get("usage", {}).get("billed_units") == charged


# Section 7: errors.


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"message": "invalid request: max_tokens must be positive", "id": "e"},
            ErrorKind.INVALID_REQUEST,
        ),
        (
            400,
            {"error_type": "TOO_MANY_TOKENS", "message": "size limit exceeded"},
            ErrorKind.CONTEXT_OVERFLOW,
        ),
        (401, {"message": "Incorrect API key provided"}, ErrorKind.AUTHENTICATION),
        (
            404,
            {"message": "model 'command-r' was removed on September 15, 2025."},
            ErrorKind.MODEL_UNAVAILABLE,
        ),
        (429, {"message": "You are using a trial key"}, ErrorKind.RATE_LIMIT),
        (498, {"message": "expired"}, ErrorKind.AUTHENTICATION),
        (499, {"message": "closed"}, ErrorKind.UNKNOWN),
        (500, {"message": "oops"}, ErrorKind.SERVER),
        (504, "", ErrorKind.TIMEOUT),
        (400, [], ErrorKind.INVALID_REQUEST),
    ],
)
def test_http_errors(status: int, body: Any, kind: ErrorKind) -> None:
    response = normalize(orjson.dumps(body) if body != "" else b"", "cohere", status=status)
    assert response.segments[-1].metadata["kind"] == kind.value
    assert response.segments[-1].metadata["status"] == status


def test_an_error_body_inside_a_stream_keeps_what_came_before() -> None:
    response = read(BEGIN, BLOCK, text("Hi"), {"message": "oops", "id": "e"})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.ERROR)
    assert response.segments[-1].metadata["raw"] == {"message": "oops", "id": "e"}
    assert read({"message": "oops"}).finish_reason is FinishReason.ERROR


# Section 3: chat v1.


def test_what_the_end_repeats_is_said_once() -> None:
    body = read(V1)
    streamed = read(
        said("stream-start", generation_id="g"),
        said("text-generation", text="Hi"),
        said("text-generation", text="."),
        ENDED,
    )
    for response in (body, streamed):
        assert (response.id, response.text) == ("r", "Hi.")
        assert response.metadata.extensions == {"generation_id": "g"}
    assert read(ENDED).text == "Hi."


def test_what_the_end_says_otherwise_stays() -> None:
    response = read(said("text-generation", text="Hi"), {**ENDED, "at": 1, "finish_reason": "MAX_TOKENS"})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.LENGTH)
    assert response.metadata.extensions == {"generation_id": "g", "text": "Hi.", "at": 1}


def test_what_would_take_the_place_of_another_stays_below() -> None:
    ended = {**ENDED, "at": 1, "response": {**ENDED["response"], "at": 2}}
    assert read(ended).metadata.extensions == {"at": 1, "response": {"generation_id": "g", "at": 2}}


def test_without_a_response_id_the_generation_is_the_id() -> None:
    assert read({"generation_id": "g", "text": "Hi"}).id == "g"


def test_a_body_of_v1_without_a_finish_word_is_whole() -> None:
    response = read({"generation_id": "g", "text": "Hi"})
    assert response.finish_reason is FinishReason.STOP
    assert response.metadata.provenance["finish_reason"] == "derived"


V1_CITED = {"start": 0, "end": 2, "text": "Hi", "document_ids": ["d", "e"]}


def test_citations_that_the_end_repeats_otherwise_stay_twice() -> None:
    other = {**V1_CITED, "end": 1}
    response = read(
        said("text-generation", text="Hi."),
        said("citation-generation", citations=[V1_CITED]),
        {**ENDED, "response": {**ENDED["response"], "citations": [other]}},
    )
    assert response.metadata.extensions.thawed()["citations"] == [V1_CITED, other]


CALLS = [{"name": "f", "parameters": {"a": 1, "b": True}}, {"name": "g", "parameters": {}}]


CHUNKS = (
    said("tool-calls-chunk", text="Hi"),
    chunk(text="."),
    chunk(name="f", index=0.0),
    chunk(index=0.0, parameters='{"b": true,'),
    chunk(index=0.0, parameters=' "a": 1}'),
    chunk(name="g", index=1),
)


@pytest.mark.parametrize(
    ("sent", "arguments"),
    [
        ([{**V1, "tool_calls": CALLS}], '{"a":1,"b":true}'),
        (
            [
                said("tool-calls-generation", text="Hi.", tool_calls=CALLS),
                {**ENDED, "response": {**ENDED["response"], "tool_calls": CALLS}},
            ],
            '{"a":1,"b":true}',
        ),
        (
            [
                *CHUNKS,
                said("tool-calls-generation", text="Hi.", tool_calls=CALLS),
                {**ENDED, "response": {**V1, "tool_calls": CALLS}},
            ],
            '{"b": true, "a": 1}',
        ),
        ([*CHUNKS, ENDED], '{"b": true, "a": 1}'),
    ],
)
def test_calls_of_v1_are_said_once_however_often_they_come(sent: list[Any], arguments: str) -> None:
    response = read(*sent)
    assert [(c.name, c.arguments) for c in response.tool_calls] == [("f", arguments), ("g", "{}")]
    assert (response.text, response.finish_reason) == ("Hi.", FinishReason.TOOL_CALLS)
    assert response.raw_finish_reason == "COMPLETE"
    assert response.metadata.provenance["message.tool_calls[0].id"] == "synthetic"
    assert response.metadata.extensions == {"generation_id": "g"}


@pytest.mark.parametrize(
    "given",
    [
        [{"name": "f", "parameters": {"a": 1, "b": 1}}, CALLS[1]],
        [{**CALLS[0], "id": "c"}, CALLS[1]],
        [{**CALLS[0], "name": "h"}, CALLS[1]],
        CALLS[:1],
    ],
)
def test_calls_that_the_end_gives_otherwise_stay(given: list[Any]) -> None:
    response = read(*CHUNKS, {**ENDED, "response": {**ENDED["response"], "tool_calls": given}})
    assert response.metadata.extensions.thawed()["tool_calls"] == given


def test_calls_whose_parameters_were_cut_are_not_what_the_end_gives() -> None:
    ended = {
        **ENDED,
        "finish_reason": "MAX_TOKENS",
        "response": {**ENDED["response"], "tool_calls": CALLS[:1]},
    }
    response = read(*CHUNKS[:4], ended)
    assert response.tool_calls[0].arguments == '{"b": true,'
    assert response.metadata.extensions.thawed()["tool_calls"] == CALLS[:1]


def test_calls_are_compared_twice_and_what_comes_more_often_stays() -> None:
    again = said("tool-calls-generation", tool_calls=CALLS)
    response = read(*CHUNKS, again, again, again, ENDED)
    assert response.metadata.extensions.thawed() == {"generation_id": "g", "tool_calls": CALLS}


def test_a_second_end_is_an_error() -> None:
    with pytest.raises(UnknownEventError, match="stream-end"):
        read(ENDED, ENDED)


def test_a_call_without_parameters_has_none() -> None:
    response = read({**V1, "tool_calls": [{"name": "f"}]})
    assert response.tool_calls[0].arguments == "{}"


def test_the_index_of_a_call_that_says_more_stays() -> None:
    response = read(chunk(name="f", index=4), ENDED)
    assert response.metadata.extensions["tool_call_delta"] == {"index": 4}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"meta": {"tokens": {"input_tokens": 6.0, "output_tokens": 3.0}, "cached_tokens": 1}},
            UsageInfo(6, 3, 1),
        ),
        ({"meta": {"billed_units": {"input_tokens": 6, "output_tokens": 3}}}, UsageInfo(6, 3)),
        (
            {
                "meta": {"billed_units": {"input_tokens": 6, "output_tokens": 3}},
                "token_count": {"prompt_tokens": 60, "response_tokens": 4, "total_tokens": 64},
            },
            UsageInfo(60, 4),
        ),
        ({}, UsageInfo.EMPTY),
    ],
)
def test_usage_of_v1(more: dict[str, Any], expected: UsageInfo) -> None:
    for response in (read({**V1, **more}), read({**ENDED, "response": {**ENDED["response"], **more}})):
        assert response.usage == expected


def test_an_error_in_v1() -> None:
    response = read(said("text-generation", text="Hi"), {"message": "oops"})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.ERROR)
    failed = read(said("text-generation", text="Hi"), said("stream-end", finish_reason="ERROR", error="no"))
    assert (failed.refusal, failed.metadata.extensions) == ("no", {})
    with pytest.raises(UnknownEventError, match="typing"):
        read(said("text-generation", text="Hi"), {"event_type": "typing"})
    with pytest.raises(UnknownEventError, match="no type"):
        read(ENDED, V1)
    with pytest.raises(IncompleteStreamError):
        read(said("text-generation", text="Hi"))


# Generate.


def test_generations_are_choices() -> None:
    response = read(
        {
            "id": "e",
            "generations": [
                {"id": "a", "text": "A", "finish_reason": "COMPLETE"},
                {"text": "B", "finish_reason": "MAX_TOKENS"},
            ],
            "meta": {"billed_units": {"input_tokens": 5, "output_tokens": 7}},
        }
    )
    assert (response.id, response.text, response.alternatives[0].message.content) == ("e", "A", "B")
    assert response.alternatives[0].finish_reason is FinishReason.LENGTH
    assert response.usage == UsageInfo(5, 7)
    assert response.metadata.extensions["generations"] == ({"id": "a"}, {})
    with pytest.raises(UnknownEventError, match="without generations"):
        read({"generations": []}, {"x": 1})


def test_bedrock_counts_the_tokens_of_generations() -> None:
    metrics = {"inputTokenCount": 7, "outputTokenCount": 149, "firstByteLatency": 4394}
    said = {"id": "e", "generations": [{"text": "A", "finish_reason": "COMPLETE"}]}
    response = read({**said, "amazon-bedrock-invocationMetrics": metrics})
    assert response.usage == UsageInfo(7, 149)
    assert response.metadata.extensions["amazon-bedrock-invocationMetrics"] == {"firstByteLatency": 4394}


# Detection.


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (BEGIN, Recognition.CERTAIN),
        (end(), Recognition.CERTAIN),
        (whole(), Recognition.CERTAIN),
        ({**whole(), "usage": None}, Recognition.POSSIBLE),
        ({"type": "debug", "prompt": "p"}, Recognition.POSSIBLE),
        ({"message": "no", "id": "e"}, Recognition.POSSIBLE),
        ({"message": "no", "code": 1}, Recognition.NO),
        (ENDED, Recognition.CERTAIN),
        (V1, Recognition.CERTAIN),
        ({"text": "Hi"}, Recognition.NO),
        ({"generations": [], "meta": {}}, Recognition.CERTAIN),
        ({"generations": []}, Recognition.POSSIBLE),
        ({"message": {"role": "assistant"}, "done": True}, Recognition.NO),
        ([], Recognition.NO),
    ],
)
def test_recognition(event: Any, expected: Recognition) -> None:
    assert plugin.recognizes(event) is expected


@pytest.mark.parametrize("text", ["Hello.", ""])
def test_content_may_be_a_string(text: str) -> None:
    body = whole()
    body["message"]["content"] = text
    answer = read(body)
    assert (answer.text, answer.finish_reason) == (text, FinishReason.STOP)
    assert not {"message", "content"} & {*answer.metadata.extensions}
