"""Requests answered: whole and streamed, by which server, in which words, and with which log."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from starlette.applications import Starlette

from contrib_serve import ABOUT, HI, asking, config_of, says, streams
from crosswalk import normalize
from crosswalk.records import read_record
from crosswalk.testing.exchange import Cut, Garbage, Reset
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import Config, KeyHash, read_config
from crosswalk_serve.routing import Caller

CHAT = "/v1/chat/completions"
STREAMED = {**HI, "stream": True}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
        {"type": "text", "text": "Hello", "brand": "new"},
    ],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


async def _posted(app: Starlette, path: str, body: Any, headers: dict[str, str]) -> httpx2.Response:
    async with app.router.lifespan_context(app), asking(app, headers=headers) as client:
        return await client.post(path, json=body)


def post(config: Config, body: Any = HI, path: str = CHAT, **headers: str) -> httpx2.Response:
    """The answer of a new gateway."""
    return asyncio.run(_posted(create_app(config), path, body, headers))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def events(answer: httpx2.Response) -> list[Any]:
    """The data of server-sent events."""
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else orjson.loads(line) for line in lines]


def messages_at(upstream: ReplayServer, more: str = "") -> Config:
    """A gateway with a model of Anthropic's."""
    return config_of(
        upstream,
        more,
        f"tiny: {{provider: anthropic, model: claude, base_url: '{upstream.url}', api_key: sk-secret-1}}",
    )


# ------------------------------------------------------------------------------------ whole


def test_an_answer_in_the_clients_own_form_is_the_servers_own_to_the_byte(upstream: ReplayServer) -> None:
    upstream.add(given := says("Hello", a_new_field={"x": [1]}))
    answer = post(config_of(upstream))
    assert (answer.status_code, answer.content) == (200, given.chunks[0])
    assert answer.headers["content-type"] == "application/json"
    assert "x-crosswalk-dropped" not in answer.headers
    assert len(answer.headers["x-request-id"]) == 36


def test_what_nobody_understands_goes_through_to_the_same_dialect(upstream: ReplayServer) -> None:
    upstream.add(says())
    config = config_of(upstream, models=f"tiny: {{provider: vllm, model: real, base_url: '{upstream.url}'}}")
    post(config, {**HI, "min_p": 0.1})
    (asked,) = upstream.requests
    assert asked.json() == {**HI, "model": "real", "min_p": 0.1}


def test_what_the_form_cannot_say_is_in_a_header(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(MESSAGE))
    answer = post(messages_at(upstream))
    assert answer.json()["choices"][0]["message"]["content"] == "Hello"
    assert "content[1].brand" in answer.headers["x-crosswalk-dropped"].split(", ")


def test_a_finish_word_that_nobody_knows_is_named(upstream: ReplayServer) -> None:
    """The client gets it in its own format."""
    chat = orjson.loads(says("Hello").chunks[0])
    chat["choices"][0]["finish_reason"] = "bored"
    upstream.add(Answer.of_json(chat))
    answer = post(config_of(upstream), HI)
    assert "finish_reason: 'bored' is unknown" in answer.headers["x-crosswalk-dropped"].split(", ")


