"""Names of tools that an API does not take: one other name in a whole request, and the caller's own in the answer."""

from __future__ import annotations

import re
from typing import Any

import pytest

from crosswalk import ChatMessage, ChatResponse, ToolCall, normalize
from crosswalk.config import Settings
from crosswalk.request import HTTPRequest
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    NamedTool,
    SyncLLMService,
    ToolDefinition,
    build_batch_requests,
    build_http_request,
    read_batch_results,
    read_request,
)
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

USER = {"role": "user", "content": "u"}
LONG = "mcp__" + "x" * 80
NAMES = ["a.b", "größe", "get.x", LONG]
TAKEN = {
    "anthropic": "[a-zA-Z0-9_-]{1,128}",
    "openai_responses": "[a-zA-Z0-9_-]{1,128}",
    "gemini": "[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
}
"""The names that an API takes, if not those of letters, digits, ``_`` and ``-`` with up to 64 characters."""


def call(name: str, id: str = "c") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": '{"name":"a.b"}'}}


def chat(*names: str, **more: Any) -> dict[str, Any]:
    """A request of Chat Completions that declares *names*, and has called each."""
    calls = [call(name, f"c{number}") for number, name in enumerate(names)]
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "r"} for one in calls]
    declared = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]  # fmt: skip
    choice = {"type": "function", "function": {"name": names[0]}}
    history = [USER, {"role": "assistant", "tool_calls": calls}, *results]
    return {"model": "m", "messages": history, "tools": declared, "tool_choice": choice, **more}


def built(said: dict[str, Any], provider: str, form: str = "openai-chat", **options: Any) -> HTTPRequest:
    request = read_request(said, form, **options).request
    return build_http_request(request, provider, on_unsupported="drop")


def names_in(value: Any) -> list[str]:
    """The values of each ``name`` in *value*, apart from those in arguments and schemas."""
    if isinstance(value, dict):
        found = [value["name"]] if isinstance(value.get("name"), str) else []
        more = (inner for key, inner in value.items() if key not in ("input", "args"))
        return [*found, *value.get("allowedFunctionNames", ()), *(name for one in more for name in names_in(one))]  # fmt: skip
    return [name for one in value for name in names_in(one)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "provider", ["anthropic", "openai_responses", "bedrock", "mistral", "openai", "gemini"]
)
def test_a_tool_has_one_name_in_a_request(provider: str, name: str) -> None:
    sent = built(chat(name), provider)
    names = set(names_in(sent.body))
    assert len(names) == 1
    own = names.pop()
    if re.fullmatch(TAKEN.get(provider, "[a-zA-Z0-9_-]{1,64}"), name):
        assert (own, sent.tool_names) == (name, {})
        return
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", own)
    assert sent.tool_names == {own: name}
    (named,) = (one for one in sent.adaptations if one.field == "tools[0].name")
    assert (named.kind, named.refuses) == ("clamped", False)


def test_two_tools_never_get_one_name() -> None:
    sent = built(chat("a.b", "a_b", "a:b", "web.search"), "anthropic")
    names = [tool["name"] for tool in sent.body["tools"]]
    assert len(set(names)) == 4
    assert (names[1], names[3]) == ("a_b", "web_search")
    assert sorted(sent.tool_names.values()) == ["a.b", "a:b", "web.search"]
    calls = [block["name"] for block in sent.body["messages"][1]["content"]]
    assert calls == names
    beside = built({**chat("web.search"), "web_search_options": {}}, "anthropic")
    declared = [tool["name"] for tool in beside.body["tools"]]
    assert "web_search" in declared
    assert len(set(declared)) == 2


def test_a_name_stays_the_same_as_a_conversation_grows() -> None:
    first = built(chat("a.b", "a_b"), "anthropic")
    later = built(chat("a.b", "a_b", "a-b"), "anthropic")
    assert later.body["tools"][:2] == first.body["tools"]


@pytest.mark.parametrize("provider", ["openai", "openai_responses"])
def test_the_tools_among_which_a_model_may_choose_have_the_same_name(provider: str) -> None:
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "a.b"}}]}
    sent = built(chat("a.b", tool_choice={"type": "allowed_tools", "allowed_tools": allowed}), provider)
    assert set(names_in(sent.body)) == {"a_b"}
    by_option = ChatRequest("u", model="m", tools=[ToolDefinition("a.b")], allowed_tools=["a.b"])
    assert set(names_in(build_http_request(by_option, provider).body)) == {"a_b"}


