"""Values that are read leniently, and values that are refused with their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import normalize
from crosswalk.codec import from_json, to_json, to_jsonable
from crosswalk.codec.layout import CANONICAL
from crosswalk.errors import CanonicalJSONError
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    CitationRef,
    FilePart,
    FinishReason,
    ProviderAttempt,
    ResponseDelta,
    ResponseMetadata,
    SafetyAnnotation,
    Segment,
    StreamEvent,
    TokenLogprob,
    ToolCall,
    UsageDetails,
    UsageInfo,
)
from strategies import BY_TYPE, json_values, unfolded
from tries import tries

MINIMAL: dict[str, Any] = {
    "id": "r",
    "message": {"role": "assistant"},
    "finish_reason": "stop",
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    "metadata": {"provider_id": "p", "model_id": "m"},
    "created": "2024-01-15T10:30:00Z",
    "model": "m",
}


def _response(**fields: Any) -> bytes:
    return orjson.dumps({**MINIMAL, **fields})


def _problems(data: bytes | str, cls: Any) -> tuple[str, ...]:
    with pytest.raises(CanonicalJSONError) as caught:
        from_json(data, cls)
    assert str(caught.value).startswith("cannot read ")
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value.problems


@pytest.mark.parametrize("cls", sorted(CANONICAL, key=str))
@settings(max_examples=tries(15))
@given(data=st.data())
def test_unknown_keys_are_ignored(cls: type, data: st.DataObject) -> None:
    """A key that this version does not know, at any level, changes nothing (FR-108)."""
    value = data.draw(BY_TYPE[cls])
    plain = orjson.loads(to_json(value))
    with_more = orjson.dumps({"x_new": {"a": [1]}, **plain, "zz": None})
    assert to_json(from_json(with_more, cls)) == to_json(value)


def test_computed_values_are_ignored() -> None:
    """Totals and speeds are worked out again, whatever the document says, of whatever type."""
    usage = from_json(b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":99}', UsageInfo)
    assert usage.total_tokens == 3
    metadata = {**MINIMAL["metadata"], "tokens_per_second": "fast", "completion_tokens": 5}
    assert from_json(_response(metadata=metadata), ChatResponse).metadata.completion_tokens == 2
    assert from_json(orjson.dumps(metadata), ResponseMetadata).completion_tokens is None


@pytest.mark.parametrize("cls", [ChatResponse, UsageInfo])
def test_other_buffers_are_bytes_and_nothing_else_is_text(cls: type) -> None:
    response = normalize({"model": "m", "done": True, "done_reason": "stop", "response": "a"}, "ollama")
    data = to_json(response if cls is ChatResponse else response.usage)
    for buffer in (bytearray(data), memoryview(data), memoryview(b"x" + data)[1:]):
        assert from_json(buffer, cls) == from_json(data, cls)
    for other in (None, {}, [], 5):
        with pytest.raises(TypeError, match=f"data is the JSON's bytes or text, not {type(other).__name__}"):
            from_json(other, cls)  # type: ignore[call-overload]


def test_null_is_a_missing_optional() -> None:
    """Null replaces a missing key if the type allows None, and nowhere else."""
    response = from_json(_response(refusal=None, logprobs=None), ChatResponse)
    assert response.refusal is None
    assert response.logprobs is None
    assert _problems(_response(segments=None), ChatResponse) == ("expected array, got null @ $.segments",)
    assert from_json(b'{"token":"a","logprob":null}', TokenLogprob) == TokenLogprob("a", None)


@pytest.mark.parametrize("word", ["tool_calls", "Tool_Calls", "TOOL_CALLS"])
def test_finish_reasons_in_any_case(word: str) -> None:
    """Finish reasons are read case-insensitively (FR-027)."""
    read = from_json(_response(finish_reason=word), ChatResponse)
    assert read.finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, UsageInfo(10, 5)),
        ({"cached_tokens": 4, "reasoning_tokens": 3, "cache_write_tokens": 2}, UsageInfo(10, 5, 4, 3, 2)),
        (
            {
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 3, "accepted_prediction_tokens": "?"},
            },
            UsageInfo(10, 5, 4, 3, 2, details=UsageDetails(audio_input_tokens=0)),
        ),
        (
            {"prompt_tokens_details": {"image_tokens": 3}, "details": {"image_input_tokens": 4}},
            UsageInfo(10, 5, details=UsageDetails(image_input_tokens=4)),
        ),
        (
            UsageInfo(10, 5, 4, details=UsageDetails(video_output_tokens=3)).to_openai(),
            UsageInfo(10, 5, 4, details=UsageDetails(video_output_tokens=3)),
        ),
        ({"prompt_tokens_details": None, "completion_tokens_details": {}}, UsageInfo(10, 5)),
        ({"prompt_tokens_details": {"cached_tokens": None}}, UsageInfo(10, 5)),
        ({"cached_tokens": None, "prompt_tokens_details": {"cached_tokens": 0}}, UsageInfo(10, 5, 0)),
        ({"cached_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}, UsageInfo(10, 5, 1)),
        (UsageInfo(10, 5, 4, 3, 2).to_openai(), UsageInfo(10, 5, 4, 3, 2)),
    ],
)
def test_both_forms_of_usage(more: dict[str, Any], expected: UsageInfo) -> None:
    """Usage is read flat and in OpenAI's nested form. The flat count wins (FR-039)."""
    data = orjson.dumps({"prompt_tokens": 10, "completion_tokens": 5, **more})
    assert from_json(data, UsageInfo) == expected


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.999999999"])
def test_readable_versions(version: str) -> None:
    """Every minor version of this major one is read, as is a document without a version (NFR-028)."""
    assert from_json(_response(format_version=version, new_in_1_1=[]), ChatResponse).id == "r"


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("2.0", "unknown format version '2.0' (readable: 1.x)"),
        ("0.9", "unknown format version '0.9' (readable: 1.x)"),
        ("1", "malformed format version '1' (readable: 1.x)"),
        ("1.0.0", "malformed format version '1.0.0' (readable: 1.x)"),
        ("01.0", "malformed format version '01.0' (readable: 1.x)"),
        ("1.²", "malformed format version '1.²' (readable: 1.x)"),
        ("1.0\n", "malformed format version '1.0\\n' (readable: 1.x)"),
        ("v" * 99, f"malformed format version '{'v' * 39}…' (readable: 1.x)"),
        (1.0, "expected a format version as a string (readable: 1.x), got number"),
        (None, "expected a format version as a string (readable: 1.x), got null"),
    ],
)
def test_unreadable_versions(version: Any, problem: str) -> None:
    """Another major version is refused before anything else is looked at, saying what can be read."""
    data = orjson.dumps({"format_version": version, "answer": "in a form of the future"})
    assert _problems(data, ChatResponse) == (f"{problem} @ $.format_version",)
    assert _problems(b"[" + data + b"]", list[ChatResponse]) == (f"{problem} @ $[0].format_version",)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not JSON (Input is a zero-length, empty document at character 0) @ $"),
        (b'{"id":', "not JSON (unexpected end of data at character 6) @ $"),
        (b'"\xff"', "not JSON (str is not valid UTF-8: surrogates not allowed at character 0) @ $"),
        ('"\ud800"', "not JSON (str is not valid UTF-8: surrogates not allowed at character 0) @ $"),
    ],
)
def test_no_json(data: bytes | str, problem: str) -> None:
    """Text that is not JSON is refused with the place of the first fault."""
    assert _problems(data, ChatResponse) == (problem,)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": 3}, "expected string, got number @ $.id"),
        ({"id": None}, "expected string, got null @ $.id"),
        ({"id": ""}, "ACODE-RSP-001: Response ID cannot be empty @ $"),
        (
            {"message": {"role": "assistant", "content": 5}},
            "expected string or array, got number @ $.message.content",
        ),
        (
            {"message": {"role": "robot"}},
            "unknown word 'robot', expected system or user or assistant or tool @ $.message.role",
        ),
        ({"message": {"role": ["user"]}}, "expected string, got array @ $.message.role"),
        ({"message": {"role": "user"}}, "a user message needs content @ $.message"),
        ({"message": {"content": "x"}}, "a required key is missing @ $.message.role"),
        ({"message": []}, "expected object, got array @ $.message"),
        (
            {"message": {"role": "assistant", "tool_calls": [{"id": "1", "name": "f"}, {"id": "2"}]}},
            "a required key is missing @ $.message.tool_calls[1].name",
        ),
        (
            {"message": {"role": "assistant", "tool_calls": {}}},
            "expected array, got object @ $.message.tool_calls",
        ),
        (
            {"message": {"role": "assistant", "content": ["x"]}},
            "expected object, got string @ $.message.content[0]",
        ),
        (
            {"message": {"role": "assistant", "content": [{"type": "map"}]}},
            "unknown type 'map', expected text or image or audio or video or file or search_result or document @ "
            "$.message.content[0].type",
        ),
        (
            {"message": {"role": "assistant", "content": [{}]}},
            "expected string, got null @ $.message.content[0].type",
        ),
        (
            {"message": {"role": "assistant", "content": [{"type": "image"}]}},
            "ImagePart needs either a url or data, and not both @ $.message.content[0]",
        ),
        (
            {"finish_reason": "done"},
            "unknown word 'done', expected stop or length or tool_calls or content_filter or error"
            " or cancelled @ $.finish_reason",
        ),
        (
            {"usage": {"prompt_tokens": 1.0, "completion_tokens": 2}},
            "expected integer, got number @ $.usage.prompt_tokens",
        ),
        (
            {"usage": {"prompt_tokens": True, "completion_tokens": 2}},
            "expected integer, got boolean @ $.usage.prompt_tokens",
        ),
        (
            {"usage": {"prompt_tokens": -1, "completion_tokens": 2}},
            "ACODE-RSP-004: Token count cannot be negative: prompt_tokens @ $.usage",
        ),
        (
            {"usage": {**MINIMAL["usage"], "prompt_tokens_details": [1]}},
            "expected object, got array @ $.usage.prompt_tokens_details",
        ),
        (
            {"usage": {**MINIMAL["usage"], "completion_tokens_details": {"reasoning_tokens": "3"}}},
            "expected integer, got string @ $.usage.completion_tokens_details.reasoning_tokens",
        ),
        (
            {"usage": {**MINIMAL["usage"], "cost": {"amount": 0.5}}},
            "expected string, got number @ $.usage.cost.amount",
        ),
        (
            {"metadata": {"provider_id": "", "model_id": "m"}},
            "ACODE-RSP-005: Provider ID cannot be empty @ $.metadata",
        ),
        (
            {"metadata": {**MINIMAL["metadata"], "request_duration_seconds": -1}},
            "ACODE-RSP-007: Request duration cannot be negative @ $.metadata",
        ),
        (
            {"metadata": {**MINIMAL["metadata"], "request_duration_seconds": "1"}},
            "expected number, got string @ $.metadata.request_duration_seconds",
        ),
        (
            {"metadata": {**MINIMAL["metadata"], "time_to_first_token_seconds": 1e300}},
            "expected seconds, got more than a billion days @ $.metadata.time_to_first_token_seconds",
        ),
        (
            {"metadata": {**MINIMAL["metadata"], "extensions": []}},
            "expected object, got array @ $.metadata.extensions",
        ),
        (
            {"metadata": {**MINIMAL["metadata"], "provenance": []}},
            "expected object, got array @ $.metadata.provenance",
        ),
        (
            {"metadata": {**MINIMAL["metadata"], "provenance": {"usage.x": "guessed"}}},
            "unknown word 'guessed', expected synthetic or derived or absent or unmapped or mistyped or cut"
            " @ $.metadata.provenance['usage.x']",
        ),
        ({"created": 1705314600}, "expected string, got number @ $.created"),
        (
            {"created": "2024-01-15T10:30:00"},
            "expected an ISO 8601 time with its zone, got '2024-01-15T10:30:00' @ $.created",
        ),
        ({"created": "yesterday"}, "expected an ISO 8601 time with its zone, got 'yesterday' @ $.created"),
        (
            {"created": "0001-01-01T00:00:00+14:00"},
            "expected an ISO 8601 time with its zone, got '0001-01-01T00:00:00+14:00' @ $.created",
        ),
        ({"refusal": False}, "expected string, got boolean @ $.refusal"),
        ({"segments": ""}, "expected array, got string @ $.segments"),
        ({"segments": [{"type": "other"}]}, None),
        (
            {"segments": [{"type": "text", "annotations": [{"type": "citation", "span": [1]}]}]},
            "expected an array of length 2, got one of 1 @ $.segments[0].annotations[0].span",
        ),
        (
            {"segments": [{"type": "text", "annotations": [{"type": "citation", "span": "ab"}]}]},
            "expected array, got string @ $.segments[0].annotations[0].span",
        ),
        (
            {"segments": [{"type": "text", "annotations": [{"type": "citation", "span": [1, "2"]}]}]},
            "expected integer, got string @ $.segments[0].annotations[0].span[1]",
        ),
        (
            {"segments": [{"type": "text", "annotations": ["x"]}]},
            "expected object, got string @ $.segments[0].annotations[0]",
        ),
        (
            {
                "segments": [
                    {"type": "text", "annotations": [{"type": "safety", "category": "", "blocked": 1}]}
                ]
            },
            "expected boolean, got number @ $.segments[0].annotations[0].blocked",
        ),
        (
            {"content_filter_results": [{"category": "hate", "severity": "HIGH", "filtered": True}]},
            "unknown word 'HIGH', expected safe or low or medium or high"
            " @ $.content_filter_results[0].severity",
        ),
        (
            {"logprobs": [{"token": "a", "top": [{"token": "b", "logprob": "-1"}]}]},
            "expected number, got string @ $.logprobs[0].top[0].logprob",
        ),
        ({"raw_events": {}}, "expected array, got object @ $.raw_events"),
        ({"raw_events": ["ok", 3]}, "expected string or base64 object, got number @ $.raw_events[1]"),
        ({"raw_events": [{"base64": 3}]}, "expected string or base64 object, got object @ $.raw_events[0]"),
        ({"raw_events": [{"base64": "%%"}]}, "expected base64 @ $.raw_events[0].base64"),
        ({"raw_events": [{"base64": "é"}]}, "expected base64 @ $.raw_events[0].base64"),
    ],
)
def test_refusals(fields: dict[str, Any], problem: str | None) -> None:
    """Every leaf of the wrong type, missing key, unknown word and broken rule is named with its place."""
    problems = _problems(_response(**fields), ChatResponse)
    assert len(problems) == 1
    if problem is not None:
        assert problems == (problem,)


