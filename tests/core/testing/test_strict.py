"""Strict servers: each rule refuses the nearest request to one that passes, with the provider's own error."""

from __future__ import annotations

import copy
from typing import Any

import httpx2
import pytest

from bedrock_frames import event
from crosswalk import ConfigurationError, CrosswalkError, normalize
from crosswalk.testing import STRICT_PROVIDERS, Capture, load_captures, strict_rules
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.testing.strict.rules import Issued, StrictRequest
from pages import ROOT

PATHS = {
    "anthropic": "/v1/messages",
    "bedrock": "/model/anthropic.claude-x/converse",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
    "openai_responses": "/v1/responses",
}
USER = {"role": "user", "content": "Which boat?"}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER, *messages], **more}


def asks(*ids: str, **more: Any) -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """*body* without the reasoning that some servers want."""
    messages = [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def gives(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "1"}


def says(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def blocks(*content: Any, user: Any = None, **more: Any) -> dict[str, Any]:
    """A request of Anthropic's: the user, an answer of *content*, and what the user says then."""
    messages: list[Any] = [USER, {"role": "assistant", "content": [*content]}]
    if user is not None:
        messages.append({"role": "user", "content": user})
    return {"model": "c", "max_tokens": 9, "messages": messages, **more}


TEXT = {"type": "text", "text": "Hm."}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "1"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
HITS = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}


def items(*more: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "g", "input": [{"type": "message", "role": "user", "content": "Hi"}, *more], **fields}


def call(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def output(id: str = "c1", kind: str = "function_call") -> dict[str, Any]:
    return {"type": f"{kind}_output", "call_id": id, "output": "1"}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC"}
ANSWERED = {"type": "message", "role": "assistant", "content": "Nine."}


def contents(*parts: Any) -> dict[str, Any]:
    """A request of Gemini's with contents of the user and the model in turn."""
    roles = ("user", "model")
    return {"contents": [{"role": roles[n % 2], "parts": part} for n, part in enumerate(parts)]}


ASK = [{"text": "Hi"}]
CALL = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "SIG"}
UNSIGNED = {"functionCall": {"name": "f", "args": {}}}
GIVE = {"functionResponse": {"name": "f", "response": {}}}


def converse(*content: Any, **more: Any) -> dict[str, Any]:
    """A request of Converse's with messages of the user and the assistant in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": blocks} for n, blocks in enumerate(content)]
    return {"messages": messages, "toolConfig": {"tools": [{}]}, **more}


def tool(id: str = "t1") -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": "f", "input": {}}}


def given(id: str = "t1") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": [{"text": "1"}]}}


def thought(**text: Any) -> dict[str, Any]:
    return {"reasoningContent": {"reasoningText": {"text": "Hm.", **text}}}


ISSUED = {
    "anthropic": {"content": [THOUGHT, {"type": "redacted_thinking", "data": "RED"}]},
    "bedrock": {"output": {"message": {"content": [thought(signature="SIG"), {"redactedContent": "RED"}]}}},
    "gemini": {"candidates": [{"content": {"parts": [CALL]}}]},
    "openai_responses": {
        "id": "resp_1",
        "output": [REASONING, call("c9", id="fc_1"), {**REASONING, "id": "rs_2"}],
    },
    "deepseek": {"choices": [{"message": {"reasoning_content": "Hm."}}]},
    "moonshot": {"choices": [{"message": {"reasoning_content": "Hm."}}]},
}
"""What each provider has answered before."""

PAIRED = [
    ("the conversation has messages", chat(), {"model": "m", "messages": []}),
    ("calls have results", chat(asks("a", "b", reasoning_content=" "), gives("a"), gives("b")), chat(asks("a", "b", reasoning_content=" "), gives("a"))),
    ("calls have results", chat(asks("a", reasoning_content=" "), gives("a"), USER), chat(asks("a", reasoning_content=" "), USER, gives("a"))),
    ("results have calls", chat(asks("a", reasoning_content=" "), gives("a")), chat(gives("a"))),
    ("a call has one result", chat(asks("a", reasoning_content=" "), gives("a")), chat(asks("a", reasoning_content=" "), gives("a"), gives("a"))),
]  # fmt: skip
PLAIN = [(rule, plain(good), plain(bad)) for rule, good, bad in PAIRED]
UNIQUE = ("ids are unique", chat(asks("a", reasoning_content=" "), gives("a"), asks("b", reasoning_content=" "), gives("b")), chat(asks("a", reasoning_content=" "), gives("a"), asks("a", reasoning_content=" "), gives("a")))  # fmt: skip
REMEMBERED = [
    ("reasoning returns with its calls", chat(asks("a", reasoning_content="Hm."), gives("a")), chat(asks("a"), gives("a"))),
    ("reasoning returns with its calls", chat(asks("a"), gives("a"), thinking={"type": "disabled"}), chat(asks("a"), gives("a"), thinking={"type": "enabled"})),
    ("reasoning returns with its calls", chat(says("Nine."), USER), chat(says("Nine."), USER, asks("a", reasoning_content=None), gives("a"))),
]  # fmt: skip
NINE, TEN = "abcdefgh1", "abcdefgh12"
CASES: dict[str, list[tuple[str, Any, Any]]] = {
    "openai": [
        *PLAIN,
        ("ids are short", chat(asks("x" * 40), gives("x" * 40)), chat(asks("x" * 41), gives("x" * 41))),
        ("content is not null", chat(says("")), chat(says(None))),
        ("content is not null", chat(says(None, audio={"id": "audio_1"})), chat({**gives("a"), "role": "user", "content": None})),
    ],
    "groq": [*PLAIN, ("no reasoning_content", chat(says("Nine.", reasoning="Hm.")), chat(says("Nine.", reasoning_content="Hm.")))],
    "deepseek": [
        *PAIRED, UNIQUE, *REMEMBERED,
        ("reasoning returns with its calls", chat(asks("a", reasoning_content=" "), gives("a")), chat(asks("a", reasoning_content=""), gives("a"))),
    ],
    "moonshot": [
        *PAIRED, UNIQUE, *REMEMBERED,
        ("answers are not empty", chat(says("Nine.")), chat(says(""))),
    ],
    "mistral": [
        ("the conversation has messages", chat(), {"model": "m", "messages": []}),
        ("roles in order", chat(asks(NINE), gives(NINE), says("So."), USER), chat(asks(NINE), gives(NINE), USER)),
        ("roles in order", chat(says("So."), USER), chat({"role": "developer", "content": "Be brief."}, USER)),
        ("the user or a tool speaks last", chat(says("Ni", prefix=True)), chat(says("Ni"))),
        ("as many results as calls", chat(asks(NINE), gives(NINE)), chat(asks(NINE), gives(NINE), gives(NINE))),
        ("ids of nine letters", chat(asks(NINE), gives(NINE)), chat(asks(TEN), gives(TEN))),
        ("ids of nine letters", chat(asks(NINE), gives(NINE)), chat(asks(NINE), gives("call_1234"))),
        ("no reasoning of others", chat(says("Nine."), USER), chat(says("Nine.", reasoning_content="Hm."), USER)),
    ],
    "anthropic": [
        ("roles are user and assistant", blocks(TEXT, user="Hi"), {"messages": [{"role": "system", "content": "Hi"}, USER]}),
        ("messages are not empty", blocks(), blocks(user="Hi")),
        ("messages are not empty", {"messages": [USER]}, {"messages": []}),
        ("texts are not blank", blocks(TEXT), blocks({"type": "text", "text": " \n"})),
        ("texts are not blank", {"messages": [USER]}, {"messages": [{"role": "user", "content": ""}]}),
        ("calls have results", blocks(USE, user=[RESULT]), blocks(USE, user="Hi")),
        ("calls have results", blocks(USE, user=[RESULT, TEXT]), blocks(USE, {**USE, "id": "t2"}, user=[RESULT])),
        ("results have calls", blocks(USE, user=[RESULT]), blocks(TEXT, user=[RESULT])),
        ("results have calls", {"messages": [USER]}, {"messages": [{"role": "user", "content": [RESULT]}]}),
        ("a call has one result", blocks(USE, user=[RESULT]), blocks(USE, user=[RESULT, RESULT])),
        ("ids are unique", blocks(USE, {**USE, "id": "t2"}, user=[RESULT, {**RESULT, "tool_use_id": "t2"}]), blocks(USE, USE, user=[RESULT])),
        ("ids fit the pattern", blocks(USE, user=[RESULT]), blocks({**USE, "id": "f:0"}, user=[{**RESULT, "tool_use_id": "f:0"}])),
        ("server calls have results", blocks(TEXT, SEARCH, HITS, user="Hi"), blocks(TEXT, SEARCH, user="Hi")),
        ("server calls have results", blocks(TEXT, SEARCH), blocks({**SEARCH, "type": "mcp_tool_use"}, user="Hi")),
        ("server results have calls", blocks(SEARCH, HITS, user="Hi"), blocks(TEXT, HITS, user="Hi")),
        ("a pending execution names its container", blocks(SEARCH, USE, user=[RESULT], container="container_1"), blocks(SEARCH, USE, user=[RESULT])),
        ("thinking is signed", blocks(THOUGHT, TEXT), blocks({"type": "thinking", "thinking": "Hm."}, TEXT)),
        ("signatures are Anthropic's own", blocks(THOUGHT, TEXT), blocks({**THOUGHT, "signature": ""}, TEXT)),
        ("signatures are Anthropic's own", blocks({"type": "redacted_thinking", "data": "RED"}), blocks({"type": "redacted_thinking", "data": "BLUE"})),
        ("thinking comes before its calls", blocks(THOUGHT, USE, user=[RESULT], thinking={"type": "enabled"}), blocks(USE, user=[RESULT], thinking={"type": "enabled"})),
        ("thinking comes before its calls", blocks(TEXT, user="Hi", thinking={"type": "enabled"}), blocks(TEXT, USE, user=[RESULT], thinking={"type": "enabled"})),
    ],
    "openai_responses": [
        ("calls have outputs", items(call(), output()), items(call())),
        ("calls have outputs", items({**call(), "type": "custom_tool_call"}, output(kind="custom_tool_call")), items({**call(), "type": "custom_tool_call"}, output())),
        ("outputs have calls", items(call(), output()), items(output())),
        ("outputs have calls", items(output("c9"), previous_response_id="resp_1"), items(output("c8"), previous_response_id="resp_1")),
        ("reasoning is followed by its item", items(REASONING, ANSWERED), items(REASONING)),
        ("reasoning is followed by its item", items(REASONING, call(), output()), items(REASONING, {"role": "user", "content": "Hi"})),
        ("an item comes with its reasoning", items(REASONING, call(id="fc_1"), output()), items(call(id="fc_1"), output())),
        ("ids have the prefix of their type", items(call(id="fc_2"), output()), items(call(id="call_2"), output())),
        ("ids are unique", items({**ANSWERED, "id": "msg_1"}, {**ANSWERED, "id": "msg_2"}), items({**ANSWERED, "id": "msg_1"}, {**ANSWERED, "id": "msg_1"})),
        ("call ids are short", items(call("x" * 64), output("x" * 64)), items(call("x" * 65), output("x" * 65))),
        ("encrypted content is OpenAI's own", items(REASONING, ANSWERED), items({**REASONING, "encrypted_content": "ABC"}, ANSWERED)),
        ("reasoning without content is stored", items({"type": "reasoning", "id": "rs_2"}, ANSWERED), items({"type": "reasoning", "id": "rs_3"}, ANSWERED)),
        ("reasoning without content is stored", items(REASONING, ANSWERED, store=False), items({"type": "reasoning", "id": "rs_2"}, ANSWERED, store=False)),
        ("the previous response is known", items(previous_response_id="resp_1"), items(previous_response_id="resp_2")),
    ],
    "gemini": [
        ("roles are user and model", contents(ASK), {"contents": [{"role": "assistant", "parts": ASK}]}),
        ("parts are not empty", contents(ASK), contents()),
        ("parts are not empty", contents(ASK, [{"text": "So."}], ASK), contents(ASK, [], ASK)),
        ("calls follow the user", contents(ASK, [CALL], [GIVE]), {"contents": contents(ASK, [CALL], [GIVE])["contents"][1:]}),
        ("responses follow calls", contents(ASK, [CALL], [GIVE]), contents(ASK, [{"text": "So."}], [GIVE])),
        ("responses follow calls", contents(ASK), contents([GIVE])),
        ("as many responses as calls", contents(ASK, [CALL, UNSIGNED], [GIVE, GIVE]), contents(ASK, [CALL, UNSIGNED], [GIVE])),
        ("as many responses as calls", contents(ASK, [CALL], [GIVE]), contents(ASK, [CALL])),
        ("calls of the current turn are signed", contents(ASK, [CALL, UNSIGNED], [GIVE, GIVE]), contents(ASK, [UNSIGNED, CALL], [GIVE, GIVE])),
        ("calls of the current turn are signed", contents(ASK, [UNSIGNED], [GIVE], [{"text": "So."}], ASK), contents(ASK, [UNSIGNED], [GIVE])),
        ("signatures are Google's own", contents(ASK, [{**UNSIGNED, "thoughtSignature": "skip_thought_signature_validator"}], [GIVE]), contents(ASK, [{**UNSIGNED, "thoughtSignature": "U0lH"}], [GIVE])),
    ],
    "bedrock": [
        ("the user begins", converse(ASK), {"messages": [{"role": "assistant", "content": ASK}]}),
        ("the user begins", converse(ASK), {"messages": []}),
        ("roles alternate", converse(ASK, ASK, ASK), {"messages": [{"role": "user", "content": ASK}] * 2}),
        ("content is not empty", converse(ASK, ASK), converse(ASK, [])),
        ("texts are not blank", converse(ASK, [{"text": "So."}]), converse(ASK, [{"text": " "}])),
        ("calls have results", converse(ASK, [tool()], [given()]), converse(ASK, [tool()], ASK)),
        ("calls have results", converse(ASK, [tool(), given()], ASK), converse(ASK, [tool()])),
        ("results have calls", converse(ASK, [tool()], [given()]), converse(ASK, [tool()], [given(), given("t2")])),
        ("ids are unique", converse(ASK, [tool()], [given()]), converse(ASK, [tool(), tool()], [given()])),
        ("ids fit the pattern", converse(ASK, [tool("x" * 64)], [given("x" * 64)]), converse(ASK, [tool("x" * 65)], [given("x" * 65)])),
        ("calls have declared tools", converse(ASK, [tool()], [given()]), converse(ASK, [tool()], [given()], toolConfig={})),
        ("reasoning of Claude is signed", converse(ASK, [thought(signature="SIG")]), converse(ASK, [thought()])),
        ("signatures are its own", converse(ASK, [thought(signature="SIG")]), converse(ASK, [thought(signature="")])),
        ("signatures are its own", converse(ASK, [{"reasoningContent": {"redactedContent": "RED"}}]), converse(ASK, [{"reasoningContent": {"redactedContent": "BLUE"}}])),
    ],
}  # fmt: skip


def server(provider: str) -> ReplayServer:
    running = ReplayServer(rules=strict_rules(provider))
    if provider in ISSUED:
        running.add(Answer.of_json(ISSUED[provider]), path="/earlier")
    return running.add(Answer.of_json({"ok": True}), times=None)


def message_of(provider: str, response: httpx2.Response) -> Any:
    """The error's message, at the place where the provider puts it."""
    error = response.json()
    if provider in ("bedrock", "mistral"):
        return error["message"]
    if provider == "anthropic":
        assert error["type"] == "error"
    return error["error"]["message"]


@pytest.mark.parametrize(
    ("provider", "rule", "good", "bad"),
    [(provider, *case) for provider, cases in CASES.items() for case in cases],
)
def test_the_nearest_request_is_refused(provider: str, rule: str, good: Any, bad: Any) -> None:
    path = PATHS.get(provider, "/v1/chat/completions")
    with server(provider) as running, httpx2.Client(timeout=60) as client:
        passed = client.post(running.url + path, json=good)
        refused = client.post(running.url + path, json=bad)
    assert (passed.status_code, passed.json()) == (200, {"ok": True})
    assert 400 <= refused.status_code < 500
    assert message_of(provider, refused)
    assert [request.case for request in running.refusals] == [f"refused: {rule}"]


@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
def test_every_rule_is_tried_and_names_its_source(provider: str) -> None:
    rules = strict_rules(provider).rules
    assert {rule.name for rule in rules} == {rule for rule, _, _ in CASES[provider]}
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.source.startswith("https://") for rule in rules)


