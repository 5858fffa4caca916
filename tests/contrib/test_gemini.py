"""Google Gemini: the fact sheet as a table, trap by trap, and the conformance kit over captures of the project's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import (
    ChatMessage,
    ChatResponse,
    CitationRef,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    InvalidJSONError,
    LineTooLongError,
    MappingError,
    NestingTooDeepError,
    SafetyAnnotation,
    SegmentType,
    StreamTooLargeError,
    TrailingContentError,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    from_json,
    normalize,
    normalize_stream,
    to_json,
)
from crosswalk.mapping.reader import Reader
from crosswalk.plugin.registry import registry
from crosswalk.plugins import Limits, MappingState, Recognition
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.testing import ProviderConformance
from crosswalk_gemini import Gemini, plugin
from crosswalk_gemini.arrays import ArrayDecoder
from crosswalk_gemini.parts import ArgumentsWriter
from tries import tries


class TestGemini(ProviderConformance):
    provider = "gemini"
    captures = "../captures/gemini"
    snapshots = "../../snapshots"


VAGUE = "FINISH_REASON_UNSPECIFIED"


def read(*chunks: Any, status: int = 200, **options: Any) -> ChatResponse:
    """The result of one chunk as a body, of several as a stream."""
    if len(chunks) == 1:
        return normalize(orjson.dumps(chunks[0]), "gemini", status=status, **options)
    sent = b"".join(b"data: " + orjson.dumps(chunk) + b"\r\n\r\n" for chunk in chunks)
    return normalize(sent, "gemini", status=status, **options)


def chunk(*parts: Any, usage: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, **more}
    if finish is not None:
        candidate["finishReason"] = finish
    made: dict[str, Any] = {"candidates": [candidate], "modelVersion": "gemini-x", "responseId": "r-1"}
    if usage is not None:
        made["usageMetadata"] = usage
    return made


def whole(*parts: Any, **more: Any) -> dict[str, Any]:
    return chunk(*parts, **{"finish": "STOP", **more})


def segments(response: ChatResponse) -> list[tuple[str, str, dict[str, Any]]]:
    return [(s.type.value, s.content, s.metadata.thawed()) for s in response.segments]


def mistyped(response: ChatResponse) -> set[str]:
    """The places in the extensions with a value that provenance marks as mistyped."""
    notes = response.metadata.provenance.items()
    return {path.removeprefix("metadata.extensions.") for path, note in notes if note == "mistyped"}


def candidate_left(response: ChatResponse) -> Any:
    return response.metadata.extensions.thawed()["candidates"][0]


# Section 2: who answered.


@pytest.mark.parametrize("time", ["yesterday", "2026-03-04T05:06:07", "0001-01-01T00:00:00+10:00"])
def test_what_is_no_time_stays(time: str) -> None:
    response = read({**whole({"text": "Hi"}), "createTime": time})
    assert response.metadata.extensions == {"createTime": time}
    assert response.metadata.provenance["created"] == "synthetic"


def test_a_time_that_is_written_otherwise_is_read_and_stays() -> None:
    response = read({**whole({"text": "Hi"}), "createTime": "2026-03-04T05:06:07Z"})
    assert response.created.year == 2026
    assert response.metadata.extensions == {}
    response = read({**whole({"text": "Hi"}), "createTime": "2026-05-19T16:59:42.5+02:00"})
    assert response.metadata.extensions == {"createTime": "2026-05-19T16:59:42.5+02:00"}


# Section 2.1: parts.


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"text": "A"}, [("text", "A", {"signature": "Ag=="})]),
        ({"text": ""}, [("text", "", {"signature": "Ag=="})]),
        ({}, [("text", "", {"signature": "Ag=="})]),
        (
            {"text": "A", "thought": True},
            [("reasoning", "A", {"signature": "Ag=="})],
        ),
        ({"text": "", "thought": True}, [("reasoning", "", {"signature": "Ag=="})]),
        (
            {"functionCall": {"name": "f", "id": "c"}},
            [("tool_call", "{}", {"id": "c", "name": "f", "signature": "Ag=="})],
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
            [("media", "iVBO", {"encoding": "base64", "signature": "Ag==", "media_type": "image/png"})],
        ),
    ],
)
def test_a_signature_joins_its_part(part: dict[str, Any], expected: list[Any]) -> None:
    body = read(whole({**part, "thoughtSignature": "Ag=="}))
    assert segments(body) == expected
    stream = read(chunk({**part, "thoughtSignature": "Ag=="}), whole({"text": ""}))
    assert segments(stream) == expected


def test_media_keep_type_name_and_whether_they_are_thoughts() -> None:
    audio = {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAAA", "displayName": "a.pcm"}
    file = {"mimeType": "video/mp4", "fileUri": "gs://b/a.mp4"}
    response = read(whole({"inlineData": audio, "thought": True}, {"fileData": file}, {"inlineData": {}}))
    assert segments(response) == [
        (
            "media",
            "AAAA",
            {"encoding": "base64", "media_type": audio["mimeType"], "name": "a.pcm", "thought": True},
        ),
        ("media", "gs://b/a.mp4", {"encoding": "url", "media_type": "video/mp4"}),
        ("media", "", {"encoding": "base64"}),
    ]
    assert response.metadata.extensions == {}


def test_what_is_said_about_a_part_and_parts_of_other_kinds_stay_in_their_place() -> None:
    parts = ({"text": "A"}, {"text": "B", "partMetadata": {"n": 1}}, {"audioTranscription": {"text": "C"}})
    left = candidate_left(read(whole(*parts)))
    kept = [{}, {"partMetadata": {"n": 1}}, {"audioTranscription": {"text": "C"}}]
    assert left == {"index": 0, "content": {"parts": kept}}


def test_equal_rests_of_parts_are_two() -> None:
    part = {"text": "A", "videoMetadata": {"fps": 1}}
    left = candidate_left(read(chunk(part), chunk(part), whole()))
    assert left["content"]["parts"] == [{"videoMetadata": {"fps": 1}}] * 2


def test_a_role_that_is_not_the_models_stays() -> None:
    body = whole({"text": "Hi"})
    body["candidates"][0]["content"]["role"] = "user"
    assert candidate_left(read(body)) == {"index": 0, "content": {"role": "user"}}


# Section 3: calls.


def test_two_calls_of_one_name_without_ids_are_two_and_absent_args_are_an_empty_object() -> None:
    calls = ({"functionCall": {"name": "f", "args": {"a": 1}}}, {"functionCall": {"name": "f"}})
    for response in (read(whole(*calls)), read(chunk(calls[0]), chunk(calls[1]), whole())):
        assert [(c.name, c.arguments) for c in response.tool_calls] == [("f", '{"a":1}'), ("f", "{}")]
        assert response.finish_reason is FinishReason.TOOL_CALLS
        assert response.raw_finish_reason == "STOP"
        assert response.metadata.provenance["message.tool_calls[1].id"] == "synthetic"


def test_a_call_without_a_name_is_none() -> None:
    with pytest.raises(WireTypeError, match=r"functionCall\.name"):
        read(whole({"functionCall": {"args": {}}}))


def arguments(*calls: dict[str, Any], finish: str = "STOP") -> ChatResponse:
    return read(*(chunk({"functionCall": call}) for call in calls), whole(finish=finish))


OPEN = {"name": "f", "willContinue": True}


def piece(path: Any, value: Any, kind: str = "stringValue", *, more: bool = True) -> dict[str, Any]:
    call: dict[str, Any] = {"partialArgs": [{"jsonPath": path, kind: value}]}
    return {**call, "willContinue": True} if more else call


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], "{}"),
        ([piece("$.a", "x")], '{"a":"x"}'),
        ([piece("$.a", 'x"'), piece("$.a", "é\n"), piece("$.a", "")], '{"a":"x\\"é\\n"}'),
        ([piece("$.a", ""), piece("$.b", 1, "numberValue")], '{"a":"","b":1}'),
        ([piece("$['a b']", False, "boolValue"), piece('$["c"].d', 0.5, "numberValue")], None),
        ([piece("$.a[0]", "x"), piece("$.a[1]", "y"), piece("$.b", "z")], '{"a":["x","y"],"b":"z"}'),
        ([piece("$.a[0][0].b", "x"), piece("$.a[0][1]", "y")], '{"a":[[{"b":"x"},"y"]]}'),
        ([piece("$.a", None, "nullValue"), piece("$.b", "NULL_VALUE", "nullValue")], '{"a":null,"b":null}'),
        ([piece("$.a.b.c", "x"), piece("$.a.d", "y"), piece("$.e", "z")], None),
    ],
)
def test_arguments_that_come_path_by_path(pieces: list[dict[str, Any]], expected: str | None) -> None:
    for ending in ([{}], [], [{"willContinue": False}, {}]):
        call = arguments(OPEN, *pieces, *ending).tool_calls[0]
        assert isinstance(call.parsed(), dict)
        assert expected is None or call.arguments == expected


def test_a_call_may_end_with_its_last_piece_and_another_begin() -> None:
    first = {**OPEN, **piece("$.a", "x")}
    response = arguments(first, piece("$.b", "y", more=False), {}, {"name": "g"}, OPEN, {"name": "h"})
    assert [(c.name, c.arguments) for c in response.tool_calls] == [
        ("f", '{"a":"x","b":"y"}'),
        ("g", "{}"),
        ("f", "{}"),
        ("h", "{}"),
    ]


def test_a_late_id_is_the_calls() -> None:
    assert arguments(OPEN, {"id": "c-1", "willContinue": True}).tool_calls[0].id == "c-1"


def test_a_piece_without_a_value_says_nothing_and_stays() -> None:
    response = arguments(OPEN, {"partialArgs": [{"jsonPath": "$.a"}], "willContinue": True})
    assert response.tool_calls[0].arguments == "{}"
    kept = [part["functionCall"] for part in candidate_left(response)["content"]["parts"]]
    assert kept[1] == {"partialArgs": [{"jsonPath": "$.a"}], "willContinue": True}


def test_arguments_that_a_limit_cut_stay_cut() -> None:
    response = arguments(OPEN, piece("$.a", "x"), finish="MAX_TOKENS")
    assert response.finish_reason is FinishReason.LENGTH
    assert response.tool_calls[0].arguments == '{"a":"x'


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("a", "x")],
        [piece("$", "x")],
        [piece("$[0]", "x")],
        [piece("$.a[", "x")],
        [piece(None, "x")],
        [piece("$.a", 1, "nullValue")],
        [piece("$.a", "1", "numberValue")],
        [piece("$.a", "1", "boolValue")],
        [piece("$.a[1]", "x")],
        [piece("$.a[0]", "x"), piece("$.a.b", "y")],
        [piece("$.a.b", "x"), piece("$.c", "y"), piece("$.a.d", "z")],
        [piece("$.a.b", "x"), piece("$.a[1]", "y")],
        [piece("$.a", 1, "numberValue"), piece("$.a", 1, "numberValue")],
        [{"args": {"a": 1}, "willContinue": True}],
        [{"partialArgs": ["x"], "willContinue": True}],
    ],
)
def test_a_path_that_does_not_lead_on_is_an_error_and_not_a_wrong_argument(pieces: list[Any]) -> None:
    with pytest.raises(WireTypeError):
        arguments(OPEN, *pieces)


def test_nothing_written_needs_no_end() -> None:
    assert ArgumentsWriter().close() == ""


# Section 4: ends.


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("LANGUAGE", "content_filter"),
        ("BLOCKLIST", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("SPII", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("IMAGE_PROHIBITED_CONTENT", "content_filter"),
        ("IMAGE_RECITATION", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("ESCALATION", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("TOO_MANY_TOOL_CALLS", "error"),
        ("MISSING_THOUGHT_SIGNATURE", "error"),
        ("MALFORMED_RESPONSE", "error"),
        ("PUP_LIMITED_DISABLED", "error"),
        ("OTHER", "error"),
        ("IMAGE_OTHER", "error"),
        ("NO_IMAGE", "error"),
        ("FINISH_REASON_UNSPECIFIED", "stop"),
    ],
)
def test_finish_words(word: str, reason: str) -> None:
    response = read(whole({"text": "Hi"}, finish=word))
    assert response.finish_reason == reason
    assert response.raw_finish_reason == word
    assert response.text == "Hi"
    assert response.is_complete is (word == "STOP")


@pytest.mark.parametrize(
    "parts", [(), ({"text": "Hm", "thought": True},), ({"inlineData": {"data": "AA"}, "thought": True},)]
)
def test_a_vague_end_of_nothing_is_an_error(parts: tuple[Any, ...]) -> None:
    response = read(whole(*parts, finish="FINISH_REASON_UNSPECIFIED"))
    assert response.finish_reason is FinishReason.ERROR
    assert response.raw_finish_reason == "FINISH_REASON_UNSPECIFIED"
    assert response.error_info is not None
    assert response.error_info.code == "FINISH_REASON_UNSPECIFIED"


@pytest.mark.parametrize("word", ["NO_IMAGE", "IMAGE_OTHER", "OTHER"])
def test_a_failed_answer_keeps_its_parts_and_counts_and_goes_back(word: str) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AA"}}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    answers = [
        read({**whole({"text": "Hi"}, picture, finish=ending), "usageMetadata": usage})
        for ending in ("STOP", word)
    ]
    assert [answer.finish_reason for answer in answers] == ["stop", "error"]
    failed = answers[1]
    assert (failed.text, failed.usage.prompt_tokens, failed.usage.completion_tokens) == ("Hi", 3, 2)
    assert failed.segments[:-1] == answers[0].segments
    assert failed.error_info is not None
    assert (failed.error_info.code, failed.error_info.retryable) == (word, False)
    bodies = [
        build_http_request(
            ChatRequest(
                [ChatMessage.user("Draw"), answer, ChatMessage.user("Again")], model="gemini-2.5-flash-image"
            ),
            "gemini",
        ).body
        for answer in answers
    ]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("word", ["FINISH_REASON_UNSPECIFIED", "0", 0])
@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"text": "Hi"}, "stop"),
        ({"inlineData": {"data": "AA"}}, "stop"),
        ({"functionCall": {"name": "go", "args": {}}}, "tool_calls"),
    ],
)
def test_a_vague_end_is_not_a_complete_one(word: Any, part: dict[str, Any], reason: str) -> None:
    """It says nothing of the end, so the answer is readable, and nobody knows that it is whole."""
    body = whole(part, finish=word)
    for response in (read(body), read(chunk({"text": "Hm", "thought": True}), body)):
        assert (response.finish_reason, response.raw_finish_reason) == (reason, str(word))
        assert (response.is_complete, response.incomplete_reason) == (False, "unknown_finish_reason")
        assert response.metadata.provenance["finish_reason"] == "absent"
        assert from_json(to_json(response), ChatResponse).incomplete_reason == "unknown_finish_reason"


def test_a_vague_end_of_the_second_candidate_is_its_own() -> None:
    first, second = (whole({"text": "Hi"}, finish=word)["candidates"][0] for word in ("STOP", VAGUE))
    response = read({"candidates": [first, {**second, "index": 1}]})
    assert response.is_complete
    assert response.alternatives[0].incomplete_reason == "unknown_finish_reason"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((VAGUE, "STOP"), None),
        ((0, 0, 1), None),
        (("STOP", VAGUE), None),
        ((VAGUE, "MAX_TOKENS"), "length"),
        ((VAGUE, VAGUE), "unknown_finish_reason"),
    ],
)
def test_a_vague_word_gives_way_to_one_that_says_something(
    words: tuple[Any, ...], reason: str | None
) -> None:
    """Some clients write the enum's default into each chunk."""
    response = read(*(chunk({"text": "Hi"}, finish=word) for word in words))
    assert (response.incomplete_reason, response.is_complete) == (reason, reason is None)
    assert response.text == "Hi" * len(words)


