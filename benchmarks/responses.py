"""Streams of the Responses API: lines to typed events, and to snapshots."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable

import orjson

from benchmarks.measure import medians, print_table
from benchmarks.payloads import words
from crosswalk.responses import ResponseAccumulator, parse_event

PIECES = 2_000
ITEM = "msg_0b2f1c9e4d7a48a3b7f0f4f6f0c1d2e3"
RESPONSE = {
    "id": "resp_0b2f1c9e4d7a48a3", "object": "response", "created_at": 1795168361, "status": "in_progress",
    "background": False, "error": None, "incomplete_details": None, "instructions": None, "max_output_tokens": None,
    "max_tool_calls": None, "model": "tiny", "output": [], "parallel_tool_calls": True, "previous_response_id": None,
    "prompt_cache_key": None, "reasoning": {"effort": None, "summary": None}, "safety_identifier": None,
    "service_tier": "auto", "store": True, "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": None,
    "user": None, "metadata": {},
}  # fmt: skip
USAGE = {
    "input_tokens": 20, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": PIECES,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20 + PIECES,
}  # fmt: skip


def text_lines() -> list[bytes]:
    """Return the data of a stream of one message."""
    pieces = words(PIECES)
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": "".join(pieces)}
    item = {"id": ITEM, "type": "message", "status": "completed", "content": [part], "role": "assistant"}
    place = {"item_id": ITEM, "output_index": 0, "content_index": 0}
    delta = {"type": "response.output_text.delta", **place, "logprobs": [], "obfuscation": "Rk3dQv9"}
    return _numbered(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.in_progress", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({**delta, "delta": piece} for piece in pieces),
        {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "output": [item], "usage": USAGE}},
    )  # fmt: skip


def call_lines() -> list[bytes]:
    """Return the data of a stream of one function call."""
    arguments = json.dumps({"text": "".join(words(PIECES))})
    pieces = [arguments[start : start + 5] for start in range(0, len(arguments), 5)]
    item = {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": "call_1",
        "name": "save",
    }
    place = {"item_id": "fc_1", "output_index": 0}
    return _numbered(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.function_call_arguments.done", **place, "arguments": arguments},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**RESPONSE, "status": "completed", "output": [item], "usage": USAGE}},
    )  # fmt: skip


def _numbered(*events: dict[str, object]) -> list[bytes]:
    return [orjson.dumps({**event, "sequence_number": number}) for number, event in enumerate(events)]


def functions(lines: list[bytes]) -> dict[str, Callable[[], object]]:
    """Return the functions to measure."""

    def accumulated(*, look_each: int = 0) -> object:
        accumulator = ResponseAccumulator()
        for number, line in enumerate(lines):
            snapshot = accumulator.add(parse_event(line))
            if look_each and number % look_each == 0:
                _ = snapshot.response
        return accumulator.final()

    found: dict[str, Callable[[], object]] = {
        "floor: orjson.loads on the lines": lambda: [orjson.loads(line) for line in lines],
        "crosswalk: parse_event": lambda: [parse_event(line) for line in lines],
        "crosswalk: and a snapshot each": accumulated,
        "crosswalk: and every 20th snapshot looked at": lambda: accumulated(look_each=20),
    }
    if importlib.util.find_spec("openai"):
        found.update(_openai(lines))
    return found


def _openai(lines: list[bytes]) -> dict[str, Callable[[], object]]:
    from openai import OpenAI, _base_client
    from openai._models import construct_type
    from openai.types.responses import ResponseStreamEvent

    # Either httpx or its successor, depending on the version.
    httpx = getattr(_base_client, "httpx2", None) or _base_client.httpx
    body = b"".join(b"data: " + line + b"\n\n" for line in lines)
    answer = httpx.MockTransport(
        lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    )
    client = OpenAI(api_key="none", base_url="http://test/v1", http_client=httpx.Client(transport=answer))
    return {
        "openai SDK: its event types, without validation": lambda: [
            construct_type(value=orjson.loads(line), type_=ResponseStreamEvent) for line in lines
        ],
        "openai SDK: client.responses.create(stream=True)": lambda: list(
            client.responses.create(model="tiny", input="hello", stream=True)
        ),
    }


def main(rounds: int) -> None:
    """Print the tables."""
    for name, lines in {"text": text_lines(), "a function call": call_lines()}.items():
        measured = medians(functions(lines), rounds)
        floor = next(iter(measured.values()))
        rows = [
            (what, f"{spent / len(lines) * 1e6:.2f}", f"{spent / floor:.1f}")
            for what, spent in measured.items()
        ]
        print_table(
            f"Responses: a stream of {name}, {len(lines):,} events", ("", "us a line", "x floor"), rows
        )
