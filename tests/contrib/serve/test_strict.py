"""A client of each format talks through the gateway to each strict server: three turns, two calls, nothing is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from contrib_serve import asking, config_of
from crosswalk.testing import STRICT_PROVIDERS
from crosswalk_serve import create_app
from strict_answers import MODELS, strict_server

PARAMETERS = {"type": "object", "properties": {"day": {"type": "integer"}}}
Send = Callable[[Any], Any]


async def chat(send: Send) -> str:
    """Goes on as OpenAI's SDK does: with the message as it came."""
    function = {"name": "ferry", "parameters": PARAMETERS}
    tools = [{"type": "function", "function": function}]
    messages: list[Any] = [{"role": "user", "content": "When?"}]
    while True:
        answer = await send({"model": "tiny", "messages": messages, "tools": tools})
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "at nine"})


async def responses(send: Send) -> str:
    """Goes on as Codex does: with all items as they came."""
    tools = [{"type": "function", "name": "ferry", "parameters": PARAMETERS}]
    items: list[Any] = [{"type": "message", "role": "user", "content": "When?"}]
    while True:
        answer = await send({"model": "tiny", "input": items, "tools": tools, "store": False})
        items += answer["output"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        if not calls:
            return str(answer["output"][-1]["content"][0]["text"])
        for call in calls:
            items.append({"type": "function_call_output", "call_id": call["call_id"], "output": "at nine"})


async def messages(send: Send) -> str:
    """Goes on as Claude Code does: with all blocks as they came."""
    tools = [{"name": "ferry", "input_schema": PARAMETERS}]
    turns: list[Any] = [{"role": "user", "content": "When?"}]
    while True:
        answer = await send({"model": "tiny", "max_tokens": 99, "messages": turns, "tools": tools})
        turns.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return str(answer["content"][-1]["text"])
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "at nine"} for call in calls]
        turns.append({"role": "user", "content": results})


CLIENTS: dict[str, tuple[str, Callable[[Send], Any]]] = {
    "chat": ("/v1/chat/completions", chat),
    "responses": ("/v1/responses", responses),
    "messages": ("/v1/messages", messages),
}


@pytest.mark.untraced
@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_holds_a_conversation(client: str, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    path, hold = CLIENTS[client]

    async def main() -> str:
        model = f"{{provider: {provider}, model: {MODELS.get(provider, 'm')}, base_url: '{server.url}', api_key: k}}"
        app = create_app(config_of(server, "on_unsupported: drop", f"tiny: {model}"))

        async def send(body: Any) -> Any:
            answer = await http.post(path, json=body)
            assert [request.case for request in server.refusals] == []
            return answer.raise_for_status().json()

        async with app.router.lifespan_context(app), asking(app, timeout=60) as http:
            return await asyncio.wait_for(hold(send), 60)

    with strict_server(provider) as server:
        assert asyncio.run(main()) == "At nine."
    assert len(server.requests) == 3
