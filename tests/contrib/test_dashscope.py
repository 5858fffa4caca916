"""DashScope: its captures, invented after public documents, its own API and the compatible mode."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import (
    ErrorKind,
    FinishReason,
    Provenance,
    TrailingContentError,
    UnknownEventError,
    WireTypeError,
    normalize,
)
from crosswalk.plugins import Recognition
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.testing import ProviderConformance
from crosswalk_dashscope import plugin
from wires import body, one, outcome, read, sse


class TestDashScope(ProviderConformance):
    provider = "dashscope"
    captures = "../captures/dashscope"
    snapshots = "../../snapshots"
    sample = 12


def says(message: Any, finish: Any = "null", **more: Any) -> dict[str, Any]:
    return {"output": {"choices": [{"message": message, "finish_reason": finish}]}, "request_id": "r", **more}


def text(content: Any, finish: str = "null", **more: Any) -> dict[str, Any]:
    return says({"role": "assistant", "content": content, **more}, finish)


def stream(*events: Any) -> Any:
    return read("dashscope", sse(*events, done=False))[1]


# ------------------------------------------------------------------------------ pieces, or all so far


@pytest.mark.parametrize(
    "texts",
    [
        ("Hi", " you"),
        ("Hi", " ", "you"),
        ("Hi you",),
        ("", "Hi", " you", ""),
        ("Hi you", None),
    ],
)
def test_pieces_are_joined(texts: tuple[str | None, ...]) -> None:
    *events, last = texts
    answer = stream(*map(text, events), text(last, "stop"))
    assert (answer.text, answer.finish_reason) == ("Hi you", FinishReason.STOP)


@pytest.mark.parametrize(
    "texts",
    [
        ("Hi", "Hi you"),
        ("H", "Hi", "Hi y", "Hi you", "Hi you"),
        ("", "Hi y", "Hi you", "Hi you"),
        ("Hi you", "Hi you"),
    ],
)
def test_texts_so_far_count_once(texts: tuple[str, ...]) -> None:
    *events, last = texts
    assert stream(*map(text, events), text(last, "stop")).text == "Hi you"


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (("1", "10", " is", ""), "110 is"),
        (("ha", "ha", ""), "haha"),
        (("ha", "ha", "ha", None), "hahaha"),
        (("ha", "ha", "ha"), "hahaha"),
        (("1", "10", None), "110"),
        (("ha", "ha", "hat", "s"), "hahahats"),
        (("-", "--", "", "a"), "---a"),
    ],
)
def test_a_piece_may_begin_like_the_one_before_it(texts: tuple[Any, ...], wanted: str) -> None:
    *events, last = texts
    assert stream(*map(text, events), text(last, "stop")).text == wanted


def test_a_text_so_far_that_changes_is_refused() -> None:
    events = [text("H"), text("He"), text("Hel"), text("No"), text("No", "stop")]
    partial, error = outcome("dashscope", sse(*events, done=False))
    assert isinstance(error, TrailingContentError)
    assert partial.text == "Hel"


def called(arguments: str | None, finish: str = "null", **more: Any) -> dict[str, Any]:
    call = {"index": 0, "type": "function", "function": {"arguments": arguments}, **more}
    if "id" in more:
        call["function"]["name"] = "f"
    return text("", finish, tool_calls=[call])


@pytest.mark.parametrize(
    "events",
    [
        [called('{"a"', id="c1"), called(":1}"), text("", "tool_calls")],
        [called("", id="c1"), called('{"a":1}'), called(None, "tool_calls", id="")],
        [called('{"a"', id="c1"), called('{"a":', id="c1"), called('{"a":1}', "tool_calls", id="c1")],
        [called('{"a":1}', id="c1"), called('{"a":1}', "tool_calls", id="c1")],
    ],
    ids=["pieces", "null at the end", "so far", "twice"],
)
def test_arguments_come_in_pieces_or_so_far(events: list[Any]) -> None:
    answer = stream(*events)
    assert [(call.id, call.name, call.parsed()) for call in answer.tool_calls] == [("c1", "f", {"a": 1})]
    assert answer.finish_reason is FinishReason.TOOL_CALLS


def test_a_text_so_far_may_stay_while_a_call_grows() -> None:
    calls = [called(arguments, id="c1") for arguments in ('{"a"', '{"a":', '{"a":1}')]
    for event in calls:
        event["output"]["choices"][0]["message"]["content"] = "I call"
    answer = stream(text("I call"), *calls, text("I call", "tool_calls"))
    assert (answer.text, answer.tool_calls[0].arguments) == ("I call", '{"a":1}')


def test_arguments_that_are_held_back_at_the_end_are_given_out() -> None:
    answer = stream(called("1", id="c1"), called("1"), text("", "tool_calls"))
    assert answer.tool_calls[0].arguments == "11"


# ------------------------------------------------------------------------------ its own form


def test_several_choices_are_told_apart() -> None:
    choices = [{"index": n, "message": {"content": f"{n}"}, "finish_reason": "stop"} for n in range(2)]
    answer = one("dashscope", {"output": {"choices": choices}, "request_id": "r"})
    assert (answer.text, answer.alternatives[0].message.text) == ("0", "1")


@pytest.mark.parametrize("usage", [None, {}, {"output_tokens": 2}])
def test_counts_may_be_missing(usage: Any) -> None:
    assert one("dashscope", text("Hi", "stop") | {"usage": usage}).usage.prompt_tokens == 0


def test_log_probabilities_are_read() -> None:
    event = text("Hi", "stop")
    event["output"]["choices"][0]["logprobs"] = {"content": [{"token": "Hi", "logprob": -0.5, "bytes": None}]}
    assert [token.logprob for token in one("dashscope", event).logprobs or ()] == [-0.5]
    event["output"]["choices"][0]["logprobs"] = {}
    assert one("dashscope", event).logprobs is None


def test_a_part_that_nobody_knows_leaves_the_text_unmapped() -> None:
    answer = one("dashscope", text([{"text": "A"}, {"video": "https://d.example/1.mp4"}], "stop"))
    assert answer.text == "A"
    assert answer.metadata.provenance["message.content"] is Provenance.UNMAPPED


def test_a_part_that_says_more_stays_in_the_extensions() -> None:
    answer = one("dashscope", text([{"text": "A", "odd": 1}], "stop", name="q"))
    message = {"name": "q", "content": [{"odd": 1}]}
    assert answer.metadata.extensions.thawed() == {"output": {"choices": [{"message": message}]}}


def test_what_a_call_says_more_stays_in_the_extensions() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}", "odd": 1}}
    answer = one("dashscope", text("", "tool_calls", tool_calls=[call]))
    assert answer.metadata.extensions.thawed()["output"]["choices"][0]["message"] == {
        "tool_calls": [{"function": {"odd": 1}}]
    }


def test_an_empty_message_says_nothing() -> None:
    answer = stream(text("Hi"), says({}, "stop"))
    assert (answer.text, answer.finish_reason) == ("Hi", "stop")
    assert one("dashscope", says({}, "stop")).metadata.extensions.thawed() == {}


def test_a_text_beside_a_message_is_not_its_text() -> None:
    event = text("Hi", "stop")
    event["output"]["choices"][0]["text"] = "Ho"
    answer = one("dashscope", event)
    assert answer.text == "Hi"
    assert answer.metadata.extensions.thawed() == {"output": {"choices": [{"text": "Ho"}]}}


def test_a_wrong_id_is_an_error_after_the_text() -> None:
    error = outcome("dashscope", sse(text("Hi", "stop") | {"request_id": 7}, done=False))[1]
    assert isinstance(error, WireTypeError)
    assert error.partial is not None
    assert error.partial.text == "Hi"


def test_a_second_answer_is_refused() -> None:
    assert isinstance(
        outcome("dashscope", sse(text("Hi", "stop"), text("Ho"), done=False))[1], TrailingContentError
    )


def test_an_event_without_an_output_is_unknown() -> None:
    assert isinstance(outcome("dashscope", sse(text("Hi"), {"odd": 1}, done=False))[1], UnknownEventError)


# ------------------------------------------------------------------------------ errors, detection, requests


@pytest.mark.parametrize(
    ("code", "message", "status", "kind", "retryable"),
    [
        ("InvalidApiKey", "No.", 401, ErrorKind.AUTHENTICATION, False),
        ("Arrearage", "No.", 400, ErrorKind.QUOTA, False),
        ("AccessDenied.Unpurchased", "No.", 403, ErrorKind.PERMISSION, False),
        ("DataInspectionFailed", "No.", 400, ErrorKind.CONTENT_FILTER, False),
        ("Throttling.RateQuota", "No.", 429, ErrorKind.RATE_LIMIT, True),
        ("ModelNotFound", "No.", 404, ErrorKind.MODEL_UNAVAILABLE, False),
        ("InternalError.Timeout", "No.", 500, ErrorKind.TIMEOUT, True),
        ("InternalError.Algo", "No.", 500, ErrorKind.SERVER, True),
        ("InvalidParameter", "No.", 400, ErrorKind.INVALID_REQUEST, False),
        (
            "InvalidParameter",
            "Range of input length should be [1, 9]",
            400,
            ErrorKind.CONTEXT_OVERFLOW,
            False,
        ),
    ],
)
def test_the_code_says_what_went_wrong(
    code: str, message: str, status: int, kind: ErrorKind, retryable: bool
) -> None:
    own = {"code": code, "message": message, "request_id": "r"}
    for payload in (own, {"error": {"code": code, "message": message, "type": code}, "request_id": "r"}):
        info = normalize(payload, "dashscope", status=status).error_info
        assert info is not None
        assert (info.kind, info.retryable, info.code) == (kind, retryable, code)


@pytest.mark.parametrize(
    ("event", "how"),
    [
        (text("x"), Recognition.CERTAIN),
        ({"output": {"text": "x", "finish_reason": "stop"}}, Recognition.POSSIBLE),
        ({"output": [], "request_id": "r"}, Recognition.NO),
        ({"code": "Throttling", "message": "", "request_id": "r"}, Recognition.POSSIBLE),
        ({"code": "", "message": "", "request_id": "r"}, Recognition.NO),
        (body({"content": "x"}), Recognition.POSSIBLE),
        ("x", Recognition.NO),
    ],
)
def test_its_marks(event: Any, how: Recognition) -> None:
    assert plugin.recognizes(event) is how


@pytest.mark.parametrize(
    ("model", "effort", "fields", "dropped"),
    [
        ("qwen-plus", None, {}, []),
        ("qwen-plus", "none", {"enable_thinking": False}, []),
        ("qwen-plus", "high", {"enable_thinking": True, "thinking_budget": 16384}, ["reasoning_effort"]),
        ("our-own", "none", {"enable_thinking": False}, []),
        ("our-own", "high", {"enable_thinking": True}, ["reasoning_effort"]),
    ],
)
def test_thinking_is_on_or_off(model: str, effort: Any, fields: dict[str, Any], dropped: list[str]) -> None:
    asked = ChatRequest("Hi", model=model, reasoning_effort=effort, top_k=3)
    request = build_http_request(asked, "dashscope", on_unsupported="drop")
    assert (request.path, request.body["top_k"]) == ("/v1/chat/completions", 3)
    assert {
        key: request.body[key]
        for key in ("enable_thinking", "thinking_budget", "reasoning_effort")
        if key in request.body
    } == fields
    assert [one.field for one in request.adaptations] == dropped