@pytest.mark.untraced
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/api/chat"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("message", "finish"),
    [
        ({"content": None, "output": "Hello"}, "stop"),
        ({"content": [{"type": "markdown", "body": "Hello"}]}, "stop"),
        ({"content": None, "note": "Hello"}, "bored"),
    ],
)
def test_an_answer_that_would_look_complete_in_another_format_is_an_error(
    upstream: ReplayServer, tmp_path: Path, message: dict[str, Any], finish: str, path: str, *, stream: bool
) -> None:
    """It is paid: no client repeats it, and it is counted and logged."""
    chat = orjson.loads(says("Hello").chunks[0])
    chat["choices"][0] |= {"message": {"role": "assistant", **message}, "finish_reason": finish}
    upstream.add(Answer.of_json(chat))
    models = f"tiny: {{provider: vllm, model: real, base_url: '{upstream.url}'}}"
    asked = {"model": "tiny", "input": "Hi"} if path == "/v1/responses" else {**HI, "max_tokens": 9}
    if path == "/api/chat":
        asked.pop("max_tokens")
    log = f"log: {{exchanges: {tmp_path}/log.jsonl}}\nmetrics: true"
    app = create_app(config_of(upstream, log, models=models))

    async def posted() -> tuple[httpx2.Response, str]:
        async with app.router.lifespan_context(app), asking(app) as client:
            answer = await client.post(path, json={**asked, "stream": stream})
            return answer, (await client.get("/metrics")).text

    answer, metrics = asyncio.run(posted())
    assert stream or (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")
    assert "would look complete" in answer.text
    for ending in ('"end_turn"', '"response.completed"', '"done_reason"'):
        assert ending not in answer.text
    counted = [line for line in metrics.splitlines() if line.startswith("crosswalk_serve_tokens_total{")]
    assert sum(float(line.rpartition(" ")[2]) for line in counted) == 13
    record = orjson.loads((tmp_path / "log.jsonl").read_bytes())
    assert "incomplete_reason" in record["dropped"]
    assert orjson.loads(read_record((tmp_path / "log.jsonl").read_bytes()).body) == chat


@pytest.mark.parametrize(
    ("path", "word"),
    [("/v1/messages", '"max_tokens"'), ("/v1/responses", '"incomplete"'), ("/api/chat", '"length"')],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_with_text_and_a_word_that_nobody_knows_is_a_part(
    upstream: ReplayServer, path: str, word: str, *, stream: bool
) -> None:
    chat = orjson.loads(says("Hello").chunks[0])
    chat["choices"][0]["finish_reason"] = "bored"
    upstream.add(Answer.of_json(chat))
    models = f"tiny: {{provider: vllm, model: real, base_url: '{upstream.url}'}}"
    asked = {"model": "tiny", "input": "Hi"} if path == "/v1/responses" else HI
    more = {"max_tokens": 9} if path == "/v1/messages" else {}
    answer = post(config_of(upstream, models=models), {**asked, **more, "stream": stream}, path)
    assert answer.status_code == 200
    assert "Hello" in answer.text
    assert word in answer.text.replace('": "', '":"')
    if not stream:
        assert "finish_reason: 'bored' is unknown" in answer.headers["x-crosswalk-dropped"].split(", ")


def test_a_stream_that_cannot_be_ended_keeps_what_came_before(upstream: ReplayServer) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "[1]"}}
    deltas = [{"content": "Hel"}, {"content": "lo"}, {"tool_calls": [call]}]
    chunk = {**ABOUT, "object": "chat.completion.chunk"}
    chunks = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    upstream.add(Answer.of_events([*chunks, last]))
    models = f"tiny: {{provider: vllm, model: real, base_url: '{upstream.url}'}}"
    answer = post(config_of(upstream, models=models), {**HI, "max_tokens": 9, "stream": True}, "/v1/messages")
    said = [event["delta"].get("text") for event in events(answer) if event["type"] == "content_block_delta"]
    assert "".join(filter(None, said)) == "Hello"
    assert events(answer)[-1]["type"] == "error"
    assert '"stop_reason":"tool_use"' not in answer.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_of_responses_gets_what_came_of_an_answer_that_failed(
    upstream: ReplayServer, *, stream: bool
) -> None:
    candidate = {"content": {"role": "model", "parts": [{"text": "No picture."}]}, "finishReason": "NO_IMAGE"}
    counts = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    given = {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "g"}
    upstream.add(Answer.of_events([given]) if stream else Answer.of_json(given))
    model = f"tiny: {{provider: gemini, model: g, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    answer = post(
        config_of(upstream, models=model), {"model": "tiny", "input": "Hi", "stream": stream}, "/v1/responses"
    )
    response = events(answer)[-1]["response"] if stream else answer.json()
    assert (answer.status_code, response["status"]) == (200, "failed")
    assert response["output"][0]["content"][0]["text"] == "No picture."
    assert response["usage"]["total_tokens"] == 3


def test_a_finish_word_of_the_second_answer_is_named(upstream: ReplayServer) -> None:
    chat = orjson.loads(says("Hello").chunks[0])
    chat["choices"].append({**chat["choices"][0], "index": 1, "finish_reason": "bored"})
    upstream.add(Answer.of_json(chat))
    answer = post(config_of(upstream), {**HI, "n": 2})
    assert "finish_reason: 'bored' is unknown" in answer.headers["x-crosswalk-dropped"].split(", ")


def test_an_answer_that_failed_at_its_end_is_not_paid_twice(upstream: ReplayServer) -> None:
    """Official clients repeat a request after a 5xx. A client of the server's own format gets the answer as it came."""
    chat = orjson.loads(says("Hello").chunks[0])
    chat["choices"][0]["finish_reason"] = "malformed_function_call"
    uncounted = {key: value for key, value in chat.items() if key != "usage"}
    model = f"tiny: {{provider: fireworks, model: real, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    config = config_of(upstream, models=model)
    message = {**HI, "max_tokens": 9}
    for given, path in ((chat, "/v1/messages"), (uncounted, "/v1/messages"), (uncounted, CHAT)):
        upstream.add(Answer.of_json(given))
        answer = post(config, message, path)
        assert answer.status_code >= 400
        assert answer.headers["x-should-retry"] == "false"
    upstream.add(Answer.of_json(chat))
    answer = post(config)
    assert (answer.status_code, answer.json()["choices"]) == (200, chat["choices"])


def test_what_a_server_cannot_express_is_refused_by_name(upstream: ReplayServer) -> None:
    answer = post(messages_at(upstream), {**HI, "seed": 7})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "seed")
    assert "seed" in error["message"]
    assert upstream.requests == ()


def test_or_it_is_dropped_and_said(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(MESSAGE))
    answer = post(messages_at(upstream, "on_unsupported: drop"), {**HI, "seed": 7, "a_new_field": 1})
    assert answer.status_code == 200
    assert answer.headers["x-crosswalk-dropped"].split(", ")[:3] == [
        "request.seed: Messages has no such option",
        "request.max_tokens: 16384 is sent: the API needs it",
        "request.a_new_field: it is no known field of Chat Completions",
    ]


def test_store_is_a_field_of_chats_own(upstream: ReplayServer) -> None:
    """It reaches a server of Chat Completions, and is named where another one does not have it."""
    upstream.add(says()).add(Answer.of_json(MESSAGE))
    post(config_of(upstream), {**HI, "store": True})
    assert upstream.requests[0].json()["store"] is True
    answer = post(messages_at(upstream), {**HI, "store": True})
    assert "request.store: Messages has no such option" in answer.headers["x-crosswalk-dropped"].split(", ")


