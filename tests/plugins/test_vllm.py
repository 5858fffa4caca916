"""vLLM, fact by fact (provider document "vLLM". Section numbers are its own)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crosswalk import (
    ErrorKind,
    FinishReason,
    TokenLogprob,
    ToolCallArgumentsError,
    UnknownEventError,
    UsageInfo,
)
from crosswalk.plugins import UsageDetails
from wires import body, chunk, one, outcome, read, sse, usage

STOP, LENGTH, CALLS, ERROR = (
    FinishReason.STOP,
    FinishReason.LENGTH,
    FinishReason.TOOL_CALLS,
    FinishReason.ERROR,
)
K = ErrorKind


def vllm(*events: Any, done: bool = True, **options: Any) -> Any:
    return read("vllm", sse(*events, done=done), **options)[1]


def choice(index: int = 0, **more: Any) -> dict[str, Any]:
    return {"index": index, "logprobs": None, "finish_reason": None, **more}


def with_choices(*choices: dict[str, Any], **more: Any) -> dict[str, Any]:
    return chunk(**more) | {"choices": list(choices)}


# ------------------------------------------------------------------------------- section 11: the examples


def test_example_stream() -> None:
    """Reasoning and text in one delta, a whole call and a split one, one index twice in an array, a usage chunk."""
    a = {
        "id": "chatcmpl-tool-a",
        "type": "function",
        "index": 0,
        "function": {"name": "ping", "arguments": "{}"},
    }
    b = {"id": "chatcmpl-tool-b", "type": "function", "index": 1, "function": {"name": "plot"}}
    rest = [{"index": 1, "function": {"arguments": "{"}}]
    nulled = {
        "content": None,
        "tool_calls": [{"index": 1, "function": {"name": None, "arguments": '"x": 4'}}],
    }
    data = [
        sse(
            with_choices(choice(delta={"role": "assistant", "content": ""}), prompt_token_ids=None),
            done=False,
        ),
        sse(with_choices(choice(delta={"content": "Ok", "reasoning": " done."}, token_ids=None)), done=False),
        b": keep-alive\n\n",
        sse(
            with_choices(choice(delta={"tool_calls": [a, b, *rest]})),
            with_choices(choice(delta=nulled), kv_transfer_params=None),
            with_choices(
                choice(delta={"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]})
                | {"finish_reason": "tool_calls", "stop_reason": None}
            ),
            chunk(None, usage=usage(20, 31), system_fingerprint="vllm-0.33.0-9f0e1d2c"),
        ),
    ]
    deltas, response = read("vllm", data)
    assert [(c.id, c.name, c.arguments) for c in response.tool_calls] == [
        ("chatcmpl-tool-a", "ping", "{}"),
        ("chatcmpl-tool-b", "plot", '{"x": 4}'),
    ]
    assert (response.reasoning, response.text) == (" done.", "Ok")
    assert (response.finish_reason, response.usage) == (CALLS, UsageInfo(20, 31))
    assert deltas[-1].extensions == {"system_fingerprint": "vllm-0.33.0-9f0e1d2c"}
    assert response.metadata.provenance.get("finish_reason") is None


# ------------------------------------------------------------------------------ section 2: every field

TOP: list[tuple[str, Any]] = [
    ("service_tier", "default"),
    ("system_fingerprint", "vllm-0.33.0-tp2-1a2b3c4d"),
    ("prompt_logprobs", [None, {"5": {"logprob": -9999.0, "rank": 1, "decoded_token": "Hi"}}]),
    ("prompt_token_ids", [1, 2, 3]),
    ("prompt_text", "<|user|>Hi"),
    ("kv_transfer_params", {"remote_engine_id": "x", "blocks": [1]}),
    ("ec_transfer_params", {"x": 1}),
    ("metrics", {"time_to_first_token_ms": 1.5, "speculative_decoding": {"num_spec_steps": 3}}),
    ("new_field", {"deep": [None]}),
]
CHOICE: list[tuple[str, Any]] = [
    ("stop_reason", 128001),
    ("stop_reason", "###"),
    ("stop_reason", "repetition_detected"),
    ("stop_reason", None),
    ("token_ids", [5, 5, 6]),
    ("routed_experts", "k05VTVBZ"),
    ("weight_versions", [{"version": 1, "start": 0, "end": 9}]),
    ("prompt_token_ids", [1, 2]),
    ("new_field", 1),
]
MESSAGE: list[tuple[str, Any, Any]] = [
    ("annotations", None, None),
    ("audio", None, None),
    ("citations", [{"start": 0}], ({"start": 0},)),
    ("role", "tool", "tool"),
    ("new_field", 1, 1),
]


def thawed(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda v: dict(v) if hasattr(v, "keys") else list(v)))


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "value"), TOP)
@pytest.mark.parametrize("value_or_null", ["value", "null"])
def test_top_fields_are_kept(name: str, value: Any, value_or_null: str) -> None:
    """Facts about the whole answer stay unchanged, null included, at any place in a stream."""
    value = value if value_or_null == "value" else None
    whole = one("vllm", body({"content": "Hi"}) | {name: value})
    assert thawed(whole.metadata.extensions[name]) == value
    for at in range(4):
        events = [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Hi"}),
            chunk({}, "stop"),
            chunk(),
        ]
        events[at] |= {name: value}
        assert thawed(vllm(*events).metadata.extensions[name]) == value


@pytest.mark.parametrize(("name", "value"), CHOICE)
def test_choice_fields_are_kept(name: str, value: Any) -> None:
    """Facts about one choice stay with its number."""
    for key in ("message", "delta"):
        event = with_choices(choice(2, **{key: {"content": "Hi"}, name: value}) | {"finish_reason": "stop"})
        response = vllm(chunk({}, "stop"), event)
        left = next(c for c in response.metadata.extensions["choices"] if c["index"] == 2)
        assert thawed(left) == {"index": 2, name: value}


@pytest.mark.parametrize(("name", "value", "left"), MESSAGE)
def test_message_fields_are_kept(name: str, value: Any, left: Any) -> None:
    """Fields of a message without a typed counterpart are left of it."""
    response = one("vllm", body({"content": "Hi", name: value}))
    assert response.metadata.extensions["choices"] == ({"index": 0, "message": {name: left}},)


@pytest.mark.parametrize(
    "said",
    [
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"reasoning": "hm", "reasoning_content": "hm"},
        {"reasoning": None, "reasoning_content": "hm"},
        {"reasoning": "", "reasoning_content": "hm"},
        {"reasoning": "hm", "reasoning_content": None},
    ],
    ids=["since 0.16", "0.8 to 0.11.0", "0.11.1 to 0.14", "null", "empty", "other null"],
)
def test_reasoning_is_read_once(said: dict[str, Any]) -> None:
    """Two names in three ranges of versions, for some of them both with the same text (2.3, 10)."""
    whole = one("vllm", body({"content": "Hi", **said}))
    streamed = vllm(
        chunk({"role": "assistant", "content": ""}),
        chunk(said),
        chunk(said),
        chunk({"content": "Hi"}, "stop"),
    )
    assert (whole.reasoning, whole.text) == ("hm", "Hi")
    assert (streamed.reasoning, streamed.text) == ("hmhm", "Hi")
    for response in (whole, streamed):
        assert "reasoning" not in str(thawed(response.metadata.extensions))


def test_think_tags_stay_in_the_text() -> None:
    """Without a reasoning parser the server does not part them, and completions never are."""
    assert one("vllm", body({"content": "hm</think>Hi"})).text == "hm</think>Hi"
    text = with_choices(choice(text="<think>hm</think>Hi") | {"finish_reason": "stop"})
    assert one("vllm", text).text == "<think>hm</think>Hi"


@pytest.mark.parametrize("tool_calls", [[], None])
def test_messages_without_calls(tool_calls: Any) -> None:
    """[] up to 0.20, omitted later. Neither is a call."""
    response = one("vllm", body({"content": "Hi", "tool_calls": tool_calls}))
    assert response.tool_calls == ()
    assert response.finish_reason is STOP


def piece(token: str, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": -1.0, "bytes": list(token.encode()), "top_logprobs": [], **more}


def test_completion_logprobs() -> None:
    """The parallel lists of completions, the first without a value. Offsets are joined over chunks (2.6)."""

    def text(said: str, offset: int, logprob: float | None, top: Any, finish: str | None = None) -> Any:
        logprobs = {
            "text_offset": [offset],
            "token_logprobs": [logprob],
            "tokens": [said],
            "top_logprobs": [top],
        }
        return with_choices(choice(text=said) | {"logprobs": logprobs, "finish_reason": finish})

    response = vllm(
        text("a", 0, None, None), text("b", 0, -1.5, {"b": -1.5, "c": -2}), text("d", 0, -1, None, "stop")
    )
    assert response.logprobs == (
        TokenLogprob("a", None),
        TokenLogprob("b", -1.5, None, (TokenLogprob("b", -1.5), TokenLogprob("c", -2))),
        TokenLogprob("d", -1),
    )
    assert response.text == "abd"
    assert thawed(response.metadata.extensions["choices"]) == [
        {"index": 0, "logprobs": {"text_offset": [0, 0, 0]}}
    ]


def test_token_ids_are_joined() -> None:
    """Equal pieces in a row are pieces, not repetitions. Each choice has its own (2.2)."""
    ids = [[5], [5], [], [5, 6], None]
    chunks = [
        with_choices(choice(n, delta={"content": "x"}, token_ids=piece)) for piece in ids for n in (0, 1)
    ]
    ends = [with_choices(choice(n, delta={}, token_ids=[7]) | {"finish_reason": "stop"}) for n in (0, 1)]
    response = vllm(*chunks, *ends)
    assert thawed(response.metadata.extensions["choices"]) == [
        {"index": 0, "token_ids": [5, 5, 5, 6, 7]},
        {"index": 1, "token_ids": [5, 5, 5, 6, 7]},
    ]


# ------------------------------------------------------------------------------------ section 3: streams


def call(index: Any, id: Any, name: Any, arguments: Any, **more: Any) -> dict[str, Any]:
    """A tool-call delta. Fields that are ... are not sent."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    parts = {"index": index, "id": id, "function": function, **more}
    return {key: value for key, value in parts.items() if value is not ...}


