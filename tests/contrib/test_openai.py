"""OpenAI's chat and completions, also as Azure serves them (provider document "OpenAI Chat Completions").

The captures are invented after that document: no recording of the service's own servers may be copied.
"""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import (
    ChatResponse,
    CitationRef,
    ContentFilterError,
    ErrorKind,
    FinishReason,
    Provenance,
    SafetyAnnotation,
    SegmentType,
    UnknownEventError,
    WireTypeError,
    normalize,
    normalize_stream,
)
from crosswalk.convert import convert_stream
from crosswalk.plugins import Recognition, UsageDetails
from crosswalk.testing import ProviderConformance
from crosswalk_openai import ChatDialect, plugin
from wires import body, chunk, one, read, sse, usage

T = SegmentType
SAFE = {"filtered": False, "severity": "safe"}
BAD = {"filtered": True, "severity": "medium"}


class TestOpenAIConformance(ProviderConformance):
    provider = "openai"
    captures = "../captures/openai"
    snapshots = "../../snapshots"
    sample = 20


def openai(*events: Any, done: bool = True, **options: Any) -> ChatResponse:
    return read("openai", sse(*events, done=done), **options)[1]


def kinds(response: ChatResponse) -> list[tuple[SegmentType, str]]:
    return [(segment.type, segment.content) for segment in response.segments]


def extensions(response: ChatResponse) -> Any:
    return response.metadata.extensions.thawed()


# ------------------------------------------------------------------------------------- sections 2 and 3


def test_a_dump_with_function_and_custom_keeps_both() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}, "custom": {"name": "f", "input": "x"}}
    response = one("openai", body({"content": None, "tool_calls": [call]}, "tool_calls"))
    assert response.tool_calls[0].arguments == "{}"
    assert extensions(response)["choices"][0]["message"]["tool_calls"][0]["custom"] == {
        "name": "f",
        "input": "x",
    }


@pytest.mark.parametrize(
    ("annotation", "segments", "left"),
    [
        ({"type": "file", "file": {"hash": "x"}}, 0, {"type": "file", "file": {"hash": "x"}}),
        ({"type": "url_citation", "url_citation": {}}, 0, {"type": "url_citation"}),
        ({"url_citation": {"url": "u"}}, 0, {"url_citation": {"url": "u"}}),
        ({"type": "url_citation", "url_citation": {"url": "u"}}, 1, None),
        (
            {"type": "url_citation", "url_citation": {"url": "u", "start_index": 3, "content": "c"}},
            1,
            {"url_citation": {"start_index": 3, "content": "c"}},
        ),
        ({"type": "url_citation", "url_citation": {"end_index": 3}}, 1, {"url_citation": {"end_index": 3}}),
    ],
)
def test_what_an_annotation_does_not_say_or_says_beside(annotation: Any, segments: int, left: Any) -> None:
    response = one("openai", body({"content": "x", "annotations": [annotation]}))
    assert sum(s.type is T.CITATION for s in response.segments) == segments
    message = extensions(response).get("choices", [{}])[0].get("message", {})
    assert message.get("annotations") == (None if left is None else [left])


def test_annotations_in_pieces_are_all_kept() -> None:
    odd = {"type": "note", "note": 1}
    response = openai(chunk({"annotations": [odd]}), chunk({"annotations": [odd]}), chunk({}, "stop"))
    assert extensions(response)["choices"][0]["delta"]["annotations"] == [odd, odd]


def test_audio_that_says_nothing_is_none() -> None:
    audio = {"id": "", "data": "", "expires_at": 0, "transcript": ""}
    response = one("openai", body({"content": "x", "audio": audio}))
    assert kinds(response) == [(T.TEXT, "x")]
    assert extensions(response)["choices"][0]["message"]["audio"] == audio


def test_moderation_that_flags_something() -> None:
    result = {"flagged": True, "categories": {"hate": False, "violence": True}}
    clean = {"flagged": False, "categories": {"hate": False}}
    moderation = {"input": {"results": [result]}, "output": {"results": [clean]}}
    response = openai(chunk({"content": "No."}), chunk({}, "stop"), chunk(moderation=moderation))
    assert kinds(response) == [(T.TEXT, "No."), (T.SAFETY, "")]
    assert response.segments[1].annotations == (SafetyAnnotation("violence"),)
    assert response.segments[1].metadata.thawed() == {"target": "prompt"}
    assert extensions(response)["moderation"] == moderation