def test_the_file_says_what_requests_do_not(upstream: ReplayServer) -> None:
    upstream.add(says(), times=2)
    model = f"{{provider: vllm, base_url: '{upstream.url}', defaults: {{temperature: 0.5, max_tokens: 9}}, options: {{min_p: 0.2}}}}"
    config = config_of(upstream, models=f"tiny: {model}")
    post(config)
    post(config, {**HI, "temperature": 1.5})
    first, second = (request.json() for request in upstream.requests)
    assert (first["temperature"], first["max_tokens"], first["min_p"]) == (0.5, 9, 0.2)
    assert (second["temperature"], second["max_tokens"]) == (1.5, 9)


def test_the_next_endpoint_answers_when_one_has_failed(upstream: ReplayServer) -> None:
    upstream.add(Answer.failure(503)).add(says("Second"))
    one = f"{{provider: vllm, base_url: '{upstream.url}', model: MODEL}}"
    models = f"tiny: [{one.replace('MODEL', 'a')}, {one.replace('MODEL', 'b')}]"
    answer = post(config_of(upstream, models=models))
    assert answer.json()["choices"][0]["message"]["content"] == "Second"
    assert [request.json()["model"] for request in upstream.requests] == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "body", "shown", "type"),
    [
        (429, {"error": {"message": "slow down"}}, 429, "rate_limit_exceeded"),
        (400, {"error": {"message": "no", "type": "bad", "code": "x"}}, 400, "bad"),
        (500, "<html>", 500, "server_error"),
        (401, {"error": {"message": "Incorrect API key provided: sk-upstream-secret"}}, 502, "server_error"),
    ],
)
def test_a_servers_error_is_told_in_the_clients_form(
    upstream: ReplayServer, status: int, body: Any, shown: int, type: str
) -> None:
    upstream.add(Answer.of_json(body, status=status))
    answer = post(config_of(upstream))
    assert (answer.status_code, answer.json()["error"]["type"]) == (shown, type)
    assert "sk-upstream-secret" not in answer.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "place", "word"),
    [
        (CHAT, ("error", "type"), "insufficient_quota"),
        ("/v1/responses", ("error", "type"), "insufficient_quota"),
        ("/v1/messages", ("error", "type"), "billing_error"),
        ("/v1beta/models/tiny:generateContent", ("error", "status"), "RESOURCE_EXHAUSTED"),
    ],
)
def test_spent_money_is_told_in_every_form(
    upstream: ReplayServer, path: str, place: tuple[str, str], word: str, stream: bool
) -> None:
    """Also if its server says so with status 200, as MiniMax does."""
    upstream.add(Answer.of_json({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}))
    models = f"tiny: {{provider: minimax, model: m, base_url: '{upstream.url}', api_key: k}}"
    body: dict[str, Any] = {**HI, "max_tokens": 9}
    if path == "/v1/responses":
        body = {"model": "tiny", "input": "Hi"}
    if "models" in path:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        path = path.replace("generate", "streamGenerate") if stream else path
    elif stream:
        body["stream"] = True
    answer = post(config_of(upstream, models=models), body, path)
    assert answer.status_code == 402
    assert answer.headers["x-should-retry"] == "false"
    told = answer.json()
    assert (told[0] if type(told) is list else told)[place[0]][place[1]] == word


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("provider", "status", "path", "code"),
    [
        ("openai", 503, "/v1beta/models/tiny:generateContent", "UNAVAILABLE"),
        ("anthropic", 529, "/v1beta/models/tiny:generateContent", "UNAVAILABLE"),
        ("gemini", 500, "/v1beta/models/tiny:generateContent", "INTERNAL"),
        ("gemini", 500, CHAT, None),
        ("gemini", 500, "/v1/responses", None),
    ],
)
def test_an_error_has_a_word_of_the_clients_api(
    upstream: ReplayServer, provider: str, status: int, path: str, code: str | None, stream: bool
) -> None:
    error = {"code": status, "message": "Out of order.", "status": "INTERNAL"}
    upstream.add(
        Answer.of_json({"error": error if provider == "gemini" else {"message": "No."}}, status=status)
    )
    models = f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: k}}"
    body: dict[str, Any] = {"model": "tiny", "input": "Hi"} if path == "/v1/responses" else {**HI}
    if "models" in path:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        path = path.replace("generate", "streamGenerate") + "?alt=sse" if stream else path
    else:
        body["stream"] = stream
    answer = post(config_of(upstream, models=models), body, path).json()["error"]
    assert answer["status" if "models" in path else "code"] == code


def test_the_place_of_a_refused_part_is_the_clients(upstream: ReplayServer) -> None:
    models = f"tiny: {{provider: ollama, base_url: '{upstream.url}', model: m}}"
    file = {"type": "input_file", "file_url": "https://example.org/a.pdf"}
    body = {"model": "tiny", "input": [{"role": "user", "content": [file]}]}
    answer = post(config_of(upstream, models=models), body, "/v1/responses")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")