PARSERS: dict[str, tuple[list[list[dict[str, Any]]], list[tuple[str, str, str]]]] = {
    "normal": (
        [
            [call(0, "x", "go", ..., type="function")],
            [call(0, ..., ..., '{"a"')],
            [call(0, ..., ..., ": 1}")],
            [call(1, "y", "stop", "", type="function")],
            [call(1, ..., ..., "{}")],
        ],
        [("x", "go", '{"a": 1}'), ("y", "stop", "{}")],
    ),
    "whole calls in one delta (ernie, step3, harmony in bulk)": (
        [[call(0, "x", "go", "{}", type="function")], [call(1, "y", "go", "{}", type="function")]],
        [("x", "go", "{}"), ("y", "go", "{}")],
    ),
    "several calls in one chunk": (
        [[call(0, "x", "go", "{}"), call(1, "y", "stop", "{}")]],
        [("x", "go", "{}"), ("y", "stop", "{}")],
    ),
    "name and arguments of one index in one array (hermes)": (
        [[call(0, "x", "go", ...), call(0, ..., ..., "{"), call(0, ..., ..., "}")]],
        [("x", "go", "{}")],
    ),
    "name repeated as null": (
        [[call(0, "x", "go", "")], [call(0, None, None, "{}", type=None)]],
        [("x", "go", "{}")],
    ),
    "the id later (mistral)": (
        [[call(0, ..., ..., ..., type="function")], [call(0, "x", "go", ...)], [call(0, ..., ..., "{}")]],
        [("x", "go", "{}")],
    ),
    "no id": ([[call(0, ..., "go", "{}")]], [("call_0", "go", "{}")]),
    "no type": ([[call(0, "x", "go", "{}")]], [("x", "go", "{}")]),
    "the harmony counter starts anew": (
        [[call(0, "x", "go", "{}")], [call(1, "y", "go", "{}")], [call(0, "z", "go", "{}")]],
        [("x", "go", "{}"), ("y", "go", "{}"), ("z", "go", "{}")],
    ),
    "interleaved": (
        [
            [call(0, "x", "go", "{")],
            [call(1, "y", "stop", "[")],
            [call(0, ..., ..., "}")],
            [call(1, ..., ..., "]")],
        ],
        [("x", "go", "{}"), ("y", "stop", "[]")],
    ),
    "empty deltas": (
        [[call(0, "x", "go", "")], [call(0, ..., ..., "")], [call(0, ..., ..., None)]],
        [("x", "go", "{}")],
    ),
    "kimi's conversation-wide ids": (
        [[call(0, "functions.go:3", "go", "{}")], [call(1, "functions.go:4", "go", "{}")]],
        [("functions.go:3", "go", "{}"), ("functions.go:4", "go", "{}")],
    ),
    "an id with a name on an old index": (
        [[call(0, "x", "go", "{}")], [call(0, "y", "go", "{}")]],
        [("x", "go", "{}"), ("y", "go", "{}")],
    ),
}


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("end", ["after", "with the last"])
def test_tool_calls_of_every_parser(parser: str, end: str) -> None:
    """However the server's parsers cut them up: each call once, whole, in order (3.2)."""
    pieces, expected = PARSERS[parser]
    chunks = [chunk({"tool_calls": calls}) for calls in pieces]
    if end == "after":
        chunks.append(chunk({}, "tool_calls"))
    else:
        chunks[-1]["choices"][0]["finish_reason"] = "tool_calls"
    response = vllm(*chunks)
    assert [(c.id, c.name, c.arguments) for c in response.tool_calls] == expected
    assert response.finish_reason is CALLS
    assert "tool_calls" not in str(thawed(response.metadata.extensions)).replace(
        "'index': 0", ""
    ) or parser in {
        "the harmony counter starts anew",
        "an id with a name on an old index",
    }


