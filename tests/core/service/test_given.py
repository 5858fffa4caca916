"""Users' values go where canonical values go, and values without a place there are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from ollama import Message
from openai.types.chat import ChatCompletionContentPartTextParam, ChatCompletionMessage

from crosswalk import ChatMessage, ChatResponse, ResponseValidationError, ToolCall, UsageInfo
from crosswalk.agent import ChatAgent, ChatConfig, ChatSession, ToolDefinitionError, ToolRegistry
from crosswalk.request import as_request
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    LLMService,
    NamedTool,
    ResponseFormat,
    SyncLLMService,
    ToolDefinition,
    build_http_request,
)
from crosswalk.testing import Answer, ReplayServer
from crosswalk.types import AudioPart, FilePart, ImagePart, TextPart

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
PARTS = [
    {"type": "text", "text": "Look"},
    {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "auto"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"}},
]
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": PARTS, "name": "Ada"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "It is 42."},
]


def test_a_message_may_hold_objects_of_an_sdk() -> None:
    part = ChatCompletionContentPartTextParam(type="text", text="Look")
    sdk = ChatCompletionMessage(role="assistant", content="It is 42.")
    parts = [part, Message(role="user", content="x")]
    assert ChatRequest([{"role": "user", "content": [part]}, sdk]).messages[0].content == (TextPart("Look"),)
    with pytest.raises(ResponseValidationError):
        ChatRequest([{"role": "user", "content": parts}])


def test_openais_conversation_is_the_canonical_one() -> None:
    assert ChatRequest(CONVERSATION).messages == (
        ChatMessage.system("Be brief."),
        ChatMessage.user(
            [
                TextPart("Look"),
                ImagePart(url="https://a.example/b.png", detail="auto"),
                ImagePart(data="iVBORw0KGgo=", media_type="image/png"),
                AudioPart(data="UklGRg==", media_type="audio/wav"),
                FilePart(data="JVBERi0=", media_type="application/pdf", name="a.pdf"),
            ],
            name="Ada",
        ),
        ChatMessage.assistant(tool_calls=[ToolCall("c1", "f", '{"a": 1}')]),
        ChatMessage.tool_result("c1", "42"),
        ChatMessage.assistant("It is 42."),
    )


def test_a_tool_that_takes_free_text_is_a_function_elsewhere() -> None:
    tool = {"type": "custom", "custom": {"name": "c", "description": "d", "format": {"type": "text"}}}
    request = ChatRequest("Hi", model="m", tools=[tool])
    assert request.tools[0].as_function() == request.tools[0].as_function().as_function()
    assert build_http_request(request, "openai").body["tools"] == [tool]
    function = build_http_request(request, "vllm").body["tools"][0]["function"]
    assert (function["name"], function["description"]) == ("c", "d")
    assert function["parameters"]["required"] == ["input"]


NOTHING = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
"""A schema that strict mode takes."""


def test_what_is_read_is_what_is_sent() -> None:
    """The reader and the writer of OpenAI's form know the same."""
    request = {
        "model": "m",
        "messages": [*CONVERSATION, {"role": "user", "content": "And?"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": NOTHING, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": NOTHING, "strict": True},
        },
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "stop": ["x"],
    }
    sent = build_http_request(as_request(request), "openai").body
    assert sent == {
        **request,
        "messages": [{**one, "content": one["content"] or ""} for one in request["messages"]],
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"role": "user", "content": "Hi"}, ChatMessage.user("Hi")),
        (ChatMessage.user("Hi"), ChatMessage.user("Hi")),
        ({"role": "developer", "content": "Hi"}, ChatMessage.system("Hi")),
        ([{"role": "user", "content": [TextPart("Hi")]}], ChatMessage.user([TextPart("Hi")])),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://a.example"}]},
            ChatMessage.user([ImagePart(url="https://a.example")]),
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:text/plain,x"}}]},
            ChatMessage.user([ImagePart(url="data:text/plain,x")]),
        ),
        (
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "x", "format": "mp3"}}],
            },
            ChatMessage.user([AudioPart(data="x", media_type="audio/mpeg")]),
        ),
        (
            {"role": "assistant", "content": "No", "refusal": "I must not", "annotations": [], "audio": None},
            ChatMessage.assistant("No\n\nI must not"),
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
            ChatMessage("assistant", [TextPart("No")]),  # type: ignore[arg-type]
        ),
        (
            {"role": "assistant", "tool_calls": [ToolCall("c", "f"), {**CALL, "function": {"name": "g"}}]},
            ChatMessage.assistant(tool_calls=[ToolCall("c", "f"), ToolCall("c1", "g")]),
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
            },
            ChatMessage.assistant(tool_calls=[ToolCall("c", "f", '{"a":1}')]),
        ),
        (
            ChatCompletionMessage.model_validate({"role": "assistant", "content": "Hi"}),
            ChatMessage.assistant("Hi"),
        ),
        ([Message(role="user", content="Hi")], ChatMessage.user("Hi")),
    ],
)
def test_a_turn_may_be_given_in_many_ways(given: Any, expected: ChatMessage) -> None:
    assert ChatRequest(given).messages == (expected,)


def test_an_answer_alone_is_a_conversation() -> None:
    answer = ChatResponse.success(message=ChatMessage.assistant("Hi"), usage=UsageInfo.EMPTY, model="m")
    assert ChatRequest(answer).messages == (answer,)


