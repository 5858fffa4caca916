"""The files of a batch: the logs that it reads, and the parts that it writes, on a disk or in object storage by URL.

An input is known by its content: its kind, its size, and a checksum of its head, its middle and its tail. Its path and its
time say only whether it changes while it is read. So a log may be moved or copied between two runs, and a log that has
grown is recognized by the log that it begins with. Each file is an input of its own, also each capture of a folder.

Object storage is accessed through ``pyarrow.fs``. A file becomes visible there when its upload is complete. On a disk it
is written beside its place, flushed, and renamed.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from urllib.parse import quote, unquote_to_bytes

import attrs
import orjson
import pyarrow as pa
import pyarrow.fs as fs

from crosswalk.commands import UsageError, written
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.records import file_kind
from crosswalk.testing.captures import capture_files

# --------------------------------------------------------------------------------- storage


MIB: Final = 1024 * 1024
BOM: Final = b"\xef\xbb\xbf"
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # a drive letter is no scheme
_SCHEMES: Final = ("s3", "gs", "gcs", "az", "abfs", "abfss", "file")


@attrs.frozen
class StoredFile:
    """A file that was written.

    Attributes:
        name: its path in the output, separated by ``/``.
        size: its size in bytes.
        sha256: the checksum of its content, in hexadecimal.
    """

    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, name: str, data: bytes | memoryview) -> StoredFile:
        """Return the description of the file *name* with the content *data*."""
        return cls(name, len(data), hashlib.sha256(data).hexdigest())


def local_path(location: str) -> str | None:
    """Return the path of *location*, a path or a ``file://`` URL, or ``None`` for object storage.

    Raises:
        UsageError: the scheme is not supported.
    """
    if (match := _URL.match(location)) is None:
        return location
    if (scheme := match[1].lower()) not in _SCHEMES:
        names = ", ".join(f"{name}://" for name in _SCHEMES)
        raise UsageError(f"{location}: {scheme}:// is not supported; there are {names} and paths")
    return os.fsdecode(unquote_to_bytes(location[match.end() :])) if scheme == "file" else None


def absolute(location: str) -> str:
    """Return *location*, a path or a URL, in a form that is valid in any folder and process, and in JSON.

    Raises:
        UsageError: the scheme is not supported.
    """
    if (path := local_path(location)) is None:
        return location
    path = os.path.abspath(path)
    return path if _is_text(path) else f"file://{quote(os.fsencode(path))}"


def _is_text(path: str) -> bool:
    """Whether a path is UTF-8."""
    return os.fsencode(path).decode(errors="replace") == path


@cache
def _file_system(url: str) -> tuple[Any, str]:
    """Return the file system of *url*, which may be a path, and the path in it.

    Raises:
        UsageError: the file system does not exist or cannot be reached.
    """
    if (path := local_path(url)) is not None:
        return fs.LocalFileSystem(), path
    try:
        return cast("tuple[Any, str]", fs.FileSystem.from_uri(re.sub("^az://", "abfs://", url)))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UsageError(f"{url}: {' '.join(str(error).split())}") from None


def open_file(location: str) -> BinaryIO:
    """Open the file at *location*, a path or a URL, for random access.

    Raises:
        OSError: the file cannot be read.
    """
    if (path := local_path(location)) is not None:
        return open(path, "rb")
    system, inside = _file_system(location)
    return io.BufferedReader(system.open_input_file(inside), MIB)


class OutputStore:
    """The place of an output, a folder or a URL.

    Args:
        location: its absolute path or URL.

    Attributes:
        folder: its path, or ``None`` in object storage.

    Raises:
        UsageError: the scheme is not supported, the storage cannot be reached, or the path is not UTF-8.
    """

    def __init__(self, location: str) -> None:
        path = local_path(location)
        if path is not None and not _is_text(path):
            raise UsageError(f"{location}: its name is not UTF-8; name another folder")
        self.folder = None if path is None else Path(path)
        self._system, self._root = _file_system(location)

    def write(self, name: str, data: bytes | memoryview) -> StoredFile:
        """Write the file *name*, completely or not at all.

        Raises:
            OSError: it cannot be written.
        """
        if self.folder is None:
            with self._system.open_output_stream(f"{self._root}/{name}", compression=None) as upload:
                upload.write(data)
            return StoredFile.of(name, data)
        with written(self.folder / name, replace=True) as draft:
            draft.write(data)
            draft.flush()
            os.fsync(draft.fileno())
        if os.name == "posix":  # pragma: no branch  # Windows cannot flush the names in a folder
            folder = os.open((self.folder / name).parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return StoredFile.of(name, data)

    def read(self, name: str) -> bytes:
        """Return the content of the file *name*.

        Raises:
            OSError: it is missing or cannot be read.
        """
        with self._system.open_input_stream(f"{self._root}/{name}", compression=None) as file:
            return cast("bytes", file.read())

    def delete(self, name: str) -> None:
        """Delete the file *name*."""
        self._system.delete_file(f"{self._root}/{name}")

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of each file in *folder* and below it by its name, in the order of the names."""
        selector = fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True, recursive=True)
        return {
            f"{folder}/{info.path.removeprefix(selector.base_dir).lstrip('/')}": info.size
            for info in sorted(self._system.get_file_info(selector), key=lambda info: info.path)
            if info.type is fs.FileType.File
        }


