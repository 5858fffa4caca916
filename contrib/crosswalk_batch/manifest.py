"""The manifest of a job: a line for the job, one for each finished part, in order, and one for the end.

A line counts when it is complete, so a job that is killed while writing one continues after the line before. The files of
a part are on disk before its line is written. Object storage cannot append, so each line is an object there.
"""

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
from crosswalk_batch.storage import RemoteStore, StoredFile, local_path

fcntl = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none

__all__ = ["MANIFEST", "Manifest", "Part", "Total", "is_finished", "manifest_at", "read_manifest"]

MANIFEST: Final = "crosswalk-batch.jsonl"
_PLACES: Final = "places"
_OBJECTS: Final = "crosswalk-batch"
"""The folder of the manifest's lines in object storage."""


def _as_files(values: Iterable[StoredFile | dict[str, Any]]) -> tuple[StoredFile, ...]:
    return tuple(value if isinstance(value, StoredFile) else StoredFile(**value) for value in values)


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
        files: the files that were written, with size and checksum.
    """

    part: int
    records: int
    errors: dict[str, int]
    weight: int
    guesses: dict[str, int] = attrs.field(factory=dict)
    layouts: dict[str, int] = attrs.field(factory=dict)
    files: tuple[StoredFile, ...] = attrs.field(default=(), converter=_as_files)


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
    """

    parts: int = 0
    records: int = 0
    errors: Counter[str] = attrs.field(factory=Counter)
    weight: int = 0
    faults: list[str] = attrs.field(factory=list)
    is_done: bool = False
    guesses: Counter[str] = attrs.field(factory=Counter)
    layouts: Counter[str] = attrs.field(factory=Counter)

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


class Manifest(ABC):
    """The manifest of a job, open for new lines. Use it as a context manager.

    Args:
        location: the output of the job.
        job: the job as plain JSON. A location holds the output of one job only.

    Attributes:
        job: the job as it was first run. Its inputs may have been in another location then.
        total: the sum of all parts.
        parts: the finished parts, in order.

    Raises:
        UsageError: the place holds the output of another job, the manifest is invalid, or it cannot be opened.
        OSError: it cannot be written.
    """

    def __init__(self, location: str, job: dict[str, Any]) -> None:
        self._location = location
        self.job = job
        self.total = Total()
        self.parts: list[Part] = []

    @abstractmethod
    def __enter__(self) -> Self:
        """Read the existing manifest."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        return None

    @abstractmethod
    def _write(self, name: str, line: dict[str, Any]) -> None:
        """Append a line."""

    def _resume(self, lines: list[bytes]) -> None:
        """Read the existing *lines*, or start with a line for the job."""
        try:
            said = [orjson.loads(line) for line in lines]
            changed = [
                key for key in self.job if said and key != _PLACES and said[0].get(key) != self.job[key]
            ]
            if changed:
                raise UsageError(
                    f"{self._location} holds the output of another job ({', '.join(changed)} differ): "
                    "name another folder, or remove it"
                )
            self.job = said[0] if said else self.job
            for line in said[1:]:
                self._take(line)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"{self._location}: its manifest cannot be read: {error}") from None

    def _take(self, line: dict[str, Any]) -> None:
        if "part" in line:
            self._count(Part(**line))
        else:
            self.total.faults, self.total.is_done = line["faults"], True

    def _count(self, part: Part) -> None:
        if part.part != len(self.parts):
            raise ValueError(f"part {len(self.parts)} is missing in it")
        self.parts.append(part)
        self.total.add(part)

    def add(self, part: Part) -> None:
        """Record that *part*, the next in order, is finished."""
        self._write(f"part-{part.part:06}", attrs.asdict(part))
        self._count(part)

    def close_with(self, faults: list[str]) -> None:
        """Record that the job is complete, with the *faults* of its inputs."""
        line = {"records": self.total.records, "rejects": self.total.rejects, "faults": faults}
        self._write("done", line)
        self.total.faults, self.total.is_done = faults, True


class _LocalManifest(Manifest):
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
            self._resume(lines)
            self._file.truncate(sum(map(len, lines)))
            if not lines:
                self._write("job", self.job)
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

    def _write(self, name: str, line: dict[str, Any]) -> None:
        rest = orjson.dumps(line) + b"\n"
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file)


class _RemoteManifest(Manifest):
    """An object for each line. It is not locked against a second process."""

    def __enter__(self) -> Self:
        self._store = RemoteStore(self._location)
        lines = list(_object_lines(self._store))
        self._resume(lines)
        if not lines:
            self._write("job", self.job)
        return self

    def _write(self, name: str, line: dict[str, Any]) -> None:
        self._store.write(f"{_OBJECTS}/{name}.json", orjson.dumps(line) + b"\n")


def _object_lines(store: RemoteStore) -> Iterator[bytes]:
    """Yield the lines of a manifest in object storage: the job, the parts in order, and the end."""
    names = list(store.names(_OBJECTS))
    first, last = f"{_OBJECTS}/job.json", f"{_OBJECTS}/done.json"
    parts = [name for name in names if name not in (first, last)]
    for name in (first, *parts, last):
        if name in names:
            yield store.read(name)


def manifest_at(location: str, job: dict[str, Any]) -> Manifest:
    """Return the manifest of *job* at *location*, a path or a URL. See :class:`Manifest`."""
    path = local_path(location)
    return _RemoteManifest(location, job) if path is None else _LocalManifest(path, job)


def _whole_lines(data: bytes) -> list[bytes]:
    """Return the lines of a manifest, without an incomplete last line."""
    return [line for line in data.splitlines(True) if line.endswith(b"\n")]


def read_manifest(folder: Path | str) -> tuple[dict[str, Any], list[Part]]:
    """Return the job with its output in *folder*, a path or a URL, and its finished parts.

    Raises:
        ConfigurationError: the manifest is missing or cannot be read.
    """
    try:
        lines = _lines_of(folder)
        return lines[0], [Part(**line) for line in lines[1:] if "part" in line]
    except (OSError, ValueError, TypeError, IndexError) as error:
        raise ConfigurationError(f"{Path(folder) / MANIFEST}: it cannot be read: {error}") from None


def is_finished(folder: str) -> bool:
    """Whether the job at *folder*, which has a manifest, is complete."""
    return "faults" in _lines_of(folder)[-1]


def _lines_of(folder: Path | str) -> list[dict[str, Any]]:
    path = local_path(str(folder))
    if path is None:
        found = list(_object_lines(RemoteStore(str(folder))))
    else:
        found = _whole_lines((Path(path) / MANIFEST).read_bytes())
    return [orjson.loads(line) for line in found]
