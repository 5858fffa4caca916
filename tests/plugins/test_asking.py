"""The Responses API, Bedrock, Cohere and TGI: the bodies that they document, and exchanges over a socket.

Bodies are held against what the providers publish: OpenAI's and Anthropic's SDKs have the types of their OpenAPI descriptions,
botocore the service model.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from binascii import crc32
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import orjson
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    FilePart,
    FinishReason,
    ImagePart,
    MappingError,
    SegmentType,
    ServerError,
    TextPart,
    ToolCall,
    normalize,
)
from crosswalk.config import Settings
from crosswalk.service import (
    CacheMark,
    ChatRequest,
    Endpoint,
    HostedTool,
    HTTPRequest,
    LLMService,
    NamedTool,
    ResponseFormat,
    RetryPolicy,
    SyncLLMService,
    ToolDefinition,
    UnsupportedRequestError,
    build_http_request,
)
from crosswalk.testing import load_capture, load_captures
from crosswalk.testing.replay import Answer, ReplayServer

CAPTURES = Path(__file__).parents[1] / "captures"
PNG = "iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = ToolDefinition("weather", "The weather.", SCHEMA)
CALL = ToolCall("call_1", "weather", '{"city":"Paris"}')
CONVERSATION = [
    ChatMessage.system("Be brief."),
    ChatMessage.user([TextPart("What is this?"), ImagePart(data=PNG)]),
    ChatMessage.assistant("Let me see.", tool_calls=[CALL]),
    ChatMessage.tool_result("call_1", '{"celsius":20}'),
    ChatMessage.user("And now?"),
]
EVERYTHING = ChatRequest(
    CONVERSATION,
    model="m",
    temperature=0.5,
    top_p=0.9,
    top_k=40,
    max_tokens=100,
    stop=["END"],
    seed=7,
    tools=[TOOL],
    tool_choice="auto",
    parallel_tool_calls=False,
    response_format=ResponseFormat(SCHEMA, name="place"),
    reasoning_effort="low",
    stream=True,
)


def built(provider: str, request: ChatRequest = EVERYTHING, **changes: Any) -> HTTPRequest:
    made = build_http_request(attrs.evolve(request, **changes), provider, on_unsupported="drop")
    check_published(provider, made)
    return made


def asking(*turns: Any, **options: Any) -> ChatRequest:
    return ChatRequest(turns or "hi", model="m", **options)


def dropped(request: HTTPRequest) -> list[str]:
    return [one.field for one in request.adaptations if one.kind.value != "defaulted"]


def read(provider: str, case: str) -> ChatResponse:
    (file,) = (CAPTURES / provider).glob(f"{case}.response.*")
    return normalize(load_capture(file).body, provider)


@cache
def adapter(kind: Any) -> Any:
    """Compares values with a type of an SDK. It is made once, which takes a tenth of a second."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@cache
def converse_shape() -> Any:
    """The body of Bedrock's Converse in the service model that botocore has."""
    from botocore.session import Session

    return Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def check_published(provider: str, request: HTTPRequest) -> None:
    """Hold the body against what the provider publishes of it."""
    body = request.body
    if provider == "bedrock":
        from botocore.validate import ParamValidator

        shape = converse_shape()
        report = ParamValidator().validate({"modelId": "m", **body}, shape)
        assert not report.has_errors(), report.generate_report()
        for member in body:
            assert member in shape.members
    elif provider == "openai_responses":
        from openai.types.responses import response_create_params as params

        kind = (
            params.ResponseCreateParamsStreaming
            if body.get("stream")
            else params.ResponseCreateParamsNonStreaming
        )
        found: Any = adapter(kind).validate_python(body)
        list(found["input"])  # it is looked at as it is iterated over
        assert (
            body.keys()
            <= kind.__annotations__.keys() | params.ResponseCreateParamsBase.__annotations__.keys()
        )
    elif provider == "anthropic":
        from anthropic.types import message_create_params as messages

        found = adapter(messages.MessageCreateParamsNonStreaming).validate_python(body)
        for part in (found["messages"], *(message["content"] for message in body["messages"])):
            list(part)


# ------------------------------------------------------------------------------------ the Responses API


