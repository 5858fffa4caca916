"""Recorded answers: the first pass over those of ``tests/captures`` compared with a later one, and streams by provider.

Each pass runs in a separate process, in which the plugins are resolved first: importing them does not count as reading.
The streams are those of ``tests/captures`` and of ``../shared/captures/recorded``, an event a read. What was written after
a provider's documents, and not recorded from a server, has a table of its own without a bar.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from unittest import mock

import orjson

from benchmarks.measure import Above, is_met, medians, print_table, verdict
from benchmarks.payloads import chunks
from crosswalk.mapping.alike import AlikeEvents

if TYPE_CHECKING:
    from collections.abc import Callable

    from crosswalk.plugin.registry import Mapper
    from crosswalk.testing import Capture

ROOT: Final = Path(__file__).parents[1]
STREAMS_BAR: Final = 14
"""For all recorded streams together."""
PROVIDERS_BAR: Final = 16
"""For the mean of the providers, each with the same weight."""
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


def recorded_streams(*, invented: bool = False) -> dict[str, list[Recorded]]:
    """Return the streams by provider: those that a server sent, or those *invented* after a provider's documents."""
    from crosswalk import registry
    from crosswalk.testing import load_captures

    found: dict[str, list[Recorded]] = {}
    for folder in sorted((ROOT / "tests/captures").iterdir()):
        if folder.name in registry.names():
            made_up = _invented_files(folder)
            for capture in load_captures(folder):
                if (capture.file.name in made_up) is invented:
                    _add(found, folder.name, capture)
    if invented:
        return found
    sys.path.insert(0, str(ROOT / "tests"))
    import beside  # which knows who reads the answers beside the project

    for name in beside.folders():
        if name.startswith("recorded/"):
            for provider, capture in beside.answers_in(name):
                _add(found, provider, capture)
    if not beside.CAPTURES.is_dir():
        print("skipped: no captures beside the project", file=sys.stderr)
    return found


def _invented_files(folder: Path) -> frozenset[str]:
    """Return the names of the files whose line in the manifest says that no server sent them."""
    lines = map(orjson.loads, (folder / "MANIFEST.jsonl").read_bytes().splitlines())
    return frozenset(line["file"] for line in lines if line.get("note", "").startswith("invented"))


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


def _hits(answers: list[Recorded]) -> int:
    """Return the number of events that go around the hooks, since they are like an earlier one."""
    hits = 0

    def counted(read: Callable[..., object]) -> Callable[..., object]:
        def count(*arguments: object) -> object:
            nonlocal hits
            found = read(*arguments)
            hits += found is not None
            return found

        return count

    with (
        mock.patch.object(AlikeEvents, "read", counted(AlikeEvents.read)),
        mock.patch.object(AlikeEvents, "read_framed", counted(AlikeEvents.read_framed)),
    ):
        read_streams(answers)
    return hits


def main(rounds: int) -> list[Above]:
    """Print the tables. Return the rows that miss their bar."""
    title = "recorded streams, an event a read"
    above = _by_provider(title, recorded_streams(), rounds, (STREAMS_BAR, PROVIDERS_BAR))
    _by_provider("streams written after a provider's documents", recorded_streams(invented=True), rounds)
    return [*_first_passes(rounds), *above]


def _by_provider(
    title: str, streams: dict[str, list[Recorded]], rounds: int, bars: tuple[int, int] | None = None
) -> list[Above]:
    """Print a row for each provider. Return those of all together and of their mean that miss their bar."""
    rows, all_read, all_loaded = [], 0.0, 0.0
    ratios: list[float] = []
    for name, answers in streams.items():
        events = [event for answer in answers for event in answer.events]
        ways = {
            "read": lambda answers=answers: read_streams(answers),
            "floor": lambda events=events: [orjson.loads(event) for event in events],
        }
        found = medians(ways, rounds)
        all_read, all_loaded = all_read + found["read"], all_loaded + found["floor"]
        ratios.append(found["read"] / found["floor"])
        rows.append(_row(name, len(answers), len(events), _hits(answers), found["read"], found["floor"]))
    count, event_count, hits = (sum(int(row[n]) for row in rows) for n in (1, 2, 3))
    rows.append(_row("all", count, event_count, hits, all_read, all_loaded))
    mean = statistics.mean(ratios)
    rows.append(("mean of the providers", "", "", "", "", "", f"{mean:.1f}"))
    header = ("", "answers", "events", "alike", "us an answer", "us an event", "times orjson.loads")
    print_table(
        title if bars is None else f"{title}; bars: {bars[0]} for all, {bars[1]} the mean", header, rows
    )
    found_times = ("recorded streams, all", all_read / all_loaded), ("recorded streams, the mean", mean)
    return [
        Above(name, times, bar)
        for (name, times), bar in zip(found_times, bars or (), strict=False)
        if not is_met(times, bar)
    ]


def _row(name: str, answers: int, events: int, hits: int, read: float, loaded: float) -> tuple[str, ...]:
    each, event = read / answers * 1e6, read / events * 1e6
    return name, f"{answers}", f"{events}", f"{hits}", f"{each:.0f}", f"{event:.1f}", f"{read / loaded:.1f}"


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
