"""An answer's owner gets back what only it understands, through a client of another format that knows nothing of it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from contrib_serve import asking, config_of
from crosswalk import CanonicalJSONError
from crosswalk.testing import strict_rules
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import KeyHash

HI = {"role": "user", "content": "Hi"}
SIGNATURE = "U0lHMQ=="
PARTS = [
    {"text": "Hm.", "thought": True},
    {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": SIGNATURE},
]
GEMINI = "/v1beta/models/tiny:generateContent"
FORMS = ["/v1/chat/completions", "/v1/responses", "/v1/messages"]


def gemini(*parts: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "modelVersion": "g", "responseId": "r", "usageMetadata": usage}


def at(path: str, stream: bool) -> str:
    """Return the path of a request, which Gemini's clients choose by *stream*."""
    if stream and path == GEMINI:
        return path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    return path


def asked(path: str, *turns: Any, stream: bool = False) -> dict[str, Any]:
    if path == GEMINI:
        return {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, *turns]}
    if path.endswith("responses"):
        return {"model": "tiny", "input": [HI, *turns], "stream": stream}
    return {"model": "tiny", "messages": [HI, *turns], "max_tokens": 99, "stream": stream}


def with_result(path: str, answer: dict[str, Any]) -> list[Any]:
    """The turns of the next request: the answer as the client has it, and the results of its calls."""
    if path == GEMINI:
        parts = answer["candidates"][0]["content"]["parts"]
        named = [part["functionCall"] for part in parts if "functionCall" in part]
        given = [
            {"functionResponse": {"id": one["id"], "name": one["name"], "response": {"result": "1"}}}
            for one in named
        ]
        turns = [{"role": "model", "parts": parts}, {"role": "user", "parts": given}]
        return turns if given else turns[:1]
    if path.endswith("responses"):
        ids = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
        given = [{"type": "function_call_output", "call_id": id, "output": "1"} for id in ids]
        return [*answer["output"], *given]
    if path.endswith("messages"):
        ids = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
        given = [{"type": "tool_result", "tool_use_id": id, "content": "1"} for id in ids]
        turns = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": given}]
        return turns if given else turns[:1]
    message = answer["choices"][0]["message"]
    ids = [call["id"] for call in message.get("tool_calls") or ()]
    return [message, *({"role": "tool", "tool_call_id": id, "content": "1"} for id in ids)]


def talk(
    upstream: ReplayServer,
    path: str,
    change: Callable[[list[Any]], list[Any]] = lambda turns: turns,
    *,
    first: str = "gemini",
    then: str = "gemini",
    keys: tuple[str, str] | None = None,
    stream: bool = False,
) -> tuple[dict[str, Any], str]:
    """The last request that the server got of a conversation of two, and what the gateway says is lost of it."""
    models = f"tiny: {{provider: {first}, base_url: '{upstream.url}', api_key: k}}"
    before = config_of(upstream, "on_unsupported: drop", models)
    after = config_of(upstream, "on_unsupported: drop", models.replace(first, then))
    if keys is not None:
        hashes = {f"k{n}": KeyHash.of(key, b"salt salt") for n, key in enumerate(dict.fromkeys(keys))}
        lines = "".join(f"\n  {name}: {{hash: '{hash}'}}" for name, hash in hashes.items())
        before = after = config_of(upstream, f"on_unsupported: drop\nkeys:{lines}", models)

    async def post(config: Any, body: dict[str, Any], key: str | None) -> Any:
        app = create_app(config)
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        async with app.router.lifespan_context(app), asking(app, headers=headers) as client:
            answer = await client.post(at(path, stream and body is first_body), json=body)
        assert answer.status_code == 200, answer.text
        return answer

    one, other = keys or (None, None)
    first_body = asked(path, stream=stream)
    made = asyncio.run(post(before, first_body, one))
    if path == GEMINI:
        assert "\n: " not in made.text  # Google's SDK fails at a comment
    whole = summed(path, made.text) if stream else made.json()
    turns = change(with_result(path, whole))
    if len(turns) == 1:  # no call
        turns += [{"role": "user", "parts": [{"text": "And?"}]} if path == GEMINI else HI]
    last = asyncio.run(post(after, asked(path, *turns), other))
    body: dict[str, Any] = upstream.requests[-1].json()
    return body, last.headers.get("x-crosswalk-dropped", "")