@pytest.mark.parametrize(
    ("header", "more", "named"),
    [
        ("anthropic-beta", {}, "request.anthropic-beta: a request in another format cannot say it"),
        ("openai-beta", {"store": True}, "request.store: the server may keep the answer"),
        ("openai-beta", {"store": False}, None),
    ],
)
def test_what_leads_nowhere_is_named(
    upstream: ReplayServer, header: str, more: dict[str, Any], named: str | None
) -> None:
    upstream.add(says(), times=None)
    app = create_app(config_of(upstream))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            plain = [
                await client.post(CHAT, json={**HI, **more}) for _ in range(2)
            ]  # the second one on the lane
            answer = await client.post(CHAT, json={**HI, **more}, headers={header: "a-1"})
        assert (named or "") in answer.headers.get("x-crosswalk-dropped", "")
        assert ("x-crosswalk-dropped" in answer.headers) is (named is not None)
        assert ["x-crosswalk-dropped" in one.headers for one in plain] == [bool(more.get("store"))] * 2

    run(main())


def test_a_number_that_nobody_asked_for_is_named(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(MESSAGE), times=2)
    answer = post(messages_at(upstream))
    assert upstream.requests[0].json()["max_tokens"] == 16384
    assert "request.max_tokens" in answer.headers["x-crosswalk-dropped"]
    answer = post(messages_at(upstream), {**HI, "max_tokens": 9})
    assert "max_tokens" not in answer.headers["x-crosswalk-dropped"]


def test_what_the_model_takes_in_another_form_is_named(upstream: ReplayServer) -> None:
    upstream.add(says())
    models = f"tiny: {{provider: openai, model: prod-7, model_class: gpt-5.1, base_url: '{upstream.url}', api_key: k}}"
    answer = post(config_of(upstream, models=models), {**HI, "reasoning_effort": "xhigh"})
    assert upstream.requests[0].json()["reasoning_effort"] == "high"
    change = "request.reasoning_effort: xhigh became high: prod-7 takes no 'xhigh'"
    assert answer.headers["x-crosswalk-dropped"] == change


