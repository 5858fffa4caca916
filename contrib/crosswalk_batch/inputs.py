"""The inputs of a job: files with their kinds, sizes and checksums at the start of the job."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from crosswalk.commands import UsageError
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.records import layout_of
from crosswalk.testing.captures import capture_files
from crosswalk_batch.storage import file_system, files_below, local_path, open_file

MIB: Final = 1024 * 1024
LONGEST: Final = 128 * MIB
"""The maximum bytes of a record. A longer one is rejected without its bytes, which bounds the memory."""
BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = {".jsonl", ".ndjson", ".log"}
_HEAD: Final = MIB // 4
_MAGIC: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "parquet"}
_UNREAD: Final = {b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
_KINDS: Final = ("lines", "gzip", "zstd", "parquet", "har")
_PACKED: Final = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MANIFEST: Final = "MANIFEST.jsonl"
_SAMPLE: Final = MIB // 16


def too_long(what: str) -> str:
    """Return the message for a record that is longer than :data:`LONGEST`."""
    return f"the {what} is longer than {LONGEST} bytes; it stays where it is"


class InputError(CrosswalkError):
    """An input cannot be read to its end, because it is damaged or has changed."""


@attrs.frozen
class Input:
    """A file with records, or several files of one record each.

    Attributes:
        path: the absolute path or URL of the file, or of the folder of the files.
        name: the user's name for it, in the column ``source``.
        kind: ``lines``, ``gzip``, ``zstd``, ``parquet``, ``har`` or ``captures``.
        size: its size in bytes.
        digest: a checksum of its head, middle and tail. Inputs with the same size and digest count as the same.
        changed: when it was last written, in nanoseconds since 1970.
        files: the names of captures in the folder, or empty for other kinds.
    """

    path: str
    name: str
    kind: str
    size: int
    digest: str
    changed: int
    files: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, Any]:
        """The properties that stay the same when the input is moved or copied, as plain JSON."""
        return {"kind": self.kind, "size": self.size, "digest": self.digest, "files": list(self.files)}

    def check(self) -> None:
        """Check that the input has not changed.

        Raises:
            InputError: the input has changed, or is missing.
        """
        try:
            size, changed = _stated(self.path, self.files)
        except OSError as error:
            raise InputError(f"{self.name}: {error.strerror or error}") from None
        if (size, changed) != (self.size, self.changed):
            raise InputError(f"{self.name}: it changed while it was read")


def find_inputs(
    paths: Sequence[str], output: Path | str, passed_over: list[str] | None = None
) -> list[Input]:
    """Return the inputs at *paths*, in order. Folders are searched recursively, without hidden files and *output*.

    Args:
        paths: files, folders and URLs.
        output: the folder of the job.
        passed_over: a list to extend with the names of files in folders that are neither logs nor captures.

    Raises:
        UsageError: a path is missing, cannot be read, or is a folder without inputs.
    """
    if not paths or "-" in paths:
        raise UsageError("name files or folders: standard input cannot be read again after a stop")
    results = []
    passed = [] if passed_over is None else passed_over
    folder = local_path(str(output))
    own = None if folder is None else Path(folder).resolve()
    for text in paths:
        location = local_path(text)
        path = Path(location or text)
        try:
            if location is None:
                inside = list(_of_url(text, passed))
            elif path.is_dir():
                inside = list(_in_folder(path, own, location, passed))
            else:
                inside = [_of_file(path, location)]
        except FileNotFoundError:
            raise UsageError(f"no such file: {text}") from None
        except (OSError, ConfigurationError) as error:
            file = getattr(error, "filename", None) or text
            raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
        if not inside:
            raise UsageError(f"{text}: contains nothing that can be read")
        results += inside
    return results


def _of_file(path: Path, name: str) -> Input:
    kind = _kind(str(path), path)
    if kind in _UNREAD.values():
        raise UsageError(f"{name}: {kind} is not read; unpack it first")
    result = _input(path, name, kind or "captures", () if kind else (path.name,))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return result


def _kind(location: str, path: Path) -> str | None:
    """Return the kind of the file at *location* with the name *path*, by its first bytes, then by its name.

    Returns:
        A kind of :class:`Input`, the name of an unsupported format, or ``None`` for other files, such as a single answer.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".response" in suffixes:
        return None
    with open_file(location) as file:
        head = file.read(_HEAD)
    for magic, kind in (_MAGIC | _UNREAD).items():
        if head.startswith(magic):
            return kind
    last = suffixes[-1] if suffixes else ""
    if last in _PACKED:
        return _PACKED[last]
    if last in (".parquet", ".har"):
        return last[1:]
    if _LINES & {*suffixes}:  # also log.jsonl.1 and log.jsonl.2026-11-20
        return "lines"
    return "lines" if _holds_lines(head) else None