def test_responses() -> None:
    request = built("openai_responses")
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert dropped(request) == ["top_k", "stop", "seed"]
    assert request.body == {
        "model": "m",
        "input": [
            {"type": "message", "role": "system", "content": "Be brief."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                ],
            },
            {"type": "message", "role": "assistant", "content": "Let me see."},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": CALL.arguments},
            {"type": "function_call_output", "call_id": "call_1", "output": '{"celsius":20}'},
            {"type": "message", "role": "user", "content": "And now?"},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 100,
        "parallel_tool_calls": False,
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "The weather.",
                "parameters": SCHEMA,
                "strict": False,
            }
        ],
        "tool_choice": "auto",
        "text": {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}},
        "reasoning": {"effort": "low"},
        "stream": True,
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, {}),
        ({"tool_choice": NamedTool("f")}, {"tool_choice": {"type": "function", "name": "f"}}),
        ({"response_format": ResponseFormat()}, {"text": {"format": {"type": "json_object"}}}),
        ({"reasoning_effort": "none"}, {"reasoning": {"effort": "none"}}),
    ],
    ids=str,
)
def test_more_of_responses(options: dict[str, Any], said: dict[str, Any]) -> None:
    body = built("openai_responses", asking(**options)).body
    assert {name: value for name, value in body.items() if name not in ("model", "input")} == said


def test_parts_for_responses() -> None:
    parts = [
        ImagePart(url="https://x/y.png"),
        FilePart(data="JVBERi0x", name="a.pdf"),
        FilePart(url="https://x/b.pdf"),
    ]
    call = ChatMessage.assistant(tool_calls=[ToolCall("c", "f", "{}")])
    result = ChatMessage.tool_result("c", [TextPart("see"), ImagePart(data=PNG)])
    user, _, output = built("openai_responses", asking(ChatMessage.user(parts), call, result)).body["input"]
    assert user["content"] == [
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0x", "filename": "a.pdf"},
        {"type": "input_file", "file_url": "https://x/b.pdf"},
    ]
    assert output["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
    ]


def own(case: str) -> list[dict[str, Any]]:
    """The items of a recorded body."""
    items: list[dict[str, Any]] = orjson.loads(
        (CAPTURES / "openai_responses" / f"{case}.response.json").read_bytes()
    )["output"]
    return items


def shown(value: Any) -> Any:
    """*value* without what says nothing."""
    if isinstance(value, dict):
        said = {name: shown(inner) for name, inner in value.items()}
        return {name: inner for name, inner in said.items() if inner not in (None, [])}
    return [shown(item) for item in value] if isinstance(value, list) else value


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["", "_stream"], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "case", ["openai_reasoning_calls", "openai_patch", "openai_refusal", "openai_server_tools"]
)
def test_items_go_back_as_they_came(case: str, form: str) -> None:
    """Reasoning with its payload, calls of all kinds with their ids, what the server's own tools did."""
    answer = read("openai_responses", case + form)
    body = built("openai_responses", asking(ChatMessage.user("hi"), answer, ChatMessage.user("go on"))).body
    results = len(answer.tool_calls)  # that they were not run
    assert shown(body["input"][1 : -1 - results]) == shown(own(case))


