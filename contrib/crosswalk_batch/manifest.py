"""What a job has done so far: a line for the job, a line for each finished part, in order, and one for the end.

A line counts when its end is there, so a job that was killed while it wrote one goes on after the line before.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import attrs
import orjson

from crosswalk.commands import UsageError
from crosswalk.errors import ConfigurationError

fcntl = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none

__all__ = ["MANIFEST", "Manifest", "Part", "Total", "read_manifest"]

MANIFEST: Final = "crosswalk-batch.jsonl"


@attrs.frozen
class Part:
    """A finished piece of a job.

    Attributes:
        part: its number, from 0.
        records: how many records it had.
        errors: how many of them could not be mapped, by the name of the error.
        weight: how many bytes of the input are done with it.
        guesses: how many answers fit several providers, by the one that they were read as.
        layouts: how many lines of a log had which layout.
    """

    part: int
    records: int
    errors: dict[str, int]
    weight: int
    guesses: dict[str, int] = attrs.field(factory=dict)
    layouts: dict[str, int] = attrs.field(factory=dict)


@attrs.define
class Total:
    """What a job has done, all parts together.

    Attributes:
        parts: how many pieces.
        records: how many records they had.
        errors: how many of them could not be mapped, by the name of the error.
        weight: how many bytes of the input are done.
        faults: why an input could not be read to its end, a line each.
        is_done: whether nothing is left to do.
        guesses: how many answers fit several providers, by the one that they were read as.
        layouts: how many lines of a log had which layout.
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
        """How many records could not be mapped."""
        return self.errors.total()

    def add(self, part: Part) -> None:
        """Count *part* in."""
        self.parts += 1
        self.records += part.records
        self.errors.update(part.errors)
        self.weight += part.weight
        self.guesses.update(part.guesses)
        self.layouts.update(part.layouts)


class Manifest:
    """The manifest of a job, open for further lines; use it as a context manager.

    Args:
        folder: the output of the job.
        job: what is to be done: plain JSON. A folder holds the output of one job only.

    Raises:
        UsageError: the folder holds the output of another job, what stands there is no manifest, or it cannot be opened.
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        self._path = folder / MANIFEST
        self._job = job
        self.total = Total()

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what could not be written is not tried again when it is closed.
            self._file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise UsageError(f"{self._path}: {error.strerror or error}") from None
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._resume()
        except BaseException as error:
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise UsageError(f"{self._path.parent}: another process writes there") from None
            raise
        return self

    def _resume(self) -> None:
        self._file.seek(0)
        lines = _whole_lines(self._file.read())
        try:
            said = [orjson.loads(line) for line in lines]
            if said and said[0] != self._job:
                changed = [key for key in self._job if said[0].get(key) != self._job[key]]
                raise UsageError(
                    f"{self._path.parent} holds the output of another job ({', '.join(changed)} differ): "
                    "name another folder, or remove it"
                )
            for line in said[1:]:
                self._take(line)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"{self._path}: it cannot be read: {error}") from None
        self._file.truncate(sum(map(len, lines)))
        if not lines:
            self._write(self._job)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _take(self, line: dict[str, Any]) -> None:
        if "part" in line:
            self.total.add(Part(**line))
        else:
            self.total.faults, self.total.is_done = line["faults"], True

    def add(self, part: Part) -> None:
        """Note that *part*, the next one in order, is finished."""
        self._write(attrs.asdict(part))
        self.total.add(part)

    def close_with(self, faults: list[str]) -> None:
        """Note that the job is done, and what of the input could not be read."""
        self._write({"records": self.total.records, "rejects": self.total.rejects, "faults": faults})
        self.total.faults, self.total.is_done = faults, True

    def _write(self, line: dict[str, Any]) -> None:
        rest = orjson.dumps(line) + b"\n"
        while rest:
            rest = rest[self._file.write(rest) :]


def _whole_lines(data: bytes) -> list[bytes]:
    """The lines of a manifest, without one that its writer did not finish."""
    return [line for line in data.splitlines(True) if line.endswith(b"\n")]


def read_manifest(folder: Path) -> tuple[dict[str, Any], list[Part]]:
    """The job whose output *folder* holds, and its finished parts.

    Raises:
        ConfigurationError: there is none, or it cannot be read.
    """
    try:
        lines = [orjson.loads(line) for line in _whole_lines((folder / MANIFEST).read_bytes())]
        return lines[0], [Part(**line) for line in lines[1:] if "part" in line]
    except (OSError, ValueError, TypeError, IndexError) as error:
        raise ConfigurationError(f"{folder / MANIFEST}: it cannot be read: {error}") from None
