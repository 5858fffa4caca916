"""The inputs of a job: files with their kinds, sizes and checksums, in a local folder or object storage."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import attrs
import orjson
import pyarrow as pa
import pyarrow.fs as fs

from crosswalk.commands import UsageError, written
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.records import PACKED, file_kind
from crosswalk.testing.captures import capture_files

# --------------------------------------------------------------------------------- storage
# Storage of inputs and parts: a local folder, or object storage by its URL.
#
# Object storage is accessed through ``pyarrow.fs``. A file becomes visible there when its upload is complete.


_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCHEMES: Final = ("s3", "gs", "gcs", "az", "abfs", "abfss", "file")
_AZURE: Final = "az://"
_BUFFER: Final = 1024 * 1024


@attrs.frozen
class StoredFile:
    """A file that was written.

    Attributes:
        name: its path in the output, separated by ``/``.
        size: its size in bytes.
        sha256: the checksum of its content, in hexadecimal.
        within: the rows that replaced it when the output was compacted, or ``None``.
    """

    name: str
    size: int
    sha256: str
    within: Rows | None = attrs.field(default=None, eq=False)

    @property
    def on_disk(self) -> StoredFile:
        """The file with its rows: itself, or the compacted one."""
        return self if self.within is None else self.within.file

    @classmethod
    def of(cls, name: str, data: bytes | memoryview) -> StoredFile:
        """Return the description of the file *name* with the content *data*."""
        return cls(name, len(data), hashlib.sha256(data).hexdigest())


@attrs.frozen
class Rows:
    """Some rows of a compacted file.

    Attributes:
        file: the compacted file.
        first: the number of the first row, from 0.
        rows: the number of rows.
    """

    file: StoredFile
    first: int
    rows: int


def _is_url(text: str) -> bool:
    """Whether *text* is a URL and not a path. A drive letter does not count as a scheme."""
    match = _URL.match(text)
    return match is not None and len(match[1]) > 1


def local_path(text: str) -> str | None:
    """Return the path of *text*, a path or a ``file://`` URL, or ``None`` for object storage.

    Raises:
        UsageError: the scheme is not supported.
    """
    if not _is_url(text):
        return text
    scheme = text.partition("://")[0].lower()
    if scheme not in _SCHEMES:
        names = ", ".join(f"{name}://" for name in _SCHEMES)
        raise UsageError(f"{text}: {scheme}:// is not supported; there are {names} and paths")
    return text.partition("://")[2] if scheme == "file" else None


@cache
def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of *url*, and the path in it.

    Raises:
        UsageError: the file system does not exist or cannot be reached.
    """
    local_path(url)
    try:
        result = fs.FileSystem.from_uri(
            f"abfs://{url.removeprefix(_AZURE)}" if url.startswith(_AZURE) else url
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"{url}: {' '.join(str(error).split())}") from None
    return cast("tuple[Any, str]", result)


def open_file(location: str) -> BinaryIO:
    """Open the file at *location*, a path or a URL, for random access.

    Raises:
        OSError: the file cannot be read.
    """
    path = local_path(location)
    if path is not None:
        return open(path, "rb")
    system, inside = file_system(location)
    return io.BufferedReader(system.open_input_file(inside), _BUFFER)


def files_below(system: Any, path: str) -> list[Any]:
    """Return the ``pyarrow.fs`` information of each file at or below *path*, sorted by path.

    Raises:
        FileNotFoundError: the path does not exist.
    """
    (info,) = system.get_file_info([path])
    if info.type is fs.FileType.File:
        return [info]
    if info.type is fs.FileType.NotFound:
        raise FileNotFoundError(path)
    result = system.get_file_info(fs.FileSelector(path, recursive=True))
    return sorted((one for one in result if one.type is fs.FileType.File), key=lambda one: one.path)


