"""The way back: each part of an earlier answer goes to its owner again, or the request names it as left out."""

from __future__ import annotations

from typing import Any

import attrs
import httpx2
import orjson
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    CitationRef,
    ImagePart,
    Segment,
    SegmentType,
    TextPart,
    ToolCall,
    from_json,
    normalize,
    registry,
    to_json,
)
from crosswalk.agent import ChatSession, keep_turns
from crosswalk.config import Settings
from crosswalk.plugins import OpenAIChatDialect, dump_json, hookimpl, message_of
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    HTTPRequest,
    SyncLLMService,
    ToolDefinition,
    UnsupportedRequestError,
    adaptations_of,
    build_http_request,
)
from wires import body, registry_of, sse

USER, MORE = ChatMessage.user("Which boat?"), ChatMessage.user("And tomorrow?")
RESULT = ChatMessage.tool_result("t1", "at nine")
CALL = {"id": "t1", "type": "function", "function": {"name": "ferry", "arguments": '{"day":1}'}}
PNG = "iVBORw0KGgo="
PLAIN = ["dashscope", "deepseek", "llamacpp", "minimax", "moonshot", "ollama", "openrouter", "sglang", "vllm", "zai"]  # fmt: skip
"""The providers that take plain reasoning of any model."""
EVERYBODY = sorted(entry.name for entry in registry.providers())


def chat(finish: str = "stop", **message: Any) -> dict[str, Any]:
    return body({"content": None, **message}, finish)


def claude(*content: Any, stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        **more,
    }


def gemini(*parts: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}
    return {"candidates": [candidate], "responseId": "r", "modelVersion": "g"}


def responses(*output: Any, **more: Any) -> dict[str, Any]:
    about = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "g"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {**about, "output": list(output), "usage": usage, **more}


def bedrock(*content: Any) -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    }


def cohere(**message: Any) -> dict[str, Any]:
    usage = {"tokens": {"input_tokens": 1, "output_tokens": 1}}
    return {
        "id": "x",
        "message": {"role": "assistant", **message},
        "finish_reason": "COMPLETE",
        "usage": usage,
    }


def ollama(**message: Any) -> dict[str, Any]:
    about = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
    return {**about, "message": {"role": "assistant", "content": "", **message}}


def answer(provider: str, payload: Any, **options: Any) -> ChatResponse:
    raw = payload if isinstance(payload, bytes) else dump_json(payload)
    return normalize(raw, provider, unknown="keep", **options)


def request(*turns: Any, to: str, model: str = "m", **options: Any) -> HTTPRequest:
    return build_http_request(ChatRequest(turns, model=model, **options), to, on_unsupported="drop")


def back(provider: str, payload: Any, *after: Any, to: str | None = None, **options: Any) -> HTTPRequest:
    """The next request after an answer. The same where it was stored, forked, trimmed, or its bytes were not kept."""
    first = answer(provider, payload)
    built = request(USER, first, *(after or (MORE,)), to=to or provider, **options)
    session = ChatSession([USER, first])
    trimmed = ChatSession([MORE, ChatMessage.assistant("At nine."), USER, first])
    trimmed.trim(keep_turns(1))
    assert len(trimmed.turns) == 2
    copies = (
        trimmed.turns[1],
        from_json(to_json(first), ChatResponse),
        answer(provider, payload, keep_raw=False),
        ChatSession.from_json(session.to_json()).turns[1],
        session.fork().turns[1],
    )
    for copy in copies:
        again = request(USER, copy, *(after or (MORE,)), to=to or provider, **options)
        assert (again.body, again.dropped) == (built.body, built.dropped)
    return built


def turns(built: HTTPRequest) -> list[dict[str, Any]]:
    body = built.body
    found: list[dict[str, Any]] = body.get("messages") or body.get("contents") or body["input"]
    return found


def named(built: HTTPRequest) -> list[tuple[str, str]]:
    return [(one.field, one.reason) for one in built.adaptations if one.kind.value != "defaulted"]


def said(built: HTTPRequest) -> str:
    return orjson.dumps(built.body).decode()


# ------------------------------------------------------------------------------------------ state of the provider

CHAT_LIKE = [
    "cloudflare", "dashscope", "deepseek", "fireworks", "groq", "llamacpp", "lmstudio", "minimax", "mistral", "moonshot",
    "openai", "openrouter", "sglang", "tgi", "together", "vllm", "xai", "zai",
]  # fmt: skip


@pytest.mark.parametrize("provider", CHAT_LIKE)
def test_fields_beside_a_message_and_its_calls_go_back(provider: str) -> None:
    call = {**CALL, "id": "callNo1AB", "seal": {"of": "S1"}}
    call["function"] = {**CALL["function"], "hint": 7}  # type: ignore[dict-item]
    built = back(
        provider, chat("tool_calls", plan="P", tool_calls=[call]), ChatMessage.tool_result("callNo1AB", "1")
    )
    message = turns(built)[1]
    assert message["plan"] == "P"
    assert message["tool_calls"][0]["seal"] == {"of": "S1"}
    assert message["tool_calls"][0]["function"]["hint"] == 7
    assert built.dropped == ()


def test_fields_of_a_stream_go_back_whole() -> None:
    chunks = [
        {"role": "assistant", "content": "", "plan": "P"},
        {"plan": "Q", "tool_calls": [{"index": 0, **CALL, "seal": "S1"}]},
        {"tool_calls": [{"index": 1, **CALL, "id": "t2", "seal": "S2"}]},
    ]
    events = [
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        for delta in chunks
    ]
    events[-1]["choices"][0]["finish_reason"] = "tool_calls"  # type: ignore[index]
    built = back("openai", sse(*events), RESULT, ChatMessage.tool_result("t2", "2"))
    message = turns(built)[1]
    assert message["plan"] == "PQ"
    assert [call["seal"] for call in message["tool_calls"]] == ["S1", "S2"]


