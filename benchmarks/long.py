"""Long answers: the cost of the last event of a million compared with the first, and the cost of a long tool call."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator

from benchmarks.measure import Above, print_table
from benchmarks.payloads import framed, ollama_lines, vllm_lines
from crosswalk import normalize_stream

CHUNKS = 1_000_000
TENTHS = 10
CALL = 1_000_000
PIECE = 10
CALL_BAR = 1.0
"""CPU seconds for a tool call of a megabyte in pieces of ten bytes."""
FLAT = 1.5
"""Limit for an event of the last tenth, in times one of the second: it allows noise but no growth with the stream."""
_START = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "save", "arguments": ""}}


def _chunk(call: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"tool_calls": [call]} if call else {}, "finish_reason": finish}
    event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"


def call_of(size: int) -> list[bytes]:
    """Return the chunks of a stream with one call with arguments of *size* bytes in small pieces, an event each."""
    text = json.dumps({"text": "x" * (size - 12)})
    pieces = (text[start : start + PIECE] for start in range(0, size, PIECE))
    said = (_chunk({"index": 0, "function": {"arguments": piece}}) for piece in pieces)
    return [_chunk(_START), *said, _chunk({}, "tool_calls"), b"data: [DONE]\n\n"]


def tenths(provider: str, count: int) -> list[float]:
    """Return the microseconds per event in each tenth of a stream of *count* chunks, an event each."""
    lines = {"ollama": ollama_lines, "vllm": vllm_lines}[provider](1000)
    start, *some, _ = [framed(provider, [line]).removesuffix(b"data: [DONE]\n\n") for line in lines[:-1]]
    ends = framed(provider, lines[-2:])

    def chunks() -> Iterator[bytes]:
        yield start
        for number in range(count):
            yield some[number % len(some)]
        yield ends

    spent, before = [], time.process_time()
    for number, _ in enumerate(stream := normalize_stream(chunks(), provider), start=1):
        if number % (count // TENTHS) == 0:
            now = time.process_time()
            spent.append((now - before) / count * TENTHS * 1e6)
            before = now
    assert stream.response.text
    return spent


def main(rounds: int) -> list[Above]:
    """Print the table. Return the rows that are above their bar."""
    rows, above = [], []
    chunks, times = call_of(CALL), []
    for _ in range(max(1, rounds // 5)):
        before = time.process_time()
        stream = normalize_stream(chunks, "vllm")
        for _ in stream:
            pass
        times.append(time.process_time() - before)
        assert len(stream.response.tool_calls[0].arguments) == CALL
    call = statistics.median(times)
    rows.append((f"a call of {CALL:,} bytes in pieces of {PIECE}, CPU s", f"{call:.2f}", f"{CALL_BAR:g}"))
    if call > CALL_BAR:
        above.append(Above(f"{rows[-1][0]}", call, CALL_BAR))
    for provider in ("ollama", "vllm"):
        found = tenths(provider, CHUNKS)
        ratio = found[-1] / found[1]
        name = f"{provider}, {CHUNKS:,} chunks, us an event: {', '.join(f'{each:.2f}' for each in found)}"
        rows.append((name, f"{ratio:.2f}", f"{FLAT:g}"))
        if ratio > FLAT:
            above.append(Above(name, ratio, FLAT))
    print_table(
        "long streams, an event a read; of a million the last tenth over the second", ("", "", "may be"), rows
    )
    return above