def test_each_call_has_a_result_of_its_kind() -> None:
    kinds = [
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "20", {"output": "20"}),
        ({"type": "custom_tool_call", "name": "sql", "input": "SELECT 1"}, "1", {"output": "1"}),
        (
            {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
            "done",
            {"output": "done", "status": "completed"},
        ),
        (
            {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
            '{"status":"failed","output":"no such file"}',
            {"output": "no such file", "status": "failed"},
        ),
        (
            {"type": "shell_call", "action": {"commands": ["ls"]}},
            '{"output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]}',
            {"output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        ),
        (
            {"type": "shell_call", "action": {"commands": ["ls"]}},
            "a",
            {"output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
        ),
        (
            {"type": "computer_call", "action": {"type": "screenshot"}, "pending_safety_checks": []},
            [ImagePart(data=PNG)],
            {"output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}},
        ),
    ]  # fmt: skip
    items = [
        {"id": f"i_{number}", "call_id": f"call_{number}", "status": "completed", **item}
        for number, (item, _, _) in enumerate(kinds)
    ]
    answer = answer_with(*items)
    assert [call.id for call in answer.tool_calls] == [item["call_id"] for item in items]
    results = [ChatMessage.tool_result(f"call_{n}", given) for n, (_, given, _) in enumerate(kinds)]  # type: ignore[arg-type]
    body = built("openai_responses", asking(ChatMessage.user("hi"), answer, *results)).body
    assert body["input"][1 + len(items) :] == [
        {"type": f"{item['type']}_output", "call_id": f"call_{number}", **said}
        for number, (item, _, said) in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    ("item", "goes_back"),
    [
        ({"id": "i", "type": None}, False),
        ({"id": "fc", "type": "function_call", "call_id": "c", "arguments": "{}"}, False),
        ({"id": "s", "type": "custom_tool_call", "call_id": {"a": 1}, "name": "theirs", "input": "x"}, True),
    ],
    ids=["of no type", "a call without a name", "of a strange id"],
)
def test_an_item_that_cannot_go_back_is_left_out(item: dict[str, Any], goes_back: bool) -> None:
    """Whatever a server has sent, the next request can be built."""
    payload = {
        "id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item, TEXT],
        "tools": [{"type": "custom", "name": "mine"}],
    }  # fmt: skip
    try:
        answer = normalize(payload, "openai_responses", unknown="keep")
    except MappingError as error:
        assert error.partial is not None
        answer = error.partial
    request = asking(ChatMessage.user("hi"), answer, ChatMessage.user("go on"))
    said = build_http_request(request, "openai_responses").body["input"][1:-1]
    assert [one["type"] for one in said] == [*([item["type"]] if goes_back else []), "message"]


def answer_with(*items: dict[str, Any], **more: Any) -> ChatResponse:
    return normalize(
        {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "error": None,
         "incomplete_details": None, "output": list(items), **more},
        "openai_responses",
    )  # fmt: skip


APPROVAL = {
    "id": "mcpr_1",
    "type": "mcp_approval_request",
    "server_label": "s",
    "name": "f",
    "arguments": "{}",
}


def test_an_approval_is_answered() -> None:
    turns = [
        ChatMessage.user("hi"),
        answer_with(APPROVAL),
        ChatMessage.tool_result("mcpr_1", '{"approve":true}'),
    ]
    *_, approval = built("openai_responses", asking(*turns)).body["input"]
    assert approval == {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}


NOT_RUN = "Error: not run: the conversation went on"
SHELL = {"id": "i", "type": "shell_call", "call_id": "mcpr_1", "action": {"commands": ["ls"]}}
PATCH = {
    "id": "i",
    "type": "apply_patch_call",
    "status": "completed",
    "call_id": "mcpr_1",
    "operation": {"type": "delete_file", "path": "a"},
}


@pytest.mark.parametrize(
    ("item", "result"),
    [
        (APPROVAL, {"approve": False, "reason": NOT_RUN}),
        (SHELL, {"output": [{"stderr": NOT_RUN, "stdout": "", "outcome": {"type": "exit", "exit_code": 1}}]}),
        (PATCH, {"output": NOT_RUN, "status": "failed"}),
    ],
)
def test_the_user_speaks_before_a_call_of_a_kind_was_answered(
    item: dict[str, Any], result: dict[str, Any]
) -> None:
    turns = [ChatMessage.user("hi"), answer_with(item), ChatMessage.user("Never mind.")]
    *_, sent, _ = built("openai_responses", asking(*turns)).body["input"]
    ids = {sent.pop("approval_request_id", None), sent.pop("call_id", None)} - {None}
    assert (ids, {key: sent[key] for key in sent if key != "type"}) == ({"mcpr_1"}, result)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (APPROVAL, "an approval is answered by"),
        (
            {"id": "i", "call_id": "mcpr_1", "type": "computer_call", "action": {"type": "wait"}},
            "by an image",
        ),
    ],
)
def test_an_answer_of_another_kind_is_refused(item: dict[str, Any], why: str) -> None:
    turns = [ChatMessage.user("hi"), answer_with(item), ChatMessage.tool_result("mcpr_1", "yes")]
    with pytest.raises(UnsupportedRequestError, match=why):
        built("openai_responses", asking(*turns))


def test_sound_is_not_for_responses() -> None:
    with pytest.raises(UnsupportedRequestError, match="a sound cannot be sent"):
        built(
            "openai_responses", asking(ChatMessage.user([AudioPart(data="UklGRg==", media_type="audio/wav")]))
        )


REASONING = {"id": "rs_1", "type": "reasoning", "summary": []}
SEALED = {**REASONING, "encrypted_content": "gAAA"}
TEXT = {
    "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("items", "more", "options", "types"),
    [
        ([REASONING, TEXT], {}, {}, ["reasoning", "message"]),
        ([SEALED, TEXT], {}, {"store": False}, ["reasoning", "message"]),
        ([REASONING, TEXT], {}, {"store": False}, ["message"]),
        ([REASONING, TEXT], {"store": False}, {}, ["message"]),
        ([SEALED], {}, {}, ["message"]),
        ([TEXT, SEALED], {}, {}, ["message"]),
    ],
    ids=["stored", "sealed", "unknown to the server", "never stored", "cut", "cut behind a text"],
)
def test_reasoning_goes_back_where_the_server_can_read_it(
    items: list[Any], more: dict[str, Any], options: dict[str, Any], types: list[str]
) -> None:
    """Alone it is refused, and so is the id of one that was not stored."""
    turns = [ChatMessage.user("hi"), answer_with(*items, **more), ChatMessage.user("go on")]
    request = asking(*turns, provider_options={"openai_responses": options})
    assert [item["type"] for item in built("openai_responses", request).body["input"][1:-1]] == types


def test_what_is_not_stored_is_asked_for_encrypted() -> None:
    def included(**options: Any) -> Any:
        request = asking(reasoning_effort="low", provider_options={"openai_responses": options})
        return built("openai_responses", request).body.get("include")

    assert included() is None
    assert included(store=False) == ["reasoning.encrypted_content"]
    assert included(store=False, include=["reasoning.encrypted_content"]) == ["reasoning.encrypted_content"]


def test_what_the_server_has_is_not_sent_again() -> None:
    answer = answer_with({"id": "fc", "call_id": "c", "type": "custom_tool_call", "name": "f", "input": "x"})
    turns = [ChatMessage.system("s"), ChatMessage.user("hi"), answer, ChatMessage.tool_result("c", "1")]
    options = {"openai_responses": {"previous_response_id": "resp_1"}}
    body = built("openai_responses", asking(*turns, provider_options=options)).body
    assert body["previous_response_id"] == "resp_1"
    assert body["input"] == [{"type": "custom_tool_call_output", "call_id": "c", "output": "1"}]


def test_what_runs_in_the_background_is_streamed() -> None:
    options = {"openai_responses": {"background": True}}
    assert built("openai_responses", asking(provider_options=options)).body["stream"] is True


# ------------------------------------------------------------------------------------ Bedrock


def test_bedrock() -> None:
    request = built("bedrock")
    assert request.path == "/model/m/converse-stream"
    assert dropped(request) == ["top_k", "seed", "parallel_tool_calls"]
    text = orjson.dumps(SCHEMA).decode()
    assert request.body == {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "What is this?"},
                    {"image": {"format": "png", "source": {"bytes": PNG}}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"text": "Let me see."},
                    {"toolUse": {"toolUseId": "call_1", "name": "weather", "input": {"city": "Paris"}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "call_1", "content": [{"text": '{"celsius":20}'}]}},
                    {"text": "And now?"},
                ],
            },
        ],
        "system": [{"text": "Be brief."}],
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "weather",
                        "description": "The weather.",
                        "inputSchema": {"json": SCHEMA},
                    }
                }
            ],
            "toolChoice": {"auto": {}},
        },
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "place", "schema": text}},
            },
            "effort": "low",
        },
    }


