"""Ollama, fact by fact (provider document "Ollama". Section numbers are its own)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crosswalk import (
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    Segment,
    SegmentType,
    TokenLogprob,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
)
from crosswalk.types import thaw
from wires import body, chunk, line, ndjson, one, outcome, read, sse, usage

STOP, LENGTH, CALLS, ERROR = (
    FinishReason.STOP,
    FinishReason.LENGTH,
    FinishReason.TOOL_CALLS,
    FinishReason.ERROR,
)


def ollama(*events: Any, **options: Any) -> Any:
    return read("ollama", ndjson(*events), **options)[1]


def generated(response: str = "", *, done: str | None = None, **more: Any) -> dict[str, Any]:
    """A line of /api/generate."""
    end = {"done": False} if done is None else {"done": True, "done_reason": done}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": response, **end, **more}


def tool(name: str, arguments: Any = None, *, id: str | None = None, index: Any = None) -> dict[str, Any]:
    function = {"index": index, "name": name, "arguments": arguments if arguments is not None else {}}
    call = {"id": id, "function": {key: value for key, value in function.items() if value is not None}}
    return {key: value for key, value in call.items() if value is not None}


def calls(*items: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(items)}


def test_a_message_needs_no_role() -> None:
    end = {"model": "m", "message": {"content": "Hi"}, "done": True, "done_reason": "stop"}
    assert ollama(end).text == "Hi"


# ------------------------------------------------------------------------------- section 10: the examples


def test_example_of_two_calls_with_one_index() -> None:
    """Two whole calls under index 0, a stop that is tool_calls, and a prompt count that is unknown."""
    head = {"model": "quartz:14b", "created_at": "2026-07-01T09:01:00.1Z"}
    ids = ["call_a1b2c3d4", "call_e5f6g7h8"]
    response = ollama(
        line(message={"thinking": "Need both ports."}) | head,
        line(message=calls(tool("tide_level", {"port": "Brindle"}, id=ids[0], index=0))) | head,
        line(message=calls(tool("tide_level", {"port": "Corvane"}, id=ids[1], index=0))) | head,
        line(done="stop", total_duration=900000000, eval_count=41) | head,
    )
    assert [(c.id, c.name, c.parsed()) for c in response.tool_calls] == [
        (ids[0], "tide_level", {"port": "Brindle"}),
        (ids[1], "tide_level", {"port": "Corvane"}),
    ]
    assert (response.finish_reason, response.raw_finish_reason) == (CALLS, "stop")
    assert response.usage == UsageInfo(0, 41)
    assert response.metadata.provenance == {
        "id": "synthetic",
        "finish_reason": "derived",
        "usage.prompt_tokens": "absent",
        "usage.total_tokens": "absent",
    }
    assert response.metadata.extensions["message"]["tool_calls"] == ({"function": {"index": 0}},)


# --------------------------------------------------------------------------- sections 2 and 8: every field

FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # field of a line -> what is left of it in the extensions
    "remote_model": ({"remote_model": "big"}, {"remote_model": "big"}),
    "remote_host": ({"remote_host": "https://x"}, {"remote_host": "https://x"}),
    "context": ({"context": [1, 2]}, {"context": (1, 2)}),
    "durations": (
        {"load_duration": 1, "prompt_eval_duration": 2, "eval_duration": 3},
        {"load_duration": 1, "prompt_eval_duration": 2, "eval_duration": 3},
    ),
    "counts": ({"prompt_eval_count": 1, "eval_count": 2}, {}),
    "a new field": ({"new": {"deep": [None, True]}}, {"new": {"deep": (None, True)}}),
    "a null": ({"new": None}, {"new": None}),
}
IN_MESSAGE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "thinking": ({"thinking": "hm"}, {}),
    "images null (old)": ({"images": None}, {}),
    "tool calls null": ({"tool_calls": None}, {}),
    "tool calls empty": ({"tool_calls": []}, {}),
    "tool_name": ({"tool_name": "go"}, {"tool_name": "go"}),
    "tool_call_id": ({"tool_call_id": "x"}, {"tool_call_id": "x"}),
    "another role": ({"role": "tool"}, {"role": "tool"}),
    "a new field": ({"new": 1}, {"new": 1}),
}


@pytest.mark.parametrize("case", FIELDS)
@pytest.mark.parametrize("make", [line, generated])
def test_every_field_of_a_line(case: str, make: Any) -> None:
    """Fields without a typed counterpart are in the extensions, as the server sent them."""
    fields, left = FIELDS[case]
    response = ollama(make("Hi", done="stop", **fields))
    assert response.metadata.extensions == {"created_at": "2026-01-01T00:00:00Z", **left}


@pytest.mark.parametrize("case", IN_MESSAGE)
def test_every_field_of_a_message(case: str) -> None:
    """The same inside the message."""
    fields, left = IN_MESSAGE[case]
    response = ollama(line("Hi", done="stop", message=fields))
    assert response.metadata.extensions.get("message", {}) == left
    assert response.text == "Hi"


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-07-01T09:00:00Z", datetime(2026, 7, 1, 9, tzinfo=UTC)),
        ("2026-07-01T09:00:00.1Z", datetime(2026, 7, 1, 9, 0, 0, 100000, tzinfo=UTC)),
        ("2026-07-01T09:00:00.123456789Z", datetime(2026, 7, 1, 9, 0, 0, 123456, tzinfo=UTC)),
        ("2026-07-01T02:00:00.5-07:00", datetime(2026, 7, 1, 9, 0, 0, 500000, tzinfo=UTC)),
        ("2026-07-01T09:00:00", None),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00+10:00", None),
        ("9999-12-31T23:59:59-10:00", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_the_time_of_creation(text: str | None, time: datetime | None) -> None:
    """RFC 3339 with 0 to 9 digits, and an offset in old versions. Any other value is kept, and the clock asked."""
    response = ollama(line("Hi", done="stop") | {"created_at": text})
    assert ("created" in response.metadata.provenance) is (time is None)
    assert time is None or response.created == time
    assert response.metadata.extensions["created_at"] == text


def test_every_line_has_its_time() -> None:
    """The response is created at the first line's time. The extensions keep each line's on its delta."""
    times = [f"2026-01-01T00:00:0{n}Z" for n in range(4)]
    lines = [line(t, created_at=time) for t, time in zip("abc", times, strict=False)]
    deltas, response = read("ollama", ndjson(*lines, line(done="stop", created_at=times[3])))
    assert response.created == datetime(2026, 1, 1, tzinfo=UTC)
    assert [delta.extensions["created_at"] for delta in deltas] == times
    assert response.metadata.extensions["created_at"] == times[3]


def test_media() -> None:
    """Images, if a model ever makes some, are segments after the text."""
    for event in (
        line("Look", done="stop", message={"images": ["aGk=", "aG8="]}),
        generated("Look", done="stop", images=["aGk=", "aG8="]),
    ):
        response = ollama(event)
        assert response.segments == (
            Segment(SegmentType.TEXT, "Look"),
            Segment(SegmentType.MEDIA, "aGk=", {"encoding": "base64"}),
            Segment(SegmentType.MEDIA, "aG8=", {"encoding": "base64"}),
        )
        assert response.metadata.extensions == {"created_at": "2026-01-01T00:00:00Z"}


def test_logprobs() -> None:
    """They are at the top, without a wrapper, also on lines without text. In a stream they add up (2.4)."""
    entry = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105]}
    top = {"top_logprobs": [{"token": "Hi", "logprob": -0.5}, {"token": "Yo", "logprob": -2, "bytes": [89]}]}
    response = ollama(
        line("", logprobs=[{"token": "", "logprob": -1}]),
        line("Hi", logprobs=[entry | top]),
        line(done="stop", logprobs=[entry]),
    )
    hi = TokenLogprob("Hi", -0.5, (72, 105))
    others = (TokenLogprob("Hi", -0.5), TokenLogprob("Yo", -2, (89,)))
    assert response.logprobs == (TokenLogprob("", -1), TokenLogprob("Hi", -0.5, (72, 105), others), hi)
    assert "logprobs" not in response.metadata.extensions
    assert ollama(generated("Hi", done="stop", logprobs=[entry])).logprobs == (hi,)


def test_think_tags_stay_in_the_text() -> None:
    """If the server does not part thinking from text neither do we (section 8)."""
    response = ollama(line("<think>hm</think>Hi", done="stop"))
    assert (response.text, response.reasoning) == ("<think>hm</think>Hi", "")


def test_what_stands_beside_a_message_is_left() -> None:
    """Fields of generate next to a message are not read, and not lost."""
    odd = {"response": "R", "thinking": "T", "images": ["aGk="], **calls(tool("go"))}
    response = ollama(line("Hi", done="stop", **odd))
    assert (response.text, response.reasoning, response.tool_calls) == ("Hi", "", ())
    assert {key: response.metadata.extensions[key] for key in odd} == {
        **odd,
        "images": ("aGk=",),
        "tool_calls": (tool("go"),),
    }
    assert ollama(generated("R", done="stop", message=None)).text == "R"


# ---------------------------------------------------------------------------------- section 3: the stream


def test_reasoning_then_text_then_calls() -> None:
    """A line may carry all three. The order is always this, in a body as in a stream (3, 3.5)."""
    said = {"thinking": "hm", **calls(tool("go", {"a": 1}))}
    for events in (
        [line("Hi", message=said, done="stop")],
        [line("Hi", message=said), line(done="stop")],
        [
            line(message={"thinking": "hm"}),
            line("Hi"),
            line(message=calls(tool("go", {"a": 1}))),
            line(done="stop"),
        ],
        [generated("Hi", thinking="hm", done="stop", **calls(tool("go", {"a": 1})))],
    ):
        response = ollama(*events)
        assert [(s.type.value, s.content) for s in response.segments] == [
            ("reasoning", "hm"),
            ("text", "Hi"),
            ("tool_call", '{"a":1}'),
        ]
        assert response.finish_reason is CALLS


CALL_SHAPES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, str]], Any]] = {
    # messages -> id, name, arguments of each call; what is left of them
    "since 0.12.10": (
        [calls(tool("go", {"b": 1, "a": [2]}, id="call_abcd1234", index=0))],
        [("call_abcd1234", "go", '{"b":1,"a":[2]}')],
        None,
    ),
    "before 0.12.10: no id": ([calls(tool("go", index=0))], [("call_0", "go", "{}")], None),
    "before 0.4.7: no index": ([calls(tool("go", id="x"))], [("x", "go", "{}")], None),
    "an empty id": ([calls(tool("go", id="", index=0))], [("call_0", "go", "{}")], None),
    "several on one line": (
        [calls(tool("a", id="x", index=0), tool("b", id="y", index=1))],
        [("x", "a", "{}"), ("y", "b", "{}")],
        None,
    ),
    "one on each line, counted": (
        [calls(tool("a", id="x", index=0)), calls(tool("b", id="y", index=1))],
        [("x", "a", "{}"), ("y", "b", "{}")],
        None,
    ),
    "all with index 0, one tool, no ids": (
        [calls(tool("a", {"n": 1}, index=0)), calls(tool("a", {"n": 1}, index=0))],
        [("call_0", "a", '{"n":1}'), ("call_1", "a", '{"n":1}')],
        ({"function": {"index": 0}},),
    ),
    "one id for two": (
        [calls(tool("a", id="x", index=0), tool("b", id="x", index=1))],
        [("x", "a", "{}"), ("call_1", "b", "{}")],
        ({}, {"id": "x"}),
    ),
    "an index that is no place": (
        [calls(tool("a", id="x", index=7))],
        [("x", "a", "{}")],
        ({"function": {"index": 7}},),
    ),
    "an index that is no number": (
        [calls(tool("a", id="x", index="0"))],
        [("x", "a", "{}")],
        ({"function": {"index": "0"}},),
    ),
    "arguments as the text of an object, from clones": (
        [calls(tool("a", '{"n": 1}', id="x"))],
        [("x", "a", '{"n": 1}')],
        None,
    ),
    "arguments null": (
        [calls({"function": {"name": "a", "arguments": None}})],
        [("call_0", "a", "{}")],
        None,
    ),
    "more than is known": (
        [calls({**tool("a", id="x"), "type": "function", "extra": 1})],
        [("x", "a", "{}")],
        ({"type": "function", "extra": 1},),
    ),
}


@pytest.mark.parametrize("case", CALL_SHAPES)
@pytest.mark.parametrize("place", ["before the end", "at the end"])
def test_tool_calls(case: str, place: str) -> None:
    """Each element is a whole call, in the order of arrival. Index and id are no keys (3.1, 3.2)."""
    messages, expected, left = CALL_SHAPES[case]
    lines = [line(message=message) for message in messages]
    if place == "at the end":
        lines[-1] = line(message=messages[-1], done="stop")
    else:
        lines.append(line(done="stop"))
    response = ollama(*lines)
    assert [(c.id, c.name, c.arguments) for c in response.tool_calls] == expected
    assert response.finish_reason is CALLS
    made_up = {
        f"message.tool_calls[{n}].id"
        for n, (id, _, _) in enumerate(expected)
        if id.startswith("call_") and len(id) == 6
    }
    marked = {path for path, why in response.metadata.provenance.items() if why == "synthetic"}
    assert marked - {"id"} == made_up
    rest = response.metadata.extensions.get("message", {}).get("tool_calls")
    assert rest == left


def test_generate_has_its_calls_at_the_end() -> None:
    """/api/generate gives them on the last line, without ids."""
    response = ollama(
        generated("Hi"), generated(done="stop", **calls(tool("a", index=0), tool("b", index=1)))
    )
    assert [(c.id, c.name) for c in response.tool_calls] == [("call_0", "a"), ("call_1", "b")]
    assert "tool_calls" not in response.metadata.extensions


def test_length_is_stronger_than_calls() -> None:
    """The calls of an answer that was cut may be an incomplete set."""
    assert ollama(line(message=calls(tool("go"))), line(done="length")).finish_reason is LENGTH


@pytest.mark.parametrize(
    "lines",
    [
        [line("Hi")],
        [line(message={"thinking": "hm"}), line("Hi")],
        [line("Hi", message=calls(tool("go")))],
        [generated("Hi")],
        [line("Hi") | {"done": None}],
        [{key: value for key, value in line("Hi").items() if key != "done"} | {"done": False}],
    ],
)
def test_a_stream_without_its_last_line_is_incomplete(lines: list[Any]) -> None:
    """The token-repeat guard and a runner that is gone end a stream, or a body, without a word (3.3)."""
    partial, error = outcome("ollama", ndjson(*lines))
    assert isinstance(error, IncompleteStreamError)
    assert (partial.text, partial.finish_reason, partial.raw_finish_reason) == ("Hi", ERROR, None)


# ----------------------------------------------------------------------------- section 4: finish reasons


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("end", "reason", "raw", "provenance"),
    [
        ({"done_reason": "stop"}, STOP, "stop", None),
        ({"done_reason": "length"}, LENGTH, "length", None),
        ({"done_reason": "load"}, STOP, "load", None),
        ({"done_reason": "unload"}, STOP, "unload", None),
        ({"done_reason": "tool_calls"}, FinishReason.TOOL_CALLS, "tool_calls", "derived"),
        ({"done_reason": "CONTENT_FILTER"}, FinishReason.CONTENT_FILTER, "CONTENT_FILTER", None),
        ({"done_reason": "cancelled"}, FinishReason.CANCELLED, "cancelled", None),
        ({"done_reason": "error"}, ERROR, "error", None),
        ({"eval_count": 3}, STOP, "", "derived"),
        ({"done_reason": "", "eval_count": 3}, STOP, "", "derived"),
        ({"done_reason": None, "eval_count": 3}, STOP, "", "derived"),
        ({}, ERROR, "", "derived"),
        ({"eval_count": 0}, ERROR, "", "derived"),
        ({"done_reason": ""}, ERROR, "", "derived"),
    ],
)
@pytest.mark.parametrize("make", [line, generated])
def test_done_reasons(
    end: dict[str, Any], reason: FinishReason, raw: str, provenance: str | None, make: Any
) -> None:
    """Each word, and what is made of none: stop if something was generated, else an error."""
    response = ollama(make("Hi") | {"done": True, **end})
    assert (response.finish_reason, response.raw_finish_reason) == (reason, raw)
    assert response.metadata.provenance.get("finish_reason") == provenance
    assert response.text == "Hi"
    assert (response.refusal is not None) is (reason is ERROR)


def test_a_word_that_nobody_knows() -> None:
    """A remote host's own word raises, or is kept. The counts after it are there in either case."""
    end = line("Hi", done="eos", eval_count=2)
    partial, error = outcome("ollama", ndjson(end))
    assert isinstance(error, UnknownFinishReasonError)
    assert (error.reason, partial.text, partial.usage.completion_tokens) == ("eos", "Hi", 2)
    assert ollama(end, unknown="keep").metadata.provenance["finish_reason"] == "unmapped"


