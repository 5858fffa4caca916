"""Streams of every wire format: read live, one event a read, and from a log, in reads of 4 KiB.

The bar is for live streams. ``hooks`` is a log in which the plugin's hooks get each event, as if none repeated another.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import orjson

from benchmarks.measure import Above, is_met, medians, print_table, verdict
from benchmarks.payloads import chunks
from benchmarks.wires import PIECES, STREAMS, Stream
from crosswalk import registry
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.registry import Mapper


def ways_to_read(stream: Stream) -> dict[str, Callable[[], object]]:
    """Return the ways to read the answers of *stream*. Short ones together have the pieces of a long one."""
    answers = [stream.answer(number) for number in range(PIECES // stream.pieces)]
    datas = [data for answer in answers for data in answer.datas]
    live = [answer.frames for answer in answers]
    logged = [chunks(b"".join(frames)) for frames in live]
    mapper = registry.mapper(stream.provider)
    hooks = attrs.evolve(mapper, is_unmodified=False)
    options = ReaderOptions()

    def read(answers: list[list[bytes]], mapper: Mapper) -> None:
        for reads in answers:
            reader = Reader(mapper, options)
            for one in reads:
                drain(reader.read(one))
            drain(reader.finish())
            reader.response()

    return {
        "floor": lambda: [orjson.loads(data) for data in datas],
        "live": lambda: read(live, mapper),
        "logged": lambda: read(logged, mapper),
        "hooks": lambda: read(logged, hooks),
    }


def main(rounds: int) -> list[Above]:
    """Print the table of streams. Return the rows that miss their bar."""
    rows, above = [], []
    for name, stream in STREAMS.items():
        found = medians(ways_to_read(stream), rounds)
        live, logged, hooks = (found[way] / found["floor"] for way in ("live", "logged", "hooks"))
        if not is_met(live, stream.bar):
            above.append(Above(f"{name}, live", live, stream.bar))
        floor = f"{found['floor'] / PIECES * 1e6:.2f}"
        rows.append((name, floor, f"{live:.1f}", *verdict(live, stream.bar), f"{logged:.1f}", f"{hooks:.1f}"))
    print_table(
        f"streams of {PIECES:,} pieces, times orjson.loads",
        ("", "floor us", "live", "bar", "", "logged", "hooks"),
        rows,
    )
    return above