@pytest.mark.parametrize(
    ("data", "cls", "problem"),
    [
        (b"[]", UsageInfo, "expected object, got array @ $"),
        (b"null", ChatResponse, "expected object, got null @ $"),
        (b"{}", list[ChatResponse], "expected array, got object @ $"),
        (b'[{"id":"1","name":"f"},3]', list[ToolCall], "expected object, got number @ $[1]"),
        (b'"abc"', CitationRef, "expected object, got string @ $"),
        (b'{"id":"x"}', CitationRef, "expected string, got null @ $.type"),
        (b'{"type":"text","text":"x"}', FilePart, "unknown type 'text', expected file @ $.type"),
        (b'{"type":"safety"}', SafetyAnnotation, "a required key is missing @ $.category"),
        (b'{"index":0}', ResponseDelta, "ACODE-RSP-009: Delta must have content or be complete @ $"),
        (
            b'{"event_type":"response.completed"}',
            StreamEvent,
            "response.completed: the terminal event, and no other, carries the response @ $",
        ),
        (
            b'{"provider_name":"p","model":"m","outcome":"lost"}',
            ProviderAttempt,
            "unknown word 'lost', expected success or error or cancelled @ $.outcome",
        ),
    ],
)
def test_refusals_at_top_level(data: bytes, cls: Any, problem: str) -> None:
    """Every type refuses what is not its own."""
    assert _problems(data, cls) == (problem,)


