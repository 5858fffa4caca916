"""Gemini's form as it is written: parts, ends, counts and errors, whole and streamed, and what was Gemini's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk import (
    Alternative,
    ChatMessage,
    ChatResponse,
    CitationRef,
    ErrorInfo,
    FinishReason,
    MappingError,
    ResponseDelta,
    ResponseMetadata,
    Segment,
    SegmentType as T,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
    from_json,
    normalize,
    normalize_stream,
    to_json,
)
from crosswalk.convert import WireForm, convert, convert_stream, error_body
from crosswalk.testing import load_captures
from crosswalk.types import UsageDetails, load_json
from crosswalk.types.json import dump_json

GEMINI = WireForm.GEMINI
CAPTURES = Path(__file__).parents[2] / "captures/gemini"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def answer(*parts: Segment, **more: Any) -> ChatResponse:
    calls = [
        ToolCall(str(part.metadata["id"]), str(part.metadata["name"]), part.content)
        for part in parts
        if part.type is T.TOOL_CALL and "name" in part.metadata
    ]
    text = "".join(part.content for part in parts if part.type is T.TEXT) or None
    given = {
        "id": "a1",
        "message": ChatMessage.assistant(text, tool_calls=calls),
        "finish_reason": "tool_calls" if calls else "stop",
        "usage": UsageInfo(3, 2),
        "metadata": ResponseMetadata("x", "m"),
        "created": NOW,
        "model": "m",
        "segments": parts,
    }
    return ChatResponse(**{**given, **more})


def call(arguments: str, id: str = "c1") -> Segment:
    return Segment(T.TOOL_CALL, arguments, {"id": id, "name": "f"})


def body_of(response: ChatResponse) -> Any:
    return load_json(convert(response, GEMINI, losses="report").value)


def parts_of(response: ChatResponse) -> Any:
    return body_of(response)["candidates"][0]["content"]["parts"]


def test_an_answer_has_its_parts_in_their_order() -> None:
    body = body_of(answer(Segment(T.REASONING, "hm"), Segment(T.TEXT, "Look:"), call('{"a":1.50}')))
    assert body == {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "Look:"},
                        {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1.5}}},
                    ],
                    "role": "model",
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "modelVersion": "m",
        "createTime": "2026-01-01T12:00:00Z",
        "responseId": "a1",
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    }


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert parts_of(answer(call("")))[0]["functionCall"]["args"] == {}


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("finish", "word"), [("tool_calls", "MALFORMED_FUNCTION_CALL"), ("length", "MAX_TOKENS")]
)
@pytest.mark.parametrize("arguments", ['{"a":', '{"a": tru}', "[1]"])
def test_arguments_that_nobody_can_read_are_no_call(
    arguments: str, finish: str, word: str, *, is_stream: bool
) -> None:
    """The answer says so in Gemini's own words, or that it was cut. No client runs a function with invented ones."""
    if is_stream:
        begun, called = (
            {"content_delta": "Hi"},
            {"tool_call_delta": ToolCallDelta(0, "c1", "f", arguments)},
        )
        events = streamed(*(ResponseDelta(**one) for one in (begun, called, {"finish_reason": finish})))
        candidates = [event["candidates"][0] for event in events]
        candidate = {**candidates[0], **candidates[-1]}
        assert not any("content" in one for one in candidates[1:])
    else:
        response = answer(Segment(T.TEXT, "Hi"), call(arguments), finish_reason=finish)
        conversion = convert(response, GEMINI)
        candidate = load_json(conversion.value)["candidates"][0]
        assert conversion.report.names("message.tool_calls[0]")
    assert candidate["content"]["parts"] == [{"text": "Hi"}]
    assert candidate["finishReason"] == word
    message = f"Malformed function call: f({arguments})" if word != "MAX_TOKENS" else None
    assert candidate.get("finishMessage") == message