_REFUSED_FIELDS = [
    # What each model refuses, in the words of its own API.
    (
        CHAT,
        "openai",
        "o3",
        {"temperature": 0.2, "stop": ["END"], "reasoning_effort": "xhigh", "max_completion_tokens": 200_000},
    ),
    (CHAT, "xai", "grok-4.6", {"stop": ["END"], "frequency_penalty": 1, "reasoning_effort": "none"}),
    (CHAT, "moonshot", "kimi-k2.6", {"temperature": 0.2, "reasoning_effort": "high"}),
    (
        "/v1/messages",
        "anthropic",
        "claude-opus-5-5",
        {
            "max_tokens": 9,
            "temperature": 0.2,
            "thinking": {"type": "disabled"},
            "output_config": {"effort": "low"},
        },
    ),
    (
        "/v1/messages",
        "anthropic",
        "claude-sonnet-4-5",
        {"max_tokens": 200_000, "thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
    ),
    ("/v1/responses", "openai_responses", "gpt-5-pro", {"temperature": 0.2, "reasoning": {"effort": "low"}}),
    ("/api/chat", "ollama", "llama3.2", {"think": "high", "stream": False}),
]


@pytest.mark.parametrize(("path", "provider", "model", "fields"), _REFUSED_FIELDS)
def test_for_the_model_that_the_client_named_its_own_words_pass(
    upstream: ReplayServer, path: str, provider: str, model: str, fields: dict[str, Any]
) -> None:
    """In the same format the server judges them, even if the model is known to refuse them."""
    upstream.add(Answer.of_json({}))
    models = f"{model}: {{provider: {provider}, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    asked = {"model": model, ("input" if "responses" in path else "messages"): HI["messages"], **fields}
    answer = post(config_of(upstream, models=models), asked, path)
    sent = upstream.requests[0].json()
    assert {name: sent.get(name) for name in asked} == asked
    assert sent.keys() - asked.keys() <= {"stream"}
    assert "x-crosswalk-dropped" not in answer.headers


@pytest.mark.parametrize(("path", "provider", "model", "fields"), _REFUSED_FIELDS)
def test_for_another_model_than_the_client_named_they_are_refused_or_fitted(
    upstream: ReplayServer, path: str, provider: str, model: str, fields: dict[str, Any]
) -> None:
    upstream.add(Answer.of_json({}))
    models = (
        f"best: {{provider: {provider}, model: {model}, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    )
    asked = {"model": "best", ("input" if "responses" in path else "messages"): HI["messages"], **fields}
    answer = post(config_of(upstream, models=models), asked, path)
    if upstream.requests:
        assert "x-crosswalk-dropped" in answer.headers
        assert not fields.items() <= upstream.requests[0].json().items()
    else:
        assert answer.status_code == 400
        assert model in answer.text


def test_an_answer_that_the_server_does_not_continue_is_named(upstream: ReplayServer) -> None:
    part = {"type": "output_text", "text": "Four.", "annotations": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    upstream.add(Answer.of_json({**response, "output": [message]}))
    models = f"tiny: {{provider: openai_responses, api_key: k, base_url: '{upstream.url}'}}"
    turns = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "It is"}]
    body = {"model": "tiny", "max_tokens": 9, "messages": turns}
    answer = post(config_of(upstream, models=models), body, "/v1/messages")
    assert answer.headers["x-crosswalk-dropped"].startswith("request.messages[1]: the API does not continue")


def test_when_to_come_again_is_passed_on(upstream: ReplayServer) -> None:
    upstream.add(Answer.failure(429, retry_after=7))
    assert post(config_of(upstream)).headers["retry-after"] == "7"


def test_a_long_wait_is_left_to_the_client(upstream: ReplayServer) -> None:
    upstream.add(Answer.failure(429, retry_after=3))
    config = read_config(f"models: {{tiny: {{provider: vllm, base_url: '{upstream.url}'}}}}")
    answer = post(config)
    assert (answer.status_code, answer.headers["retry-after"], len(upstream.requests)) == (429, "3", 1)


def test_a_server_that_is_not_there(upstream: ReplayServer) -> None:
    config = config_of(upstream, models="tiny: {provider: vllm, base_url: 'http://127.0.0.1:1'}")
    answer = post(config)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (502, "server_error")
    assert error["message"] == "the server of this model cannot be reached"  # and not where it was looked for


def test_a_stream_that_breaks_does_not_tell_where_its_server_is(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo"), Reset(after_events=2))
    answer = post(config_of(upstream), {**HI, "stream": True})
    assert "the server of this model broke off" in answer.text
    assert "127.0.0.1" not in answer.text
    assert "[DONE]" not in answer.text


def test_an_answer_that_cannot_be_read_is_an_error(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.add(
        Answer.of_json({**ABOUT, "choices": [{"index": 0, "message": {"role": "assistant", "content": [7]}}]})
    )
    answer = post(config_of(upstream))
    assert answer.status_code == 502
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("body", [b'{"choices": [', b"<html>Welcome</html>", b"[]", b""])
@pytest.mark.parametrize("asked", [HI, STREAMED])
def test_what_is_no_answer_is_the_servers_fault(upstream: ReplayServer, body: bytes, asked: Any) -> None:
    upstream.add(Answer((body,), headers={"Content-Type": "text/html"}), times=None)
    assert post(config_of(upstream), asked).status_code == 502


# ------------------------------------------------------------------------------------ streams


def test_a_stream_comes_event_by_event_and_ends_in_its_form(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo"))
    answer = post(config_of(upstream), STREAMED)
    assert answer.headers["content-type"] == "text/event-stream"
    *chunks, done = events(answer)
    assert done == "[DONE]"
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks) == "Hello"
    assert {(chunk["id"], chunk["model"]) for chunk in chunks} == {("chatcmpl-1", "tiny-1")}
    assert upstream.requests[0].json()["stream"] is True


def test_counts_come_with_a_stream_where_they_were_asked_for(upstream: ReplayServer) -> None:
    upstream.add(streams("Hello"), times=2)
    asked = {**STREAMED, "stream_options": {"include_usage": True}}
    *_, counts, _ = events(post(config_of(upstream), asked))
    assert (counts["choices"], counts["usage"]["total_tokens"]) == ([], 13)
    assert all(chunk == "[DONE]" or chunk["choices"] for chunk in events(post(config_of(upstream), STREAMED)))


def test_what_a_stream_could_not_say_is_a_comment_at_its_end(upstream: ReplayServer) -> None:
    thinking = {"type": "thinking_delta", "thinking": "Hm."}
    signature = {"type": "signature_delta", "signature": "EqQB"}
    sent = [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": "", "brand": 1}},
        {"type": "content_block_delta", "index": 0, "delta": thinking},
        {"type": "content_block_delta", "index": 0, "delta": signature},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]  # fmt: skip
    frames = tuple(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in sent)
    upstream.add(Answer(frames, headers={"Content-Type": "text/event-stream"}, stream=True))
    answer = post(messages_at(upstream), STREAMED)
    *_, done, comment = answer.text.strip().split("\n\n")
    assert done == "data: [DONE]"
    assert comment.startswith(": x-crosswalk-dropped: ")
    assert "content[0].brand" in comment


def test_a_failure_before_the_first_token_is_an_http_error(upstream: ReplayServer) -> None:
    upstream.add(Answer.failure(429, retry_after=3))
    answer = post(config_of(upstream), STREAMED)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "fault", [Cut(after_events=2), Reset(after_events=2), Cut(after_events=2, clean=True)]
)
def test_a_stream_that_breaks_ends_with_an_error_and_never_looks_complete(
    upstream: ReplayServer, fault: Any
) -> None:
    upstream.add(streams("Hel", "lo", "!"), fault)
    answer = post(config_of(upstream), STREAMED)
    assert answer.status_code == 200
    *chunks, last = events(answer)
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks) == "Hello"
    assert last["error"]["type"] == "server_error"


def test_a_stream_that_cannot_be_read_on_ends_with_an_error(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo"), Garbage(after_events=1, data=b'data: {"choices": 7}\n\n'))
    answer = post(config_of(upstream), STREAMED)
    assert "error" in events(answer)[-1]


def test_a_stream_that_cannot_be_read_from_the_first_event_on(upstream: ReplayServer) -> None:
    upstream.add(
        Answer((b'data: {"choices": 7}\n\n',), headers={"Content-Type": "text/event-stream"}, stream=True)
    )
    answer = post(config_of(upstream), STREAMED)
    assert answer.status_code >= 500
    assert answer.json()["error"]


def test_a_stream_for_what_the_server_cannot_express(upstream: ReplayServer) -> None:
    answer = post(messages_at(upstream), {**STREAMED, "seed": 7})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "seed")


# ------------------------------------------------------------------------------------ who may


KEY = "cw-alice-0123456789abcdefghij"
HASHED = f"'{KeyHash.of(KEY, b'saltsalt')}'"


@pytest.mark.parametrize(("given", "status"), [(f"Bearer {KEY}", 200), ("Bearer cw-wrong", 401), ("", 401)])
def test_a_key_opens(upstream: ReplayServer, given: str, status: int) -> None:
    upstream.add(says())
    answer = post(config_of(upstream, f"keys: {{alice: {{hash: {HASHED}}}}}"), authorization=given)
    assert answer.status_code == status
    if status == 401:
        assert (answer.json()["error"]["code"], answer.headers["www-authenticate"]) == (
            "invalid_api_key",
            "Bearer",
        )
        assert answer.headers["connection"] == "close"
    assert all(KEY not in str(request.headers) for request in upstream.requests)


def test_a_model_that_is_not_for_the_key_is_none(upstream: ReplayServer) -> None:
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}'}}\n  other: {{provider: vllm, base_url: '{upstream.url}'}}"
    config = config_of(upstream, f"keys: {{alice: {{hash: {HASHED}, models: other}}}}", models)
    hidden, unknown = (
        post(config, {**HI, "model": name}, authorization=f"Bearer {KEY}") for name in ("tiny", "none")
    )
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.json() == unknown.json()
    assert hidden.json()["error"]["code"] == "model_not_found"