WORDS = {
    "openai": {"error": {"message": "Invalid 'messages': empty array. Expected an array with minimum length 1.", "type": "invalid_request_error", "param": "messages", "code": "empty_array"}},
    "mistral": {"object": "error", "message": "Unexpected role 'user' after role 'tool'", "type": "invalid_request_message_order", "param": None, "code": "3230"},
    "gemini": {"error": {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", {"messages": []}),
        ("mistral", chat(asks(NINE), gives(NINE), USER)),
        ("gemini", contents(ASK, [{"text": "So.", "thoughtSignature": "no"}], ASK)),
    ],
)
def test_the_error_is_the_providers_and_is_read_as_such(provider: str, body: Any) -> None:
    path = PATHS.get(provider, "/v1/chat/completions")
    with server(provider) as running, httpx2.Client(timeout=60) as client:
        refused = client.post(running.url + path, json=body)
    assert refused.json() == WORDS[provider]
    assert normalize(refused.content, provider, status=refused.status_code).finish_reason == "error"


def test_bedrock_names_its_exception_in_a_header() -> None:
    with server("bedrock") as running, httpx2.Client(timeout=60) as client:
        refused = client.post(running.url + PATHS["bedrock"], json={"messages": []})
    assert refused.headers["x-amzn-errortype"] == "ValidationException"


def test_what_mistral_does_not_know_is_unprocessable() -> None:
    with server("mistral") as running, httpx2.Client(timeout=60) as client:
        refused = client.post(
            running.url + "/v1/chat/completions", json=chat(says("So.", reasoning_content="Hm."), USER)
        )
    assert refused.status_code == 422


def test_a_refused_request_takes_no_answer() -> None:
    with ReplayServer(rules=strict_rules("openai")) as running, httpx2.Client(timeout=60) as client:
        running.add(Answer.of_json({"n": 1}))
        url = running.url + "/v1/chat/completions"
        assert client.post(url, json={"messages": []}).status_code == 400
        assert client.post(url, content=b"[").status_code == 400
        assert client.post(url, json=[]).status_code == 400
        assert client.post(url, json=chat()).json() == {"n": 1}
    assert [request.case for request in running.requests] == [
        "refused: the conversation has messages",
        "refused: the body is a JSON object",
        "refused: the body is a JSON object",
        "json",
    ]


def test_other_paths_and_methods_are_free() -> None:
    with server("openai") as running, httpx2.Client(timeout=60) as client:
        assert client.post(running.url + "/v1/embeddings", json={}).status_code == 200
        assert client.get(running.url + "/v1/chat/completions").status_code == 200
    assert running.refusals == ()


def test_captures_and_streams_issue_what_they_hold() -> None:
    """Each signature of a recorded answer, whole or streamed, is one of the provider's own."""
    tried = 0
    for provider in ("anthropic", "bedrock", "gemini", "openai_responses"):
        for capture in load_captures(ROOT / "tests/captures" / provider):
            issued = Issued(strict_rules(provider).framing)
            issued.add(capture)
            for segment in segments(provider, capture):
                for key in ("signature", "encrypted"):
                    if value := segment.metadata.get(key):
                        assert issued.has(value)
                        tried += 1
    assert tried > 20


def segments(provider: str, capture: Capture) -> tuple[Any, ...]:
    if capture.status != 200 or not capture.complete:
        return ()
    try:
        return normalize(capture.body, provider, unknown="keep").segments
    except CrosswalkError:  # a capture of an answer that cannot be read
        return ()


def test_the_captures_of_a_server_are_issued_by_it() -> None:
    captures = load_captures(ROOT / "tests/captures/anthropic")
    signed = next(one for one in captures if not one.stream and b'"signature":' in one.body)
    content = signed.events()[0]["content"]
    with (
        ReplayServer([signed], rules=strict_rules("anthropic")) as running,
        httpx2.Client(timeout=60) as client,
    ):
        own = client.post(running.url + PATHS["anthropic"], json=blocks(content[0]))
        foreign = client.post(running.url + PATHS["anthropic"], json=blocks(THOUGHT))
    assert (own.status_code, foreign.status_code) == (200, 400)
    assert (
        foreign.json()["error"]["message"] == "messages.1.content.0: Invalid `signature` in `thinking` block"
    )


@pytest.mark.parametrize(
    ("path", "refusals"),
    [
        ("/v1beta/models/gemini-4-argon:generateContent", 1),
        ("/v1beta/models/gemini-flash-latest:streamGenerateContent", 1),
        ("/v1beta/models/gemma-3-27b-it:generateContent", 0),
        ("/v1beta/interactions", 0),
    ],
)
def test_calls_for_any_later_gemini_need_a_signature(path: str, refusals: int) -> None:
    request = StrictRequest(path, contents(ASK, [UNSIGNED], [GIVE]))
    assert len([*strict_rules("gemini").violations(request)]) == refusals


def test_calls_for_gemini_2_need_no_signature() -> None:
    body = contents(ASK, [UNSIGNED], [GIVE])
    rules = strict_rules("gemini")
    paths = ("/v1beta/models/gemini-2.5-pro:generateContent", "/v1beta/models/gemini-3-pro:generateContent")
    assert [len([*rules.violations(StrictRequest(path, body))]) for path in paths] == [0, 1]


def test_frames_of_bedrock_are_read_and_broken_ones_issue_nothing() -> None:
    delta = {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "SIG"}}}
    frame = event("contentBlockDelta", delta)
    issued = Issued(strict_rules("bedrock").framing)
    issued.add(Answer((frame[:-1] + b"x",)))
    assert issued.events == []
    issued.add(Answer((frame,)))
    assert issued.has("SIG")


