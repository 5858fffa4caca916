"""Whole answers of every size: read and looked at, written as canonical JSON, and read from that.

The floor is ``orjson.loads`` on the body. ``read`` is a call of ``normalize`` and then access to the text, usage,
finish reason, extensions, time and id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import orjson

from benchmarks.measure import Above, is_met, medians, print_table, verdict
from benchmarks.wire_bodies import BODIES, Body
from crosswalk import ChatResponse, from_json, normalize, to_json

Log: TypeAlias = Sequence[tuple[bytes, str]]
"""Bodies, each with its provider."""


def looked_at(response: ChatResponse) -> object:
    """Access the usual fields of a response."""
    metadata = response.metadata
    return (
        response.text or response.tool_calls,
        response.usage,
        response.finish_reason,
        metadata.extensions,
        response.created,
        response.id,
    )


def log_of(body: Body, size: int) -> Log:
    """Return different answers, enough of them for the resolution of the process clock."""
    count = max(4, 200_000 // (size + 1_000))
    return [(body.written(size, number), body.provider) for number in range(count)]


def ways_of(log: Log) -> dict[str, Callable[[], object]]:
    """Return the functions to measure for each body of *log*."""
    responses = [normalize(*one) for one in log]
    written = [to_json(response) for response in responses]
    return {
        "floor": lambda: [orjson.loads(body) for body, _ in log] and None,
        "read": lambda: [looked_at(normalize(*one)) for one in log] and None,
        "to_json": lambda: [to_json(response) for response in responses] and None,
        "from_json": lambda: [from_json(one, ChatResponse) for one in written] and None,
    }


def main(rounds: int) -> list[Above]:
    """Print the table of bodies. Return the rows that miss their bar."""
    rows, above = [], []

    def add(name: str, bar: float | None, log: Log) -> None:
        found = medians(ways_of(log), rounds)
        times = found["read"] / found["floor"]
        if bar is not None and not is_met(times, bar):
            above.append(Above(name, times, bar))
        spent = [f"{found[way] / len(log) * 1e6:.1f}" for way in ("floor", "read", "to_json", "from_json")]
        rows.append((name, f"{times:.1f}", *verdict(times, bar), *spent))

    for name, body in BODIES.items():
        for size in body.sizes:
            log = log_of(body, size)
            add(f"{name}, {len(log[0][0]):,} bytes", body.bar(size), log)
    kinds = [body for body in BODIES.values() for _ in range(20)]
    mixed = [(body.written(body.sizes[0], number), body.provider) for number, body in enumerate(kinds)]
    add("a log of all of these in turn", None, mixed)
    print_table(
        "bodies, times orjson.loads",
        ("", "read", "bar", "", "floor us", "read us", "to_json us", "from_json us"),
        rows,
    )
    return above
