"""What a client says of each kind arrives in the words of the other formats. The rows of their tables say where."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from crosswalk import ChatMessage, ResponseValidationError, ToolCall, normalize
from crosswalk.convert import convert
from crosswalk.formats.tables import TABLES
from crosswalk.service import (
    AdaptationKind,
    CacheMark,
    ChatRequest,
    HostedTool,
    HTTPRequest,
    ResponseFormat,
    ToolDefinition,
    UnsupportedRequestError,
    build_http_request,
    client_tool,
    option_paths,
    part_types,
    read_request,
)
from crosswalk.types.json import dump_json, load_json
from crosswalk.wire.options import PLACES, PlaceKind

HI: dict[str, Any] = {"role": "user", "content": "Hi"}
MARK = {"cache_control": {"type": "ephemeral"}}
POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
PLACE = {"city": "Ulm", "country": "DE"}
LEAST: dict[str, dict[str, Any]] = {
    "openai-chat": {"model": "m", "messages": [HI]},
    "openai-responses": {"model": "m", "input": "Hi"},
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [HI]},
    "gemini": {"contents": [{"parts": [{"text": "Hi"}]}]},
    "ollama": {"model": "m", "messages": [HI]},
}


def built(form: str, said: dict[str, Any], to: str) -> HTTPRequest:
    incoming = read_request({**LEAST[form], **said}, form, model="m" if form == "gemini" else None)
    return build_http_request(incoming.request, to, on_unsupported="drop")


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def parts(*texts: dict[str, Any], kind: str = "text") -> list[dict[str, Any]]:
    return [{"type": kind, "text": "ab"[number], **more} for number, more in enumerate(texts)]


ARRIVES: list[tuple[str, dict[str, Any], str, str, Any]] = [
    # cache marks
    ("openai-chat", {"messages": [{"role": "user", "content": parts(POINT, {})}]}, "anthropic", "messages.0.content", parts(MARK, {})),
    ("openai-chat", {"messages": [{"role": "user", "content": parts(POINT, {})}]}, "bedrock", "messages.0.content.1", {"cachePoint": {"type": "default"}}),
    ("anthropic", {"messages": [{"role": "user", "content": parts(MARK, {})}]}, "openai", "messages.0.content", parts(POINT, {})),
    ("anthropic", {"messages": [{"role": "user", "content": parts(MARK, {})}]}, "openai_responses", "input.0.content", parts(POINT, {}, kind="input_text")),
    ("anthropic", {"system": parts(MARK, {})}, "anthropic", "system", parts(MARK, {})),
    ("anthropic", {"system": parts(MARK, {})}, "bedrock", "system", [{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]),
    ("openai-responses", {"input": [{"role": "user", "content": parts({}, POINT, kind="input_text")}]}, "openai", "messages.0.content", parts({}, POINT)),
    ("openai-chat", {"messages": [{"role": "system", "content": parts(POINT, {})}, HI]}, "anthropic", "system", parts(MARK, {})),
    # searches, with the place of the user
    ("openai-chat", {"web_search_options": {"user_location": {"type": "approximate", "approximate": PLACE}}}, "anthropic", "tools.0.user_location", {"type": "approximate", **PLACE}),
    ("anthropic", {"tools": [{"type": "web_search_20260318", "name": "web_search", "user_location": {"type": "approximate", **PLACE}}]}, "openai", "web_search_options.user_location.approximate", PLACE),
    ("openai-responses", {"tools": [{"type": "web_search", "search_context_size": "low"}]}, "openai", "web_search_options", {"search_context_size": "low"}),
    # MCP servers
    ("openai-responses", {"tools": [{"type": "mcp", "server_label": "s", "server_url": "https://x.example", "authorization": "k", "allowed_tools": ["f"]}]}, "anthropic", "mcp_servers.0", {"type": "url", "name": "s", "url": "https://x.example", "authorization_token": "k", "tool_configuration": {"allowed_tools": ["f"]}}),
    ("openai-responses", {"tools": [{"type": "mcp", "server_label": "s", "server_url": "https://x.example", "allowed_tools": {"tool_names": ["f"]}}]}, "anthropic", "mcp_servers.0.tool_configuration.allowed_tools", ["f"]),
    ("anthropic", {"mcp_servers": [{"type": "url", "name": "s", "url": "https://x.example", "authorization_token": "k"}]}, "gemini", "tools.0.mcpServers.0.streamableHttpTransport", {"url": "https://x.example", "headers": {"Authorization": "Bearer k"}}),
    ("gemini", {"tools": [{"mcp_servers": [{"name": "s", "streamable_http_transport": {"url": "https://x.example"}}]}]}, "openai_responses", "tools.0", {"type": "mcp", "server_label": "s", "server_url": "https://x.example", "require_approval": "never"}),
    # tools
    ("openai-responses", {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "defer_loading": True}]}, "anthropic", "tools.0.defer_loading", True),
    ("anthropic", {"tools": [{"name": "f", "input_schema": SCHEMA, "defer_loading": True}]}, "openai_responses", "tools.0.defer_loading", True),
    ("gemini", {"tools": [{"functionDeclarations": [{"name": "f", "response_json_schema": SCHEMA}]}]}, "openai_responses", "tools.0.output_schema", SCHEMA),
    ("openai-responses", {"tools": [{"type": "namespace", "name": "n", "description": "About the sea.", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]}]}, "openai", "tools.0.function.description", "n: About the sea."),
    ("openai-responses", {"tools": [{"type": "namespace", "name": "n", "description": "About the sea.", "tools": [{"type": "custom", "name": "f", "description": "Looks."}]}]}, "anthropic", "tools.0.description", "n: About the sea.\n\nLooks."),
    ("openai-responses", {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "shell"}, {"type": "custom", "name": "f"}]}]}, "anthropic", "tools.1.description", "n"),
    ("openai-responses", {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]}]}, "gemini", "tools.0.functionDeclarations.0.description", "n"),
    ("anthropic", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "openai", "tools.0.function.name", "bash"),
    ("anthropic", {"tools": [{"type": "text_editor_20250728", "name": "edit"}]}, "gemini", "tools.0.functionDeclarations.0.name", "edit"),
    ("openai-responses", {"tools": [{"type": "shell"}]}, "anthropic", "tools.0.name", "shell_call"),
    ("gemini", {"tools": [{"functionDeclarations": [{"name": "f"}]}], "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}}, "openai", "tool_choice", "auto"),
    # the format of the answer
    ("openai-chat", {"response_format": {"type": "json_schema", "json_schema": {"name": "tide", "description": "Of the sea.", "schema": SCHEMA}}}, "anthropic", "output_config.format.schema", {"title": "tide", "description": "Of the sea.", **SCHEMA, "additionalProperties": False}),
    ("openai-responses", {"text": {"format": {"type": "json_schema", "name": "tide", "description": "Of the sea.", "schema": SCHEMA}}}, "openai", "response_format.json_schema.description", "Of the sea."),
    ("openai-chat", {"response_format": {"type": "json_schema", "json_schema": {"name": "tide", "description": "Of the sea.", "schema": SCHEMA}}}, "bedrock", "outputConfig.textFormat.structure.jsonSchema.description", "Of the sea."),
    # options
    ("gemini", {"generationConfig": {"topK": 40.0}}, "ollama", "options.top_k", 40),
    # from all tokens, as each server writes it
    ("ollama", {"options": {"top_k": 0}}, "vllm", "top_k", 0),
    ("openai-chat", {"top_k": -1}, "ollama", "options.top_k", -1),
    ("openai-chat", {"top_k": -1}, "anthropic", "top_k", 0),
    ("openai-chat", {"top_k": -1}, "gemini", "generationConfig.topK", 0),
    ("openai-chat", {"top_k": -1}, "cohere", "k", 0),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinking_level": "LOW"}}}, "openai", "reasoning_effort", "low"),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinking_budget": 2048}}}, "anthropic", "thinking", {"type": "enabled", "budget_tokens": 2048}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinking_budget": 2048}}}, "cohere", "thinking", {"type": "enabled", "token_budget": 2048}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"include_thoughts": True, "thinking_level": "LOW"}}}, "anthropic", "thinking", {"type": "adaptive", "display": "summarized"}),
    ("openai-responses", {"context_management": [{"type": "compaction", "compact_threshold": 9000}]}, "anthropic", "context_management.edits.0", {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 9000}}),
    ("anthropic", {"context_management": {"edits": [{"type": "compact_20260112"}]}}, "openai_responses", "context_management", [{"type": "compaction"}]),
    ("openai-chat", {"service_tier": "flex", "metadata": {"a": "b"}}, "bedrock", "serviceTier", {"type": "flex"}),
    ("openai-chat", {"metadata": {"a": "b"}}, "bedrock", "requestMetadata", {"a": "b"}),
    ("openai-responses", {"prompt_cache_key": "k"}, "mistral", "prompt_cache_key", "k"),
    ("ollama", {"options": {"repeat_penalty": 1.1}}, "mistral", "repetition_penalty", 1.1),
    ("anthropic", {"service_tier": "standard_only"}, "mistral", "service_tier", "standard_only"),
    # a model may have a default of its own
    ("openai-chat", {"presence_penalty": 0}, "ollama", "options.presence_penalty", 0),
    ("openai-chat", {"frequency_penalty": 0.0}, "mistral", "frequency_penalty", 0.0),
    ("openai-chat", {"frequency_penalty": 0}, "cohere", "frequency_penalty", 0),
    ("openai-chat", {"presence_penalty": 0}, "vllm", "presence_penalty", 0),
    ("gemini", {"generationConfig": {"presencePenalty": 0}}, "ollama", "options.presence_penalty", 0),
    # content
    ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,VGhlIHNreQ=="}}]}]}, "ollama", "messages.0.content", "a.txt\n\nThe sky"),
    ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,VGhlIHNreQ=="}}]}]}, "cohere", "messages.0.content.1.text", "The sky"),
    ("openai-responses", {"input": [{"role": "user", "content": [{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}]}]}, "gemini", "contents.0.parts.0.inlineData.displayName", "a.pdf"),
    ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png", "detail": "low"}}]}]}, "cohere", "messages.0.content.0.image_url.detail", "low"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "said", "to", "path", "value"), ARRIVES)
def test_what_is_said_arrives_in_the_words_of_the_other(
    form: str, said: dict[str, Any], to: str, path: str, value: Any
) -> None:
    assert at(built(form, said, to).body, path) == value


@pytest.mark.parametrize(
    ("form", "said", "to"),
    [
        ("openai-chat", {"top_k": -1, "max_tokens": -1}, "vllm"),
        ("openai-chat", {"max_tokens": -1, "temperature": -1, "top_p": 2, "stop": [""]}, "lmstudio"),
        ("openai-chat", {"n_predict": -2, "top_k": -5}, "llamacpp"),
        ("openai-chat", {"max_completion_tokens": 0, "seed": 2**63}, "openai"),
        ("openai-responses", {"max_output_tokens": 0}, "openai_responses"),
        ("anthropic", {"max_tokens": 0, "top_k": 0}, "anthropic"),
        ("ollama", {"options": {"num_predict": -2, "top_k": -9, "top_p": 1.5}}, "ollama"),
        ("gemini", {"generationConfig": {"topK": 0, "maxOutputTokens": 0}}, "gemini"),
    ],
    ids=str,
)
def test_what_a_server_checks_itself_arrives_there(form: str, said: dict[str, Any], to: str) -> None:
    request = built(form, said, to)
    assert {name: request.body[name] for name in said} == said
    assert request.adaptations == ()


@pytest.mark.parametrize(
    ("form", "said", "to", "lost"),
    [
        ("openai-chat", {"max_tokens": -1}, "ollama", "max_tokens"),
        ("ollama", {"options": {"num_predict": -2}}, "vllm", "options.num_predict"),
        ("ollama", {"options": {"top_p": 1.5}}, "gemini", "options.top_p"),
        ("openai-chat", {"stop": [""]}, "cohere", "stop"),
    ],
    ids=str,
)
def test_a_value_outside_the_bounds_is_named_if_another_server_gets_it_not(
    form: str, said: dict[str, Any], to: str, lost: str
) -> None:
    (one,) = built(form, said, to).adaptations
    assert (one.field, one.refuses) == (lost, True)
    assert "has no such value" in one.reason


@pytest.mark.parametrize("zero", [0, 0.0])
@pytest.mark.parametrize("to", ["anthropic", "bedrock", "openai_responses"])
def test_a_penalty_of_nothing_needs_no_place(to: str, zero: float) -> None:
    said = {"presence_penalty": zero, "frequency_penalty": zero}
    assert {one.field for one in built("openai-chat", said, to).adaptations} <= {"max_tokens"}


@pytest.mark.parametrize("logprobs", [{}, {"logprobs": False}])
@pytest.mark.parametrize(
    ("form", "to"), [("ollama", "openai"), ("ollama", "vllm"), ("openai-chat", "gemini")]
)
def test_other_tokens_are_asked_for_only_with_log_probabilities(
    form: str, to: str, logprobs: dict[str, Any]
) -> None:
    request = built(form, {**logprobs, "top_logprobs": 2}, to)
    assert b"ogprobs" not in dump_json(request.body)
    assert [*map(str, request.dropped)] == ["top_logprobs: without logprobs"]
    assert built(form, {**logprobs, "top_logprobs": 0}, to).dropped == ()


def test_calls_of_2023_are_calls() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    said = {"messages": [HI, call, {"role": "function", "name": "f", "content": "7"}]}
    _, asked, result = built("openai-chat", said, "anthropic").body["messages"]
    assert asked["content"][0] == {"type": "tool_use", "id": "call_1", "name": "f", "input": {}}
    assert result["content"][0]["tool_use_id"] == "call_1"
    assert built("openai-chat", said, "openai").body["messages"] == said["messages"]


SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
PAPER = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
LINKED = {"type": "document", "source": {"type": "url", "url": "https://x.example/a.pdf"}}


@pytest.mark.parametrize(
    ("form", "part", "chunk"),
    [
        ("openai-chat", SOUND, {"type": "input_audio", "input_audio": "UklGRg=="}),
        ("openai-chat", PAPER, {"type": "document_url", "document_url": "data:application/pdf;base64,JVBERi0=", "document_name": "a.pdf"}),
        ("openai-chat", {"type": "file", "file": {"file_id": "f1"}}, {"type": "file", "file_id": "f1"}),
        ("openai-chat", {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}, {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}),
        ("anthropic", LINKED, {"type": "document_url", "document_url": "https://x.example/a.pdf"}),
    ],
    ids=str,
)  # fmt: skip
def test_mistral_gets_parts_as_its_own_chunks(form: str, part: dict[str, Any], chunk: dict[str, Any]) -> None:
    request = built(form, {"messages": [{"role": "user", "content": [part]}]}, "mistral")
    assert request.body["messages"] == [{"role": "user", "content": [chunk]}]
    assert request.adaptations == ()


FUNCTION = {"type": "function", "function": {"name": "f"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION]}}


def test_mistral_gets_no_speaker_and_no_choice_among_tools() -> None:
    said = {"messages": [{**HI, "name": "Bob"}], "tools": [FUNCTION], "tool_choice": ALLOWED}
    request = built("openai-chat", said, "mistral")
    assert request.body["messages"] == [HI]
    assert "tool_choice" not in request.body
    assert {one.field for one in request.dropped} == {"messages[0]", "tool_choice"}
    assert built("openai-chat", said, "vllm").body["messages"] == said["messages"]


def test_mistral_gets_no_sound_that_another_server_keeps() -> None:
    said = {"messages": [HI, {"role": "assistant", "audio": {"id": "a1"}}, HI]}
    with pytest.raises(UnsupportedRequestError, match=r"^mistral: it cannot express messages\[1\]\.audio"):
        built("openai-chat", said, "mistral")


def test_a_strict_server_gets_no_field_that_it_lacks() -> None:
    said = {"user": "u", "store": False, "verbosity": "low", "a_new_field": 1, "safe_prompt": True}
    request = built("openai-chat", said, "mistral")
    assert request.body == {"model": "m", "messages": [HI], "safe_prompt": True}
    assert {one.field for one in request.dropped} == {"user", "verbosity", "a_new_field"}
    assert built("openai-chat", said, "vllm").body == {**LEAST["openai-chat"], **said}


MCP = {"type": "mcp", "server_label": "s", "server_url": "https://x.example"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
LASTING = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}


def marked(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    turns = [HI, {"role": role, "content": [*blocks[:-1], {**blocks[-1], **LASTING}]}]
    after = {"type": "tool_result", "tool_use_id": "c", "content": "7"} if CALL in blocks else HI["content"]
    return {"messages": [*turns, {"role": "user", "content": [after] if CALL in blocks else after}]}


@pytest.mark.parametrize(
    ("form", "said", "to", "lost"),
    [
        # a detail of an MCP server for which there is no spelling, and a server as a whole
        ("openai-responses", {"tools": [{**MCP, "allowed_tools": {"read_only": True}}]}, "anthropic", "mcp_servers[0].allowed_tools"),
        ("openai-responses", {"tools": [{**MCP, "allowed_tools": ["f"]}]}, "gemini", "mcp_servers[0].allowed_tools"),
        ("openai-responses", {"tools": [{**MCP, "allowed_tools": ["f"], "require_approval": "always"}]}, "bedrock", "mcp_servers"),
        # a cache mark, with its lifetime
        ("anthropic", marked("user", {"type": "text", "text": "Hi"}), "vllm", "cache_marks[0]"),
        ("anthropic", marked("user", PICTURE, {"type": "text", "text": "Hi"}), "cohere", "cache_marks[0]"),
        ("anthropic", {"tools": [{"name": "f", "input_schema": SCHEMA, **LASTING}]}, "gemini", "cache_marks[0]"),
        ("anthropic", marked("assistant", CALL), "openai", "cache_marks[0]"),
        ("anthropic", marked("assistant", {"type": "text", "text": "Hi"}), "openai_responses", "cache_marks[0]"),
        ("anthropic", marked("assistant", {"type": "text", "text": "Hi"}, CALL), "openai_responses", "cache_marks[0]"),
        # the group of a tool
        ("anthropic", {"messages": [HI, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "7", "toolset_name": "browser"}]}]}, "openai", "messages[2].content[0].toolset_name"),
    ],
)  # fmt: skip
def test_what_has_no_place_is_named_once(form: str, said: dict[str, Any], to: str, lost: str) -> None:
    assert [one.field for one in built(form, said, to).dropped] == [lost]


MCP_SERVER = {"type": "url", "name": "dw", "url": "https://x.example"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "dw"}


@pytest.mark.parametrize(
    ("form", "said", "betas"),
    [
        ("openai-responses", {"tools": [MCP]}, "mcp-client-2025-04-04"),
        ("openai-responses", {"context_management": [{"type": "compaction", "compact_threshold": 9}]}, "compact-2026-01-12"),
        ("openai-responses", {"tools": [MCP], "context_management": [{"type": "compaction"}]}, "mcp-client-2025-04-04,compact-2026-01-12"),
        ("anthropic", {"mcp_servers": [{"type": "url", "name": "s", "url": "https://x.example"}]}, "mcp-client-2025-04-04"),
        ("anthropic", {"mcp_servers": [MCP_SERVER], "tools": [TOOLSET]}, "mcp-client-2025-11-20"),
        ("anthropic", {"mcp_servers": [MCP_SERVER], "tools": [{**TOOLSET, "configs": {"ask": {"enabled": False}}}]}, "mcp-client-2025-11-20"),
        ("anthropic", {"mcp_servers": [MCP_SERVER], "tools": [{**TOOLSET, "mcp_server_name": "x"}]}, "mcp-client-2025-11-20"),
        ("openai-responses", {"temperature": 0.5}, None),
    ],
)  # fmt: skip
def test_a_beta_that_an_option_needs_is_named_in_the_header(
    form: str, said: dict[str, Any], betas: str | None
) -> None:
    assert built(form, said, "anthropic").headers.get("anthropic-beta") == betas


def test_a_toolset_in_the_provider_options_needs_its_beta() -> None:
    servers = [{"name": "dw", "url": "https://x.example"}]
    request = ChatRequest(
        "Hi",
        model="m",
        mcp_servers=servers,
        provider_options={"anthropic": {"tools": [TOOLSET]}},
    )
    assert build_http_request(request, "anthropic").headers["anthropic-beta"] == "mcp-client-2025-11-20"


LATE = {"cache_control": {"type": "ephemeral"}, "default_config": {"defer_loading": True}}


@pytest.mark.parametrize(
    ("toolset", "allowed", "named"),
    [
        ({}, None, []),
        ({"default_config": {"enabled": False}, "configs": {"ask": {"enabled": True}}}, ["ask"], []),
        ({"configs": {"ask": {"enabled": True}, "tell": {}}}, None, []),
        (LATE, None, ["tools[0].cache_control", "tools[0].default_config.defer_loading"]),
    ],
)
def test_the_toolset_of_an_mcp_server_goes_with_it(toolset: Any, allowed: Any, named: list[str]) -> None:
    tool = {"type": "mcp_toolset", "mcp_server_name": "dw", **toolset}
    said = {**LEAST["anthropic"], "mcp_servers": [MCP_SERVER], "tools": [tool]}
    request = read_request(said, "anthropic").request
    sent = build_http_request(request, "openai_responses")
    (server,) = sent.body["tools"]
    assert server.get("allowed_tools") == allowed
    assert [one.field for one in sent.adaptations] == named
    assert build_http_request(request, "anthropic").body["tools"] == [tool]


@pytest.mark.parametrize(
    "toolset",
    [
        {"configs": {"ask": {"enabled": False}}},
        {"default_config": {"enabled": False}},
        {"configs": ["ask"]},
        {"configs": {"ask": {"enabled": True, "limit": 3}}},
        {"tools": [{"name": "ask"}]},
        {"mcp_server_name": "another"},
        {"mcp_server_name": ["dw"]},
    ],
)
def test_a_toolset_that_says_more_than_its_server_is_refused(toolset: Any) -> None:
    tool = {"type": "mcp_toolset", "mcp_server_name": "dw", **toolset}
    said = {
        **LEAST["anthropic"],
        "mcp_servers": [MCP_SERVER],
        "tools": [tool, {"name": "f", "input_schema": {}}],
    }
    with pytest.raises(UnsupportedRequestError, match=r"tools\[0\]"):
        build_http_request(read_request(said, "anthropic").request, "openai_responses")


def test_the_betas_that_a_client_names_are_its_own() -> None:
    said = {"mcp_servers": [{"type": "url", "name": "s", "url": "https://x.example"}]}
    request = read_request({**LEAST["anthropic"], **said}, "anthropic").request
    mine = {"anthropic-beta": "mcp-client-2025-11-20"}
    assert (
        build_http_request(attrs.evolve(request, headers=mine), "anthropic").headers.items() >= mine.items()
    )


@pytest.mark.parametrize("to", ["anthropic", "bedrock", "gemini", "openai"])
@pytest.mark.parametrize(
    ("format", "is_shown"), [("png", True), ("webp", True), ("svg", False), ("tiff", False)]
)
def test_a_picture_of_a_type_that_no_server_takes_is_told(to: str, format: str, is_shown: bool) -> None:
    made = {
        "type": "image_generation_call",
        "id": "i",
        "status": "completed",
        "result": "iVBORw0KGgo=",
        "output_format": format,
    }
    request = built("openai-responses", {"input": [HI, made, HI]}, to)
    assert ("iVBORw0KGgo=" in str(request.body)) is is_shown
    kind = AdaptationKind.CLAMPED if is_shown else AdaptationKind.DROPPED
    assert [one.kind for one in request.adaptations if "picture" in one.reason] == [kind]


def test_a_word_without_a_row_is_not_said_to_have_no_place() -> None:
    (lost,) = built("openai-chat", {"a_new_field": 1}, "anthropic").dropped
    assert (lost.field, lost.reason) == ("a_new_field", "it is no known field of Chat Completions")


def test_a_sentence_that_a_server_forces_is_named() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        HI,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "7"},
        HI,
    ]
    request = built("openai-chat", {"messages": turns}, "mistral")
    (added,) = request.adaptations
    assert (added.field, added.kind.value, added.sent) == (
        "messages[3].content",
        "added",
        "I have the results.",
    )
    assert built("openai-chat", {"messages": [HI]}, "mistral").adaptations == ()


@pytest.mark.parametrize(
    ("tool", "arguments", "item"),
    [
        ("shell", {"commands": ["ls"]}, {"type": "shell_call", "action": {"commands": ["ls"]}}),
        (
            "apply_patch",
            {"type": "delete_file", "path": "a"},
            {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
        ),
    ],
)
def test_a_call_of_a_tool_that_the_client_runs_comes_back_as_its_item(
    tool: str, arguments: dict[str, Any], item: dict[str, Any]
) -> None:
    called = {"type": "tool_use", "id": "t", "name": f"{tool}_call", "input": arguments}
    end = {"stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [called], **end}
    answer = normalize(dump_json(body), "anthropic")
    (sent,) = load_json(convert(answer, "openai-responses", request={"tools": [{"type": tool}]}).value)[
        "output"
    ]
    assert {name: sent.get(name) for name in item} == item
    assert sent["call_id"] == "t"
    (plain,) = load_json(convert(answer, "openai-responses").value)["output"]
    assert plain["type"] == "function_call"


def test_a_program_can_say_it_too() -> None:
    request = ChatRequest(
        "Hi",
        model="m",
        hosted_tools=[HostedTool("web_search", user_location=PLACE, max_uses=2)],
        tools=[ToolDefinition("f", output_schema=SCHEMA, defer_loading=True)],
        response_format=ResponseFormat(SCHEMA, name="tide", description="Of the sea."),
        cache_marks=[CacheMark(0)],
        extra_options={"mcp_servers": [{"name": "s", "url": "https://x.example", "approval": "always"}]},
    )
    claude = build_http_request(request, "anthropic", on_unsupported="drop")
    assert [tool["name"] for tool in claude.body["tools"]] == ["f", "web_search"]
    assert {one.field: one.refuses for one in claude.dropped} == {
        "tools[0].output_schema": False,
        "mcp_servers[0].approval": True,
    }
    gemini = build_http_request(request, "gemini", on_unsupported="drop")
    assert {one.field for one in gemini.dropped} >= {
        "hosted_tools.user_location.city",
        "hosted_tools.max_uses",
        "tools[0].defer_loading",
        "cache_marks[0]",
    }


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_row_has_a_canonical_place_or_is_of_its_format_alone(table: Any) -> None:
    for row in table.rows:
        assert not row.place or (row.place in PLACES and row.kind is PLACES[row.place].kind)
        assert row.kind is not PlaceKind.HINT or row.place or row.why
    paths = [row.path for row in table.rows if row.place not in PLACES]
    assert len(paths) == len(set(paths))


def test_a_hint_names_its_reason() -> None:
    labels = {"user", "safety_identifier", "metadata", "store", "cache_control", "service_tier", "speed"}
    labels |= {"prompt_cache_key", "prompt_cache_retention", "prompt_cache_mode", "prompt_cache_ttl"}
    for place in PLACES.values():
        known = place.name in labels or place.name.startswith("cache.")
        assert place.kind is not PlaceKind.HINT or known is not bool(place.why)


# What the tables say, for other programs.


def test_an_option_is_at_its_paths_in_every_format() -> None:
    paths = option_paths()
    assert paths["top_p"] == ("top_p", "options.top_p", "generationConfig.topP")
    assert paths["stop"] == ("stop", "stop_sequences", "options.stop", "generationConfig.stopSequences")
    assert paths["previous_response_id"] == ("previous_response_id",)
    assert "encrypted_reasoning" not in paths  # it is an item of a list
    assert paths.keys() <= PLACES.keys()


@pytest.mark.parametrize(
    ("place", "some", "none"),
    [
        ("call", {"tool_use", "functionCall", "custom_tool_call", "shell_call"}, "tool_result"),
        ("result", {"tool_result", "functionResponse", "computer_call_output"}, "tool_use"),
        ("part.text", {"text", "input_text", "output_text"}, "image"),
        ("part.image", {"image", "image_url", "input_image"}, "text"),
    ],
)
def test_a_place_has_its_types_in_every_format(place: str, some: set[str], none: str) -> None:
    types = part_types(place)
    assert some <= {*types}
    assert none not in types
    assert len(types) == len({*types})


# Tools that a vendor has defined.


@pytest.mark.parametrize("tools", [[{"type": "code_interpreter"}], [{"type": "code_interpreter", "container": {"type": "auto"}}]])  # fmt: skip
def test_code_that_runs_anywhere_is_asked_for_anywhere(tools: list[dict[str, Any]]) -> None:
    said = {"tools": [*tools, {"type": "code_interpreter"}]}
    request = built("openai-responses", said, "gemini")
    assert request.body["tools"] == [{"codeExecution": {}}]
    assert [(one.field, one.refuses) for one in request.dropped] == [("tools[1]", True)]
    assert built("openai-responses", said, "openai_responses").body["tools"] == said["tools"]


@pytest.mark.parametrize("kind", ["web_search", "web_search_20250305", "web_search_20270101"])
def test_a_version_of_a_vendors_tool_is_that_tool(kind: str) -> None:
    said = {"tools": [{"type": kind, "name": "web_search", "max_uses": 2}]}
    assert built("anthropic", said, "anthropic").body["tools"] == said["tools"]
    request = built("anthropic", said, "openai_responses")
    assert request.body["tools"] == [{"type": "web_search"}]
    assert [one.field for one in request.dropped] == ["hosted_tools.max_uses"]


@pytest.mark.parametrize(
    "kind", ["computer_20250124", "web_search_tool", "tool_search_tool_bm25_20251119", ""]
)
def test_a_tool_without_a_canonical_kind_is_named(kind: str) -> None:
    said = {"tools": [{"type": kind, "name": "it"}]}
    assert built("anthropic", said, "anthropic").body["tools"] == said["tools"]
    request = built("anthropic", said, "gemini")
    assert "tools" not in request.body
    assert [one.field for one in request.dropped] == ["tools[0]"]


@pytest.mark.parametrize("media_type", ["image/png", "audio/wav", "video/mp4"])
@pytest.mark.parametrize(("name", "data"), [("inlineData", "data"), ("fileData", "fileUri")])
def test_the_name_of_a_picture_is_not_lost_in_silence(media_type: str, name: str, data: str) -> None:
    medium = {data: "aGk=", "mimeType": media_type, "displayName": "sea"}
    said = {"contents": [{"parts": [{"text": "Hi"}, {name: medium}]}]}
    assert built("gemini", said, "gemini").body["contents"] == said["contents"]
    read = read_request(said, "gemini", model="m")
    assert read.unread == {f"contents[0].parts[1].{name}.displayName": "sea"}
    if media_type == "image/png":
        (dropped,) = built("gemini", said, "anthropic").dropped
        assert (dropped.field, dropped.refuses) == (f"contents[0].parts[1].{name}.displayName", False)


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "aGk="}, {"title": 7}),
        ({"type": "text", "media_type": "text/plain", "data": "Hi"}, {"context": ["a"]}),
        ({"type": "content", "content": "Hi"}, {"citations": {"enabled": "yes"}}),
    ],
)
def test_what_is_wrong_with_a_document_is_named(source: dict[str, Any], more: dict[str, Any]) -> None:
    block = {"type": "document", "source": source, **more}
    path = next(iter(more)) + (".enabled" if "citations" in more else "")
    with pytest.raises(ResponseValidationError, match=rf"messages\[0\]\.content\[0\]\.{path}: must be"):
        built("anthropic", {"messages": [{"role": "user", "content": [block]}]}, "anthropic")


SHELL_ACTION = {"commands": ["ls"], "timeout_ms": 5}
EXECUTED = {"type": "exec", "command": ["ls"], "env": {}}
PATCHED = {"type": "update_file", "path": "p", "diff": "d"}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("tool", "said", "declared"),
    [
        (
            "shell",
            {"action": {**SHELL_ACTION, "max_output_length": None}, "environment": {"type": "local"}},
            SHELL_ACTION,
        ),
        ("local_shell", {"action": EXECUTED}, EXECUTED),
        ("apply_patch", {"operation": PATCHED}, PATCHED),
    ],
)
def test_an_earlier_call_of_a_vendors_tool_has_the_arguments_that_the_tool_declares(
    provider: str, tool: str, said: dict[str, Any], declared: dict[str, Any]
) -> None:
    kind = f"{tool}_call"
    own = {"type": "function_call", "call_id": "d", "name": "f", "arguments": '{"action":{"x":1}}'}
    results = [
        {"type": f"{kind}_output", "call_id": "c", "status": "completed", "output": "ok"},
        {"type": "function_call_output", "call_id": "d", "output": "r"},
    ]
    items = [HI, {"type": kind, "call_id": "c", **said}, own, *results]
    tools = [{"type": tool}, {"type": "function", "name": "f"}]
    body = built("openai-responses", {"input": items, "tools": tools}, provider).body
    if provider == "openai":
        calls = [call["function"] for call in body["messages"][1]["tool_calls"]]
        arguments = {call["name"]: load_json(call["arguments"]) for call in calls}
    else:
        arguments = {block["name"]: block["input"] for block in body["messages"][1]["content"]}
    assert arguments == {kind: declared, "f": {"action": {"x": 1}}}


@pytest.mark.parametrize("arguments", ['{"action":{"commands":["ls"]}}', '{"commands":["ls"]}'])
def test_a_program_may_call_a_vendors_tool_in_either_form(arguments: str) -> None:
    call = ChatMessage.assistant(tool_calls=[ToolCall("c", "shell_call", arguments)])
    result = ChatMessage.tool_result("c", "a")
    request = ChatRequest(
        [ChatMessage.user("u"), call, result, ChatMessage.assistant("b")],
        model="m",
        tools=[client_tool("shell")],
    )
    sent = build_http_request(request, "openai").body["messages"][1]["tool_calls"][0]["function"]
    assert sent["arguments"] == '{"commands":["ls"]}'