@pytest.mark.parametrize(
    ("options", "choice", "left_out"),
    [
        ({"tool_choice": "required"}, {"any": {}}, []),
        ({"tool_choice": NamedTool("weather")}, {"tool": {"name": "weather"}}, []),
        ({"tool_choice": "none"}, None, ["tool_choice"]),
        ({"reasoning_effort": "minimal"}, None, ["reasoning_effort"]),
        ({"response_format": ResponseFormat()}, None, ["response_format"]),
    ],
    ids=str,
)
def test_more_of_bedrock(options: dict[str, Any], choice: Any, left_out: list[str]) -> None:
    strict = attrs.evolve(TOOL, strict=True)
    request = built("bedrock", asking(tools=[strict], **options))
    assert request.body["toolConfig"].get("toolChoice") == choice
    assert request.body["toolConfig"]["tools"][0]["toolSpec"]["strict"] is True
    assert dropped(request) == left_out


def test_a_conversation_with_calls_declares_their_tools() -> None:
    """One without is refused, also where nothing more is to be called."""
    body = built("bedrock", asking(*CONVERSATION)).body
    assert body["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]
    }


def test_a_model_may_be_an_arn() -> None:
    arn = "arn:aws:bedrock:us-east-1:1:inference-profile/eu.m-v1:0"
    path = build_http_request(attrs.evolve(asking(), model=arn), "bedrock").path
    assert path == "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Feu.m-v1%3A0/converse"


def test_parts_for_bedrock() -> None:
    parts = [
        TextPart("see"),
        ImagePart(url="s3://b/x.webp", media_type="image/webp"),
        FilePart(data="JVBERi0x", name="Q3: the   report_v2.pdf"),
        FilePart(data="eA==", media_type="text/markdown"),
        AudioPart(data="UklGRg==", media_type="audio/x-wav"),
    ]
    (message,) = built("bedrock", asking(ChatMessage.user(parts))).body["messages"]
    assert message["content"] == [
        {"text": "see"},
        {"image": {"format": "webp", "source": {"s3Location": {"uri": "s3://b/x.webp"}}}},
        {"document": {"format": "pdf", "name": "Q3 the report v2 pdf", "source": {"bytes": "JVBERi0x"}}},
        {"document": {"format": "md", "name": "file", "source": {"bytes": "eA=="}}},
        {"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}},
    ]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (ImagePart(url="https://x/y.png"), "must be given as data, or lie in S3"),
        (FilePart(data="UEs=", media_type="application/zip"), "application/zip cannot be sent"),
    ],
)
def test_what_bedrock_cannot_take(part: Any, why: str) -> None:
    with pytest.raises(UnsupportedRequestError, match=why):
        built("bedrock", asking(ChatMessage.user([part])))