def test_media_are_data_or_an_address_and_foreign_parts_are_left_out() -> None:
    parts = parts_of(
        answer(
            Segment(T.MEDIA, "AAAA", {"encoding": "base64", "media_type": "image/png", "name": "a"}),
            Segment(T.MEDIA, "gs://b", {"encoding": "url", "media_type": "video/mp4", "thought": True}),
            Segment(T.MEDIA, "AAAA", {"encoding": "base64"}),
            Segment(T.MEDIA, "AAAA", {"type": "audio"}),
            Segment(T.MEDIA, "AAAA", {"encoding": "hex", "media_type": "image/png"}),
            Segment(T.TOOL_CALL, "6*7", {"type": "code_interpreter_call"}),
            Segment(T.REASONING, "", {"signature": "of another"}),
            Segment(T.REASONING, "", {"encrypted": "seal", "format": "crosswalk"}),
        )
    )
    assert parts == [
        {"inlineData": {"mimeType": "image/png", "displayName": "a", "data": "AAAA"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b"}, "thought": True},
        {"text": "", "thoughtSignature": "seal"},
    ]


def test_pages_that_are_cited_are_grounding() -> None:
    def cited(source: str, span: Any, title: str) -> Segment:
        return Segment(T.CITATION, "", {"title": title}, (CitationRef(source=source, span=span),))

    one, two = cited("https://a.example", (0, 2), "A"), cited("https://b.example", None, "")
    body = body_of(answer(Segment(T.TEXT, "Æb."), one, two, cited("doc-7", None, "")))
    assert body["candidates"][0]["groundingMetadata"] == {
        "groundingChunks": [
            {"web": {"uri": "https://a.example", "title": "A"}},
            {"web": {"uri": "https://b.example"}},
        ],
        "groundingSupports": [
            {"segment": {"startIndex": 0, "endIndex": 3, "text": "Æb"}, "groundingChunkIndices": [0]}
        ],
    }
    back = normalize(dump_json(body), "gemini")
    assert back.segments[1].annotations == one.annotations


def test_counts_are_in_geminis_parts() -> None:
    usage = UsageInfo(
        30,
        20,
        cached_tokens=8,
        reasoning_tokens=5,
        details=UsageDetails(text_input_tokens=10, image_input_tokens=20),
    )
    body = body_of(answer(Segment(T.TEXT, "x"), usage=usage))
    assert body["usageMetadata"] == {
        "promptTokenCount": 30,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "cachedContentTokenCount": 8,
        "totalTokenCount": 50,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 10},
            {"modality": "IMAGE", "tokenCount": 20},
        ],
    }
    assert normalize(dump_json(body), "gemini").usage == usage


@pytest.mark.parametrize(
    ("reason", "word"),
    [("stop", "STOP"), ("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("cancelled", "MAX_TOKENS")],
)
def test_every_way_to_end_has_a_word(reason: str, word: str) -> None:
    body = body_of(answer(Segment(T.TEXT, "x"), finish_reason=reason))
    assert body["candidates"][0]["finishReason"] == word


def test_a_refusal_is_the_message_of_a_filter() -> None:
    body = body_of(answer(Segment(T.REFUSAL, "No."), refusal="No."))
    assert body["candidates"] == [{"finishReason": "SAFETY", "finishMessage": "No.", "index": 0}]
    back = normalize(dump_json(body), "gemini")
    assert (back.refusal, back.finish_reason) == ("No.", FinishReason.CONTENT_FILTER)


def test_several_answers_and_their_probabilities() -> None:
    tops = (TokenLogprob("a", -0.5), TokenLogprob("b", -1.5))
    tokens = (TokenLogprob("a", -0.5, None, tops), TokenLogprob("?", None))
    other = Alternative(1, ChatMessage.assistant("b"), "length", segments=(Segment(T.TEXT, "b"),))
    body = body_of(answer(Segment(T.TEXT, "a"), logprobs=tokens, alternatives=[other]))
    first, second = body["candidates"]
    assert first["logprobsResult"] == {
        "chosenCandidates": [{"token": "a", "logProbability": -0.5}],
        "topCandidates": [
            {"candidates": [{"token": "a", "logProbability": -0.5}, {"token": "b", "logProbability": -1.5}]}
        ],
    }
    assert (second["finishReason"], second["index"]) == ("MAX_TOKENS", 1)
    assert "logprobsResult" not in second


def test_probabilities_may_stand_alone_and_another_answers_call_is_a_text() -> None:
    calling = ChatMessage.assistant(None, tool_calls=[ToolCall("c1", "f", "[1]")])
    other = Alternative(1, calling, "tool_calls", segments=(call("[1]"),))
    response = answer(Segment(T.TEXT, "a"), logprobs=(TokenLogprob("a", -0.5),), alternatives=[other])
    converted = convert(response, GEMINI, losses="report")
    first, _ = load_json(converted.value)["candidates"]
    assert first["logprobsResult"] == {"chosenCandidates": [{"token": "a", "logProbability": -0.5}]}
    rules = {loss.path: loss.rule.name for loss in converted.report.losses}
    assert rules["alternatives[0].message.tool_calls[0]"] == "unreadable-call"


def test_an_own_answer_has_only_what_gemini_sent() -> None:
    sent = {
        "candidates": [
            {
                "content": {"parts": [{"executableCode": {"language": "PYTHON"}}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            }
        ]
    }
    read = normalize(dump_json(sent), "gemini")
    assert body_of(from_json(to_json(read), ChatResponse)) == sent


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (ErrorInfo("rate_limit", "slow down"), 429, "RESOURCE_EXHAUSTED"),
        (ErrorInfo("server", "down", status=503, code="UNAVAILABLE"), 503, "UNAVAILABLE"),
        (ErrorInfo("server", "down"), 500, "INTERNAL"),
        (ErrorInfo("context_overflow", "long"), 400, "INVALID_ARGUMENT"),
    ],
)
def test_errors_have_googles_words(error: ErrorInfo, status: int, word: str) -> None:
    made = error_body(error, GEMINI)
    assert made.status == status
    assert load_json(made.value)["error"] == {"code": status, "message": error.message, "status": word}


# Streams.


def streamed(*deltas: ResponseDelta) -> list[Any]:
    numbered = [attrs.evolve(delta, index=number) for number, delta in enumerate(deltas)]
    sent = b"".join(convert_stream(numbered, GEMINI, id="a1", model="m", created=NOW))
    return [load_json(line.removeprefix(b"data: ")) for line in sent.split(b"\n\n") if line]


def fragment(index: int, text: str, id: str | None = None, name: str | None = None) -> ResponseDelta:
    return ResponseDelta(tool_call_delta=ToolCallDelta(index, id, name, text))


def parts_in(chunks: list[Any]) -> list[Any]:
    return [
        part
        for chunk in chunks
        for one in chunk.get("candidates", ())
        for part in one.get("content", {}).get("parts", ())
    ]


def test_text_comes_at_once_and_a_call_when_it_is_whole() -> None:
    chunks = streamed(
        ResponseDelta(reasoning_delta="hm"),
        ResponseDelta(content_delta="Look"),
        ResponseDelta(content_delta=":"),
        fragment(0, '{"a":', "c1", "f"),
        fragment(1, "{}", "c2", "g"),
        fragment(0, "1}"),
        ResponseDelta(finish_reason="tool_calls", usage=UsageInfo(3, 2)),
    )
    assert parts_in(chunks) == [
        {"text": "hm", "thought": True},
        {"text": "Look"},
        {"text": ":"},
        {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}},
        {"functionCall": {"id": "c2", "name": "g", "args": {}}},
    ]
    assert chunks[-1]["candidates"] == [{"finishReason": "STOP", "index": 0}]
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] == 5