@pytest.mark.parametrize(
    ("number", "reason"), [(1, "stop"), (2, "length"), (3, "content_filter"), (8, "content_filter")]
)
def test_an_enum_may_come_as_a_number_which_stays(number: int, reason: str) -> None:
    body = whole({"text": "Hi"})
    body["candidates"][0]["finishReason"] = number
    response = read(body)
    assert response.finish_reason == reason
    assert response.raw_finish_reason == str(number)
    assert candidate_left(response) == {"index": 0, "finishReason": number}


def test_a_failed_answer_says_why_and_keeps_what_came() -> None:
    message = "Malformed function call: print(x"
    failed = whole(finish="MALFORMED_FUNCTION_CALL", finishMessage=message)
    for response in (read(failed), read(chunk({"text": "Well,"}), failed)):
        assert response.finish_reason is FinishReason.ERROR
        assert response.refusal == message
        assert response.error_info is not None
        assert response.error_info.kind is ErrorKind.TOOL_CALL_VALIDATION
        assert response.raw_finish_reason == "MALFORMED_FUNCTION_CALL"
        assert candidate_left(response) == {"index": 0, "finishMessage": message}
    assert response.text == "Well,"


def test_one_candidates_failure_is_not_the_others() -> None:
    body = whole({"text": "Hi"})
    body["candidates"].append({"index": 1, "finishReason": "MALFORMED_RESPONSE"})
    response = read(body)
    assert (response.finish_reason, response.text) == ("stop", "Hi")
    (other,) = response.alternatives
    assert (other.finish_reason, other.raw_finish_reason) == ("error", "MALFORMED_RESPONSE")
    assert other.segments[0].type is SegmentType.ERROR