@pytest.mark.parametrize("form", ["", "_stream"], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", ["thinking_tools", "server_tools"])
def test_bedrock_gets_its_blocks_back(case: str, form: str) -> None:
    whole = orjson.loads((CAPTURES / f"bedrock/{case}.response.json").read_bytes())
    answer = read("bedrock", case + form)
    body = built("bedrock", asking(ChatMessage.user("hi"), answer, ChatMessage.user("go on"))).body
    assert body["messages"][1] == {"role": "assistant", "content": whole["output"]["message"]["content"]}


def test_a_tools_result_without_a_type_has_none_afterwards() -> None:
    result = {"toolUseId": "t", "content": [{"text": "1"}]}
    use = {"toolUseId": "t", "name": "f", "input": {}, "type": "server_tool_use"}
    content = [{"text": "Hm. "}, {"toolUse": use}, {"toolResult": result}]
    payload = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    answer = normalize(payload, "bedrock")
    assert built("bedrock", asking(ChatMessage.user("hi"), answer)).body["messages"][1]["content"] == content


# ------------------------------------------------------------------------------------ Cohere


def test_cohere() -> None:
    request = built("cohere", response_format=None)
    assert request.path == "/v2/chat"
    assert dropped(request) == ["parallel_tool_calls", "reasoning_effort"]
    assert request.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                ],
            },
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": CALL.arguments}}
                ],
            },
            {"role": "tool", "content": '{"celsius":20}', "tool_call_id": "call_1"},
            {"role": "user", "content": "And now?"},
        ],
        "stream": True,
        "max_tokens": 100,
        "temperature": 0.5,
        "p": 0.9,
        "k": 40,
        "stop_sequences": ["END"],
        "seed": 7,
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA},
            }
        ],
        "thinking": {"type": "enabled"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said", "left_out"),
    [
        ({}, {}, []),
        ({"tool_choice": "none"}, {"tool_choice": "NONE"}, []),
        ({"tool_choice": "required"}, {"tool_choice": "REQUIRED"}, []),
        ({"tool_choice": NamedTool("f")}, {}, ["tool_choice"]),
        ({"response_format": ResponseFormat()}, {"response_format": {"type": "json_object"}}, []),
        (
            {"response_format": ResponseFormat(SCHEMA)},
            {"response_format": {"type": "json_object", "json_schema": SCHEMA}},
            [],
        ),
        ({"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, []),
        (
            {"tools": [ToolDefinition("f", None, SCHEMA, strict=True)]},
            {
                "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
                "strict_tools": True,
            },
            [],
        ),
    ],
    ids=str,
)
def test_more_of_cohere(options: dict[str, Any], said: dict[str, Any], left_out: list[str]) -> None:
    request = built("cohere", asking(**options))
    rest = {
        name: value for name, value in request.body.items() if name not in ("model", "messages", "stream")
    }
    assert rest == said
    assert request.body["stream"] is False
    assert dropped(request) == left_out


@pytest.mark.parametrize("form", ["", "_stream"], ids=["whole", "streamed"])
def test_cohere_gets_its_plan_and_its_thoughts_back(form: str) -> None:
    def back(case: str) -> Any:
        turns = [ChatMessage.user("hi"), read("cohere", case + form), ChatMessage.user("go on")]
        return built("cohere", asking(*turns)).body["messages"][1]

    planned, thought = back("tools"), back("thinking")
    assert planned["tool_plan"] == "I will look up the stock."
    assert "content" not in planned
    assert thought["content"] == [
        {"type": "thinking", "thinking": "What is two and two?"},
        {"type": "text", "text": "It is"},
    ]


def test_thoughts_alone_and_a_call_go_back() -> None:
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hm."}],
        "tool_calls": [call],
    }
    answer = normalize({"id": "1", "message": message, "finish_reason": "TOOL_CALL"}, "cohere")
    turns = [ChatMessage.user("hi"), answer, ChatMessage.user("go on")]
    said = built("cohere", asking(*turns)).body["messages"][1]
    assert said == message


def test_what_cohere_cannot_take() -> None:
    with pytest.raises(UnsupportedRequestError, match="a file cannot be sent"):
        built("cohere", asking(ChatMessage.user([FilePart(data="JVBERi0x")])))


# ------------------------------------------------------------------------------------ TGI


def test_tgi() -> None:
    request = built("tgi", top_k=None, tools=(), tool_choice=None)
    assert request.path == "/v1/chat/completions"
    assert dropped(request) == ["parallel_tool_calls", "reasoning_effort"]
    assert request.body["response_format"] == {"type": "json", "value": SCHEMA}
    assert request.body["stream_options"] == {"include_usage": True}
    assert dropped(built("tgi", asking(response_format=ResponseFormat(), top_k=1))) == [
        "response_format",
        "top_k",
    ]


# ------------------------------------------------------------------------------------ hosted tools, and marks for the cache

LIMITED = HostedTool("web_search", allowed_domains=["a.org"], max_uses=3)
BLOCKED = HostedTool("web_fetch", blocked_domains=["b.org"])
RUN = HostedTool("code_execution", max_uses=2)
LIMIT = "hosted_tools.{}".format


@pytest.mark.parametrize(
    ("provider", "tool", "said", "left_out"),
    [
        (
            "anthropic",
            LIMITED,
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "allowed_domains": ["a.org"],
                "max_uses": 3,
            },
            [],
        ),
        (
            "anthropic",
            BLOCKED,
            {"type": "web_fetch_20250910", "name": "web_fetch", "blocked_domains": ["b.org"]},
            [],
        ),
        ("anthropic", RUN, {"type": "code_execution_20250825", "name": "code_execution"}, ["max_uses"]),
        (
            "openai_responses",
            LIMITED,
            {"type": "web_search", "filters": {"allowed_domains": ["a.org"]}},
            ["max_uses"],
        ),
        (
            "openai_responses",
            RUN,
            {"type": "code_interpreter", "container": {"type": "auto"}},
            ["max_uses"],
        ),
        ("gemini", LIMITED, {"googleSearch": {}}, ["allowed_domains", "max_uses"]),
        ("gemini", BLOCKED, {"urlContext": {}}, ["blocked_domains"]),
        ("gemini", RUN, {"codeExecution": {}}, ["max_uses"]),
        ("groq", RUN, {"type": "code_interpreter"}, ["max_uses"]),
    ],
)
def test_a_hosted_tool(provider: str, tool: HostedTool, said: dict[str, Any], left_out: list[str]) -> None:
    request = built(provider, asking(hosted_tools=[tool]))
    assert request.body["tools"] == [said]
    assert dropped(request) == [LIMIT(name) for name in left_out]


