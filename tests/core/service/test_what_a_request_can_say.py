"""What users of these APIs say, said in Python: each arrives in its place, is told in words, or is named.

The page about the service has a table with the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import attrs
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ConfigurationError,
    FilePart,
    ImagePart,
    ResponseValidationError,
    ToolCall,
    normalize,
)
from crosswalk.service import (
    AdaptationKind,
    CacheMark,
    CallOptions,
    ChatRequest,
    DocumentPart,
    Endpoint,
    ExtraOptions,
    HostedTool,
    HTTPRequest,
    MCPServer,
    NamedTool,
    ResponseFormat,
    SearchResultPart,
    SyncLLMService,
    ToolDefinition,
    UnsupportedRequestError,
    VideoPart,
    build_http_request,
    client_tool,
    read_request,
)
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.types import TextPart
from crosswalk.wire.options import OPTIONS

PAGE = Path(__file__).parents[3] / "docs" / "service-requests.md"
SERVERS = ("openai", "openai_responses", "anthropic", "gemini", "bedrock", "ollama", "vllm")
CHAT = ("openai", "vllm")
PNG, PDF, WAV, MP4 = "iVBORw0KGgo=", "JVBERi0=", "UklGRg==", "AAAAIGZ0eXA="


class Refused(NamedTuple):
    """The request is an error that names *option*, unless the caller allows losses."""

    option: str = "messages"


class Kept(NamedTuple):
    """It names what another server keeps: always an error."""

    option: str


class Left(NamedTuple):
    """The answer is as good without it. It is left out, or another value is sent, and it is named."""

    option: str


class Told(NamedTuple):
    """It is said in words."""

    text: str


Outcome = Refused | Kept | Left | Told


class Thing(NamedTuple):
    """What is said, how, its path in the body of each server that has a place, and what becomes of it elsewhere."""

    name: str
    fields: dict[str, Any]
    value: Any
    places: Mapping[str, str]
    elsewhere: Outcome = Refused()
    but: Mapping[str, Outcome] = {}


def user(*parts: Any) -> list[ChatMessage]:
    return [ChatMessage.user(parts)]


def pdf(**more: Any) -> list[ChatMessage]:
    return user("a", FilePart(data=PDF, media_type="application/pdf", **more))


def tool(**more: Any) -> dict[str, Any]:
    return {"messages": "Hi", "tools": [ToolDefinition("look", **more)]}


def hosted(kind: str, **more: Any) -> dict[str, Any]:
    return {"messages": "Hi", "hosted_tools": [HostedTool(kind, **more)]}


def option(**more: Any) -> dict[str, Any]:
    return {"messages": "Hi", **more}


def chat(path: str) -> dict[str, str]:
    return dict.fromkeys(CHAT, path)


HEIGHT = {
    "type": "object",
    "properties": {"m": {"type": "number"}},
    "required": ["m"],
    "additionalProperties": False,
}
LOOKED = [
    ChatMessage.user("Go"),
    ChatMessage.assistant(tool_calls=[ToolCall("c1", "look")]),
]
LOOK = {"tools": [ToolDefinition("look")]}
NO_FILES = {"ollama": Refused(), "vllm": Refused()}
OF_TOOLS = {
    **chat("tools.0.function"),
    "ollama": "tools.0.function",
    "openai_responses": "tools.0",
    "anthropic": "tools.0",
    "gemini": "tools.0.functionDeclarations.0",
    "bedrock": "toolConfig.tools.0.toolSpec",
}


def of_tools(name: str, *servers: str, **other: str) -> dict[str, str]:
    named = {server: f"{OF_TOOLS[server]}.{name}" for server in servers}
    return {**named, **{server: f"{OF_TOOLS[server]}.{path}" for server, path in other.items()}}


THINGS = (
    # Content.
    Thing("instructions", {"messages": [ChatMessage.system("Be brief."), *user("Hi")]}, "Be brief.", {**chat("messages.0.content"), "ollama": "messages.0.content", "openai_responses": "input.0.content", "anthropic": "system", "gemini": "systemInstruction.parts.0.text", "bedrock": "system.0.text"}),
    Thing("an image", {"messages": user("a", ImagePart(data=PNG, media_type="image/png"))}, PNG, {**chat("messages.0.content.1.image_url.url"), "ollama": "messages.0.images.0", "openai_responses": "input.0.content.1.image_url", "anthropic": "messages.0.content.1.source.data", "gemini": "contents.0.parts.1.inlineData.data", "bedrock": "messages.0.content.1.image.source.bytes"}),
    Thing("a sound", {"messages": user("a", AudioPart(data=WAV, media_type="audio/wav"))}, WAV, {**chat("messages.0.content.1.input_audio.data"), "gemini": "contents.0.parts.1.inlineData.data", "bedrock": "messages.0.content.1.audio.source.bytes"}),
    Thing("a video", {"messages": user("a", VideoPart(data=MP4, media_type="video/mp4"))}, MP4, {"vllm": "messages.0.content.1.video_url.url", "gemini": "contents.0.parts.1.inlineData.data", "bedrock": "messages.0.content.1.video.source.bytes"}),
    Thing("a PDF", {"messages": pdf(name="a.pdf")}, PDF, {"openai": "messages.0.content.1.file.file_data", "openai_responses": "input.0.content.1.file_data", "anthropic": "messages.0.content.1.source.data", "gemini": "contents.0.parts.1.inlineData.data", "bedrock": "messages.0.content.1.document.source.bytes"}),
    Thing("a text document", {"messages": user("a", DocumentPart("High tide.", title="Tides"))}, "Tides", {"anthropic": "messages.0.content.1.title"}, Told("Tides\n\nHigh tide.")),
    Thing("words about a document", {"messages": pdf(context="It is old.")}, "It is old.", {"anthropic": "messages.0.content.1.context", "bedrock": "messages.0.content.1.document.context"}, Refused("messages[0].content[1].context"), NO_FILES),
    Thing("citations of a document", {"messages": pdf(citations=True)}, True, {"anthropic": "messages.0.content.1.citations.enabled", "bedrock": "messages.0.content.1.document.citations.enabled"}, Refused("messages[0].content[1].citations"), NO_FILES),
    Thing("a search result", {"messages": user("a", SearchResultPart("High.", title="Tide", source="https://x.example"))}, "High.", {"anthropic": "messages.0.content.1.content.0.text"}, Told("Tide\nhttps://x.example\n\nHigh.")),
    Thing("an uploaded file", {"messages": user("a", FilePart(id="file-1"))}, "file-1", {"openai": "messages.0.content.1.file.file_id", "openai_responses": "input.0.content.1.file_id"}),
    Thing("a cache point", {"messages": user("a", "b"), "cache_marks": [CacheMark(0, part=0)]}, {"mode": "explicit"}, {"openai": "messages.0.content.0.prompt_cache_breakpoint", "openai_responses": "input.0.content.0.prompt_cache_breakpoint"}, Left("cache_marks[0]"), {"anthropic": Told('"cache_control"'), "bedrock": Told('"cachePoint"')}),
    Thing("a part of the Responses API", {"messages": [{"role": "user", "content": [{"type": "input_text", "text": "High."}]}]}, "High.", {**chat("messages.0.content.0.text"), "ollama": "messages.0.content", "openai_responses": "input.0.content.0.text", "anthropic": "messages.0.content.0.text", "gemini": "contents.0.parts.0.text", "bedrock": "messages.0.content.0.text"}),
    Thing("the beginning of the answer", {"messages": [*user("Hi"), ChatMessage.assistant("The")]}, "The", {**chat("messages.1.content"), "ollama": "messages.1.content", "anthropic": "messages.1.content.0.text", "gemini": "contents.1.parts.0.text", "bedrock": "messages.1.content.0.text"}, Left("messages[1]")),
    # Results.
    Thing("a result with a picture", {**LOOK, "messages": [*LOOKED, ChatMessage.tool_result("c1", [ImagePart(data=PNG, media_type="image/png")])]}, PNG, {**chat("messages.3.content.1.image_url.url"), "ollama": "messages.2.images.0", "openai_responses": "input.2.output.0.image_url", "anthropic": "messages.2.content.0.content.0.source.data", "gemini": "contents.2.parts.0.functionResponse.parts.0.inlineData.data", "bedrock": "messages.2.content.0.toolResult.content.0.image.source.bytes"}),
    Thing("a failed call", {**LOOK, "messages": [*LOOKED, ChatMessage.tool_result("c1", "no light", is_error=True)]}, True, {"anthropic": "messages.2.content.0.is_error"}, Told("Error: no light"), {"gemini": Told('"error":"no light"'), "bedrock": Told('"status":"error"')}),
    # Tools.
    Thing("a function", tool(description="See."), "See.", of_tools("description", *SERVERS)),
    Thing("a tool with free text", tool(kind="custom", description="See."), "custom", {"openai": "tools.0.type", "openai_responses": "tools.0.type"}, Told('"required":["input"]')),
    Thing("a strict schema", tool(strict=True), True, of_tools("strict", *CHAT, "ollama", "openai_responses", "anthropic", "bedrock"), Left("tools[0].strict")),
    Thing("the schema of a result", tool(output_schema={"type": "string"}), {"type": "string"}, of_tools("output_schema", "openai_responses", gemini="responseJsonSchema"), Left("tools[0].output_schema")),
    Thing("examples of arguments", tool(input_examples=[{"at": "sea"}]), [{"at": "sea"}], of_tools("input_examples", "anthropic"), Left("tools[0].input_examples")),
    Thing("a tool that is found by a search", tool(defer_loading=True), True, of_tools("defer_loading", "openai_responses", "anthropic"), Left("tools[0].defer_loading")),
    Thing("one certain tool", {**tool(), "tool_choice": NamedTool("look")}, "look", {**chat("tool_choice.function.name"), "openai_responses": "tool_choice.name", "anthropic": "tool_choice.name", "gemini": "toolConfig.functionCallingConfig.allowedFunctionNames.0", "bedrock": "toolConfig.toolChoice.tool.name"}, Refused("tool_choice")),
    Thing("the allowed tools", {**tool(), "allowed_tools": ["look"]}, "look", {"openai": "tool_choice.allowed_tools.tools.0.function.name", "openai_responses": "tool_choice.tools.0.name", "gemini": "toolConfig.functionCallingConfig.allowedFunctionNames.0"}, Refused("allowed_tools")),
    Thing("one call at a time", {**tool(), "parallel_tool_calls": False}, False, {**chat("parallel_tool_calls"), "openai_responses": "parallel_tool_calls"}, Refused("parallel_tool_calls"), {"anthropic": Told('"disable_parallel_tool_use":true')}),
    Thing("a tool of a vendor that you run", option(tools=[client_tool("shell")]), "shell", {"openai_responses": "tools.0.type"}, Told('"commands"')),
    # Tools of the server.
    Thing("a search of the web", hosted("web_search", max_uses=3), 3, {"anthropic": "tools.0.max_uses"}, Refused("hosted_tools.max_uses")),
    Thing("where the searcher is", hosted("web_search", user_location={"city": "Brest"}), "Brest", {"openai": "web_search_options.user_location.approximate.city", "openai_responses": "tools.0.user_location.city", "anthropic": "tools.0.user_location.city"}, Refused("hosted_tools.user_location.city")),
    Thing("the reading of pages", hosted("web_fetch"), {}, {"gemini": "tools.0.urlContext"}, Refused("hosted_tools"), {"anthropic": Told('"web_fetch"')}),
    Thing("the running of code", hosted("code_execution"), {}, {"gemini": "tools.0.codeExecution"}, Refused("hosted_tools"), {"anthropic": Told('"code_execution"'), "openai_responses": Told('"code_interpreter"')}),
    Thing("a search in files", hosted("file_search", file_store_ids=["s1"]), "s1", {"openai_responses": "tools.0.vector_store_ids.0", "gemini": "tools.0.fileSearch.fileSearchStoreNames.0"}, Refused("hosted_tools")),
    Thing("the making of pictures", hosted("image_generation", size="1024x1024"), "1024x1024", {"openai_responses": "tools.0.size"}, Refused("hosted_tools")),
    Thing("an MCP server", option(mcp_servers=[MCPServer("sea", "https://mcp.example")]), "https://mcp.example", {"openai_responses": "tools.0.server_url", "anthropic": "mcp_servers.0.url", "gemini": "tools.0.mcpServers.0.streamableHttpTransport.url"}, Refused("mcp_servers")),
    # The answer.
    Thing("how random the answer is", option(temperature=0.5), 0.5, {**chat("temperature"), "ollama": "options.temperature", "openai_responses": "temperature", "anthropic": "temperature", "gemini": "generationConfig.temperature", "bedrock": "inferenceConfig.temperature"}),
    Thing("penalties", option(frequency_penalty=0.5), 0.5, {**chat("frequency_penalty"), "ollama": "options.frequency_penalty", "gemini": "generationConfig.frequencyPenalty"}, Refused("frequency_penalty")),
    Thing("log probabilities", option(logprobs=True, top_logprobs=3), 3, {**chat("top_logprobs"), "ollama": "top_logprobs", "openai_responses": "top_logprobs", "gemini": "generationConfig.logprobs"}, Refused("logprobs")),
    Thing("how long the answer is", option(verbosity="low"), "low", {"openai": "verbosity", "openai_responses": "text.verbosity"}, Refused("verbosity")),
    Thing("a sound as the answer", option(modalities=["text", "audio"], audio={"voice": "v", "format": "wav"}), "v", chat("audio.voice"), Refused("audio")),
    Thing("an expected answer", option(prediction={"type": "content", "content": "High."}), "High.", {"openai": "prediction.content"}, Left("prediction")),
    Thing("how much is reasoned", option(reasoning_effort="max"), "max", {**chat("reasoning_effort"), "openai_responses": "reasoning.effort", "anthropic": "output_config.effort", "bedrock": "outputConfig.effort"}, Left("reasoning_effort")),
    Thing("the schema of the answer", option(response_format=ResponseFormat(HEIGHT, description="Tides.")), "Tides.", {**chat("response_format.json_schema.description"), "ollama": "format.description", "openai_responses": "text.format.description", "anthropic": "output_config.format.schema.description", "gemini": "generationConfig.responseJsonSchema.description", "bedrock": "outputConfig.textFormat.structure.jsonSchema.description"}),
    # What a server keeps.
    Thing("a previous answer that the server keeps", option(previous_response_id="r1"), "r1", {"openai_responses": "previous_response_id"}, Kept("previous_response_id")),
    Thing("a conversation that the server keeps", option(conversation="v1"), "v1", {"openai_responses": "conversation"}, Kept("conversation")),
    Thing("a container that the server keeps", option(container="k1"), "k1", {"anthropic": "container"}, Kept("container")),
    Thing("a cache that the server keeps", option(cached_content="cachedContents/1"), "cachedContents/1", {"gemini": "cachedContent"}, Kept("cached_content")),
    Thing("a summary once the conversation is long", option(compaction={"threshold": 50000}), 50000, {"openai_responses": "context_management.0.compact_threshold", "anthropic": "context_management.edits.0.trigger.value"}, Left("compaction")),
    # Labels and cost.
    Thing("the tier of the service", option(service_tier="flex"), "flex", {"openai": "service_tier", "openai_responses": "service_tier", "gemini": "serviceTier", "bedrock": "serviceTier.type"}, Left("service_tier")),
    Thing("the end user", option(user="u1"), "u1", {**chat("user"), "openai_responses": "user", "anthropic": "metadata.user_id"}, Left("user")),
    Thing("labels", option(metadata={"a": "b"}), "b", {"openai": "metadata.a", "openai_responses": "metadata.a", "bedrock": "requestMetadata.a"}, Left("metadata")),
    Thing("whether the answer is stored", option(store=True), True, {"openai": "store", "openai_responses": "store"}, Left("store")),
)  # fmt: skip


def at(body: Any, path: str) -> Any:
    for step in path.split("."):
        body = body[int(step)] if isinstance(body, list) else body[step]
    return body


def built(fields: Mapping[str, Any], server: str, on_unsupported: Any = "raise") -> HTTPRequest:
    return build_http_request(ChatRequest(**{"model": "m", **fields}), server, on_unsupported=on_unsupported)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: thing.name.replace(" ", "_"))
def test_what_is_said_arrives_is_told_or_is_named(thing: Thing, server: str) -> None:
    place = thing.places.get(server)
    outcome = thing.but.get(server, thing.elsewhere)
    if place is not None:
        request = built(thing.fields, server)
        value = at(request.body, place)
        assert value == thing.value or (isinstance(value, str) and value.endswith(str(thing.value)))
        assert [one for one in request.dropped if one.refuses] == []
    elif isinstance(outcome, Told):
        request = built(thing.fields, server)
        said = json.dumps(request.body, separators=(",", ":"))
        assert json.dumps(outcome.text)[1:-1] in said or outcome.text in said
    elif isinstance(outcome, Left):
        named = {one.field: one for one in built(thing.fields, server).adaptations}
        assert named[outcome.option].kind in (AdaptationKind.DROPPED, AdaptationKind.CLAMPED)
        assert not named[outcome.option].refuses
    else:
        modes = ("raise", "drop") if isinstance(outcome, Kept) else ("raise",)
        for mode in modes:
            with pytest.raises(UnsupportedRequestError) as caught:
                built(thing.fields, server, mode)
            assert outcome.option in caught.value.options


def test_the_page_says_how_to_say_each() -> None:
    _, _, section = PAGE.read_text().partition("## What a request can say\n")
    rows = [
        line.split("|")[1].strip() for line in section.partition("\n## ")[0].splitlines() if line[:2] == "| "
    ]
    assert rows[1:] == [
        *(thing.name for thing in THINGS),
        "the result of a tool that you run",
        "headers of the API",
    ]


# The result of a tool that the client runs.


@pytest.mark.parametrize("server", SERVERS)
def test_the_result_of_a_shell_is_a_text(server: str) -> None:
    call = {
        "type": "shell_call",
        "id": "s1",
        "call_id": "c1",
        "status": "completed",
        "action": {"commands": ["ls"]},
    }
    body = {
        "id": "r1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [call],
        "usage": None,
    }
    answer = normalize(json.dumps(body).encode(), "openai_responses")
    turns = [ChatMessage.user("Go"), answer, ChatMessage.tool_result("c1", "a.txt")]
    request = built({"messages": turns, "tools": [client_tool("shell")]}, server)
    if server == "openai_responses":
        outcome = {"type": "exit", "exit_code": 0}
        assert request.body["input"][-1] == {
            "type": "shell_call_output",
            "call_id": "c1",
            "output": [{"stdout": "a.txt", "stderr": "", "outcome": outcome}],
        }
    else:
        assert "a.txt" in json.dumps(request.body)


def test_a_tool_that_you_run_is_the_vendors_own() -> None:
    bash = client_tool("bash")
    assert built(option(tools=[bash]), "anthropic").body["tools"] == [
        {"type": "bash_20250124", "name": "bash"}
    ]
    assert built(option(tools=[bash]), "openai_responses").body["tools"][0]["name"] == "bash"
    shell = option(tools=[client_tool("shell")], tool_choice=NamedTool("shell_call"))
    assert built(shell, "openai_responses").body["tool_choice"] == {"type": "shell"}
    assert built(shell, "openai").body["tool_choice"]["function"] == {"name": "shell_call"}
    with pytest.raises(ResponseValidationError, match="no tool 'bahs' that clients run, did you mean 'bash'"):
        client_tool("bahs")


# Options.


def test_every_option_is_a_keyword_with_a_type() -> None:
    fields = set(attrs.fields_dict(ChatRequest))
    assert set(get_type_hints(ExtraOptions)) == set(OPTIONS) - fields
    assert set(ExtraOptions.__annotations__) < set(CallOptions.__annotations__)
    documented = ExtraOptions.__doc__ or ""
    assert [name for name in ExtraOptions.__annotations__ if name not in documented] == []


def test_an_option_is_kept_in_one_place() -> None:
    request = ChatRequest("Hi", verbosity="low", user=None, extra_options={"n": 2})
    assert request.extra_options == {"n": 2, "verbosity": "low"}
    assert attrs.evolve(request, temperature=0).extra_options == request.extra_options
    assert ChatRequest("Hi", user=None).extra_options == {}
    also: Any = {"repetition_penalty": 1.1}
    assert ChatRequest("Hi", **also).extra_options == {"repeat_penalty": 1.1}
    wrong: Any = {"verbositi": "low"}
    with pytest.raises(ConfigurationError, match="no option 'verbositi', did you mean 'verbosity'"):
        ChatRequest("Hi", **wrong)
    with pytest.raises(ResponseValidationError, match="extra_options must be an object"):
        ChatRequest("Hi", extra_options=wrong.keys())


def test_a_call_has_the_same_options() -> None:
    with ReplayServer() as server:
        server.add(Answer.text("High."))
        with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as service:
            request = ChatRequest("Hi", frequency_penalty=0.1)
            service.complete(request, presence_penalty=0.2, extra_headers={"X-Feature": "tides"})
        (sent,) = server.requests
        assert (sent.json()["frequency_penalty"], sent.json()["presence_penalty"]) == (0.1, 0.2)
        assert sent.headers["x-feature"] == "tides"


@pytest.mark.parametrize("names", ["look", [""], [7], 7])
def test_allowed_tools_are_names(names: Any) -> None:
    with pytest.raises(ResponseValidationError, match="allowed_tools must be a list"):
        ChatRequest("Hi", allowed_tools=names)


def test_the_secrets_of_an_mcp_server_are_in_no_message() -> None:
    server = MCPServer(
        "sea", "https://mcp.example", authorization="sk-1", headers={"x": "sk-1"}, allowed_tools=["a"]
    )
    request = ChatRequest("Hi", model="m", mcp_servers=[server])
    assert "sk-1" not in repr(server) + repr(request)
    for url in ("https://usr:sk-1@mcp.example/sse", "https://mcp.example/sse?api_key=sk-1"):
        assert repr(MCPServer("sea", url)) == "MCPServer(name='sea', url='https://mcp.example/sse')"
    body = build_http_request(request, "openai_responses").body
    assert body["tools"] == [
        {
            "type": "mcp",
            "server_label": "sea",
            "server_url": "https://mcp.example",
            "authorization": "sk-1",
            "headers": {"x": "sk-1"},
            "allowed_tools": ["a"],
            "require_approval": "never",
        }
    ]
    with pytest.raises(UnsupportedRequestError) as caught:
        build_http_request(request, "ollama")
    assert "sk-1" not in str(caught.value)
    for wrong, problem in ((["sea"], "must hold an MCPServer, not string"), ([{"uri": "x"}], "has no 'uri'")):
        with pytest.raises(ResponseValidationError, match=problem):
            ChatRequest("Hi", mcp_servers=wrong)  # type: ignore[arg-type]


def test_what_the_server_keeps_takes_the_place_of_earlier_turns() -> None:
    answer = normalize(
        b'{"id":"r1","object":"response","status":"completed","model":"m","output":[],"usage":null}',
        "openai_responses",
    )
    request = built(
        {"messages": [*user("Hi"), answer, *user("And?")], "previous_response_id": "r1"}, "openai_responses"
    )
    assert [item["content"][0]["text"] for item in request.body["input"]] == ["And?"]
    result = [ChatMessage.tool_result("c1", "x")]
    assert built({"messages": result, "previous_response_id": "r1"}, "openai_responses").body["input"]
    secret = built(option(store=False, reasoning_effort="low"), "openai_responses").body
    assert (secret["store"], secret["include"]) == (False, ["reasoning.encrypted_content"])


def test_stores_are_needed_for_a_search_in_files() -> None:
    with pytest.raises(UnsupportedRequestError, match="needs file_store_ids"):
        built(hosted("file_search"), "openai_responses")


# Headers.


def test_headers_of_the_api_go_out_and_replace_its_own() -> None:
    request = option(extra_headers={"Anthropic-Beta": "files", "ANTHROPIC-VERSION": "2024-01-01"})
    assert built(request, "anthropic").headers == {
        "anthropic-beta": "files",
        "anthropic-version": "2024-01-01",
    }


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"Authorization": "sk-1"}, "Authorization may hold a secret: give it as api_key= or headers="),
        ({"x-api-key": "sk-1"}, "x-api-key may hold a secret"),
        ({"Cookie": "sk-1"}, "Cookie may hold a secret"),
        ({"X-Amz-Security-Token": "sk-1"}, "may hold a secret"),
        ({"Ocp-Apim-Subscription-Key": "sk-1"}, "may hold a secret"),
        ({"Proxy-Authentication": "sk-1"}, "may hold a secret"),
        ({"X-Signature": "sk-1"}, "may hold a secret"),
        ({"Content-Length": "1"}, "Content-Length is set by the connection"),
        ({"host": "sk-1"}, "host is set by the connection"),
        ({"x y": "sk-1"}, "no name of a header"),
        ({7: "sk-1"}, "no name of a header"),
        ({"x": "sk-1\r\nhost: a"}, "the value of x must be a line of ASCII text"),
        ({"x": 7}, "the value of x must be a line of ASCII text"),
        (["x"], "extra_headers must be headers by name, not array"),
    ],
)
def test_headers_hold_no_secret_and_break_no_line(headers: Any, problem: str) -> None:
    with pytest.raises(ResponseValidationError) as caught:
        ChatRequest("Hi", extra_headers=headers)
    assert problem in str(caught.value)
    assert "sk-1" not in str(caught.value)


# Parts.


def test_a_search_result_has_pieces_and_may_be_cited() -> None:
    found = SearchResultPart(["High.", "Low."], title="Tide", source="x", citations=True)
    assert found.text == "Tide\nx\n\nHigh.\n\nLow."
    assert ChatMessage.user(["a", found]).text == f"a\n\n{found.text}"
    block = built({"messages": user(found)}, "anthropic").body["messages"][0]["content"][0]
    assert block == {
        "type": "search_result",
        "source": "x",
        "title": "Tide",
        "content": [{"type": "text", "text": "High."}, {"type": "text", "text": "Low."}],
        "citations": {"enabled": True},
    }
    request = built({"messages": user("a", found)}, "bedrock")
    assert request.body["messages"][0]["content"][1] == {
        "searchResult": {
            "source": "x",
            "title": "Tide",
            "content": [{"text": "High."}, {"text": "Low."}],
            "citations": {"enabled": True},
        }
    }
    assert request.adaptations == ()
    with pytest.raises(UnsupportedRequestError, match="citations"):
        built({"messages": user(found)}, "gemini")
    for wrong in ({"content": []}, {"content": [7]}, {"title": 7}, {"source": None}, {"citations": 1}):
        fields: dict[str, Any] = {"content": "a", "title": "b", "source": "c", **wrong}
        with pytest.raises(ResponseValidationError):
            SearchResultPart(fields.pop("content"), **fields)


def test_a_client_says_the_same_thing_in_the_same_place() -> None:
    block = {
        "type": "search_result",
        "source": "x",
        "title": "Tide",
        "content": [{"type": "text", "text": "High."}],
    }
    plain = {**block, "content": "High.", "citations": {"enabled": True}}
    source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
    document = {"type": "document", "source": source, "context": "old", "citations": {"enabled": True}}
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [block, plain, document]}],
    }
    (said,) = read_request(body, "anthropic").request.messages
    assert said == ChatMessage.user(
        [
            SearchResultPart("High.", title="Tide", source="x"),
            SearchResultPart("High.", title="Tide", source="x", citations=True),
            FilePart(data=PDF, media_type="application/pdf", context="old", citations=True),
        ]
    )
    (turn,) = read_request({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "video_url", "video_url": {"url": "https://x.example/a.mp4"}}]}]}, "openai-chat").request.messages  # fmt: skip
    assert turn == ChatMessage.user([VideoPart(url="https://x.example/a.mp4")])
    tools = [
        {"type": "image_generation", "quality": "low"},
        {"type": "shell"},
    ]
    asked = read_request({"model": "m", "input": "Hi", "tools": tools}, "openai-responses").request
    assert asked.hosted_tools == (HostedTool("image_generation", quality="low"),)
    assert asked.tools == (client_tool("shell"),)


def test_a_result_of_a_search_tells_what_it_is_evolved_to() -> None:
    part: Any = SearchResultPart(["High.", "Low."], title="Tide", source="x")
    assert attrs.evolve(part) == part
    assert attrs.evolve(part, title="Moon").text == "Moon\nx\n\nHigh.\n\nLow."


def test_a_document_of_text_has_pieces_words_about_it_and_may_be_cited() -> None:
    document: Any = DocumentPart(["High.", "Low."], title="Tide", context="Old.", citations=True)
    assert document.text == "Tide\nOld.\n\nHigh.\n\nLow."
    assert ChatMessage.user(["a", document]).text == f"a\n\n{document.text}"
    assert attrs.evolve(document, title="Moon").text == "Moon\nOld.\n\nHigh.\n\nLow."
    pieces = {
        "type": "content",
        "content": [{"type": "text", "text": "High."}, {"type": "text", "text": "Low."}],
    }
    about = {"title": "Tide", "context": "Old.", "citations": {"enabled": True}}
    block = {"type": "document", "source": pieces, **about}
    assert built({"messages": user(document)}, "anthropic").body["messages"][0]["content"] == [block]
    request = built({"messages": user("a", document)}, "bedrock")
    assert request.body["messages"][0]["content"][1] == {
        "document": {
            "format": "txt",
            "name": "Tide",
            "source": {"content": [{"text": "High."}, {"text": "Low."}]},
            "context": "Old.",
            "citations": {"enabled": True},
        }
    }
    assert request.adaptations == ()
    for wrong in ({"content": []}, {"content": [7]}, {"title": 7}, {"context": 7}, {"citations": 1}):
        fields: dict[str, Any] = {"content": "a", **wrong}
        with pytest.raises(ResponseValidationError):
            DocumentPart(fields.pop("content"), **fields)


TAKERS = ("openai", "vllm", "mistral", "openai_responses", "anthropic", "gemini", "ollama", "cohere", "bedrock")  # fmt: skip


@pytest.mark.parametrize("server", TAKERS)
@pytest.mark.parametrize(
    ("source", "content"),
    [
        ({"type": "text", "media_type": "text/plain", "data": "High."}, "High."),
        ({"type": "content", "content": "High."}, "High."),
        ({"type": "content", "content": [{"type": "text", "text": "High."}, {"type": "text", "text": "Low."}]}, ["High.", "Low."]),
    ],
)  # fmt: skip
def test_a_document_of_a_client_and_of_a_program_are_one(server: str, source: Any, content: Any) -> None:
    block = {"type": "document", "source": source, "title": "Tide", "context": "Old."}
    turns = [{"role": "user", "content": [block]}]
    asked = read_request({"model": "m", "max_tokens": 9, "messages": turns}, "anthropic").request
    document = DocumentPart(content, title="Tide", context="Old.")
    assert asked.messages == (ChatMessage.user([document]),)
    of_program = ChatRequest([ChatMessage.user([document])], model="m", max_tokens=9)
    one, other = (build_http_request(request, server) for request in (asked, of_program))
    if server == "anthropic":  # a client's own words go on as they came
        assert one.body["messages"][0]["content"] == [block]
        assert (one.adaptations, other.adaptations) == ((), ())
    else:
        assert one.body == other.body
        assert one.adaptations == other.adaptations
        assert [(told.field, told.kind) for told in one.adaptations] == [("messages[0].content[0]", "told")]


def test_a_document_is_a_file_or_an_address(tmp_path: Path) -> None:
    for wrong in ({"data": "YQ==", "url": "x"}, {}, {"url": "x", "citations": 1}):
        with pytest.raises(ResponseValidationError):
            FilePart(**wrong)
    video = tmp_path / "a.mp4"
    video.write_bytes(b"\0\0\0\x20ftyp")
    part = (ChatMessage.user([video]).content or "")[0]
    assert isinstance(part, VideoPart)
    assert part.media_type == "video/mp4"


def test_a_part_of_the_responses_api_is_read_or_refused() -> None:
    parts = [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "https://x.example/a.png"},
        {"type": "input_file", "file_id": "file-1"},
        "b",
    ]
    request = ChatRequest([{"role": "user", "content": parts}])
    assert request.messages == (
        ChatMessage.user(
            [TextPart("a"), ImagePart(url="https://x.example/a.png"), FilePart(id="file-1"), "b"]
        ),
    )
    with pytest.raises(ResponseValidationError, match=r"messages\[0\].content\[0\].mark"):
        ChatRequest([{"role": "user", "content": [{"type": "input_text", "text": "a", "mark": 1}]}])
