"""The gain from more processes: a log of every provider through ``crosswalk batch``, with one process and with two.

``python -m benchmarks.cores RECORDS`` does it for a log of any size. ``--keep FOLDER`` keeps the log and the output.

The clock is only reliable on a machine that does nothing else, so the table also has CPU seconds: those of all
processes, and the share of the first process, which starts and cuts the log, and cannot be parallel.
*Two runs* are two single processes at the same time, each with the whole log: two cannot be faster on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from benchmarks.measure import print_table
from crosswalk.testing.captures import Capture, load_captures

RECORDS: Final = 100_000
_CAPTURES: Final = Path(__file__).parents[1] / "tests" / "captures"
_BODIES: Final = 2
"""The number of bodies of each provider that the log has in turn."""
_STREAMED: Final = 10
"""One record of this many is a stream."""
_TEXTS: Final = {"text", "content", "generated_text", "response"}
_COUNTS: Final = {"prompt_tokens", "input_tokens", "promptTokenCount", "prompt_eval_count"}
_TOTALS: Final = {"total_tokens", "totalTokenCount", "totalTokens"}
_RUN: Final = """
import json, resource, sys
from crosswalk.cli import main
status = main(sys.argv[1:])
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({
    "own": own.ru_utime + own.ru_stime, "others": others.ru_utime + others.ru_stime,
    "own_peak": own.ru_maxrss, "peak": max(own.ru_maxrss, others.ru_maxrss),
}))
"""


@attrs.frozen
class Took:
    """The cost of one run.

    Attributes:
        seconds: by the clock.
        own: CPU seconds of the process that was started.
        others: CPU seconds of its workers.
        own_peak: its peak memory, in KiB.
        peak: the highest peak memory of all its processes, in KiB.
    """

    seconds: float
    own: float
    others: float
    own_peak: int
    peak: int

    @property
    def cpu(self) -> float:
        """CPU seconds of all processes."""
        return self.own + self.others


def log_lines(count: int) -> Iterator[bytes]:
    """Yield a log of *count* records: the captures' providers in turn, with other texts and counts in each record."""
    makers = [
        (
            _makers([one for one in of if not one.stream][:_BODIES]),
            _makers([one for one in of if one.stream][:1]),
        )
        for of in (_usable(folder) for folder in sorted(_CAPTURES.iterdir()) if folder.is_dir())
    ]
    for number in range(count):
        turn, place = divmod(number, len(makers))
        bodies, streams = makers[place]
        chosen = streams if streams and turn % _STREAMED == 0 else bodies
        provider, make = chosen[turn % len(chosen)]
        yield orjson.dumps({"id": f"r{number}", "provider": provider, "body": make(number)}) + b"\n"


def _usable(folder: Path) -> list[Capture]:
    """Return whole answers that a log can hold as text."""
    found = load_captures(folder)
    return [one for one in found if one.status == 200 and one.complete]


def _makers(captures: Sequence[Capture]) -> list[tuple[str, Callable[[int], Any]]]:
    return [(one.file.parent.name, _maker(one.body)) for one in captures]


def _maker(body: bytes) -> Callable[[int], Any]:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body.decode()
        return lambda number: text
    if type(parsed) is dict:
        return lambda number: _varied(parsed, number)
    return lambda number: orjson.dumps(
        _varied(parsed, number)
    ).decode()  # a record's body is an object, or a text


def _varied(value: Any, number: int, key: str = "") -> Any:
    """Return *value* with another text, id, time and count of the prompt, and totals that are still the sum."""
    if type(value) is dict:
        return {name: _varied(item, number, name) for name, item in value.items()}
    if type(value) is list:
        return [_varied(item, number, key) for item in value]
    if type(value) is str and value:
        return f"{value} {number}" if key in _TEXTS else f"{value}{number}" if key == "id" else value
    if type(value) is int and (key == "created" or key in _COUNTS | _TOTALS):
        return value + number % 1000
    return value


def _begin(log: Path, folder: Path, jobs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _RUN, "batch", str(log), "--output", str(folder), "--jobs", str(jobs)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def _took(begun: Sequence[subprocess.Popen[str]], before: float) -> Took:
    said = [json.loads(process.communicate()[0]) for process in begun]
    sums = {name: sum(one[name] for one in said) for name in ("own", "others")}
    peaks = {name: max(one[name] for one in said) for name in ("own_peak", "peak")}
    return Took(time.perf_counter() - before, **sums, **peaks)


def _measured(log: Path, folder: Path, records: int) -> None:
    before = time.process_time()
    with log.open("rb") as lines:
        for line in lines:
            orjson.loads(line)
    floor = time.process_time() - before
    rows: list[tuple[str, ...]] = []
    for title, jobs in (("one process", [1]), ("two processes", [2]), ("two runs", [1, 1])):
        began = time.perf_counter()
        folders = [folder / f"{title.replace(' ', '-')}-{number}" for number in range(len(jobs))]
        took = _took([_begin(log, each, count) for each, count in zip(folders, jobs, strict=True)], began)
        done = records * len(jobs)
        shared = f"{100 * took.own / took.cpu:.1f} %" if took.others else ""
        rows.append(
            (
                title,
                f"{took.seconds:.1f}",
                f"{done / took.seconds:,.0f}",
                f"{took.cpu:.1f}",
                f"{done / took.cpu:,.0f}",
                f"{took.cpu / len(jobs) / floor:.0f}",
                shared,
                f"{took.own_peak / 1024:.0f}",
                f"{took.peak / 1024:.0f}",
            )
        )
    size = log.stat().st_size / 1e6
    header = ("", "s", "a second", "CPU s", "a CPU s", "x loads", "cutting", "MiB", "worker")
    print_table(f"{records:,} exchanges, {size:.0f} MB, through crosswalk batch", header, rows)


def main(rounds: int, records: int = RECORDS, keep: Path | None = None) -> None:
    """Print the table. A run is long enough to be measured once, so *rounds* is not needed."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if keep is None else keep
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "log.jsonl"
        with log.open("wb") as out:
            out.writelines(log_lines(records))
        _measured(log, folder, records)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=RECORDS, metavar="RECORDS")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    main(1, given.records, given.keep)