def _holds_lines(head: bytes) -> bool:
    """Whether a file that begins with *head* is a log: two lines of JSON objects, or one that contains an answer."""
    results = []
    for line in head.removeprefix(BOM).splitlines()[:2]:
        try:
            results.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            return False
        if type(results[-1]) is not dict:
            return False
    try:
        return len(results) == 2 or (len(results) == 1 and layout_of(results[0]) is not None)
    except ConfigurationError:  # it fits several layouts
        return True


def _in_folder(folder: Path, output: Path | None, name: str, passed: list[str]) -> Iterator[Input]:
    if folder.resolve() == output:
        return
    captures = tuple(
        sorted(file.name for file in capture_files(folder) if _kind(str(file), file) not in _KINDS)
    )
    if captures:
        yield _input(folder, name, "captures", captures)
    for inside in sorted(folder.iterdir()):
        if inside.name.startswith((".", "__")) or inside.name == _MANIFEST or inside.name in captures:
            continue
        own = str(Path(name) / inside.name)
        if inside.is_dir() and not inside.is_symlink():
            yield from _in_folder(inside, output, own, passed)
        elif inside.is_file() and not {".request", ".meta"} & {*inside.suffixes}:
            kind = _kind(str(inside), inside)
            if kind in _KINDS:
                yield _input(inside, own, str(kind), ())
            else:
                passed.append(own)


def _of_url(url: str, passed: list[str]) -> Iterator[Input]:
    """Yield the inputs below *url* in object storage, sorted by name."""
    system, path = file_system(url)
    base, _, query = url.partition("?")
    for info in files_below(system, path):
        own = base if info.path == path else f"{base.rstrip('/')}/{info.path.removeprefix(path).lstrip('/')}"
        location = f"{own}?{query}" if query else own
        kind = _kind(location, Path(info.path))
        if kind in _KINDS:
            yield Input(
                location, own, str(kind), info.size, _digest([location], info.size), info.mtime_ns or 0
            )
        elif info.path == path:
            raise UsageError(f"{url}: only JSON Lines, Parquet and HAR files are read from object storage")
        else:
            passed.append(own)


def _input(path: Path, name: str, kind: str, files: tuple[str, ...]) -> Input:
    absolute = os.path.abspath(path)
    size, changed = _stated(absolute, files)
    return Input(absolute, name, kind, size, _digest(_paths(absolute, files), size), changed, files)


def _paths(path: str, files: tuple[str, ...]) -> list[str]:
    """Return the files of an input: the file itself, or those in its folder."""
    if not files:
        return [path]
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return [os.path.join(folder, file) for file in files]


def _stated(path: str, files: tuple[str, ...]) -> tuple[int, int]:
    """Return the size of an input in bytes, and when it was last written."""
    if local_path(path) is None:
        system, inside = file_system(path)
        (info,) = system.get_file_info([inside])
        return info.size or 0, info.mtime_ns or 0
    each = [os.stat(one) for one in _paths(path, files)]
    return sum(one.st_size for one in each), max(one.st_mtime_ns for one in each)


def _digest(paths: Iterable[str], size: int) -> str:
    """Return a checksum of the head, the middle and the tail of each of the files."""
    digest = hashlib.sha256(str(size).encode())
    for path in paths:
        with open_file(path) as file:
            end = file.seek(0, os.SEEK_END)
            for start in sorted({0, max(0, end // 2 - _SAMPLE), max(0, end - _SAMPLE)}):
                file.seek(start)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()