def test_a_client_of_gemini_asks_another_server() -> None:
    said = {
        "contents": [
            {"role": "user", "parts": [{"text": "u"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "get.x", "args": {"name": "get.x"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "get.x", "response": {"r": 1}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "get.x"}, {"name": "get.y"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get.x"]}},
    }
    sent = built(said, "openai", "gemini", model="m")
    assert set(names_in(sent.body)) == {"get_x", "get_y"}
    assert '"name":"get.x"' in sent.body["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert set(names_in(built(said, "gemini", "gemini", model="m").body)) == {"get.x", "get.y"}


def test_a_server_of_the_clients_form_gets_the_rest_as_it_was_said() -> None:
    said = {
        "model": "m",
        "max_tokens": 9,
        "metadata": {"name": "a.b"},
        "messages": [
            USER,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "a.b", "input": {"name": "a.b"}}]},
            {"role": "user", "name": "a.b", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a.b", "odd": 1}]},
        ],
        "tools": [{"name": "a.b", "input_schema": {"type": "object"}, "eager_input_streaming": True}],
        "tool_choice": {"type": "tool", "name": "a.b", "odd": 2},
    }  # fmt: skip
    sent = built(said, "anthropic", "anthropic").body
    assert sent["tools"] == [{**said["tools"][0], "name": "a_b"}]  # type: ignore[index]
    assert sent["tool_choice"] == {**said["tool_choice"], "name": "a_b"}  # type: ignore[dict-item]
    assert sent["messages"][1]["content"][0]["name"] == "a_b"
    assert sent["messages"][1]["content"][0]["input"] == {"name": "a.b"}
    assert (sent["messages"][2], sent["metadata"]) == (said["messages"][2], said["metadata"])  # type: ignore[index]


def test_tools_that_an_item_declares_later_are_fitted_as_well() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "a.b", "parameters": {"type": "object"}}]}  # fmt: skip
    sent = built({"model": "m", "input": [item, USER]}, "anthropic", "openai-responses")
    assert [tool["name"] for tool in sent.body["tools"]] == ["a_b"]
    assert sent.tool_names == {"a_b": "a.b"}


def test_the_turns_of_a_program_are_fitted_and_results_without_a_call_are_told() -> None:
    answer = normalize(body({"content": None, "tool_calls": [call("a.b")]}, "tool_calls"), "vllm")
    result = ChatMessage.tool_result("c", "r", name="a.b")
    request = ChatRequest([ChatMessage.user("u"), answer, result], model="m", tool_choice=NamedTool("a.b"))
    sent = build_http_request(request, "anthropic", on_unsupported="drop")
    assert set(names_in(sent.body)) == {"a_b"}
    assert [one.field for one in sent.adaptations if one.kind == "clamped"] == ["tool_choice"]
    alone = {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "a.b", "response": {"r": 1}}}]}],
             "tools": [{"functionDeclarations": [{"name": "a.b"}]}]}  # fmt: skip
    assert "a.b" in str(built(alone, "anthropic", "gemini", model="m").body["messages"])


# ------------------------------------------------------------------------------------ the way back


def asked(server: ReplayServer, *, stream: bool) -> tuple[ChatResponse, list[str]]:
    """The answer to a request with the tools ``a.b`` and ``a_b``, and the names in its events."""
    tools = [ToolDefinition("a.b"), ToolDefinition("a_b")]
    endpoint = Endpoint("mistral", model="m", base_url=server.url, api_key="k")
    with SyncLLMService(endpoint, settings=Settings()) as service:
        if not stream:
            return service.complete(ChatRequest("u", tools=tools)), []
        with service.stream(ChatRequest("u", tools=tools)) as events:
            calls = [event.delta.tool_call_delta for event in events if event.delta is not None]
            return events.response, [one.name for one in calls if one is not None and one.name is not None]


def sent_name(name: str) -> str:
    request = ChatRequest("u", model="m", tools=[ToolDefinition("a.b"), ToolDefinition("a_b")])
    own = {own: sent for sent, own in build_http_request(request, "mistral").tool_names.items()}
    return own.get(name, name)


def test_an_answer_calls_tools_by_the_names_of_the_program() -> None:
    calls = [call(sent_name("a.b"), "c"), call("a_b", "d")]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    choices = [{"index": number, "message": message, "finish_reason": "tool_calls"} for number in range(2)]
    with ReplayServer() as server:
        server.add(Answer.of_json({**body(message, "tool_calls"), "choices": choices}))
        response, _ = asked(server, stream=False)
    assert [one.name for one in response.tool_calls] == ["a.b", "a_b"]
    assert [one.name for one in response.alternatives[0].message.tool_calls or ()] == ["a.b", "a_b"]
    assert [one.metadata["name"] for one in response.segments if "name" in one.metadata] == ["a.b", "a_b"]
    assert response.tool_calls[0] == ToolCall("c", "a.b", '{"name":"a.b"}')
    assert dict(response.attempts[0].extra["tool_names"]) == {sent_name("a.b"): "a.b"}


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_stream_calls_tools_by_the_names_of_the_program(is_cut: bool) -> None:
    first = [{"index": 0, **call(sent_name("a.b"))}]
    second = [{"index": 1, **call("a_b", "d")}]
    events = [chunk({"content": "So."}), chunk({"tool_calls": first}), chunk({"tool_calls": second})]
    last = [] if is_cut else [chunk({}, "tool_calls")]
    with ReplayServer() as server:
        server.add(Answer.of_events([*events, *last], done=not is_cut), times=None)
        response, names = asked(server, stream=True)
    assert names == ["a.b", "a_b"]
    assert [one.name for one in response.tool_calls] == ["a.b", "a_b"]


