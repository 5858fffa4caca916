"""The recorded answers of ``tests/captures``: the cost of the first pass over all of them, compared with a later one.

Each pass runs in a separate process, in which the plugins are resolved first: importing them does not count as reading.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import orjson

from benchmarks.measure import Above, is_met, print_table, verdict
from benchmarks.payloads import chunks

ROOT: Final = Path(__file__).parents[1]
BAR: Final = 1.2
LATER: Final = 5
"""The number of passes after the first."""


def passes() -> dict[str, list[float]]:
    """Return the CPU seconds of each pass over the recorded bodies and streams."""
    from crosswalk import registry
    from crosswalk.errors import CrosswalkError
    from crosswalk.mapping.reader import Reader, ReaderOptions, drain
    from crosswalk.testing import load_captures

    answers: dict[str, list[tuple[object, ReaderOptions, list[bytes]]]] = {"bodies": [], "streams": []}
    for folder in sorted((ROOT / "tests/captures").iterdir()):
        if folder.name not in registry.names():
            continue
        mapper = registry.mapper(folder.name)
        for capture in load_captures(folder):
            kind = "streams" if capture.stream else "bodies"
            reads = chunks(capture.body) if capture.stream else [capture.body]
            options = ReaderOptions(status=capture.status, unknown="keep")
            answers[kind].append((mapper, options, reads))

    def read(kind: str) -> None:
        for mapper, options, reads in answers[kind]:
            reader = Reader(mapper, options)
            try:
                for one in reads:
                    drain(reader.read(one) if kind == "streams" else reader.read_whole(one))
                drain(reader.finish())
                reader.response()
            except CrosswalkError:  # some recorded answers are incomplete on purpose
                pass

    spent: dict[str, list[float]] = {kind: [] for kind in answers}
    for _ in range(1 + LATER):
        for kind, times in spent.items():
            before = time.process_time()
            read(kind)
            times.append(time.process_time() - before)
    counts = {f"{len(found)} {kind}": spent[kind] for kind, found in answers.items()}
    return {**counts, "all": [sum(pair) for pair in zip(*spent.values(), strict=True)]}


def main(rounds: int) -> list[Above]:
    """Print the table. Return the rows that miss their bar."""
    command = [
        sys.executable,
        "-c",
        "import json; from benchmarks.recorded import passes; print(json.dumps(passes()))",
    ]
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(max(1, rounds // 3)):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        for name, (first, *later) in orjson.loads(done.stdout).items():
            found.setdefault(name, []).append((first, statistics.median(later)))
    rows, above = [], []
    for name, pairs in found.items():
        first, later = (statistics.median(column) for column in zip(*pairs, strict=True))
        times = statistics.median(one / other for one, other in pairs)
        bar = BAR if name == "all" else None
        if bar is not None and not is_met(times, bar):
            above.append(Above(f"{name}, the first pass", times, bar))
        rows.append((name, f"{first * 1e3:.0f}", f"{later * 1e3:.0f}", f"{times:.2f}", *verdict(times, bar)))
    header = ("", "first ms", "later ms", "first / later", "bar", "")
    print_table("the recorded answers of tests/captures", header, rows)
    return above
