"""Options in headers: those that the client's own API knows go to a server of that API, and no other header ever does."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic

from contrib_serve import HI, asking, config_of, says
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "model": "gpt",
    "status": "completed",
    "output": [],
}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/messages": {**HI, "max_tokens": 9},
    "/v1/chat/completions": HI,
    "/v1/responses": {"model": "tiny", "input": "Hi"},
    "/v1/completions": {"model": "tiny", "prompt": "Hi"},
    "/api/chat": {**HI, "stream": False},
}
ANSWERS = {
    "anthropic": Answer.of_json(MESSAGE),
    "openai": says(),
    "openai_responses": Answer.of_json(RESPONSE),
    "vllm": says(),
}
HEADERS = [("anthropic-beta", "context-1m,files-api"), ("OpenAI-Beta", "responses=experimental")]


def post(upstream: ReplayServer, path: str, provider: str, headers: list[tuple[str, str]]) -> httpx2.Response:
    """The answer of a gateway before *provider*."""
    upstream.add(ANSWERS[provider])
    model = f"tiny: {{provider: {provider}, api_key: sk-own, base_url: '{upstream.url}'}}"
    app = create_app(config_of(upstream, models=model))

    async def main() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json=ASKED[path], headers=headers)

    return asyncio.run(main())


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("path", "provider", "told", "lost"),
    [
        ("/v1/messages", "anthropic", "anthropic-beta", ""),
        ("/v1/messages", "vllm", None, "request.anthropic-beta"),
        ("/v1/chat/completions", "openai", "openai-beta", ""),
        ("/v1/chat/completions", "vllm", "openai-beta", ""),
        ("/v1/chat/completions", "anthropic", None, "request.openai-beta"),
        ("/v1/responses", "openai_responses", "openai-beta", ""),
        ("/v1/completions", "openai", None, "request.openai-beta"),
        ("/api/chat", "vllm", None, ""),
    ],
)
def test_features_are_switched_on_where_the_server_knows_them(
    upstream: ReplayServer, path: str, provider: str, told: str | None, lost: str
) -> None:
    answer = post(upstream, path, provider, HEADERS)
    assert answer.status_code == 200
    sent = upstream.requests[0].headers
    betas = {name: value for name, value in sent.items() if name.endswith("-beta")}
    assert betas == {name.lower(): value for name, value in HEADERS if name.lower() == told}
    said = [one for one in answer.headers.get("x-crosswalk-dropped", "").split(", ") if "beta" in one]
    own = {"/v1/messages": ["anthropic-beta"], "/api/chat": []}.get(path, ["openai-beta"])
    foreign = [
        name.lower() for name, _ in HEADERS if name.lower().endswith("-beta") and name.lower() not in own
    ]
    unsaid = [f"request.{name}: a request in another format cannot say it" for name in foreign]
    assert said == [*unsaid, *([f"{lost}: the header asks what this API does not know"] if lost else [])]


@pytest.mark.sweep
@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("provider", ANSWERS)
def test_no_other_header_of_a_client_reaches_a_server(
    upstream: ReplayServer, path: str, provider: str
) -> None:
    names = [
        "authorization", "x-api-key", "api-key", "cookie", "openai-organization", "openai-project", "x-forwarded-for",
        "x-forwarded-host", "x-stainless-lang", "x-client-request-id", "anthropic-beta-x",
        "anthropic-dangerous-direct-browser-access", "proxy-authorization", "x-goog-api-key", "host2",
    ]  # fmt: skip
    assert post(upstream, path, provider, [(name, "of the client") for name in names]).status_code == 200
    assert "of the client" not in upstream.requests[0].headers.values()


def test_a_header_that_comes_twice_is_one_list(upstream: ReplayServer) -> None:
    headers = [("anthropic-beta", "a-1"), ("anthropic-beta", "b-2 , c=3"), ("anthropic-beta", "")]
    assert post(upstream, "/v1/messages", "anthropic", headers).status_code == 200
    assert upstream.requests[0].headers["anthropic-beta"] == "a-1, b-2 , c=3"


@pytest.mark.parametrize(
    ("version", "lost"),
    [("2023-06-01", None), ("2026-10-21", None), ("2023-01-01", "anthropic-version")],
)
def test_answers_are_those_of_one_version(upstream: ReplayServer, version: str, lost: str | None) -> None:
    answer = post(upstream, "/v1/messages", "anthropic", [("anthropic-version", version)])
    assert answer.headers.get("x-crosswalk-dropped", "").partition(":")[0] == (
        f"request.{lost}" if lost else ""
    )
    assert upstream.requests[0].headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize("value", ["bé", "a b", "a,,b", "\x7f", "a, " * 5000 + " "])
def test_what_is_no_list_of_words_is_refused_by_name(upstream: ReplayServer, value: str) -> None:
    headers: Any = [("anthropic-beta", value.encode())]
    answer = post(upstream, "/v1/messages", "anthropic", headers)
    assert answer.status_code == 400
    said = answer.json()["error"]["message"]
    assert said == "anthropic-beta: expected words with commas between them"
    assert upstream.requests == ()


def test_an_sdk_s_betas_reach_the_server_also_when_it_counts(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(MESSAGE)).add(Answer.of_json({"input_tokens": 7}))
    model = f"tiny: {{provider: anthropic, api_key: sk-own, base_url: '{upstream.url}'}}"
    app = create_app(config_of(upstream, models=model))
    turns: Any = HI["messages"]

    async def main() -> None:
        async with (
            app.router.lifespan_context(app),
            asking(app) as http,
            AsyncAnthropic(base_url="http://gateway", api_key="none", http_client=http) as client,
        ):
            await client.beta.messages.create(
                model="tiny", max_tokens=9, messages=turns, betas=["files-api-2025-04-14", "context-1m"]
            )
            await client.beta.messages.count_tokens(model="tiny", messages=turns, betas=["context-1m"])

    asyncio.run(main())
    asked, counted = upstream.requests
    assert asked.headers["anthropic-beta"] == "files-api-2025-04-14,context-1m"
    assert "context-1m" in counted.headers["anthropic-beta"]
    assert asked.headers["x-api-key"] == counted.headers["x-api-key"] == "sk-own"
