"""Inputs cut into pieces, always the same ones, each small enough for memory, and the records of a piece.

A piece says where its records are, and the process that maps it reads them, so little data passes between processes, and a
receipt can name them. These are ranges of a log of lines, row groups of Parquet, and whole files of all other kinds, which
:func:`crosswalk.records.record_lines` reads block by block. A file of those that is so large that it would keep one process
busy for long is read in ranges of frames, if it was packed in many, as by bgzip or pzstd. Else one process reads it for all
and passes its records on.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import groupby, islice
from typing import Any, BinaryIO, Final

import attrs
import ijson
import pyarrow as pa
import pyarrow.parquet as pq

from crosswalk.errors import ConfigurationError
from crosswalk.records import (
    Layout,
    Line,
    LogFileError,
    Unpacked,
    is_session,
    layout_of_lines,
    log_kind,
    record_lines,
)
from crosswalk.testing.captures import load_capture
from crosswalk.types.json import dump_json
from crosswalk_batch.batches import INPUT, LONGEST, PLACE, Options, too_long, typed
from crosswalk_batch.columns import BYTES, TEXT
from crosswalk_batch.inputs import BOM, MIB, Input, local_path, open_file

LARGE: Final = 256 * MIB
"""The bytes of a file above which it is not left to one process."""
LARGEST_FRAME: Final = LARGE // 8
"""The bytes of packed frames that one process reads into memory."""
_FIRST_LINES: Final = 40
_FIRST_BYTES: Final = 4 * MIB
"""The first lines of a log, which decide its layout, and their maximum bytes."""


@attrs.frozen(eq=False)
class InputPiece:
    """A part of an input that is mapped at once.

    Attributes:
        input: the input.
        number: its number in the input, from 0.
        first: the number of its first record, from 1. Empty lines count too.
        rows: how many records and empty lines it has, or ``None`` if all of the input.
        start: the first byte, or the first row group.
        size: the number of bytes or row groups, or 0 for the whole file.
        weight: the bytes of input that it covers.
        layout: the layout of the first lines of a log, for lines that fit none by themselves, or ``None``.
        is_last: whether the input ends with it.
        has_end: whether its last line is complete.
        is_begun: whether its first line begins in the piece before it, which it belongs to.
        is_passed: whether its records are passed on, because nobody can find them by position.
        data: those records, or ``None``.
        fault: why the input ends before its end, or ``""``.
    """

    input: Input
    number: int = 0
    first: int = 1
    rows: int | None = None
    start: int = 0
    size: int = 0
    weight: int = 0
    layout: str | None = None
    is_last: bool = False
    has_end: bool = True
    is_begun: bool = False
    is_passed: bool = False
    data: pa.RecordBatch | None = None
    fault: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """The piece's name in a receipt: the input's key and the piece's number."""
        return *self.input.key, self.number

    @property
    def is_range(self) -> bool:
        """Whether it is a range of a log of lines, which is the same if the log grows."""
        return self.input.kind == "lines" and self.size > 0


# ----------------------------------------------------------------------------------------- cutting


def cut(each: Input, size: int, first: int = 1, start: int = 0) -> Iterator[InputPiece]:
    """Cut an input into pieces of about *size* bytes, always the same ones. It has one piece at least.

    Args:
        each: the input.
        size: the bytes of a piece. A record, a packed file and a row group are never cut.
        first: the number of the first record.
        start: the first byte of a log of lines.

    Raises:
        InputError: the input has changed.
        OSError: it cannot be read.
    """
    number, piece = 0, InputPiece(each, weight=each.size)
    for number, following in enumerate(_pieces(each, size, first, start)):
        if number:
            yield piece
        piece = attrs.evolve(following, number=number)
    each.check()
    yield attrs.evolve(piece, is_last=True)


def _pieces(each: Input, size: int, first: int, start: int) -> Iterator[InputPiece]:
    if each.kind == "parquet":
        yield from _row_groups(each)
    elif each.kind == "lines" and (head := _head(each)) is not None:
        yield from _ranges(each, size, first, start, _layout_of(head))
    elif each.kind in _FRAMES and each.size > LARGE and len(frames := _frames(each, size)) > 1:
        yield from _frame_ranges(each, frames)
    elif each.kind != "capture" and each.size > LARGE:
        yield from _passed(each, size)


