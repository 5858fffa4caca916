"""The fields that are read of requests, form by form, and the refusal of wrong ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import ChatResponse, Limits
from crosswalk.convert import WireForm
from crosswalk.service import (
    CacheMark,
    ChatRequest,
    HTTPRequest,
    ReasoningEffort,
    UnsupportedRequestError,
    build_http_request,
    message_of,
)
from crosswalk.types import ChatMessage, ImagePart, TextPart, ToolCall
from crosswalk_serve.http import BadRequestError
from crosswalk_serve.requests import Incoming, read_request

CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA, GENERATE, GEMINI = (
    WireForm.OPENAI_CHAT,
    WireForm.OPENAI_COMPLETIONS,
    WireForm.OPENAI_RESPONSES,
    WireForm.ANTHROPIC,
    WireForm.OLLAMA,
    WireForm.OLLAMA_GENERATE,
    WireForm.GEMINI,
)
HI = {"role": "user", "content": "Hi"}
LEAST: dict[WireForm, dict[str, Any]] = {
    CHAT: {"messages": [HI]},
    COMPLETIONS: {"prompt": "Hi"},
    RESPONSES: {"input": "Hi"},
    MESSAGES: {"messages": [HI], "max_tokens": 9},
    OLLAMA: {"messages": [HI]},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    GENERATE: {"prompt": "Hi"},
}


def read(form: WireForm, **more: Any) -> Incoming:
    return read_request(form, orjson.dumps({"model": "m", **LEAST[form], **more}))


def sent(incoming: Incoming, provider: str, **more: Any) -> HTTPRequest:
    return build_http_request(attrs.evolve(incoming.request, **more), provider, on_unsupported="drop")


@pytest.mark.parametrize("form", WireForm)
def test_the_least_that_can_be_asked(form: WireForm) -> None:
    incoming = read(form)
    is_ollama = form in (OLLAMA, GENERATE)
    least = ChatRequest("Hi", model="m", stream=is_ollama, max_tokens=9 if form is MESSAGES else None)
    assert incoming.request.asked == least
    assert incoming.unread == {}
    assert incoming.form is incoming.request.form is form
    assert read(form, stream=not is_ollama).request.stream is not is_ollama


# Refusals.

WRONG: list[tuple[WireForm, dict[str, Any], str, str]] = [
    (CHAT, {"messages": []}, "messages", "at least one message"),
    (CHAT, {"messages": "Hi"}, "messages", "must be a list, not string"),
    (CHAT, {"messages": ["Hi"]}, "messages[0]", "must be an object, not string"),
    (CHAT, {"messages": [{"role": "narrator", "content": "x"}]}, "messages[0].role", "must be one of system, "),
    (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content", "is missing"),
    (CHAT, {"messages": [{**HI, "content": [{"type": 7}]}]}, "messages[0].content[0].type", "must be a string, not number"),
    (CHAT, {"messages": [{**HI, "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content[0].image_url.url", "is missing"),
    (CHAT, {"model": None}, "model", "is missing"),
    (CHAT, {"model": ""}, "model", "not empty"),
    (CHAT, {"temperature": "hot"}, "temperature", "must be a number, not string"),
    (CHAT, {"temperature": True}, "temperature", "must be a number, not boolean"),
    (CHAT, {"max_completion_tokens": 1.5}, "max_completion_tokens", "must be a whole number"),
    (CHAT, {"stop": 7}, "stop", "must be a string or a list of strings"),
    (CHAT, {"stop": {}}, "stop", "must be a string or a list of strings"),
    (CHAT, {"reasoning_effort": 7}, "reasoning_effort", "must be a string"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function", "not empty"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f"}}] * 2}, "tools", "the same name"),
    (CHAT, {"tool_choice": {"type": "function"}}, "tool_choice.function", "is missing"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}, "response_format.json_schema.schema", "is missing"),
    (CHAT, {"stream": "yes"}, "stream", "must be a boolean"),
    (CHAT, {"n": "two"}, "n", "must be a whole number"),
    (CHAT, {"x" * 99: 1, "stream": 1}, "stream", "must be a boolean"),
    (RESPONSES, {"previous_response_id": "resp_1", "conversation": "kept"}, "previous_response_id", "cannot be used in conjunction with `conversation`"),
    (COMPLETIONS, {"prompt": ["a", "b", "c"]}, "prompt", "holds 3 texts: send a request for each"),
    (COMPLETIONS, {"prompt": [1, 2]}, "prompt", "must be a text, not numbers of tokens"),
    (COMPLETIONS, {"prompt": [[1, 2], [3]]}, "prompt", "must be a text, not numbers of tokens"),
    (COMPLETIONS, {"prompt": [[1, 2]]}, "prompt", "must be a text, not numbers of tokens"),
    (COMPLETIONS, {"prompt": []}, "prompt", "must be one text"),
    (COMPLETIONS, {"prompt": [{}]}, "prompt", "must be one text"),
    (COMPLETIONS, {"prompt": 7}, "prompt", "must be one text"),
    (COMPLETIONS, {"prompt": None}, "prompt", "is missing"),
    (RESPONSES, {"input": []}, "input", "must not be empty"),
    (RESPONSES, {"input": None}, "input", "must not be empty"),
    (RESPONSES, {"input": [{"type": 7}]}, "input[0].type", "must be a string"),
    (RESPONSES, {"input": [{}]}, "input[0].type", "is missing"),
    (RESPONSES, {"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "must be one of"),
    (RESPONSES, {"input": [{"type": "reasoning", "summary": 7}]}, "input[0]", "is not an answer of openai_responses"),
    (MESSAGES, {"messages": []}, "messages", "at least one message"),
    (MESSAGES, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "must be one of user, assistant"),
    (MESSAGES, {"system": [{"type": "image"}]}, "system[0].type", "must be text"),
    (MESSAGES, {"thinking": {"type": "enabled"}}, "thinking.budget_tokens", "is missing"),
    (MESSAGES, {"messages": [{**HI, "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": 1}]}]}, "messages[0].content[0].is_error", "must be a boolean"),
    (OLLAMA, {"messages": [{"role": "developer", "content": "x"}]}, "messages[0].role", "must be one of system, user"),
    (OLLAMA, {"messages": [{**HI, "images": [7]}]}, "messages[0].images[0]", "must be a string"),
    (OLLAMA, {"options": {"temperature": "hot"}}, "options.temperature", "must be a number"),
    (OLLAMA, {"think": 7}, "think", "must be a string"),
    (GEMINI, {"contents": []}, "contents", "at least one content"),
    (GEMINI, {"contents": [{"role": "system", "parts": []}]}, "contents[0].role", "must be one of user, model"),
    (GEMINI, {"contents": [{"role": "model", "parts": []}]}, "contents[0].parts", "at least one part"),
    (GEMINI, {"contents": [{"role": "model", "parts": [{"text": 7}]}]}, "contents[0]", "is not an answer of gemini"),
    (GEMINI, {"contents": [{"parts": [{"inlineData": {}}]}]}, "contents[0].parts[0].inlineData.data", "is missing"),
    (GEMINI, {"systemInstruction": {"parts": [{}]}}, "systemInstruction.parts[0].text", "is missing"),
    (GEMINI, {"generationConfig": {"temperature": "hot"}}, "generationConfig.temperature", "must be a number"),
]  # fmt: skip


NAMELESS: list[tuple[WireForm, dict[str, Any], str, str]] = [
    (CHAT, {"messages": [HI, {"role": "tool", "name": "look", "content": "42"}]}, "messages[1]", "look"),
    (CHAT, {"messages": [HI, {"role": "tool", "tool_call_id": "", "content": "42"}]}, "messages[1]", "a tool"),
    (CHAT, {"messages": [HI, {"role": "tool", "tool_call_id": None, "content": "42"}]}, "messages[1]", "a tool"),
    (RESPONSES, {"input": [{"type": "function_call_output", "name": "look", "output": "42"}]}, "input[0]", "look"),
    (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "", "output": "42"}]}, "input[0]", "function_call_output"),
    (RESPONSES, {"input": [{"type": "custom_tool_call_output", "call_id": "", "output": "42"}]}, "input[0]", "custom_tool_call_output"),
    (RESPONSES, {"input": [{"type": "local_shell_call_output", "id": "", "output": "42"}]}, "input[0]", "local_shell_call_output"),
    (MESSAGES, {"messages": [{**HI, "content": [{"type": "tool_result", "tool_use_id": "", "content": "42"}]}]}, "messages[0].content[0]", "a tool"),
    (MESSAGES, {"messages": [{**HI, "content": [{"type": "tool_result", "content": "42"}]}]}, "messages[0].content[0]", "a tool"),
    (OLLAMA, {"messages": [HI, {"role": "tool", "tool_name": "look", "content": "42"}]}, "messages[1]", "look"),
    (OLLAMA, {"messages": [HI, {"role": "tool", "tool_call_id": "", "content": "42"}]}, "messages[1]", "a tool"),
    (GEMINI, {"contents": [{"parts": [{"functionResponse": {"name": "look", "id": "", "response": {"result": "42"}}}]}]}, "contents[0].parts[0].functionResponse", "look"),
    (GEMINI, {"contents": [{"parts": [{"functionResponse": {"name": "look", "id": "c9", "response": {"result": "42"}}}]}]}, "contents[0].parts[0].functionResponse", "look"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "more", "path", "name"), NAMELESS)
def test_a_result_that_names_no_call_is_told_as_text(
    form: WireForm, more: dict[str, Any], path: str, name: str
) -> None:
    incoming = read(form, **more)
    assert incoming.request.asked.messages[-1] == ChatMessage.user(f"The output of {name}:\n42")
    assert incoming.request.told == (path,)
    assert incoming.unread == {}


def test_a_told_result_keeps_its_pictures() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = {"role": "tool", "tool_call_id": "", "content": [{"type": "text", "text": "seen"}, picture]}
    (told,) = read(CHAT, messages=[message]).request.asked.messages
    assert isinstance(told, ChatMessage)
    assert told.content == (
        TextPart("The output of a tool:"),
        TextPart("seen"),
        ImagePart(data="AAAA", media_type="image/png"),
    )


@pytest.mark.parametrize("more", [{}, {"id": "fc_1"}])
@pytest.mark.parametrize("result", [{"call_id": ""}, {}])
def test_results_answer_calls_without_an_id_in_their_order(
    more: dict[str, Any], result: dict[str, Any]
) -> None:
    calls = [
        {"type": "function_call", "call_id": "", "name": name, "arguments": "{}", **more} for name in "fg"
    ]
    outputs = [{"type": "function_call_output", "output": text, **result} for text in ("1", "2", "3")]
    answer, *results = read(RESPONSES, input=[HI, *calls, *outputs]).request.asked.messages[1:]
    ids = [call.id for call in message_of(answer).tool_calls or ()]
    assert len({*ids}) == 2
    assert [message_of(one).tool_call_id for one in results] == [*ids, None]
    assert message_of(results[-1]).text == "The output of function_call_output:\n3"


def chat_call(name: str, **id: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": "{}"}, **id}


def chat_history(*calls: Any, results: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    answer = {"role": "assistant", "content": "x", "tool_calls": [*calls], **more}
    return {"messages": [HI, answer, *({"role": "tool", **each} for each in results)]}


def messages_history(*blocks: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    told = [{"type": "tool_result", **each} for each in results]
    return {"messages": [HI, {"role": "assistant", "content": [*blocks]}, {"role": "user", "content": told}]}


ONE, TWO = {"content": "1"}, {"content": "2"}
USE = {"type": "tool_use", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SHELL = {
    "type": "local_shell_call",
    "id": "l",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
OUTPUT = {"type": "function_call_output", "output": "1"}
UNNAMED: dict[str, tuple[WireForm, dict[str, Any], dict[str, str]]] = {
    "two calls of Chat": (CHAT, chat_history(chat_call("f", id=""), chat_call("g", id=""), results=[
        ONE | {"tool_call_id": ""}, TWO | {"tool_call_id": ""}]), {"f": "1", "g": "2"}),
    "null": (CHAT, chat_history(chat_call("f", id=None), results=[ONE | {"tool_call_id": None}]), {"f": "1"}),
    "no id": (CHAT, chat_history(chat_call("f"), results=[ONE]), {"f": "1"}),
    "results with the names of tools": (CHAT, chat_history(chat_call("f", id=""), {"id": "", "type": "custom", "custom": {
        "name": "g", "input": "x"}}, results=[TWO | {"name": "g"}, ONE | {"name": "f"}]), {"f": "1", "g": "2"}),
    "an answer with reasoning": (CHAT, chat_history(chat_call("f", id=""), results=[ONE], reasoning_content="hm"), {"f": "1"}),
    "one with an id": (CHAT, chat_history(chat_call("f", id="c1"), chat_call("g", id=""), results=[
        ONE | {"tool_call_id": "c1"}, TWO]), {"f": "1", "g": "2"}),
    "two calls of Messages": (MESSAGES, messages_history(USE | {"id": "", "name": "f"}, USE | {"id": None, "name": "g"}, results=[
        ONE | {"tool_use_id": ""}, TWO]), {"f": "1", "g": "2"}),
    "a call after a thought": (MESSAGES, messages_history(THOUGHT, USE | {"id": "", "name": "f"}, results=[ONE]), {"f": "1"}),
    "a search beside a call": (MESSAGES, messages_history(
        {"type": "server_tool_use", "id": "", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "", "content": []},
        {"type": "web_search_tool_result", "content": []},
        USE | {"id": "", "name": "f"}, results=[ONE]), {"f": "1"}),
    "Responses": (RESPONSES, {"input": [HI, {"type": "function_call", "call_id": "", "name": "f", "arguments": "{}"}, OUTPUT]}, {"f": "1"}),
    "Responses, no id": (RESPONSES, {"input": [HI, {"type": "function_call", "name": "f", "arguments": "{}"}, OUTPUT]}, {"f": "1"}),
    "a shell": (RESPONSES, {"input": [HI, SHELL | {"call_id": ""}, {"type": "local_shell_call_output", "id": "l", "output": "1"}]},
                {"local_shell_call": "1"}),
}  # fmt: skip


def read_of_chat(body: Mapping[str, Any]) -> dict[str, str]:
    """The result of each call in a body of Chat, by its name."""
    turns = body["messages"]
    calls = [call for turn in turns for call in turn.get("tool_calls") or ()]
    names = {call["id"]: call[call["type"]]["name"] for call in calls}
    assert len(names) == len(calls)
    return {names[turn["tool_call_id"]]: turn["content"] for turn in turns if turn["role"] == "tool"}


@pytest.mark.parametrize(("form", "more", "results"), UNNAMED.values(), ids=UNNAMED)
def test_a_call_without_an_id_goes_on_and_gets_one_elsewhere(
    form: WireForm, more: dict[str, Any], results: dict[str, str]
) -> None:
    incoming = read(form, **more)
    own = sent(incoming, form.provider)
    assert more.items() <= own.body.items()
    other = "openai" if form is not CHAT else "anthropic"
    if form is CHAT:
        told = read_request(MESSAGES, orjson.dumps(dict(sent(incoming, other).body)))
        body = sent(told, "openai").body
    else:
        body = sent(incoming, other).body
    assert read_of_chat(body) == results
    assert "not run" not in orjson.dumps(dict(body)).decode()


def test_a_result_answers_no_call_of_an_answer_before_the_last() -> None:
    first, second = ({"role": "assistant", "tool_calls": [chat_call(name, id="")]} for name in "fg")
    incoming = read(CHAT, messages=[HI, first, HI, second, {"role": "tool", "content": "2"}])
    calls = [call for turn in incoming.request.asked.messages for call in message_of(turn).tool_calls or ()]
    assert [call.name for call in calls] == ["f", "g"]
    assert message_of(incoming.request.asked.messages[-1]).tool_call_id == calls[1].id
    items = [{"type": "function_call", "call_id": "", "name": name, "arguments": "{}"} for name in "fg"]
    incoming = read(RESPONSES, input=[items[0], HI, items[1], OUTPUT])
    last = message_of(incoming.request.asked.messages[-2]).tool_calls
    assert last is not None
    assert message_of(incoming.request.asked.messages[-1]).tool_call_id == last[0].id


@pytest.mark.parametrize("call", ["f", {"type": "function", "function": "f"}])
def test_what_is_no_call_is_refused_as_before(call: Any) -> None:
    with pytest.raises(BadRequestError, match=r"messages\[0\].tool_calls\[0\]"):
        read(CHAT, messages=[{"role": "assistant", "tool_calls": [call]}])


@pytest.mark.parametrize(("form", "more", "path", "problem"), WRONG)
def test_a_wrong_request_is_refused_with_its_place(
    form: WireForm, more: dict[str, Any], path: str, problem: str
) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(form, **more)
    assert caught.value.path == path
    assert problem in caught.value.problem
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("body", "problem", "status"),
    [
        (b"[]", "must be an object, not array", 400),
        (b"{", "the body is not JSON", 400),
        (b"\xff", "the body is not JSON", 400),
        (b'{"model":"m","model":"n"}', "a key is repeated", 400),
        (b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", "the request is nested deeper than 200 levels", 400),
        (b'{"a":"' + b"x" * 99 + b'"}', "the request is longer than 90 bytes", 413),
    ],
)
def test_a_body_that_is_none_is_refused(body: bytes, problem: str, status: int) -> None:
    limits = Limits(line_bytes=90) if b"xxx" in body else None
    with pytest.raises(BadRequestError, match=problem) as caught:
        read_request(CHAT, body, limits)
    assert (caught.value.status, caught.value.path) == (status, "")


def test_no_message_quotes_what_the_client_says() -> None:
    for form, more, _, _ in WRONG:
        with pytest.raises(BadRequestError) as caught:
            read(form, **{"secret": "sk-123", **more})
        assert "sk-123" not in str(caught.value)
        assert "hot" not in str(caught.value)


# Chat Completions.


def test_parts_that_nobody_knows_stay_where_they_are() -> None:
    video = {"type": "hologram", "hologram": {"url": "https://example.org/a.mp4"}}
    given = [{"type": "text", "text": "a", "mark": 1}, video, {"type": "text", "text": "b"}, video]
    incoming = read(CHAT, messages=[{**HI, "content": given}, {**HI, "content": [video]}])
    told = TextPart(json.dumps(video, separators=(",", ":")))
    assert incoming.request.messages[0] == ChatMessage.user([TextPart("a"), told, TextPart("b"), told])
    assert incoming.unread == {"messages[0].content[0].mark": 1}
    # The servers of the dialect get what the client has said.
    for provider in ("openai", "vllm"):
        built = sent(incoming, provider)
        assert [message["content"] for message in built.body["messages"]] == [given, [video]]
        assert built.adaptations == ()
    # Any other is told.
    built = sent(incoming, "anthropic")
    (message,) = built.body["messages"]
    assert [part["text"] for part in message["content"]] == ["a", told.text, "b", told.text, told.text]
    assert [one.field for one in built.adaptations if one.kind == "told"] == [
        "messages[0].content[1]",
        "messages[0].content[3]",
        "messages[1].content[0]",
    ]
    with pytest.raises(UnsupportedRequestError, match=r"messages\[0\].content\[0\].mark"):
        build_http_request(incoming.request, "anthropic")


def test_what_is_said_of_calls_and_tools_beside_functions_stays() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}
    turn = {"role": "assistant", "content": "x", "tool_calls": [call]}
    tool = {"type": "custom", "custom": {"name": "f"}}
    choice = {"type": "allowed_tools", "allowed_tools": {}}
    messages = [HI, turn, {"role": "tool", "tool_call_id": "c", "content": "y"}]
    incoming = read(
        CHAT, messages=messages, tools=[tool], tool_choice=choice, response_format={"type": "grammar"}
    )
    assert incoming.unread == {"tool_choice": choice, "response_format": {"type": "grammar"}}
    assert incoming.custom_tools == {"f"}
    assert sent(incoming, "openai").body["tools"] == [tool]
    assert sent(incoming, "openai").body["messages"][1]["tool_calls"] == [call]
    assert sent(incoming, "vllm").body["tools"][0]["function"]["name"] == "f"
    assert sent(incoming, "vllm").body["tool_choice"] == choice


def test_words_that_nobody_knows_stay() -> None:
    incoming = read(CHAT, reasoning_effort="extreme", tool_choice="perhaps", response_format={"type": "text"})
    assert incoming.unread == {"reasoning_effort": "extreme", "tool_choice": "perhaps"}
    assert sent(incoming, "vllm").body["reasoning_effort"] == "extreme"


def test_an_image_may_be_a_text_and_its_detail_auto() -> None:
    url = "https://example.org/a.png"
    parts = [
        {"type": "image_url", "image_url": url},
        {"type": "image_url", "image_url": {"url": url, "detail": "auto"}},
    ]
    incoming = read(CHAT, messages=[{**HI, "content": parts}])
    assert incoming.unread == {}
    assert incoming.request.messages[0] == ChatMessage.user(
        [ImagePart(url=url), ImagePart(url=url, detail="auto")]
    )


def test_the_reasoning_of_an_answer_goes_back_to_servers_of_the_dialect_alone() -> None:
    turn = {
        "role": "assistant",
        "content": [{"type": "text", "text": "four"}, {"type": "refusal", "refusal": "!"}],
        "reasoning_content": "two and two",
        "name": "bob",
    }
    incoming = read(CHAT, messages=[HI, turn, HI])
    assert isinstance(incoming.request.messages[1], ChatResponse)
    assert incoming.unread == {"messages[1].name": "bob"}
    assert sent(incoming, "vllm").body["messages"][1]["reasoning"] == "two and two"
    assert [d.field for d in sent(incoming, "vllm").dropped] == []
    # Reasoning is no reason to refuse the request, and it is recorded all the same.
    built = build_http_request(incoming.without("messages[1].name").request, "anthropic")
    assert [(d.field, d.refuses, d.reason) for d in built.dropped] == [
        ("messages[1]", False, "reasoning of another provider (openai)")
    ]
    assert "two and two" not in str(built.body)


def test_an_answer_with_reasoning_keeps_its_custom_calls() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}
    turn = {"role": "assistant", "content": None, "reasoning": "Hm.", "tool_calls": [call]}
    incoming = read(CHAT, messages=[HI, turn, {"role": "tool", "tool_call_id": "c", "content": "y"}])
    items = sent(incoming, "openai_responses").body["input"]
    assert items[1] == {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}
    assert items[2]["type"] == "custom_tool_call_output"


def test_an_option_that_is_null_says_nothing() -> None:
    assert read_request(CHAT, orjson.dumps(LEAST[CHAT] | {"model": "m", "seed": None})).request.seed is None


def test_an_unknown_object_is_not_told_to_a_kindred_api() -> None:
    body = orjson.dumps(LEAST[COMPLETIONS] | {"model": "m", "acme": {"a": 1}})
    with pytest.raises(UnsupportedRequestError, match="acme"):
        build_http_request(read_request(COMPLETIONS, body).request, "openai")


def test_defaults_need_no_place() -> None:
    said = {"n": 1, "logprobs": False, "service_tier": "auto"}
    incoming = read(CHAT, **said)
    assert incoming.wants.defaults == said
    assert incoming.unread == {}
    assert build_http_request(incoming.request, "anthropic").dropped == ()
    assert read(CHAT, n=2).unread == {"n": 2}


def test_what_is_beside_the_answer_is_recorded_and_no_reason_to_refuse() -> None:
    incoming = read(CHAT, user="u", metadata={"job": "a"}, prompt_cache_key="k")
    built = build_http_request(incoming.request, "anthropic")
    assert built.body["metadata"] == {"user_id": "u"}
    assert {(d.field, d.reason) for d in built.dropped} == {
        ("metadata", "Messages has no such option"),
        ("prompt_cache_key", "Messages has no such option"),
    }
    with pytest.raises(UnsupportedRequestError, match="logit_bias"):
        build_http_request(read(CHAT, logit_bias={"5": 1}).request, "anthropic")


# What somebody changes on the way.


def test_its_own_provider_gets_what_was_changed_and_all_else_as_it_was_said() -> None:
    turns = [{"role": "developer", "content": "Be brief."}, {**HI, "new": 1}]
    incoming = read(
        CHAT,
        messages=turns,
        max_completion_tokens=5,
        seed=3,
        stream_options={"include_usage": False, "new": 2},
    )
    body = sent(incoming, "openai", model="other", max_tokens=7, seed=None, temperature=0.5, stream=True).body
    assert body == {
        "messages": turns,
        "model": "other",
        "max_completion_tokens": 7,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True, "new": 2},
    }
    said = sent(read(CHAT, max_tokens=5), "openai", max_tokens=7).body
    assert (said["max_completion_tokens"], "max_tokens" in said) == (7, False)


def test_options_of_the_target_are_added() -> None:
    incoming = read(CHAT, new=1)
    request = attrs.evolve(incoming.request, provider_options={"vllm": {"min_p": 0.5}})
    assert build_http_request(request, "vllm").body.items() >= {"min_p": 0.5, "new": 1}.items()


def test_where_the_conversation_was_changed_what_stood_in_it_is_named() -> None:
    incoming = read(CHAT, messages=[{**HI, "new": 1}])
    longer = [ChatMessage.system("Be brief."), *incoming.request.messages]
    built = sent(incoming, "vllm", messages=longer)
    assert [dropped.field for dropped in built.dropped] == ["messages[0].new"]
    assert "new" not in str(built.body)


def test_what_has_no_place_leaves_no_trace() -> None:
    tools = [{"type": "function", "function": {"name": "f"}, "new": 1}]
    incoming = read(
        CHAT, tools=tools, messages=[{**HI, "content": [{"type": "text", "text": "a", "new": 2}]}]
    )
    built = sent(incoming, "vllm", tools=(), messages=(ChatMessage.user("a"),))
    assert built.body == {"model": "m", "messages": [HI | {"content": "a"}]}
    assert [dropped.field for dropped in built.dropped] == ["messages[0].content[0].new", "tools[0].new"]


def test_what_the_request_says_itself_is_not_said_otherwise() -> None:
    incoming = read(CHAT, max_tokens=5, max_completion_tokens=7)
    assert incoming.request.max_tokens == 7
    built = sent(incoming, "vllm")
    assert built.body["max_tokens"] == 7
    assert [dropped.field for dropped in built.dropped] == ["max_tokens"]


def test_what_the_gateway_sees_to_goes_to_nobody() -> None:
    incoming = read(RESPONSES, previous_response_id="r", store=False, new=1)
    assert (incoming.wants.previous_response_id, incoming.wants.store) == ("r", False)
    settled = incoming.without("previous_response_id", "store")
    assert settled.unread == {"new": 1}
    assert sent(settled, "openai_responses").body == {"model": "m", "input": "Hi", "new": 1}
    assert settled.wants == incoming.wants


# Completions.


def test_a_list_of_one_prompt_is_a_prompt() -> None:
    incoming = read(COMPLETIONS, prompt=["Once"], stop="END", logprobs=2, presence_penalty=0.5)
    assert incoming.request.asked == ChatRequest("Once", model="m", stop=["END"])
    assert incoming.unread == {"logprobs": 2, "presence_penalty": 0.5}
    built = sent(incoming, "openai")
    assert built.body["presence_penalty"] == 0.5
    assert [dropped.field for dropped in built.dropped] == ["logprobs"]


# Responses.


def test_items_of_an_answer_are_that_answer() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    result = {"type": "function_call_output", "call_id": "c", "output": "7"}
    incoming = read(RESPONSES, input=[{"role": "user", "content": "?"}, *items, result])
    (_, answer, _) = incoming.request.messages
    assert isinstance(answer, ChatResponse)
    assert answer.tool_calls == (ToolCall("c", "f", "{}"),)
    assert sent(incoming, "openai_responses").body["input"][1:] == [*items, result]


def test_texts_and_calls_out_of_order_are_an_answer_too() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    said = {"role": "assistant", "content": "Wait."}
    (turn,) = read(RESPONSES, input=[call, said]).request.messages
    assert isinstance(turn, ChatResponse)
    assert turn.text == "Wait."
    (plain,) = read(RESPONSES, input=[said, call]).request.messages
    assert plain == ChatMessage.assistant("Wait.", tool_calls=[ToolCall("c", "f", "{}")])


def test_tools_and_choices_of_responses() -> None:
    tools = [
        {"type": "web_search_preview"},
        {"type": "web_search"},
        {"type": "code_interpreter", "container": "cntr_1"},
    ]
    choice = {"type": "web_search"}
    incoming = read(
        RESPONSES,
        tools=tools,
        tool_choice=choice,
        text={"format": {"type": "json_object"}, "verbosity": "medium"},
        instructions=[{"role": "user", "content": "x"}],
    )
    assert [tool.kind for tool in incoming.request.hosted_tools] == ["web_search"]
    assert incoming.request.response_format is not None
    assert incoming.request.response_format.schema is None
    assert incoming.unread == {
        "tools[0].type": "web_search_preview",
        "tools[1]": tools[1],
        "tools[2]": tools[2],
        "tool_choice": choice,
        "instructions": [{"role": "user", "content": "x"}],
    }
    assert read(RESPONSES, text={"format": {"type": "text"}}).request.response_format is None
    assert read(RESPONSES, text={"format": {"type": "grammar"}}).unread == {
        "text.format": {"type": "grammar"}
    }
    assert read(RESPONSES, tool_choice="required").request.tool_choice == "required"


def test_what_has_no_part_stays_in_responses() -> None:
    parts = [
        {"type": "input_image", "file_id": "f"},
        {"type": "input_audio", "data": "x"},
        {"type": "input_text", "text": "a"},
    ]
    incoming = read(RESPONSES, input=[{"role": "user", "content": parts}])
    assert incoming.unread == {"input[0].content[0]": parts[0]}
    assert incoming.request.messages[0].text == '{"type":"input_audio","data":"x"}a'


# Messages.


@pytest.mark.parametrize(
    ("thinking", "config", "effort", "unread"),
    [
        ({"type": "disabled"}, {"effort": "low"}, ReasoningEffort.NONE, {"output_config.effort": "low"}),
        ({"type": "adaptive"}, {}, ReasoningEffort.HIGH, {}),
        ({"type": "adaptive"}, {"effort": "xhigh"}, ReasoningEffort.XHIGH, {}),
        ({"type": "enabled", "budget_tokens": 4096}, {}, ReasoningEffort.LOW, {"thinking.budget_tokens": 4096}),
        ({"type": "enabled", "budget_tokens": 9999}, {}, ReasoningEffort.MEDIUM, {"thinking.budget_tokens": 9999}),
        ({"type": "enabled", "budget_tokens": 50000}, {}, ReasoningEffort.HIGH, {"thinking.budget_tokens": 50000}),
        ({"type": "deep"}, {}, None, {"thinking": {"type": "deep"}}),
        (None, {"effort": "max"}, ReasoningEffort.MAX, {}),
        (None, {"effort": "most"}, None, {"output_config.effort": "most"}),
        (None, {"format": {"type": "grammar"}}, None, {"output_config.format": {"type": "grammar"}}),
    ],
)  # fmt: skip
def test_thinking_is_an_effort(
    thinking: Any, config: Any, effort: ReasoningEffort | None, unread: dict[str, Any]
) -> None:
    incoming = read(MESSAGES, thinking=thinking, output_config=config)
    assert incoming.request.reasoning_effort is effort
    assert incoming.unread == unread


def test_marks_for_the_cache_stand_where_they_can() -> None:
    mark = {"type": "ephemeral"}
    blocks = [
        {"type": "text", "text": "a", "cache_control": mark},
        {"type": "text", "text": "b", "cache_control": mark},
    ]
    tool = {"name": "f", "input_schema": {"type": "object"}, "cache_control": mark}
    said = {"role": "assistant", "content": [{"type": "text", "text": "c", "cache_control": mark}]}
    incoming = read(
        MESSAGES,
        messages=[
            {**HI, "content": blocks},
            said,
            {**HI, "content": [{"type": "text", "text": "d", "cache_control": {"type": "eternal"}}]},
        ],
        tools=[tool, {**tool, "name": "g"}],
        system=[{"type": "text", "text": "x", "cache_control": mark}, {"type": "text", "text": "y"}],
    )
    marks = {CacheMark(0), CacheMark(2, part=0), CacheMark(2), CacheMark(3), CacheMark("tools")}
    assert set(incoming.request.cache_marks) == marks
    assert incoming.unread == {
        "messages[2].content[0].cache_control": {"type": "eternal"},
        "tools[0].cache_control": mark,
    }


def test_results_and_words_of_the_user_are_turns_in_their_order() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "text", "text": "7"}, {"type": "browser_state"}],
    }
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    text = {"type": "text", "text": "well"}
    incoming = read(MESSAGES, messages=[HI, call, {"role": "user", "content": [text, result, text]}])
    assert incoming.request.messages[2:] == (
        ChatMessage.user([TextPart("well")]),
        ChatMessage.tool_result("t", [TextPart("7"), TextPart('{"type":"browser_state"}')]),
        ChatMessage.user([TextPart("well")]),
    )
    assert incoming.unread == {}
    assert incoming.request.told == ("messages[2].content[1].content[1]",)


def test_the_system_may_speak_in_between() -> None:
    given = [
        HI,
        {"role": "system", "content": "Now."},
        {"role": "system", "content": [{"type": "text", "text": "Here."}]},
    ]
    turns = read(MESSAGES, messages=given).request.messages
    assert turns[1:] == (ChatMessage.system("Now."), ChatMessage.system([TextPart("Here.")]))


def test_an_answer_of_thoughts_alone_has_no_mark() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s", "cache_control": {"type": "ephemeral"}}
    ]
    incoming = read(MESSAGES, messages=[HI, {"role": "assistant", "content": blocks}, HI])
    assert incoming.request.cache_marks == ()


def test_tools_and_choices_of_messages() -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    incoming = read(
        MESSAGES,
        tools=[
            bash,
            {"type": "code_execution_20250825", "name": "code_execution"},
            {"type": "web_search_20990101", "name": "w"},
        ],
        tool_choice={"type": "some", "n": 1},
    )
    assert [tool.kind for tool in incoming.request.hosted_tools] == ["code_execution", "web_search"]
    assert [tool.name for tool in incoming.request.tools] == ["bash"]
    assert incoming.unread == {
        "tools[2].type": "web_search_20990101",
        "tools[2].name": "w",
        "tool_choice": {"type": "some", "n": 1},
    }
    assert read(MESSAGES, tool_choice={"type": "any"}).request.tool_choice == "required"


# Ollama.


def test_calls_and_results_without_ids_get_some() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    other = {"function": {"name": "g", "arguments": {}}, "type": "odd"}
    incoming = read(
        OLLAMA,
        messages=[
            HI,
            {"role": "assistant", "content": "", "tool_calls": [call, other]},
            {"role": "tool", "tool_name": "g", "content": "2"},
            {"role": "tool", "content": "1"},
            {"role": "assistant", "content": "", "thinking": "hm"},
            {"role": "tool", "tool_call_id": "far", "tool_name": "h", "content": "3"},
        ],
        tools=[{"type": "odd", "function": {"name": "f"}}],
    )
    turns = incoming.request.messages
    assert turns[1].tool_calls == (ToolCall("call_1_0", "f", '{"a":1}'), ToolCall("call_1_1", "g", "{}"))
    assert [turn.tool_call_id for turn in (turns[2], turns[3], turns[5])] == ["call_1_1", "call_1_0", "far"]
    assert [turn.name for turn in (turns[2], turns[3], turns[5])] == [None, None, "h"]
    assert incoming.unread == {"messages[1].tool_calls[1].type": "odd", "tools[0].type": "odd"}


def test_what_ollama_shares_between_its_endpoints_goes_along() -> None:
    incoming = read(GENERATE, options={"num_ctx": 9, "top_k": 0}, keep_alive="5m", template="x", stream=False)
    built = sent(incoming, "ollama")
    assert built.path == "/api/chat"
    assert built.body["options"] == {"num_ctx": 9, "top_k": 0}
    assert built.body["keep_alive"] == "5m"
    assert [dropped.field for dropped in built.dropped] == ["template"]


def test_one_text_may_be_the_stop_of_ollama() -> None:
    assert read(OLLAMA, options={"stop": "END"}).request.stop == ("END",)
    assert read(OLLAMA, format="json").request.response_format is not None
    assert read(OLLAMA, format="yaml").unread == {"format": "yaml"}
    assert read(OLLAMA, think=False).request.reasoning_effort is ReasoningEffort.NONE
    assert read(OLLAMA, think=True).unread == {"think": True}