def test_the_provider_s_own_options_name_the_same_tools() -> None:
    """Also those that only they declare. A tool in both is one tool."""
    own: dict[str, Any] = {
        "anthropic": {
            "tools": [{"name": "a.b", "strict": True}, {"name": "größe", "input_schema": {}}],
            "tool_choice": {"type": "tool", "name": "größe"},
        },
        "openai": {"tools": [{"type": "function", "function": {"name": "a.b", "strict": True}}]},
        "bedrock": {"toolConfig": {"toolChoice": {"tool": {"name": "a.b"}}}},
        "gemini": {"tools": [{"functionDeclarations": [{"name": "größe"}]}]},
        "vllm": {"tools": [{"type": "function", "function": {"name": "a.b", "strict": True}}]},
    }
    request = ChatRequest("u", model="m", tools=[ToolDefinition("a.b")], provider_options=own)
    sent = {name: build_http_request(request, name) for name in own}
    assert names_in(sent["anthropic"].body) == ["a_b", "gr__e", "gr__e"]
    assert sent["anthropic"].body["tools"][0]["strict"] is True
    assert sent["anthropic"].tool_names == {"a_b": "a.b", "gr__e": "größe"}
    assert [one.field for one in sent["anthropic"].adaptations if one.sent == "gr__e"] == [
        "provider_options[anthropic]"
    ]
    assert names_in(sent["openai"].body) == ["a_b"]
    assert set(names_in(sent["bedrock"].body["toolConfig"])) == {"a_b"}
    assert names_in(sent["gemini"].body) == ["a.b", "gr__e"]
    assert names_in(sent["vllm"].body) == ["a.b"]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "mistral"])
def test_the_results_of_a_batch_have_the_callers_names(provider: str) -> None:
    requests = {
        "r1": ChatRequest("u", model="m", tools=[ToolDefinition("a.b")]),
        "r2": ChatRequest("u", model="m", tools=[ToolDefinition("a_b")]),
    }
    sent = {one.id: names_in(one.built.body)[0] for one in build_batch_requests(requests, provider)}
    assert sent == {"r1": "a_b", "r2": "a_b"}
    made = {"role": "assistant", "content": None, "tool_calls": [call("a_b", "c12345678")]}
    answer: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": made, "finish_reason": "tool_calls"}]}  # fmt: skip
    if provider == "anthropic":
        block = {"type": "tool_use", "id": "c", "name": "a_b", "input": {}}
        answer = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [block], "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip

    def line(id: str) -> dict[str, Any]:
        if provider == "anthropic":
            return {"custom_id": id, "result": {"type": "succeeded", "message": answer}}
        return {"id": "b", "custom_id": id, "response": {"status_code": 200, "body": answer}, "error": None}

    lines = [line(id) for id in ("r1", "r2", "another")]

    def names(**options: Any) -> list[str]:
        results = read_batch_results(lines, provider, **options)
        return [result.response.tool_calls[0].name for result in results if result.response is not None]

    assert names(requests=requests) == ["a.b", "a_b", "a_b"]
    assert names() == ["a_b", "a_b", "a_b"]


def test_a_result_that_cannot_be_read_has_the_callers_names_too() -> None:
    request = ChatRequest("u", model="m", tools=[ToolDefinition("a.b")])
    made = {"role": "assistant", "content": None, "tool_calls": [call("a_b")]}
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": made, "finish_reason": "odd"}]}
    line = {"custom_id": "r1", "response": {"status_code": 200, "body": body}, "error": None}
    (result,) = read_batch_results([line], "openai", requests={"r1": request})
    assert result.error is not None
    assert result.response is not None
    assert result.response.tool_calls[0].name == "a.b"


@pytest.mark.parametrize("provider", ["anthropic", "openai_responses"])
def test_a_count_is_of_the_names_that_are_sent(provider: str) -> None:
    with ReplayServer() as server:
        server.add(Answer.of_json({"input_tokens": 7}))
        request = ChatRequest("u", model="m", tools=[ToolDefinition("a.b"), ToolDefinition("größe")])
        endpoint = Endpoint(provider, model="m", base_url=server.url, api_key="k")
        with SyncLLMService(endpoint, settings=Settings()) as service:
            assert service.count_tokens(request).tokens == 7
        assert names_in(server.requests[0].json()) == ["a_b", "gr__e"]