def test_limits_of_a_key_hold_from_one_request_to_the_next(upstream: ReplayServer) -> None:
    upstream.add(says(), times=None)
    price = "{input_per_million: 1000, output_per_million: 2000}"

    async def main() -> None:
        for limit, code in [
            ("requests_per_minute: 1", "rate_limit_exceeded"),
            ("tokens_per_minute: 13", "rate_limit_exceeded"),
            ("budget_per_day: 0.017", "insufficient_quota"),
        ]:
            model = f"tiny: {{provider: vllm, base_url: '{upstream.url}', price: {price}}}"
            config = config_of(upstream, f"keys: {{alice: {{hash: {HASHED}, {limit}}}}}", model)
            app = create_app(config, clock=lambda: 1_000_000_020.0)
            async with asking(app, headers={"x-api-key": KEY}) as client:
                assert (await client.post(CHAT, json={**HI, "max_tokens": 4})).status_code == 200
                refused = await client.post(CHAT, json={**HI, "max_tokens": 4})
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, code)
                assert int(refused.headers["retry-after"]) > 0
            await app.state.gateway.aclose()

    run(main())


def test_requests_at_once_do_not_pass_the_budget(upstream: ReplayServer) -> None:
    upstream.add(says(), times=3).add(Answer.failure(400), times=None)
    price = "{input_per_million: 0, output_per_million: 1000000}"
    model = f"tiny: {{provider: vllm, base_url: '{upstream.url}', price: {price}}}"
    config = config_of(upstream, f"keys: {{alice: {{hash: {HASHED}, budget_per_day: 16}}}}", model)

    async def main() -> None:
        app = create_app(config)
        async with asking(app, headers={"x-api-key": KEY}) as client:

            async def statuses(count: int, most: int) -> list[int]:
                body = {**HI, "max_tokens": most}
                answers = await asyncio.gather(*(client.post(CHAT, json=body) for _ in range(count)))
                return sorted(answer.status_code for answer in answers)

            assert await statuses(9, 5) == [200] * 3 + [429] * 6
            assert await statuses(2, 4) == [400, 429]  # each of the answers has cost 4
            assert await statuses(1, 4) == [400]  # what an error has not used is there again
        await app.state.gateway.aclose()

    run(main())


def test_a_key_that_has_enough_requests_is_told_to_come_again(upstream: ReplayServer) -> None:
    config = config_of(upstream, f"keys: {{alice: {{hash: {HASHED}, concurrent_requests: 1}}}}")

    async def main() -> None:
        app = create_app(config)
        gateway = app.state.gateway
        async with asking(app, headers={"x-api-key": KEY}) as client:
            with gateway.quotas.place(Caller("alice", config.keys["alice"])):
                refused = await client.post(CHAT, json=HI)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            upstream.add(says())
            assert (await client.post(CHAT, json=HI)).status_code == 200
        await gateway.aclose()

    run(main())


def test_too_many_at_once_are_told_to_come_again(upstream: ReplayServer) -> None:
    async def main() -> None:
        app = create_app(config_of(upstream, "limits: {concurrent_requests: 1}"))
        async with asking(app) as client:
            with app.state.gateway.slot():
                refused = await client.post(CHAT, json=HI)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            upstream.add(says())
            assert (await client.post(CHAT, json=HI)).status_code == 200
        await app.state.gateway.aclose()

    run(main())


def test_a_mistake_of_the_gateways_own_is_an_error_without_its_words(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(config_of(upstream))

    def broken(*_: Any) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr(app.state.gateway, "route", broken)
    answer = asyncio.run(_posted(app, CHAT, HI, {}))
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, "the gateway failed")
    assert "secret words" in caplog.text