def summed(path: str, frames: str) -> dict[str, Any]:
    """The answer that a client makes of the events of a stream."""
    events = [orjson.loads(line[6:]) for line in frames.splitlines() if line.startswith("data: {")]
    if path == GEMINI:
        parts = [
            part for event in events for part in event["candidates"][0].get("content", {}).get("parts", ())
        ]
        return {"candidates": [{"content": {"parts": parts}}]}
    if path.endswith("responses"):
        response: dict[str, Any] = events[-1]["response"]
        return response
    if path.endswith("messages"):
        blocks: dict[int, dict[str, Any]] = {}
        for event in events:
            if event["type"] == "content_block_start":
                blocks[event["index"]] = event["content_block"]
            elif event["type"] == "content_block_delta":
                for leaf in event["delta"].keys() & {"thinking", "signature", "text"}:
                    blocks[event["index"]][leaf] += event["delta"][leaf]
        return {"content": [blocks[index] for index in sorted(blocks)]}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
    for event in events:
        for choice in event.get("choices", ()):
            delta = choice["delta"]
            if "content" in delta:
                message["content"] = (message["content"] or "") + delta["content"]
            for fragment in delta.get("tool_calls", ()):
                if len(message["tool_calls"]) == fragment["index"]:
                    message["tool_calls"].append({"function": {}})
                call = message["tool_calls"][-1]
                function = {**call["function"], **fragment["function"]}
                message["tool_calls"][-1] = {**call, **fragment, "function": function}
            if "reasoning_details" in delta:
                message["reasoning_details"] = delta["reasoning_details"]
    for call in message["tool_calls"]:
        call["function"]["arguments"] = call["function"]["arguments"] or "{}"
    return {"choices": [{"message": message}]}


@pytest.fixture
def rules() -> str:
    """The provider that sets the server's rules. Tests that talk to another one set it."""
    return "gemini"


@pytest.fixture
def upstream(rules: str) -> Iterator[ReplayServer]:
    with ReplayServer(rules=strict_rules(rules)) as server:
        yield server
    assert server.refusals == ()


@pytest.fixture
def gemini_server(upstream: ReplayServer) -> ReplayServer:
    """A server that calls a tool, then answers."""
    upstream.add(Answer.of_json(gemini(*PARTS)))
    upstream.add(Answer.of_json(gemini({"text": "Done."})))
    return upstream


SECOND = {"functionCall": {"name": "hear", "args": {}}}
ANSWERS = {
    "a thought and a call": PARTS,
    "a thought, a text and a call": [PARTS[0], {"text": "I look."}, PARTS[1]],
    "a call alone": PARTS[1:],
    "parallel calls": [*PARTS, SECOND],
    "parallel calls, the second signed": [PARTS[0], SECOND, PARTS[1]],
    "calls without a signature": [SECOND, {"functionCall": {"name": "look", "args": {}}}],
    "a signed text": [{"text": "Nine.", "thoughtSignature": SIGNATURE}],
    "a thought and a signed text": [PARTS[0], {"text": "Nine.", "thoughtSignature": SIGNATURE}],
    "a text, then its signature": [{"text": "Nine."}, {"text": "", "thoughtSignature": SIGNATURE}],
}
"""Parts of answers of Gemini's, most of which have a signature."""


