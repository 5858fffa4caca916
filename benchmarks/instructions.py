"""What streams and bodies cost in instructions, times those of ``orjson.loads``: ``python -m benchmarks.instructions``.

A ratio of times is another one on another machine: parsing is a matter of its memory, Python of its branches. How many
instructions either takes is the same everywhere, and from run to run but for a hundredth; so it tells what a change has
changed. valgrind counts them, in some minutes. Name words to have the rows with any of these in their names.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from benchmarks import bodies, streams
from benchmarks.measure import print_table
from benchmarks.wire_bodies import BODIES
from benchmarks.wires import STREAMS

Row = tuple[str, dict[str, Callable[[], object]], Mapping[str, float]]
"""A name, what can be done, and how many times the floor some of it may cost."""
_LISTS: Final = "CROSSWALK_COUNTED"
"""Names the file for the names of what is counted; set in the process that valgrind runs."""


def rows_with(words: list[str]) -> Iterator[Row]:
    """The streams, and the bodies of every size."""

    def has(name: str) -> bool:
        return not words or any(word.lower() in name.lower() for word in words)

    for name, stream in STREAMS.items():
        if has(name):
            live, logged = stream.bars
            yield (
                name,
                streams.ways_to_read(stream),
                {"live": live, "logged": logged, "general": streams.GENERAL},
            )
    for name, body in BODIES.items():
        for size in body.sizes:
            title = f"{name}, {len(body.written(size)):,} bytes"
            if has(title):
                yield title, bodies.ways_of(body, size), {"read": body.bar(size)}


def count(words: list[str], names: Path) -> None:
    """Do everything three times: twice to learn, and once between two marks at which valgrind tells its count."""
    with names.open("w", encoding="utf-8") as file:
        for name, ways, bars in rows_with(words):
            for way, run in ways.items():
                run()
                run()
                gc.collect()  # or it is one row's misfortune to look for garbage
                os.getppid()
                run()
                os.getppid()
                print(name, way, bars.get(way, ""), sep="\t", file=file)


def counted(words: list[str]) -> dict[str, dict[str, tuple[int, str]]]:
    """Of each row what each way takes, and how many times the floor it may take."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        sys.exit("valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder:
        names, out = Path(folder) / "names", Path(folder) / "out"
        # Who asks for the parent's number asks for a mark.
        options = ["-q", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=getppid"]
        command = [valgrind, *options, sys.executable, "-m", "benchmarks.instructions", *words]
        subprocess.run(command, check=True, env={**os.environ, _LISTS: str(names), "PYTHONHASHSEED": "0"})
        found: dict[str, dict[str, tuple[int, str]]] = {}
        for number, line in enumerate(names.read_text(encoding="utf-8").splitlines(), start=1):
            name, way, bar = line.split("\t")
            told = Path(f"{out}.{2 * number}").read_text(encoding="utf-8")  # of two marks the second
            found.setdefault(name, {})[way] = int(re.search(r"^totals: (\d+)", told, re.MULTILINE)[1]), bar
    return found


def main() -> None:
    """Print what was counted; what is above its bar has a mark."""
    rows = []
    for name, ways in counted(sys.argv[1:]).items():
        floor, _ = ways["floor"]
        for way, (total, bar) in ways.items():
            if bar:
                least, _ = ways.get(f"least {way}", ways.get("least", (0, "")))
                is_above = "above" if total > float(bar) * floor else ""
                figures = f"{total / floor:.2f}", f"{least / floor:.2f}" if least else "", bar, is_above
                rows.append((f"{name}, {way}", *figures))
    print_table("instructions, times orjson.loads", ("", "measured", "least", "bar", ""), rows)


if __name__ == "__main__":
    if _LISTS in os.environ:
        count(sys.argv[1:], Path(os.environ[_LISTS]))
    else:
        main()