def test_moderation_that_failed_stays_in_the_extensions() -> None:
    failed = {"input": {"type": "error", "code": "x", "message": "down"}}
    response = one("openai", body({"content": "x"}, moderation=failed))
    assert kinds(response) == [(T.TEXT, "x")]
    assert extensions(response)["moderation"] == failed


@pytest.mark.parametrize("event", [{"object": "thread.message"}, {"type": "ping"}])
def test_an_event_of_another_kind_is_unknown(event: Any) -> None:
    with pytest.raises(UnknownEventError):
        one("openai", event)


# ---------------------------------------------------------------------------------- sections 4 and 5


def test_the_end_of_the_first_models_with_images() -> None:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "A"},
        "finish_details": {"type": "max_tokens"},
    }
    response = one("openai", {**body({}), "choices": [choice]})
    assert (response.finish_reason, response.raw_finish_reason) == (FinishReason.LENGTH, "max_tokens")
    told = one("openai", {**body({}), "choices": [{**choice, "finish_reason": "stop"}]})
    assert told.raw_finish_reason == "stop"


def test_a_chunk_of_verdicts_calls_itself_nothing() -> None:
    """Its empty name does not take the place of the one that the chunks of text have."""
    response = openai(chunk({"content": "x"}, "stop"), annotation(content_filter_results={"violence": SAFE}))
    assert extensions(response)["object"] == "chat.completion.chunk"


def test_usage_by_modality() -> None:
    inputs = {"text_tokens": 20, "audio_tokens": 9, "image_tokens": 8, "video_tokens": 3, "smell_tokens": 1}
    outputs = {"text_tokens": 2, "audio_tokens": 16, "image_tokens": 0}
    counts = usage(40, 18, prompt_tokens_details=inputs, completion_tokens_details=outputs)
    response = openai(chunk({"content": "x"}, "stop"), chunk(usage=counts))
    assert response.usage.details == UsageDetails(20, 9, 8, 3, 2, 16, 0)
    assert extensions(response)["usage"] == {"prompt_tokens_details": {"smell_tokens": 1}}
    assert not {path for path in response.metadata.provenance if path.startswith("usage")}


def test_a_count_by_modality_above_its_whole_is_marked() -> None:
    counts = usage(
        4, 3, prompt_tokens_details={"image_tokens": 5}, completion_tokens_details={"audio_tokens": 3}
    )
    response = openai(chunk({"content": "x"}, "stop"), chunk(usage=counts))
    marks = {path: mark for path, mark in response.metadata.provenance.items() if path.startswith("usage")}
    assert marks == {"usage.details.image_input_tokens": "mistyped"}


# ------------------------------------------------------------------------------------------ section 7


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (400, {"code": "context_length_exceeded", "message": "too long"}, ErrorKind.CONTEXT_OVERFLOW, False),
        (401, {"code": "invalid_api_key", "message": "Incorrect API key"}, ErrorKind.AUTHENTICATION, False),
        (404, {"code": "model_not_found", "message": "no"}, ErrorKind.MODEL_UNAVAILABLE, False),
        (429, {"code": "rate_limit_exceeded", "message": "slow"}, ErrorKind.RATE_LIMIT, True),
        (429, {"code": "insufficient_quota", "message": "pay"}, ErrorKind.QUOTA, False),
        (500, {"type": "server_error", "message": "oops"}, ErrorKind.SERVER, True),
    ],
)
def test_errors(status: int, error: Any, kind: ErrorKind, retryable: bool) -> None:
    info = one("openai", {"error": error}, status=status).error_info
    assert info is not None
    assert (info.kind, info.retryable, info.status) == (kind, retryable, status)


# ------------------------------------------------------------------------------------ section 8: Azure


def azure(content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, **more}
    return chunk() | {"choices": [choice if content is None else {**choice, "delta": content}]}


def header(**results: Any) -> dict[str, Any]:
    prompt = [{"prompt_index": 0, "content_filter_results": results}]
    return {"id": "", "object": "", "created": 0, "model": "", "prompt_filter_results": prompt, "choices": []}