def test_the_message_of_a_filter_is_the_refusal() -> None:
    response = read(whole(finish="MODEL_ARMOR", finishMessage="Not this."))
    assert (response.finish_reason, response.refusal) == ("content_filter", "Not this.")
    assert response.metadata.extensions == {}


def test_a_second_finish_word_that_is_another_stays() -> None:
    response = read(whole({"text": "A"}), whole({"text": "B"}), whole(finish="RECITATION"))
    assert response.text == "AB"
    assert (response.finish_reason, response.raw_finish_reason) == ("content_filter", "RECITATION")
    assert candidate_left(response) == {"index": 0, "finishReason": "RECITATION"}


def test_a_block_in_mid_answer_counts_more_than_its_end() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    response = read(chunk({"text": "Hm"}), blocked)
    assert (response.text, response.finish_reason) == ("Hm", "content_filter")
    assert read({"promptFeedback": {"blockReason": 4}}).metadata.extensions == {
        "promptFeedback": {"blockReason": 4}
    }


@pytest.mark.parametrize(
    "chunks",
    [
        (chunk({"text": "Hi"}),),
        (chunk({"text": "Hi"}), chunk({"text": " there"})),
        ({"usageMetadata": {"promptTokenCount": 1}},),
        ({"candidates": [], "promptFeedback": {}},),
        ([],),
    ],
)
def test_no_end_is_no_answer(chunks: tuple[Any, ...]) -> None:
    with pytest.raises(IncompleteStreamError):
        read(*chunks)


# Section 5: usage.


@pytest.mark.parametrize(
    ("counts", "usage", "notes", "left"),
    [
        (
            {
                "promptTokenCount": 42,
                "candidatesTokenCount": 18,
                "thoughtsTokenCount": 64,
                "totalTokenCount": 124,
            },
            UsageInfo(42, 82, reasoning_tokens=64),
            {"usage.completion_tokens": "derived"},
            {},
        ),
        (
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 5,
                "candidatesTokenCount": 2,
                "totalTokenCount": 17,
            },
            UsageInfo(15, 2),
            {"usage.prompt_tokens": "derived"},
            {"toolUsePromptTokenCount": 5},
        ),
        (
            {
                "promptTokenCount": 10,
                "cachedContentTokenCount": 8,
                "candidatesTokenCount": 2,
                "totalTokenCount": 12,
            },
            UsageInfo(10, 2, cached_tokens=8),
            {},
            {},
        ),
        (
            {"promptTokenCount": 5, "thoughtsTokenCount": 100, "totalTokenCount": 105},
            UsageInfo(5, 100, reasoning_tokens=100),
            {},
            {},
        ),
        (
            {"promptTokenCount": 9, "totalTokenCount": 9},
            UsageInfo(9, 0),
            {"usage.completion_tokens": "absent", "usage.total_tokens": "absent"},
            {},
        ),
        (
            {"candidatesTokenCount": 9, "totalTokenCount": None},
            UsageInfo(0, 9),
            {"usage.prompt_tokens": "absent", "usage.total_tokens": "absent"},
            {},
        ),
        # A gateway that counts thoughts among the candidates' tokens.
        (
            {
                "promptTokenCount": 5,
                "candidatesTokenCount": 9,
                "thoughtsTokenCount": 4,
                "totalTokenCount": 14,
            },
            UsageInfo(5, 9, reasoning_tokens=4),
            {},
            {"totalTokenCount": 14},
        ),
        (
            {
                "promptTokenCount": 5,
                "candidatesTokenCount": 9,
                "totalTokenCount": 20,
                "trafficType": "ON_DEMAND",
            },
            UsageInfo(5, 9),
            {},
            {"totalTokenCount": 20, "trafficType": "ON_DEMAND"},
        ),
    ],
)
def test_usage_has_one_meaning(
    counts: dict[str, Any], usage: UsageInfo, notes: dict[str, str], left: dict[str, Any]
) -> None:
    metadata = (response := read(whole({"text": "Hi"}, usage=counts))).metadata
    assert response.usage == usage
    assert {k: v for k, v in metadata.provenance.items() if k.startswith("usage")} == notes
    assert metadata.extensions == ({"usageMetadata": left} if left else {})


