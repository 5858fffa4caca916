"""The manifest of a job: a line for the job, one for each finished part, in order, one for the end, and its compactions."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import attrs
import orjson

from crosswalk.commands import UsageError
from crosswalk.errors import ConfigurationError
from crosswalk_batch.inputs import RemoteStore, Rows, StoredFile, local_path

# ---------------------------------------------------------------------------------- places
# The lines of a manifest about compactions: the files that they wrote, and the rows of each part in them.


COMPACTED: Final = "compacted"
SETTLED: Final = "settled"
RESTORED: Final = "restored"
"""The keys of lines for a file that is written, that is in its place, and that is lost and whose parts are there again."""


@attrs.frozen
class Compacted:
    """A file that a compaction wrote.

    Attributes:
        file: the file.
        rows: the files of parts in it, in order, and their numbers of rows.
        replaces: the files that it replaces on disk.
    """

    file: StoredFile
    rows: tuple[tuple[str, int], ...]
    replaces: tuple[str, ...]

    @classmethod
    def of_line(cls, line: dict[str, Any]) -> Compacted:
        """Return the file that a line of the manifest names."""
        made = line[COMPACTED]
        rows = tuple((name, count) for name, count in made["rows"])
        return cls(StoredFile(**made["file"]), rows, tuple(made["replaces"]))

    def places(self) -> Iterator[tuple[str, Rows]]:
        """Yield the rows of each file of a part."""
        first = 0
        for name, rows in self.rows:
            yield name, Rows(self.file, first, rows)
            first += rows


class CompactedRows:
    """The rows that replaced files of parts, by the file's name."""

    def __init__(self) -> None:
        self._rows: dict[str, Rows] = {}

    def take(self, line: dict[str, Any]) -> bool:
        """Whether *line* is about a compaction. Notes what it says."""
        if COMPACTED in line:
            self._rows.update(Compacted.of_line(line).places())
        elif RESTORED in line:
            lost = line[RESTORED]
            self._rows = {name: rows for name, rows in self._rows.items() if rows.file.name != lost}
        else:
            return SETTLED in line
        return True

    def on(self, parts: list[Part]) -> list[Part]:
        """Return *parts* with the places of their files."""
        if not self._rows:
            return parts
        return [
            attrs.evolve(
                part, files=[attrs.evolve(file, within=self._rows.get(file.name)) for file in part.files]
            )
            for part in parts
        ]


# -------------------------------------------------------------------------------- manifest
# The manifest of a job: a line for the job, one for each finished part, in order, and one for the end.
#
# If inputs are added later, a line for them follows, their parts, and another end. A compaction adds a line for each
# file
# that it writes, and one when that file is in its place.
#
# A line counts when it is complete, so a job that is killed while writing one continues after the line before. The
# files of
# a part are on disk before its line is written. Object storage cannot append, so each line is an object there.


fcntl = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none


MANIFEST: Final = "crosswalk-batch.jsonl"
_PLACES: Final = "places"
_ADDITIONS: Final = "additions"
_OBJECTS: Final = "crosswalk-batch"
"""The folder of the manifest's lines in object storage."""


def _as_files(values: Iterable[StoredFile | dict[str, Any]]) -> tuple[StoredFile, ...]:
    return tuple(value if isinstance(value, StoredFile) else StoredFile(**value) for value in values)


