"""Canonical JSON as it is written, and values that cannot be written."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import orjson
import pytest

from crosswalk.codec import FORMAT_VERSION, from_json, to_json, to_jsonable
from crosswalk.errors import CanonicalJSONError
from crosswalk.types import (
    AudioPart,
    ChatMessage,
    ChatResponse,
    CitationRef,
    ContentFilterResult,
    FilePart,
    FinishReason,
    FrozenObject,
    ImagePart,
    Provenance,
    ProviderAttempt,
    ResponseDelta,
    ResponseMetadata,
    SafetyAnnotation,
    Segment,
    SegmentType,
    StreamEvent,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
)

SEED_EXAMPLE = b"""{
  "id": "resp_abc123",
  "message": {
    "role": "assistant",
    "content": "Hello! How can I help you today?"
  },
  "finish_reason": "stop",
  "usage": {
    "prompt_tokens": 25,
    "completion_tokens": 12,
    "total_tokens": 37
  },
  "metadata": {
    "provider_id": "ollama",
    "model_id": "llama3.2:8b",
    "request_duration_seconds": 2.45,
    "time_to_first_token_seconds": 0.089,
    "tokens_per_second": 4.9
  },
  "created": "2024-01-15T10:30:00Z",
  "model": "llama3.2:8b"
}"""


def _response(**fields: Any) -> ChatResponse:
    known = {
        "id": "r",
        "message": ChatMessage.assistant("hi"),
        "finish_reason": FinishReason.STOP,
        "usage": UsageInfo(1, 2),
        "metadata": ResponseMetadata("p", "m", timedelta(seconds=4)),
        "created": datetime(2024, 1, 15, 10, 30, tzinfo=UTC),
        "model": "m",
    }
    return ChatResponse(**{**known, **fields})


def test_seed_example() -> None:
    """Seed 000's example is read, and written in its own layout, the exact speed and the version added."""
    response = from_json(SEED_EXAMPLE, ChatResponse)
    assert response.metadata.time_to_first_token == timedelta(milliseconds=89)
    expected = SEED_EXAMPLE.replace(b"4.9", repr(12 / 2.45).encode())
    expected = expected.removesuffix(b"\n}") + b',\n  "format_version": "1.0"\n}'
    assert to_json(response, indent=True) == expected


def test_order_of_keys() -> None:
    """The keys of a response are in one fixed order, the version last."""
    segment = Segment(SegmentType.TEXT, "hi")
    full = _response(
        raw_finish_reason="stop",
        refusal="no",
        content_filter_results=[ContentFilterResult("hate", "low", False)],
        segments=[segment],
        logprobs=[TokenLogprob("hi", -0.5)],
        alternatives=[],
        attempts=[ProviderAttempt("p", "m")],
        raw_events=[b"{}"],
    )
    assert list(to_jsonable(full, include_raw=True)) == [
        "id", "message", "finish_reason", "usage", "metadata", "created", "model", "raw_finish_reason",
        "refusal", "content_filter_results", "segments", "logprobs", "attempts", "raw_events",
        "format_version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (UsageInfo(3, 4), b'{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}'),
        (
            UsageInfo(3, 4, 0, 1, 2),
            b'{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,'
            b'"cached_tokens":0,"reasoning_tokens":1,"cache_write_tokens":2}',
        ),
        (ChatMessage.assistant(), b'{"role":"assistant"}'),
        (
            ChatMessage.user([TextPart("a"), ImagePart(url="u"), AudioPart(data="d", media_type="m")]),
            b'{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","url":"u"},'
            b'{"type":"audio","data":"d","media_type":"m"}]}',
        ),
        (FilePart(data="d", name="n"), b'{"type":"file","data":"d","name":"n"}'),
        (ToolCall("1", "f"), b'{"id":"1","name":"f","arguments":"{}"}'),
        (ToolCallDelta(0, arguments_delta=""), b'{"index":0,"arguments_delta":""}'),
        (CitationRef(span=(0, 4)), b'{"type":"citation","span":[0,4]}'),
        (SafetyAnnotation("hate"), b'{"type":"safety","category":"hate","blocked":false}'),
        (
            Segment(SegmentType.TEXT, annotations=(CitationRef("1"),)),
            b'{"type":"text","content":"","annotations":[{"type":"citation","id":"1"}]}',
        ),
        (TokenLogprob("a", None), b'{"token":"a"}'),
        (
            TokenLogprob("a", 0, (97,), (TokenLogprob("a", -1.5),)),
            b'{"token":"a","logprob":0.0,"bytes":[97],"top":[{"token":"a","logprob":-1.5}]}',
        ),
        (
            ContentFilterResult("self_harm", "safe", False),
            b'{"category":"self_harm","severity":"safe","filtered":false}',
        ),
        (
            ProviderAttempt("p", "m", 1.5, "error", "boom", {"a": None}),
            b'{"provider_name":"p","model":"m","latency_ms":1.5,"outcome":"error","error":"boom","extra":{"a":null}}',
        ),
        (ResponseDelta(2, content_delta="x"), b'{"index":2,"content_delta":"x"}'),
        (
            ResponseDelta(2, finish_reason=FinishReason.TOOL_CALLS, choice=1),
            b'{"index":2,"finish_reason":"tool_calls","choice":1}',
        ),
        (
            ResponseMetadata("p", "m", provenance={"usage": Provenance.ABSENT}),
            b'{"provider_id":"p","model_id":"m","request_duration_seconds":0.0,"provenance":{"usage":"absent"}}',
        ),
        ([], b"[]"),
    ],
)
def test_layout(value: Any, written: bytes) -> None:
    """None and empty collections are left out. Zeros, falses and empty texts are said (FR-102, FR-103)."""
    assert to_json(value) == written