def test_counts_are_cumulative_and_a_missing_one_takes_nothing_back() -> None:
    response = read(
        chunk({"text": "A"}, usage={"promptTokenCount": 7, "thoughtsTokenCount": 30, "totalTokenCount": 37}),
        chunk({"text": "B"}, usage={"promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9}),
        whole({"text": "C"}, usage={"candidatesTokenCount": 3, "trafficType": "ON_DEMAND"}),
        {"usageMetadata": {"trafficType": "ON_DEMAND"}},
    )
    assert response.usage == UsageInfo(7, 33, reasoning_tokens=30)


def test_a_total_that_once_said_more_is_kept_up_to_date() -> None:
    response = read(
        chunk({"text": "A"}, usage={"promptTokenCount": 7, "totalTokenCount": 9}),
        whole({"text": "B"}, usage={"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}),
    )
    assert response.metadata.extensions == {"usageMetadata": {"totalTokenCount": 10}}


# Section 7: errors.


def error(code: int, status: str, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, **more}}


@pytest.mark.parametrize(
    ("body", "kind", "retryable"),
    [
        (error(400, "INVALID_ARGUMENT"), "invalid_request", False),
        (error(400, "FAILED_PRECONDITION"), "invalid_request", False),
        (error(401, "UNAUTHENTICATED"), "authentication", False),
        (error(403, "PERMISSION_DENIED"), "permission", False),
        (error(404, "NOT_FOUND", "models/x is not found for API version v1beta"), "model_unavailable", False),
        (error(404, "NOT_FOUND", "Not found: cache content metadata 7."), "invalid_request", False),
        (error(429, "RESOURCE_EXHAUSTED"), "rate_limit", True),
        (error(499, "CANCELLED"), "timeout", False),
        (error(500, "INTERNAL"), "server", True),
        (error(503, "UNAVAILABLE", "The model is overloaded."), "server", True),
        (error(504, "DEADLINE_EXCEEDED"), "timeout", True),
        (
            error(400, "INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}, "x"]),
            "authentication",
            False,
        ),
        (
            error(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens."),
            "context_overflow",
            False,
        ),
        (
            error(400, "INVALID_ARGUMENT", "The input token count is 9 but model only supports up to 5."),
            "context_overflow",
            False,
        ),
        ({"error": "no"}, "invalid_request", False),
    ],
)
def test_http_errors(body: dict[str, Any], kind: str, retryable: bool) -> None:
    status = body["error"]["code"] if isinstance(body["error"], dict) else 400
    for sent in (body, [body]):
        info = read(sent, status=status).error_info
        assert info is not None
        assert (info.kind, info.retryable, info.status) == (kind, retryable, status)
        assert info.raw == sent


@pytest.mark.parametrize(
    ("number", "kind", "retryable"),
    [
        (1, "timeout", False),
        (2, "unknown", False),
        (3, "invalid_request", False),
        (4, "timeout", True),
        (7, "permission", False),
        (8, "rate_limit", True),
        (13, "server", True),
        (16, "authentication", False),
        (17, "unknown", False),
    ],
)
def test_a_failed_row_of_a_batch_has_a_number_of_google_rpc(number: int, kind: str, retryable: bool) -> None:
    info = read({"error": {"code": number, "message": "The request failed."}}).error_info
    assert info is not None
    assert (info.kind, info.retryable, info.code, info.status) == (kind, retryable, str(number), None)


# Section 8: everything else.


def test_citations_are_placed_by_bytes_and_stay_whole() -> None:
    cited = {
        "citationSources": [
            {"endIndex": 6, "uri": "https://æ"},
            {"startIndex": 7, "endIndex": 13, "title": "T", "license": "MIT"},
            {"startIndex": 1, "endIndex": 6},  # in the middle of a character
            {"startIndex": 7, "endIndex": 99},
            {"startIndex": 3},
        ]
    }
    response = read(whole({"text": "Æbler pærer"}, citationMetadata=cited))
    marks = [(s.metadata, s.annotations[0]) for s in response.segments[1:]]
    assert marks == [
        ({}, CitationRef(None, "https://æ", (0, 5))),
        ({"title": "T", "license": "MIT"}, CitationRef(None, None, (6, 11))),
        ({}, CitationRef()),  # the same for the rest: what is repeated comes once
    ]
    assert candidate_left(response) == {"index": 0, "citationMetadata": cited}


def support(text: str | None, end: int, *indices: int, start: int = 0) -> dict[str, Any]:
    segment = {"endIndex": end, "startIndex": start, **({} if text is None else {"text": text})}
    return {"segment": segment, "groundingChunkIndices": list(indices)}


@pytest.mark.parametrize(
    ("supports", "expected"),
    [
        ([support("Æbler", 6, 0)], [("Æbler", CitationRef(None, "https://w", (0, 5)))]),
        # The words have the last say.
        ([support("pærer", 2, 0)], [("pærer", CitationRef(None, "https://w", (6, 11)))]),
        ([support("r", 2, 0)], [("r", CitationRef(None, "https://w"))]),
        ([support("plums", 2, 0)], [("plums", CitationRef(None, "https://w"))]),
        ([support(None, 6, 0)], [("", CitationRef(None, "https://w", (0, 5)))]),
        ([support("Æbler", 6)], [("Æbler", CitationRef(None, None, (0, 5)))]),
        ([support("Æbler", 6, 9)], [("Æbler", CitationRef(None, None, (0, 5)))]),
        (
            [support("Æbler", 6, 0, 1)],
            [
                ("Æbler", CitationRef(None, "https://w", (0, 5))),
                ("Æbler", CitationRef("p", "https://m", (0, 5))),
            ],
        ),
    ],
)
def test_grounding_links_words_to_sources(supports: list[Any], expected: list[Any]) -> None:
    sources = [{"web": {"uri": "https://w", "title": "W"}}, {"maps": {"uri": "https://m", "placeId": "p"}}]
    used = {index for one in supports for index in one["groundingChunkIndices"]}
    grounding = {"groundingChunks": sources, "groundingSupports": supports}
    response = read(whole({"text": "Æbler pærer"}, groundingMetadata=grounding))
    found = [(s.content, s.annotations[0]) for s in response.segments if s.type is SegmentType.CITATION]
    unused = [CitationRef(None, "https://w"), CitationRef("p", "https://m")]
    assert found == expected + [("", ref) for n, ref in enumerate(unused) if n not in used]
    assert candidate_left(response)["groundingMetadata"] == grounding


def test_the_last_grounding_that_is_not_empty_counts() -> None:
    grounding = {"groundingChunks": [{"web": {"uri": "https://w"}}]}
    response = read(
        chunk({"text": "A"}, groundingMetadata={"groundingChunks": [{"web": {"uri": "https://old"}}]}),
        chunk({"text": "B"}, groundingMetadata=grounding),
        whole(groundingMetadata={"webSearchQueries": ["q"]}),
    )
    assert segments(response)[0] == ("text", "AB", {})
    assert [s.annotations for s in response.segments[1:]] == [(CitationRef(None, "https://w"),)]


@pytest.mark.parametrize("index", ["0", -1, None, True])
def test_a_chunk_index_is_a_count(index: Any) -> None:
    chunks = [{"web": {"uri": "https://w"}}, {"web": {"uri": "https://x"}}]
    supports = [{"segment": {"endIndex": 2}, "groundingChunkIndices": [index, 1]}]
    grounding = {"groundingChunks": chunks, "groundingSupports": supports}
    response = read(whole({"text": "Hi"}, groundingMetadata=grounding))
    assert [s.annotations[0] for s in response.segments[1:]] == [
        CitationRef(None, "https://x", (0, 2)),
        CitationRef(None, "https://w"),
    ]
    assert candidate_left(response)["groundingMetadata"] == grounding
    assert mistyped(response) == {
        "candidates[0].groundingMetadata.groundingSupports[0].groundingChunkIndices"
    }


def test_only_verdicts_that_are_not_harmless_are_shown_the_last_ones_and_all_stay() -> None:
    harmless = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}]
    harmful = [
        *harmless,
        {"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "MEDIUM"},
        {"blocked": True},
    ]
    assert [s.type for s in read(whole({"text": "A"}, safetyRatings=harmless)).segments] == ["text"]
    response = read(chunk({"text": "A"}, safetyRatings=harmless), whole({"text": "B"}, safetyRatings=harmful))
    assert response.segments[1].annotations == (
        SafetyAnnotation("HARM_CATEGORY_HATE_SPEECH", "MEDIUM"),
        SafetyAnnotation("HARM_CATEGORY_UNSPECIFIED", None, blocked=True),
    )
    assert candidate_left(response) == {"index": 0, "safetyRatings": harmful}


def test_log_probabilities() -> None:
    result = {
        "chosenCandidates": [{"token": "Hi", "tokenId": 9, "logProbability": -1}, {"token": "!"}],
        "topCandidates": [{"candidates": [{"token": "Hi", "logProbability": -1.0}]}, {}],
        "logProbabilitySum": -1.0,
    }
    response = read(whole({"text": "Hi!"}, logprobsResult=result, avgLogprobs=-0.5))
    assert response.logprobs is not None
    assert [(t.token, t.logprob, len(t.top)) for t in response.logprobs] == [("Hi", -1.0, 1), ("!", None, 0)]
    left = {"chosenCandidates": [{"tokenId": 9}, {}], "logProbabilitySum": -1.0}
    assert candidate_left(response) == {"index": 0, "logprobsResult": left, "avgLogprobs": -0.5}


@pytest.mark.parametrize(
    ("result", "tokens", "place"),
    [
        ({"chosenCandidates": [{"token": "Hi"}], "topCandidates": [{"n": 1}, {}]}, ["Hi"], "topCandidates"),
        ({"chosenCandidates": [{"token": "Hi"}], "topCandidates": [7]}, ["Hi"], "topCandidates[0]"),
        ({"chosenCandidates": [{"token": "Hi"}], "topCandidates": 7}, ["Hi"], "topCandidates"),
        ({"chosenCandidates": [{"token": "Hi"}], "topCandidates": [{}, 7]}, ["Hi"], "topCandidates[1]"),
        ({"topCandidates": [{"n": 1}]}, None, "topCandidates"),
        ({"chosenCandidates": [{"logProbability": -1}]}, None, "chosenCandidates"),
        ({"chosenCandidates": ["Hi"]}, None, "chosenCandidates"),
        (
            {"chosenCandidates": [{"token": "Hi"}], "topCandidates": [{"candidates": [{"token": 7}]}]},
            ["Hi"],
            "topCandidates[0].candidates",
        ),
        (["x"], None, ""),
    ],
)
def test_log_probabilities_that_do_not_fit_stay(result: Any, tokens: list[str] | None, place: str) -> None:
    response = read(whole({"text": "Hi"}, logprobsResult=result))
    found = response.logprobs
    assert (None if found is None else [(t.token, t.top) for t in found]) == (
        tokens and [(t, ()) for t in tokens]  # type: ignore[misc]
    )
    kept = candidate_left(response)["logprobsResult"]
    if tokens:
        assert kept == {"topCandidates": result["topCandidates"]}
    else:
        assert kept == result
    assert ".".join(filter(None, ("candidates[0].logprobsResult", place))) in mistyped(response)


def test_no_log_probabilities_are_none() -> None:
    for result in ({}, None, {"chosenCandidates": [], "topCandidates": []}):
        response = read(whole({"text": "Hi"}, logprobsResult=result))
        assert (response.logprobs, response.metadata.extensions) == (None, {})


# Never silently wrong: what decides the answer is right or raises, any other leaf costs itself alone.

RATING = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}
COUNTS = {"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 4, "totalTokenCount": 9}


def put(event: Any, path: str, value: Any) -> Any:
    """*event* with *value* at *path*, as ``candidates[0].index``. All above it is there, or an object."""
    *keys, last = (
        int(key) if key.isdigit() else key for key in path.replace("[", ".").replace("]", "").split(".")
    )
    holder = event = orjson.loads(orjson.dumps(event))
    for key in keys:
        holder = holder[key] if type(key) is int else holder.setdefault(key, {})
    holder[last] = value
    return event


def test_a_part_without_a_value_for_its_field_says_nothing() -> None:
    response = read(whole({"text": "A", "functionCall": None, "inlineData": None, "executableCode": None}))
    assert [(one.type, one.content) for one in response.segments] == [("text", "A")]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("responseId", 7, ""),
        ("modelVersion", 7, ""),
        ("candidates", {}, ""),
        ("candidates[1]", 7, "AB"),
        ("candidates[0].index", -1, ""),
        ("candidates[0].content", [], ""),
        ("candidates[0].content.parts", "x", ""),
        ("candidates[0].content.parts[1]", 7, "A"),
        ("candidates[0].content.parts[1].text", 7, "A"),
        ("candidates[0].content.parts[1].thought", "yes", "A"),
        ("candidates[0].content.parts[1].functionCall", [], "AB"),
        ("candidates[0].content.parts[1].functionCall.name", 7, "AB"),
        ("candidates[0].content.parts[1].functionCall.name", 0, "AB"),
        ("candidates[0].content.parts[1].functionCall", {"name": "f", "id": 7}, "AB"),
        ("candidates[0].content.parts[1].functionCall", {"name": "f", "args": "{}"}, "AB"),
        ("candidates[0].content.parts[1].functionCall", {"name": "f", "willContinue": 1}, "AB"),
        ("candidates[0].content.parts[1].functionCall", {"name": "f", "partialArgs": {}}, "AB"),
        ("candidates[0].content.parts[1].inlineData", "AAAA", "AB"),
        ("candidates[0].content.parts[1].inlineData.data", 7, "AB"),
        ("candidates[0].content.parts[1].fileData.fileUri", 7, "AB"),
        ("candidates[0].content.parts[1].executableCode.code", 7, "AB"),
        ("candidates[0].content.parts[1].toolCall.args", "x", "AB"),
        ("candidates[0].finishReason", True, "AB"),
        ("candidates[0].finishReason", -1, "AB"),
        ("candidates[0].finishReason", 7070707, "AB"),
        ("promptFeedback", "x", "AB"),
        ("promptFeedback.blockReason", [], "AB"),
    ],
)
def test_what_decides_the_answer_raises_after_the_text_before_it(path: str, value: Any, said: str) -> None:
    body = whole({"text": "A"}, {"text": "B"})
    body["candidates"].append({"index": 1, "finishReason": "STOP"})
    wrong = put(body, path, value)
    with pytest.raises(WireTypeError) as caught:
        read(wrong)
    assert str(caught.value).startswith(f"gemini, event 1, {path}")
    assert caught.value.partial is not None
    assert caught.value.partial.text == said
    reader = Reader(registry.mapper("gemini"))  # in an array that somebody else decoded
    with pytest.raises(WireTypeError) as caught:
        list(reader.read_event([chunk({"text": "Hm."}), wrong]))
    assert str(caught.value).startswith(f"gemini, event 1, [1].{path}")
    assert caught.value.partial is not None
    assert caught.value.partial.text == f"Hm.{said}"


SIDES = {
    "createTime": 7,
    "promptFeedback.blockReasonMessage": 7,
    "promptFeedback.safetyRatings": {"n": 1},
    "promptFeedback.safetyRatings[0]": "x",
    "promptFeedback.safetyRatings[0].category": True,
    "candidates[0].finishMessage": 7,
    "candidates[0].content.parts[0].thoughtSignature": 7,
    "candidates[0].content.parts[1].inlineData.mimeType": 7,
    "candidates[0].content.parts[1].inlineData.displayName": 7,
    "candidates[0].safetyRatings": "x",
    "candidates[0].safetyRatings[1]": 7,
    "candidates[0].safetyRatings[1].category": 1.5,
    "candidates[0].safetyRatings[1].probability": 7070707,
    "candidates[0].safetyRatings[1].blocked": "yes",
    "candidates[0].citationMetadata": ["x"],
    "candidates[0].citationMetadata.citations": {"n": 1},
    "candidates[0].citationMetadata.citationSources[0]": "x",
    "candidates[0].citationMetadata.citationSources[0].startIndex": -1,
    "candidates[0].citationMetadata.citationSources[0].endIndex": "2",
    "candidates[0].citationMetadata.citationSources[0].uri": 7,
    "candidates[0].citationMetadata.citationSources[0].title": 7,
    "candidates[0].citationMetadata.citationSources[0].license": 7,
    "candidates[0].groundingMetadata": "x",
    "candidates[0].groundingMetadata.groundingChunks": "x",
    "candidates[0].groundingMetadata.groundingChunks[0]": "x",
    "candidates[0].groundingMetadata.groundingChunks[0].web": "x",
    "candidates[0].groundingMetadata.groundingChunks[0].web.uri": 7,
    "candidates[0].groundingMetadata.groundingChunks[0].web.title": 7,
    "candidates[0].groundingMetadata.groundingSupports": 7,
    "candidates[0].groundingMetadata.groundingSupports[0]": 7,
    "candidates[0].groundingMetadata.groundingSupports[0].segment": 7,
    "candidates[0].groundingMetadata.groundingSupports[0].segment.text": 7,
    "candidates[0].groundingMetadata.groundingSupports[0].segment.startIndex": 1.0,
    "candidates[0].groundingMetadata.groundingSupports[0].segment.endIndex": "2",
    "candidates[0].groundingMetadata.groundingSupports[0].groundingChunkIndices": 0,
    "candidates[0].logprobsResult": 7,
    "candidates[0].logprobsResult.chosenCandidates": 7,
    "usageMetadata": [7],
    "usageMetadata.promptTokenCount": "3",
    "usageMetadata.candidatesTokenCount": -2,
    "usageMetadata.thoughtsTokenCount": 4.0,
    "usageMetadata.toolUsePromptTokenCount": "1",
    "usageMetadata.cachedContentTokenCount": True,
    "usageMetadata.totalTokenCount": "9",
}


@pytest.mark.sweep
@pytest.mark.parametrize(("path", "value"), SIDES.items(), ids=SIDES)
def test_a_side_field_of_another_type_stays_and_costs_itself_alone(path: str, value: Any) -> None:
    body = whole(
        {"text": "Hi"},
        {"inlineData": {"data": "AA"}},
        finishMessage="Done.",
        safetyRatings=[{"category": "x", "probability": "LOW"}, RATING],
        citationMetadata={"citationSources": [{"endIndex": 2, "uri": "https://c"}]},
        groundingMetadata={
            "groundingChunks": [{"web": {"uri": "https://w"}}],
            "groundingSupports": [support("Hi", 2, 0)],
        },
        usage=COUNTS,
    )
    body["promptFeedback"] = {"blockReason": "OTHER", "safetyRatings": [RATING]}
    for response in (read(put(body, path, value)), read(chunk({"text": ""}), put(body, path, value))):
        assert (response.text, response.id, response.raw_finish_reason) == ("Hi", "r-1", "OTHER")
        assert mistyped(response) == {path}
        left = response.metadata.extensions.thawed()
        for key in path.replace("]", "").replace("[", ".").split("."):
            left = left[int(key)] if key.isdigit() else left[key]
        assert left == value


def test_a_place_that_is_none_is_not_taken_for_the_beginning() -> None:
    cited = {"citationSources": [{"startIndex": "1", "endIndex": 2, "uri": "https://c"}]}
    (citation,) = read(whole({"text": "Hi"}, citationMetadata=cited)).segments[1:]
    assert citation.annotations == (CitationRef(None, "https://c"),)


@pytest.mark.parametrize(
    ("name", "usage", "absent"),
    [
        ("promptTokenCount", UsageInfo(0, 6, reasoning_tokens=4), "prompt"),
        ("toolUsePromptTokenCount", UsageInfo(0, 6, reasoning_tokens=4), "prompt"),
        ("candidatesTokenCount", UsageInfo(3, 0, reasoning_tokens=4), "completion"),
        ("thoughtsTokenCount", UsageInfo(3, 0), "completion"),
    ],
)
def test_a_sum_of_which_a_part_cannot_be_read_is_absent(name: str, usage: UsageInfo, absent: str) -> None:
    response = read(whole({"text": "Hi"}, usage={**COUNTS, name: "7"}))
    assert response.usage == usage
    assert response.metadata.provenance[f"usage.{absent}_tokens"] == "absent"


def test_null_takes_nothing_back() -> None:
    nothing: dict[str, Any] = dict.fromkeys(
        ("createTime", "modelVersion", "responseId", "usageMetadata", "promptFeedback")
    )
    first = {
        **chunk({"text": "Hi"}, usage=COUNTS, safetyRatings=[RATING]),
        "createTime": "2026-03-04T05:06:07Z",
    }
    more = {"safetyRatings": None, "groundingMetadata": None, "citationMetadata": None}
    last = {**whole(**more, index=None, logprobsResult=None), **nothing}
    response = read({**first, "modelStatus": "old"}, {**last, "modelStatus": None})
    assert (response.text, response.id, response.model) == ("Hi", "r-1", "gemini-x")
    assert response.created.year == 2026
    assert response.usage == UsageInfo(3, 6, reasoning_tokens=4)
    assert response.segments[1].annotations == (
        SafetyAnnotation("HARM_CATEGORY_HARASSMENT", "HIGH", blocked=True),
    )
    assert response.metadata.extensions == {
        "candidates": [{"index": 0, "safetyRatings": [RATING]}],
        "modelStatus": "old",
    }


@pytest.mark.parametrize(
    "part",
    [
        {"text": "Hi"},
        {"inlineData": {"mimeType": "image/png", "data": "AA"}},
        {"functionCall": {"name": "f"}},
    ],
    ids=["text", "media", "call"],
)
@pytest.mark.parametrize("count", [2, 3])
def test_whole_answers_in_a_row_are_refused_and_the_first_is_kept(part: Any, count: int) -> None:
    bodies = [orjson.dumps({**whole(part), "responseId": f"r-{number}"}) for number in range(count)]
    for sent in (b"\n".join(bodies), b"[" + b",".join(bodies) + b"]"):
        with pytest.raises(TrailingContentError, match="event 2: another answer's id") as caught:
            normalize(sent, "gemini")
        assert caught.value.partial is not None
        assert [s.type for s in caught.value.partial.segments] == [
            *(s.type for s in normalize(bodies[0], "gemini").segments),
            SegmentType.ERROR,
        ]


# Framing and what is not this API's.


def pieces_of(sent: bytes, *cuts: int) -> list[bytes]:
    places = [0, *sorted(cuts), len(sent)]
    return [sent[start:end] for start, end in itertools.pairwise(places)]


def elements(sent: bytes, *cuts: int, **limits: int) -> list[Any]:
    decoder = ArrayDecoder(Limits(**limits))
    frames = [frame for piece in pieces_of(sent, *cuts) for frame in decoder.decode(piece)]
    return [data for data, _ in (*frames, *decoder.flush())]


USAGE = {"promptTokenCount": 3, "totalTokenCount": 3, "toolUsePromptTokenCount": 1}
TEXTS = ['A "]},[{" \\', "\\", "Æ\n"]
CHUNKS = [
    chunk({"text": TEXTS[0]}, usage=USAGE),
    chunk({"text": TEXTS[1], "thoughtSignature": "Ag=="}),
    whole({"text": TEXTS[2]}, usage={"candidatesTokenCount": 2}),
]
WRITTEN = [orjson.dumps(one, option=orjson.OPT_INDENT_2) for one in CHUNKS]
ARRAY = b"[" + b"\r\n,\r\n".join(WRITTEN) + b"\r\n]"
ENDS = [ARRAY.index(one) + len(one) for one in WRITTEN]


def test_a_stream_that_comes_as_an_array_says_the_same_as_one_of_events() -> None:
    response = normalize(ARRAY, "gemini")
    assert response.same_content(read(*CHUNKS))
    assert response.metadata.extensions == read(*CHUNKS).metadata.extensions
    assert response.usage == UsageInfo(4, 2)
    one_by_one = normalize_stream((bytes([byte]) for byte in ARRAY), "gemini")
    assert list(one_by_one) == list(normalize_stream([ARRAY], "gemini"))


def test_an_element_is_given_before_anything_follows_it() -> None:
    sent: list[int] = []

    def slowly() -> Iterator[bytes]:
        for number, one in enumerate(CHUNKS):
            sent.append(number)
            yield (b"[" if not number else b",\r\n") + orjson.dumps(one)
        yield b"]"

    assert next(normalize_stream(slowly(), "gemini")).content_delta == TEXTS[0]
    assert sent == [0]


@pytest.mark.sweep
@pytest.mark.parametrize("at", range(1, len(ARRAY), 7))
def test_an_array_that_was_cut_anywhere_is_incomplete_and_keeps_what_came(at: int) -> None:
    with pytest.raises(IncompleteStreamError) as caught:
        normalize(ARRAY[:at], "gemini")
    complete = [text for text, end in zip(TEXTS, ENDS, strict=True) if end <= at]
    partial = caught.value.partial
    assert (partial.text if partial is not None else "") == "".join(complete)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('[]{},:"\\ \nÆ', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('a"]}', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=4), st.booleans(), st.data())
@settings(max_examples=tries(150))
def test_the_elements_of_any_array_cut_anywhere(
    values: list[Any], indented: bool, data: st.DataObject
) -> None:
    sent = orjson.dumps(values, option=orjson.OPT_INDENT_2 if indented else 0)
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=6))
    found = elements(sent, *cuts)
    assert [orjson.loads(element) for element in found] == values
    assert found == elements(sent, *range(len(sent)))