TURNS = [
    ChatMessage.system("Be brief."),
    ChatMessage.user("one"),
    ChatMessage.assistant(tool_calls=[CALL]),
    ChatMessage.tool_result("call_1", "20"),
]
MARKS = ["tools", CacheMark("system", "1h"), 1, -1]


def test_marks_for_anthropics_cache() -> None:
    body = built(
        "anthropic", asking(*TURNS, tools=[TOOL], hosted_tools=["web_search"], cache_marks=MARKS)
    ).body
    mark = {"cache_control": {"type": "ephemeral"}}
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, {"type": "ephemeral"}]
    assert body["system"] == [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    ]
    assert [message["content"][-1].get("cache_control") for message in body["messages"]] == [
        mark["cache_control"],
        None,
        mark["cache_control"],
    ]


def test_reasoning_has_no_mark() -> None:
    """The API refuses it. The block before it is as good."""
    content = [
        {"type": "text", "text": "Hm."},
        {"type": "thinking", "thinking": "Well.", "signature": "s"},
    ]
    payload = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": content,
               "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    answer = normalize(payload, "anthropic")
    (_, said) = built("anthropic", asking(ChatMessage.user("hi"), answer, cache_marks=[-1])).body["messages"]
    assert [block.get("cache_control") for block in said["content"]] == [{"type": "ephemeral"}, None]