class LocalStore:
    """A local folder.

    Args:
        folder: its path.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def write(self, name: str, data: bytes | memoryview) -> StoredFile:
        """Write the file *name* to disk, completely or not at all.

        Raises:
            OSError: the file cannot be written.
        """
        file = self._folder / name
        with written(file, replace=True) as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        _sync_folder(file.parent)
        return StoredFile.of(name, data)

    def read(self, name: str) -> bytes:
        """Return the content of the file *name*.

        Raises:
            OSError: the file is missing or cannot be read.
        """
        return (self._folder / name).read_bytes()

    def delete(self, name: str) -> None:
        """Delete the file *name*, if it exists."""
        (self._folder / name).unlink(missing_ok=True)

    def move(self, name: str, target: str) -> None:
        """Move the file *name* to *target*, in a folder that exists."""
        os.replace(self._folder / name, self._folder / target)
        _sync_folder((self._folder / target).parent)

    def size(self, name: str) -> int | None:
        """Return the size of the file *name* in bytes, or ``None`` if it is missing."""
        try:
            return (self._folder / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None


def _sync_folder(folder: Path) -> None:
    """Flush the names in *folder* to disk. Windows has no way to do that."""
    if os.name == "posix":  # pragma: no branch
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class RemoteStore(LocalStore):
    """A location in object storage, by its URL."""

    def __init__(self, url: str) -> None:
        self._system, self._root = file_system(url)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def write(self, name: str, data: bytes | memoryview) -> StoredFile:
        """Upload the file *name*, completely or not at all."""
        with self._system.open_output_stream(self._path(name), compression=None) as out:
            out.write(data)
        return StoredFile.of(name, data)

    def read(self, name: str) -> bytes:
        """Return the content of the file *name*."""
        with self._system.open_input_stream(self._path(name), compression=None) as file:
            return cast("bytes", file.read())

    def delete(self, name: str) -> None:
        """Delete the file *name*, if it exists."""
        with suppress(FileNotFoundError):
            self._system.delete_file(self._path(name))

    def move(self, name: str, target: str) -> None:
        """Move the file *name* to *target*."""
        self._system.move(self._path(name), self._path(target))

    def size(self, name: str) -> int | None:
        """Return the size of the file *name* in bytes, or ``None`` if it is missing."""
        (info,) = self._system.get_file_info([self._path(name)])
        return None if info.type is fs.FileType.NotFound else cast("int", info.size)

    def names(self, folder: str) -> Iterator[str]:
        """Yield the files directly in *folder*, sorted by name."""
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        result = self._system.get_file_info(selector)
        yield from sorted(f"{folder}/{info.base_name}" for info in result if info.type is fs.FileType.File)


def store_at(location: str) -> LocalStore:
    """Return the store at *location*, a path or a URL.

    Raises:
        UsageError: the scheme is not supported, or the storage cannot be reached.
    """
    path = local_path(location)
    return RemoteStore(location) if path is None else LocalStore(path)


def absolute(location: str) -> str:
    """Return *location*, a path or a URL, in a form that is valid in any folder and process.

    Raises:
        UsageError: the scheme is not supported.
    """
    path = local_path(location)
    return location if path is None else os.path.abspath(path)


# ---------------------------------------------------------------------------------- inputs
# The inputs of a job: files with their kinds, sizes and checksums at the start of the job.


MIB: Final = 1024 * 1024
LONGEST: Final = 128 * MIB
"""The maximum bytes of a record. A longer one is rejected without its bytes, which bounds the memory."""
BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = {".jsonl", ".ndjson", ".log"}
_HEAD: Final = MIB // 4
_KINDS: Final = ("lines", *PACKED, "parquet", "har", "document", "csv", "cassette", "sqlite")
_NAMED: Final = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".parquet": "parquet"}
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
        kind: ``har``, ``captures``, or a kind of :func:`crosswalk.records.file_kind`.
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
        local_name = local_path(text)
        path = Path(local_name or text)
        try:
            if local_name is None:
                inside = list(_of_url(text, passed))
            elif path.is_dir():
                inside = list(_in_folder(path, own, local_name, passed))
            else:
                inside = [_of_file(path, local_name)]
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
    result = _input(path, name, kind or "captures", () if kind else (path.name,))
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return result


def _kind(location: str, path: Path) -> str | None:
    """Return the kind of the file at *location* with the name *path*, by its first bytes, then by its name.

    Returns:
        A kind of :class:`Input`, or ``None`` for other files, such as a single answer.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if ".response" in suffixes:
        return None
    with open_file(location) as file:
        head = file.read(_HEAD)
    last = suffixes[-1] if suffixes else ""
    if last == ".har" and file_kind(head) not in PACKED:
        return "har"
    kind = file_kind(head, suffixes)
    if kind in (None, "lines") and last in _NAMED:
        return _NAMED[last]
    if kind is not None:
        return kind
    if _LINES & {*suffixes}:  # also log.jsonl.1 and log.jsonl.2026-11-20
        return "lines"
    return "lines" if _holds_lines(head) else None


def _holds_lines(head: bytes) -> bool:
    """Whether a file that begins with *head* is a log of plain bodies: two lines of JSON objects."""
    lines = head.removeprefix(BOM).splitlines()[:2]
    try:
        return len(lines) == 2 and all(type(orjson.loads(line)) is dict for line in lines)
    except orjson.JSONDecodeError:
        return False


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
        name = base if info.path == path else f"{base.rstrip('/')}/{info.path.removeprefix(path).lstrip('/')}"
        location = f"{name}?{query}" if query else name
        kind = _kind(location, Path(info.path))
        if kind in _KINDS:
            yield Input(
                location, name, str(kind), info.size, _digest([location], info.size), info.mtime_ns or 0
            )
        elif info.path == path:
            raise UsageError(f"{url}: only JSON Lines, Parquet and HAR files are read from object storage")
        else:
            passed.append(name)


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
