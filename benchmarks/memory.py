"""Memory of a response without its content, and of a streamed one for each of its deltas."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from benchmarks.mapping import PIECES
from benchmarks.measure import print_table
from benchmarks.payloads import chunks, framed, ollama_lines
from benchmarks.values import response
from crosswalk import normalize_stream


def allocated(make: Callable[[], object], times: int = 1) -> float:
    """Return the bytes that the result of *make* holds."""
    make()  # creates everything that is made only once
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [make() for _ in range(times)]
    spent = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del kept
    return spent / times


def main(rounds: int) -> None:
    """Print the table. *rounds* is ignored, because memory does not vary."""
    data = framed("ollama", ollama_lines(PIECES))
    given = chunks(data)

    def mapped(*, keep_raw: bool, keep_deltas: bool) -> object:
        stream = normalize_stream(given, "ollama", keep_raw=keep_raw)
        deltas = list(stream) if keep_deltas else [None for _ in stream]
        return (deltas if keep_deltas else None), stream.response

    response_alone = allocated(lambda: mapped(keep_raw=False, keep_deltas=False))
    rows = [("ChatResponse without content", f"{allocated(lambda: response(''), 500):,.0f}", "2,048")]
    rows += [
        (f"{name}, per delta", f"{(spent - less) / PIECES:,.0f}", "")
        for name, spent, less in (
            ("a stream's response", response_alone, 0.0),
            (
                f"  its raw events, of {len(data) / PIECES:.0f} bytes each",
                allocated(lambda: mapped(keep_raw=True, keep_deltas=False)),
                response_alone,
            ),
            (
                "  its deltas, if you keep them",
                allocated(lambda: mapped(keep_raw=False, keep_deltas=True)),
                response_alone,
            ),
        )
    ]
    print_table("memory", ("", "bytes", "bound"), rows)
