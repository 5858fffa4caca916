"""Servers that refuse what the real ones refuse, and answers of the providers that have such rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from crosswalk.testing import StrictRules, strict_rules
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.testing.strict.rules import StrictRefusal, StrictRequest

__all__ = ["MODELS", "answer_of", "every_api", "strict_server"]

MODELS = {"bedrock": "anthropic.claude-x", "gemini": "gemini-3-pro"}
"""The models whose rules are strictest; any name for the others."""
_REASONING = {"deepseek": "reasoning_content", "moonshot": "reasoning_content", "groq": "reasoning"}


@contextmanager
def every_api() -> Iterator[ReplayServer]:
    """A server of every API. The path decides which rules a request must keep. The test keeps all of them."""
    apis = [strict_rules(name) for name in ("openai", "openai_responses", "anthropic", "gemini", "bedrock")]
    rules = tuple(attrs.evolve(rule, check=_at(api, rule.check)) for api in apis for rule in api.rules)
    with ReplayServer(rules=attrs.evolve(apis[-1], endpoint="", rules=rules)) as server:
        yield server
    assert [(request.case, request.body) for request in server.refusals] == []


def _at(
    api: StrictRules, check: Callable[[StrictRequest], Iterator[StrictRefusal]]
) -> Callable[[StrictRequest], Iterator[StrictRefusal]]:
    return lambda request: check(request) if request.path.endswith(api.endpoint) else iter(())


def strict_server(provider: str, first: int = 1) -> ReplayServer:
    """A server of *provider* that calls a tool twice, each time after some reasoning, and then says a text.

    Args:
        provider: its name.
        first: the number of its first answer; it has issued those of lower numbers before.
    """
    server = ReplayServer(rules=strict_rules(provider))
    for number in range(1, first + 3):
        path = "/earlier" if number < first else None
        server.add(Answer.of_json(answer_of(provider, number)), path=path)
    return server


def answer_of(provider: str, number: int) -> dict[str, Any]:
    """The answer of *number*, from 1: each third one says "At nine.", the others call ``ferry``."""
    make = {
        "anthropic": _anthropic,
        "bedrock": _bedrock,
        "gemini": _gemini,
        "openai_responses": _responses,
    }.get(provider)
    if make is not None:
        return make(number, calls=number % 3 != 0)
    id = f"abcdefgh{number}" if provider == "mistral" else f"c{number}"
    return _chat(provider, id, calls=number % 3 != 0)


def _chat(provider: str, id: str, *, calls: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if calls else "At nine."}
    if provider in _REASONING:
        message[_REASONING[provider]] = f"I think of {id}."
    if calls:
        function = {"name": "ferry", "arguments": '{"day":1}'}
        message["tool_calls"] = [{"id": id, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    about = {"id": f"chat-{id}", "object": "chat.completion", "created": 1, "model": "m"}
    return {**about, "choices": [choice], "usage": usage}


def _anthropic(number: int, *, calls: bool) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "thinking", "thinking": "Hm.", "signature": f"SIG{number}"}]
    if calls:
        content.append({"type": "tool_use", "id": f"toolu_{number}", "name": "ferry", "input": {"day": 1}})
    else:
        content.append({"type": "text", "text": "At nine."})
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }


def _bedrock(number: int, *, calls: bool) -> dict[str, Any]:
    text = {"text": "Hm.", "signature": f"SIG{number}"}
    content: list[dict[str, Any]] = [{"reasoningContent": {"reasoningText": text}}]
    if calls:
        content.append({"toolUse": {"toolUseId": f"tooluse_{number}", "name": "ferry", "input": {"day": 1}}})
    else:
        content.append({"text": "At nine."})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
    }


def _gemini(number: int, *, calls: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"text": "At nine."}
    if calls:
        call = {"name": "ferry", "args": {"day": 1}}
        part = {"functionCall": call, "thoughtSignature": f"U0lH{number}"}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "responseId": f"r{number}",
        "modelVersion": "g",
    }


def _responses(number: int, *, calls: bool) -> dict[str, Any]:
    reasoning = {
        "id": f"rs_{number}",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": f"ENC{number}",
    }
    item: dict[str, Any] = {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}"}
    item |= {"name": "ferry", "arguments": '{"day":1}', "status": "completed"}
    if not calls:
        text = {"type": "output_text", "text": "At nine.", "annotations": []}
        item = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
    usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
    about = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "g",
    }
    return {**about, "output": [reasoning, item], "usage": usage}
