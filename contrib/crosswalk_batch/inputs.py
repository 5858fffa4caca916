"""What a job reads: the files that were named, each with what kind it is and how it was when the job began."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from crosswalk.commands import UsageError
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.testing.captures import capture_files

__all__ = ["BOM", "LONGEST", "MIB", "Input", "InputError", "find_inputs", "too_long"]

MIB: Final = 1024 * 1024
LONGEST: Final = 128 * MIB
"""A longer record is a reject without its bytes, so that memory stays bounded: no answer may have a line of half of that."""
BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = {".jsonl", ".ndjson", ".log"}
_PACKED: Final = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MANIFEST: Final = "MANIFEST.jsonl"


def too_long(what: str) -> str:
    """Why a record that is longer than :data:`LONGEST` is none."""
    return f"the {what} is longer than {LONGEST} bytes; it stays where it is"


class InputError(CrosswalkError):
    """An input cannot be read to its end: it is damaged, or has changed meanwhile."""


@attrs.frozen
class Input:
    """A file with records, or several files of one record each.

    Attributes:
        path: the file, or the folder of the files.
        kind: ``lines``, ``gzip``, ``zstd``, ``parquet``, ``har`` or ``captures``.
        size: its bytes.
        changed: when it was last written, in nanoseconds since 1970.
        files: of captures, their names in the folder; else empty.
    """

    path: str
    kind: str
    size: int
    changed: int
    files: tuple[str, ...] = ()

    def check(self) -> None:
        """Find out whether it is as it was.

        Raises:
            InputError: it has changed, or is gone.
        """
        try:
            now = _stated(self.path, self.kind, self.files)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from None
        if now != self:
            raise InputError(f"{self.path}: it was changed while it was read")


def find_inputs(paths: Sequence[str], output: Path) -> list[Input]:
    """The inputs that *paths* name, in their order; folders are searched through, hidden ones and *output* left out.

    Raises:
        UsageError: one is not there, cannot be read, or is a folder without any.
    """
    if not paths or "-" in paths:
        raise UsageError(
            "name files or folders: what comes from standard input cannot be read again after a stop"
        )
    found = []
    for text in paths:
        path = Path(text)
        try:
            inside = list(_in_folder(path, output.resolve())) if path.is_dir() else [_of_file(path)]
        except FileNotFoundError:
            raise UsageError(f"no such file: {text}") from None
        except (OSError, ConfigurationError) as error:
            file = getattr(error, "filename", None) or text
            raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
        if not inside:
            raise UsageError(f"{text}: nothing in it that could be read")
        found += inside
    return found


def _of_file(path: Path) -> Input:
    found = _stated(str(path), _kind(path) or "captures", () if _kind(path) else (path.name,))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return found


def _kind(path: Path) -> str | None:
    """What a file is, by its name; ``None`` for one answer alone."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if not suffixes or ".response" in suffixes:
        return None
    if suffixes[-1] in _PACKED:
        return _PACKED[suffixes[-1]]
    if suffixes[-1] in _LINES:
        return "lines"
    return suffixes[-1][1:] if suffixes[-1] in (".parquet", ".har") else None


def _in_folder(folder: Path, output: Path) -> Iterator[Input]:
    if folder.resolve() == output:
        return
    captures = tuple(sorted(file.name for file in capture_files(folder)))
    if captures:
        yield _stated(str(folder), "captures", captures)
    for inside in sorted(folder.iterdir()):
        if inside.name.startswith((".", "__")) or inside.name == _MANIFEST or inside.name in captures:
            continue
        if inside.is_dir() and not inside.is_symlink():
            yield from _in_folder(inside, output)
        elif inside.is_file() and _kind(inside) is not None:
            yield _stated(str(inside), _kind(inside) or "", ())


def _stated(path: str, kind: str, files: tuple[str, ...]) -> Input:
    if kind != "captures":
        stated = os.stat(path)
        return Input(path, kind, stated.st_size, stated.st_mtime_ns)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    each = [os.stat(os.path.join(folder, file)) for file in files]
    return Input(path, kind, sum(one.st_size for one in each), max(one.st_mtime_ns for one in each), files)