def _head(each: Input) -> list[bytes] | None:
    """Return the first lines of a log, or ``None`` if its lines are no exchanges, as those of a session."""
    with open_file(each.path) as opened:
        file = opened if each.kind == "lines" else _unpacked(opened, each.kind)
        is_document = log_kind(file) != "lines"
        lines = [] if is_document else file.read(_FIRST_BYTES).removeprefix(BOM).splitlines()
    head = [line for line in lines[:_FIRST_LINES] if line.strip()]
    return None if is_document or is_session(head) else head


def _layout_of(head: Iterable[bytes]) -> str | None:
    layout = layout_of_lines(head)
    return None if layout is None else layout.name


def _ranges(each: Input, size: int, first: int, start: int, layout: str | None) -> Iterator[InputPiece]:
    with open_file(each.path) as file:
        file.seek(start)
        while block := file.read(min(size, each.size - start)):
            rows, length, end = block.count(b"\n"), len(block), block[-1:]
            while end != b"\n" and (block := file.readline(min(MIB, each.size - start - length))):
                rows, length, end = rows + block.endswith(b"\n"), length + len(block), block[-1:]
            has_end = end == b"\n"
            rows += not has_end
            yield InputPiece(each, 0, first, rows, start, length, length, layout, has_end=has_end)
            first, start = first + rows, start + length


def holds_records(each: Input, size: int) -> bool:
    """Whether there is a record in the first *size* bytes of a log. A mere heading of CSV has no record."""
    with open_file(each.path) as file, suppress(LogFileError):
        return next(iter(record_lines(io.BytesIO(file.read(min(size, MIB))))), None) is not None
    return size > MIB  # of a longer one, nobody knows here


def _unpacked(file: BinaryIO, kind: str) -> io.BufferedReader:
    return io.BufferedReader(Unpacked(file, kind), MIB)


def _frames(each: Input, size: int) -> list[tuple[int, int]]:
    """Return the start and the length of ranges of whole frames, each of about *size* bytes when it is unpacked.

    There is one range or none if the file cannot be read from its middle: its lines are none of a log, or it has one frame,
    or one that is too large for memory.
    """
    begin, end = 0, 0
    ranges: list[tuple[int, int]] = []
    if _head(each) is None:
        return ranges
    with open_file(each.path) as file:
        while end < each.size:
            following = _FRAMES[each.kind](file, end)
            end = each.size if following is None else min(following, each.size)
            if end - begin >= size // _RATIO or end == each.size:
                ranges.append((begin, end - begin))
                begin = end
    return ranges if max(length for _, length in ranges) <= LARGEST_FRAME else []


_RATIO: Final = 8
"""How many times smaller a packed log is, about."""


def _gzip_block(file: BinaryIO, start: int) -> int | None:
    """Return the end of the block of bgzip at *start*, or ``None`` if it is none. See the SAM specification, 4.1."""
    file.seek(start)
    head = file.read(18)
    is_block = head.startswith(b"\x1f\x8b\x08\x04") and head[12:16] == b"BC\x02\0"
    return start + int.from_bytes(head[16:18], "little") + 1 if is_block else None


def _zstd_frame(file: BinaryIO, start: int) -> int | None:
    """Return the end of the frame at *start*, or ``None`` if it is none or has no end. See RFC 8878, 3.1."""
    file.seek(start)
    head = file.read(8)
    if head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:  # to be skipped
        return start + 8 + int.from_bytes(head[4:8], "little")
    if not head.startswith(b"\x28\xb5\x2f\xfd") or len(head) < 8:
        return None
    is_single, flags = head[4] >> 5 & 1, head[4]
    end = start + 6 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
    is_last = 0
    while not is_last:
        file.seek(end)
        if len(block := file.read(3)) < 3:
            return None
        header = int.from_bytes(block, "little")
        is_last, end = header & 1, end + 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    return end + (4 if flags & 4 else 0)