ROLE = "one of system, user, assistant, tool, developer"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "messages must be a text, a ChatMessage, a ChatResponse, or a dictionary in OpenAI's chat form"),
        (b"Hi", "not bytes"),
        (["Hi"], "messages[0]: must be a ChatMessage, a ChatResponse, or a dictionary in OpenAI's chat form"),
        ({}, f"messages.role: must be {ROLE}"),
        ([{"role": "function"}], f"messages[0].role: must be {ROLE}"),
        ([{"role": "user"}], "messages[0].content: is missing"),
        ([{"role": "user", "content": 7}], "messages[0].content: must be a list, not number"),
        (
            [{"role": "user", "contents": "Hi"}],
            "messages[0].content: is missing, did you mean 'contents'?",
        ),
        (
            [{"role": "user", "content": [7]}],
            "messages[0].content[0]: must be an object, not number",
        ),
        (
            [{"role": "user", "content": [{"type": "hologram"}]}],
            "messages[0].content[0]: must be text, image_url, video_url, input_audio or file",
        ),
        (
            [{"role": "user", "content": [{"type": "text"}]}],
            "messages[0].content[0].text: is missing",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "u", "details": "low"}}],
                }
            ],
            "messages[0].content[0].image_url.details: is not a field that Crosswalk reads here, did you mean 'detail'?",
        ),
        (
            [{"role": "user", "content": [{"type": "file", "file": {}}]}],
            "messages[0].content[0].file.file_data: is missing",
        ),
        (
            [{"role": "user", "content": "Hi", "reasoning_content": "x"}],
            "messages[0].reasoning_content: is not a field that Crosswalk reads here",
        ),
        ([{"role": "assistant", "tool_calls": 7}], "messages[0].tool_calls: must be a list, not number"),
        (
            [{"role": "assistant", "tool_calls": [7]}],
            "messages[0].tool_calls[0]: must be an object, not number",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "function": {}}]}],
            "messages[0].tool_calls[0].custom: is missing",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "type": "web"}]}],
            "messages[0].tool_calls[0]: must be a function or a custom call",
        ),
        (
            [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}],
            "messages[0].tool_calls[0].id: is missing",
        ),
        (
            {"messages": "Hi", "safe_prompt": True},
            "request.safe_prompt: no option of a ChatRequest; what only one API knows goes into provider",
        ),
        ({"messages": "Hi", "max_token": 2}, "did you mean 'max_tokens'?"),
        ({"messages": "Hi", "tools": ["f"]}, 'tools[0]: must be a ToolDefinition, or {"type": "function"'),
        (
            {"messages": "Hi", "tools": [{"type": "web_search"}]},
            "what the provider runs goes into hosted_tools",
        ),
        (
            {"messages": "Hi", "tools": [{"type": "function", "function": {"name": "f", "schema": {}}}]},
            "tools[0].function.schema: is not a field that Crosswalk reads here",
        ),
        (
            {"messages": "Hi", "tool_choice": {"type": "web_search"}},
            "tool_choice: must be a ToolChoice, a NamedTool",
        ),
        (
            {"messages": "Hi", "tool_choice": {"type": "function"}},
            "tool_choice.function: is missing",
        ),
        ({"messages": "Hi", "response_format": "json"}, "response_format: must be a ResponseFormat, or"),
        (
            {"messages": "Hi", "response_format": {"type": "xml"}},
            "response_format: must be a ResponseFormat, or",
        ),
        (
            {"messages": "Hi", "response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
            "response_format.json_schema.schema: is missing",
        ),
    ],
    ids=str,
)
def test_what_has_no_place_is_refused_by_name_before_anything_is_sent(given: Any, said: str) -> None:
    service = SyncLLMService(Endpoint("vllm", model="m", base_url="http://127.0.0.1:9"))
    with pytest.raises(ResponseValidationError) as caught:
        service.complete(given)
    assert said in str(caught.value)


def test_a_services_methods_take_what_people_have(server: ReplayServer) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "{}"}, "finish_reason": "stop"}]}
    with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as service:
        server.add(Answer.of_json(answer), times=None)
        request = {"messages": [{"role": "user", "content": "Hi"}], "stream_options": {"include_usage": True}}
        assert service.complete("Hi").text == "{}"
        assert service.complete(request).text == "{}"
        assert service.complete_json({"role": "user", "content": "Hi"}, {"type": "object"}).value == {}
        assert ChatAgent(service).chat([{"role": "user", "content": "Hi"}]).text == "{}"
        asked = [one.json()["messages"] for one in server.requests]
    assert asked == [[{"role": "user", "content": "Hi"}]] * 4


def test_options_may_be_in_openais_form() -> None:
    flat = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    request = ChatRequest(
        "Hi",
        tools=[flat, ToolDefinition("g")],
        tool_choice={"type": "function", "name": "f"},
        response_format={"type": "json_object"},
    )
    assert request.tools == (ToolDefinition("f", parameters={"type": "object"}), ToolDefinition("g"))
    assert request.tool_choice == NamedTool("f")
    assert request.response_format == ResponseFormat()
    assert ChatRequest("Hi", response_format={"type": "text"}).response_format is None
    config = ChatConfig(tools=(flat,), response_format={"type": "json_object"})
    assert config.request([{"role": "user", "content": "Hi"}]).tools == (request.tools[0],)


def test_sessions_take_openais_messages() -> None:
    session = ChatSession([{"role": "user", "content": "Hi"}])
    session.extend("And?")
    assert session.turns == (ChatMessage.user("Hi"), ChatMessage.user("And?"))


def test_an_agent_runs_no_definition() -> None:
    with pytest.raises(ToolDefinitionError, match=r"not dict; .* goes into ChatConfig\(tools=…\)"):
        ToolRegistry([{"type": "function", "function": {"name": "f"}}])  # type: ignore[list-item]


def test_the_asynchronous_service_refuses_at_once() -> None:
    service = LLMService(Endpoint("vllm", model="m", base_url="http://127.0.0.1:9"))
    with pytest.raises(ResponseValidationError, match=r"messages\[0\].role"):
        service.stream([{"content": "Hi"}])
