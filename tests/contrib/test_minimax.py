"""MiniMax: its captures, invented after public documents, and what differs from OpenAI's dialect."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import ChatMessage, ErrorKind, FinishReason, TrailingContentError, UsageInfo, normalize
from crosswalk.plugins import Recognition
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.testing import ProviderConformance
from crosswalk_openai.minimax import plugin
from wires import body, chunk, one, outcome, read, sse, usage


class TestMiniMax(ProviderConformance):
    provider = "minimax"
    captures = "../captures/minimax"
    snapshots = "../../snapshots"
    sample = 12


def status(code: Any, text: str = "No.") -> dict[str, Any]:
    return {"base_resp": {"status_code": code, "status_msg": text}}


# ------------------------------------------------------------------------------ errors in a 200


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        (1001, ErrorKind.TIMEOUT, True),
        (1002, ErrorKind.RATE_LIMIT, True),
        (1004, ErrorKind.AUTHENTICATION, False),
        (1008, ErrorKind.QUOTA, False),
        (1013, ErrorKind.SERVER, True),
        (1026, ErrorKind.CONTENT_FILTER, False),
        (1033, ErrorKind.SERVER, True),
        (2013, ErrorKind.INVALID_REQUEST, False),
    ],
)
@pytest.mark.parametrize("more", [{}, {"choices": None}, {"choices": []}])
def test_a_status_in_an_answer_of_200_is_an_error(
    code: int, kind: ErrorKind, retryable: bool, more: dict[str, Any]
) -> None:
    answer = normalize({**more, **status(code)}, "minimax")
    info = answer.error_info
    assert info is not None
    assert (answer.finish_reason, answer.is_complete) == (FinishReason.ERROR, False)
    assert (info.kind, info.retryable, info.code, info.message) == (kind, retryable, str(code), "No.")


def test_an_unknown_status_is_an_error_with_its_code() -> None:
    info = normalize(status(7777), "minimax").error_info
    assert info is not None
    assert (info.kind, info.code) == (ErrorKind.UNKNOWN, "7777")


def test_an_error_counts_its_tokens() -> None:
    assert normalize({**status(1027), "usage": usage(5, 2)}, "minimax").usage == UsageInfo(5, 2)


def test_an_answer_that_fails_keeps_what_it_said() -> None:
    answer = normalize(body({"content": "It"}, **status(1027)), "minimax")
    assert (answer.text, answer.finish_reason) == ("It", FinishReason.ERROR)


def test_an_error_in_openais_form_is_read_too() -> None:
    info = normalize(
        {"error": {"type": "authentication_error", "message": "No."}}, "minimax", status=401
    ).error_info
    assert info is not None
    assert info.kind is ErrorKind.AUTHENTICATION


@pytest.mark.parametrize("base", [None, {}, {"status_code": "0"}, {"status_code": 0}])
def test_a_status_of_success_is_no_error(base: Any) -> None:
    answer = normalize(body({"content": "Hi"}, base_resp=base), "minimax")
    assert (answer.text, answer.finish_reason) == ("Hi", FinishReason.STOP)


def test_only_an_object_can_be_recognized() -> None:
    assert plugin.recognizes("down") is Recognition.NO
    assert outcome("minimax", b"data: 5\n\n")[1] is not None


def test_the_status_is_a_mark() -> None:
    assert plugin.recognizes(status(1004)) is Recognition.CERTAIN
    assert plugin.recognizes(body({"content": "x"}, input_sensitive=False)) is Recognition.CERTAIN
    assert plugin.recognizes(body({"content": "x"})) is Recognition.POSSIBLE


# ------------------------------------------------------------------------------ reasoning

THOUGHT = {"type": "reasoning.text", "index": 0, "text": "Hm."}


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Hi", "reasoning_content": "Hm."},
        {"content": "Hi", "reasoning_details": [THOUGHT]},
        {"content": "Hi", "reasoning_content": "Hm.", "reasoning_details": [THOUGHT]},
        {"content": "<think>Hm.</think>Hi"},
        {"content": "<think>Hm.</think>Hi", "reasoning_content": "Hm."},
        {"content": "<think>Hm.</think>Hi", "reasoning_details": [THOUGHT]},
    ],
)
def test_reasoning_counts_once_whatever_says_it(message: dict[str, Any]) -> None:
    answer = one("minimax", body(message))
    assert (answer.reasoning, answer.text) == ("Hm.", "Hi")


@pytest.mark.parametrize(
    "deltas",
    [
        [
            {"content": "<think>"},
            {"content": "H"},
            {"content": "m."},
            {"content": "</think>"},
            {"content": "Hi"},
        ],
        [{"content": ""}, {"content": "<think>Hm"}, {"content": ".</think>H"}, {"content": "i"}],
        [
            {"content": "<think>H", "reasoning_content": "H"},
            {"content": "m.", "reasoning_content": "m."},
            {"content": "</think>Hi"},
        ],
    ],
)
def test_tags_are_read_in_pieces(deltas: list[dict[str, Any]]) -> None:
    answer = read("minimax", sse(*map(chunk, deltas), chunk({}, "stop")))[1]
    assert (answer.reasoning, answer.text) == ("Hm.", "Hi")


@pytest.mark.parametrize(
    "pieces", [("\n<think>\nHm.</think>\n\nHi",), ("\n", "<think>", "\nHm.", "</think>", "\n\nHi")]
)
def test_white_space_may_come_before_the_tag(pieces: tuple[str, ...]) -> None:
    deltas = [chunk({"content": piece}) for piece in pieces]
    end = body({"content": "\n<think>\nHm.</think>\n\nHi"}, "stop")
    for events in ((*deltas, chunk({}, "stop")), (*deltas, end)):
        answer = read("minimax", sse(*events))[1]
        assert (answer.reasoning, answer.text) == ("\nHm.", "\n\n\nHi")


@pytest.mark.parametrize("flag", ["input_sensitive", "output_sensitive"])
@pytest.mark.parametrize(
    ("content", "value", "finish"), [("", True, "content_filter"), ("Hi", True, "stop"), ("", False, "stop")]
)
def test_a_sensitive_answer_without_content_is_filtered(
    flag: str, content: str, value: bool, finish: str
) -> None:
    for answer in (
        one("minimax", body({"content": content}, **{flag: value})),
        read("minimax", sse(chunk({"content": content}), chunk({}, "stop", **{flag: value})))[1],
    ):
        assert (answer.finish_reason, answer.raw_finish_reason, answer.text) == (finish, "stop", content)


@pytest.mark.parametrize("text", ["a <think> is a tag", "</think>", "<thinker>", "So <think>a</think>."])
def test_tags_that_do_not_begin_the_content_are_text(text: str) -> None:
    assert one("minimax", body({"content": text})).text == text


def test_tags_beside_reasoning_of_another_name_are_text() -> None:
    answer = one("minimax", body({"content": "<think>a</think>b", "reasoning": "c"}))
    assert (answer.text, answer.reasoning) == ("<think>a</think>b", "c")


# ------------------------------------------------------------------------------ the last event of a stream

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PIECES = [
    chunk({"role": "", "reasoning_content": "Hm."}),
    chunk({"content": "Hi"}),
    chunk({"tool_calls": [{"index": 0, **CALL}]}, "tool_calls"),
]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Hi", "reasoning_content": "Hm.", "tool_calls": [CALL]},
        {"content": "<think>Hm.</think>Hi", "tool_calls": [CALL]},
        {"content": "Hi", "reasoning_details": [THOUGHT]},
    ],
)
def test_the_whole_message_at_the_end_is_not_said_twice(message: dict[str, Any]) -> None:
    end = body(message, "tool_calls", usage=usage(3, 2), **status(0, ""))
    answer = read("minimax", sse(*PIECES, end, done=False))[1]
    assert (answer.text, answer.reasoning, len(answer.tool_calls)) == ("Hi", "Hm.", 1)
    assert (answer.usage, answer.finish_reason) == (UsageInfo(3, 2), FinishReason.TOOL_CALLS)
    assert "Hm." not in str(answer.metadata.extensions)


@pytest.mark.parametrize(
    "message",
    [{"content": "Ho"}, {"content": "Hi", "reasoning_content": "Ha."}, {"content": "Hi", "tool_calls": []}],
)
def test_a_message_at_the_end_that_differs_is_refused(message: dict[str, Any]) -> None:
    partial, error = outcome("minimax", sse(*PIECES, body(message, "tool_calls"), done=False))
    assert isinstance(error, TrailingContentError)
    assert partial.text == "Hi"


@pytest.mark.parametrize("choice", [{"index": "0", "message": {}}, {"index": 0, "message": "odd"}])
def test_a_malformed_choice_is_left_to_the_dialect(choice: dict[str, Any]) -> None:
    end = {**body({}), "choices": [choice]}
    assert outcome("minimax", sse(*PIECES[:2], end, done=False))[1] is not None


# ------------------------------------------------------------------------------ requests


def test_the_system_speaks_once_and_first() -> None:
    turns = [ChatMessage.user("Hi"), ChatMessage.system("Be brief."), ChatMessage.system("Be kind.")]
    sent = build_http_request(ChatRequest(turns, model="m"), "minimax").body["messages"]
    assert sent == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        {"role": "user", "content": "Hi"},
    ]
    sent = build_http_request(ChatRequest(turns[:1], model="m"), "minimax").body["messages"]
    assert sent == [{"role": "user", "content": "Hi"}]


def test_reasoning_comes_apart_and_goes_back_in_its_details() -> None:
    answer = one("minimax", body({"content": "Hi", "reasoning_details": [THOUGHT]}))
    request = ChatRequest([ChatMessage.user("Hi"), answer, ChatMessage.user("More")], model="m", max_tokens=5)
    sent = build_http_request(request, "minimax").body
    assert (sent["reasoning_split"], sent["max_completion_tokens"]) == (True, 5)
    assert sent["messages"][1]["reasoning_details"] == [THOUGHT]