def test_marks_for_bedrocks_cache() -> None:
    body = built("bedrock", asking(*TURNS, tools=[TOOL], cache_marks=MARKS)).body
    point = {"cachePoint": {"type": "default"}}
    assert body["toolConfig"]["tools"][1:] == [point]
    assert body["system"][1:] == [{"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert [message["content"][1:] for message in body["messages"]] == [[point], [], [point]]


def test_marks_for_whom_openrouter_asks() -> None:
    messages = built("openrouter", asking(*TURNS, cache_marks=[*MARKS, 2])).body["messages"]
    mark = {"cache_control": {"type": "ephemeral"}}
    assert [message["content"] for message in messages] == [
        [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        [{"type": "text", "text": "one", **mark}],
        None,
        [{"type": "text", "text": "20", **mark}],
    ]


def test_a_mark_stays_behind_what_a_tool_shows() -> None:
    turns = [*TURNS[:3], ChatMessage.tool_result("call_1", [ImagePart(data=PNG)]), ChatMessage.user("well?")]
    *_, last = built("openrouter", asking(*turns, cache_marks=[-1])).body["messages"]
    assert [part.get("cache_control") for part in last["content"]] == [None, None, {"type": "ephemeral"}]


@pytest.mark.sweep
@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "openrouter", "openai", "openai_responses"])
def test_a_mark_behind_the_system_message_is_one_of_the_system(provider: str) -> None:
    first, named = (built(provider, asking(*TURNS, cache_marks=[mark])).body for mark in (0, "system"))
    assert first == named
    assert first != built(provider, asking(*TURNS)).body


@pytest.mark.sweep
@pytest.mark.parametrize("provider", ["vllm", "gemini", "cohere"])
def test_who_caches_by_himself_is_told_nothing(provider: str) -> None:
    assert built(provider, asking(*TURNS, cache_marks=MARKS)).body == built(provider, asking(*TURNS)).body


# ------------------------------------------------------------------------------------ over a socket

SETTINGS = Settings()
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
    "AWS_SESSION_TOKEN": "the+token/=",
}
BEDROCK_VARIABLES = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment with credentials of AWS, and none of the user's."""
    for name in (*BEDROCK_VARIABLES, "CROSSWALK_BEDROCK_API_KEY", "CROSSWALK_BEDROCK_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def ask(server: ReplayServer, provider: str, *, stream: bool, **options: Any) -> ChatResponse:
    endpoint = Endpoint(provider, model=options.pop("model", "m-1"), base_url=server.url, **options)
    retry = RetryPolicy(attempts=1)
    with SyncLLMService(
        endpoint, settings=SETTINGS, retry=retry, client_options={"verify": False}
    ) as service:
        if not stream:
            return service.complete(ChatRequest("hi"))
        with service.stream(ChatRequest("hi")) as events:
            for _ in events:
                pass
        return events.response


EXCHANGES = [
    (
        "openai_responses",
        "openai_reasoning_calls",
        FinishReason.TOOL_CALLS,
    ),
    ("openai_responses", "openai_server_tools", FinishReason.STOP),
    ("cohere", "thinking", FinishReason.LENGTH),
    ("cohere", "tools", FinishReason.TOOL_CALLS),
    ("tgi", "chat", FinishReason.STOP),
    ("bedrock", "text", FinishReason.STOP),
]


@pytest.mark.sweep
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("provider", "case", "finish"), EXCHANGES)
def test_an_exchange(provider: str, case: str, finish: FinishReason, stream: bool) -> None:
    pair = [one for one in load_captures(CAPTURES / provider) if one.pair == case]
    with ReplayServer(pair) as server:
        answer = ask(server, provider, stream=stream, api_key="key-1")
        (request,) = server.requests
    expected = read(provider, case + ("_stream" if stream else ""))
    for name in ("message", "segments", "usage", "raw_finish_reason", "logprobs"):
        assert getattr(answer, name) == getattr(expected, name), name
    assert answer.finish_reason is finish
    assert request.headers["authorization"] == "Bearer key-1"
    assert answer.attempts[-1].outcome == "success"


def test_seed_003s_sample_shows_all_that_the_responses_api_says() -> None:
    """Text, calls and reasoning as segments, raw events as JSON, who answered, events of a closed set of types."""

    async def main() -> Any:
        pair = load_captures(CAPTURES / "openai_responses")
        with ReplayServer([one for one in pair if one.case == "openai_reasoning_calls_stream"]) as server:
            endpoint = Endpoint("openai_responses", model="m", base_url=server.url, api_key="k")
            async with LLMService(endpoint, settings=SETTINGS, client_options={"verify": False}) as service:
                events = [event async for event in service.stream(ChatRequest("hi"), raw_events=True)]
        return events

    events = asyncio.run(main())
    types = [event.event_type.value for event in events]
    assert types[-1] == "response.completed"
    assert {
        "response.output_text.delta",
        "response.reasoning.delta",
        "response.function_call_arguments.delta",
    } <= {*types}
    response = events[-1].response
    kinds = [segment.type for segment in response.segments]
    assert kinds == [
        SegmentType.REASONING, SegmentType.REASONING, SegmentType.TEXT, SegmentType.TOOL_CALL, SegmentType.TOOL_CALL,
    ]  # fmt: skip
    assert response.raw_events[0]["type"] == "response.created"
    assert [(one.provider_name, one.outcome) for one in response.attempts] == [
        ("openai_responses", "success")
    ]


def frames(*events: tuple[str, dict[str, Any]]) -> bytes:
    """*events* in the binary framing of AWS."""
    return b"".join(map(frame, events))


def frame(event: tuple[str, dict[str, Any]]) -> bytes:
    said = {":message-type": "event", ":event-type": event[0], ":content-type": "application/json"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in said.items()
    )
    payload = orjson.dumps(event[1])
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return message + struct.pack(">I", crc32(message))


EVENTS = (
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hel"}, "p": "ab"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lo."}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "end_turn"}),
    (
        "metadata",
        {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}, "metrics": {"latencyMs": 5}},
    ),
)


