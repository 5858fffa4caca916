"""Recorded answers: the first pass over those of ``tests/captures`` compared with a later one, and streams by provider.

Each pass runs in a separate process, in which the plugins are resolved first: importing them does not count as reading.
The streams are those of ``tests/captures`` and of ``../shared/captures/recorded``, an event a read.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from benchmarks.measure import Above, is_met, medians, print_table, verdict
from benchmarks.payloads import chunks

if TYPE_CHECKING:
    from crosswalk.plugin.registry import Mapper
    from crosswalk.testing import Capture

ROOT: Final = Path(__file__).parents[1]
STREAMS_BAR: Final = 14
"""For all recorded streams together."""
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


class Recorded(NamedTuple):
    """A recorded stream: who reads it, the bytes of each read, and the lines that are JSON."""

    mapper: Mapper
    reads: list[bytes]
    events: list[bytes]


def recorded_streams() -> dict[str, list[Recorded]]:
    """Return the recorded streams by provider."""
    from crosswalk import registry
    from crosswalk.testing import load_captures

    found: dict[str, list[Recorded]] = {}
    for folder in sorted((ROOT / "tests/captures").iterdir()):
        if folder.name in registry.names():
            for capture in load_captures(folder):
                _add(found, folder.name, capture)
    sys.path.insert(0, str(ROOT / "tests"))
    import beside  # which knows who reads the answers beside the project

    for name in beside.folders():
        if name.startswith("recorded/"):
            for provider, capture in beside.answers_in(name):
                _add(found, provider, capture)
    if not beside.CAPTURES.is_dir():
        print("skipped: no captures beside the project", file=sys.stderr)
    return found


def _add(found: dict[str, list[Recorded]], provider: str, capture: Capture) -> None:
    from crosswalk import registry

    if not capture.stream or capture.status >= 400:
        return
    mapper, body = registry.mapper(provider), capture.body
    try:
        events = [data for data, _ in capture.frames(mapper)]
        for event in events:
            orjson.loads(event)
    except ValueError:  # broken on purpose
        return
    gap = next((gap for gap in (b"\r\n\r\n", b"\n\n") if gap in body), b"\n")
    reads = [piece + gap for piece in body.split(gap)]
    reads[-1] = reads[-1].removesuffix(gap)
    found.setdefault(provider, []).append(Recorded(mapper, reads, events))


def read_streams(answers: list[Recorded]) -> None:
    """Read each of the streams, an event a read."""
    from crosswalk.errors import CrosswalkError
    from crosswalk.mapping.reader import Reader, ReaderOptions, drain

    options = ReaderOptions(unknown="keep")
    for answer in answers:
        reader = Reader(answer.mapper, options)
        try:
            for one in answer.reads:
                drain(reader.read(one))
            drain(reader.finish())
            reader.response()
        except CrosswalkError:  # some recorded answers are incomplete on purpose
            pass


def main(rounds: int) -> list[Above]:
    """Print both tables. Return the rows that miss their bar."""
    return [*_first_passes(rounds), *_by_provider(rounds)]


def _by_provider(rounds: int) -> list[Above]:
    rows, above, all_read, all_loaded = [], [], 0.0, 0.0
    ratios: list[float] = []
    streams = recorded_streams()
    for name, answers in streams.items():
        events = [event for answer in answers for event in answer.events]
        ways = {
            "read": lambda answers=answers: read_streams(answers),
            "floor": lambda events=events: [orjson.loads(event) for event in events],
        }
        found = medians(ways, rounds)
        all_read, all_loaded = all_read + found["read"], all_loaded + found["floor"]
        ratios.append(found["read"] / found["floor"])
        rows.append(_row(name, len(answers), len(events), found["read"], found["floor"]))
    count, events = (sum(int(row[n]) for row in rows) for n in (1, 2))
    times = all_read / all_loaded
    if not is_met(times, STREAMS_BAR):
        above.append(Above("recorded streams, all", times, STREAMS_BAR))
    rows.append(_row("all", count, events, all_read, all_loaded))
    rows.append(("mean of the providers", "", "", "", "", f"{statistics.mean(ratios):.1f}"))
    header = ("", "answers", "events", "us an answer", "us an event", "times orjson.loads")
    print_table(f"recorded streams, an event a read; bar for all: {STREAMS_BAR}", header, rows)
    return above


def _row(name: str, answers: int, events: int, read: float, loaded: float) -> tuple[str, ...]:
    each, event = read / answers * 1e6, read / events * 1e6
    return name, f"{answers}", f"{events}", f"{each:.0f}", f"{event:.1f}", f"{read / loaded:.1f}"


def _first_passes(rounds: int) -> list[Above]:
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
