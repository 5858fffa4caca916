"""Measures Crosswalk against floors and peers, all in one run: ``python -m benchmarks`` (from the project's root).

Times are CPU seconds, medians over interleaved rounds. A ratio compares two medians of the same run. The floor
of a stream is ``orjson.loads`` on its lines, already split. The floor of a body is ``orjson.loads`` on it. The last
table lists the rows that miss their bar. Rows of streams, bodies and a start are listed if they miss it by a quarter.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final

from benchmarks.measure import print_above

PARTS: Final = (
    "streams",
    "mapping",
    "bodies",
    "recorded",
    "batch",
    "cores",
    "responses",
    "service",
    "asking",
    "gateway",
    "observe",
    "structured",
    "answers",
    "values",
    "long",
    "memory",
    "start",
)


def main() -> None:
    """Run the requested parts, print their tables, and then the rows above their bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    tables = f"which tables, of {', '.join(PARTS)}; all by default"
    parser.add_argument("part", nargs="*", metavar="PART", help=tables)
    parser.add_argument("--rounds", type=int, default=15, help="how often each thing is measured (15)")
    given = parser.parse_args()
    for name in {*given.part} - {*PARTS}:
        parser.error(f"no such table: {name!r}; there are {', '.join(PARTS)}")
    if given.rounds < 1:
        parser.error("--rounds is at least 1")
    above = []
    for name in given.part or PARTS:
        # Each is loaded on its turn: some need peers that are rarely installed.
        rows = import_module(f"benchmarks.{name}").main(given.rounds)
        above += [(name, row) for row in rows or ()]  # a part without a bar returns None
    print_above(above)


if __name__ == "__main__":
    main()
