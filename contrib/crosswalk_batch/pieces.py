"""The inputs of a job, cut into pieces, always the same ones, each small enough for memory."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import attrs
import ijson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswalk.errors import ConfigurationError
from crosswalk.records import (
    PACKED,
    LogFileError,
    Unpacked,
    is_session,
    layout_of_lines,
    log_kind,
    record_lines,
)
from crosswalk.testing.captures import load_capture
from crosswalk.types.json import dump_json
from crosswalk_batch.batches import INPUT, Options
from crosswalk_batch.columns import BYTES, TEXT
from crosswalk_batch.inputs import BOM, LONGEST, MIB, Input, InputError, local_path, open_file, too_long

# --------------------------------------------------------------------------- decompression
# Decompression of gzip and zstd files. A damaged file yields everything before the damage.


_Opened: TypeAlias = tuple[BinaryIO, Callable[[], int], Callable[[], str]]


@contextmanager
def opened(each: Input) -> Iterator[_Opened]:
    """Open a file of lines. Yields the decompressed stream, a function for the position in the file, and one for its fault.

    The fault is ``""`` for an intact file, and is known when the end is reached.
    """
    with open_file(each.path) as file:
        if each.kind not in PACKED:
            yield file, file.tell, str
        else:
            unpacked = Unpacked(file, each.kind)
            # Arrow closes the file at its end.
            position = lambda: each.size if file.closed else file.tell()  # noqa: E731
            yield io.BufferedReader(unpacked, MIB), position, lambda: unpacked.fault


def cause_of(error: Exception) -> str:
    """Return the message of *error* on one line."""
    return getattr(error, "strerror", None) or " ".join(str(error).split())


# ------------------------------------------------------------------------------------- har
# The answers in a HAR file, which browser tools write. The file is streamed.


_BUFFER: Final = 4 * MIB
"""Bytes to parse at once. A longer text is concatenated again in each step."""
_TYPES: Final = ("json", "event-stream", "eventstream")
"""Parts of the content types of a model's answer. Images and scripts of a page are not records."""