def test_a_reason_before_the_end_is_left() -> None:
    """done_reason counts only on the line that is done."""
    response = ollama(line("Hi") | {"done_reason": "length"}, line(done="stop"))
    assert response.finish_reason is STOP
    assert response.metadata.extensions["done_reason"] == "length"


@pytest.mark.parametrize("word", ["load", "unload"])
@pytest.mark.parametrize("make", [line, generated])
@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_load_and_unload(word: str, make: Any, newline: bytes) -> None:
    """One object, also where a stream was asked for, perhaps without a newline: an empty answer, counts unknown."""
    _, response = read("ollama", ndjson(make(done=word)).rstrip() + newline)
    assert (response.finish_reason, response.raw_finish_reason, response.text) == (STOP, word, "")
    assert response.segments == ()
    assert response.usage == UsageInfo.EMPTY
    assert response.metadata.provenance["usage"] == "absent"


def test_a_rendered_prompt_instead_of_an_answer() -> None:
    """_debug_render_only gives a single object that is not done, and is nevertheless all."""
    info = {"rendered_template": "<|user|>Hi", "image_count": 1}
    for make in (line, generated):
        response = ollama(make(_debug_info=info))
        assert (response.finish_reason, response.raw_finish_reason) == (STOP, None)
        assert response.metadata.provenance["finish_reason"] == "derived"
        assert response.metadata.extensions["_debug_info"] == info
    assert ollama(line("Hi", done="stop", _debug_info=info)).raw_finish_reason == "stop"
    assert ollama(line("Hi", done="stop", _debug_info=None)).metadata.extensions["_debug_info"] is None