def test_calls_of_each_choice() -> None:
    """With n > 1 each choice counts its calls from 0."""
    chunks = [chunk({"tool_calls": [call(0, f"x{n}", "go", "{")]}, choice=n) for n in (0, 1)]
    chunks += [chunk({"tool_calls": [call(0, ..., ..., "}")]}, "tool_calls", choice=n) for n in (1, 0)]
    response = vllm(*chunks)
    assert [c.id for c in response.tool_calls] == ["x0"]
    assert [c.id for c in response.alternatives[0].message.tool_calls or ()] == ["x1"]
    assert response.alternatives[0].finish_reason is CALLS


def test_completions_of_several_prompts() -> None:
    """index = prompt * n + choice: every one is an answer (2.6)."""
    choices = [
        choice(n, text=t, prompt_token_ids=[n]) | {"finish_reason": "stop"} for n, t in enumerate("abcd")
    ]
    response = vllm(*(with_choices(c) for c in reversed(choices)))
    assert [response.text, *(a.message.text for a in response.alternatives)] == list("abcd")
    assert {c["index"]: c["prompt_token_ids"] for c in response.metadata.extensions["choices"]} == {
        n: (n,) for n in range(4)
    }


def test_echo_and_chunks_without_text() -> None:
    """Echoed text is text. Chunks that only carry token ids or logprobs are no text (3)."""
    response = vllm(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Say: "}),
        chunk({}),
        with_choices(choice(delta={}, token_ids=[1])),
        chunk({"content": "Hi"}, "stop"),
    )
    assert response.text == "Say: Hi"


