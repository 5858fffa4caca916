"""Streams: bytes to a built response, compared with peers."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from benchmarks.measure import medians, print_table
from benchmarks.payloads import chunks, framed, ollama_lines, vllm_lines
from benchmarks.peers import peers
from crosswalk import DeltaAccumulator, normalize_stream

PIECES = 2_000
LINES = {"ollama": ollama_lines, "vllm": vllm_lines}


def stream_functions(provider: str) -> tuple[dict[str, Callable[[], object]], int]:
    """Return the functions to measure for one provider's stream, and its number of lines."""
    lines = LINES[provider](PIECES)
    data = framed(provider, lines)
    large = chunks(data)
    single = [framed(provider, [line]).removesuffix(b"data: [DONE]\n\n") for line in lines]

    def mapped(given: list[bytes], *, keep_raw: bool = True) -> object:
        stream = normalize_stream(given, provider, keep_raw=keep_raw)
        for _ in stream:
            pass
        return stream.response

    def accumulated() -> object:
        accumulator = DeltaAccumulator()
        for delta in normalize_stream(large, provider):
            accumulator.append(delta)
        return accumulator.build()

    functions: dict[str, Callable[[], object]] = {
        "floor: orjson.loads on the lines": lambda: [orjson.loads(line) for line in lines],
        "crosswalk": lambda: mapped(large),
        "crosswalk, keep_raw=False": lambda: mapped(large, keep_raw=False),
        "crosswalk, one line a chunk": lambda: mapped(single),
        "crosswalk, and a DeltaAccumulator of one's own": accumulated,
    }
    functions.update({name: (lambda run=run: run(large)) for name, run in peers(provider).items()})
    return functions, len(lines)


def main(rounds: int) -> None:
    """Print the tables of streams."""
    for provider in LINES:
        functions, count = stream_functions(provider)
        found = medians(functions, rounds)
        floor = next(iter(found.values()))
        rows = [(name, f"{spent / count * 1e6:.2f}", f"{spent / floor:.1f}") for name, spent in found.items()]
        print_table(
            f"{provider}: a stream of {PIECES:,} pieces to a built response",
            ("", "us a line", "x floor"),
            rows,
        )
