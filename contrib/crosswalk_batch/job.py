"""A job: inputs mapped into a folder, part by part, so that a stopped job can continue."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import attrs
import orjson

from crosswalk import __version__
from crosswalk.codec import FORMAT_VERSION
from crosswalk.commands import Progress, counted
from crosswalk.errors import ConfigurationError
from crosswalk.records import Layout
from crosswalk_batch.compaction import settle
from crosswalk_batch.engines import GOES_ON, StoppedError
from crosswalk_batch.inputs import MIB, Input, InputError
from crosswalk_batch.manifest import MANIFEST, Manifest, Part, Total, manifest_at
from crosswalk_batch.options import Options
from crosswalk_batch.parts import Output, Task
from crosswalk_batch.pieces import Piece, pieces

T = TypeVar("T")

Engine: TypeAlias = AbstractContextManager[Callable[[Iterable[Task]], Iterator[Part]]]
"""A context manager that yields a function, which performs tasks and yields their parts in the same order."""

_EVERY: Final = 60.0
"""Seconds between two progress messages if there is no terminal for a progress bar."""


@attrs.frozen(kw_only=True)
class Job:
    """The description of a job. Its parts depend on nothing else.

    Attributes:
        inputs: the inputs.
        output: the folder and format of the parts.
        options: how records are mapped.
        piece_bytes: the bytes of input in a part.
        column: the column of Parquet with the answers.
        additions: the first input and the first part of each run that added inputs.
    """

    inputs: list[Input]
    output: Output
    options: Options = attrs.field(factory=Options)
    piece_bytes: int = 8 * MIB
    column: str = "body"
    additions: tuple[tuple[int, int], ...] = ()

    def described(self) -> dict[str, Any]:
        """Return the job as plain JSON, the first line of its manifest."""
        made = {
            "crosswalk": __version__,
            "format_version": FORMAT_VERSION,
            "options": attrs.asdict(self.options),
            "output": attrs.asdict(self.output, filter=lambda field, _: field.name != "folder"),
            "piece_bytes": self.piece_bytes,
            "column": self.column,
            "inputs": [each.identity for each in self.inputs],
            "places": [
                {"path": each.path, "name": each.name, "changed": each.changed} for each in self.inputs
            ],
            "additions": self.additions,
        }
        plain: dict[str, Any] = orjson.loads(orjson.dumps(made))
        return plain

    @classmethod
    def of_description(cls, made: dict[str, Any], folder: Path | str) -> Job:
        """Return the job with its output in *folder*, from the first line of its manifest.

        Raises:
            ConfigurationError: the line does not describe a job.
        """
        try:
            options = made["options"]
            given = {
                **options,
                "created": _optional(datetime.fromisoformat, options["created"]),
                "layout": _optional(Layout.of_description, options["layout"]),
                "keep": {name: tuple(path) for name, path in options["keep"].items()},
            }
            return cls(
                inputs=_inputs_of(made),
                output=Output(str(folder), **made["output"]),
                options=Options(**given),
                piece_bytes=made["piece_bytes"],
                column=made["column"],
                additions=_additions_of(made),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"{Path(folder) / MANIFEST}: it cannot be read: {error!r}") from None

    @property
    def weight(self) -> int:
        """The bytes of all inputs."""
        return sum(each.size for each in self.inputs)

    def cut(self, part: int = 0) -> Iterator[Piece | InputError]:
        """Yield the pieces of the inputs, and an error for each input that cannot be read to its end.

        Args:
            part: the first part that is needed. Inputs whose addition ended before it are not read.
        """
        ends = [start for start, _ in self.additions]
        for (start, number), end in zip([(0, 0), *self.additions], [*ends, None], strict=True):
            following = [first for _, first in self.additions if first > number]
            if not following or following[0] > part:
                yield from pieces(
                    self.inputs[start:end],
                    size=self.piece_bytes,
                    column=self.column,
                    options=self.options,
                    number=number,
                )

    def task(self, piece: Piece) -> Task:
        """Return the task to map and store *piece*."""
        return Task(piece, self.options, self.output, self.piece_bytes, self.column)

    def run(self, engine: Engine, *, is_adding: bool = False) -> Total:
        """Do the remaining work of the job, and redo parts with missing or damaged files.

        Args:
            engine: performs the tasks.
            is_adding: whether to add the inputs to the output of an earlier run.

        Raises:
            UsageError: the output belongs to another job.
            StoppedError: a file cannot be written, an input has changed, or a process died.
        """
        try:
            with manifest_at(self.output.folder, self.described(), is_adding=is_adding) as manifest:
                job = self._as_stored(manifest.job)
                settle(self.output.store, manifest)
                damaged = {part.part for part in manifest.parts if any(self.output.damages(part.files))}
                if damaged or not manifest.total.is_done:
                    job._go_on(manifest, engine, damaged)
                return manifest.total
        except OSError as error:
            where = error.filename or self.output.folder
            raise StoppedError(f"{where}: {error.strerror or error}; {GOES_ON}") from None
        except InputError as error:
            raise StoppedError(str(error)) from None

    def _as_stored(self, described: dict[str, Any]) -> Job:
        """Return this job with all inputs of its manifest, under the names of their first run.

        They are read where this job has them, or else where they were then.
        """
        here: dict[tuple[Any, ...], deque[Input]] = {}
        for each in self.inputs:
            here.setdefault(_key(each), deque()).append(each)
        inputs = []
        for each in _inputs_of(described):
            result = here.get(_key(each))
            inputs.append(attrs.evolve(result.popleft(), name=each.name) if result else each)
        return attrs.evolve(self, inputs=inputs, additions=_additions_of(described))

    def _go_on(self, manifest: Manifest, engine: Engine, damaged: Set[int]) -> None:
        faults: list[str] = []
        done, is_done = manifest.total.parts, manifest.total.is_done
        first = min({*damaged, done})
        store = self.output.store
        compacted = {file.on_disk for part in manifest.parts for file in part.files if file.within}
        lost = {file for file in compacted if any(self.output.damages([file]))}
        for file in lost:
            store.delete(file.name)

        def tasks() -> Iterator[Task]:
            for piece in self.cut(first):
                if isinstance(piece, InputError):
                    faults.append(str(piece))
                elif piece.number in damaged or piece.number >= done:
                    yield self.task(piece)

        with Progress("mapping", self.weight, in_bytes=True) as progress, engine as perform:
            progress.advance(manifest.total.weight)
            pace = Pace(manifest.total.weight, self.weight)
            for part in perform(tasks()):
                self._see(part)
                if part.part < done:
                    before = manifest.parts[part.part]
                    self._compare(part, before)
                    for file in before.files:
                        if file.within is not None and file.on_disk not in lost:
                            store.delete(file.name)  # its rows are there
                    progress.say(
                        f"{self.output.folder}: part {part.part} was missing or damaged; it is there again"
                    )
                    continue
                manifest.add(part)
                progress.advance(part.weight)
                if line := pace.line(manifest.total):
                    progress.say(line)
        for each in self.inputs[max((start for start, part in self.additions if part <= first), default=0) :]:
            each.check()
        for file in sorted(lost, key=lambda file: file.name):
            manifest.restore(file.name)
        if not is_done:
            manifest.close_with(faults)

    def _see(self, part: Part) -> None:
        """Check that the files of *part*, written on any machine, are visible from here.

        Raises:
            StoppedError: they are not.
        """
        if damage := next(self.output.damages(part.files), None):
            raise StoppedError(
                f"{self.output.folder}: files that the workers wrote are not visible from here ({damage}): "
                "input and output must be on a file system that every node shares"
            )

    def _compare(self, again: Part, before: Part) -> None:
        """Check that *again*, a repeated part, equals *before*.

        Raises:
            StoppedError: they differ.
        """
        if again != before:
            raise StoppedError(
                f"{self.output.folder}: part {before.part} differs from its first version; "
                "map the inputs again, into another folder"
            )


def _inputs_of(described: dict[str, Any]) -> list[Input]:
    return [
        Input(**{**each, **location, "files": tuple(each["files"])})
        for each, location in zip(described["inputs"], described["places"], strict=True)
    ]


def _additions_of(described: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple((start, part) for start, part in described["additions"])


def _key(each: Input) -> tuple[Any, ...]:
    """Return the properties that stay the same when *each* is moved, as a key."""
    return each.kind, each.size, each.digest, each.files


def _optional(make: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else make(value)


class Pace:
    """The progress of a job as log messages.

    Args:
        before: the bytes that were done in earlier runs.
        weight: all bytes.
        clock: returns monotonic seconds.
    """

    def __init__(self, before: int, weight: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._before = before
        self._weight = weight
        self._clock = clock
        self._began = self._said = clock()

    def line(self, total: Total) -> str | None:
        """Return a progress message, at most once a minute and only without a progress bar, or ``None``."""
        now = self._clock()
        if sys.stderr.isatty() or now - self._said < _EVERY:
            return None
        self._said = now
        rate = (total.weight - self._before) / (now - self._began)
        remaining = (self._weight - total.weight) / rate if rate else 0.0
        share = 100 * total.weight // max(1, self._weight)
        return f"{share} %: {counted(total.records, 'record')}, {rate / 1e6:.1f} MB/s, {remaining:.0f} s left"