@pytest.mark.parametrize("body", [b"\x00garbage", b"data: {\n\n", b"data: [DONE]\n\n", b"<html>"])
def test_what_is_no_json_issues_nothing(body: bytes) -> None:
    issued = Issued()
    issued.add(Answer((body,)))
    assert issued.events == []


@pytest.mark.untraced
@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
def test_odd_bodies_are_refused_or_pass_and_never_fail(provider: str) -> None:
    rules = strict_rules(provider)
    for _, good, _ in CASES[provider]:
        for body in oddities(good):
            assert all(
                refusal.message
                for _, refusal in rules.violations(StrictRequest(PATHS.get(provider, "/"), body))
            )


def oddities(body: dict[str, Any]) -> list[dict[str, Any]]:
    """*body* with a value of another type in each place."""
    odd: list[dict[str, Any]] = []

    def spoil(value: Any, path: tuple[Any, ...]) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            for other in (None, 7, "x", [], [None], {}):
                changed = copy.deepcopy(body)
                place: Any = changed
                for step in path:
                    place = place[step]
                place[key] = other
                odd.append(changed)
            if isinstance(inner, dict | list):
                spoil(inner, (*path, key))

    spoil(body, ())
    return odd


def test_a_provider_without_rules_is_named() -> None:
    with pytest.raises(ConfigurationError, match="no strict rules for 'vllm'"):
        strict_rules("vllm")