# -------------------------------------------------------------------------- sections 5 and 6: counts, times


@pytest.mark.parametrize(
    ("counts", "expected", "absent"),
    [
        ({"prompt_eval_count": 31, "eval_count": 22}, UsageInfo(31, 22), set()),
        ({"eval_count": 22}, UsageInfo(0, 22), {"usage.prompt_tokens", "usage.total_tokens"}),
        ({"prompt_eval_count": 31}, UsageInfo(31, 0), {"usage.completion_tokens", "usage.total_tokens"}),
        ({"prompt_eval_count": 0, "eval_count": 0}, UsageInfo(0, 0), set()),
        (
            {"prompt_eval_count": None, "eval_count": 2},
            UsageInfo(0, 2),
            {"usage.prompt_tokens", "usage.total_tokens"},
        ),
        ({}, UsageInfo(0, 0), {"usage"}),
    ],
)
def test_a_missing_count_is_not_zero(counts: dict[str, Any], expected: UsageInfo, absent: set[str]) -> None:
    """A fully cached prompt of old servers has no count. Cached tokens are never reported."""
    response = ollama(line("Hi"), line(done="stop", **counts))
    assert response.usage == expected
    assert response.usage.cached_tokens is None
    marked = {path for path, why in response.metadata.provenance.items() if path.startswith("usage")}
    assert marked == absent
    assert (response.metadata.completion_tokens is None) is bool(
        absent & {"usage", "usage.completion_tokens"}
    )