# ---------------------------------------------------------------------------------- inputs


_HEAD: Final = MIB // 4
_SAMPLE: Final = MIB // 16
_FIRST: Final = 256
"""The bytes with a checksum of their own, so that a log that has grown is found among many."""
_LOGS: Final = {".jsonl", ".ndjson", ".log"}


class InputError(CrosswalkError):
    """An input is missing, or has changed while it was read."""


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return values[0], values[1]


@attrs.frozen
class Input:
    """A file with records.

    Attributes:
        path: its absolute path or URL.
        name: the user's name for it, in the column ``source``.
        kind: ``capture`` for a single answer, ``har``, or a kind of :func:`crosswalk.records.file_kind`.
        size: its size in bytes, when it was found.
        digest: a checksum of its first bytes, and one of its head, its middle and its tail.
        copy: how many inputs with the same content come before it.
        seen: the size of the file, and when it was last written, in nanoseconds since 1970.
    """

    path: str
    name: str
    kind: str
    size: int
    digest: str
    seen: tuple[int, int] = attrs.field(converter=_pair)
    copy: int = 0

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What the input is known by."""
        return self.kind, self.size, self.digest, self.copy

    def check(self) -> None:
        """Check that the input has not changed.

        Raises:
            InputError: it has changed, or is missing.
        """
        try:
            seen = _seen(self.path)
        except OSError as error:
            raise InputError(f"{self.name}: {error.strerror or error}") from None
        if seen != self.seen:
            raise InputError(f"{self.name}: it changed while it was read")

    def begins_with(self, other: Input) -> bool:
        """Whether this input begins with all that *other* holds."""
        may_begin = self.kind == other.kind and self.size >= other.size
        if other.size >= _FIRST:
            may_begin = may_begin and self.digest.split("-")[0] == other.digest.split("-")[0]
        return may_begin and _digest(self.path, other.size) == other.digest

    def found(self, *, may_be_longer: bool) -> Input:
        """Return the input as its file is now: written again, or grown if it *may_be_longer*, with the same content.

        Raises:
            InputError: another file is there.
        """
        try:
            seen = _seen(self.path)
        except OSError:
            return self  # reading it reports the error
        if seen == self.seen:
            return self
        size = min(self.size, seen[0]) if may_be_longer else seen[0]
        if size != self.size or _digest(self.path, size) != self.digest:
            raise InputError(
                f"{self.name}: it is another file now; name the one that was mapped, wherever it is"
            )
        return attrs.evolve(self, seen=seen)


def find_inputs(
    paths: Sequence[str], output: Path | str, passed_over: list[str] | None = None
) -> list[Input]:
    """Return the inputs at *paths*, in order. Folders are searched recursively, without hidden files and *output*.

    A file is one input, however many links and spellings lead to it.

    Args:
        paths: files, folders and URLs.
        output: the folder of the job.
        passed_over: a list to extend with the names of files in folders that are neither logs nor captures.

    Raises:
        UsageError: a path is missing, cannot be read, or is a folder without inputs.
    """
    if not paths or "-" in paths:
        raise UsageError("name files or folders: standard input cannot be read again after a stop")
    passed = [] if passed_over is None else passed_over
    folder = local_path(str(output))
    own = None if folder is None else Path(folder).resolve()
    results: list[Input] = []
    copies: Counter[Any] = Counter()
    known: set[str] = set()
    for text in paths:
        is_empty = True
        try:
            for location, name, may_be_answer in _files_at(text, own):
                local = local_path(location)
                if local is not None and name != text and not os.path.isfile(local):
                    passed.append(name)  # a pipe, or a link to nothing
                    continue
                kind = _kind(location) or ("capture" if may_be_answer else None)
                if kind is None:
                    passed.append(name)
                    continue
                is_empty = False
                real = location if local is None else os.path.realpath(local)
                if real in known:
                    continue
                known.add(real)
                size, _ = seen = _seen(location)
                name = os.fsencode(name).decode(errors="backslashreplace")
                each = Input(absolute(location), name, kind, size, _digest(location, size), seen)
                results.append(attrs.evolve(each, copy=copies[each.key]))
                copies[each.key] += 1
        except FileNotFoundError:
            raise UsageError(f"no such file: {text}") from None
        except (OSError, ConfigurationError) as error:
            file = getattr(error, "filename", None) or text
            raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
        if is_empty:
            raise UsageError(f"{text}: contains nothing that can be read")
    return results


def _files_at(text: str, output: Path | None) -> Iterator[tuple[str, str, bool]]:
    """Yield the location and the name of each file at *text* or below it, and whether it may be a single answer."""
    if (local := local_path(text)) is None:
        system, path = _file_system(text)
        base, mark, query = text.partition("?")
        (info,) = system.get_file_info([path])
        below = system.get_file_info(fs.FileSelector(path, recursive=True)) if not info.is_file else [info]
        for inside in sorted(one.path for one in below if one.is_file):
            name = base if info.is_file else f"{base.rstrip('/')}/{inside.removeprefix(path).lstrip('/')}"
            yield f"{name}{mark}{query}", name, False
    elif not os.path.isdir(local):
        yield local, local, True
    else:
        for place, folders, names in os.walk(local, onerror=_raise):
            folders[:] = [one for one in sorted(folders) if Path(place, one).resolve() != output]
            folders[:] = [one for one in folders if not one.startswith((".", "__"))]
            folders[:] = [one for one in folders if not Path(place, one, "crosswalk-batch").is_dir()]
            captures = {*capture_files(place)}
            for file in (Path(place, name) for name in sorted(names)):
                is_hidden = file.name.startswith((".", "__")) or file.name == "MANIFEST.jsonl"
                if not is_hidden and not {".request", ".meta"} & {*file.suffixes}:
                    yield str(file), str(file), file in captures


def _raise(error: OSError) -> None:
    raise error


def _kind(location: str) -> str | None:
    """Return the kind of a file by its first bytes, then by its name, or ``None`` for others, such as a single answer."""
    suffixes = [suffix.lower() for suffix in Path(location.partition("?")[0]).suffixes]
    with open_file(location) as file:
        if ".response" in suffixes:
            return None
        head = file.read(_HEAD)
    kind = file_kind(head, suffixes)
    if suffixes[-1:] in ([".har"], [".parquet"]) and kind in (None, "lines", "document"):
        return suffixes[-1][1:]
    if kind is None and (_LOGS & {*suffixes} or _holds_lines(head)):  # also log.jsonl.1
        return "lines"
    return kind


def _holds_lines(head: bytes) -> bool:
    """Whether a file that begins with *head* is a log of plain bodies: two lines of JSON objects."""
    lines = head.removeprefix(BOM).splitlines()[:2]
    try:
        return len(lines) == 2 and all(type(orjson.loads(line)) is dict for line in lines)
    except orjson.JSONDecodeError:
        return False


def _seen(location: str) -> tuple[int, int]:
    """Return the size of a file in bytes, and when it was last written."""
    if (path := local_path(location)) is not None:
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    system, inside = _file_system(location)
    (info,) = system.get_file_info([inside])
    if info.type is fs.FileType.NotFound:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), location)
    return info.size, info.mtime_ns or 0


def _digest(location: str, size: int) -> str:
    """Return the checksums of a file of *size* bytes, or of the first *size* bytes of a longer one."""
    with open_file(location) as file:
        first = hashlib.sha256(file.read(min(size, _FIRST))).hexdigest()[:16]
        samples = hashlib.sha256(str(size).encode())
        for start in sorted({0, max(0, size // 2 - _SAMPLE), max(0, size - _SAMPLE)}):
            file.seek(start)
            samples.update(file.read(min(_SAMPLE, size - start)))
    return f"{first}-{samples.hexdigest()}"
