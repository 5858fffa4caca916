"""Single values, each against its highest allowed cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from benchmarks.measure import Above, medians, print_table
from benchmarks.payloads import words
from crosswalk import (
    ChatMessage,
    ChatResponse,
    DeltaAccumulator,
    FinishReason,
    ResponseDelta,
    ResponseMetadata,
    StreamingChatResponse,
    UsageInfo,
    from_json,
    to_json,
)

DELTAS = 2_000
REPEAT = 2_000


def response(text: str) -> ChatResponse:
    """Return a response like that of a mapper."""
    return ChatResponse(
        id="resp-1",
        message=ChatMessage.assistant(text),
        finish_reason=FinishReason.STOP,
        usage=UsageInfo(100, 50),
        metadata=ResponseMetadata("ollama", "tiny", completion_tokens=50),
        created=datetime(2026, 1, 1, tzinfo=UTC),
        model="tiny",
    )


def main(rounds: int) -> list[Above]:
    """Print the table. Return the rows that cost more than their bound."""
    deltas = [ResponseDelta(n, content_delta=word) for n, word in enumerate(words(DELTAS))]
    end = ResponseDelta(DELTAS, finish_reason=FinishReason.STOP, usage=UsageInfo(100, 50))
    message, usage = ChatMessage.assistant("hello"), UsageInfo(100, 50)
    metadata = ResponseMetadata("ollama", "tiny", completion_tokens=50)
    created = datetime(2026, 1, 1, tzinfo=UTC)
    complete = DeltaAccumulator()
    for delta in (*deltas, end):
        complete.append(delta)
    sample = response("".join(words(300)))
    stored = to_json(sample)

    def appended() -> None:
        accumulator = DeltaAccumulator()
        for delta in deltas:
            accumulator.append(delta)

    async def source() -> AsyncIterator[ResponseDelta]:
        for delta in deltas:
            yield delta

    async def enumerated(*, replay: bool) -> None:
        async for _ in StreamingChatResponse(source(), complete.build, replay=replay):
            pass

    def repeated(make: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(REPEAT):
                make()

        return run

    def new_response() -> object:
        return ChatResponse("r", message, FinishReason.STOP, usage, metadata, created, "tiny")

    made: list[tuple[str, float, Callable[[], object]]] = [
        ("ChatResponse(...)", 5, new_response),
        ("UsageInfo(100, 50)", 1, lambda: UsageInfo(100, 50)),
        ("ResponseDelta(7, 'text')", 1, lambda: ResponseDelta(7, content_delta="text")),
        ("to_json, 300 tokens", 1000, lambda: to_json(sample)),
        ("from_json, 300 tokens", 1000, lambda: from_json(stored, ChatResponse)),
    ]
    run_once: list[tuple[str, float, int, Callable[[], object]]] = [
        ("DeltaAccumulator.append", 10, DELTAS, appended),
        ("asynchronous enumeration, a delta", 5, DELTAS, lambda: asyncio.run(enumerated(replay=True))),
        ("the same without replay", 5, DELTAS, lambda: asyncio.run(enumerated(replay=False))),
    ]
    found = medians({name: repeated(make) for name, _, make in made}, rounds)
    empty = medians({"empty": repeated(lambda: None)}, rounds)["empty"]  # the loop's own calls
    spent = [(name, (found[name] - empty) / REPEAT, bound) for name, bound, _ in made]
    found = medians({name: run for name, _, _, run in run_once}, rounds)
    spent += [(name, found[name] / times, bound) for name, bound, times, _ in run_once]
    spent.append((f"build() of {DELTAS:,} deltas", _quick(complete.build), 100))
    rows = [(name, f"{seconds * 1e6:.2f}", f"{bound:,}") for name, seconds, bound in spent]
    print_table("values", ("", "us", "bound us"), rows)
    return [Above(name, seconds * 1e6, bound) for name, seconds, bound in spent if seconds * 1e6 > bound]


def _quick(run: Callable[[], object], times: int = 200) -> float:
    """Return the CPU seconds of a function that is too short for the resolution of the process clock."""
    before = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - before) / times