def test_in_mid_stream_too(upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> bytes:
        raise RuntimeError("secret words")

    monkeypatch.setattr("crosswalk_serve.answers.Relay.frames", broken)
    upstream.add(streams("Hello"))
    (last,) = events(post(config_of(upstream), STREAMED))
    assert last["error"]["message"] == "the gateway failed"


# ------------------------------------------------------------------------------------ what is written down


@pytest.mark.parametrize("body", [HI, STREAMED])
def test_the_log_of_exchanges_is_read_as_logs_are(upstream: ReplayServer, tmp_path: Path, body: Any) -> None:
    upstream.add(streams("Hel", "lo") if "stream" in body else says("Hello"))
    post(config_of(upstream, f"log: {{exchanges: {tmp_path}/log.jsonl}}"), body)
    (line,) = (tmp_path / "log.jsonl").read_bytes().splitlines()
    record = read_record(line)
    response = normalize(record.body, record.provider, status=record.status or 0)
    assert (response.text, response.usage.total_tokens, record.id) == ("Hello", 13, "chatcmpl-1")
    about = orjson.loads(line)
    assert (about["form"], about["model"], about["key"], about["dropped"]) == (
        "openai-chat",
        "tiny",
        None,
        [],
    )
    assert about["stream"] is ("stream" in body)
    assert about["request"] == body
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o077 == 0


def test_requests_are_left_out_of_it_on_demand(upstream: ReplayServer, tmp_path: Path) -> None:
    upstream.add(says())
    log = f"log: {{exchanges: {tmp_path}/log.jsonl, exchange_requests: false}}"
    post(config_of(upstream, log))
    assert "request" not in orjson.loads((tmp_path / "log.jsonl").read_bytes())


def test_errors_are_in_it_too(upstream: ReplayServer, tmp_path: Path) -> None:
    upstream.add(Answer.failure(429, message="slow down"))
    post(config_of(upstream, f"log: {{exchanges: {tmp_path}/log.jsonl}}"))
    record = read_record((tmp_path / "log.jsonl").read_bytes())
    assert record.status == 429
    assert normalize(record.body, record.provider, status=429).error_info.message == "slow down"


@pytest.mark.parametrize("body", [HI, STREAMED])
def test_a_key_that_a_server_repeats_is_not_in_it(upstream: ReplayServer, tmp_path: Path, body: Any) -> None:
    """Nor one of an endpoint behind it, nor in base64. The rest of the message stays."""
    said = f"né: wrong key sk-secret-1, not sk-secret-2 nor {b64encode(b'x sk-secret-1 x').decode()}"
    upstream.add(Answer.failure(401, message=said), times=None)
    endpoints = [
        f"{{provider: vllm, model: m, base_url: '{upstream.url}', api_key: sk-secret-1}}",
        f"{{provider: vllm, model: n, base_url: '{upstream.url}', api_key: sk-secret-2}}",
    ]
    config = config_of(
        upstream, f"log: {{exchanges: {tmp_path}/log.jsonl}}", models=f"tiny: [{', '.join(endpoints)}]"
    )
    post(config, body)
    log = (tmp_path / "log.jsonl").read_bytes()
    told = normalize(read_record(log).body, "vllm", status=401).error_info.message
    assert told.startswith("né: wrong key <secret>, not <secret> nor ")
    assert b"secret-" not in log
    assert b64encode(b"sk-secret-1")[2:10] not in log


def test_a_line_says_why_each_attempt_failed(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.add(Answer.failure(503, message="busy, sk-secret-1")).add(says())
    closed = "http://127.0.0.1:1"
    models = (
        f"tiny: [{{provider: vllm, base_url: '{closed}'}}, "
        f"{{provider: vllm, base_url: '{upstream.url}', api_key: sk-secret-1}}, "
        f"{{provider: sglang, base_url: '{upstream.url}'}}]"
    )
    answer = post(config_of(upstream, models=models))
    assert answer.status_code == 200
    failed = [one for one in caplog.records if "attempt failed" in one.message]
    address = upstream.url.removeprefix("http://")
    assert [vars(one)["server.address"] for one in failed] == ["127.0.0.1:1", address]
    assert [vars(one)["http.response.status_code"] for one in failed] == [None, 503]
    assert failed[1].message.startswith(
        f"{answer.headers['x-request-id']} attempt failed: vllm {address} tiny: "
    )
    assert "busy" in failed[1].message
    assert "sk-secret-1" not in caplog.text


def test_a_line_says_that_a_server_cools_down_and_that_it_answers_again(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    models = (
        f"tiny: [{{provider: vllm, base_url: '{upstream.url}'}}, "
        f"{{provider: sglang, base_url: '{upstream.url}'}}]"
    )
    app = create_app(config_of(upstream, models=models), timer=lambda: now)

    async def main() -> None:
        nonlocal now
        async with app.router.lifespan_context(app), asking(app) as client:
            upstream.add(Answer.failure(503)).add(says(), times=3)
            for time in (0.0, 1.0, 30.0):
                now = time
                assert (await client.post(CHAT, json=HI)).status_code == 200

    run(main())
    address = upstream.url.removeprefix("http://")
    told = [one.message.partition(" ")[2] for one in caplog.records if "crosswalk.cool_down" in vars(one)]
    assert told == [
        f"vllm {address} is tried last for 30s: it cools down",
        f"vllm {address} has answered: its cool-down is over",
    ]


CLAUDE: dict[str, Any] = {**HI, "max_tokens": 9}


@pytest.mark.parametrize(
    ("busy", "asked", "counts"),
    [
        pytest.param([Answer.failure(503)], ["first"], (3, 1), id="a name"),
        pytest.param([Answer.failure(429, retry_after=9)], ["first"], (1, 1), id="a pause"),
        pytest.param(
            [
                Answer.of_json({**MESSAGE, "container": {"id": "kept"}}),
                *[Answer.failure(503)] * 3,
            ],
            ["first", "first in a container"],
            (4, 0),
            id="a request for one server",
        ),
    ],
)
def test_a_busy_server_is_left_alone_by_all_names(
    upstream: ReplayServer, busy: list[Answer], asked: list[str], counts: tuple[int, int]
) -> None:
    """Whoever has met it: another name, a first server of several, or a request for this server alone."""
    for answer in busy:
        upstream.add(answer, times=1 if busy[1:] else None)
    at_once = "retry: {initial_seconds: 0, max_seconds: 0}"
    with ReplayServer() as other:
        other.add(Answer.of_json(MESSAGE), times=None)
        endpoints = [
            [f"{{provider: anthropic, base_url: '{url}', api_key: k, model: {name}}}" for url in urls]
            for name, urls in (("m", (upstream.url, other.url)), ("n", (f"{upstream.url}/", other.url)))
        ]
        models = "\n".join(
            f"  {name}: [{', '.join(one)}]" for name, one in zip(["first", "second"], endpoints, strict=True)
        )
        app = create_app(read_config(f"models:\n{models}\n{at_once}\n", environ={}))

        async def main() -> None:
            async with app.router.lifespan_context(app), asking(app) as client:
                for one in asked:
                    name, _, is_kept = one.partition(" ")
                    more = {"container": "kept"} if is_kept else {}
                    await client.post("/v1/messages", json={**CLAUDE, **more, "model": name})
                assert (len(upstream.requests), len(other.requests)) == counts
                for name in ("second", "first", "second"):
                    answer = await client.post("/v1/messages", json={**CLAUDE, "model": name})
                    assert answer.json()["content"][-1]["text"] == "Hello"
                assert len(upstream.requests) == counts[0]

        run(main())


def test_models_of_one_server_fail_each_for_itself(upstream: ReplayServer) -> None:
    """The second one is there for when the first one is too busy."""
    upstream.add(Answer.failure(503), when=lambda request: request.json()["model"] == "a", times=None)
    upstream.add(says(), times=None)
    server = f"provider: vllm, base_url: '{upstream.url}'"
    models = f"tiny: [{{{server}, model: a}}, {{{server}, model: b}}]"
    app = create_app(config_of(upstream, models=models))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            for _ in range(3):
                assert (await client.post(CHAT, json=HI)).status_code == 200

    run(main())
    assert [request.json()["model"] for request in upstream.requests] == [*"abbb"]


def test_a_line_says_how_each_request_ended(upstream: ReplayServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crosswalk.serve")
    upstream.add(Answer.of_json(MESSAGE))
    post(messages_at(upstream))
    (record,) = [one for one in caplog.records if one.name == "crosswalk.serve"]
    assert "openai-chat tiny - 200" in record.getMessage()
    assert "content[1].brand" in record.getMessage()
    assert "Hello" not in caplog.text
    assert "sk-secret-1" not in caplog.text


def test_prometheus_is_told(upstream: ReplayServer) -> None:
    async def main() -> None:
        upstream.add(says()).add(streams("Hello")).add(Answer.failure(500)).add(Answer.of_json(MESSAGE))
        price = "{input_per_million: 1000000, output_per_million: 0}"
        models = (
            f"tiny: {{provider: vllm, base_url: '{upstream.url}', price: {price}}}\n"
            f"  claude: {{provider: anthropic, base_url: '{upstream.url}'}}"
        )
        more = f"metrics: true\nkeys: {{alice: {{hash: {HASHED}, metrics: true}}, bob: {{hash: {HASHED[:-2]}0'}}}}"
        app = create_app(config_of(upstream, more, models))
        async with asking(app, headers={"x-api-key": KEY}) as client:
            for body in (HI, STREAMED, HI, {**HI, "model": "claude"}, {**HI, "model": "made up"}):
                await client.post(CHAT, json=body)
            text = (await client.get("/metrics")).text
        lines = set(text.splitlines())
        asked = 'crosswalk_serve_requests_total{form="openai-chat",key="alice",model="tiny",status='
        assert f'{asked}"200"}} 2.0' in lines
        assert f'{asked}"500"}} 1.0' in lines
        assert 'crosswalk_serve_tokens_total{key="alice",model="tiny",type="input"} 18.0' in lines
        assert 'crosswalk_serve_cost_dollars_total{key="alice",model="tiny"} 18.0' in lines
        about = f'endpoint="{upstream.url.removeprefix("http://")}",outcome="error",provider="vllm"'
        assert f"crosswalk_serve_attempts_total{{{about}}} 1.0" in lines
        assert 'crosswalk_serve_dropped_total{form="openai-chat",model="claude"} 1.0' in lines
        assert 'crosswalk_serve_first_event_seconds_count{form="openai-chat",model="tiny"} 1.0' in lines
        assert "crosswalk_serve_running 0.0" in lines
        assert "made up" not in text
        await app.state.gateway.aclose()

    run(main())
