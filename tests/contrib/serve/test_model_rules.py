"""What a client says for the model that it names arrives as it was, and what a route gives another model is fitted to it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from contrib_serve import asking, config_of
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
ASKED: dict[str, Any] = {
    CHAT: {"messages": [{"role": "user", "content": "Hi"}]},
    RESPONSES: {"input": "Hi"},
    MESSAGES: {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 999},
}
REFUSED: list[tuple[str, str, str, dict[str, Any]]] = [
    (CHAT, "openai", "o3", {"temperature": 0.2, "reasoning_effort": "xhigh", "stop": ["a"]}),
    (CHAT, "openai", "gpt-4.1", {"reasoning_effort": "high", "max_completion_tokens": 99999}),
    (CHAT, "deepseek", "deepseek-v4-pro", {"reasoning_effort": "medium", "top_p": 0.2}),
    (RESPONSES, "openai_responses", "o3", {"temperature": 0.2, "reasoning": {"effort": "xhigh"}}),
    (RESPONSES, "openai_responses", "gpt-6-astra", {"reasoning": {"effort": "none"}, "top_p": 0.5}),
    (MESSAGES, "anthropic", "claude-opus-4-8", {"temperature": 0.2, "top_k": 3}),
    (
        MESSAGES,
        "anthropic",
        "claude-sonnet-4-5",
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
    ),
]
"""Requests that the vendor would refuse, or answer without effect: the client may know better than our facts."""


def sent(
    upstream: ReplayServer, provider: str, model: str, path: str, body: dict[str, Any]
) -> tuple[httpx2.Response, dict[str, Any] | None]:
    """The gateway's answer to *body*, and what its server was asked, if it was."""
    base = {"openai": "/v1", "openai_responses": "/v1", "deepseek": "/v1", "moonshot": "/v1"}.get(
        provider, ""
    )
    upstream.add(Answer.failure(400, message="No."), times=None)
    served = f"{{provider: {provider}, model: {model}, base_url: '{upstream.url}{base}', api_key: k}}"
    config = config_of(upstream, models=f"{body['model']}: {served}")

    async def post() -> httpx2.Response:
        app = create_app(config)
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json=body)

    answer = asyncio.run(post())
    return answer, upstream.requests[0].json() if upstream.requests else None


@pytest.mark.parametrize(("path", "provider", "model", "said"), REFUSED)
def test_for_the_model_that_the_client_names_the_request_goes_out_as_it_came(
    upstream: ReplayServer, path: str, provider: str, model: str, said: dict[str, Any]
) -> None:
    _, asked = sent(upstream, provider, model, path, {"model": model, **ASKED[path], **said})
    assert asked == {"model": model, **ASKED[path], **said}


ROUTED: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    (CHAT, "openai", "o3", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}),
    (CHAT, "moonshot", "kimi-k3", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "max"}),
    (CHAT, "anthropic", "claude-opus-4-8", {"reasoning_effort": "xhigh"}, {"output_config": {"effort": "xhigh"}}),
    (CHAT, "anthropic", "claude-opus-4-6", {"reasoning_effort": "xhigh"}, {"output_config": {"effort": "max"}}),
    (RESPONSES, "openai_responses", "o3", {"reasoning": {"effort": "xhigh"}}, {"reasoning": {"effort": "high"}}),
    (RESPONSES, "gemini", "gemini-2.5-pro", {"reasoning": {"effort": "low"}}, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": True}}}),
    (MESSAGES, "anthropic", "claude-haiku-4-5", {"max_tokens": 9000, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    (MESSAGES, "openai", "gpt-5.1", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, {"reasoning_effort": "high"}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "provider", "model", "said", "expected"), ROUTED)
def test_for_another_model_the_request_is_fitted(
    upstream: ReplayServer,
    path: str,
    provider: str,
    model: str,
    said: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    _, asked = sent(upstream, provider, model, path, {"model": "best", **ASKED[path], **said})
    assert asked is not None
    assert {name: asked.get(name) for name in expected} == expected


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_functions_beside_effort_are_refused_with_the_api_that_takes_both(
    upstream: ReplayServer, path: str
) -> None:
    parameters = {"type": "object", "properties": {}}
    about: dict[str, Any] = {"name": "look", "parameters": parameters}
    tool = {"type": "function", "function": about} if path == CHAT else {"type": "function", **about}
    effort = {"reasoning_effort": "high"} if path == CHAT else {"reasoning": {"effort": "high"}}
    body = {"model": "best", **ASKED[path], **effort, "tools": [tool]}
    answer, asked = sent(upstream, "openai", "gpt-5.6-sol", path, body)
    assert asked is None
    assert answer.status_code == 400
    assert "openai_responses" in answer.text


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_an_answer_may_be_as_long_as_the_model_writes_where_the_api_demands_a_length(
    upstream: ReplayServer, path: str
) -> None:
    _, asked = sent(upstream, "anthropic", "claude-opus-4-8", path, {"model": "best", **ASKED[path]})
    assert asked is not None
    assert asked["max_tokens"] == 128000