_FRAMES: Final = {"gzip": _gzip_block, "zstd": _zstd_frame}
"""Packed files that may be read from their middle, and how to find where a frame ends."""


def _frame_ranges(each: Input, frames: Iterable[tuple[int, int]]) -> Iterator[InputPiece]:
    """Yield a piece for each range of frames: the lines that begin in it. Only their number is found out here."""
    first, is_inside, layout = 1, False, _layout_of(_head(each) or ())
    with open_file(each.path) as file:
        for start, length in frames:
            file.seek(start)
            unpacked = _unpacked(io.BytesIO(file.read(length)), each.kind)
            rows, has_end = 0, not is_inside
            while block := unpacked.read(MIB):
                rows, has_end = rows + block.count(b"\n"), block.endswith(b"\n")
            rows += (not has_end) - is_inside
            fault = unpacked.raw.fault  # type: ignore[attr-defined]
            yield InputPiece(
                each, 0, first, rows, start, length, length, layout,
                has_end=has_end, is_begun=is_inside, fault=fault and f"after record {first + rows - 1}: {fault}",
            )  # fmt: skip
            if fault:  # nobody knows the numbers of the lines after it
                return
            first, is_inside = first + rows, not has_end


def _framed(file: BinaryIO, piece: InputPiece) -> Iterator[Line]:
    """Yield the lines that begin in a range of frames."""
    file.seek(piece.start)
    stream = _unpacked(io.BytesIO(file.read(piece.size)), piece.input.kind)
    if piece.is_begun:
        _whole_line(stream)
    for number in range(piece.first, piece.first + (piece.rows or 0)):
        line, has_end = _whole_line(stream)
        if not has_end:  # it goes on in the frames after these
            line += _whole_line(_unpacked(file, piece.input.kind))[0]
        line = line.removeprefix(BOM) if number == 1 else line
        if line.strip():
            yield Line(number, len(line), line)


def _whole_line(file: BinaryIO) -> tuple[bytes, bool]:
    """Return the next line, of one that is too long so much that it can be seen, and whether it has its end."""
    line = rest = file.readline(LONGEST + MIB)
    while len(rest) >= MIB and not rest.endswith(b"\n"):
        rest = file.readline(MIB)
    return line, rest.endswith(b"\n")


def _row_groups(each: Input) -> Iterator[InputPiece]:
    first = 1
    try:
        with open_file(each.path) as opened, pq.ParquetFile(opened) as file:
            share = each.size / max(1, file.metadata.num_rows)
            for number in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(number).num_rows
                yield InputPiece(each, 0, first, rows, number, 1, round(share * rows))
                first += rows
    except pa.ArrowException:
        return  # whoever reads it reports the error


def _passed(each: Input, size: int) -> Iterator[InputPiece]:
    try:
        for data, layout, weight in _blocks_of(InputPiece(each), size):
            first, last = data["number"][0].as_py(), data["number"][-1].as_py()
            piece = InputPiece(
                each, 0, first, last + 1 - first, 0, 0, weight, layout, is_passed=True, data=data
            )
            yield piece
    except LogFileError as error:
        nothing = pa.RecordBatch.from_pylist([], INPUT)
        yield InputPiece(each, is_passed=True, data=nothing, fault=str(error))


# ----------------------------------------------------------------------------------------- reading


def grouped(pieces: Iterable[InputPiece]) -> Iterator[list[InputPiece]]:
    """Yield the pieces that are read together: captures that follow each other, and any other piece alone."""
    for is_capture, some in groupby(pieces, lambda piece: piece.input.kind == "capture"):
        group = [*some]
        yield from [group] if is_capture else ([piece] for piece in group)


