"""The meanings of errors, in the words of every server (provider documents, sections 7)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk import (
    ErrorKind,
    FinishReason,
    SegmentType,
    normalize,
)
from crosswalk.plugins import classify, error_delta, error_info, take_error
from error_cases import QUOTING, STATED

K = ErrorKind
OVERFLOW = "request (9012 tokens) exceeds the available context size (4096 tokens)"
LLAMA = {"error": {"code": 400, "message": OVERFLOW, "type": "exceed_context_size_error", "n_ctx": 4096}}
VLLM_OVERFLOW = "This model's maximum context length is 4096 tokens. (parameter=input_tokens, value=5000)"


def nested(message: str, type: str | None = None, code: Any = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code, **more}}


def flat(message: str, type: str, code: Any) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": type, "param": None, "code": code}


# Every shape of the index document's section 7: status, body, kind, message, code, whether to retry.
SHAPES: list[tuple[int | None, Any, ErrorKind, str, str | None, bool]] = [
    # {"error": text}
    (404, {"error": "model 'x' not found"}, K.MODEL_UNAVAILABLE, "model 'x' not found", None, False),
    (400, {"error": json.dumps(LLAMA)}, K.CONTEXT_OVERFLOW, OVERFLOW, "exceed_context_size_error", False),
    (
        400,
        {"error": json.dumps(LLAMA) + "\nout of memory {x}"},
        K.CONTEXT_OVERFLOW,
        OVERFLOW,
        "exceed_context_size_error",
        False,
    ),
    (401, {"error": "Unauthorized"}, K.AUTHENTICATION, "Unauthorized", None, False),
    # TGI
    (422, {"error": "Input is bad", "error_type": "validation"}, K.INVALID_REQUEST, "Input is bad", "validation", False),
    (429, {"error": "Model is overloaded", "error_type": "overloaded"}, K.RATE_LIMIT, "Model is overloaded", "overloaded", True),
    (None, {"error": {"message": "It broke", "http_status_code": 500}}, K.SERVER, "It broke", None, True),
    # Ollama, remote
    (401, {"error": "unauthorized", "signin_url": "https://x/y"}, K.AUTHENTICATION, "unauthorized", None, False),
    (404, {"StatusCode": 404, "Status": "404 Not Found", "error": "no such thing"}, K.INVALID_REQUEST, "no such thing", None, False),
    (None, {"StatusCode": 429, "Status": "429", "error": "wait"}, K.RATE_LIMIT, "wait", None, True),
    # OpenAI, Azure, Groq, Ollama /v1
    (400, nested("Too long", "invalid_request_error", "context_length_exceeded"), K.CONTEXT_OVERFLOW, "Too long", "context_length_exceeded", False),
    (401, nested("Incorrect API key provided", "invalid_request_error", "invalid_api_key"), K.AUTHENTICATION, "Incorrect API key provided", "invalid_api_key", False),
    (404, nested("The model `x` does not exist", "invalid_request_error", "model_not_found"), K.MODEL_UNAVAILABLE, "The model `x` does not exist", "model_not_found", False),
    (404, nested("model 'x' not found", "not_found_error"), K.MODEL_UNAVAILABLE, "model 'x' not found", "not_found_error", False),
    (429, nested("Slow down", "requests", "rate_limit_exceeded"), K.RATE_LIMIT, "Slow down", "rate_limit_exceeded", True),
    (429, nested("Pay", "insufficient_quota", "insufficient_quota"), K.QUOTA, "Pay", "insufficient_quota", False),
    (500, nested("Oops", "server_error"), K.SERVER, "Oops", "server_error", True),
    (400, {"error": {"message": "Filtered", "type": None, "param": "prompt", "code": "content_filter", "status": 400,
      "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, K.CONTENT_FILTER, "Filtered", "content_filter", False),
    (400, nested("bad call", "invalid_request_error", "tool_use_failed", failed_generation="<x>"), K.TOOL_CALL_VALIDATION, "bad call", "tool_use_failed", False),
    # the code is an int: vLLM, llama.cpp, OpenRouter
    (400, nested(VLLM_OVERFLOW, "BadRequestError", 400), K.CONTEXT_OVERFLOW, VLLM_OVERFLOW, "BadRequestError", False),
    (400, nested("temperature must be non-negative", "BadRequestError", 400), K.INVALID_REQUEST, "temperature must be non-negative", "BadRequestError", False),
    (400, nested("1 validation errors:\n  {x}", "Bad Request", 400), K.INVALID_REQUEST, "1 validation errors: {x}", "Bad Request", False),
    (404, nested("The model `x` does not exist.", "NotFoundError", 404), K.MODEL_UNAVAILABLE, "The model `x` does not exist.", "NotFoundError", False),
    (405, nested("Method Not Allowed", "Method Not Allowed", 405), K.INVALID_REQUEST, "Method Not Allowed", "Method Not Allowed", False),
    # no such model: OpenRouter, Azure, xAI
    (404, nested("No endpoints found that support tool use.", None, 404), K.INVALID_REQUEST, "No endpoints found that support tool use.", "404", False),
    (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}}, K.MODEL_UNAVAILABLE, "The API deployment for this resource does not exist.", "DeploymentNotFound", False),
    (404, {"code": "Some resource was not found", "error": "The model grok-beta was deprecated on 2025-09-15."}, K.MODEL_UNAVAILABLE, "The model grok-beta was deprecated on 2025-09-15.", "Some resource was not found", False),
    (400, nested("The model takes no functions: that parameter was deprecated", "BadRequestError"), K.INVALID_REQUEST, "The model takes no functions: that parameter was deprecated", "BadRequestError", False),
    (422, nested("unreachable media", "UnprocessableEntityError", 422), K.INVALID_REQUEST, "unreachable media", "UnprocessableEntityError", False),
    (500, nested("EngineCore died", "InternalServerError", 500), K.SERVER, "EngineCore died", "InternalServerError", True),
    (501, nested("no such endpoint", "NotImplementedError", 501), K.INVALID_REQUEST, "no such endpoint", "NotImplementedError", False),
    (503, nested("busy", "ServiceUnavailableError", 503), K.SERVER, "busy", "ServiceUnavailableError", True),
    (503, nested("busy", "Service Unavailable", 503), K.SERVER, "busy", "Service Unavailable", True),
    (None, nested("Internal server error", "InternalServerError", 500), K.SERVER, "Internal server error", "InternalServerError", True),
    (None, {"error": {"object": "error", "message": "bad", "code": 400}}, K.INVALID_REQUEST, "bad", "400", False),
    (None, nested("Provider disconnected", None, 502, metadata={"error_type": "x"}), K.SERVER, "Provider disconnected", "502", True),
    # flat: SGLang, older vLLM
    (404, flat("The model `nope` does not exist.", "NotFoundError", 404), K.MODEL_UNAVAILABLE, "The model `nope` does not exist.", "NotFoundError", False),
    (None, flat("bad", "BadRequestError", 400), K.INVALID_REQUEST, "bad", "BadRequestError", False),
    # Gemini
    (429, {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": []}}, K.RATE_LIMIT, "Quota", "RESOURCE_EXHAUSTED", True),
    (400, [{"error": {"code": 400, "message": "Bad", "status": "INVALID_ARGUMENT"}}], K.INVALID_REQUEST, "Bad", "INVALID_ARGUMENT", False),
    (None, [{"error": {"code": 503, "message": "Bad"}}], K.SERVER, "Bad", "503", True),
    # Anthropic and its dialects
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}, K.RATE_LIMIT, "Overloaded", "overloaded_error", True),
    (None, {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}, K.RATE_LIMIT, "Slow", "rate_limit_error", True),
    # Responses stream; llama.cpp's messages dialect
    (None, {"type": "error", "code": "server_error", "message": "Oops", "param": None, "sequence_number": 3}, K.SERVER, "Oops", "server_error", True),
    (None, {"code": 500, "message": "Oops", "type": "server_error"}, K.SERVER, "Oops", "server_error", True),
    # a code that is a number in a string: Mistral, Azure
    (400, {"object": "error", "message": "no", "type": "invalid_model", "code": "1500"}, K.MODEL_UNAVAILABLE, "no", "invalid_model", False),
    (429, {"error": {"code": "429", "message": "Wait"}}, K.RATE_LIMIT, "Wait", "429", True),
    # Bedrock, Cohere
    (None, {"__type": "AccessDeniedException", "message": "no"}, K.PERMISSION, "no", "AccessDeniedException", False),
    (None, {"__type": "com.amazon#ExpiredTokenException", "message": "no"}, K.AUTHENTICATION, "no", "com.amazon#ExpiredTokenException", False),
    (None, {"__type": "ModelTimeoutException", "message": "no"}, K.TIMEOUT, "no", "ModelTimeoutException", True),
    (None, {"__type": "ThrottlingException", "message": "no"}, K.RATE_LIMIT, "no", "ThrottlingException", True),
    (400, {"message": "invalid request"}, K.INVALID_REQUEST, "invalid request", None, False),
    # FastAPI
    (422, {"detail": [{"loc": ["body", "x"], "msg": "field required", "type": "missing"}]}, K.INVALID_REQUEST, "field required", "missing", False),
    (403, {"detail": "Not allowed"}, K.PERMISSION, "Not allowed", None, False),
    (400, {"detail": {"error": "inside"}}, K.INVALID_REQUEST, "inside", None, False),
    # text and HTML
    (404, "404 page not found", K.INVALID_REQUEST, "404 page not found", None, False),
    (405, "405 method not allowed", K.INVALID_REQUEST, "405 method not allowed", None, False),
    (502, "<html>\n<head><title>502 Bad Gateway</title></head><body><h1>Bad &lt;Gateway&gt;</h1><script>x<y</script></body></html>", K.SERVER, "502 Bad Gateway Bad <Gateway>", None, True),
    (400, "cannot open <path>, a < b > c", K.INVALID_REQUEST, "cannot open <path>, a < b > c", None, False),
    # nothing that could be called a message
    (500, "", K.SERVER, "HTTP 500", None, True),
    (400, {}, K.INVALID_REQUEST, "HTTP 400", None, False),
    (400, [], K.INVALID_REQUEST, "HTTP 400", None, False),
    (400, None, K.INVALID_REQUEST, "HTTP 400", None, False),
    (400, {"error": ""}, K.INVALID_REQUEST, "HTTP 400", None, False),
    (400, {"error": {}}, K.INVALID_REQUEST, "HTTP 400", None, False),
    (400, {"error": True}, K.INVALID_REQUEST, "True", None, False),
    (400, 7, K.INVALID_REQUEST, "7", None, False),
    (None, {}, K.UNKNOWN, "the provider reported an error", None, False),
    (400, [[[[[[[["deep"]]]]]]]], K.INVALID_REQUEST, "HTTP 400", None, False),
    (400, '{"x": cut', K.INVALID_REQUEST, '{"x": cut', None, False),
    (400, "{}", K.INVALID_REQUEST, "{}", None, False),
    (400, '{"a":' * 5000, K.INVALID_REQUEST, None, None, False),  # type: ignore[list-item]
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("status", "said", "kind", "message", "code", "retryable"), SHAPES, ids=lambda value: str(value)[:50]
)
def test_every_shape_of_error_is_read(
    status: int | None, said: Any, kind: ErrorKind, message: str | None, code: str | None, retryable: bool
) -> None:
    """Kind, message, code word and whether a retry may help. The payload is kept unchanged."""
    info = error_info(status, said)
    assert (info.kind, info.code, info.retryable) == (kind, code, retryable)
    assert message is None or info.message == message
    assert info.raw == (said if said != "" else None)
    if status is not None:
        assert info.status == status


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (nested("x", None, 429), 429),
        (nested("x", None, 7), None),
        (nested("x", None, "429"), None),
        (nested("x", None, True), None),
        (flat("x", "y", 404), 404),
        ({"error": {"message": "x", "http_status_code": 500}}, 500),
        ({"error": json.dumps(LLAMA)}, 400),
        ({"error": "x"}, None),
        ("x", None),
    ],
)
def test_inside_a_stream_the_status_is_what_the_payload_says(said: Any, status: int | None) -> None:
    """Without an HTTP status an integer code between 400 and 599 is one. An HTTP status is stronger."""
    assert error_info(None, said).status == status
    assert error_info(418, said).status == 418


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, K.INVALID_REQUEST), (401, K.AUTHENTICATION), (402, K.QUOTA), (403, K.PERMISSION),
        (404, K.INVALID_REQUEST), (405, K.INVALID_REQUEST), (408, K.TIMEOUT), (409, K.INVALID_REQUEST),
        (413, K.INVALID_REQUEST), (422, K.INVALID_REQUEST), (429, K.RATE_LIMIT), (498, K.RATE_LIMIT),
        (500, K.SERVER), (501, K.INVALID_REQUEST), (502, K.SERVER), (503, K.SERVER), (504, K.TIMEOUT),
        (529, K.RATE_LIMIT), (599, K.SERVER), (None, K.UNKNOWN),
    ],
)  # fmt: skip
def test_without_words_the_status_decides(status: int | None, kind: ErrorKind) -> None:
    """Each HTTP status has its kind. Inside a stream nothing is known without words."""
    assert classify(status, "") is kind


SENTENCES: list[tuple[int | None, str, ErrorKind]] = [
    (500, "image input is not supported - hint: you may need the mmproj", K.INVALID_REQUEST),
    (404, "No endpoints found that support image input", K.INVALID_REQUEST),
    (400, "At most 0 image(s) may be provided in one prompt.", K.INVALID_REQUEST),
    (400, "context length exceeded", K.CONTEXT_OVERFLOW),
    (400, "the prompt is too long: 9000 tokens > 4096", K.CONTEXT_OVERFLOW),
    (500, "input length (9000) exceeds the maximum", K.CONTEXT_OVERFLOW),
    (400, "The decoder prompt is longer than the maximum model length", K.CONTEXT_OVERFLOW),
    (400, "The input (9 tokens) is longer than the model's context length (8 tokens).", K.CONTEXT_OVERFLOW),
    (400, "Input is too long for requested model.", K.CONTEXT_OVERFLOW),
    (400, "too many tokens: 9000 > 4096", K.CONTEXT_OVERFLOW),
    (429, "Too many tokens per day, please wait before trying again.", K.RATE_LIMIT),
    (400, "The prompt triggered our content management policy.", K.CONTENT_FILTER),
    (500, 'llama-server returned invalid tool call arguments for "go": x', K.TOOL_CALL_VALIDATION),
    (500, "Rate limit reached", K.RATE_LIMIT),
    (None, "Too Many Requests", K.RATE_LIMIT),
    (503, "the engine is overloaded", K.RATE_LIMIT),
    (500, "upstream timed out", K.TIMEOUT),
    (None, "context deadline exceeded", K.TIMEOUT),
    (400, "model 'command-x' was removed on May 1", K.MODEL_UNAVAILABLE),
    (404, 'model "x" not found, try pulling it first', K.MODEL_UNAVAILABLE),
    (400, "model 'x' is no longer available", K.MODEL_UNAVAILABLE),
    (400, "Incorrect API key provided", K.AUTHENTICATION),
    (400, "unauthorised", K.AUTHENTICATION),
    (400, "Forbidden", K.PERMISSION),
    (None, "the engine is dead", K.SERVER),
    (503, "server busy, please try again.  maximum pending requests exceeded", K.SERVER),
    # The same words in a request that is refused, which sending it again does not heal.
    (400, "Rate limit reached", K.INVALID_REQUEST),
    (422, "upstream timed out", K.INVALID_REQUEST),
    (404, "the engine is dead", K.INVALID_REQUEST),
    (501, "the engine is dead", K.INVALID_REQUEST),
    # Words that are not one of those sentences.
    (400, "timeout must be positive", K.INVALID_REQUEST),
    (400, "a wide context", K.INVALID_REQUEST),
    (None, "a runner", K.UNKNOWN),
]


@pytest.mark.parametrize(("status", "message", "kind"), SENTENCES)
def test_a_known_sentence_tells_what_the_status_does_not(
    status: int | None, message: str, kind: ErrorKind
) -> None:
    """In upper case as in lower, and never where a message quotes it."""
    assert classify(status, message) is kind
    assert classify(status, message.upper()) is kind
    without = classify(status, "")
    assert classify(status, f"bad value: \u201c{message}\u201d") is without


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("read_timeout_error", K.TIMEOUT),
        ("misalignment_policy_violation", K.CONTENT_FILTER),
        ("ResponsibleAIPolicyViolation", K.CONTENT_FILTER),
        ("too_many_prompt_tokens", K.CONTEXT_OVERFLOW),
        ("invalid_base64_image", K.INVALID_REQUEST),
        ("image_parse_error", K.INVALID_REQUEST),
        ("Too Many Requests", K.RATE_LIMIT),
        ("ServiceUnavailableError", K.SERVER),
        ("com.amazon.coral.service#ThrottlingException:http://x", K.RATE_LIMIT),
        ("DeploymentNotFound", K.MODEL_UNAVAILABLE),
        ("rate_limit_of_mine", K.UNKNOWN),
        ("7", K.UNKNOWN),
        ("api_error", K.SERVER),
    ],
)
def test_a_code_is_read_as_a_whole(code: str, kind: ErrorKind) -> None:
    """However its words are joined. A code that only holds a known word is unknown."""
    assert classify(None, "", [code]) is kind


@pytest.mark.parametrize(("provider", "status", "body", "kind", "code", "retryable"), [*QUOTING, *STATED])
def test_errors_mean_what_their_server_states(
    provider: str, status: int, body: Any, kind: ErrorKind, code: str | None, retryable: bool
) -> None:
    """By type or code, status, and known sentences outside of quotation marks."""
    info = normalize(body, provider, status=status).error_info
    assert info is not None
    assert (info.kind, info.code, info.retryable) == (kind, code, retryable)


def test_a_plugin_states_what_its_own_codes_mean() -> None:
    """Its meaning counts before the general one."""
    info = error_info(500, nested("x", "invalid_request_error", "E7"), codes={"E7": K.TIMEOUT})
    assert (info.kind, info.code, info.retryable) == (K.TIMEOUT, "E7", True)


def test_an_error_delta_says_everything() -> None:
    """It ends the answer, and its segment holds kind, status, code, and the payload."""
    info = error_info(429, nested("Slow down", None, "rate_limit_exceeded"))
    delta = error_delta(info)
    assert delta.finish_reason is FinishReason.ERROR
    assert delta.segment is not None
    assert (delta.segment.type, delta.segment.content) == (SegmentType.ERROR, "Slow down")
    assert delta.segment.metadata == {
        "kind": "rate_limit",
        "retryable": True,
        "status": 429,
        "code": "rate_limit_exceeded",
        "raw": info.raw,
    }


def test_an_error_that_is_taken_keeps_all_of_its_event() -> None:
    """And leaves nothing of it, with a meaning that the provider's rules give as well as with the general ones."""
    event = nested("Slow down", None, "rate_limit_exceeded")
    for info in (None, error_info(429, event)):
        taken = nested("Slow down", None, "rate_limit_exceeded")
        delta = take_error(taken, info)
        assert taken == {}
        assert delta.segment is not None
        assert delta.segment.metadata["raw"] == event
        assert delta.segment.metadata.get("status") == (None if info is None else 429)


def test_secrets_do_not_reach_the_message() -> None:
    """A server that quotes the key it was given is not quoted in turn."""
    info = error_info(401, nested("Incorrect API key provided: sk-abcdefgh12345678", code="invalid_api_key"))
    assert "abcdefgh" not in info.message


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "detail", "code", "type", "status", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(st.none() | st.integers(400, 599), values)
def test_any_body_is_an_error_of_some_kind(status: int | None, said: Any) -> None:
    """Whatever a server answers with, there is a kind and a message."""
    info = error_info(status, said)
    assert isinstance(info.kind, ErrorKind)
    assert isinstance(info.message, str)