def test_text_goes_on_after_a_part_that_is_left_out() -> None:
    chunks = streamed(
        ResponseDelta(content_delta="a"),
        ResponseDelta(segment=Segment(T.TOOL_CALL, "", {"type": "web_search_call"})),
        ResponseDelta(segment=Segment(T.SAFETY, "", {"of": "answer"})),
        ResponseDelta(content_delta="b"),
        ResponseDelta(finish_reason="stop"),
    )
    assert parts_in(chunks) == [{"text": "a"}, {"text": "b"}]


def test_a_stream_that_fails_ends_with_the_error() -> None:
    chunks = streamed(
        ResponseDelta(content_delta="a"),
        ResponseDelta(
            segment=Segment(T.ERROR, "down", {"kind": "server", "retryable": True}), finish_reason="error"
        ),
    )
    assert parts_in(chunks) == [{"text": "a"}]
    assert chunks[-1]["error"]["message"] == "down"


# Gemini's own.

KEPT_OTHERWISE = {
    "array": "an index of 0 that was left out",
    "budget": "a role without parts",
    "malformed_call": "an answer that failed is an error",
    "tools": "ids and arguments that Gemini left out",
    "vertex_arguments": "ids that Gemini left out, and digits of a time that Python does not have",
}
"""The captures that canonical JSON does not give back to the letter, with the reason."""


def own() -> list[Any]:
    return [
        pytest.param(capture, id=capture.case)
        for capture in load_captures(CAPTURES)
        if capture.body.lstrip().startswith(b"{") and b'"candidates"' in capture.body
    ]


@pytest.mark.parametrize("capture", own())
def test_what_was_geminis_comes_back_as_it_was(capture: Any) -> None:
    sent = load_json(capture.body)
    read = normalize(capture.body, "gemini", unknown="keep")
    assert convert(read, GEMINI).value == capture.body
    back = body_of(from_json(to_json(read), ChatResponse))
    if capture.case not in KEPT_OTHERWISE:
        for number, candidate in enumerate(back["candidates"]):
            if "index" not in sent["candidates"][number]:
                del candidate["index"]
        assert back == sent


def test_the_captures_that_differ_do_differ() -> None:
    names = {capture.case for capture in load_captures(CAPTURES)}
    assert names >= KEPT_OTHERWISE.keys()


@pytest.mark.parametrize("case", ["blocked", "blocked_stream", "server_tools_stream", "grounded_stream"])
def test_what_gemini_says_besides_the_text_stays(case: str) -> None:
    (capture,) = (one for one in load_captures(CAPTURES) if one.case == case)
    before = normalize(capture.body, "gemini")
    sent = b"".join(convert_stream(normalize_stream([capture.body], "gemini"), GEMINI))
    after = normalize(sent, "gemini")
    assert after.segments == before.segments
    assert (after.finish_reason, after.refusal) == (before.finish_reason, before.refusal)


def test_an_own_answer_of_another_shape_keeps_what_it_can() -> None:
    extensions = {
        "candidates": ["?", {"content": {"parts": "?"}, "new": 1}, {"content": {"parts": [{}]}, "index": 7}],
        "usageMetadata": {"toolUsePromptTokensDetails": ["?", {"modality": "TEXT", "tokenCount": "?"}]},
    }
    metadata = ResponseMetadata("gemini", "m", extensions=extensions)
    response = answer(Segment(T.TEXT, "x"), metadata=metadata, raw_finish_reason="STOP")
    body = convert(response, GEMINI)
    assert load_json(body.value)["candidates"][0]["content"]["parts"] == [{"text": "x"}]
    assert not isinstance(body, MappingError)
