"""Ollama's requests that say nothing: the model is to be in memory, or no longer."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx2
import ollama
import pytest

from contrib_serve import HI, asking, config_of, live, says
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import KeyHash

LOADED = {
    "model": "x",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": ""},
    "done": True,
}
CHAT, GENERATE = "/api/chat", "/api/generate"


def answer_of(done: str) -> Answer:
    return Answer.of_json({**LOADED, "done_reason": done})


def at_ollama(upstream: ReplayServer) -> str:
    return f"tiny: {{provider: ollama, model: x, base_url: '{upstream.url}'}}"


def post(upstream: ReplayServer, path: str, body: Any, models: str = "", more: str = "") -> httpx2.Response:
    """The answer of a new gateway."""
    app = create_app(config_of(upstream, more, models=models))

    async def main() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json=body)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("more", "done"),
    [
        ({}, "load"),
        ({"stream": False}, "load"),
        ({"keep_alive": "5m"}, "load"),
        ({"keep_alive": -1}, "load"),
        ({"keep_alive": 10}, "load"),
        ({"keep_alive": "10m0s"}, "load"),
        ({"keep_alive": "soon"}, "load"),
        ({"keep_alive": False}, "load"),
        ({"keep_alive": 0}, "unload"),
        ({"keep_alive": 0.5}, "unload"),
        ({"keep_alive": "0"}, "unload"),
        ({"keep_alive": "0m0.0s"}, "unload"),
    ],
)
@pytest.mark.parametrize(
    ("path", "nothing"),
    [
        (CHAT, {}),
        (CHAT, {"messages": []}),
        (CHAT, {"messages": None}),
        (GENERATE, {}),
        (GENERATE, {"prompt": "", "system": "Be brief."}),
    ],
)
def test_a_server_that_loads_nothing_is_not_asked(
    upstream: ReplayServer, path: str, nothing: dict[str, Any], more: dict[str, Any], done: str
) -> None:
    answer = post(upstream, path, {"model": "tiny", **nothing, **more})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    said = answer.json()
    assert said.pop("created_at").endswith("Z")
    own = {"message": {"role": "assistant", "content": ""}} if path == CHAT else {"response": ""}
    assert said == {"model": "tiny", **own, "done": True, "done_reason": done}
    assert upstream.requests == ()


def test_a_prompt_is_asked(upstream: ReplayServer) -> None:
    upstream.add(says("Hello"))
    answer = post(upstream, GENERATE, {"model": "tiny", "prompt": "Hi", "keep_alive": 0, "stream": False})
    assert answer.json()["response"] == "Hello"


@pytest.mark.parametrize("path", [CHAT, GENERATE])
def test_a_server_of_ollama_s_loads_it(upstream: ReplayServer, path: str) -> None:
    """It is asked for the model by its own name, and gets none of the other fields that an answer would need."""
    upstream.add(answer_of("unload"))
    body = {"model": "tiny", "keep_alive": 0, "options": {"num_ctx": 9}, "think": True}
    answer = post(upstream, path, body, at_ollama(upstream))
    assert (answer.json()["model"], answer.json()["done_reason"]) == ("tiny", "unload")
    (asked,) = upstream.requests
    told = {"model": "x", "messages": [], "stream": False, "keep_alive": 0, "options": {"num_ctx": 9}}
    assert (asked.path, asked.json()) == (CHAT, told)


def test_all_that_may_be_asked_first_load_it(upstream: ReplayServer) -> None:
    upstream.add(answer_of("load"), times=None)
    endpoints = [
        f"{{provider: ollama, model: {name}, base_url: '{upstream.url}'{more}}}"
        for name, more in (("a", ", weight: 1"), ("b", ", weight: 3"), ("c", ""))
    ]
    answer = post(upstream, CHAT, {"model": "tiny"}, f"tiny: [{', '.join(endpoints)}]")
    assert answer.json()["done_reason"] == "load"
    assert [asked.json()["model"] for asked in upstream.requests] == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        (Answer.of_json({"error": "model 'x' not found"}, status=404), 404, "model 'x' not found"),
        (Answer((b"<html>",)), 502, "the server of this model gave no answer"),
        (Answer((b"",)), 502, "the server of this model gave no answer"),
    ],
)
def test_one_that_cannot_is_an_error(
    upstream: ReplayServer, answer: Answer, status: int, message: str
) -> None:
    upstream.add(answer)
    refused = post(upstream, CHAT, {"model": "tiny"}, at_ollama(upstream))
    assert (refused.status_code, refused.json()) == (status, {"error": message})


def test_what_one_says_instead_is_told_as_that_of_an_answer(upstream: ReplayServer) -> None:
    """Without the key that it repeats, with how long to wait. A refused key is the gateway's."""
    models = f"tiny: {{provider: ollama, model: x, api_key: sk-secret, base_url: '{upstream.url}'}}"
    upstream.add(Answer.of_json({"error": "no model for sk-secret"}, status=404))
    upstream.add(Answer.failure(429, retry_after=6.5)).add(Answer.failure(401))
    unknown, often, refused = (post(upstream, CHAT, {"model": "tiny"}, models) for _ in range(3))
    assert (unknown.status_code, unknown.json()["error"]) == (404, "no model for <secret>")
    assert (often.status_code, often.headers["retry-after"]) == (429, "7")
    assert refused.status_code == 502