@given(
    st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b",", b'"', b"\\", b"1", b" ", b"\xff"]), max_size=14)
)
@settings(max_examples=tries(150))
def test_any_bytes_are_elements_or_a_typed_error_however_they_are_cut(marks: list[bytes]) -> None:
    sent = b"[" + b"".join(marks)
    whole, single, halves = (outcome_of(sent, *cuts) for cuts in ((), range(len(sent)), (len(sent) // 2,)))
    assert whole == single == halves


def outcome_of(sent: bytes, *cuts: int) -> tuple[list[Any], str]:
    decoder, frames = ArrayDecoder(Limits(line_bytes=6)), []
    try:
        for piece in pieces_of(sent, *cuts):
            frames += decoder.decode(piece)
        frames += decoder.flush()
    except MappingError as error:
        return frames, repr(error)
    return frames, ""


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b'{"a":1}', InvalidJSONError),
        (b"[,", InvalidJSONError),
        (b"[{},]", InvalidJSONError),
        (b"[{},,{}]", InvalidJSONError),
        (b"[{} {}]", InvalidJSONError),
        (b"[{}}]", InvalidJSONError),
        (b"[{}] {}", TrailingContentError),
        (b"[{}][{}]", TrailingContentError),
        (b"[", IncompleteStreamError),
        (b"[{}", IncompleteStreamError),
        (b"[{},", IncompleteStreamError),
        (b'[{"a', IncompleteStreamError),
        (b'[{"a\\', IncompleteStreamError),
        (b"[1", IncompleteStreamError),
    ],
)
def test_what_is_no_array_or_not_all_of_one_is_a_typed_error(sent: bytes, kind: type[Exception]) -> None:
    for cuts in ((), range(len(sent))):
        with pytest.raises(kind):
            elements(sent, *cuts)