def test_a_signed_exchange_in_the_binary_framing(aws: pytest.MonkeyPatch) -> None:
    """The signature is the one that AWS works out of what it received."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    binary = {"Content-Type": "application/vnd.amazon.eventstream"}
    arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.m-v1:0"
    with ReplayServer() as server:
        server.add(Answer((frames(*EVENTS[:3]), frames(*EVENTS[3:])), 200, binary))
        answer = ask(server, "bedrock", stream=True, model=arn)
        (request,) = server.requests
        url = server.url + request.target
    assert answer.text == "Hello."
    assert answer.usage.total_tokens == 3
    assert answer.finish_reason is FinishReason.STOP
    credentials = Credentials(*KEYS.values())
    theirs = AWSRequest("POST", url, {"Content-Type": request.headers["content-type"]}, request.body)
    auth = SigV4Auth(credentials, "bedrock", "eu-west-1")
    theirs.context["timestamp"] = request.headers["x-amz-date"]
    theirs.headers["X-Amz-Date"] = request.headers["x-amz-date"]
    theirs.headers["X-Amz-Security-Token"] = KEYS["AWS_SESSION_TOKEN"]
    signature = auth.signature(auth.string_to_sign(theirs, auth.canonical_request(theirs)), theirs)
    assert request.headers["authorization"].endswith(f"Signature={signature}")
    assert request.headers["x-amz-security-token"] == KEYS["AWS_SESSION_TOKEN"]


def test_nothing_of_what_signs_is_shown(aws: pytest.MonkeyPatch) -> None:
    """AWS repeats the whole canonical request, with the token in it, where a signature is wrong."""

    def refuse(request: Any) -> bool:
        said = f"expected: x-amz-security-token:{request.headers['x-amz-security-token']} {request.headers['authorization']}"
        server.add(Answer.of_json({"message": said}, status=500))
        return False

    with ReplayServer() as server:
        server.add(Answer.of_json({}), when=refuse)
        with pytest.raises(ServerError, match="expected: x-amz-security-token:<secret>") as raised:
            ask(server, "bedrock", stream=False)
    said = f"{raised.value} {raised.value.info} {raised.value.response}"
    assert not [value for value in KEYS.values() if value in said]


def test_bedrock_is_where_the_environment_says(aws: pytest.MonkeyPatch) -> None:
    def host() -> str:
        service = LLMService(Endpoint("bedrock", model="m"), settings=SETTINGS)
        return str(urlsplit(service._setup.routes[0].base_url).hostname)

    assert host() == "bedrock-runtime.eu-west-1.amazonaws.com"
    aws.setenv("AWS_REGION", "cn-north-1")
    assert host() == "bedrock-runtime.cn-north-1.amazonaws.com.cn"
    aws.setenv(
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://vpce.bedrock-runtime.us-west-2.vpce.amazonaws.com"
    )
    assert host() == "vpce.bedrock-runtime.us-west-2.vpce.amazonaws.com"


def test_the_region_of_an_address_is_the_one_that_is_signed_for(aws: pytest.MonkeyPatch) -> None:
    from crosswalk_bedrock.eventstream import signer

    url = "https://bedrock-runtime.us-west-2.amazonaws.com/model/m/converse"
    signed = signer(url)("POST", url, {"Content-Type": "application/json", "User-Agent": "x"}, b"{}")
    assert "/us-west-2/bedrock/aws4_request" in signed.headers["Authorization"]
    assert (
        "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token" in signed.headers["Authorization"]
    )
    assert "AKID" not in repr(signed)


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        (["AWS_DEFAULT_REGION"], "no region; give base_url="),
        (["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], "botocore finds no credentials"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_asked(
    aws: pytest.MonkeyPatch, missing: list[str], why: str
) -> None:
    for name in missing:
        aws.delenv(name)
    with pytest.raises(ConfigurationError, match=why):
        LLMService(Endpoint("bedrock", model="m"), settings=SETTINGS)


def test_an_address_without_a_region_needs_one(aws: pytest.MonkeyPatch) -> None:
    aws.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ConfigurationError, match="finds no region"):
        LLMService(Endpoint("bedrock", model="m", base_url="http://127.0.0.1:9"), settings=SETTINGS)


def test_without_botocore_it_says_what_to_install(aws: pytest.MonkeyPatch) -> None:
    aws.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'crosswalk-llm\[bedrock\]'"):
        LLMService(Endpoint("bedrock", model="m"), settings=SETTINGS)


def test_credentials_that_cannot_be_renewed_send_nothing(aws: pytest.MonkeyPatch) -> None:
    from botocore.credentials import Credentials
    from botocore.exceptions import CredentialRetrievalError

    def fail(_: object) -> Iterator[None]:
        raise CredentialRetrievalError(provider="sso", error_msg="the secret reason")

    aws.setattr(Credentials, "get_frozen_credentials", fail)
    with ReplayServer() as server:
        with pytest.raises(ConfigurationError, match="not signed .CredentialRetrievalError.") as raised:
            ask(server, "bedrock", stream=False)
        assert server.requests == ()
    assert "secret" not in str(raised.value)