def without_ids(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *parts* as Gemini sends them: the ids of their calls are the gateway's."""
    return [
        {**part, "functionCall": {name: part["functionCall"][name] for name in ("name", "args")}}
        if "functionCall" in part
        else part
        for part in parts
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("parts", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("path", FORMS)
def test_the_owner_gets_its_answer_back(
    upstream: ReplayServer, path: str, parts: list[Any], stream: bool
) -> None:
    made = [gemini(part) for part in parts]
    upstream.add(Answer.of_events(made, done=False) if stream else Answer.of_json(gemini(*parts)))
    upstream.add(Answer.of_json(gemini({"text": "Done."})))
    body, _ = talk(upstream, path, stream=stream)
    back = body["contents"][1]["parts"]
    is_late = parts[-1].get("text") == ""  # of a stream: the signature is of the text before
    assert without_ids(back) == (ANSWERS["a signed text"] if is_late else without_ids(parts))
    given = [
        part["functionResponse"]["id"] for part in body["contents"][-1]["parts"] if "functionResponse" in part
    ]
    assert given == [part["functionCall"]["id"] for part in back if "functionCall" in part]


CLAUDE = [
    {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE},
    {"type": "text", "text": "I look."},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}},
    {"type": "tool_use", "id": "toolu_2", "name": "hear", "input": {}},
]


@pytest.mark.untraced
@pytest.mark.parametrize("rules", ["anthropic"])
@pytest.mark.parametrize("blocks", [CLAUDE, CLAUDE[:1] + CLAUDE[2:3], CLAUDE[:2]], ids=len)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", [FORMS[0], FORMS[1], GEMINI])
def test_claude_gets_its_thinking_back(
    upstream: ReplayServer, path: str, stream: bool, blocks: list[dict[str, Any]]
) -> None:
    end = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
    about = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "stop_sequence": None,
        "brand": "new",
    }
    whole = {**about, "content": blocks, "stop_reason": end, "usage": {"input_tokens": 1, "output_tokens": 1}}
    upstream.add(Answer.of_events([*claude_events(whole)], done=False) if stream else Answer.of_json(whole))
    done = {"content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn"}
    upstream.add(Answer.of_json({**whole, **done}))
    body, _ = talk(upstream, path, first="anthropic", then="anthropic", stream=stream)
    assert body["messages"][1]["content"] == blocks