def test_a_brace_that_closes_nothing_stays_in_its_element() -> None:
    assert ArrayDecoder(Limits()).decode(b"[1}2]") == [(b"1}2", None)]
    with pytest.raises(InvalidJSONError):
        normalize(b"[1}2]", "gemini")


def test_what_is_wrong_comes_after_what_is_complete() -> None:
    decoder = ArrayDecoder(Limits())
    assert decoder.decode(b"[{}]?") == [(b"{}", None)]
    for _ in range(2):
        with pytest.raises(TrailingContentError):
            decoder.decode(b"?")
    with pytest.raises(TrailingContentError):
        decoder.flush()
    with pytest.raises(TrailingContentError) as caught:
        normalize(ARRAY + ARRAY, "gemini")
    assert caught.value.partial is not None
    assert caught.value.partial.text == normalize(ARRAY, "gemini").text


def test_limits_hold_for_each_element_and_for_all_of_them() -> None:
    assert elements(b'[{"a":1},{"b":2}]', line_bytes=7) == [b'{"a":1}', b'{"b":2}']
    for cuts in ((), range(9)):
        with pytest.raises(LineTooLongError):
            elements(b'[{"a":12},{}]', *cuts, line_bytes=7)
        with pytest.raises(StreamTooLargeError):
            elements(b'[{"a":1},{"b":2}]', *cuts, total_bytes=9)
    with pytest.raises(NestingTooDeepError):
        normalize(b"[" * 999 + b"]" * 999, "gemini")


