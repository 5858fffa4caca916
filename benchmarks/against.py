"""Compares this checkout with another one, pair by pair: ``python -m benchmarks.against PATH [ROUNDS] [NAME…]``.

Each checkout runs in a separate process, and they take turns, so other load on the machine affects both equally. A
ratio is the median over the pairs of rounds. Below 1 this checkout is faster.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]


def functions() -> dict[str, Callable[[], object]]:
    """Return the functions to measure, by name: only those that both checkouts have."""
    from benchmarks.bodies import log_of, ways_of
    from benchmarks.recorded import read_streams, recorded_streams
    from benchmarks.responses import call_lines, text_lines
    from benchmarks.streams import ways_to_read
    from benchmarks.structured import Long, malformed
    from benchmarks.wire_bodies import BODIES
    from benchmarks.wires import STREAMS
    from crosswalk.responses import parse_event
    from crosswalk.structured import RESPONSE_VERSIONS, StructuredParser, StructuredResponse

    small = '{"answer": "There are five.", "items_shown": 5, "items_total": 18}'
    sources = [{"title": f"ADR.{n}", "type": "ADR"} for n in range(5)]
    document = {"answer": "word " * 200, "items_shown": 5, "items_total": 18, "sources": sources}
    ordinary = {
        "66 B": small,
        "1.2 KB": json.dumps(document),
        "1.2 KB, compact": json.dumps(document, separators=(",", ":")),
        "1.3 KB, indented": json.dumps(document, indent=2),
    }
    found: dict[str, Callable[[], object]] = {}
    for name, answers in recorded_streams().items():
        found[f"recorded streams, {name}"] = lambda answers=answers: read_streams(answers)
    for size, text in ordinary.items():
        for name, schema in (("a class", StructuredResponse), ("a registry", RESPONSE_VERSIONS)):
            parser: StructuredParser[Any] = StructuredParser(schema)  # type: ignore[arg-type]
            found[f"valid, {size}, {name}"] = lambda parser=parser, text=text: [
                parser.parse(text) for _ in range(2000)
            ]
    long = StructuredParser(Long)
    for size, count in (("100 KB", 100_000), ("1 MB", 1_000_000)):
        for name, text in malformed(count).items():
            found[f"{name}, {size}"] = lambda text=text: long.parse(text)
    for name, lines in (("text", text_lines()), ("a call", call_lines())):
        found[f"parse_event, {name}"] = lambda lines=lines: [parse_event(line) for line in lines]
    for name, stream in STREAMS.items():
        ways = ways_to_read(stream)
        found |= {f"{name}, {way}": ways[way] for way in ("live", "logged", "hooks")}
    for name, body in BODIES.items():
        for size in body.sizes:
            ways = ways_of(log_of(body, size))
            found |= {f"{name}, {size:,} bytes, {way}": ways[way] for way in ways if way != "floor"}
    return found


def work() -> None:
    """Answer each line, the name of a function, with its CPU seconds and its result."""
    known = functions()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        function = known[line.strip()]
        before = time.process_time()
        given = function()
        spent = time.process_time() - before
        stage, reason = getattr(given, "stage", None), getattr(given, "reason", None)
        print(json.dumps([spent, f"{stage} {reason}" if stage else ""]), flush=True)


class Checkout:
    """A process that runs the code of a checkout."""

    def __init__(self, root: Path) -> None:
        paths = [str(root / part) for part in ("core", "plugins", "contrib")]
        program = (
            f"import sys; sys.path[:0] = {[*paths, str(HERE)]!r}; from benchmarks.against import work; work()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names: list[str] = self._answer()

    def run(self, name: str) -> tuple[float, str]:
        """Return the CPU seconds of the function, and its result."""
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        spent, given = self._answer()
        return spent, given

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main(other: Path, rounds: int, wanted: list[str]) -> None:
    """Print the table."""
    from benchmarks.measure import print_table

    pair = Checkout(HERE), Checkout(other)
    rows = []
    for name in pair[0].names:
        if wanted and not any(part in name for part in wanted):
            continue
        (_, ours), (_, theirs) = (checkout.run(name) for checkout in pair)
        times = [[checkout.run(name)[0] for checkout in pair] for _ in range(rounds)]
        medians = [statistics.median(column) * 1e3 for column in zip(*times, strict=True)]
        ratio = statistics.median(mine / others for mine, others in times)
        said = ours if ours == theirs else f"{ours} (there: {theirs})"
        rows.append((name, *(f"{each:,.1f}" for each in medians), f"{ratio:.2f}", said))
    for checkout in pair:
        checkout.close()
    print_table(f"against {other}", ("", "here, ms", "there, ms", "ratio", "result"), rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 7, sys.argv[3:])
