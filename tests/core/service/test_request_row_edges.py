"""What a client says that no row reads, and the ends of what the rows read."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from crosswalk.errors import ResponseValidationError
from crosswalk.request import as_request
from crosswalk.service import (
    CacheMark,
    ChatRequest,
    HostedTool,
    OpenAIChatStyle,
    build_http_request,
    build_openai_chat_request,
    read_request,
)
from crosswalk.types import ChatMessage, ChatResponse, FrozenObject, Segment, SegmentType, ToolCall, UsageInfo
from crosswalk.types.json import dump_json

HI: dict[str, Any] = {"role": "user", "content": "Hi"}


def sent(request: ChatRequest, to: str, unsupported: str = "drop") -> dict[str, Any]:
    body: dict[str, Any] = build_http_request(request, to, on_unsupported=unsupported).body
    return body


def from_client(said: dict[str, Any], form: str, **more: Any) -> ChatRequest:
    return read_request(said, form, **more).request


def test_a_mark_after_a_result_stands_in_the_result() -> None:
    call = ToolCall("c", "look", "{}")
    messages = [
        ChatMessage.user("Hi"),
        ChatMessage.assistant(None, tool_calls=[call]),
        ChatMessage.tool_result("c", "It rains."),
    ]
    request = ChatRequest(messages, model="m", cache_marks=[CacheMark(2)])
    (result,) = (item for item in sent(request, "openai_responses")["input"] if item.get("output"))
    assert result["output"][-1]["prompt_cache_breakpoint"] == {"mode": "explicit"}


def test_the_search_of_the_chat_sdks_is_a_tool_of_the_server() -> None:
    where = {"type": "approximate", "approximate": {"city": "Ulm"}}
    asked = {
        "messages": [HI],
        "model": "m",
        "web_search_options": {"search_context_size": "low", "user_location": where},
    }
    (tool,) = as_request(asked).hosted_tools
    assert (tool.kind, tool.search_context_size, tool.user_location) == ("web_search", "low", {"city": "Ulm"})


@pytest.mark.parametrize("part", [-1, "0"])
def test_a_mark_names_a_part_by_its_number(part: Any) -> None:
    with pytest.raises(ResponseValidationError, match="part must be"):
        CacheMark(0, part=part)


@pytest.mark.parametrize(
    ("said", "form"),
    [
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}, "max_tokens": 9},
            "anthropic",
        ),
        ({"context_management": [{"type": "compaction"}, {"type": "compaction"}]}, "openai-responses"),
        ({"response_format": {"type": "grammar", "grammar": "g"}}, "openai-chat"),
    ],
)
def test_what_no_row_reads_is_named(said: dict[str, Any], form: str) -> None:
    conversation = {"input": "Hi"} if form == "openai-responses" else {"messages": [HI]}
    request = from_client({"model": "m", **conversation, **said}, form)
    (name,) = said.keys() - {"max_tokens"}
    built = build_http_request(request, "ollama", on_unsupported="drop")
    assert any(name in one.field for one in built.dropped)


@pytest.mark.parametrize("part", [{"mystery": 1}, {"speechMetadata": {"speaker": "Ann"}}])
def test_a_message_of_gemini_without_a_known_part_keeps_its_turn(part: dict[str, Any]) -> None:
    said = {"contents": [{"role": "user", "parts": [part]}, {"role": "user", "parts": [{"text": "Hi"}]}]}
    assert len(from_client(said, "gemini", model="m").messages) == 2


def test_a_tool_that_a_plugin_names_and_does_not_ask_for_is_named() -> None:
    request = ChatRequest("Hi", model="m", hosted_tools=[HostedTool("code_execution")])
    built = build_openai_chat_request(request, OpenAIChatStyle(hosted_tools={"code_execution": {}}))
    assert "tools" not in built.body
    assert [(one.field, one.refuses) for one in built.dropped] == [("hosted_tools", True)]


def spoken(*about: dict[str, Any]) -> ChatResponse:
    sound = {"type": "audio", "encoding": "base64"}
    pieces = [Segment(SegmentType.MEDIA, "QQ==", FrozenObject({**sound, **one})) for one in about]
    return attrs.evolve(
        ChatResponse.success(ChatMessage.assistant(""), UsageInfo(1, 1), "m"), segments=tuple(pieces)
    )


def test_a_sound_in_pieces_is_said_once() -> None:
    turns = [
        ChatMessage.user("Hi"),
        spoken({"transcript": "Hel"}, {"transcript": "lo."}),
        ChatMessage.user("Go on"),
    ]
    body = dump_json(sent(ChatRequest(turns, model="m"), "ollama")).decode()
    assert body.count("Hello.") == 1


def test_a_sound_without_an_id_is_not_sent_by_its_id() -> None:
    turns = [
        ChatMessage.user("Hi"),
        spoken({"transcript": "Hel"}, {"id": "audio_1"}),
        ChatMessage.user("Go on"),
    ]
    built = build_openai_chat_request(ChatRequest(turns, model="m"))
    assert built.body["messages"][1]["audio"] == {"id": "audio_1"}
