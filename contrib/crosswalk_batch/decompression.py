"""Decompression of gzip and zstd files. A damaged file yields everything before the damage."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from crosswalk_batch.inputs import MIB, Input
from crosswalk_batch.storage import open_file

_Opened: TypeAlias = tuple[BinaryIO, Callable[[], int], Callable[[], str]]


@contextmanager
def opened(each: Input) -> Iterator[_Opened]:
    """Open a file of lines. Yields the decompressed stream, a function for the position in the file, and one for its fault.

    The fault is ``""`` for an intact file, and is known when the end is reached.
    """
    with open_file(each.path) as file:
        if each.kind == "lines":
            yield file, file.tell, str
        else:
            unpacked = _Unpacked(_unzipped(file) if each.kind == "gzip" else _unpacked(file))
            # Arrow closes the file at its end.
            position = lambda: each.size if file.closed else file.tell()  # noqa: E731
            yield io.BufferedReader(unpacked, MIB), position, lambda: unpacked.fault


class _Unpacked(io.RawIOBase):
    """A stream of blocks. It ends at an error and stores the reason, so that earlier data is not lost."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")
        self.fault = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            while not self._rest:
                self._rest = memoryview(next(self._blocks))
        except StopIteration:
            return 0
        except (OSError, zlib.error) as error:
            self.fault = f"the file is damaged: {cause_of(error)}"
            return 0
        taken = min(len(buffer), len(self._rest))
        buffer[:taken], self._rest = self._rest[:taken], self._rest[taken:]
        return taken


def _unzipped(file: BinaryIO) -> Iterator[bytes]:
    unpack = zlib.decompressobj(31)
    is_begun = False
    while remainder := file.read(MIB // 4):
        while True:
            if unpack.eof:  # perhaps another one after it; some tools fill up with zeros
                remainder = remainder.lstrip(b"\0")
                if not remainder:
                    break
                unpack = zlib.decompressobj(31)
            is_begun = True
            yield (out := unpack.decompress(remainder, MIB))
            remainder = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if not remainder and len(out) < MIB:
                break
    if is_begun and not unpack.eof:
        raise OSError("it ends in the middle")


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
        while block := stream.read(MIB):
            yield block


def cause_of(error: Exception) -> str:
    """Return the message of *error* on one line."""
    return getattr(error, "strerror", None) or " ".join(str(error).split())
