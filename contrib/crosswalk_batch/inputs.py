"""What a job reads: files cut into pieces, the same ones every time, each small enough to be held.

A piece knows where its records are; who maps it reads them. So what goes from process to process is small, except where the
place of a record can only be found by unpacking all before it.
"""

from __future__ import annotations

import base64
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import attrs
import ijson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswalk.commands import UsageError
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.testing.captures import capture_files, load_capture
from crosswalk_batch.batches import INPUT
from crosswalk_batch.columns import BYTES, TEXT

__all__ = ["Input", "InputError", "Piece", "find_inputs", "pieces", "records"]

MIB: Final = 1024 * 1024
LONGEST: Final = 128 * MIB
"""A longer record is a reject without its bytes, so that memory stays bounded: no answer may have a line of half of that."""
_MOST_FILES: Final = 5000
_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = {".jsonl", ".ndjson", ".log"}
_PACKED: Final = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MANIFEST: Final = "MANIFEST.jsonl"
_BESIDE: Final = ("provider", "status", "server", "record_id")
"""Columns of Parquet that mean the same as in a batch of records."""
_HAR_BUFFER: Final = 4 * MIB
"""How much of a HAR file is parsed at once: a text longer than that is put together anew each time."""
_HAR_TYPES: Final = ("json", "event-stream", "eventstream")
"""What stands in the content type of an answer of a model; the pictures and scripts of a page are no records."""


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


@attrs.frozen(eq=False)
class Piece:
    """A part of an input, mapped as one.

    Attributes:
        number: the piece's own number in the job, from 0.
        input: where it is from.
        first: the number of its first record, from 1; of lines also empty ones count.
        start: the first byte, or the first file of captures.
        size: how many bytes are read of it, of captures how many files, of other rows how many.
        weight: how many bytes of the input are done with it.
        data: the records themselves, where they cannot be found by their place; ``None`` where they can.
        log: the provider of the log that it is of; ``None`` when unknown.
    """

    number: int
    input: Input
    first: int
    start: int
    size: int
    weight: int
    data: bytes | pa.RecordBatch | None = None
    log: str | None = None


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
            raise UsageError(f"{text}: {getattr(error, 'strerror', None) or error}") from None
        if not inside:
            raise UsageError(f"{text}: nothing in it that could be read")
        found += inside
    return found


def _of_file(path: Path) -> Input:
    return _stated(str(path), _kind(path) or "captures", () if _kind(path) else (path.name,))


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


# --------------------------------------------------------------------------------------------- cutting


def pieces(inputs: Iterable[Input], *, size: int, column: str = "body") -> Iterator[Piece | InputError]:
    """*inputs* cut into pieces of about *size* bytes, the same ones every time; of one that is damaged what comes before,
    and why the rest does not.

    Args:
        inputs: what to cut.
        size: how many bytes a piece has, unpacked; a record is never cut.
        column: the column of Parquet with the answers.
    """
    number = 0
    for each in inputs:
        try:
            for piece in _CUTTERS[each.kind](each, size, column):
                yield attrs.evolve(piece, number=number)
                number += 1
            each.check()
        except InputError as error:
            yield error
        except (OSError, pa.ArrowException) as error:
            yield InputError(f"{each.path}: {_cause(error)}")


def _too_long(what: str) -> str:
    return f"the {what} is longer than {LONGEST} bytes; it stays where it is"


def _cause(error: Exception) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split())


def _lines(each: Input, size: int, column: str) -> Iterator[Piece]:
    with _opened(each) as (file, position, fault):
        first, start, before = 1, 0, 0
        most = size + LONGEST + MIB  # of a record that is too long so much that it can be seen
        while block := file.read(size):
            rows, length, blocks = block.count(b"\n"), len(block), [block]
            while not block.endswith(b"\n") and (block := file.readline(MIB)):
                rows, length = rows + block.endswith(b"\n"), length + len(block)
                if length <= most:
                    blocks.append(block)
            data = None if each.kind == "lines" else b"".join(blocks)
            yield Piece(0, each, first, start, min(length, most), position() - before, data)
            first, start, before = first + rows, start + length, position()
        if fault():
            raise InputError(f"{each.path}: line {first}: {fault()}")


_Opened: TypeAlias = tuple[BinaryIO, Callable[[], int], Callable[[], str]]