# ----------------------------------------------------------------------------- section 4: finish reasons


def test_a_cut_call_shows() -> None:
    """tool_calls may hide a length up to 0.25: the arguments are then kept as they are, and do not parse."""
    response = vllm(chunk({"tool_calls": [call(0, "x", "go", '{"a": "b')]}), chunk({}, "tool_calls"))
    assert response.tool_calls[0].arguments == '{"a": "b'
    with pytest.raises(ToolCallArgumentsError):
        response.tool_calls[0].parsed()


# ------------------------------------------------------------------------------------- section 5: usage


def test_full_usage() -> None:
    """Cached, created and image tokens are part of the prompt, reasoning of the completion."""
    counts = usage(
        120,
        60,
        prompt_tokens_details={
            "cached_tokens": 96,
            "created_cache_tokens": 16,
            "multimodal_tokens": {"image": 64},
        },
        completion_tokens_details={"reasoning_tokens": 25},
    )
    for response in (
        one("vllm", body({"content": "Hi"}, usage=counts)),
        vllm(chunk({}, "stop"), chunk(None, usage=counts)),
    ):
        parts = UsageDetails(image_input_tokens=64)
        assert response.usage == UsageInfo(120, 60, 96, 25, 16, details=parts)
        assert "usage" not in response.metadata.extensions


# ------------------------------------------------------------------------------------ section 7: errors

OVERFLOW = "This model's maximum context length is 4096 tokens. (parameter=input_tokens, value=5000)"