def test_every_problem_is_listed() -> None:
    """The message tells the first problem and the number of others. ``problems`` has them all."""
    data = _response(id=1, model=2, usage={})
    with pytest.raises(CanonicalJSONError) as caught:
        from_json(data, ChatResponse)
    assert str(caught.value) == "cannot read ChatResponse: expected string, got number @ $.id (and 3 more)"
    assert caught.value.problems == (
        "expected string, got number @ $.id",
        "a required key is missing @ $.usage.prompt_tokens",
        "a required key is missing @ $.usage.completion_tokens",
        "expected string, got number @ $.model",
    )


@pytest.mark.parametrize(
    "cls", [dict, str, FinishReason, object, list, list[str], tuple[ToolCall, ToolCall], tuple[()]]
)
def test_only_canonical_types_are_read(cls: Any) -> None:
    """Reading as anything but a canonical type is a mistake in the program."""
    with pytest.raises(TypeError, match="is not a canonical type"):
        from_json(b"{}", cls)


@pytest.mark.untraced
@pytest.mark.parametrize("depth", range(100, 511, 10))
def test_deep_nesting(depth: int) -> None:
    """A document nested as deep as JSON is parsed is read or refused, without a bare RecursionError."""
    data = b'{"token":"a","top":[' * depth + b'{"token":3}' + b"]}" * depth
    assert len(_problems(data, TokenLogprob)) == 1