@contextmanager
def _opened(each: Input) -> Iterator[_Opened]:
    """The lines of a file, unpacked; how far the file itself is read; and what is wrong with it, once its end is reached."""
    with open(each.path, "rb") as file:
        if each.kind == "lines":
            yield file, file.tell, str
        else:
            unpacked = _Unpacked(_unzipped(file) if each.kind == "gzip" else _unpacked(file))
            # Arrow closes what it has unpacked to the end.
            position = lambda: each.size if file.closed else file.tell()  # noqa: E731
            yield io.BufferedReader(unpacked, MIB), position, lambda: unpacked.fault


class _Unpacked(io.RawIOBase):
    """What blocks add up to. Where they break off it ends, and says why: what came before is not lost."""

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
            self.fault = f"the file is damaged: {_cause(error)}"
            return 0
        taken = min(len(buffer), len(self._rest))
        buffer[:taken], self._rest = self._rest[:taken], self._rest[taken:]
        return taken


def _unzipped(file: BinaryIO) -> Iterator[bytes]:
    unpack = zlib.decompressobj(31)
    is_begun = False
    while rest := file.read(MIB // 4):
        while True:
            if unpack.eof:  # perhaps another one after it; some tools fill up with zeros
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                unpack = zlib.decompressobj(31)
            is_begun = True
            yield (out := unpack.decompress(rest, MIB))
            rest = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if not rest and len(out) < MIB:
                break
    if is_begun and not unpack.eof:
        raise OSError("it ends in the middle")


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
        while block := stream.read(MIB):
            yield block


def _captures(each: Input, size: int, column: str) -> Iterator[Piece]:
    folder = _folder(each)
    start, weight = 0, 0
    for place, name in enumerate(each.files):
        weight += os.path.getsize(folder / name)
        if weight >= size or place + 1 - start >= _MOST_FILES or place + 1 == len(each.files):
            yield Piece(0, each, start + 1, start, place + 1 - start, weight)
            start, weight = place + 1, 0


def _folder(each: Input) -> Path:
    path = Path(each.path)
    return path if path.is_dir() else path.parent


def _parquet(each: Input, size: int, column: str) -> Iterator[Piece]:
    with pq.ParquetFile(each.path) as file:
        known = file.schema_arrow
        if column not in known.names:
            names = ", ".join(known.names[:20])
            raise InputError(f"{each.path}: no column {column!r} in it (--column NAME says which): {names}")
        if not any(check(known.field(column).type) for check in _BYTES_LIKE):
            raise InputError(
                f"{each.path}: column {column!r} holds no bytes and no text, but {known.field(column).type}"
            )
        beside = [name for name in _BESIDE if name in known.names and name != column]
        rows = max(1, file.metadata.num_rows)
        at_once = max(1, min(size * rows // max(1, _weight(file.metadata)), 50_000))
        first = 1
        for batch in file.iter_batches(at_once, columns=[column, *beside], use_threads=False):
            bodies = batch.column(column)
            is_long = pc.greater(pc.binary_length(bodies), LONGEST)
            found = pa.RecordBatch.from_arrays(
                [
                    pc.if_else(is_long, pa.scalar(None, bodies.type), bodies),
                    pc.if_else(is_long, _too_long("answer"), pa.scalar(None, pa.string())),
                    *(batch.column(name) for name in beside),
                ],
                ["body", "fault", *beside],
            )
            yield Piece(0, each, first, 0, batch.num_rows, each.size * batch.num_rows // rows, found)
            first += batch.num_rows


_BYTES_LIKE: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


def _weight(metadata: Any) -> int:
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))


def _har(each: Input, size: int, column: str) -> Iterator[Piece]:
    rows: list[dict[str, Any]] = []
    first, weight, before = 1, 0, 0
    fault = None
    with open(each.path, "rb") as file:
        file.seek(len(_BOM) if file.read(len(_BOM)) == _BOM else 0)
        try:
            for row in _har_rows(each, file):
                rows.append(row)
                weight += len(row["body"] or b"")
                if weight >= size:
                    yield _of_rows(each, rows, first, file.tell() - before)
                    first, weight, before, rows = first + len(rows), 0, file.tell(), []
        except InputError as error:
            fault = error
    if rows:  # what came before a damage is not lost
        yield _of_rows(each, rows, first, each.size - before)
    if fault is not None:
        raise fault


def _of_rows(each: Input, rows: list[dict[str, Any]], first: int, weight: int) -> Piece:
    return Piece(0, each, first, 0, len(rows), weight, pa.RecordBatch.from_pylist(rows, INPUT))


def _har_rows(each: Input, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """The answers among the entries of a HAR file, which is never held as a whole."""
    begin, number = file.tell(), 0
    try:
        for number, entry in enumerate(ijson.items(file, "log.entries.item", buf_size=_HAR_BUFFER), 1):
            row = {"source": each.path, "number": number, "body": None, "fault": None}
            try:
                answer = entry["response"]
                if any(word in str(answer["content"].get("mimeType", "")) for word in _HAR_TYPES):
                    yield row | _har_answer(answer, answer["content"])
            except (KeyError, TypeError, AttributeError):
                yield row | {"fault": "no answer: it is no entry of a HAR file"}
        file.seek(begin)
        is_har = number > 0 or next(ijson.items(file, "log.entries"), None) == []
    except ijson.JSONError:
        is_har = False
    if not is_har:
        what = f"the file is damaged after entry {number}" if number else "it is no HAR file"
        raise InputError(f"{each.path}: {what}")


def _har_answer(answer: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    status, text = answer.get("status"), content.get("text")
    row = {"status": status if type(status) is int and 100 <= status <= 599 else None}
    if type(text) is not str:
        return row | {"fault": "no answer: the browser has not kept it"}
    if len(text) > LONGEST:
        return row | {"fault": _too_long("answer")}
    if content.get("encoding") != "base64":
        return row | {"body": text.encode(errors="surrogatepass")}
    try:
        return row | {"body": base64.b64decode(text, validate=True)}
    except ValueError:
        return row | {"fault": "no answer: not base64"}


_CUTTERS: Final[dict[str, Callable[[Input, int, str], Iterator[Piece]]]] = {
    "lines": _lines,
    "gzip": _lines,
    "zstd": _lines,
    "captures": _captures,
    "parquet": _parquet,
    "har": _har,
}


# -------------------------------------------------------------------------------------------- reading


def records(piece: Piece) -> pa.RecordBatch:
    """The records of *piece*, as :func:`crosswalk_batch.normalize_batch` takes them.

    Raises:
        InputError: the file has changed since it was cut, or cannot be read.
    """
    data = piece.data
    try:
        if piece.input.kind == "captures":
            return _loaded(piece)
        if data is None:
            piece.input.check()
            with open(piece.input.path, "rb") as file:
                file.seek(piece.start)
                data = file.read(piece.size)
            piece.input.check()
    except OSError as error:
        raise InputError(f"{piece.input.path}: {_cause(error)}") from None
    if isinstance(data, bytes):
        return _split(piece, data)
    if "source" in data.schema.names:
        return data
    numbers = pa.array(range(piece.first, piece.first + data.num_rows), pa.int64())
    sources = pa.array([piece.input.path] * data.num_rows, TEXT)
    return data.append_column("source", sources).append_column("number", numbers)


def _split(piece: Piece, data: bytes) -> pa.RecordBatch:
    lines = data.split(b"\n")
    if piece.start == 0:
        lines[0] = lines[0].removeprefix(_BOM)
    rows = [(piece.first + place, line) for place, line in enumerate(lines) if line and not line.isspace()]
    faults = [_too_long("line") if len(line) > LONGEST else None for _, line in rows]
    kept = [
        None if fault else line.removesuffix(b"\r") for (_, line), fault in zip(rows, faults, strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([piece.input.path] * len(rows), TEXT),
            pa.array([number for number, _ in rows], pa.int64()),
            pa.array(kept, BYTES),
            pa.array(faults, TEXT),
        ],
        ["source", "number", "line", "fault"],
    )


def _loaded(piece: Piece) -> pa.RecordBatch:
    folder = _folder(piece.input)
    rows = []
    for place in range(piece.start, piece.start + piece.size):
        file = folder / piece.input.files[place]
        row = {"source": str(file), "number": 1, "fault": None}
        if os.path.getsize(file) > LONGEST:
            rows.append(row | {"fault": _too_long("answer")})
            continue
        try:
            capture = load_capture(file)
            rows.append(row | {"body": capture.body, "status": capture.status, "server": capture.server})
        except ConfigurationError as error:
            rows.append(row | {"fault": str(error)})
    return pa.RecordBatch.from_pylist(rows, INPUT)