def test_computed_values() -> None:
    """The speed of a response is written, the count it comes from is not."""
    metadata = to_jsonable(_response())["metadata"]
    assert metadata == {
        "provider_id": "p", "model_id": "m", "request_duration_seconds": 4.0, "tokens_per_second": 0.5
    }  # fmt: skip


def test_unknown_count_has_no_speed() -> None:
    """If the count was not sent there is no speed either (design, P8)."""
    metadata = ResponseMetadata("p", "m", timedelta(seconds=4), provenance={"usage": "absent"})
    assert "tokens_per_second" not in to_jsonable(_response(metadata=metadata))["metadata"]


@pytest.mark.parametrize(
    ("created", "written"),
    [
        (datetime(2024, 1, 15, 10, 30, tzinfo=UTC), "2024-01-15T10:30:00Z"),
        (datetime(2024, 1, 15, 10, 30, 0, 120, tzinfo=UTC), "2024-01-15T10:30:00.000120Z"),
        (datetime.fromisoformat("2024-01-15T10:30:00+05:30"), "2024-01-15T05:00:00Z"),
    ],
)
def test_times(created: datetime, written: str) -> None:
    """Times are UTC with Z, with microseconds only where there are some (FR-104)."""
    assert to_jsonable(_response(created=created))["created"] == written


def test_version_only_where_a_document_starts() -> None:
    """A response names the format version at top level and in a list, not inside another value."""
    response = _response()
    assert to_jsonable(response)["format_version"] == FORMAT_VERSION
    assert to_jsonable([response])[0]["format_version"] == FORMAT_VERSION
    assert "format_version" not in to_jsonable(StreamEvent.terminal(response))["response"]


def test_raw_is_written_only_when_asked_for() -> None:
    """Neither a response's nor a stream event's raw bytes are written by default (NFR-021)."""
    response = _response(raw_events=[b"secret"])
    event = attrs.evolve(StreamEvent.terminal(response), raw_event="secret")
    assert b"secret" not in to_json(response) + to_json(event)
    assert to_json(event, include_raw=True).count(b"secret") == 2


_cycle: list[Any] = []
_cycle.append(_cycle)
_deep: Any = 1
for _ in range(300):
    _deep = [_deep]


def _with(extension: Any) -> ResponseDelta:
    return ResponseDelta(0, extensions=FrozenObject.adopt({"x y": [0, extension]}))


def _adopted(value: Any) -> Segment:
    return Segment("text", metadata=FrozenObject.adopt({"a": value}))


def _changed(value: Any, field: str, item: Any) -> Any:
    """*value* with *item* in it, past every check: what a broken program can do."""
    object.__setattr__(value, field, item)
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (_adopted(-math.inf), "JSON has no number for -inf @ $.metadata.a"),
        ([_adopted({"b": math.inf})], "JSON has no number for inf @ $[0].metadata.a.b"),
        (_with(math.nan), "JSON has no number for nan @ $.extensions['x y'][1]"),
        (_with("\ud800"), "a lone surrogate is not Unicode text @ $.extensions['x y'][1]"),
        (_with({"\ud800": 1}), "a key with a lone surrogate @ $.extensions['x y'][1]"),
        (_with({1: 1}), "a key that is not a string @ $.extensions['x y'][1]"),
        (_with(10**4300), "an integer of more than 4300 digits @ $.extensions['x y'][1]"),
        (_with(b"bytes"), "bytes is not a JSON value @ $.extensions['x y'][1]"),
        (_with(_deep), "nested deeper than 254 levels @ $"),
        (_with(_cycle), "nested deeper than 254 levels @ $"),
        (_with({"k" * 90: math.nan}), f"JSON has no number for nan @ $.extensions['x y'][1]['{'k' * 39}…']"),
        (_adopted("\udfff"), "a lone surrogate is not Unicode text @ $.metadata.a"),
        (_changed(TokenLogprob("a", 1.0), "logprob", math.nan), "JSON has no number for nan @ $.logprob"),
        (_changed(Segment("text"), "annotations", (7,)), "a field holds a value of a type not its own @ $"),
    ],
)
def test_what_cannot_be_written(value: Any, problem: str) -> None:
    """Values that JSON cannot represent are refused with their place, never written as null, never a bare TypeError."""
    with pytest.raises(CanonicalJSONError) as caught:
        to_json(value)
    assert caught.value.problems[0] == problem
    assert str(caught.value).startswith(f"cannot write {type(value).__name__}: {problem}")