UNKNOWN = {"type": "brand_new", "content": "N", "data": {"deep": [1, "x"]}}


def test_a_block_that_no_hook_knows_goes_back_at_its_place() -> None:
    content = [
        {"type": "text", "text": "One."},
        UNKNOWN,
        {"type": "text", "text": "Two.", "seal": "S"},
        {"type": "tool_use", "id": "t1", "name": "ferry", "input": {"day": 1}, "seal": "T"},
    ]
    built = back("anthropic", claude(*content, stop="tool_use"), RESULT)
    assert turns(built)[1]["content"] == content
    assert built.dropped == ()


def test_a_block_that_was_streamed_goes_back_at_its_place() -> None:
    events = [
        {"type": "message_start", "message": claude(stop=None)},  # type: ignore[arg-type]
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "One."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": UNKNOWN},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Two."}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    built = back("anthropic", sse(*events, done=False))
    assert turns(built)[1]["content"] == [
        {"type": "text", "text": "One."},
        UNKNOWN,
        {"type": "text", "text": "Two."},
    ]


def test_a_part_that_no_hook_knows_goes_back_to_gemini() -> None:
    parts = [
        {"text": "One."},
        {"brandNew": {"a": 1}},
        {"functionCall": {"id": "t1", "name": "ferry", "args": {}, "hint": 7}, "thoughtSignature": "U0lH"},
    ]
    built = back("gemini", gemini(*parts), RESULT)
    assert turns(built)[1]["parts"] == parts
    assert built.dropped == ()


def test_a_block_that_no_hook_knows_goes_back_to_bedrock() -> None:
    content = [
        {"brandNew": {"a": 1}},
        {"text": "One."},
        {"toolUse": {"toolUseId": "t1", "name": "ferry", "input": {"day": 1}, "hint": 7}},
        {"reasoningContent": {"reasoningText": {"text": "Unsigned."}}},
    ]
    built = back("bedrock", bedrock(*content), RESULT)
    assert turns(built)[1]["content"] == content
    assert built.dropped == ()


def test_citations_go_back_to_bedrock() -> None:
    cited = {
        "citationsContent": {
            "content": [{"text": "At nine."}],
            "citations": [{"title": "Timetable", "location": {"web": {"url": "https://ferry.example"}}}],
        }
    }
    assert turns(back("bedrock", bedrock(cited)))[1]["content"] == [cited]


def test_fields_of_a_message_go_back_to_cohere_and_ollama() -> None:
    citation = {"start": 0, "end": 2, "text": "At", "sources": [{"type": "tool", "id": "s1"}]}
    message = {"content": [{"type": "text", "text": "At nine."}], "citations": [citation], "more": "M"}
    sent = turns(back("cohere", cohere(**message)))[1]
    assert (sent["citations"], sent["more"]) == ([citation], "M")
    call = {"id": "t1", "function": {"name": "ferry", "arguments": {"day": 1}}, "seal": "S"}
    sent = turns(back("ollama", ollama(thinking="Hm.", more="M", tool_calls=[call]), RESULT))[1]
    assert sent == {"role": "assistant", "content": "", "thinking": "Hm.", "more": "M", "tool_calls": [call]}


def test_an_unknown_item_goes_back_to_responses() -> None:
    item = {"id": "bn_1", "type": "brand_new", "payload": {"a": 1}}
    text = {"type": "output_text", "text": "Nine.", "annotations": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    assert turns(back("openai_responses", responses(item, message)))[1:3] == [item, message]


STATEFUL = [
    ("openai", chat("tool_calls", plan="P", tool_calls=[{**CALL, "seal": "S1"}]), "plan, seal"),
    ("anthropic", claude({"type": "text", "text": "Hi"}, UNKNOWN, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}), "content, deep, type"),
    ("gemini", gemini({"text": "Hi", "thoughtSignature": "U0lH"}, {"functionCall": {"id": "t1", "name": "f", "args": {}}}), "signature"),
    ("bedrock", bedrock({"brandNew": {"a": 1}}, {"toolUse": {"toolUseId": "t1", "name": "f", "input": {}}}), "a"),
    ("cohere", cohere(content=[{"type": "text", "text": "Hi"}], more="M", tool_calls=[CALL]), "more"),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(("provider", "payload", "keys"), STATEFUL, ids=[row[0] for row in STATEFUL])
@pytest.mark.parametrize("to", EVERYBODY)
def test_state_of_another_provider_is_left_out_and_named(
    provider: str, payload: Any, keys: str, to: str
) -> None:
    if to == provider:
        return
    built = back(provider, payload, RESULT, to=to)
    assert ("messages[1]", f"state of another provider ({provider}): {keys}") in named(built)
    for opaque in ("S1", "brand_new", "U0lH", "brandNew", '"more"', '"plan"'):
        assert opaque not in said(built)


# ------------------------------------------------------------------------------------------ state beside the message


def use(**more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": "ferry", "input": {}, **more}


RUN = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {"code": "x"}}
CALLER = use(caller={"type": "code_execution_20250825", "tool_id": "s1"})


@pytest.mark.parametrize(
    ("container", "sent"),
    [
        ({"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"}, "container_1"),
        ({"id": "container_1"}, "container_1"),
        ({"id": "container_1", "expires_at": "2020-01-01T00:00:00Z"}, None),
        (None, None),
    ],
)
def test_a_container_goes_back_while_it_lasts(container: Any, sent: str | None) -> None:
    built = back("anthropic", claude(RUN, CALLER, stop="tool_use", container=container), RESULT)
    assert built.body.get("container") == sent
    expired = ("messages[1]", "the container has expired")
    assert (expired in named(built)) is bool(container and not sent)
    assert "container" not in back("anthropic", claude(use(), container=container), RESULT, to="openai").body


def test_a_container_that_the_caller_names_counts() -> None:
    first = answer("anthropic", claude(RUN, CALLER, container={"id": "container_1"}))
    options = {"anthropic": {"container": "container_2"}}
    assert (
        request(USER, first, RESULT, to="anthropic", provider_options=options).body["container"]
        == "container_2"
    )


TEXT = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Nine.", "annotations": []}],
}