def _leaves(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(plain, dict | list):
        for key in plain if isinstance(plain, dict) else range(len(plain)):
            yield from _leaves(plain[key], (*path, key))


def _read_or_refused(data: bytes, cls: Any) -> tuple[Any, CanonicalJSONError | None]:
    try:
        return from_json(data, cls), None
    except CanonicalJSONError as error:
        return None, error


def _replaced(plain: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = plain.copy()
    copy[path[0]] = _replaced(plain[path[0]], path[1:], new)
    return copy


@pytest.mark.sweep
@pytest.mark.parametrize("cls", [Alternative, ChatResponse, Segment, StreamEvent, ChatMessage])
@settings(max_examples=tries(80))
@given(data=st.data())
def test_junk_raises_only_our_error(cls: type, data: st.DataObject) -> None:
    """A document with anything anywhere is read, or refused with a place and without quoting content."""
    plain = to_jsonable(data.draw(BY_TYPE[cls]), include_raw=True)
    path = data.draw(st.sampled_from(list(_leaves(plain))))
    junk = data.draw(json_values | st.sampled_from(["x" * 200, {"x" * 200: "x" * 200}, ["x" * 200]]))
    read, error = _read_or_refused(orjson.dumps(_replaced(plain, path, junk)), cls)
    if error is None:
        assert unfolded(from_json(to_json(read, include_raw=True), cls)) == unfolded(read)
    else:
        assert error.problems
        assert all(" @ $" in problem for problem in error.problems)
        assert "x" * 61 not in str(error) + "".join(error.problems)
