"""The lines of a log in a file of any kind: packed, JSON Lines, JSON documents, CSV, SQLite, Parquet or a VCR cassette."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from crosswalk.lazy import later
from crosswalk.plain_errors import ConfigurationError, CrosswalkError
from crosswalk.records.layout import entries_of, is_answer, layout_of
from crosswalk.types.json import dump_json, load_json
from crosswalk.wire.framing import MIB

if TYPE_CHECKING:
    import bz2
    import lzma
else:
    bz2, lzma = later("bz2"), later("lzma")

LONGEST: Final = 256 * MIB
"""The maximum bytes of a line, and of a value in a JSON document."""
BOM: Final = b"\xef\xbb\xbf"
HEAD: Final = MIB // 4
"""The bytes at the beginning of a file that decide its kind."""
_KIND_BY_MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",  # a frame to be skipped, with which files of pzstd begin
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"PAR1": "parquet",
    b"SQLite format 3\0": "sqlite",
}
PACKED: Final = ("gzip", "zstd", "bzip2", "xz")
"""The kinds of packed files, which contain a file of another kind."""
_OBJECT_LINE: Final = re.compile(rb"^\s*\{", re.MULTILINE)
_TABLES_QUERY: Final = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"


class LogFileError(CrosswalkError):
    """A log cannot be read to its end, because it is damaged or its kind needs a package that is not installed."""


# -------------------------------------------------------------------------------------------- kinds


def file_kind(head: bytes, suffixes: Iterable[str] = ()) -> str | None:
    """Return the kind of a file by its first bytes, :data:`HEAD` or fewer, and only then by its name.

    Args:
        head: the first bytes.
        suffixes: the suffixes of its name, in lower case.

    Returns:
        ``gzip``, ``zstd``, ``bzip2``, ``xz``, ``parquet``, ``sqlite``, ``document``, ``csv``, ``cassette`` or ``lines``, or
        ``None`` for a file that holds no log, such as a single answer.
    """
    for magic, kind in _KIND_BY_MAGIC.items():
        if head.startswith(magic):
            return kind
    if ".response" in suffixes:
        return None
    text = head.removeprefix(BOM)
    if (text_kind := _text_kind(text)) is not None:
        return text_kind
    if ".jsonl" in suffixes or (".log" in suffixes and _OBJECT_LINE.search(text)):
        return "lines"  # also log.jsonl.1 and log.jsonl.2026-11-20
    return "lines" if _are_lines_of_a_log(text) else None


def _text_kind(text: bytes) -> str | None:
    first_line = text.lstrip()[:HEAD].partition(b"\n")[0].strip()
    if first_line.startswith((b"[", b"{")):
        is_begun = first_line.startswith(b"[") or first_line.endswith((b"{", b"["))
        return "document" if is_begun and _begins_a_log(text) else None
    if re.match(rb"(http_)?interactions:", first_line):
        return "cassette"
    return "csv" if _csv_columns(first_line) is not None else None


def _begins_a_log(text: bytes) -> bool:
    """Whether *text*, the beginning of a JSON document, is that of a log and not of an answer."""
    first_json = next(json_values(io.BytesIO(text).read, is_whole=False), None)
    if first_json is not None:
        value = _loaded(first_json)
        return is_log_line(value) or (text.lstrip().startswith(b"[") and is_answer(value))
    return _CONTAINERS.search(text[:4096]) is not None


_CONTAINERS: Final = re.compile(
    rb'^\s*\{\s*"(log|interactions|resourceSpans|results|evalId|data|info|sessionId|runs|events)"'
)
"""The beginning of an object with several exchanges that is longer than the bytes that are looked at."""


def is_log_line(value: Any) -> bool:
    """Whether *value* is the object of a line of a log that an included layout describes, or contains several."""
    if type(value) is not dict:
        return False
    try:
        return layout_of(value) is not None or entries_of(value) is not None
    except ConfigurationError:  # it fits several layouts
        return True


def _are_lines_of_a_log(text: bytes) -> bool:
    """Whether the first lines are those of a log: each is a JSON object, and one fits a layout."""
    if len(text) >= HEAD - len(BOM) and b"\n" not in text:  # a line that is longer than that
        return _CONTAINERS.search(text[:4096]) is not None
    first_values = [_loaded(line) for line in text.splitlines()[:2]]
    return (
        bool(first_values)
        and all(type(one) is dict for one in first_values)
        and any(map(is_log_line, first_values))
    )


def _loaded(data: bytes) -> Any:
    try:
        return load_json(data)
    except ValueError:
        return None


def _csv_columns(first_line: bytes) -> list[str] | None:
    """Return the names of the columns if *first_line* is the heading of a table that fits a layout, or ``None``."""
    with suppress(UnicodeDecodeError, csv.Error):
        columns = next(csv.reader([first_line.decode()]), [])
        if len(columns) > 1 and is_log_line(dict.fromkeys(columns, "")):
            return columns
    return None


# ------------------------------------------------------------------------------------------ reading


def log_rows(file: BinaryIO, path: str | None = None) -> Iterator[bytes] | None:
    """Return the JSON objects in *file*, or ``None`` for one of JSON Lines, which is then read from its beginning.

    Args:
        file: a file that can seek, or whose ``peek`` shows its first bytes.
        path: its path, which an SQLite file needs.

    Raises:
        LogFileError: while it is read, if it is damaged. What came before was yielded.
    """
    head = first_bytes(file)
    kind = log_kind(file)
    if kind == "lines":
        return None
    if kind == "sqlite":
        return _sqlite_rows(path)
    if kind == "parquet":
        return _parquet_rows(file)
    if kind == "csv":
        return _csv_rows(file)
    if kind == "cassette":
        return _cassette(file)
    file.read(len(BOM) if head.startswith(BOM) else 0)
    return json_values(file.read)


def log_kind(file: BinaryIO) -> str:
    """Return the kind of *file*, a log, and leave it at its beginning. What is nothing else are lines."""
    return file_kind(first_bytes(file), [".jsonl"]) or "lines"


def first_bytes(file: BinaryIO) -> bytes:
    """Return the first bytes of *file*, and leave it at its beginning."""
    if file.seekable():
        head, _ = file.read(HEAD), file.seek(0)
        return head
    return file.peek(HEAD)  # type: ignore[attr-defined,no-any-return]  # a buffered reader has it


_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+("|\\?\Z)|[\[\]{}]', re.DOTALL)
_BETWEEN: Final = b" \t\r\n,"


def json_values(read: Callable[[int], bytes], *, is_whole: bool = True) -> Iterator[bytes]:
    """Yield the objects of a JSON document: the items of an array, or values that follow each other.

    Args:
        read: returns up to so many bytes of the document, and none at its end.
        is_whole: whether the end of the bytes is that of the document.

    Raises:
        LogFileError: the document is damaged, or ends in the middle.
    """
    buffer, depth, base_depth, start, position = bytearray(), 0, 0, 0, 0
    while block := read(max(MIB, len(buffer))):
        buffer += block
        while (token := _TOKEN.search(buffer, position)) is not None:
            character = token[0]
            if token[1] is not None and token[1] != b'"':
                position = token.start()
                break  # a text that goes on in the next block
            position = token.end()
            if token[1] is not None:
                continue
            if character in b"{[":
                if depth == base_depth:
                    if depth == 0 and character == b"[" and base_depth == 0:
                        base_depth = depth = 1
                        continue
                    start = token.start()
                depth += 1
                continue
            depth -= 1
            if depth < base_depth:  # the end of the array
                base_depth = depth = 0
            elif depth == base_depth:
                yield bytes(buffer[start:position])
                del buffer[:position]
                position = start = 0
        else:
            position = len(buffer)
        if depth == base_depth:
            del buffer[:position]
            position = start = 0
        if len(buffer) > LONGEST:
            raise LogFileError(f"a value is longer than {LONGEST} bytes")
    if is_whole and (depth or base_depth):
        raise LogFileError("the JSON ends in the middle")


def _csv_rows(file: BinaryIO) -> Iterator[bytes]:
    text_stream = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
    try:
        for row in csv.DictReader(text_stream):
            yield dump_json({name: value for name, value in row.items() if name and value not in ("", None)})
    except csv.Error as error:
        raise LogFileError(f"not CSV: {error}") from None
    finally:
        with suppress(ValueError):
            text_stream.detach()


def _cassette(file: BinaryIO) -> Iterator[bytes]:
    try:
        import yaml
    except ImportError:
        raise LogFileError("a VCR cassette in YAML needs the package PyYAML") from None
    try:
        cassette = yaml.load(file.read(LONGEST), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError):
        raise LogFileError("the YAML is damaged") from None
    interactions = entries_of(cassette) if type(cassette) is dict else None
    for one in interactions or ():
        yield dump_json(one, default=_plain)


def _sqlite_rows(path: str | None) -> Iterator[bytes]:
    """Yield the rows of the tables that fit a layout."""
    import sqlite3  # most logs are no databases

    if path is None:
        raise LogFileError("an SQLite file is read by its path")
    from pathlib import Path

    has_log = False
    try:
        uri = f"{Path(path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = lambda data: data.decode(errors="replace")
            table_names = [row[0] for row in database.execute(_TABLES_QUERY)]
            for name in table_names:
                quoted_name = name.replace('"', '""')
                rows = (dict(row) for row in database.execute(f'SELECT * FROM "{quoted_name}"'))
                if (first_row := next(rows, None)) is None or not is_log_line(first_row):
                    continue
                has_log = True
                for row in chain([first_row], rows):
                    yield dump_json(row, default=_plain)
    except sqlite3.Error as error:
        raise LogFileError(f"the database is damaged: {error}") from None
    if not has_log:
        raise LogFileError(
            f"no table with a log that Crosswalk knows: {', '.join(table_names) or 'it is empty'}"
        )


def _parquet_rows(file: BinaryIO) -> Iterator[bytes]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise LogFileError("Parquet needs the extra: pip install 'crosswalk-llm[batch]'") from None
    try:
        with pq.ParquetFile(file) as parquet_file:
            for batch in parquet_file.iter_batches(1000, use_threads=False):
                for row in batch.to_pylist():
                    yield dump_json(row, default=_plain)
    except (pa.ArrowException, OSError) as error:
        raise LogFileError(f"the file is damaged: {cause_of(error)}") from None


def _plain(value: Any) -> Any:
    """Return a value of a column as plain JSON."""
    if isinstance(value, bytes):
        return unpacked_bytes(value).decode(errors="replace")
    if isinstance(value, set):
        return sorted(map(str, value))
    return str(value)


def unpacked_bytes(data: bytes) -> bytes:
    """Return *data*, unpacked if it is gzip."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    decompressor = zlib.decompressobj(31)
    try:
        return decompressor.decompress(data, LONGEST)
    except zlib.error:
        return data


