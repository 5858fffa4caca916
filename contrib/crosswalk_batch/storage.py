"""Storage of inputs and parts: a local folder, or object storage by its URL.

Object storage is accessed through ``pyarrow.fs``. A file becomes visible there when its upload is complete.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import attrs
import pyarrow as pa
import pyarrow.fs as fs

from crosswalk.commands import UsageError, written

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


class Store:
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


class RemoteStore(Store):
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


def store_at(location: str) -> Store:
    """Return the store at *location*, a path or a URL.

    Raises:
        UsageError: the scheme is not supported, or the storage cannot be reached.
    """
    path = local_path(location)
    return RemoteStore(location) if path is None else Store(path)


def absolute(location: str) -> str:
    """Return *location*, a path or a URL, in a form that is valid in any folder and process.

    Raises:
        UsageError: the scheme is not supported.
    """
    path = local_path(location)
    return location if path is None else os.path.abspath(path)