def error(message: str, type: str, code: Any, param: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def flat(message: str, type: str, code: Any) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": type, "param": None, "code": code}


HTTP_ERRORS: list[tuple[int, Any, ErrorKind, str, bool]] = [
    (400, error(OVERFLOW, "BadRequestError", 400, "input_tokens"), K.CONTEXT_OVERFLOW, OVERFLOW, False),
    (400, error("temperature must be non-negative", "BadRequestError", 400), K.INVALID_REQUEST, "temperature must be non-negative", False),
    (400, error("1 validation errors:\n  {x}", "Bad Request", 400, "body.messages"), K.INVALID_REQUEST, "1 validation errors: {x}", False),
    (400, error("cannot read <path>", "BadRequestError", 400), K.INVALID_REQUEST, "cannot read <path>", False),
    (401, {"error": "Unauthorized"}, K.AUTHENTICATION, "Unauthorized", False),
    (404, error("The model `x` does not exist.", "NotFoundError", 404), K.MODEL_UNAVAILABLE, "The model `x` does not exist.", False),
    (404, error("Not Found", "Not Found", 404), K.INVALID_REQUEST, "Not Found", False),
    (405, error("Method Not Allowed", "Method Not Allowed", 405), K.INVALID_REQUEST, "Method Not Allowed", False),
    (422, error("unreachable media", "UnprocessableEntityError", 422), K.INVALID_REQUEST, "unreachable media", False),
    (500, error("EngineCore encountered an issue.", "InternalServerError", 500), K.SERVER, "EngineCore encountered an issue.", True),
    (501, error("The model does not support this", "NotImplementedError", 501), K.INVALID_REQUEST, "The model does not support this", False),
    (503, error("try again", "ServiceUnavailableError", 503), K.SERVER, "try again", True),
    (503, error("queue is full", "Service Unavailable", 503), K.SERVER, "queue is full", True),
    # up to 0.10.0
    (404, flat("The model `nope` does not exist.", "NotFoundError", 404), K.MODEL_UNAVAILABLE, "The model `nope` does not exist.", False),
    (400, flat(OVERFLOW, "BadRequestError", 400), K.CONTEXT_OVERFLOW, OVERFLOW, False),
    # what stands before the server
    (502, "<html><head><title>502 Bad Gateway</title></head></html>", K.SERVER, "502 Bad Gateway", True),
    (500, "", K.SERVER, "HTTP 500", True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said", "kind", "message", "retryable"), HTTP_ERRORS)
def test_http_errors(status: int, said: Any, kind: ErrorKind, message: str, retryable: bool) -> None:
    """Wrapped, flat and plain. The code may be an integer, and is then no word (7.1)."""
    response = one("vllm", said if isinstance(said, str) else json.dumps(said), status=status)
    info = response.error_info
    assert info is not None
    assert (info.kind, info.message, info.retryable, info.status) == (kind, message, retryable, status)
    assert info.raw == (said or None)


IN_STREAM = [
    error("Internal server error", "InternalServerError", 500),
    {
        "error": {
            "object": "error",
            "message": "Internal server error",
            "type": "InternalServerError",
            "code": 500,
        }
    },
    flat("Internal server error", "InternalServerError", 500),
    {"error": "Internal server error"},
]


@pytest.mark.parametrize("said", IN_STREAM, ids=["now", "up to 0.10.0", "flat", "text"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("done", [True, False])
def test_errors_in_mid_stream(said: Any, first: bool, done: bool) -> None:
    """One event, perhaps the first, then [DONE]: an error response with what came before (7.2)."""
    before = [] if first else [chunk({"role": "assistant", "content": ""}), chunk({"content": "Hi"})]
    response = vllm(*before, said, done=done)
    assert (response.finish_reason, response.raw_finish_reason) == (ERROR, None)
    assert response.text == ("" if first else "Hi")
    assert response.refusal == "Internal server error"
    assert response.error_info.kind is K.SERVER
    assert response.error_info.raw == said
    assert response.metadata.provenance["usage"] == "absent"


def test_an_error_after_one_answer_of_several_ended() -> None:
    """The word of an answer that ended before the error is kept."""
    response = vllm(chunk({"content": "a"}, "stop"), chunk({"content": "b"}, choice=1), IN_STREAM[0])
    assert (response.finish_reason, response.raw_finish_reason) == (ERROR, "stop")
    assert response.alternatives[0].message.text == "b"
    assert response.alternatives[0].finish_reason is ERROR


@pytest.mark.parametrize("event", [{"type": "no.such.event"}, {"object": "list", "data": []}])
def test_dialects_that_are_not_read(event: Any) -> None:
    """Events that none of its dialects knows, such as /v1/models, are unknown events, named."""
    _, caught = outcome("vllm", sse(event))
    assert isinstance(caught, UnknownEventError)
    assert caught.event_type in {"no.such.event", "list"}
