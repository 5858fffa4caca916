"""The question, in any dialect, in the words of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk import ChatMessage, ChatResponse, FinishReason, ResponseMetadata, Segment, ToolCall, UsageInfo
from crosswalk.otel import otel_output_messages
from crosswalk_observe.otel import input_messages, system_instructions, tool_definitions
from strategies import json_values

from .test_otel import check


def text(content: str) -> dict[str, str]:
    return {"type": "text", "content": content}


def call(id: str | None, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": "look", "arguments": arguments}


def result(id: str | None, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": id, "response": response}


NOW = datetime(2026, 1, 1, tzinfo=UTC)
HI = {"role": "user", "parts": [text("Hi")]}
REQUESTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "chat completions": (
        {
            "messages": [
                {"role": "developer", "content": "Be short."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Hi"},
                        {"type": "image_url", "image_url": {"url": "http://x/y.png"}},
                    ],
                    "name": "Ann",
                },
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "Hm.",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "seen"},
                {"role": "function", "name": "look", "content": "seen"},
                "stray",
            ]
        },
        [
            {"role": "system", "parts": [text("Be short.")]},
            {
                "role": "user",
                "parts": [text("Hi"), {"type": "uri", "modality": "image", "uri": "http://x/y.png"}],
                "name": "Ann",
            },
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, call("c1", "{}")]},
            {"role": "tool", "parts": [result("c1", "seen")]},
            {"role": "tool", "parts": [result("look", "seen")]},
            {"role": "user", "parts": [text("stray")]},
        ],
    ),
    "messages": (
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                        {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "seen"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                        },
                    ],
                },
            ]
        },
        [
            HI,
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, call("c1", {"a": 1})]},
            {
                "role": "user",
                "parts": [
                    result("c1", "seen"),
                    {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGk="},
                ],
            },
        ],
    ),
    "responses": (
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Hi"},
                        {"type": "input_image", "image_url": "http://x"},
                    ],
                },
                {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "seen"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "look", "input": "up"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": "seen"},
                {"type": "computer_call_output", "call_id": "c3", "output": {"file_id": "f"}},
                {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
                {"type": "item_reference", "id": "i"},
            ]
        },
        [
            {"role": "user", "parts": [text("Hi"), {"type": "uri", "modality": "image", "uri": "http://x"}]},
            {"role": "assistant", "parts": [call("c1", "{}")]},
            {"role": "tool", "parts": [result("c1", "seen")]},
            {"role": "assistant", "parts": [call("c2", "up")]},
            {"role": "tool", "parts": [result("c2", "seen")]},
            {"role": "tool", "parts": [result("c3", {"file_id": "f"})]},
            {
                "role": "tool",
                "parts": [{"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}],
            },
            {"role": "assistant", "parts": [{"type": "item_reference", "id": "i"}]},
        ],
    ),
    "responses, a text": ({"input": "Hi"}, [HI]),
    "gemini": (
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [
                        {"text": "Hi"},
                        {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
                        {"fileData": {"mimeType": "image/png", "fileUri": "gs://x"}},
                    ],
                },
                {
                    "role": "model",
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"functionCall": {"name": "look", "args": {}}},
                    ],
                },
                {"parts": [{"functionResponse": {"name": "look", "response": {"a": 1}}}]},
            ]
        },
        [
            {
                "role": "user",
                "parts": [
                    text("Hi"),
                    {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "aGk="},
                    {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "gs://x"},
                ],
            },
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, call(None, {})]},
            {"role": "user", "parts": [result("look", {"a": 1})]},
        ],
    ),
    "bedrock": (
        {
            "messages": [
                {"role": "user", "content": [{"text": "Hi"}]},
                {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}],
                },
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "seen"}]}}],
                },
            ]
        },
        [
            HI,
            {"role": "assistant", "parts": [call("c1", {})]},
            {"role": "user", "parts": [result("c1", [{"text": "seen"}])]},
        ],
    ),
    "ollama": (
        {"messages": [{"role": "user", "content": "Hi", "images": ["aGk="]}]},
        [{"role": "user", "parts": [text("Hi"), {"type": "blob", "modality": "image", "content": "aGk="}]}],
    ),
    "cohere v1": (
        {"chat_history": [{"role": "CHATBOT", "message": "Ho"}], "message": "Hi"},
        [{"role": "assistant", "parts": [text("Ho")]}, HI],
    ),
    "a prompt": ({"prompt": "Hi"}, [HI]),
    "prompts": ({"prompt": ["Hi", "Ho", 1]}, [HI, {"role": "user", "parts": [text("Ho")]}]),
    "tgi": ({"inputs": "Hi"}, [HI]),
    "a part of a type whose look the conventions say, and that looks otherwise": (
        {"messages": [{"role": "user", "content": [{"type": "blob", "blob": 1}]}]},
        [{"role": "user", "parts": [{"type": "unknown", "value": {"type": "blob", "blob": 1}}]}],
    ),
    "nothing": ({"prompt": 1, "messages": {}}, []),
}


@pytest.mark.parametrize(("body", "said"), REQUESTS.values(), ids=REQUESTS)
def test_a_conversation(body: dict[str, Any], said: list[dict[str, Any]]) -> None:
    assert input_messages(body) == said
    check([{**message, "finish_reason": "stop"} for message in said])


@pytest.mark.parametrize(
    "body",
    [
        {"system": "Be short."},
        {"system": [{"type": "text", "text": "Be short."}]},
        {"system": [{"text": "Be short."}]},
        {"instructions": "Be short."},
        {"systemInstruction": {"parts": [{"text": "Be short."}]}},
        {"preamble": "Be short."},
    ],
)
def test_instructions(body: dict[str, Any]) -> None:
    assert system_instructions(body) == [text("Be short.")]


SCHEMA = {"type": "object"}
LOOK = {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "body",
    [
        {
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA},
                }
            ]
        },
        {"tools": [LOOK]},
        {"tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}]},
        {
            "tools": [
                {"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters": SCHEMA}]}
            ]
        },
        {
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": SCHEMA}}}
                ]
            }
        },
        {"functions": [{"name": "look", "description": "Looks.", "parameters": SCHEMA}]},
    ],
)
def test_a_tool(body: dict[str, Any]) -> None:
    assert tool_definitions(body) == [LOOK]


def test_tools_of_other_kinds() -> None:
    tools = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
        {"googleSearch": {}},
        {"name": "bare"},
    ]
    assert tool_definitions({"tools": tools}) == [
        tools[0],
        {"googleSearch": {}, "type": "googleSearch", "name": "googleSearch"},
        {"type": "function", "name": "bare", "description": None},
    ]
    assert tool_definitions({"tools": {}, "toolConfig": {}}) == []


NAMES = st.sampled_from(
    [
        "messages",
        "contents",
        "input",
        "prompt",
        "system",
        "tools",
        "toolConfig",
        "functions",
        "role",
        "content",
        "parts",
    ]
)


@given(
    st.dictionaries(
        NAMES,
        json_values
        | st.lists(
            st.dictionaries(NAMES | st.sampled_from(["type", "text"]), json_values, max_size=3), max_size=3
        ),
    )
)
def test_any_request_is_told(body: dict[str, Any]) -> None:
    """No question is worth an error, whatever its origin."""
    for message in input_messages(body):
        check([{**message, "finish_reason": "stop"}])
    for part in system_instructions(body):
        assert isinstance(part["type"], str)
    for tool in tool_definitions(body):
        assert isinstance(tool["type"], str)
        assert isinstance(tool["name"], str)


def said_by(*segments: Segment, message: ChatMessage | None = None) -> list[dict[str, Any]]:
    made = message or ChatMessage.assistant("x")
    response = ChatResponse(
        "i",
        made,
        FinishReason.STOP,
        UsageInfo.EMPTY,
        ResponseMetadata("p", "m", timedelta(0)),
        segments=segments,
        created=NOW,
        model="m",
    )
    messages = otel_output_messages(response)
    check(messages)
    return messages[0]["parts"]  # type: ignore[no-any-return]


def test_an_answer_without_parts_is_told_from_its_message() -> None:
    message = ChatMessage.assistant("Hi", tool_calls=[ToolCall("c1", "look", "{")])
    assert said_by(message=message) == [text("Hi"), call("c1", "{")]


def test_parts_of_an_answer() -> None:
    assert said_by(
        Segment("media", "aGk=", {"media_type": "audio/wav"}),
        Segment("media", "https://x/y.png"),
        Segment("refusal", "No."),
        Segment("tool_call", '{"query": "x"}', {"id": "s1", "name": "search", "type": "server_tool_use"}),
        Segment("tool_call", "[]", {"tool_use_id": "s1", "type": "web_search_tool_result"}),
        Segment("tool_call", "", {}),
    ) == [
        {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "aGk="},
        {"type": "uri", "modality": "image", "mime_type": None, "uri": "https://x/y.png"},
        {"type": "refusal", "content": "No."},
        {
            "type": "server_tool_call",
            "id": "s1",
            "name": "search",
            "server_tool_call": {
                "id": "s1",
                "name": "search",
                "type": "server_tool_use",
                "content": {"query": "x"},
            },
        },
        {
            "type": "server_tool_call_response",
            "id": "s1",
            "server_tool_call_response": {
                "tool_use_id": "s1",
                "type": "web_search_tool_result",
                "content": [],
            },
        },
        {
            "type": "server_tool_call",
            "id": None,
            "name": "tool",
            "server_tool_call": {"type": "tool", "content": ""},
        },
    ]
