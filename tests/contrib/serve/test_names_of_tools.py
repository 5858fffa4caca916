"""A client's tools whose names a server does not take."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from contrib_serve import ABOUT, asking, config_of, says
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app

TOOL = {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}
CALL = {"id": "call_0", "type": "function", "function": {"name": "a_b", "arguments": "{}"}}
CHAT = {"messages": [{"role": "user", "content": "u"}], "tools": [TOOL]}
RESPONSES = {"input": "u", "tools": [{"type": "function", "name": "a.b", "parameters": {"type": "object"}}]}
MESSAGES = {"max_tokens": 9, "messages": CHAT["messages"], "tools": [{"name": "a.b", "input_schema": {"type": "object"}}]}  # fmt: skip
CLIENTS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", RESPONSES),
    ("/v1/messages", MESSAGES),
]


def streamed() -> Answer:
    deltas: list[tuple[dict[str, Any], Any]] = [({"tool_calls": [{"index": 0, **CALL}]}, None), ({}, "tool_calls")]  # fmt: skip
    choices = [{"index": 0, "delta": delta, "finish_reason": end} for delta, end in deltas]
    return Answer.of_events(
        [{**ABOUT, "object": "chat.completion.chunk", "choices": [one]} for one in choices]
    )


async def _posted(
    upstream: ReplayServer, path: str, said: dict[str, Any], provider: str = "openai"
) -> tuple[bytes, str]:
    models = f"tiny: {{provider: {provider}, base_url: '{upstream.url}/v1', api_key: k}}"
    app = create_app(config_of(upstream, models=models))
    async with app.router.lifespan_context(app), asking(app) as client:
        answer = await client.post(path, json={"model": "tiny", **said})
    assert answer.status_code == 200, answer.text
    return answer.content, answer.headers.get("x-crosswalk-dropped", "")


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "said"), CLIENTS, ids=[path for path, _ in CLIENTS])
def test_a_client_gets_its_call_under_its_own_name(
    upstream: ReplayServer, path: str, said: dict[str, Any], is_stream: bool
) -> None:
    upstream.add(streamed() if is_stream else says("", tool_calls=[CALL]))
    answer, _ = asyncio.run(_posted(upstream, path, {**said, "stream": is_stream}))
    assert b'"a.b"' in answer
    assert b'"a_b"' not in answer
    assert upstream.requests[-1].json()["tools"][0]["function"]["name"] == "a_b"


def test_the_client_is_told(upstream: ReplayServer) -> None:
    upstream.add(says("", tool_calls=[CALL]))
    answer, told = asyncio.run(_posted(upstream, "/v1/chat/completions", CHAT))
    assert orjson.loads(answer)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "a.b"
    assert "tools[0].name: a.b became a_b" in told


@pytest.mark.parametrize(
    ("path", "said", "provider"),
    [
        ("/v1/messages/count_tokens", MESSAGES, "anthropic"),
        ("/v1/messages/count_tokens", MESSAGES, "openai_responses"),
        ("/v1/messages/count_tokens", MESSAGES, "vllm"),
        ("/v1/responses/input_tokens", RESPONSES, "openai_responses"),
        ("/v1/responses/input_tokens", RESPONSES, "anthropic"),
    ],
)
def test_a_count_is_of_the_names_that_an_answer_would_be_asked_with(
    upstream: ReplayServer, path: str, said: dict[str, Any], provider: str
) -> None:
    upstream.add(Answer.of_json({"object": "response.input_tokens", "input_tokens": 7}))
    answer, _ = asyncio.run(_posted(upstream, path, said, provider))
    assert orjson.loads(answer)["input_tokens"] == 7
    assert [tool["name"] for tool in upstream.requests[-1].json()["tools"]] == ["a_b"]