def _as_faults(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen
class Part:
    """A finished piece of a job.

    Attributes:
        part: its number, from 0.
        records: the number of its records.
        errors: the number of records that could not be mapped, by the name of the error.
        weight: the bytes of input that it covers.
        guesses: the number of answers that fit several providers, by the provider that was chosen.
        layouts: the number of log lines by layout.
        left_out: the number of lines that are no exchanges, by what they are.
        files: the files that were written, with size and checksum.
        faults: why inputs that its process read could not be read to their end.
    """

    part: int
    records: int
    errors: dict[str, int]
    weight: int
    guesses: dict[str, int] = attrs.field(factory=dict)
    layouts: dict[str, int] = attrs.field(factory=dict)
    files: tuple[StoredFile, ...] = attrs.field(default=(), converter=_as_files)
    faults: tuple[str, ...] = attrs.field(default=(), converter=_as_faults)
    left_out: dict[str, int] = attrs.field(factory=dict)


@attrs.define
class Total:
    """The sum of all finished parts of a job.

    Attributes:
        parts: the number of parts.
        records: the number of their records.
        errors: the number of records that could not be mapped, by the name of the error.
        weight: the bytes of input that they cover.
        faults: why inputs could not be read to their end, a line for each.
        is_done: whether the job is complete.
        guesses: the number of answers that fit several providers, by the provider that was chosen.
        layouts: the number of log lines by layout.
        left_out: the number of lines that are no exchanges, by what they are.
    """

    parts: int = 0
    records: int = 0
    errors: Counter[str] = attrs.field(factory=Counter)
    weight: int = 0
    faults: list[str] = attrs.field(factory=list)
    is_done: bool = False
    guesses: Counter[str] = attrs.field(factory=Counter)
    layouts: Counter[str] = attrs.field(factory=Counter)
    left_out: Counter[str] = attrs.field(factory=Counter)

    @property
    def rejects(self) -> int:
        """The number of records that could not be mapped."""
        return self.errors.total()

    def add(self, part: Part) -> None:
        """Add *part*."""
        self.parts += 1
        self.records += part.records
        self.errors.update(part.errors)
        self.weight += part.weight
        self.guesses.update(part.guesses)
        self.layouts.update(part.layouts)
        self.left_out.update(part.left_out)
        self.faults += part.faults


class JobManifest(ABC):
    """The manifest of a job, open for new lines. Use it as a context manager.

    Args:
        location: the output of the job.
        job: the job as plain JSON. A location holds the output of one job only.
        is_adding: whether the inputs of *job* are added to those of an earlier run. Inputs that are there already are not.

    Attributes:
        job: the job as it was first run, with the inputs that were added. They may have been in another location then.
        total: the sum of all parts.
        parts: the finished parts, in order.
        pending: the compacted file that is not in its place yet, or ``None``.

    Raises:
        UsageError: the place holds the output of another job, the manifest is invalid, or it cannot be opened.
        OSError: it cannot be written.
    """

    def __init__(self, location: str, job: dict[str, Any], *, is_adding: bool = False) -> None:
        self._location = location
        self._is_adding = is_adding
        self.job = job
        self.total = Total()
        self.parts: list[Part] = []
        self.pending: Compacted | None = None
        self._places = CompactedRows()

    @abstractmethod
    def __enter__(self) -> Self:
        """Read the existing manifest."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        return None

    @abstractmethod
    def _write(self, line: dict[str, Any]) -> None:
        """Append a line."""

    def _resume(self, lines: list[bytes]) -> None:
        """Read the existing *lines*, or start with a line for the job."""
        if not lines:
            self._write(self.job)
            return
        requested = self.job
        try:
            self.job, *others = [orjson.loads(line) for line in lines]
            for line in others:
                self._take(line)
            self.parts = self._places.on(self.parts)
            self._check(requested)
            new = _missing(requested, self.job) if self._is_adding else {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"{self._location}: its manifest cannot be read: {error}") from None
        if new:
            if not self.total.is_done:
                raise UsageError(f"{self._location}: its job is not done; run that first, then add to it")
            self._write(new)
            self._take(new)

    def _check(self, requested: dict[str, Any]) -> None:
        """Check that *requested* is the same job.

        Raises:
            UsageError: it is another one.
        """
        skipped = {_PLACES, _ADDITIONS} | ({"inputs"} if self._is_adding else set())
        changed = [key for key in requested if key not in skipped and self.job.get(key) != requested[key]]
        if changed:
            hint = "--add adds inputs to it; or " if changed == ["inputs"] else ""
            raise UsageError(
                f"{self._location} holds the output of another job ({', '.join(changed)} differ): "
                f"{hint}name another folder, or remove it"
            )

    def _take(self, line: dict[str, Any]) -> None:
        if "part" in line:
            self._count(Part(**line))
        elif _PLACES in line:
            self.job = _with_inputs(self.job, line, self.total.parts)
            self.total.is_done = False
        elif self._places.take(line):
            self.pending = Compacted.of_line(line) if COMPACTED in line else None
        else:
            self._finish(line["faults"])

    def _count(self, part: Part) -> None:
        if part.part != len(self.parts):
            raise ValueError(f"part {len(self.parts)} is missing in it")
        self.parts.append(part)
        self.total.add(part)

    def add(self, part: Part) -> None:
        """Record that *part*, the next in order, is finished."""
        self._write(_described(part))
        self._count(part)

    def compact(self, compacted: Compacted) -> None:
        """Record that *compacted* is written, but not in its place yet."""
        self._write({COMPACTED: _described(compacted)})
        self.pending = compacted

    def settle(self) -> None:
        """Record that the compacted file is in its place, and those that it replaces are deleted."""
        self._write({SETTLED: True})
        self.pending = None

    def restore(self, name: str) -> None:
        """Record that the compacted file *name* is lost, and that its parts have their files again."""
        self._write({RESTORED: name})

    def close_with(self, faults: list[str]) -> None:
        """Record that the job is complete, with the *faults* of its inputs."""
        self._write({"records": self.total.records, "rejects": self.total.rejects, "faults": faults})
        self._finish(faults)

    def _finish(self, faults: list[str]) -> None:
        self.total.faults = [*dict.fromkeys([*self.total.faults, *faults])]
        self.total.is_done = True


def _described(value: Part | Compacted) -> dict[str, Any]:
    return attrs.asdict(value, filter=lambda field, _: field.name != "within")


def _missing(requested: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Return the line for the inputs of *requested* that *job* does not have, or nothing."""
    there = Counter(map(orjson.dumps, job["inputs"]))
    new = []
    for each in zip(requested["inputs"], requested[_PLACES], strict=True):
        identity = orjson.dumps(each[0])
        if there[identity]:
            there[identity] -= 1
        else:
            new.append(each)
    return {"inputs": [one for one, _ in new], _PLACES: [place for _, place in new]} if new else {}


def _with_inputs(job: dict[str, Any], line: dict[str, Any], parts: int) -> dict[str, Any]:
    """Return *job* with the inputs that *line* adds after *parts* parts."""
    return {
        **job,
        "inputs": [*job["inputs"], *line["inputs"]],
        _PLACES: [*job[_PLACES], *line[_PLACES]],
        _ADDITIONS: [*job[_ADDITIONS], [len(job["inputs"]), parts]],
    }


class _LocalManifest(JobManifest):
    """A file of lines that one process at a time may open."""

    def __enter__(self) -> Self:
        path = Path(self._location) / MANIFEST
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what could not be written is not tried again when it is closed.
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.seek(0)
            lines = _whole_lines(self._file.read())
            self._file.truncate(sum(map(len, lines)))
            self._resume(lines)
        except BaseException as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise UsageError(f"{path.parent}: another process writes there") from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        remainder = orjson.dumps(line) + b"\n"
        while remainder:
            remainder = remainder[self._file.write(remainder) :]
        os.fsync(self._file)


class _RemoteManifest(JobManifest):
    """An object for each line. It is not locked against a second process."""

    def __enter__(self) -> Self:
        self._store = RemoteStore(self._location)
        lines = list(_object_lines(self._store))
        self._next = len(lines)
        self._resume(lines)
        return self

    def _write(self, line: dict[str, Any]) -> None:
        self._store.write(f"{_OBJECTS}/{self._next:08}.json", orjson.dumps(line) + b"\n")
        self._next += 1


def _object_lines(store: RemoteStore) -> Iterator[bytes]:
    """Yield the lines of a manifest in object storage, in the order of their numbers."""
    return map(store.read, sorted(store.names(_OBJECTS)))


def manifest_at(location: str, job: dict[str, Any], *, is_adding: bool = False) -> JobManifest:
    """Return the manifest of *job* at *location*, a path or a URL. See :class:`JobManifest`."""
    path = local_path(location)
    if path is None:
        return _RemoteManifest(location, job, is_adding=is_adding)
    return _LocalManifest(path, job, is_adding=is_adding)


def _whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of a manifest, without an incomplete last line."""
    return [line for line in data.splitlines(True) if line.endswith(b"\n")]


def read_manifest(folder: Path | str) -> tuple[dict[str, Any], list[Part]]:
    """Return the job with its output in *folder*, a path or a URL, and its finished parts.

    Raises:
        ConfigurationError: the manifest is missing or cannot be read.
    """
    try:
        job, *lines = _lines_of(folder)
        parts: list[Part] = []
        places = CompactedRows()
        for line in lines:
            if "part" in line:
                parts.append(Part(**line))
            elif _PLACES in line:
                job = _with_inputs(job, line, len(parts))
            else:
                places.take(line)
        return job, places.on(parts)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"{Path(folder) / MANIFEST}: it cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def is_finished(folder: str) -> bool:
    """Whether the job at *folder*, which has a manifest, is complete."""
    last = _lines_of(folder)[-1].keys()
    return "part" not in last and bool(last & {"faults", SETTLED, RESTORED})


def _lines_of(folder: Path | str) -> list[dict[str, Any]]:
    path = local_path(str(folder))
    if path is None:
        results = list(_object_lines(RemoteStore(str(folder))))
    else:
        results = _whole_lines((Path(path) / MANIFEST).read_bytes())
    return [orjson.loads(line) for line in results]