# ---------------------------------------------------------------------------------------- unpacking


class Unpacked(io.RawIOBase):
    """The content of a packed file. It ends at a damage, so that what comes before is not lost.

    Args:
        file: the packed file.
        kind: one of :data:`PACKED`.

    Attributes:
        fault: the reason for the end before the end of the file, or ``""``. It is known at the end.
    """

    def __init__(self, file: BinaryIO, kind: str) -> None:
        self._blocks = _UNPACKERS[kind](file)
        self._rest = memoryview(b"")
        self.fault = ""

    def readable(self) -> bool:
        """Whether it can be read, which it can."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into *buffer*, and return the number of bytes, 0 at the end."""
        try:
            while not self._rest:
                self._rest = memoryview(next(self._blocks))
        except StopIteration:
            return 0
        except (OSError, zlib.error, lzma.LZMAError, EOFError) as error:
            self.fault = f"the file is damaged: {cause_of(error)}"
            return 0
        except LogFileError as error:
            self.fault = str(error)
            return 0
        taken_count = min(len(buffer), len(self._rest))
        buffer[:taken_count], self._rest = self._rest[:taken_count], self._rest[taken_count:]
        return taken_count


def _gzip(file: BinaryIO) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(31)
    is_begun = False
    while remainder := file.read(MIB // 4):
        while True:
            if decompressor.eof:  # perhaps another one after it; some tools fill up with zeros
                remainder = remainder.lstrip(b"\0")
                if not remainder:
                    break
                decompressor = zlib.decompressobj(31)
            is_begun = True
            yield (unpacked_block := decompressor.decompress(remainder, MIB))
            remainder = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
            if not remainder and len(unpacked_block) < MIB:
                break
    if is_begun and not decompressor.eof:
        raise OSError("it ends in the middle")


def _zstd(file: BinaryIO) -> Iterator[bytes]:
    try:
        import pyarrow as pa
    except ImportError:
        raise LogFileError("zstd needs the extra: pip install 'crosswalk-llm[batch]'") from None
    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
        while block := stream.read(MIB):
            yield block


def _bzip2(file: BinaryIO) -> Iterator[bytes]:
    with bz2.BZ2File(file) as stream:
        while block := stream.read(MIB):
            yield block


def _xz(file: BinaryIO) -> Iterator[bytes]:
    with lzma.LZMAFile(file) as stream:
        while block := stream.read(MIB):
            yield block


_UNPACKERS: Final[dict[str, Callable[[BinaryIO], Iterator[bytes]]]] = {
    "gzip": _gzip,
    "zstd": _zstd,
    "bzip2": _bzip2,
    "xz": _xz,
}


def cause_of(error: Exception) -> str:
    """Return the message of *error* on one line."""
    return getattr(error, "strerror", None) or " ".join(str(error).split())