def test_the_answer_before_the_conversation_goes_along() -> None:
    built = back("openai_responses", responses(TEXT, previous_response_id="resp_0"))
    assert built.body["previous_response_id"] == "resp_0"
    assert len(turns(built)) == 3
    zero = answer("openai_responses", responses(TEXT, id="resp_0"))
    one = answer("openai_responses", responses(TEXT, previous_response_id="resp_0"))
    assert "previous_response_id" not in request(USER, zero, USER, one, MORE, to="openai_responses").body


def test_a_conversation_that_the_server_keeps_goes_on() -> None:
    built = back("openai_responses", responses(TEXT, conversation={"id": "conv_1"}))
    assert built.body["conversation"] == "conv_1"
    assert len(turns(built)) == 1
    assert {option for option, _ in named(built)} == {"messages[0]", "messages[1]"}


# ------------------------------------------------------------------------------------------ reasoning

UNSIGNED = {
    "anthropic": claude({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Nine."}),
    "bedrock": bedrock({"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "Nine."}),
    "cohere": cohere(content=[{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Nine."}]),
    "gemini": gemini({"text": "Hm.", "thought": True}, {"text": "Nine."}),
    "mistral": chat(
        content=[
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "Nine."},
        ]
    ),
    "ollama": ollama(content="Nine.", thinking="Hm."),
    "openai_responses": responses(
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}, TEXT
    ),
    **{name: chat(content="Nine.", reasoning_content="Hm.") for name in CHAT_LIKE if name != "mistral"},
}


def unsigned(provider: str) -> Any:
    return UNSIGNED.get(provider, chat(content="Nine.", reasoning_content="Hm."))


@pytest.mark.parametrize("provider", EVERYBODY)
def test_reasoning_goes_back_to_who_has_thought_it(provider: str) -> None:
    built = back(provider, unsigned(provider))
    assert "Hm." in said(built)
    assert built.dropped == ()


@pytest.mark.untraced
@pytest.mark.parametrize("to", EVERYBODY)
@pytest.mark.parametrize("provider", ["anthropic", "vllm", "openai_responses"])
def test_plain_reasoning_goes_to_who_takes_it(provider: str, to: str) -> None:
    if to == provider:
        return
    built = back(provider, unsigned(provider), to=to)
    assert ("Hm." in said(built)) is (to in PLAIN)
    assert (("messages[1]", f"reasoning of another provider ({provider})") in named(built)) is (
        to not in PLAIN
    )


@pytest.mark.parametrize("provider", ["deepseek", "moonshot"])
@pytest.mark.parametrize(("reasoning", "sent"), [("Hm.", "Hm."), ("", " "), (None, " ")])
def test_a_call_without_reasoning_is_never_refused_for_it(
    provider: str, reasoning: str | None, sent: str
) -> None:
    built = back("vllm", chat("tool_calls", reasoning=reasoning, tool_calls=[CALL]), RESULT, to=provider)
    assert turns(built)[1]["reasoning_content"] == sent
    assert (
        "reasoning_content" not in turns(request(USER, answer("vllm", chat(content="Nine.")), to=provider))[1]
    )


SEALED = [
    ("anthropic", claude({"type": "thinking", "thinking": "Hm.", "signature": "SIG"}, {"type": "text", "text": "Nine."})),
    ("anthropic", claude({"type": "redacted_thinking", "data": "SIG"}, {"type": "text", "text": "Nine."})),
    ("openrouter", chat(content="Nine.", reasoning="Hm.", reasoning_details=[{"type": "reasoning.text", "text": "Hm.", "signature": "SIG", "index": 0}])),
    ("openai_responses", responses({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "SIG"}, TEXT)),
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize(("provider", "payload"), SEALED)
@pytest.mark.parametrize("to", EVERYBODY)
def test_signed_reasoning_is_for_its_owner(provider: str, payload: Any, to: str) -> None:
    built = back(provider, payload, to=to)
    assert ("SIG" in said(built)) is (to == provider)
    assert ("Hm." in said(built)) <= (to == provider)
    assert bool(built.dropped) is (to != provider)


def test_thinking_without_a_signature_is_none_for_anthropics_own_server() -> None:
    cut = claude({"type": "thinking", "thinking": "Hm."}, stop="max_tokens")
    built = back("anthropic", cut)
    assert "Hm." not in said(built)
    assert sorted(named(built)) == [
        ("messages[1]", "reasoning that was cut before its signature"),
        ("messages[1].content[0].text", "nobody has said it"),
    ]


GEMINI_CALLS = ChatMessage.assistant(
    tool_calls=[ToolCall("t1", "ferry", "{}"), ToolCall("t2", "ferry", "{}")]
)
PLACEHOLDER = "skip_thought_signature_validator"


def signatures(built: HTTPRequest) -> list[list[str | None]]:
    calls = [[part for part in turn["parts"] if "functionCall" in part] for turn in turns(built)]
    return [[part.get("thoughtSignature") for part in parts] for parts in calls if parts]


@pytest.mark.parametrize(
    "model",
    [
        *(
            "gemini-3-pro-preview",
            "models/gemini-3.1-flash",
            "gemini-3",
            "publishers/google/models/gemini-3-pro",
        ),
        *("gemini-4-argon", "gemini-flash-latest", "models/gemini-pro-latest"),
    ],
)
def test_a_call_of_another_model_has_the_documented_signature_from_gemini_3_on(model: str) -> None:
    results = (RESULT, ChatMessage.tool_result("t2", "at ten"))
    own = answer(
        "gemini",
        gemini({"functionCall": {"id": "t1", "name": "ferry", "args": {}}, "thoughtSignature": "U0lH"}),
    )
    old = [USER, GEMINI_CALLS, *results]
    built = request(
        *old, USER, GEMINI_CALLS, *results, own, RESULT, GEMINI_CALLS, *results, to="gemini", model=model
    )
    assert signatures(built) == [[None, None], [PLACEHOLDER, None], ["U0lH"], [PLACEHOLDER, None]]


@pytest.mark.parametrize(
    "model",
    [
        "gemini-2.5-flash",
        "models/gemini-2.0-flash-lite",
        "gemini-1.5-pro",
        "gemma-3-27b-it",
        "tunedModels/ferries",
        "tiny",
    ],
)
def test_older_and_unknown_models_get_a_call_without_a_signature(model: str) -> None:
    results = (RESULT, ChatMessage.tool_result("t2", "at ten"))
    assert signatures(request(USER, GEMINI_CALLS, *results, to="gemini", model=model)) == [[None, None]]


# ------------------------------------------------------------------------------------------ server tools

SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
MCP = {"type": "mcp_tool_use", "id": "q1", "name": "n", "server_name": "s", "input": {}}
LOOK = {"type": "text", "text": "Let me look."}
UNPAIRED = "a server tool's call without a result"
UNCALLED = "a server tool's result without a call"


@pytest.mark.parametrize(
    ("provider", "payload", "key", "reason"),
    [
        ("anthropic", claude(LOOK, SEARCH, stop="max_tokens"), "server_tool_use", UNPAIRED),
        ("anthropic", claude(LOOK, MCP, stop="pause_turn"), "mcp_tool_use", UNPAIRED),
        ("anthropic", claude(LOOK, FOUND), "web_search_tool_result", UNCALLED),
        ("gemini", gemini({"text": "Let me look."}, {"executableCode": {"language": "PYTHON", "code": "p"}}), "executableCode", UNPAIRED),
        ("gemini", gemini({"text": "Let me look."}, {"toolCall": {"id": "s1", "toolType": "G", "args": {}}}), "toolCall", UNPAIRED),
        ("bedrock", bedrock({"text": "Let me look."}, {"toolUse": {"toolUseId": "s1", "name": "f", "input": {}, "type": "server_tool_use"}}), "toolUse", UNPAIRED),
        ("openai_responses", responses({"id": "ws_1", "type": "web_search_call", "status": "in_progress", "action": {"type": "search", "query": "q"}}, TEXT), "web_search_call", UNPAIRED),
        ("openai_responses", responses({"id": "mcp_1", "type": "mcp_call", "name": "n", "server_label": "s", "arguments": "{}", "output": None, "status": "incomplete"}, TEXT), "mcp_call", UNPAIRED),
    ],
)  # fmt: skip
def test_half_of_a_server_tools_work_is_left_out(provider: str, payload: Any, key: str, reason: str) -> None:
    built = back(provider, payload, MORE)
    assert key not in said(built)
    assert named(built) == [("messages[1]", reason)]


@pytest.mark.parametrize("tools", [(), (ToolDefinition("ferry"),)])
def test_bedrock_is_told_of_the_tools_of_the_conversation(tools: tuple[ToolDefinition, ...]) -> None:
    call = {"toolUseId": "s1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}
    result = {
        "toolUseId": "s1",
        "content": [{"text": "x"}],
        "status": "success",
        "type": "nova_grounding_result",
    }
    built = back("bedrock", bedrock({"toolUse": call}, {"toolResult": result}), tools=tools)
    known = [next(iter(tool.values()))["name"] for tool in built.body["toolConfig"]["tools"]]
    assert known == ([tool.name for tool in tools] or ["nova_grounding"])
    assert built.dropped == ()


def test_a_pause_goes_back_as_it_came() -> None:
    paused = answer("anthropic", claude(LOOK, SEARCH, stop="pause_turn"))
    built = request(USER, paused, to="anthropic")
    assert turns(built)[1]["content"] == [LOOK, SEARCH]
    assert built.dropped == ()


def test_a_server_tool_that_waits_for_the_client_goes_back() -> None:
    built = back("anthropic", claude(RUN, CALLER, stop="tool_use"), RESULT)
    assert turns(built)[1]["content"] == [RUN, CALLER]
    done = answer(
        "anthropic", claude({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}}, LOOK)
    )
    first = answer("anthropic", claude(RUN, CALLER, stop="tool_use"))
    built = request(USER, first, RESULT, done, MORE, to="anthropic")
    assert [block["type"] for block in turns(built)[1]["content"]] == ["server_tool_use", "tool_use"]
    assert turns(built)[3]["content"][0]["type"] == "code_execution_tool_result"
    assert built.dropped == ()


@pytest.mark.parametrize("to", [name for name in EVERYBODY if name != "anthropic"])
def test_a_server_tool_of_another_provider_is_named(to: str) -> None:
    built = back("anthropic", claude(LOOK, SEARCH, FOUND), to=to)
    assert "s1" not in said(built)
    assert ("messages[1]", "a server tool of another provider (anthropic)") in named(built)


# ------------------------------------------------------------------------------------------ media


def spoken(expires_at: int) -> dict[str, Any]:
    audio = {"id": "audio_1", "data": "UklGRg==", "expires_at": expires_at, "transcript": "It is nine."}
    return chat(audio=audio)


def test_a_spoken_answer_goes_back_by_its_id() -> None:
    built = back("openai", spoken(32_503_680_000))
    assert turns(built)[1]["audio"] == {"id": "audio_1"}
    assert "UklGRg" not in said(built)


@pytest.mark.parametrize(("expires_at", "to"), [(9, "openai"), *((32_503_680_000, to) for to in EVERYBODY if to != "openai")])  # fmt: skip
def test_a_spoken_answer_goes_back_as_its_transcript(expires_at: int, to: str) -> None:
    built = back("openai", spoken(expires_at), to=to)
    assert "It is nine." in said(built)
    assert "audio_1" not in said(built)
    assert ("messages[1]", "a sound: its transcript is sent") in named(built)
    assert [turn["role"] for turn in turns(built)][::2] == ["user", "user"]


DRAWN = chat(content="", images=[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}])
NO_PICTURES = {"tgi", "perplexity", "deepseek"}


@pytest.mark.untraced
@pytest.mark.parametrize("to", EVERYBODY)
def test_a_picture_goes_back_as_one_or_in_words(to: str) -> None:
    built = back("openrouter", DRAWN, to=to)
    roles = [turn["role"] for turn in turns(built)]
    assert len(roles) == 3
    assert (PNG in said(built)) or "(an image: image/png" in said(built)


@pytest.mark.parametrize("to", ["anthropic", "bedrock", "gemini", "mistral", "zai"])
def test_an_answer_without_a_word_keeps_the_user_apart(to: str) -> None:
    built = request(USER, ChatMessage.assistant(""), MORE, to=to)
    assert [turn["role"] in ("assistant", "model") for turn in turns(built)] == [False, True, False]


def test_gemini_gets_its_own_picture_back() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "U0lH"}
    assert turns(back("gemini", gemini(part)))[1]["parts"] == [part]


# ------------------------------------------------------------------------------------------ free-form tools

FREE = chat(
    "tool_calls", tool_calls=[{"id": "t1", "type": "custom", "custom": {"name": "exec", "input": "ls -l"}}]
)
FREE_ITEM = responses({"id": "ctc_1", "type": "custom_tool_call", "call_id": "t1", "name": "exec", "input": "ls -l"}, tools=[{"type": "custom", "name": "exec"}])  # fmt: skip


def test_a_free_form_call_goes_back_as_one() -> None:
    message = turns(back("openai", FREE, RESULT))[1]
    assert message["tool_calls"] == [
        {"id": "t1", "type": "custom", "custom": {"name": "exec", "input": "ls -l"}}
    ]
    items = turns(back("openai_responses", FREE_ITEM, RESULT))
    assert items[1]["type"] == "custom_tool_call"
    assert items[2] == {"type": "custom_tool_call_output", "call_id": "t1", "output": "at nine"}


@pytest.mark.untraced
@pytest.mark.parametrize("to", EVERYBODY)
@pytest.mark.parametrize(("provider", "payload"), [("openai", FREE), ("openai_responses", FREE_ITEM)])
def test_elsewhere_a_free_form_call_is_a_function(provider: str, payload: Any, to: str) -> None:
    if to == provider:
        return
    call = answer(provider, payload).tool_calls[0]
    assert call.kind == "custom"
    assert call.parsed() == {"input": "ls -l"}
    assert "INVALID_JSON" not in said(back(provider, payload, RESULT, to=to))
    built = back(provider, payload, RESULT, to=to)
    assert '"input' in said(built)
    named_state = [reason for _, reason in named(built) if reason.startswith("state")]
    ids = ["state of another provider (openai_responses): id, type"]
    assert named_state == ([] if provider == "openai" else ids)


@pytest.mark.parametrize(
    "calling", [[CALL], FREE["choices"][0]["message"]["tool_calls"]], ids=["call", "free-form"]
)
@pytest.mark.parametrize(("to", "sent"), [("openai", ""), ("cloudflare", ""), ("vllm", None)])
def test_content_beside_calls_is_a_text_where_null_may_be_refused(
    to: str, sent: str | None, calling: Any
) -> None:
    """Cloudflare refuses null, and the lack of it (TencentCloud/TencentDB-Agent-Memory 1313, zeroclaw-labs/zeroclaw 9493)."""
    built = back("openai", chat("tool_calls", tool_calls=calling), RESULT, to=to)
    assert turns(built)[1]["content"] == sent


def test_a_free_form_call_without_input() -> None:
    empty = chat(
        "tool_calls", tool_calls=[{"id": "t1", "type": "custom", "custom": {"name": "exec", "input": ""}}]
    )
    assert answer("openai", empty).tool_calls[0].arguments == ""
    assert '{\\"input\\":\\"\\"}' in said(back("openai", empty, RESULT, to="vllm"))


# ------------------------------------------------------------------------------------------ failed tools

FAILED = ChatMessage.tool_result("t1", "no such pier", name="ferry", is_error=True)
ASKED = ChatMessage.assistant(tool_calls=[ToolCall("t1", "ferry", "{}")])


def test_a_failed_tool_is_told_in_the_providers_word() -> None:
    def result(to: str) -> Any:
        return turns(request(USER, ASKED, FAILED, to=to))[2]

    assert result("anthropic")["content"][0]["is_error"] is True
    assert result("bedrock")["content"][0]["toolResult"]["status"] == "error"
    assert result("gemini")["parts"][0]["functionResponse"]["response"] == {"error": "no such pier"}


@pytest.mark.parametrize("to", [name for name in EVERYBODY if name not in ("anthropic", "bedrock", "gemini")])
def test_a_failure_is_named_where_the_api_has_no_word_for_it(to: str) -> None:
    built = request(USER, ASKED, FAILED, to=to)
    assert named(built) == [("messages[2]", "that the tool has failed: it is sent as text")]
    assert "Error: no such pier" in said(built)


def test_a_result_knows_whether_its_tool_failed() -> None:
    assert from_json(to_json(FAILED), ChatMessage) == FAILED
    with pytest.raises(ValueError, match="cannot be a failed tool call"):
        attrs.evolve(USER, is_error=True)


# ------------------------------------------------------------------------------------------ telling


@pytest.mark.parametrize("to", ["anthropic", "bedrock", "gemini", "mistral", "minimax", "perplexity"])
def test_a_system_message_that_moves_is_named(to: str) -> None:
    built = request(USER, ChatMessage.system("Be brief."), MORE, to=to)
    assert named(built) == [
        ("messages[1]", "moved to the beginning: the API has system messages there alone")
    ]
    assert request(ChatMessage.system("Be brief."), USER, to=to).dropped == ()


@pytest.mark.parametrize("to", ["openai", "vllm", "ollama", "openai_responses", "cohere"])
def test_a_system_message_that_stays_is_not_named(to: str) -> None:
    assert request(USER, ChatMessage.system("Be brief."), MORE, to=to).dropped == ()


def test_a_speakers_name_is_named_where_the_api_has_none() -> None:
    name = ChatMessage.user("Hi", name="Ada")
    assert named(request(name, to="anthropic")) == [
        ("messages[0]", "the speaker's name: the API has no place for it")
    ]
    assert request(name, to="openai").dropped == ()


def test_what_is_named_never_refuses_a_request() -> None:
    first = answer("anthropic", SEALED[0][1])
    built = build_http_request(ChatRequest([USER, first, MORE], model="m"), "openai")
    assert [one.refuses for one in built.adaptations if one.field != "max_tokens"] == [False]


def test_a_picture_that_the_user_shows_is_refused_as_ever() -> None:
    with pytest.raises(UnsupportedRequestError):
        request(ChatMessage.user([ImagePart(url="https://a.example/x.png")]), to="ollama")


# ------------------------------------------------------------------------------------------ parts in pieces


def test_details_of_reasoning_go_back_with_their_types() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "Hm.", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "ENC", "id": "rs_1", "format": "f", "index": 1, "extra": 7},
        {"type": "reasoning.text", "text": "So.", "signature": "SIG", "index": 2},
        {"type": "reasoning.text", "text": "Yes.", "index": 3},
    ]
    built = back("openrouter", chat(content="Nine.", reasoning="Hm.So.Yes.", reasoning_details=details))
    assert turns(built)[1]["reasoning_details"] == details
    assert built.dropped == ()


@pytest.mark.parametrize("is_over", [False, True])
def test_a_sound_in_pieces_goes_back_as_one(is_over: bool) -> None:
    expires_at = 9 if is_over else 32_503_680_000
    pieces = [{"id": "audio_1", "transcript": "It is "}, {"data": "UklGRg=="}, {"transcript": "nine.", "expires_at": expires_at}]  # fmt: skip
    events = [
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": {"audio": piece}, "finish_reason": None}]}
        for piece in pieces
    ]  # fmt: skip
    events[-1]["choices"][0]["finish_reason"] = "stop"  # type: ignore[index]
    message = turns(back("openai", sse(*events)))[1]
    assert message.get("audio") == (None if is_over else {"id": "audio_1"})
    assert message["content"] == ("It is nine." if is_over else "")


def test_a_file_of_its_own_goes_back_to_anthropic() -> None:
    content = [{"type": "container_upload", "file_id": "file_1"}, {"type": "text", "text": "Done."}]
    built = back("anthropic", claude(*content))
    assert turns(built)[1]["content"] == content
    assert ("messages[1]", "a file: only a note of it is sent") in named(
        back("anthropic", claude(*content), to="vllm")
    )


# ------------------------------------------------------------------------------------------ the rest of the facts


def test_state_goes_back_only_where_its_place_is_certain() -> None:
    texts = [{"text": "One."}, {"text": "Two."}, {"text": "Three.", "seal": "S"}]
    assert turns(back("bedrock", bedrock(*texts)))[1]["content"] == texts
    built = back("gemini", gemini(*texts))  # three texts in a row are one part of the answer
    assert turns(built)[1]["parts"] == [{"text": "One.Two.Three."}]
    assert named(built) == [("messages[1]", "state (seal): the API has no place for it")]
    odd = back("mistral", chat(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b", "seal": "S"}]))  # fmt: skip
    assert turns(odd)[1]["content"] == "ab"
    assert ("messages[1]", "state (seal): the API has no place for it") in named(odd)


def test_mistral_gets_its_chunks_back() -> None:
    chunks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Nine."},
        {"type": "reference", "reference_ids": [1]},
        {"type": "brand_new", "x": 1},
    ]
    built = back("mistral", chat(content=chunks))
    assert turns(built)[1]["content"] == chunks
    assert built.dropped == ()
    assert turns(back("mistral", chat(content="Nine.", refusal="No.")))[1]["content"] == "Nine.\n\nNo."


def test_citations_go_back_to_openrouter_with_its_parsed_files() -> None:
    notes = [
        {"type": "file", "file": {"hash": "h", "content": [{"type": "text", "text": "x"}]}},
        {"type": "url_citation", "url_citation": {"title": "T", "url": "https://a.example", "start_index": 0, "end_index": 2}},
        {"type": "url_citation", "url_citation": {"title": "T", "url": "https://b.example"}},
    ]  # fmt: skip
    built = back("openrouter", chat(content="Nine.", annotations=notes))
    assert turns(built)[1]["annotations"] == notes
    assert built.dropped == ()


@pytest.mark.parametrize("to", ["openai", "vllm", "anthropic"])
def test_citations_are_named_where_they_do_not_go(to: str) -> None:
    note = {"type": "url_citation", "url_citation": {"title": "T", "url": "https://a.example"}}
    built = back("openai", chat(content="Nine.", annotations=[note]), to=to)
    assert "a.example" not in said(built)
    own, foreign = "citations: the API does not take them back", "citations of another provider (openai)"
    assert named(built) == [("messages[1]", own if to == "openai" else foreign)]


def test_a_citation_in_a_text_is_named() -> None:
    first = answer("vllm", chat(content="Nine."))
    cited = attrs.evolve(first.segments[0], annotations=[CitationRef(source="https://a.example")])
    built = request(USER, attrs.evolve(first, segments=[cited]), MORE, to="openai")
    assert named(built) == [("messages[1]", "citations of another provider (vllm)")]


def test_a_field_that_the_api_refuses_is_named() -> None:
    built = back("groq", chat(content="Nine.", executed_tools=[{"type": "search"}], plan="P"))
    assert (turns(built)[1]["content"], turns(built)[1]["plan"]) == ("Nine.", "P")
    assert named(built) == [("messages[1]", "executed_tools: the API does not take it back")]


def test_a_picture_of_a_thought_is_left_out() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    built = back("gemini", gemini({**picture, "thought": True}, picture, {"text": "Nine."}))
    assert turns(built)[1]["parts"] == [picture, {"text": "Nine."}]
    assert named(built) == [("messages[1]", "a picture of a thought")]


def test_a_file_by_its_address_goes_back_to_gemini() -> None:
    part = {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://a/b.mp4"}}
    bare = {"fileData": {"fileUri": "gs://a/c"}}
    assert turns(back("gemini", gemini(part, bare)))[1]["parts"] == [part, bare]
    built = back("gemini", gemini(part), to="vllm")
    assert turns(built)[1]["content"] == "(a video: video/mp4)"
    assert named(built) == [("messages[1]", "a video: only a note of it is sent")]


DRAWING = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}


@pytest.mark.parametrize(
    ("provider", "payload", "is_shown"),
    [
        ("openrouter", DRAWN, True),
        ("openai_responses", responses(DRAWING, TEXT), True),
        ("ollama", ollama(content="Nine.", images=[PNG]), True),
        ("ollama", ollama(content="Nine.", images=["AAAA"]), False),
        ("openrouter", chat(content="", images=[{"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}]), False),
    ],
)  # fmt: skip
def test_the_user_shows_a_picture_of_another_provider(provider: str, payload: Any, is_shown: bool) -> None:
    built = back(provider, payload, to="anthropic")
    kinds = [[block["type"] for block in turn["content"]] for turn in turns(built)]
    assert kinds[2] == (["image", "text"] if is_shown else ["text"])
    reason = (
        "moved to messages[2]: a picture that the user shows" if is_shown else "only a note of it is sent"
    )
    assert any(option == "messages[1]" and reason in why for option, why in named(built))
    if "https" in orjson.dumps(payload).decode():
        assert "a.example/x.png" in said(built)


def test_a_picture_waits_for_no_user_that_does_not_speak() -> None:
    first = answer("openrouter", DRAWN)
    for after in ((), (ChatMessage.assistant("Look."), MORE)):
        assert PNG not in said(request(USER, first, *after, to="anthropic"))
    call = chat("tool_calls", tool_calls=[CALL], images=[{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}])  # fmt: skip
    assert PNG in said(back("openrouter", call, RESULT, MORE, to="anthropic"))


def test_its_own_pictures_go_back_as_they_came() -> None:
    assert turns(back("openrouter", DRAWN))[1]["images"] == DRAWN["choices"][0]["message"]["images"]
    assert turns(back("ollama", ollama(content="Nine.", images=[PNG])))[1]["images"] == [PNG]
    items = turns(back("openai_responses", responses(DRAWING, TEXT)))
    assert items[1] == DRAWING


def test_an_answer_made_by_hand_goes_back() -> None:
    made = attrs.evolve(
        answer("vllm", chat(content="Nine.")),
        message=ChatMessage.assistant("Nine.", tool_calls=[ToolCall("t1", "ferry", "{}")]),
        segments=(),
    )
    silent = attrs.evolve(made, message=attrs.evolve(made.message, content=None))
    assert "ferry" in said(request(USER, silent, RESULT, to="anthropic"))
    for to in ("anthropic", "vllm"):
        built = request(USER, made, RESULT, to=to)
        assert ("Nine." in said(built), "ferry" in said(built)) == (True, True)
        assert built.dropped == ()


def test_a_call_that_was_not_finished_is_named() -> None:
    segments = [Segment(SegmentType.TEXT, "Hel"), Segment(SegmentType.TOOL_CALL, "{", {"id": "c"})]
    cut = attrs.evolve(answer("vllm", chat(content="Hel")), segments=segments)
    for to in ("vllm", "anthropic"):
        assert named(request(USER, cut, MORE, to=to)) == [("messages[1]", "a call that was not finished")]


def test_a_verdict_is_named() -> None:
    first = answer("openai", chat(content="Nine."))
    thought = answer("anthropic", claude({"type": "text", "text": "Nine."}))
    verdict = Segment(SegmentType.SAFETY, "", {"category": "hate"})
    failure = Segment(SegmentType.ERROR, "boom")
    judged = attrs.evolve(first, segments=[*first.segments, verdict, failure])
    reasons = [("messages[1]", "a verdict: no API takes it back"), ("messages[1]", "an error: no API takes it back")]  # fmt: skip
    for to in ("openai", "vllm"):
        assert named(request(USER, judged, MORE, to=to)) == reasons
    thought = attrs.evolve(thought, segments=[*thought.segments, verdict])
    assert turns(request(USER, thought, MORE, to="anthropic"))[1]["content"] == [
        {"type": "text", "text": "Nine."}
    ]


def test_a_text_is_not_there_because_the_user_says_the_same() -> None:
    items = [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "boat"}],
        }
    ]
    built = request(USER, answer("openai_responses", responses(*items)), MORE, to="openai_responses")
    assert "boat" in said(built)
    assert ("messages[1]", "reasoning: the API has no place for it") in named(built)


def test_white_space_that_the_api_refuses_is_named() -> None:
    blank = ChatMessage.user([TextPart("Hi"), TextPart(" \n")])
    assert named(request(blank, to="anthropic")) == [
        ("messages[0]", "white space: the API has no place for it")
    ]
    assert request(blank, to="openai").dropped == ()
    assert request(ChatMessage.user([TextPart("Hi"), TextPart("")]), to="anthropic").dropped == ()


class Forgetful(OpenAIChatDialect):
    """Sends texts alone, whatever it was given."""

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        messages = [message_of(turn) for turn in request.messages]
        said = [{"role": message.role.value, "content": message.text} for message in messages]
        return HTTPRequest("/ask", {"messages": said})


def test_what_a_plugin_forgets_is_named() -> None:
    registry = registry_of(forgetful=Forgetful())
    first = normalize(
        dump_json(chat(content="Nine.", reasoning="Hm.", plan="P")), "forgetful", registry=registry
    )
    signed = Segment(SegmentType.REASONING, "", {"signature": "SIG"})
    first = attrs.evolve(first, segments=[*first.segments, signed])
    asked = ChatRequest([USER, first, MORE], model="m")
    built = build_http_request(asked, "forgetful", registry=registry)
    missing = ["reasoning", "a signature", "state (plan)"]
    assert named(built) == [("messages[1]", f"{what}: the API has no place for it") for what in missing]


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_that_the_caller_names_goes_on(conversation: Any) -> None:
    first = answer("openai_responses", responses(TEXT, conversation={"id": "conv_1"}))
    options = {"openai_responses": {"conversation": conversation}}
    built = request(USER, first, MORE, to="openai_responses", provider_options=options)
    assert len(turns(built)) == 1
    other = {"openai_responses": {"conversation": "conv_2"}}
    assert len(turns(request(USER, first, MORE, to="openai_responses", provider_options=other))) == 3


def test_a_sound_without_words_is_told_as_one() -> None:
    built = back("gemini", gemini({"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}), to="vllm")
    assert turns(built)[1]["content"] == "(a sound: audio/wav)"
    assert named(built) == [("messages[1]", "a sound: only a note of it is sent")]


def test_calls_of_both_kinds_go_side_by_side() -> None:
    calls = [ToolCall("t1", "exec", "ls", "custom"), ToolCall("t2", "ferry", "{}")]
    asked = ChatMessage.assistant(tool_calls=calls)
    built = request(USER, asked, RESULT, ChatMessage.tool_result("t2", "2"), to="vllm")
    arguments = [call["function"]["arguments"] for call in turns(built)[1]["tool_calls"]]
    assert arguments == ['{"input":"ls"}', "{}"]
    items = turns(request(USER, asked, RESULT, ChatMessage.tool_result("t2", "2"), to="openai_responses"))
    assert [item["type"] for item in items[1:]] == [
        *("custom_tool_call", "function_call"),
        *("custom_tool_call_output", "function_call_output"),
    ]


def test_state_of_another_choice_does_not_go_back() -> None:
    payload = chat(content="Nine.")
    second = {
        "index": 1,
        "message": {"role": "assistant", "content": "Ten.", "plan": "P"},
        "finish_reason": "stop",
    }
    payload["choices"].append(second)
    assert "plan" not in turns(back("openai", payload))[1]


def test_state_of_a_call_that_is_not_there_is_named() -> None:
    call = {**CALL, "seal": "S1"}
    first = answer("openai", chat("tool_calls", content="Nine.", tool_calls=[call]))
    bare = attrs.evolve(
        first,
        message=ChatMessage.assistant("Nine.", tool_calls=None),
        segments=[one for one in first.segments if one.type is SegmentType.TEXT],
    )
    built = request(USER, bare, MORE, to="openai")
    assert turns(built)[1] == {"role": "assistant", "content": "Nine."}
    assert named(built) == [("messages[1]", "state (seal): the API has no place for it")]


@pytest.mark.parametrize("host", ["https://api.anthropic.com", "http://127.0.0.1:8080"])
def test_unsigned_thinking_goes_to_every_host_but_anthropics_own(host: str) -> None:
    seen: list[httpx2.Request] = []

    def handle(sent: httpx2.Request) -> httpx2.Response:
        seen.append(sent)
        return httpx2.Response(200, content=dump_json(claude({"type": "text", "text": "ok"})))

    endpoint = Endpoint("anthropic", model="m", base_url=host, api_key="k")
    client = httpx2.Client(transport=httpx2.MockTransport(handle))
    with SyncLLMService(endpoint, settings=Settings(), client=client) as service:
        got = service.complete([USER, answer("anthropic", UNSIGNED["anthropic"]), MORE])
    is_own = host.startswith("https")
    assert (b"Hm." in seen[0].content) is not is_own
    dropped = [one for one in adaptations_of(got) if one.field != "max_tokens"]
    assert [one.reason for one in dropped] == (["reasoning without a signature"] if is_own else [])


def test_a_part_that_is_left_out_keeps_the_place_of_the_others() -> None:
    content = [SEARCH, {"type": "text", "text": "Nine.", "seal": "S"}, UNKNOWN]
    built = back("anthropic", claude(*content))
    assert turns(built)[1]["content"] == content[1:]
    assert named(built) == [("messages[1]", UNPAIRED)]


def test_state_that_belongs_to_no_call_is_named() -> None:
    call = {**CALL, "seal": "S1"}
    first = answer("openai", chat("tool_calls", tool_calls=[{**CALL, "id": "t0"}, call]))
    kept = attrs.evolve(
        first,
        message=attrs.evolve(first.message, tool_calls=first.tool_calls[:1]),
        segments=first.segments[:1],
    )
    built = request(USER, kept, ChatMessage.tool_result("t0", "0"), to="openai")
    assert "seal" not in said(built)
    assert named(built) == [("messages[1]", "state (seal): the API has no place for it")]


@pytest.mark.parametrize("to", ["vllm", "anthropic"])
def test_arguments_that_are_none_go_as_an_object(to: str) -> None:
    asked = ChatMessage.assistant(tool_calls=[ToolCall("t1", "ferry", "{")])
    assert "INVALID_JSON" in said(request(USER, asked, RESULT, to=to))


def test_a_block_that_says_nothing_does_not_go_back() -> None:
    text = {"type": "text", "text": "Nine."}
    built = back("anthropic", claude({"type": "compaction", "content": None}, text))
    assert turns(built)[1]["content"] == [text]
    assert named(built) == [("messages[1]", "state (type): the API has no place for it")]
    full = {"type": "compaction", "content": "All of it."}
    assert turns(back("anthropic", claude(full, text)))[1]["content"] == [full, text]
