"""Z.ai: its captures, invented after public documents, and what differs from OpenAI's dialect."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import ErrorKind, FinishReason, normalize
from crosswalk.plugins import Recognition, ResponseFormat
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.testing import ProviderConformance
from crosswalk_openai.zai import plugin
from wires import body, chunk, one, read, sse


class TestZAI(ProviderConformance):
    provider = "zai"
    captures = "../captures/zai"
    snapshots = "../../snapshots"
    sample = 12


WORDS = [
    ("sensitive", FinishReason.CONTENT_FILTER),
    ("network_error", FinishReason.ERROR),
    ("model_context_window_exceeded", FinishReason.LENGTH),
]


@pytest.mark.parametrize(("word", "reason"), WORDS)
def test_its_own_finish_words_never_end_a_complete_answer(word: str, reason: FinishReason) -> None:
    whole = one("zai", body({"content": "So far"}, word))
    streamed = read("zai", sse(chunk({"content": "So far"}), chunk({}, word)))[1]
    for answer in (whole, streamed):
        assert (answer.text, answer.finish_reason, answer.raw_finish_reason) == ("So far", reason, word)
        assert not answer.is_complete


@pytest.mark.parametrize(("word", "_"), WORDS)
def test_its_own_finish_words_are_a_mark(word: str, _: FinishReason) -> None:
    assert plugin.recognizes(body({"content": "x"}, word)) is Recognition.CERTAIN
    assert normalize(body({"content": "x"}, word)).metadata.provider_id == "zai"


@pytest.mark.parametrize("choices", [[None], [{"finish_reason": ["stop"]}], [{"finish_reason": "stop"}], []])
def test_what_others_write_is_not_a_mark(choices: list[Any]) -> None:
    assert plugin.recognizes({"choices": choices}) is Recognition.POSSIBLE


@pytest.mark.parametrize(
    ("code", "status", "kind", "retryable"),
    [
        ("1001", 401, ErrorKind.AUTHENTICATION, False),
        ("1113", 429, ErrorKind.QUOTA, False),
        ("1211", 400, ErrorKind.MODEL_UNAVAILABLE, False),
        ("1214", 400, ErrorKind.INVALID_REQUEST, False),
        ("1234", 500, ErrorKind.SERVER, True),
        ("1261", 400, ErrorKind.CONTEXT_OVERFLOW, False),
        ("1301", 400, ErrorKind.CONTENT_FILTER, False),
        ("1302", 429, ErrorKind.RATE_LIMIT, True),
        ("1308", 429, ErrorKind.RATE_LIMIT, False),
    ],
)
def test_the_business_code_says_what_went_wrong(
    code: str, status: int, kind: ErrorKind, retryable: bool
) -> None:
    info = normalize({"error": {"code": code, "message": "No."}}, "zai", status=status).error_info
    assert info is not None
    assert (info.kind, info.retryable, info.code) == (kind, retryable, code)


def asked(**options: Any) -> Any:
    return build_http_request(ChatRequest("Hi", model="glm", **options), "zai", on_unsupported="drop")


@pytest.mark.parametrize(
    ("effort", "thinking", "dropped"),
    [("none", {"type": "disabled"}, []), ("high", {"type": "enabled"}, ["reasoning_effort"])],
)
def test_thinking_is_on_or_off(effort: str, thinking: dict[str, Any], dropped: list[str]) -> None:
    request = asked(reasoning_effort=effort)
    assert (request.body["thinking"], "reasoning_effort" in request.body) == (thinking, False)
    assert [one.field for one in request.adaptations] == dropped


@pytest.mark.parametrize(("choice", "dropped"), [("auto", []), ("required", ["tool_choice"])])
def test_the_model_decides_whether_to_call_a_tool(choice: str, dropped: list[str]) -> None:
    request = asked(tool_choice=choice)
    assert ("tool_choice" in request.body) is not bool(dropped)
    assert [one.field for one in request.adaptations] == dropped


@pytest.mark.parametrize(("schema", "adapted"), [(None, []), ({"type": "object"}, ["response_format"])])
def test_json_has_no_schema(schema: Any, adapted: list[str]) -> None:
    request = asked(response_format=ResponseFormat(schema))
    assert request.body["response_format"] == {"type": "json_object"}
    assert [one.field for one in request.adaptations] == adapted
    assert ("JSON Schema" in request.body["messages"][0]["content"]) is bool(adapted)
    assert not request.dropped


def test_a_stream_counts_without_being_asked() -> None:
    request = asked(stream=True)
    assert (request.path, request.body["stream"]) == ("/chat/completions", True)
    assert "stream_options" not in request.body