def annotation(**more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": None, "content_filter_offsets": {"end_offset": 70}, **more}
    return {"id": "", "object": "", "created": 0, "model": "", "choices": [choice]}


@pytest.mark.parametrize(
    ("category", "verdict", "annotations"),
    [
        ("violence", BAD, (SafetyAnnotation("violence", "medium", True),)),
        ("hate", {"filtered": False, "severity": "low"}, (SafetyAnnotation("hate", "low", False),)),
        (
            "jailbreak",
            {"filtered": False, "detected": True},
            (SafetyAnnotation("jailbreak", "detected", False),),
        ),
        (
            "profanity",
            {"filtered": True, "detected": True},
            (SafetyAnnotation("profanity", "detected", True),),
        ),
        ("custom_blocklists", {"filtered": True}, (SafetyAnnotation("custom_blocklists", None, True),)),
        (
            "custom_blocklists",
            [{"filtered": True, "id": "mine"}, "odd"],
            (SafetyAnnotation("custom_blocklists", None, True),),
        ),
        (
            "protected_material_code",
            {
                "filtered": False,
                "detected": True,
                "citation": {"URL": "https://code.example", "license": "MIT"},
            },
            (
                SafetyAnnotation("protected_material_code", "detected", False),
                CitationRef(source="https://code.example"),
            ),
        ),
        ("error", {"code": "content_filter_error", "message": "The contents are not filtered"}, None),
    ],
)
def test_a_verdict_on_the_text(category: str, verdict: Any, annotations: Any) -> None:
    results = {"sexual": SAFE, category: verdict}
    whole = body({"content": "x"})
    whole["choices"][0]["content_filter_results"] = results
    response = one("openai", whole)
    expected = [] if annotations is None else [annotations]
    assert [s.annotations for s in response.segments if s.type is T.SAFETY] == expected
    assert extensions(response)["choices"][0]["content_filter_results"] == results


def test_a_verdict_that_is_repeated_is_one_segment() -> None:
    response = openai(
        azure({"content": "a"}, content_filter_results={"violence": BAD}),
        azure({"content": "b"}, content_filter_results={"violence": BAD}),
        azure({}, "stop", content_filter_results={"violence": {**BAD, "severity": "high"}}),
    )
    assert kinds(response) == [(T.TEXT, "a"), (T.SAFETY, ""), (T.TEXT, "b"), (T.SAFETY, "")]


@pytest.mark.parametrize("key", ["prompt_filter_results", "prompt_annotations"])
def test_a_verdict_on_the_prompt_comes_first(key: str) -> None:
    found = [
        {"prompt_index": 1, "content_filter_results": {"violence": BAD}},
        {"content_filter_results": None},
    ]
    response = one("openai", body({"content": "x"}, **{key: found}))
    assert kinds(response) == [(T.SAFETY, ""), (T.TEXT, "x")]
    assert response.segments[0].metadata.thawed() == {"target": "prompt", "prompt_index": 1}


def test_an_annotation_may_come_after_the_end() -> None:
    response = openai(
        header(hate=SAFE),
        azure({"content": "Hello"}),
        azure({}, "stop"),
        annotation(content_filter_results={"violence": {**BAD, "filtered": False}}),
    )
    assert (response.finish_reason, kinds(response)) == (
        FinishReason.STOP,
        [(T.TEXT, "Hello"), (T.SAFETY, "")],
    )
    assert extensions(response)["choices"][0]["content_filter_offsets"] == {"end_offset": 70}


def test_a_violation_ends_the_stream_without_a_delta() -> None:
    end = annotation(finish_reason="content_filter", content_filter_results={"violence": BAD})
    response = openai(azure({"content": "He drew"}), azure({}, "stop"), end)
    assert (response.text, response.finish_reason) == ("He drew", FinishReason.CONTENT_FILTER)


def test_a_blocked_prompt() -> None:
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_results": {"violence": BAD}}
    error = {
        "message": "filtered",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "innererror": inner,
    }
    response = one("openai", {"error": {**error, "status": 400}}, status=400)
    assert response.error_info is not None
    assert (response.error_info.kind, response.error_info.retryable) == (ErrorKind.CONTENT_FILTER, False)
    assert response.error_info.raw["error"]["innererror"] == inner
    with pytest.raises(ContentFilterError):
        response.raise_for_error()


# -------------------------------------------------------------------------------- wrong types, detection


SIDES: list[tuple[Any, Any, str]] = [
    ({"annotations": "x"}, {}, "choices[0].message.annotations"),
    ({"annotations": ["x"]}, {}, "choices[0].message.annotations[0]"),
    ({"annotations": [{"type": 7}]}, {}, "choices[0].message.annotations[0].type"),
    (
        {"annotations": [{"type": "url_citation", "url_citation": "x"}]},
        {},
        "choices[0].message.annotations[0].url_citation",
    ),
    (
        {"annotations": [{"type": "url_citation", "url_citation": {"url": "u", "start_index": "0"}}]},
        {},
        "choices[0].message.annotations[0].url_citation.start_index",
    ),
    ({"audio": "x"}, {}, "choices[0].message.audio"),
    ({"audio": {"data": 7}}, {}, "choices[0].message.audio.data"),
    ({"audio": {"data": "x", "expires_at": "soon"}}, {}, "choices[0].message.audio.expires_at"),
    ({"images": "x"}, {}, "choices[0].message.images"),
    ({"images": [{"image_url": "x"}]}, {}, "choices[0].message.images[0].image_url"),
    ({}, {"prompt_filter_results": "x"}, "prompt_filter_results"),
    ({}, {"prompt_filter_results": ["x"]}, "prompt_filter_results[0]"),
    (
        {},
        {"prompt_filter_results": [{"content_filter_results": 7}]},
        "prompt_filter_results[0].content_filter_results",
    ),
    (
        {},
        {"prompt_filter_results": [{"prompt_index": "0", "content_filter_results": {"violence": BAD}}]},
        "prompt_filter_results[0].prompt_index",
    ),
    (
        {},
        {"prompt_filter_results": [{"content_filter_results": {"hate": {"filtered": True, "severity": 2}}}]},
        "prompt_filter_results[0].content_filter_results.hate.severity",
    ),
    (
        {},
        {"prompt_filter_results": [{"content_filter_results": {"x": {"detected": True, "citation": "y"}}}]},
        "prompt_filter_results[0].content_filter_results.x.citation",
    ),
    ({}, {"moderation": "x"}, "moderation"),
    ({}, {"moderation": {"input": 7}}, "moderation.input"),
    ({}, {"moderation": {"input": {"results": [{"flagged": "x"}]}}}, "moderation.input.results[0].flagged"),
    (
        {},
        {"moderation": {"input": {"results": [{"flagged": True, "categories": 7}]}}},
        "moderation.input.results[0].categories",
    ),
]


@pytest.mark.parametrize(("message", "more", "path"), SIDES, ids=[path for *_, path in SIDES])
def test_a_side_field_of_another_type_costs_the_field(message: Any, more: Any, path: str) -> None:
    """Not the answer: it stays where it stood, noted as mistyped."""
    event = body({"content": "x", **message}, **more)
    response = one("openai", event)
    assert (response.text, response.finish_reason) == ("x", FinishReason.STOP)
    assert response.metadata.provenance[f"metadata.extensions.{path}"] is Provenance.MISTYPED
    value, sent = extensions(response), event
    for key in path.replace("[", ".").replace("]", "").split("."):
        value, sent = (holder[int(key) if key.isdigit() else key] for holder in (value, sent))
    assert value == sent


@pytest.mark.parametrize("severity", [7, ["safe"], {"is": "safe"}])
def test_a_verdict_of_a_wrong_severity_is_kept_with_the_text(severity: Any) -> None:
    event = body({"content": "x"})
    event["choices"][0]["content_filter_results"] = {"hate": {"filtered": False, "severity": severity}}
    response = one("openai", event)
    assert kinds(response) == [(T.TEXT, "x")]
    path = "metadata.extensions.choices[0].content_filter_results.hate.severity"
    assert response.metadata.provenance[path] is Provenance.MISTYPED


@pytest.mark.parametrize("number", [-1.7e-06, 0])
def test_a_numeric_logprobs_costs_the_log_probabilities(number: float) -> None:
    """Together's, by way of a gateway."""
    whole = body({"content": "Hello"})
    piece = chunk({"content": "Hello"}, "stop")
    for event in (whole, piece):
        event["choices"][0]["logprobs"] = number
        response = openai(event)
        assert (response.text, response.logprobs) == ("Hello", None)
        assert extensions(response)["choices"][0]["logprobs"] == number
        noted = response.metadata.provenance["metadata.extensions.choices[0].logprobs"]
        assert noted is Provenance.MISTYPED


@pytest.mark.parametrize(
    ("choice", "place"),
    [
        ({"message": {"content": "x", "tool_calls": [7]}}, "choices[0].message.tool_calls[0]"),
        ({"message": {"content": "x"}, "finish_reason": 7}, "choices[0].finish_reason"),
        ({"message": {"content": "x"}, "finish_details": {"type": 7}}, "choices[0].finish_details.type"),
        (
            {"message": {"content": "x", "reasoning_details": [{"type": "reasoning.text", "text": 7}]}},
            "choices[0].message.reasoning_details[0].text",
        ),
    ],
)
def test_what_decides_the_answer_raises_and_the_text_is_kept(choice: Any, place: str) -> None:
    with pytest.raises(WireTypeError) as caught:
        one("openai", body({}) | {"choices": [choice]})
    assert caught.value.place == f"event 1, {place}"
    assert caught.value.partial is not None
    assert caught.value.partial.text == "x"


# ------------------------------------------------------------------- what gateways in front of it do


def test_snowflakes_reasoning_details_are_reasoning() -> None:
    detail = {"type": "reasoning.text", "format": "anthropic-claude-v1", "id": "r-1", "index": 0}
    whole = one(
        "openai",
        body({"content": "4", "reasoning_details": [{**detail, "text": "Hm.", "signature": "c2ln"}]}),
    )
    pieces = openai(
        chunk({"reasoning_details": [{**detail, "text": "H"}]}),
        chunk({"reasoning_details": [{**detail, "text": "m."}]}),
        chunk({"reasoning_details": [{**detail, "signature": "c2ln"}]}),
        chunk({"content": "4"}, "stop"),
    )
    for response in (whole, pieces):
        assert kinds(response) == [(T.REASONING, "Hm."), (T.TEXT, "4")]
        assert response.segments[0].metadata.thawed() == {**detail, "signature": "c2ln"}


def test_azures_deepseek_says_tool_call() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = openai(chunk({"tool_calls": [call]}), chunk({}, "tool_call"))
    assert (response.finish_reason, response.raw_finish_reason) == (FinishReason.TOOL_CALLS, "tool_call")


def test_no_object_is_no_event() -> None:
    with pytest.raises(WireTypeError):
        normalize(b"[1]", "openai")


@pytest.mark.parametrize(
    ("event", "recognition"),
    [
        (chunk({"content": "x"}), Recognition.POSSIBLE),
        (chunk({"content": "x"}, obfuscation="k3"), Recognition.CERTAIN),
        (header(hate=SAFE), Recognition.CERTAIN),
        (azure({"content": "x"}, content_filter_results={}), Recognition.CERTAIN),
        ({"choices": ["odd"]}, Recognition.POSSIBLE),
        ({"error": {"message": "x"}}, Recognition.POSSIBLE),
        ({"choices": "odd"}, Recognition.NO),
        ({"content": []}, Recognition.NO),
        ([], Recognition.NO),
    ],
)
def test_recognition(event: Any, recognition: Recognition) -> None:
    assert plugin.recognizes(event) is recognition


def test_the_building_block_recognizes_no_mark() -> None:
    assert ChatDialect().recognizes(header(hate=SAFE)) is Recognition.POSSIBLE


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (
            {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
            Recognition.CERTAIN,
        ),
        ({"code": "content_filter", "innererror": None}, Recognition.POSSIBLE),
        ("No.", Recognition.POSSIBLE),
    ],
)
def test_azures_inner_error_is_a_mark(error: Any, how: Recognition) -> None:
    assert plugin.recognizes({"error": error}) is how


def test_a_streamed_sound_reaches_a_client_in_its_pieces() -> None:
    pieces: list[dict[str, Any]] = [{"id": "audio_1", "transcript": "Hi"}, {"data": "QQ=="}, {"data": "QkM="}]
    chunks = [
        {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, **choice}]}
        for choice in (
            *({"delta": {"audio": piece}} for piece in pieces),
            {"delta": {}, "finish_reason": "stop"},
        )
    ]
    stream = normalize_stream(chunks, "openai")
    written = b"".join(convert_stream(stream, "openai-chat", losses="report"))
    again = normalize(written, "openai")
    assert again.segments == stream.response.segments
    (sound,) = again.segments
    assert (sound.content, sound.metadata["transcript"]) == ("QUJD", "Hi")