def claude_events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a stream of the message *whole*."""
    begun = {**whole, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(whole["content"]):
        pieces = {"thinking": ["thinking", "signature"], "text": ["text"], "tool_use": ["input"]}[
            block["type"]
        ]
        empty = {name: {} if name == "input" else "" for name in pieces}
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        for name in pieces:
            leaf, said = (
                ("partial_json", orjson.dumps(block[name]).decode())
                if name == "input"
                else (name, block[name])
            )
            kind = {"input": "input_json"}.get(name, name)
            delta = {"type": f"{kind}_delta", leaf: said}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
    yield {"type": "message_stop"}


@pytest.mark.parametrize("rules", ["anthropic"])
@pytest.mark.parametrize("is_forged", [False, True])
def test_a_client_of_gemini_may_spell_its_seal_in_the_other_base64(
    upstream: ReplayServer, is_forged: bool
) -> None:
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": CLAUDE, "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    upstream.add(Answer.of_json(whole), times=None)

    def spell(turns: list[Any]) -> list[Any]:
        part = next(part for part in turns[0]["parts"] if "thoughtSignature" in part)
        raw = base64.b64decode(part["thoughtSignature"], validate=True)
        raw = raw[:-1] + bytes([raw[-1] ^ is_forged])
        part["thoughtSignature"] = base64.urlsafe_b64encode(raw).decode()
        return turns

    body, lost = talk(upstream, GEMINI, spell, first="anthropic", then="anthropic")
    assert (body["messages"][1]["content"] == CLAUDE) is not is_forged
    assert (SIGNATURE in orjson.dumps(body).decode()) is not is_forged
    assert (lost != "request.max_tokens: 16384 is sent: the API needs it") is is_forged


@pytest.mark.untraced
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


@pytest.mark.untraced
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
    assert "crosswalk001" not in text
    assert SIGNATURE not in text
    is_plain = then in ("deepseek", "vllm")
    assert ("Hm." in text, "]: reasoning of another provider (gemini)" in lost) == (is_plain, not is_plain)
    assert "]: state of another provider (gemini): signature" in lost


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_of_several_providers_marks_answers_in_the_client_s_own_format(
    upstream: ReplayServer, stream: bool
) -> None:
    """DeepSeek's reasoning comes back to it, and is not given to OpenAI, which is asked after it."""
    message = {"role": "assistant", "content": "ok", "reasoning_content": "Hm."}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    body = {
        **chunk,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    events = [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    targets = [
        f"{{provider: {name}, base_url: '{upstream.url}', api_key: k}}" for name in ("deepseek", "openai")
    ]
    config = config_of(upstream, "on_unsupported: drop", f"tiny: {{endpoints: [{', '.join(targets)}]}}")

    async def converse() -> tuple[bytes, str]:
        app = create_app(config)
        async with app.router.lifespan_context(app), asking(app) as client:
            upstream.add(Answer.of_events(events) if stream else Answer.of_json(body))
            made = await client.post(FORMS[0], json=asked(FORMS[0], stream=stream))
            turns = with_result(FORMS[0], summed(FORMS[0], made.text) if stream else made.json())
            upstream.add(Answer.of_json({"error": {"message": "busy"}}, status=503))
            upstream.add(Answer.of_json(body))
            last = await client.post(FORMS[0], json=asked(FORMS[0], *turns, HI))
        return orjson.dumps(turns), last.headers["x-crosswalk-dropped"]

    turns, lost = asyncio.run(converse())
    assert b"crosswalk001" in turns
    own, other = (one.json()["messages"][1] for one in upstream.requests[1:])
    assert own.get("content") == other["content"] == "ok"
    assert "Hm." not in orjson.dumps(other).decode()
    assert "reasoning of another provider (deepseek)" in lost


def forge(turns: list[Any]) -> list[Any]:
    text = orjson.dumps(turns).decode()
    start = text.index("crosswalk001") + 80
    return orjson.loads(text[:start] + ("A" if text[start] != "A" else "B") + text[start + 1 :])  # type: ignore[no-any-return]


def shorten(turns: list[Any]) -> list[Any]:
    text = orjson.dumps(turns).decode()
    start = text.index("crosswalk001")
    return orjson.loads(text[:start] + "crosswalk001x" + text[text.index('"', start) :])  # type: ignore[no-any-return]


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
    assert ("crosswalk001" in text, SIGNATURE in text) == (False, False)
    assert lost.partition("]: reasoning: ")[2].startswith(("its seal is not", "the client has changed"))


@pytest.mark.parametrize("known_id", [True, False])
@pytest.mark.parametrize("rules", ["openai_responses"])
def test_a_seal_that_does_not_fit_leaves_no_reasoning_to_openai(
    upstream: ReplayServer, known_id: bool
) -> None:
    spoken = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    item = {**spoken, "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    reasoning = {"type": "reasoning", "id": "rs_made", "summary": [], "encrypted_content": "crosswalk001AAAA"}
    if not known_id:
        del reasoning["id"]
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    upstream.add(Answer.of_json({**whole, "output": [item], "usage": None}))

    async def post() -> str:
        models = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
        app = create_app(config_of(upstream, "on_unsupported: drop", models))
        async with app.router.lifespan_context(app), asking(app) as client:
            answer = await client.post("/v1/responses", json=asked("/v1/responses", reasoning, item, HI))
        return answer.headers.get("x-crosswalk-dropped", "")

    assert "request.input[1]: reasoning: its seal is not of this gateway and key" in asyncio.run(post())
    assert "reasoning" not in [one.get("type") for one in upstream.requests[-1].json()["input"]]


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

    assert "crosswalk001" not in asyncio.run(post())


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


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"signature": ""}, "request.messages[1].content[1]: thinking with an empty signature"),
        ({}, "request.messages[1].content[0]: thinking with an empty signature"),
    ],
)
def test_neither_a_false_seal_nor_an_empty_signature_goes_to_claude(
    upstream: ReplayServer, more: dict[str, str], lost: str
) -> None:
    ok = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    upstream.add(Answer.of_json(ok))
    sealed = {"type": "thinking", "thinking": "", "signature": "crosswalk001AAAA"}
    text = {"type": "text", "text": "Nine."}
    turns = [
        {"role": "assistant", "content": [sealed, {"type": "thinking", "thinking": "Hm.", **more}, text]},
        HI,
    ]

    async def post() -> str:
        models = f"tiny: {{provider: anthropic, base_url: '{upstream.url}', api_key: k}}"
        app = create_app(config_of(upstream, "on_unsupported: drop", models))
        async with app.router.lifespan_context(app), asking(app) as client:
            answer = await client.post("/v1/messages", json=asked("/v1/messages", *turns))
        return answer.headers.get("x-crosswalk-dropped", "")

    named = asyncio.run(post())
    assert upstream.requests[-1].json()["messages"][1]["content"] == [text]
    assert lost in named


def test_a_seal_of_another_version_is_left_out(
    gemini_server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise CanonicalJSONError(["another version"])

    monkeypatch.setattr("crosswalk_serve.requests.from_json", refuse)
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