@pytest.mark.parametrize("sent", [b"[]", b" [ ] "])
def test_an_empty_array_is_no_answer(sent: bytes) -> None:
    with pytest.raises(IncompleteStreamError, match="empty"):
        normalize(sent, "gemini")


def test_an_element_that_is_no_object_is_named() -> None:
    with pytest.raises(WireTypeError, match=r"event 2.*parts\[0\]\.text"):
        read([chunk({"text": "A"}), whole({"text": 7})])
    for wrong in (7, "x", None, [7]):
        with pytest.raises(WireTypeError, match="event 2|\\[0\\]"):
            read([chunk({"text": "A"}), wrong])
    with pytest.raises(InvalidJSONError):
        normalize(b"[{]]", "gemini")


def test_an_array_that_somebody_else_decoded_is_read_item_by_item() -> None:
    """Captures are decoded without the provider's framing."""

    def response_to(*events: Any) -> ChatResponse:
        reader = Reader(registry.mapper("gemini"))
        for event in events:
            list(reader.read_event(event))
        list(reader.finish())
        return reader.response()

    response = response_to(CHUNKS)
    assert (response.text, response.usage) == (read(*CHUNKS).text, UsageInfo(4, 2))
    kept = {"toolUsePromptTokenCount": 1, "totalTokenCount": 3}
    assert response.metadata.extensions == {"event": [{"usageMetadata": kept}, {}, {}]}
    assert response_to([whole({"text": "A"})]).metadata.extensions == {}
    with pytest.raises(WireTypeError, match=r"\[1\]\.candidates\[0\]\.content\.parts\[0\]\.text"):
        response_to([chunk({"text": "A"}), whole({"text": 7})])


def prompt_of(*items: Any) -> dict[str, Any]:
    return {
        "promptTokenCount": 9,
        "promptTokensDetails": list(items),
        "candidatesTokenCount": 1,
        "totalTokenCount": 10,
    }


def item(modality: Any, count: Any = 4, **more: Any) -> dict[str, Any]:
    return {"modality": modality, "tokenCount": count, **more}