def blocks(
    pieces: Sequence[InputPiece], size: int, column: str, options: Options
) -> Iterator[tuple[pa.RecordBatch, str | None]]:
    """Yield the records of *pieces*, one of :func:`grouped`, and the layout of their log.

    Args:
        pieces: the pieces.
        size: about how many bytes are read at once.
        column: the column of Parquet with the answers.
        options: how records will be mapped.

    Raises:
        InputError: a file has changed since it was cut.
        LogFileError: it is damaged. What comes before was yielded.
    """
    piece = pieces[0]
    for each in pieces:
        each.input.check()
    try:
        if piece.data is not None:
            yield piece.data, piece.layout
        elif piece.input.kind == "capture":
            yield pa.RecordBatch.from_pylist([_capture(each.input) for each in pieces], INPUT), None
        elif piece.input.kind == "parquet":
            yield from ((batch, None) for batch in _rows(piece, size, column, options))
        elif piece.input.kind == "lines" and piece.size:
            yield _range(piece, size), piece.layout
        else:
            yield from ((data, layout) for data, layout, _ in _blocks_of(piece, size))
        if piece.fault:
            raise LogFileError(piece.fault)
    except (OSError, pa.ArrowException) as error:
        raise LogFileError(getattr(error, "strerror", None) or " ".join(str(error).split())) from None
    finally:
        for each in pieces:
            each.input.check()


def _capture(each: Input) -> dict[str, Any]:
    row = {"source": each.name, "number": 1}
    if each.size > LONGEST:
        return row | {"fault": too_long("answer")}
    try:
        capture = load_capture(str(local_path(each.path)))
    except ConfigurationError as error:
        return row | {"fault": str(error)}
    return row | {"body": capture.body, "status": capture.status, "server": capture.server}


def _range(piece: InputPiece, size: int) -> pa.RecordBatch:
    with open_file(piece.input.path) as file:
        file.seek(piece.start)
        # Of a record that is too long, so much that it can be seen.
        data = file.read(min(piece.size, size + LONGEST + MIB))
    lines = data.split(b"\n")
    if piece.start == 0:
        lines[0] = lines[0].removeprefix(BOM)
    numbered = enumerate(lines, piece.first)
    return _batch_of(
        piece.input, [(number, line) for number, line in numbered if line and not line.isspace()]
    )


def _batch_of(each: Input, lines: Sequence[tuple[int, bytes | None]]) -> pa.RecordBatch:
    """Return numbered lines as a batch."""
    known = [line and line.removesuffix(b"\r") for _, line in lines]
    faults = [too_long("line") if line is None else None for line in known]
    columns = (
        pa.array([each.name] * len(lines), TEXT),
        pa.array([number for number, _ in lines], pa.int64()),
        pa.array(known, BYTES),
        pa.array(faults, TEXT),
    )
    return pa.RecordBatch.from_arrays([*columns], ["source", "number", "line", "fault"])


def _blocks_of(piece: InputPiece, size: int) -> Iterator[tuple[pa.RecordBatch, str | None, int]]:
    """Yield the records of a whole file or of frames in it, their layout, and the bytes that they take."""
    each, layout = piece.input, piece.layout
    before, last, is_first = 0, 0, not piece.size
    with open_file(each.path) as file:
        if piece.size:
            lines = _framed(file, piece)
        else:
            lines = _har_lines(file) if each.kind == "har" else record_lines(file, local_path(each.path))
        damage: LogFileError | None = None
        while damage is None:
            some: list[tuple[int, bytes | None]] = []
            length = 0
            try:
                for line in lines:
                    some.append((line.number, line.data and line.data.removesuffix(b"\n")))
                    length += len(line.data or b"")
                    if length >= size:
                        break
            except LogFileError as error:
                damage = error
            if not some:
                break
            if is_first:
                result = layout_of_lines(line for _, line in islice(some, _FIRST_LINES) if line)
                layout, is_first = None if result is None else result.name, False
            last = some[-1][0]
            position = each.size if file.closed else file.tell()  # Arrow closes a file at its end
            yield _batch_of(each, some), layout, position - before
            before = position
    if damage is not None:
        raise LogFileError(f"after record {last}: {damage}" if last else str(damage))


_ANSWERS: Final = ("json", "event-stream", "eventstream")
"""Parts of the content types of a model's answer. Images and scripts of a page are not records."""