def har_rows(path: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the answers in a HAR file as rows."""
    begin, number = file.tell(), 0
    try:
        for number, entry in enumerate(ijson.items(file, "log.entries.item", buf_size=_BUFFER), 1):
            try:
                content = entry["response"]["content"]
                if any(word in str(content.get("mimeType", "")) for word in _TYPES):
                    yield {"source": path, "number": number, **_row(entry, content)}
            except (KeyError, TypeError, AttributeError):
                yield {"source": path, "number": number, "fault": "no answer: not an entry of a HAR file"}
        file.seek(begin)
        is_har = number > 0 or next(ijson.items(file, "log.entries"), None) == []
    except ijson.JSONError:
        is_har = False
    if not is_har:
        what = f"the file is damaged after entry {number}" if number else "not a HAR file"
        raise InputError(f"{path}: {what}")


def _row(entry: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of an entry: the line that the layout ``har`` reads."""
    text = content.get("text")
    if type(text) is not str:
        return {"fault": "no answer: the browser has not kept it"}
    if len(text) > LONGEST:
        return {"fault": too_long("answer")}
    return {"line": dump_json(entry, default=float)}


# ---------------------------------------------------------------------------------- pieces
# Cutting of inputs into pieces, always the same ones, each small enough for memory.
#
# A piece stores the position of its records, and the process that maps it reads them, so little data passes between
# processes. That process reads a packed file, or some row groups of Parquet, block by block. A packed file that would
# keep
# one process busy for long is the exception. It is unpacked once, and its blocks are passed on.


_MOST_FILES: Final = 5000
MOST_PACKED: Final = 256 * MIB
"""The maximum bytes of a packed file that is one piece."""
_HEAD_LINES: Final = 40
_HEAD: Final = 4 * MIB
"""The first lines of a log, which decide its layout, and their maximum bytes."""
_BESIDE: Final = tuple(name for name in INPUT.names if name not in ("body", "fault"))
"""Columns of Parquet with the same meaning as in a batch of records."""


@attrs.frozen(eq=False)
class InputPiece:
    """A part of an input that is mapped at once.

    Attributes:
        number: its number in the job, from 0.
        input: the input.
        first: the number of its first record, from 1. Empty lines count too.
        start: the first byte, the first file of captures, or the first row group of Parquet.
        size: its size in bytes, in files for captures, in row groups for Parquet, and in rows for other inputs.
        weight: the bytes of input that it covers.
        data: the records, if they cannot be found by position, or ``None``.
        others: the pieces of small inputs that follow and share a part with this one.
        layout: the layout of the first lines of a log, for lines that fit none by themselves, or ``None``.
    """

    number: int
    input: Input
    first: int
    start: int
    size: int
    weight: int
    data: bytes | pa.RecordBatch | None = None
    others: tuple[InputPiece, ...] = ()
    layout: str | None = None


def pieces(
    inputs: Iterable[Input],
    *,
    size: int,
    column: str = "body",
    options: Options | None = None,
    number: int = 0,
) -> Iterator[InputPiece | InputError]:
    """Cut *inputs* into pieces of about *size* bytes, always the same ones. Small consecutive inputs share a piece.

    Yields the part of a damaged input before the damage, and then the error.

    Args:
        inputs: the inputs.
        size: the bytes of a piece. A record, a packed file and a row group are never cut.
        column: the column of Parquet with the answers.
        options: how records will be mapped. The further columns of Parquet that they use are read.
        number: the number of the first piece.
    """
    group: list[InputPiece] = []
    for piece in _each_piece(inputs, size, column, _further(options or Options())):
        if group and (isinstance(piece, InputError) or not _fits(group, piece, size)):
            yield _shared(group, number)
            number, group = number + 1, []
        if isinstance(piece, InputError):
            yield piece
        else:
            group.append(piece)
    if group:
        yield _shared(group, number)


def _fits(group: list[InputPiece], piece: InputPiece, size: int) -> bool:
    """Whether *piece* belongs to another input than *group*, and is small enough to share a part with it."""
    return piece.input is not group[-1].input and sum(map(bytes_of, (*group, piece))) <= size


def _each_piece(
    inputs: Iterable[Input], size: int, column: str, further: tuple[str, ...]
) -> Iterator[InputPiece | InputError]:
    for each in inputs:
        yield from _until_damage(each, _CUTTERS[each.kind], size, column, further)


def _until_damage(each: Input, cut: _Cutter, *how: Any) -> Iterator[InputPiece | InputError]:
    try:
        yield from cut(each, *how)
        each.check()
    except InputError as error:
        yield error
    except (OSError, pa.ArrowException) as error:
        yield InputError(f"{each.name}: {cause_of(error)}")


def blocks(
    piece: InputPiece, *, size: int, column: str, options: Options
) -> Iterator[InputPiece | InputError]:
    """Yield the blocks of *piece*, for :func:`records`. See :func:`pieces`.

    Raises:
        InputError: the file has changed since it was cut.
    """
    each = piece.input
    is_packed = each.kind in PACKED and piece.data is None
    if is_packed or each.kind == "parquet":
        each.check()
        cut: _Cutter = _lines if is_packed else lambda _, *how: _rows(piece, *how)
        yield from _until_damage(each, cut, size, column, _further(options))
    else:
        yield piece


def bytes_of(piece: InputPiece) -> int:
    """Return about how much memory a piece takes."""
    data = piece.data
    return max(piece.weight, 0 if data is None else len(data) if isinstance(data, bytes) else data.nbytes)


def _shared(group: list[InputPiece], number: int) -> InputPiece:
    """Return the pieces of *group* as one."""
    first, *others = group
    weight = sum(piece.weight for piece in group)
    return attrs.evolve(first, number=number, weight=weight, others=tuple(others))


def _further(options: Options) -> tuple[str, ...]:
    """Return the columns of Parquet that *options* use."""
    fields = {} if options.layout is None else options.layout.fields
    answer = [] if "response" not in fields else [fields["response"]]
    paths = [path for field in (*answer, *fields.values()) for path in field.paths]
    return tuple(dict.fromkeys(path[0] for path in [*paths, *options.keep.values()]))


def _lines(each: Input, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    if _is_joined(each):
        yield from _session(each, size)
        return
    result = layout_of_lines(_first_lines(each))
    layout = None if result is None else result.name
    with opened(each) as (file, position, fault):
        first, start, before = 1, 0, 0
        most = size + LONGEST + MIB  # of a record that is too long so much that it can be seen
        while block := file.read(size):
            rows, length, blocks = block.count(b"\n"), len(block), [block]
            while not block.endswith(b"\n") and (block := file.readline(MIB)):
                rows, length = rows + block.endswith(b"\n"), length + len(block)
                if length <= most:
                    blocks.append(block)
            data = None if each.kind == "lines" else b"".join(blocks)
            yield InputPiece(
                0, each, first, start, min(length, most), position() - before, data, layout=layout
            )
            first, start, before = first + rows, start + length, position()
        if fault():
            raise InputError(f"{each.name}: line {first}: {fault()}")


def _is_joined(each: Input) -> bool:
    """Whether :func:`crosswalk.records.record_lines` has to read *each*, since its lines are no exchanges."""
    with opened(each) as (file, _, _):
        if log_kind(file) != "lines":
            return True
    return is_session(_first_lines(each))


def _first_lines(each: Input) -> Iterator[bytes]:
    """Yield the first lines of a log, without empty ones. An incomplete line counts as damaged."""
    remaining = _HEAD
    with opened(each) as (file, _, _):
        for number in range(_HEAD_LINES):
            line = file.readline(remaining)
            remaining -= len(line)
            if line.strip():
                yield line.removeprefix(BOM) if number == 0 else line


def _session(each: Input, size: int) -> Iterator[InputPiece]:
    """Yield the pieces of a file whose lines :func:`crosswalk.records.record_lines` makes, such as those of a session."""
    rows: list[dict[str, Any]] = []
    first, length, before, damage = 1, 0, 0, ""
    with opened(each) as (file, position, fault):
        try:
            for line in record_lines(file, local_path(each.path)):
                is_long = line.data is None or len(line.data) > LONGEST
                row = {"fault": too_long("line")} if is_long else {"line": line.data}
                rows.append({"source": each.name, "number": line.number, **row})
                length += len(line.data or b"")
                if length >= size:
                    yield _of_rows(each, rows, first, position() - before)
                    first, length, before, rows = first + len(rows), 0, position(), []
        except LogFileError as error:
            damage = str(error)
        if rows:  # what came before a damage is not lost
            yield _of_rows(each, rows, first, position() - before)
        if damage := fault() or damage:
            raise InputError(f"{each.name}: {damage}")


def _joined(each: Input, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    yield from _session(each, size)


def _captures(each: Input, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    folder = _folder(each)
    start, weight = 0, 0
    for index, name in enumerate(each.files):
        weight += os.path.getsize(folder / name)
        if weight >= size or index + 1 - start >= _MOST_FILES or index + 1 == len(each.files):
            yield InputPiece(0, each, start + 1, start, index + 1 - start, weight)
            start, weight = index + 1, 0


def _folder(each: Input) -> Path:
    path = Path(each.path)
    return path if path.is_dir() else path.parent


def _packed(each: Input, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    if each.size > MOST_PACKED:
        yield from _lines(each, size, column, further)
    else:
        yield InputPiece(0, each, 1, 0, each.size, each.size)


def _row_groups(each: Input, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    """Yield a piece for each row group, or for several small ones."""
    with open_file(each.path) as opened_file, pq.ParquetFile(opened_file) as file:
        _columns_of(each, file, column, further)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        share = each.size / max(1, file.metadata.num_rows)
        first, start, rows, length = 1, 0, 0, 0
        for number, group in enumerate(groups, 1):
            rows, length = rows + group.num_rows, length + group.total_byte_size
            if length >= size or number == len(groups):
                yield InputPiece(0, each, first, start, number - start, round(share * rows))
                first, start, rows, length = first + rows, number, 0, 0


def _columns_of(
    each: Input, file: pq.ParquetFile, column: str, further: tuple[str, ...]
) -> tuple[str, list[str]]:
    """Return the column with the answers, and the further ones."""
    known = file.schema_arrow
    if column not in known.names and further[:1] and further[0] in known.names:
        column = further[0]  # that of the layout
    if column not in known.names:
        names = ", ".join(known.names[:20])
        raise InputError(f"{each.name}: no column {column!r} in it (name it with --column): {names}")
    kind = known.field(column).type
    if not any(check(kind) for check in _BYTES_LIKE):
        raise InputError(f"{each.name}: column {column!r} holds no bytes and no text, but {kind}")
    extra = dict.fromkeys((*_BESIDE, *further))
    return column, [name for name in extra if name in known.names and name != column]


def _rows(piece: InputPiece, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    """Yield the rows in the row groups of *piece*."""
    each = piece.input
    with open_file(each.path) as opened_file, pq.ParquetFile(opened_file) as file:
        column, extra = _columns_of(each, file, column, further)
        numbers = range(piece.start, piece.start + piece.size)
        groups = [file.metadata.row_group(number) for number in numbers]
        length = sum(group.total_byte_size for group in groups)
        at_once = max(1, min(size * sum(group.num_rows for group in groups) // max(1, length), 50_000))
        first = piece.first
        for batch in file.iter_batches(at_once, list(numbers), [column, *extra], use_threads=False):
            bodies = batch.column(column)
            is_long = pc.greater(pc.binary_length(bodies), LONGEST)
            result = pa.RecordBatch.from_arrays(
                [
                    pc.if_else(is_long, pa.scalar(None, bodies.type), bodies),
                    pc.if_else(is_long, too_long("answer"), pa.scalar(None, pa.string())),
                    *(batch.column(name) for name in extra),
                ],
                ["body", "fault", *extra],
            )
            yield InputPiece(0, each, first, 0, batch.num_rows, 0, result)
            first += batch.num_rows


_BYTES_LIKE: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)


def _har(each: Input, size: int, column: str, further: tuple[str, ...]) -> Iterator[InputPiece]:
    rows: list[dict[str, Any]] = []
    first, weight, before = 1, 0, 0
    fault = None
    with open_file(each.path) as file:
        file.seek(len(BOM) if file.read(len(BOM)) == BOM else 0)
        try:
            for row in har_rows(each.name, file):
                rows.append(row)
                weight += len(row.get("line") or b"")
                if weight >= size:
                    yield _of_rows(each, rows, first, file.tell() - before)
                    first, weight, before, rows = first + len(rows), 0, file.tell(), []
        except InputError as error:
            fault = error
    if rows:  # what came before a damage is not lost
        yield _of_rows(each, rows, first, each.size - before)
    if fault is not None:
        raise fault


def _of_rows(each: Input, rows: list[dict[str, Any]], first: int, weight: int) -> InputPiece:
    return InputPiece(0, each, first, 0, len(rows), weight, pa.RecordBatch.from_pylist(rows, INPUT))


_Cutter: TypeAlias = Callable[[Input, int, str, tuple[str, ...]], Iterator[InputPiece]]
_CUTTERS: Final[dict[str, _Cutter]] = {
    "lines": _lines,
    "gzip": _packed,
    "zstd": _packed,
    "captures": _captures,
    "parquet": _row_groups,
    "har": _har,
    **dict.fromkeys(("bzip2", "xz"), _packed),
    **dict.fromkeys(("document", "csv", "cassette", "sqlite"), _joined),
}


# -------------------------------------------------------------------------------------------- reading


def records(piece: InputPiece, options: Options | None = None) -> pa.RecordBatch:
    """Read the records of *piece*, one of :func:`blocks`, for :func:`crosswalk_batch.normalize_batch` with *options*.

    Raises:
        InputError: the file has changed since it was cut, or cannot be read.
    """
    data, options = piece.data, options or Options()
    try:
        if piece.input.kind == "captures":
            return _loaded(piece)
        if data is None:
            piece.input.check()
            with open_file(piece.input.path) as file:
                file.seek(piece.start)
                data = file.read(piece.size)
            piece.input.check()
    except OSError as error:
        raise InputError(f"{piece.input.name}: {cause_of(error)}") from None
    if isinstance(data, bytes):
        return _split(piece, data)
    if piece.input.kind == "parquet" and (options.layout is not None or options.keep):
        data = _rows_as_lines(data, options)
    if "number" in data.schema.names:  # rejects of an earlier job keep their place
        return data
    numbers = pa.array(range(piece.first, piece.first + data.num_rows), pa.int64())
    sources = pa.array([piece.input.name] * data.num_rows, TEXT)
    return data.append_column("source", sources).append_column("number", numbers)


def _rows_as_lines(data: pa.RecordBatch, options: Options) -> pa.RecordBatch:
    """Return rows of Parquet as lines of a log, for a layout with paths that begin with a column name."""
    field = None if options.layout is None else options.layout.fields.get("response")
    name = field.paths[0][0] if field is not None and len(field.paths[0]) == 1 else "body"
    lines: list[bytes | None] = []
    faults: list[str | None] = []
    for row in data.to_pylist():
        body = row.pop("body")
        faults.append(row.pop("fault"))
        try:
            text = body.decode() if type(body) is bytes else body
            lines.append(dump_json({**{key: _plain(value) for key, value in row.items()}, name: text}))
        except UnicodeDecodeError:
            lines.append(None)
            faults[-1] = "the answer is not text; without --layout, --field and --keep it may be"
    return pa.RecordBatch.from_arrays([pa.array(lines, BYTES), pa.array(faults, TEXT)], ["line", "fault"])


def _plain(value: Any) -> Any:
    """Return a value of a column as plain JSON."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value) if isinstance(value, Decimal) else value


def _split(piece: InputPiece, data: bytes) -> pa.RecordBatch:
    lines = data.split(b"\n")
    if piece.start == 0:
        lines[0] = lines[0].removeprefix(BOM)
    rows = [(piece.first + index, line) for index, line in enumerate(lines) if line and not line.isspace()]
    faults = [too_long("line") if len(line) > LONGEST else None for _, line in rows]
    usable_lines = [
        None if fault else line.removesuffix(b"\r") for (_, line), fault in zip(rows, faults, strict=True)
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([piece.input.name] * len(rows), TEXT),
            pa.array([number for number, _ in rows], pa.int64()),
            pa.array(usable_lines, BYTES),
            pa.array(faults, TEXT),
        ],
        ["source", "number", "line", "fault"],
    )


def _loaded(piece: InputPiece) -> pa.RecordBatch:
    folder = _folder(piece.input)
    rows = []
    for index in range(piece.start, piece.start + piece.size):
        file = folder / piece.input.files[index]
        name = (
            str(Path(piece.input.name) / file.name) if Path(piece.input.path).is_dir() else piece.input.name
        )
        row = {"source": name, "number": 1, "fault": None}
        if os.path.getsize(file) > LONGEST:
            rows.append(row | {"fault": too_long("answer")})
            continue
        try:
            capture = load_capture(file)
            rows.append(row | {"body": capture.body, "status": capture.status, "server": capture.server})
        except ConfigurationError as error:
            rows.append(row | {"fault": str(error)})
    return pa.RecordBatch.from_pylist(rows, INPUT)