LISTS_OF_COUNTS: dict[str, list[Any]] = {
    "the same": [prompt_of(item("TEXT"))] * 4,
    "another, and the first again": [prompt_of(item("TEXT")), prompt_of(item("TEXT", 5)), prompt_of(item("TEXT"))],
    "none between": [prompt_of(item("TEXT")), {"promptTokenCount": 9}, prompt_of(item("TEXT"))],
    "an empty one": [prompt_of(item("TEXT")), prompt_of(), prompt_of(), prompt_of(item("TEXT"))],
    "an unknown modality": [prompt_of(item("TEXT"), item("SMELL"))] * 3,
    "a key more": [prompt_of(item("TEXT", more=1))] * 3,
    "a count that is no integer": [prompt_of(item("TEXT", 4)), prompt_of(item("TEXT", 4.0)), prompt_of(item("TEXT", True))],
    "an item that is no object": [prompt_of(item("TEXT"), 5)] * 3,
    "no list": [{**prompt_of(), "promptTokensDetails": odd} for odd in (None, 5, {}, "a", 5, None)],
    "another list beside": [{**prompt_of(item("TEXT")), "candidatesTokensDetails": [item("TEXT", n)]} for n in (1, 1, 2)],
    "a count of nothing": [{"promptTokensDetails": [item("TEXT")]}] * 3,
}  # fmt: skip


@pytest.mark.parametrize("usages", LISTS_OF_COUNTS.values(), ids=LISTS_OF_COUNTS)
def test_a_list_of_counts_that_comes_again_means_what_it_meant(usages: list[Any]) -> None:
    """Written in another order of keys, it is read anew."""

    def turned(usage: Any) -> Any:
        items = usage.get("promptTokensDetails")
        if type(items) is not list:
            return usage
        return {
            **usage,
            "promptTokensDetails": [
                dict(reversed(one.items())) if type(one) is dict else one for one in items
            ],
        }

    def outcome_of(*given: Any) -> Any:
        response = read(*(chunk({"text": "a"}, usage=usage) for usage in given), whole())
        return response.usage, response.metadata.extensions.thawed(), response.metadata.provenance

    assert outcome_of(*usages) == outcome_of(
        *(turned(usage) if n % 2 else usage for n, usage in enumerate(usages))
    )


def test_a_list_of_counts_nested_deeper_than_can_be_written_is_read() -> None:
    body = orjson.dumps(whole({"text": "a"}, usage=prompt_of(item("TEXT", more="DEEP"))))
    body = body.replace(b'"DEEP"', b"[" * 400 + b"1" + b"]" * 400)
    assert normalize(body, "gemini", limits=Limits(depth=1024)).usage.details.text_input_tokens == 4


@pytest.mark.parametrize(
    "event",
    [
        {"totalTokens": 31, "promptTokensDetails": []},
        {},
    ],
)
def test_what_is_no_answer_of_this_api_is_an_unknown_event(event: dict[str, Any]) -> None:
    with pytest.raises(UnknownEventError):
        read(event)


CERTAIN, POSSIBLE, NO = Recognition.CERTAIN, Recognition.POSSIBLE, Recognition.NO


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (whole({"text": "Hi"}), CERTAIN),
        ([chunk({"text": "Hi"})], CERTAIN),
        ({"candidates": [{"content": {"parts": []}}]}, CERTAIN),
        ({"candidates": [{"finishReason": "STOP"}]}, CERTAIN),
        ({"promptFeedback": {}}, CERTAIN),
        ({"usageMetadata": {}}, CERTAIN),
        (error(500, "INTERNAL"), CERTAIN),
        ([error(500, "INTERNAL")], CERTAIN),
        ({"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}, CERTAIN),
        ({"error": {"code": 400, "message": "No.", "status": "odd"}}, POSSIBLE),
        ({"error": {"code": 400}}, POSSIBLE),
        ({"error": {"code": "invalid_request", "message": "No."}}, POSSIBLE),
        ({"error": "no"}, NO),
        ({"error": {"code": "no"}}, NO),
        ({"candidates": [{"content": "PaLM's", "author": "1"}]}, NO),
        ({"candidates": ["x"], "modelVersion": "x"}, NO),
        ({"candidates": []}, NO),
        ({"choices": []}, NO),
        ({"event_type": "interaction.created"}, CERTAIN),
        ([], NO),
        ([7], NO),
        ("x", NO),
    ],
)
def test_it_recognizes_its_own(event: Any, expected: Recognition) -> None:
    assert Gemini().recognizes(event) is expected


def test_the_hooks_read_alone() -> None:
    state = MappingState("gemini")
    assert plugin.map_usage({"usageMetadata": {"candidatesTokenCount": 1}}, state) == UsageInfo(0, 1)
    assert plugin.map_finish_reason("MALFORMED_RESPONSE", state) is FinishReason.ERROR
    assert (
        plugin.map_finish_reason("FINISH_REASON_UNSPECIFIED", state) is None
    )  # this dialect has read no candidate
    event = error(500, "INTERNAL")
    assert [delta.finish_reason for delta in plugin.map_delta(event, state)] == [FinishReason.ERROR]
    assert (event, plugin.extensions(event, state)) == ({}, {})


# Candidates without numbers.


@pytest.mark.parametrize(
    "numbers",
    [(None, None, None), (None, 1, 2), (0, None, None), (0, 1, None)],
    ids=["none", "proto leaves out 0", "0 alone", "all but the last"],
)
def test_candidates_without_a_number_are_numbered_by_their_place(numbers: tuple[int | None, ...]) -> None:
    def candidates(text: str, **more: Any) -> dict[str, Any]:
        made = whole({"text": "x"})
        made["candidates"] = [
            {"content": {"parts": [{"text": f"{text}{place}"}], "role": "model"}, **more}
            | ({} if number is None else {"index": number})
            for place, number in enumerate(numbers)
        ]
        return made

    for answer in (
        read(candidates("ab", finishReason="STOP")),
        read(candidates("a"), candidates("b", finishReason="STOP")),
    ):
        said = [answer.text, *(other.message.text for other in answer.alternatives)]
        assert said in (["ab0", "ab1", "ab2"], ["a0b0", "a1b1", "a2b2"])
        assert "candidates" not in answer.metadata.extensions


# Its OpenAI layer, also on Vertex AI.


def in_layer(part: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, part: {"role": "assistant", "content": "Hi", **more}, "finish_reason": "stop"}
    return {"id": "l1", "object": "chat.completion", "created": 1, "model": "gemini-x", "choices": [choice]}


GOOGLE = {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize("part", ["message", "delta"])
@pytest.mark.parametrize("where", ["message", "call"])
def test_its_openai_layer_is_recognized_by_its_own_fields(part: str, where: str) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    more = (
        {"extra_content": GOOGLE}
        if where == "message"
        else {"tool_calls": [{**call, "extra_content": GOOGLE}]}
    )
    event = in_layer(part, **more)
    assert Gemini().recognizes(event) is CERTAIN
    assert normalize(event).metadata.provider_id == "gemini"
    assert Gemini().recognizes(in_layer(part)) is NO


def test_thoughts_that_repeat_are_no_text_of_the_answer() -> None:
    """Repetitions in a later event are compared with the text alone."""

    def chunk(text: str, **more: object) -> bytes:
        part = {"text": text, **more}
        event = {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]}
        return b"data: " + orjson.dumps(event) + b"\n\n"

    end = {"candidates": [{"content": {"parts": [{"text": "!"}], "role": "model"}, "finishReason": "STOP"}]}
    thoughts = [chunk(f"t{number} ", thought=True) for number in range(4)]
    stream = normalize_stream([*thoughts, chunk("Hi"), b"data: " + orjson.dumps(end) + b"\n\n"], "gemini")
    list(stream)
    assert (stream.response.text, stream.response.reasoning) == ("Hi!", "t0 t1 t2 t3 ")


def test_an_empty_list_of_likeliest_tokens_is_none() -> None:
    result = {"chosenCandidates": [{"token": "Hi", "logProbability": -0.5}], "topCandidates": []}
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP", "logprobsResult": result}
    response = normalize(orjson.dumps({"candidates": [candidate]}), "gemini")
    assert response.logprobs is not None
    assert [token.token for token in response.logprobs] == ["Hi"]
