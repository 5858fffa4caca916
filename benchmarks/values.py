"""Single values against the upper bounds of seed 000, NFR-001 to NFR-009."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from benchmarks.measure import medians, print_table
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
_REPEATED = {"NFR-001", "NFR-002", "NFR-003", "NFR-006", "NFR-007"}


def response(text: str) -> ChatResponse:
    """A response such as a mapper builds."""
    return ChatResponse(
        id="resp-1",
        message=ChatMessage.assistant(text),
        finish_reason=FinishReason.STOP,
        usage=UsageInfo(100, 50),
        metadata=ResponseMetadata("ollama", "tiny", completion_tokens=50),
        created=datetime(2026, 1, 1, tzinfo=UTC),
        model="tiny",
    )


def main(rounds: int) -> None:
    """Print the table."""
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

    async def enumerated() -> None:
        async for _ in StreamingChatResponse(source(), complete.build):
            pass

    def repeated(make: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(REPEAT):
                make()

        return run

    def new_response() -> object:
        return ChatResponse("r", message, FinishReason.STOP, usage, metadata, created, "tiny")

    measured: list[tuple[str, str, float, int, Callable[[], object]]] = [
        ("ChatResponse(...)", "NFR-001", 5, REPEAT, repeated(new_response)),
        ("UsageInfo(100, 50)", "NFR-002", 1, REPEAT, repeated(lambda: UsageInfo(100, 50))),
        (
            "ResponseDelta(7, 'text')",
            "NFR-003",
            1,
            REPEAT,
            repeated(lambda: ResponseDelta(7, content_delta="text")),
        ),
        ("DeltaAccumulator.append", "NFR-004", 10, DELTAS, appended),
        (f"build() of {DELTAS:,} deltas", "NFR-005", 100, 1, complete.build),
        ("to_json, 300 tokens", "NFR-006", 1000, REPEAT, repeated(lambda: to_json(sample))),
        ("from_json, 300 tokens", "NFR-007", 1000, REPEAT, repeated(lambda: from_json(stored, ChatResponse))),
        ("asynchronous enumeration, a delta", "NFR-009", 5, DELTAS, lambda: asyncio.run(enumerated())),
    ]
    empty = medians({"empty": repeated(lambda: None)}, rounds)["empty"] / REPEAT
    found = medians({name: run for name, _, _, _, run in measured}, rounds)
    rows = []
    for name, requirement, bound, times, run in measured:
        spent = found[name] / times
        if requirement in _REPEATED:
            spent -= empty  # the loop's own call
        if name.startswith("build"):
            spent = _quick(run)
        rows.append((name, requirement, f"{spent * 1e6:.2f}", f"{bound:,}"))
    print_table("values", ("", "", "us", "bound us"), rows)


def _quick(run: Callable[[], object], times: int = 200) -> float:
    """CPU seconds of something too short for the process clock's own resolution."""
    before = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - before) / times