@pytest.mark.parametrize(
    ("nanoseconds", "duration"),
    [
        (2950117833, timedelta(microseconds=2950117)),
        (999, timedelta(0)),
        (0, timedelta(0)),
        (2**63 - 1, timedelta(microseconds=(2**63 - 1) // 1000)),
        (2**63, timedelta(0)),  # no count
        (None, timedelta(0)),
    ],
)
def test_times_are_nanoseconds(nanoseconds: int | None, duration: timedelta) -> None:
    """The total is the duration of the request, and stays in the extensions to the nanosecond."""
    response = ollama(line("Hi", done="stop", total_duration=nanoseconds, eval_count=22))
    assert response.metadata.request_duration == duration
    assert response.metadata.extensions["total_duration"] == nanoseconds


def test_a_measured_duration_is_stronger() -> None:
    """A caller that measures gets the measurements."""
    ticks = iter([1.0, 2.0, 4.0])
    end = line("Hi", done="stop", total_duration=9 * 10**9)
    response = read("ollama", ndjson(end), timer=lambda: next(ticks))[1]
    assert response.metadata.request_duration == timedelta(seconds=3)
    assert response.metadata.time_to_first_token == timedelta(seconds=1)


# ------------------------------------------------------------------------------------- section 7: errors

LLAMA = json.dumps(
    {
        "error": {
            "code": 400,
            "message": "request (9012 tokens) exceeds the available context size (4096 tokens)",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 9012,
            "n_ctx": 4096,
        }
    }
)
K = ErrorKind
HTTP_ERRORS: list[tuple[int, Any, ErrorKind, str, bool]] = [
    (400, {"error": "missing request body"}, K.INVALID_REQUEST, "missing request body", False),
    (400, {"error": "model is required"}, K.INVALID_REQUEST, "model is required", False),
    (400, {"error": '"m" does not support thinking'}, K.INVALID_REQUEST, '"m" does not support thinking', False),
    (400, {"error": "top_logprobs must be between 0 and 20"}, K.INVALID_REQUEST, "top_logprobs must be between 0 and 20", False),
    (400, {"error": "raw mode does not support template, system, or context"}, K.INVALID_REQUEST, "raw mode does not support template, system, or context", False),
    (400, {"error": "this server cannot run this remote model"}, K.INVALID_REQUEST, "this server cannot run this remote model", False),
    (400, {"error": LLAMA}, K.CONTEXT_OVERFLOW, "request (9012 tokens) exceeds the available context size (4096 tokens)", False),
    (400, {"error": LLAMA + "\nout of memory"}, K.CONTEXT_OVERFLOW, "request (9012 tokens) exceeds the available context size (4096 tokens)", False),
    (401, {"error": "unauthorized", "signin_url": "https://ollama.com/connect"}, K.AUTHENTICATION, "unauthorized", False),
    (403, "", K.PERMISSION, "HTTP 403", False),
    (403, {"error": "cloud is disabled"}, K.PERMISSION, "cloud is disabled", False),
    (404, {"error": "model 'x' not found"}, K.MODEL_UNAVAILABLE, "model 'x' not found", False),
    (404, {"error": 'model "x" not found, try pulling it first'}, K.MODEL_UNAVAILABLE, 'model "x" not found, try pulling it first', False),
    (404, "404 page not found", K.INVALID_REQUEST, "404 page not found", False),
    (404, {"StatusCode": 404, "Status": "404 Not Found", "error": "gone"}, K.INVALID_REQUEST, "gone", False),
    (405, "405 method not allowed", K.INVALID_REQUEST, "405 method not allowed", False),
    (429, {"error": "too many"}, K.RATE_LIMIT, "too many", True),
    (499, {"error": "request canceled"}, K.TIMEOUT, "request canceled", False),
    (500, {"error": "model runner has unexpectedly stopped, this may be due to resource limitations"}, K.SERVER, "model runner has unexpectedly stopped, this may be due to resource limitations", True),
    (500, {"error": 'llama-server returned invalid tool call arguments for "go": x'}, K.TOOL_CALL_VALIDATION, 'llama-server returned invalid tool call arguments for "go": x', False),
    (502, "<html><body>Bad Gateway</body></html>", K.SERVER, "Bad Gateway", True),
    (503, {"error": "server busy, please try again.  maximum pending requests exceeded"}, K.SERVER, "server busy, please try again. maximum pending requests exceeded", True),
    # The OpenAI layer's own shape.
    (404, {"error": {"message": "model 'x' not found", "type": "not_found_error", "param": None, "code": None}}, K.MODEL_UNAVAILABLE, "model 'x' not found", False),
    (400, {"error": {"message": "bad", "type": "invalid_request_error", "param": None, "code": None}}, K.INVALID_REQUEST, "bad", False),
    (500, {"error": {"message": "broken", "type": "api_error", "param": None, "code": None}}, K.SERVER, "broken", True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said", "kind", "message", "retryable"), HTTP_ERRORS)
def test_http_errors(status: int, said: Any, kind: ErrorKind, message: str, retryable: bool) -> None:
    """Kind, words and whether a retry may help. The body is kept (7.1)."""
    response = one("ollama", said if isinstance(said, str) else json.dumps(said), status=status)
    info = response.error_info
    assert info is not None
    assert (info.kind, info.message, info.retryable, info.status) == (kind, message, retryable, status)
    assert info.raw == (said or None)
    assert response.finish_reason is ERROR


@pytest.mark.parametrize(
    ("said", "kind", "message", "status"),
    [
        ("an error was encountered while running the model: CUDA error", K.SERVER, None, None),
        ("llama runner process no longer running: 2", K.SERVER, None, None),
        ("something odd", K.SERVER, None, None),
        ("context deadline exceeded", K.TIMEOUT, None, None),
        ('llama-server returned invalid tool call arguments for "go"', K.TOOL_CALL_VALIDATION, None, None),
        (
            LLAMA,
            K.CONTEXT_OVERFLOW,
            "request (9012 tokens) exceeds the available context size (4096 tokens)",
            400,
        ),
        ("", K.SERVER, "the provider reported an error", None),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_error_lines(
    said: str, kind: ErrorKind, message: str | None, status: int | None, first: bool
) -> None:
    """One line ends the stream with HTTP status 200. It comes from the runner, so a retry may help (7.2)."""
    lines = [{"error": said}] if first else [line("Hi"), {"error": said}]
    response = ollama(*lines)
    info = response.error_info
    assert (info.kind, info.message, info.status) == (kind, message or said, status)
    assert info.raw == {"error": said}
    assert response.text == ("" if first else "Hi")
    assert response.finish_reason is ERROR


# ------------------------------------------------------------------------------------ type confusion


@pytest.mark.parametrize(
    ("event", "place"),
    [
        (line("Hi") | {"message": "x"}, "message"),
        (line("Hi") | {"done": "true"}, "done"),
        (line("Hi") | {"done": 1}, "done"),
        (line("Hi") | {"model": 1}, "model"),
        (line("Hi", message={"content": 1}), "message.content"),
        (line("Hi", message={"thinking": []}), "message.thinking"),
        (line("Hi", message={"images": "x"}), "message.images"),
        (line("Hi", message={"images": [1]}), "message.images[0]"),
        (line("Hi", message={"tool_calls": {}}), "message.tool_calls"),
        (line("Hi", message={"tool_calls": [1]}), "message.tool_calls[0]"),
        (line("Hi", message={"tool_calls": [{"id": 1}]}), "message.tool_calls[0].id"),
        (line("Hi", message={"tool_calls": [{"function": 1}]}), "message.tool_calls[0].function"),
        (
            line("Hi", message={"tool_calls": [{"function": {"name": 1}}]}),
            "message.tool_calls[0].function.name",
        ),
        (generated("Hi") | {"response": 1}, "response"),
        (generated("Hi", images=[1]), "images[0]"),
        (generated("Hi", tool_calls=[{"function": {"arguments": []}}]), "tool_calls[0].function.arguments"),
        (line(done="stop") | {"done_reason": 1}, "done_reason"),
    ],
)
def test_a_leaf_of_another_type_is_named(event: Any, place: str) -> None:
    """The error leads to the very leaf and keeps what came before, in the same event as well."""
    partial, error = outcome("ollama", ndjson(line("Hi "), event))
    assert isinstance(error, WireTypeError)
    assert error.place == f"event 2, {place}"
    assert partial.text in ("Hi ", "Hi Hi")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("created_at", 1),
        ("logprobs", {}),
        ("logprobs", [1]),
        ("eval_count", "2"),
        ("eval_count", -2),
        ("prompt_eval_count", 1.5),
        ("total_duration", "1s"),
        ("total_duration", -1),
    ],
)
def test_a_side_field_of_another_type_stays(field: str, value: Any) -> None:
    """It costs the field, not the answer."""
    response = ollama(line("Hi", done="stop") | {field: value})
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
    assert response.metadata.provenance[f"metadata.extensions.{field}"] == "mistyped"
    assert thaw(response.metadata.extensions[field]) == value


@pytest.mark.parametrize("event", [{"status": "pulling manifest"}, {"done": True}, {"model": "m"}, {}])
def test_what_is_no_line_of_an_answer(event: Any) -> None:
    """Progress of a pull and similar lines are unknown events, also after lines that were known."""
    for lines in ([event], [line("Hi"), event]):
        _, error = outcome("ollama", ndjson(*lines))
        assert isinstance(error, UnknownEventError)
    assert ollama(line("Hi"), event, line(done="stop"), unknown="keep").text == "Hi"


# -------------------------------------------------------------------------- section 9: the OpenAI layer

FP: dict[str, Any] = {"system_fingerprint": "fp_ollama"}


def v1(*events: Any, done: bool = True, **options: Any) -> Any:
    return read("ollama", sse(*events, done=done), **options)[1]


def test_layer_stream_of_older_servers() -> None:
    """Role on every chunk, the end on the last text, stop after a call of an earlier chunk, index 0 for all calls."""

    def old(id: str, name: str) -> Any:
        call = {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        return chunk({"role": "assistant", "content": "", "tool_calls": [call]}, **FP)

    response = v1(
        old("x", "a"),
        old("y", "a"),
        old("z", "b"),
        chunk({"role": "assistant", "content": "Hi"}, "stop", **FP),
    )
    assert [(c.id, c.name) for c in response.tool_calls] == [("x", "a"), ("y", "a"), ("z", "b")]
    assert (response.finish_reason, response.raw_finish_reason) == (CALLS, "stop")
    assert response.metadata.provenance["usage"] == "absent"


@pytest.mark.parametrize(("word", "reason"), [("load", STOP), ("unload", STOP), ("length", LENGTH)])
def test_layer_words(word: str, reason: FinishReason) -> None:
    """Words of the native API pass through."""
    response = v1(body({"content": ""}, word, **FP))
    assert (response.finish_reason, response.raw_finish_reason) == (reason, word)


@pytest.mark.parametrize("done", [True, False])
def test_layer_loses_its_errors(done: bool) -> None:
    """A runner's failure is an empty chunk without model, and then the end: the answer is incomplete (9.1)."""
    lost = chunk({"role": "assistant", "content": ""}) | {"model": ""}
    partial, error = outcome("ollama", sse(chunk({"content": "Hi"}, **FP), lost, done=done))
    assert isinstance(error, IncompleteStreamError)
    assert (partial.text, partial.model, partial.finish_reason) == ("Hi", "m", ERROR)


def test_layer_completions() -> None:
    """Every chunk has zeros for counts, the extra last one the true numbers: the last counts (9.2)."""

    def text(said: str, finish: str | None = None) -> Any:
        return chunk() | {"object": "text_completion", "usage": usage(0, 0), **FP,
                          "choices": [{"text": said, "index": 0, "finish_reason": finish}]}  # fmt: skip

    deltas, response = read(
        "ollama", sse(text("Hi"), text("!"), text("", "stop"), chunk(None, usage=usage(5, 7), **FP))
    )
    assert (response.text, response.usage) == ("Hi!", UsageInfo(5, 7))
    assert deltas[-1].usage == UsageInfo(5, 7)
    whole = one("ollama", {**text("Hi!", "stop"), "usage": usage(5, 7)})
    assert (whole.text, whole.usage) == ("Hi!", UsageInfo(5, 7))


def test_layer_logprobs_and_debug() -> None:
    """Logprobs in OpenAI's wrapper, entries in Ollama's form. A rendered prompt is left."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop",
              "logprobs": {"content": [{"token": "Hi", "logprob": -1, "bytes": [72, 105]}]}}  # fmt: skip
    response = one(
        "ollama", {"choices": [choice], "model": "m", "_debug_info": {"rendered_template": "x"}, **FP}
    )
    assert response.logprobs == (TokenLogprob("Hi", -1, (72, 105)),)
    assert response.metadata.extensions["_debug_info"] == {"rendered_template": "x"}