def _har_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the answers in a HAR file, which is never in memory as a whole, as lines."""
    number = 0
    begin = file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)
    try:
        for number, entry in enumerate(ijson.items(file, "log.entries.item", buf_size=4 * MIB), 1):
            try:
                kind = str(entry["response"]["content"].get("mimeType", ""))
            except (KeyError, TypeError, AttributeError):
                kind = "json"  # whoever reads it says what is wrong
            if any(word in kind for word in _ANSWERS):
                data = dump_json(entry, default=float)
                yield Line(number, len(data), data)
        file.seek(begin)
        is_har = number > 0 or next(ijson.items(file, "log.entries"), None) == []
    except ijson.JSONError:
        is_har = False
    if not is_har:
        raise LogFileError("the HAR file is damaged" if number else "not a HAR file")


def _rows(piece: InputPiece, size: int, column: str, options: Options) -> Iterator[pa.RecordBatch]:
    """Yield the rows in the row groups of *piece*, or as lines of a log if *options* name fields in them."""
    each, layout = piece.input, options.layout
    as_lines = layout is not None or bool(options.keep)
    with open_file(each.path) as opened, pq.ParquetFile(opened) as file:
        names = file.schema_arrow.names
        if not as_lines and column not in names:
            some = ", ".join(names[:20])
            raise LogFileError(f"no column {column!r} in it (name it with --column): {some}")
        if not as_lines and not _is_bytes_like(kind := file.schema_arrow.field(column).type):
            raise LogFileError(f"column {column!r} holds no bytes and no text, but {kind}")
        known = (
            _BESIDE if {*PLACE.names} <= {*names} else _BESIDE - {*PLACE.names[:2]}
        )  # rejects keep their place
        wanted = [column, *(name for name in names if name in known and name != column)]
        groups = list(range(piece.start, piece.start + piece.size))
        length = sum(file.metadata.row_group(group).total_byte_size for group in groups)
        at_once = max(1, min(size * (piece.rows or 0) // max(1, length), 50_000))
        first = piece.first
        for batch in file.iter_batches(at_once, groups, None if as_lines else wanted, use_threads=False):
            data = _as_lines(batch, column, layout) if as_lines else batch.rename_columns({column: "body"})
            if "number" not in data.schema.names:
                sources = pa.array([each.name] * batch.num_rows, TEXT)
                numbers = pa.array(range(first, first + batch.num_rows), pa.int64())
                data = data.append_column("source", sources).append_column("number", numbers)
            try:
                columns = [typed(data, INPUT.field(name)) for name in data.schema.names]
            except ValueError as error:
                raise LogFileError(str(error)) from None
            yield pa.RecordBatch.from_arrays(columns, data.schema.names)
            first += batch.num_rows


def _is_bytes_like(kind: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    return bool(is_text or is_bytes)


_BESIDE: Final = {*INPUT.names} - {"body", "fault"}
"""Columns of Parquet with the same meaning as in a batch of records."""


def _as_lines(batch: pa.RecordBatch, column: str, layout: Layout | None) -> pa.RecordBatch:
    """Return rows of Parquet as lines of a log, for paths that begin with a column's name."""
    field = None if layout is None else layout.fields.get("response")
    answers = [column] if field is None else [path[0] for path in field.paths]
    lines: list[bytes | None] = []
    for row in batch.to_pylist():
        try:
            row |= {name: row[name].decode() for name in answers if type(row.get(name)) is bytes}
            if field is None and column in row:
                row["body"] = row.pop(column)
            lines.append(dump_json(row, default=_plain))
        except UnicodeDecodeError:
            lines.append(None)
    fault = "the answer is not text; without --layout, --field and --keep it may be"
    faults = [fault if line is None else None for line in lines]
    return pa.RecordBatch.from_arrays([pa.array(lines, BYTES), pa.array(faults, TEXT)], ["line", "fault"])


def _plain(value: Any) -> str:
    """Return a nested value of a column as text."""
    return str(value) if isinstance(value, Decimal) else bytes(value).decode(errors="replace")
