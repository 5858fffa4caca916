"""An answer's owner gets back what only it understands, through a client of another format that knows nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from contrib_serve import asking, config_of
from crosswalk import CanonicalJSONError
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve.app import create_app
from crosswalk_serve.config import KeyHash

HI = {"role": "user", "content": "Hi"}
SIGNATURE = "U0lHMQ=="
PARTS = [
    {"text": "Hm.", "thought": True},
    {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": SIGNATURE},
]
FORMS = ["/v1/chat/completions", "/v1/responses", "/v1/messages"]


def gemini(*parts: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "modelVersion": "g", "responseId": "r", "usageMetadata": usage}


def asked(path: str, *turns: Any, stream: bool = False) -> dict[str, Any]:
    if path.endswith("responses"):
        return {"model": "tiny", "input": [HI, *turns], "stream": stream}
    return {"model": "tiny", "messages": [HI, *turns], "max_tokens": 99, "stream": stream}


def with_result(path: str, answer: dict[str, Any]) -> list[Any]:
    """The turns of the next request: the answer as the client has it, and the result of its call."""
    if path.endswith("responses"):
        call = next(item for item in answer["output"] if item["type"] == "function_call")
        return [
            *answer["output"],
            {"type": "function_call_output", "call_id": call["call_id"], "output": "1"},
        ]
    if path.endswith("messages"):
        call = next(block for block in answer["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "1"}
        return [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [result]},
        ]
    message = answer["choices"][0]["message"]
    return [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "1"}]


def talk(
    upstream: ReplayServer,
    path: str,
    change: Callable[[list[Any]], list[Any]] = lambda turns: turns,
    *,
    then: str = "gemini",
    keys: tuple[str, str] | None = None,
    stream: bool = False,
) -> tuple[dict[str, Any], str]:
    """The last request that the server got of a conversation of two, and what the gateway says is lost of it."""
    models = f"tiny: {{provider: gemini, base_url: '{upstream.url}', api_key: k}}"
    first = config_of(upstream, "on_unsupported: drop", models)
    second = config_of(upstream, "on_unsupported: drop", models.replace("gemini", then))
    if keys is not None:
        hashes = {f"k{n}": KeyHash.of(key, b"salt salt") for n, key in enumerate(dict.fromkeys(keys))}
        lines = "".join(f"\n  {name}: {{hash: '{hash}'}}" for name, hash in hashes.items())
        first = second = config_of(upstream, f"on_unsupported: drop\nkeys:{lines}", models)

    async def post(config: Any, body: dict[str, Any], key: str | None) -> Any:
        app = create_app(config)
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        async with app.router.lifespan_context(app), asking(app, headers=headers) as client:
            answer = await client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer

    one, other = keys or (None, None)
    made = asyncio.run(post(first, asked(path, stream=stream), one))
    whole = summed(path, made.text) if stream else made.json()
    last = asyncio.run(post(second, asked(path, *change(with_result(path, whole))), other))
    body: dict[str, Any] = upstream.requests[-1].json()
    return body, last.headers.get("x-crosswalk-dropped", "")


def summed(path: str, frames: str) -> dict[str, Any]:
    """The answer that a client makes of the events of a stream."""
    events = [orjson.loads(line[6:]) for line in frames.splitlines() if line.startswith("data: {")]
    if path.endswith("responses"):
        response: dict[str, Any] = events[-1]["response"]
        return response
    if path.endswith("messages"):
        blocks: dict[int, dict[str, Any]] = {}
        for event in events:
            if event["type"] == "content_block_start":
                blocks[event["index"]] = event["content_block"]
            elif event["type"] == "content_block_delta" and "thinking" in event["delta"]:
                blocks[event["index"]]["thinking"] += event["delta"]["thinking"]
        return {"content": [blocks[index] for index in sorted(blocks)]}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
    for event in events:
        for choice in event.get("choices", ()):
            delta = choice["delta"]
            for fragment in delta.get("tool_calls", ()):
                call = message["tool_calls"][-1] if message["tool_calls"] else {"function": {}}
                function = {**call["function"], **fragment["function"]}
                message["tool_calls"] = [{**call, **fragment, "function": function}]
            if "reasoning_details" in delta:
                message["reasoning_details"] = delta["reasoning_details"]
    for call in message["tool_calls"]:
        call["function"]["arguments"] = call["function"]["arguments"] or "{}"
    return {"choices": [{"message": message}]}


@pytest.fixture
def gemini_server(upstream: ReplayServer) -> ReplayServer:
    """A server that calls a tool, then answers."""
    upstream.add(Answer.of_json(gemini(*PARTS)))
    upstream.add(Answer.of_json(gemini({"text": "Done."})))
    return upstream


@pytest.mark.parametrize("path", FORMS)
def test_the_owner_gets_its_answer_back(gemini_server: ReplayServer, path: str) -> None:
    body, _ = talk(gemini_server, path)
    thought, call = body["contents"][1]["parts"]
    assert thought == PARTS[0]
    assert call["thoughtSignature"] == SIGNATURE
    assert body["contents"][2]["parts"][0]["functionResponse"]["id"] == call["functionCall"]["id"]


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("stream", [False, True])
def test_no_two_answers_have_a_call_of_one_id(upstream: ReplayServer, path: str, stream: bool) -> None:
    """Gemini gives its calls no ids, and Claude Code takes two calls of one id for one."""
    made = Answer.of_events([gemini(*PARTS)], done=False) if stream else Answer.of_json(gemini(*PARTS))
    ids = set()
    for _ in range(2):
        upstream.add(made)
        upstream.add(Answer.of_json(gemini({"text": "Done."})))
        body, _ = talk(upstream, path, stream=stream)
        call, result = body["contents"][1]["parts"][-1], body["contents"][2]["parts"][0]
        assert call["functionCall"]["id"] == result["functionResponse"]["id"]
        assert call["thoughtSignature"] == SIGNATURE
        ids.add(call["functionCall"]["id"])
    assert len(ids) == 2


@pytest.mark.parametrize("path", FORMS)
def test_after_a_stream_it_does_so_too(upstream: ReplayServer, path: str) -> None:
    upstream.add(Answer.of_events([gemini(*PARTS)], done=False))
    upstream.add(Answer.of_json(gemini({"text": "Done."})))
    body, _ = talk(upstream, path, stream=True)
    assert SIGNATURE in orjson.dumps(body).decode()


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("then", ["anthropic", "openai", "openai_responses", "deepseek", "vllm"])
def test_nobody_else_gets_it(upstream: ReplayServer, path: str, then: str) -> None:
    upstream.add(Answer.of_json(gemini(*PARTS)))
    answers: dict[str, Any] = {
        "anthropic": {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}},
        "openai_responses": {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": []},
    }  # fmt: skip
    chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}  # fmt: skip
    upstream.add(Answer.of_json(answers.get(then, chat)))
    body, lost = talk(upstream, path, then=then)
    text = orjson.dumps(body).decode()
    assert "cw1." not in text
    assert SIGNATURE not in text
    assert ("Hm." in text) is (then in ("deepseek", "vllm"))
    assert "request." in lost


def forge(turns: list[Any]) -> list[Any]:
    text = orjson.dumps(turns).decode()
    start = text.index("cw1.") + 60
    return orjson.loads(text[:start] + ("A" if text[start] != "A" else "B") + text[start + 1 :])  # type: ignore[no-any-return]


def shorten(turns: list[Any]) -> list[Any]:
    text = orjson.dumps(turns).decode()
    start = text.index("cw1.")
    return orjson.loads(text[:start] + "cw1.x" + text[text.index('"', start) :])  # type: ignore[no-any-return]


def rename(turns: list[Any]) -> list[Any]:
    return orjson.loads(orjson.dumps(turns).replace(b'"name":"look"', b'"name":"hear"'))  # type: ignore[no-any-return]


def other_arguments(turns: list[Any]) -> list[Any]:
    text = orjson.dumps(turns).replace(b'"arguments":"{}"', b'"arguments":"{\\"a\\":1}"')
    return orjson.loads(text.replace(b'"input":{}', b'"input":{"a":1}'))  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("change", [forge, shorten, rename, other_arguments])
def test_a_seal_that_does_not_fit_is_left_out(gemini_server: ReplayServer, path: str, change: Any) -> None:
    body, lost = talk(gemini_server, path, change)
    text = orjson.dumps(body).decode()
    assert ("cw1." in text, SIGNATURE in text) == (False, False)
    assert "request." in lost


@pytest.mark.parametrize(("keys", "is_same"), [(("k" * 24, "k" * 24), True), (("k" * 24, "l" * 24), False)])
def test_a_seal_is_for_the_client_that_got_it(
    gemini_server: ReplayServer, keys: tuple[str, str], is_same: bool
) -> None:
    body, _ = talk(gemini_server, FORMS[0], keys=keys)
    assert (SIGNATURE in orjson.dumps(body).decode()) is is_same


def test_a_plain_answer_has_no_seal(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(gemini({"text": "Done."})))

    async def post() -> str:
        models = f"tiny: {{provider: gemini, base_url: '{upstream.url}', api_key: k}}"
        app = create_app(config_of(upstream, "", models))
        async with app.router.lifespan_context(app), asking(app) as client:
            return (await client.post(FORMS[0], json=asked(FORMS[0]))).text

    assert "cw1." not in asyncio.run(post())


def test_thinking_with_an_empty_signature_does_not_go_to_claude(upstream: ReplayServer) -> None:
    ok = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    upstream.add(Answer.of_json(ok))
    unsigned = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    signed = {"type": "thinking", "thinking": "So.", "signature": "EqQB"}
    text = {"type": "text", "text": "Nine."}
    turns = [{"role": "assistant", "content": [unsigned, signed, text]}, HI]

    async def post() -> str:
        models = f"tiny: {{provider: anthropic, base_url: '{upstream.url}', api_key: k}}"
        app = create_app(config_of(upstream, "on_unsupported: drop", models))
        async with app.router.lifespan_context(app), asking(app) as client:
            answer = await client.post("/v1/messages", json=asked("/v1/messages", *turns))
        return answer.headers.get("x-crosswalk-dropped", "")

    lost = asyncio.run(post())
    assert upstream.requests[-1].json()["messages"][1]["content"] == [signed, text]
    assert "request.messages[1].content[0]" in lost


def test_a_seal_of_another_version_is_left_out(
    gemini_server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise CanonicalJSONError(["another version"])

    monkeypatch.setattr("crosswalk_serve.owners.from_json", refuse)
    body, lost = talk(gemini_server, FORMS[0])
    assert (SIGNATURE in orjson.dumps(body).decode(), "request." in lost) == (False, True)


def test_arguments_that_are_none_change_nothing(upstream: ReplayServer) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "no JSON"}}
    message = {"role": "assistant", "content": "", "reasoning": "Hm.", "tool_calls": [call]}
    chat = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    upstream.add(Answer.of_json({**chat, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}))  # fmt: skip
    upstream.add(Answer.of_json({**chat, "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}))  # fmt: skip

    async def post(*turns: Any) -> Any:
        app = create_app(config_of(upstream, "on_unsupported: drop"))
        async with app.router.lifespan_context(app), asking(app) as client:
            return (await client.post(FORMS[1], json=asked(FORMS[1], *turns))).json()

    first = asyncio.run(post())
    asyncio.run(post(*with_result(FORMS[1], first)))
    sent = upstream.requests[-1].json()["messages"][1]
    assert (sent["reasoning"], sent["tool_calls"][0]["function"]["arguments"]) == ("Hm.", '{"INVALID_JSON":"no JSON"}')  # fmt: skip
