"""Moonshot AI: its captures, invented after public documents, and what differs from OpenAI's dialect."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import ChatMessage, ErrorKind, FinishReason, UsageInfo, normalize
from crosswalk.plugins import Recognition, ToolDefinition
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.testing import ProviderConformance
from crosswalk_openai.lookalikes import moonshot as plugin
from wires import body, chunk, one, read, sse, usage


class TestMoonshot(ProviderConformance):
    provider = "moonshot"
    captures = "../captures/moonshot"
    snapshots = "../../snapshots"
    sample = 12


def in_choice(counts: Any, **more: Any) -> dict[str, Any]:
    event = chunk({}, "stop", **more)
    event["choices"][0]["usage"] = counts
    return event


HELLO = chunk({"role": "assistant", "content": "Hello"})


SERVERS = pytest.mark.parametrize(
    "provider", ["moonshot", "openai", "vllm"]
)  # Kimi is also asked as OpenAI is


@pytest.mark.parametrize("at_top", [None, usage(12, 3)], ids=["in the choice alone", "at the top as well"])
@SERVERS
def test_usage_inside_the_choice_counts_once(provider: str, at_top: Any) -> None:
    ends = [in_choice(usage(12, 3)), {**chunk({}), "choices": [], "usage": at_top}]
    response = read(provider, sse(HELLO, *ends))[1]
    assert response.usage == UsageInfo(12, 3)
    assert "usage" not in response.metadata.extensions


@SERVERS
def test_the_same_counts_in_one_event_count_once(provider: str) -> None:
    response = read(provider, sse(HELLO, in_choice(usage(12, 3), usage=usage(12, 3))))[1]
    assert response.usage == UsageInfo(12, 3)
    assert "choices" not in response.metadata.extensions


@SERVERS
def test_the_counts_of_the_event_win_over_others_in_its_choice(provider: str) -> None:
    response = read(provider, sse(HELLO, in_choice(usage(12, 3), usage=usage(13, 3))))[1]
    assert response.usage == UsageInfo(13, 3)


def test_ids_of_calls_stay_as_they_came_and_go_back_so() -> None:
    call = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = one(
        "moonshot", body({"content": "", "reasoning_content": "T", "tool_calls": [call]}, "tool_calls")
    )
    result = ChatMessage.tool_result("functions.f:0", "1")
    tools = [ToolDefinition("f")]
    request = ChatRequest([ChatMessage.user("Hi"), answer, result], model="m", tools=tools)
    messages = build_http_request(request, "moonshot").body["messages"]
    assert (messages[1]["tool_calls"], messages[1]["reasoning_content"]) == ([call], "T")
    assert messages[2]["tool_call_id"] == "functions.f:0"


def test_an_answer_at_the_end_is_marked_as_partial() -> None:
    request = ChatRequest([ChatMessage.user("Hi"), ChatMessage.assistant("{")], model="m")
    last = build_http_request(request, "moonshot").body["messages"][-1]
    assert last == {"role": "assistant", "content": "{", "partial": True}


@pytest.mark.parametrize(
    ("effort", "fields"),
    [("none", {"thinking": {"type": "disabled"}}), ("low", {"reasoning_effort": "low"}), (None, {})],
)
def test_thinking_can_be_switched_off(effort: Any, fields: dict[str, Any]) -> None:
    sent = build_http_request(ChatRequest("Hi", model="m", reasoning_effort=effort), "moonshot").body
    assert {key: sent[key] for key in ("thinking", "reasoning_effort") if key in sent} == fields


@pytest.mark.parametrize(
    ("word", "status", "kind", "retryable"),
    [
        ("content_filter", 400, ErrorKind.CONTENT_FILTER, False),
        ("invalid_authentication_error", 401, ErrorKind.AUTHENTICATION, False),
        ("resource_not_found_error", 404, ErrorKind.MODEL_UNAVAILABLE, False),
        ("engine_overloaded_error", 429, ErrorKind.RATE_LIMIT, True),
        ("exceeded_current_quota_error", 429, ErrorKind.QUOTA, False),
    ],
)
def test_the_type_of_an_error_says_its_kind(word: str, status: int, kind: ErrorKind, retryable: bool) -> None:
    answer = normalize({"error": {"type": word, "message": "No."}}, "moonshot", status=status)
    info = answer.error_info
    assert info is not None
    assert (answer.finish_reason, info.kind, info.retryable, info.code) == (
        FinishReason.ERROR, kind, retryable, word,
    )  # fmt: skip


def test_usage_inside_the_choice_is_a_mark() -> None:
    assert plugin.recognizes(in_choice(usage(1, 1))) is Recognition.CERTAIN
    assert plugin.recognizes(HELLO) is Recognition.POSSIBLE
    assert plugin.recognizes(in_choice(None)) is Recognition.POSSIBLE  # TGI
    assert plugin.recognizes({"choices": [None]}) is Recognition.POSSIBLE