def test_one_that_is_away_is_not_named(upstream: ReplayServer) -> None:
    away = "tiny: {provider: ollama, base_url: 'http://127.0.0.1:1'}"
    refused = post(upstream, CHAT, {"model": "tiny"}, away)
    assert (refused.status_code, refused.json()["error"]) == (
        502,
        "the server of this model cannot be reached",
    )


def test_who_may_not_ask_a_model_loads_none(upstream: ReplayServer) -> None:
    key = f"keys: {{a: {{hash: '{KeyHash.of('cw-alice-0123456789abcdefghij', b'saltsalt')}'}}}}"
    assert post(upstream, CHAT, {"model": "tiny"}, at_ollama(upstream), key).status_code == 401
    assert post(upstream, CHAT, {"model": "other"}, at_ollama(upstream)).status_code == 404
    assert upstream.requests == ()


def test_loading_ends_with_the_gateway_and_with_its_client(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "crosswalk.serve")
    upstream.add(answer_of("load"), Stall(), times=None)
    config = config_of(upstream, "limits: {shutdown_seconds: 3}", models=at_ollama(upstream))
    with live(config) as here, here.connect() as left, here.connect() as ended:
        asked = b'{"model": "tiny"}'
        head = b"POST /api/chat HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(
            asked
        )
        left.sendall(head + asked)
        upstream.wait_for(lambda server: len(server.requests) == 1)
        left.close()
        upstream.wait_for(lambda server: server.disconnects)
        ended.sendall(head + asked)
        upstream.wait_for(lambda server: len(server.requests) == 2)
        here.end()
        here.wait_for(lambda here: here.gateway.is_draining)
        here.pass_time(3)
        answer = b""
        while piece := ended.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert answer.endswith(b'{"error":"the gateway is being shut down"}')
    assert "ollama tiny - 499" in caplog.text


def test_ollama_s_own_client(upstream: ReplayServer) -> None:
    upstream.add(says("Hello"), times=None)
    with live(config_of(upstream)) as here, ollama.Client(host=here.url) as client:
        assert client.generate(model="tiny").done_reason == "load"
        assert client.chat(model="tiny").done_reason == "load"
        assert client.generate(model="tiny", keep_alive=0).done_reason == "unload"
        assert [line.done_reason for line in client.generate(model="tiny", stream=True)] == ["load"]
        assert client.chat(model="tiny", messages=HI["messages"]).done_reason == "stop"