def test_several_problems_are_all_listed() -> None:
    """The message tells the first problem and how many more there are. The attribute has them all."""
    value = _adopted(["\ud800", math.nan, b"x"])
    with pytest.raises(CanonicalJSONError, match=r"@ \$\.metadata\.a\[0\] \(and 2 more\)$") as caught:
        to_json(value)
    assert len(caught.value.problems) == 3


def test_true_nulls_are_written() -> None:
    """The word null in a text and a null in extensions do not stop the writing."""
    value = ResponseDelta(0, content_delta="null", extensions={"a": None, "b": [True, 1.5, "null", {}, 3]})
    assert b'{"a":null,"b":[true,1.5,"null",{},3]}' in to_json(value)


def test_times_beside_nulls_are_written() -> None:
    """The search for what null may hide takes times, nulls and truth values for what they are."""
    assert to_json(_response(refusal="null"))
    metadata = ResponseMetadata("p", "m", extensions=FrozenObject.adopt({"a": [None, True, math.nan]}))
    with pytest.raises(CanonicalJSONError) as caught:
        to_json(_response(metadata=metadata))
    assert caught.value.problems == ("JSON has no number for nan @ $.metadata.extensions.a[2]",)


def test_deeply_nested_tokens() -> None:
    """Values nested deeper than Python's stack give the codec's own error."""
    token = TokenLogprob("a", 0.0)
    for _ in range(2000):
        token = TokenLogprob("a", 0.0, None, (token,))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # whatever another test made of it
    try:
        with pytest.raises(CanonicalJSONError, match="nested too deeply"):
            to_json(token)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("value", [3, None, "text", {"id": "x"}, [3], object(), FinishReason.STOP])
def test_only_canonical_values_are_written(value: Any) -> None:
    """Anything but a canonical value is a mistake in the program."""
    with pytest.raises(TypeError, match="is not a canonical type"):
        to_json(value)


def test_mapping_imports_no_cattrs() -> None:
    """A process that maps an answer does not wait for what writes it (design, P7)."""
    script = (
        "import sys, crosswalk;"
        "crosswalk.normalize({'model': 'm', 'done': True, 'done_reason': 'stop', 'response': 'a'}, 'ollama');"
        "assert 'cattrs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def _long(extensions: Any, text: str = 'a "b"\n' * 1000) -> ChatResponse:
    """A response with a long text, in its message and in its segment."""
    return ChatResponse(
        id="r",
        message=ChatMessage.assistant(text),
        finish_reason=FinishReason.STOP,
        usage=UsageInfo(1, 2),
        metadata=ResponseMetadata("p", "m", extensions=FrozenObject.adopt(extensions)),
        created=datetime(2026, 1, 1, tzinfo=UTC),
        model="m",
        segments=(Segment(SegmentType.TEXT, text),),
    )


@pytest.mark.parametrize("indent", [True, False])
def test_a_long_text_is_written_as_a_short_one(indent: bool) -> None:
    """Both times."""
    response = _long({"a": None})
    written = orjson.loads(to_json(response, indent=indent))
    assert written["message"]["content"] == written["segments"][0]["content"] == response.text
    plain = orjson.dumps(written, option=orjson.OPT_INDENT_2 if indent else 0)
    assert to_json(response, indent=indent) == plain


@pytest.mark.parametrize("text", ["short", "long " * 1000])
@pytest.mark.parametrize("count", [1, 1000])
def test_what_is_no_number_is_found_beside_any_text(text: str, count: int) -> None:
    """Among few values and many, with nulls that are meant."""
    values = [None, 1.5, "x"] * count
    assert to_jsonable(_long({"a": values}, text))["metadata"]["extensions"] == {"a": values}
    for wrong in (math.nan, math.inf):
        with pytest.raises(CanonicalJSONError, match="JSON has no number"):
            to_json(_long({"a": [*values, wrong]}, text))
    with pytest.raises(CanonicalJSONError, match="is not a JSON value"):
        to_json(_long({"a": [*values, b"x"]}, text))
