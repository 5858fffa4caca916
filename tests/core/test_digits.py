"""No digit of an integer is lost on any way through the library, whatever its length."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk import ChatMessage, ChatResponse, ToolCall, from_json, normalize, normalize_stream, to_json
from crosswalk.agent import ChatSession
from crosswalk.cli import main
from crosswalk.plugin.registry import registry
from crosswalk.responses import parse_response, to_dict, to_json as responses_json
from crosswalk.service import ChatRequest, build_http_request
from crosswalk.service.building import build
from crosswalk.structured import MemoryCache, StructuredParser, repair_json, value_to_json
from crosswalk.types.json import load_json

WEI = 1250000000000000000001
"""More than 64 bits."""


@attrs.frozen
class Answer:
    value: Any


def message(**more: Any) -> bytes:
    """An answer of Anthropic's, which sends arguments as an object."""
    use = {"type": "tool_use", "id": "t", "name": "pay", "input": {"wei": WEI}}
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [use],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return json.dumps(body | more).encode()


def asked() -> ChatRequest:
    call = ToolCall("t", "pay", json.dumps({"wei": WEI}))
    said = [
        ChatMessage.user("Pay."),
        ChatMessage.assistant(tool_calls=[call]),
        ChatMessage.tool_result("t", "ok"),
    ]
    return ChatRequest(said, model="m", max_tokens=9)


def stored() -> ChatResponse:
    return from_json(to_json(normalize(message(cost={"wei": WEI}), "anthropic")), ChatResponse)


def session() -> ChatSession:
    kept = ChatSession([ChatMessage.user("Pay."), stored()])
    return ChatSession.from_json(kept.to_json())


WAYS: dict[str, Callable[[], Any]] = {
    "arguments of a body": lambda: normalize(message(), "anthropic").tool_calls[0].arguments,
    "arguments of Ollama's": lambda: normalize(
        {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
         "message": {"content": "", "tool_calls": [{"function": {"name": "pay", "arguments": {"wei": WEI}}}]}},
        "ollama",
    ).tool_calls[0].arguments,
    "arguments of a stream": lambda: [*normalize_stream([message()], "anthropic")],
    "arguments, parsed": lambda: normalize(message(), "anthropic").tool_calls[0].parsed(),
    "extensions": lambda: stored().metadata.extensions,
    "extensions among many brackets": lambda: normalize(
        message(cost=WEI, many=[{}] * 500), "anthropic"
    ).metadata.extensions["cost"],
    "a request to Anthropic": lambda: build(asked(), registry.mapper("anthropic"), "raise")[1],
    "a request to Gemini": lambda: build(asked(), registry.mapper("gemini"), "raise")[1],
    "a request to Ollama": lambda: build(asked(), registry.mapper("ollama"), "raise")[1],
    "a request to OpenAI": lambda: build_http_request(asked(), "openai").body,
    "a session": lambda: session().turns[1].metadata.extensions,  # type: ignore[union-attr]
    "a typed response": lambda: responses_json(parse_response(json.dumps({"id": "r", "output": [], "x": WEI}))),
    "a typed response's object": lambda: to_dict(parse_response({"id": "r", "output": [], "x": WEI})),
    "an answer": lambda: StructuredParser(Answer).parse(f'{{"value": {WEI}}}').value,
    "an answer's JSON": lambda: value_to_json(StructuredParser(Answer).parse(f'{{"value": {WEI}}}').value),
    "an answer from the cache": lambda: [
        parser.parse(f'{{"value": {WEI}}}').value
        for parser in [StructuredParser(Answer, cache=MemoryCache(2))]
        for _ in range(2)
    ][1],
    "a mended answer": lambda: StructuredParser(Answer).parse(f"{{'value': {WEI},}}").value,
    "mended JSON": lambda: repair_json(f"{{value: {WEI},}}"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_all_digits_are_there(way: str) -> None:
    assert str(WEI) in str(WAYS[way]())


@pytest.mark.parametrize("command", ["normalize", "explain"])
def test_the_command_line_writes_all_digits(
    command: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "a.response.json"
    file.write_bytes(message(cost={"wei": WEI}))
    assert main([command, str(file), "--provider", "anthropic"]) == 0
    assert str(WEI) in capsysbinary.readouterr().out.decode()


def test_records_are_read_and_written_with_all_digits(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "log.jsonl"
    record = {"provider": "anthropic", "body": json.loads(message(cost={"wei": WEI})), "price": WEI}
    file.write_text(json.dumps(record) + "\n")
    assert main(["normalize", str(file)]) == 0
    (line,) = capsysbinary.readouterr().out.splitlines()
    assert json.loads(line)["metadata"]["extensions"]["cost"] == {"wei": WEI}


def test_an_escaped_character_is_no_digit() -> None:
    """Only an escaped colon could hide a key that was lost: what looks like one is read with care, to the same value."""
    assert load_json(b'{ "a":"\\u003c"}') == {"a": "<"}
