"""A piece of a job, read, mapped and stored as a part, in any process."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import attrs
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswalk.codec import from_json, to_json
from crosswalk.records import load_layout
from crosswalk.types import ChatResponse
from crosswalk.types.json import dump_json, load_json
from crosswalk_batch.arrow import from_arrow, to_arrow
from crosswalk_batch.batches import Normalized, error_columns, normalize_batch
from crosswalk_batch.inputs import MIB, InputError
from crosswalk_batch.manifest import Part
from crosswalk_batch.options import Options, rejects_schema, responses_schema
from crosswalk_batch.pieces import Piece, blocks, bytes_of, records
from crosswalk_batch.storage import Rows, Store, StoredFile, store_at

RESPONSES_FOLDER: Final = "responses"
REJECTS_FOLDER: Final = "rejects"


@attrs.frozen
class Output:
    """The folder and format of parts.

    Attributes:
        folder: the folder of the job.
        format: ``parquet`` or ``jsonl``.
        columns: the columns of responses to write, in addition to ``source`` and ``number``, or empty for all.
        partition_by: the values to partition responses by, the outermost first. See :data:`PARTITIONS`.
    """

    folder: str
    format: Literal["parquet", "jsonl"] = "parquet"
    partition_by: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    columns: tuple[str, ...] = attrs.field(default=(), converter=tuple)

    def chosen(self, table: pa.Table) -> pa.Table:
        """Return *table*, of responses, with the columns to write."""
        wanted = {"source", "number", *self.columns}
        return (
            table.select([name for name in table.schema.names if name in wanted]) if self.columns else table
        )

    def name(self, kind: str, part: int, partition: str = "", number: int = 0) -> str:
        """Return the name of *part*'s file *number*, below the folders of its *kind* and its *partition*."""
        name = f"part-{part:06}_{number}" if number else f"part-{part:06}"
        return "/".join(filter(None, (kind, partition, f"{name}.{self.format}")))

    @property
    def store(self) -> Store:
        """The store of the files."""
        return store_at(self.folder)

    def damages(self, files: Iterable[StoredFile], *, with_checksums: bool = False) -> Iterator[str]:
        """Yield a message for each of *files* that is missing or differs from the one that was written.

        Args:
            files: the files of parts. Those in a compacted file are damaged if that is.
            with_checksums: read the files instead of comparing only their sizes.
        """
        store = self.store
        for file in dict.fromkeys(file.on_disk for file in files):
            size = store.size(file.name)
            if size is None:
                yield f"{file.name} is missing"
            elif size != file.size or (
                with_checksums and StoredFile.of(file.name, store.read(file.name)) != file
            ):
                yield f"{file.name} is damaged: it is not what was written"


@attrs.frozen(eq=False)
class Task:
    """A task for one process.

    Attributes:
        piece: the piece to map.
        options: how records are mapped.
        output: where the part is stored.
        size: the bytes of input in a file of the part.
        column: the column of Parquet with the answers.
    """

    piece: Piece
    options: Options
    output: Output
    size: int = 8 * MIB
    column: str = "body"


def perform(task: Task) -> Part:
    """Map a piece and store it. Doing it again gives the same files.

    Raises:
        InputError: the piece cannot be read, or has changed.
        OSError: the part cannot be written. Nothing new of it exists then.
    """
    faults: list[str] = []
    files: list[StoredFile] = []
    records = 0
    errors: Counter[str] = Counter()
    guesses: Counter[str] = Counter()
    layouts: Counter[str] = Counter()
    for number, result in enumerate(_results(task, faults)):
        files += store(result, task.output, task.piece.number, task.options, number)
        records += result.responses.num_rows + result.rejects.num_rows
        errors.update(sorted(result.rejects["error"].to_pylist()))
        guesses.update(result.guesses)
        layouts.update(result.layouts)
    return Part(
        task.piece.number,
        records,
        dict(errors),
        task.piece.weight,
        dict(guesses),
        dict(layouts),
        tuple(files),
        faults,
    )


def mapped(task: Task) -> Normalized:
    """Return the result of mapping the records of a piece, without storing it.

    Raises:
        InputError: the piece cannot be read, or has changed.
    """
    return _joined(_results(task, []), task.options)


def _results(task: Task, faults: list[str]) -> Iterator[Normalized]:
    """Yield the result for each file of the part. Adds the reasons why inputs end early to *faults*."""
    some: list[Normalized] = []
    length = 0
    for piece in (task.piece, *task.piece.others):
        for block in blocks(piece, size=task.size, column=task.column, options=task.options):
            if isinstance(block, InputError):
                faults.append(str(block))
                continue
            if some and length + bytes_of(block) > task.size:
                yield _joined(some, task.options)
                some, length = [], 0
            some.append(_mapped(block, task.options))
            length += bytes_of(block)
    if some:
        yield _joined(some, task.options)


def _joined(results: Iterable[Normalized], options: Options) -> Normalized:
    results = [*results]
    return Normalized(
        pa.concat_tables([responses_schema(options).empty_table(), *(one.responses for one in results)]),
        pa.concat_tables([rejects_schema(options).empty_table(), *(one.rejects for one in results)]),
        sum((one.guesses for one in results), Counter()),
        sum((one.layouts for one in results), Counter()),
    )


def _mapped(piece: Piece, options: Options) -> Normalized:
    if options.layout is None and piece.layout is not None:
        options = attrs.evolve(options, layout=load_layout(piece.layout))
    return normalize_batch(records(piece, options), options)


def store(
    result: Normalized, output: Output, part: int, options: Options, number: int = 0
) -> list[StoredFile]:
    """Write the files *number* of *part*, each completely or not at all. Empty files are not written.

    Raises:
        OSError: they cannot be written.
    """
    files, file_store = [], output.store
    for kind, table, by in (
        (RESPONSES_FOLDER, result.responses, output.partition_by),
        (REJECTS_FOLDER, result.rejects, ()),
    ):
        for partition, rows in partitions(table, by) if table.num_rows else ():
            data: bytes | memoryview
            if output.format == "parquet":
                data = _parquet(output.chosen(rows) if kind is RESPONSES_FOLDER else rows)
            elif kind is RESPONSES_FOLDER:
                data = b"".join(_response_lines(rows, options))
            else:
                data = b"".join(_reject_lines(rows))
            files.append(file_store.write(output.name(kind, part, partition, number), data))
    return files


def stored(output: Output, part: Part, options: Options | None = None) -> Normalized:
    """Return what :func:`store` wrote for *part*, in the order of the records.

    Raises:
        OSError, ValueError: the files cannot be read.
        CanonicalJSONError: a response in them cannot be read.
    """
    file_store = output.store
    read = _read_parquet if output.format == "parquet" else _read_lines
    kinds = {RESPONSES_FOLDER: responses_schema(options), REJECTS_FOLDER: rejects_schema(options)}
    tables = []
    for kind, schema in kinds.items():
        files = [file for file in part.files if file.name.startswith(f"{kind}/")]
        tables_read = [
            _read_rows(output.folder, file.within)
            if file.within
            else read(file_store.read(file.name), schema)
            for file in files
        ]
        table = pa.concat_tables(tables_read) if tables_read else schema.empty_table()
        # A part is of one input, of captures in the order of their names.
        tables.append(
            table.sort_by([("source", "ascending"), ("number", "ascending")]) if tables_read[1:] else table
        )
    return Normalized(*tables)


def _read_rows(folder: str, place: Rows) -> pa.Table:
    """Return some rows of a compacted file in the local *folder*."""
    with pq.ParquetFile(Path(folder, place.file.name)) as file:
        groups, before, end = [], 0, 0
        for number in range(file.num_row_groups):
            start, end = end, end + file.metadata.row_group(number).num_rows
            if end <= place.first:
                before = end
            elif start < place.first + place.rows:
                groups.append(number)
        return file.read_row_groups(groups, use_threads=False).slice(place.first - before, place.rows)


def _read_parquet(data: bytes, kind: pa.Schema) -> pa.Table:
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)


def _read_lines(data: bytes, kind: pa.Schema) -> pa.Table:
    rows = [load_json(line) for line in data.splitlines()]
    shared = kind.names.index("id" if "id" in kind.names else "provider")
    records = pa.Table.from_pylist(
        [{"record_id": row.get("id"), **row} for row in map(_typed, rows)], pa.schema(list(kind)[:shared])
    )
    if "id" not in kind.names:
        for row in rows:
            for name in ("body", "line"):
                coded = row.pop(f"{name}_base64", None)
                row[name] = None if coded is None else base64.b64decode(coded)
        partials = [row.pop("partial", None) for row in rows]
        plain = pa.Table.from_pylist(rows, pa.schema(list(kind)[shared:-1]))
        answers = iter(to_arrow(_responses(one for one in partials if one is not None)).to_pylist())
        column = pa.array([None if one is None else next(answers) for one in partials], kind[-1].type)
        return pa.Table.from_arrays([*records.columns, *plain.columns, column], schema=kind)
    responses = list(_responses(row["response"] for row in rows))
    answers = to_arrow(responses, include_raw="raw_events" in kind.names)
    errors = error_columns(responses)
    return pa.Table.from_arrays([*records.columns, *answers.columns, *errors], schema=kind)


def _responses(values: Iterable[Any]) -> Iterator[ChatResponse]:
    return (from_json(dump_json(value), ChatResponse) for value in values)


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a line of JSON in the types of the columns."""
    time, cost = row.get("time"), row.get("cost")
    return {
        **row,
        "time": None if time is None else datetime.fromisoformat(time),
        "cost": None if cost is None else Decimal(cost),
    }


def _parquet(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return memoryview(sink.getvalue())


def _response_lines(table: pa.Table, options: Options) -> Iterator[bytes]:
    for row, response in zip(_record_rows(table), from_arrow(table), strict=True):
        raw = orjson.Fragment(to_json(response, include_raw=options.include_raw))
        yield orjson.dumps({**row, "response": raw}) + b"\n"


def _reject_lines(table: pa.Table) -> Iterator[bytes]:
    partials = table["partial"].combine_chunks()
    answers = iter(from_arrow(pa.Table.from_struct_array(partials.drop_null())))
    for record, row in zip(_record_rows(table), table.to_pylist(), strict=True):
        # With the keys of a recorded exchange, it can be read again.
        fields = {
            "id": record.pop("record_id", None),
            **record,
            **{name: row[name] for name in ("provider", "error", "message")},
        }
        for name in ("body", "line"):
            if row[name] is not None:
                fields[f"{name}_base64"] = base64.b64encode(row[name]).decode()
        if row["partial"] is not None:
            fields["partial"] = orjson.Fragment(to_json(next(answers)))
        yield orjson.dumps({key: value for key, value in fields.items() if value is not None}) + b"\n"


def _record_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the columns for origin, exchange and kept values as JSON, without nulls."""
    names = table.schema.names
    shared = names[: names.index("id" if "id" in names else "provider")]
    for row in table.select(shared).to_pylist():
        if row["time"] is not None:
            row["time"] = row["time"].isoformat().replace("+00:00", "Z")
        if row["cost"] is not None:
            row["cost"] = f"{row['cost'].normalize():f}"
        yield {name: value for name, value in row.items() if value is not None}


PARTITIONS: Final[Mapping[str, Callable[[pa.Table], pa.ChunkedArray]]] = {
    "provider": lambda table: pc.struct_field(table["metadata"], "provider_id"),
    "day": lambda table: pc.strftime(table["time"], "%Y-%m-%d"),
}
"""The values that responses can be partitioned by. Days are in UTC."""


_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder for a missing value, which engines read as null."""


def partitions(table: pa.Table, by: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of *table* for each folder, such as ``provider=ollama/day=2026-11-20``, in their order.

    If *by* is empty, the folder ``""`` gets all rows.
    """
    if not by:
        yield "", table
        return
    rows: dict[tuple[Any, ...], list[int]] = {}
    for row, values in enumerate(zip(*(PARTITIONS[name](table).to_pylist() for name in by), strict=True)):
        rows.setdefault(values, []).append(row)
    for values, row_numbers in sorted(rows.items(), key=lambda item: [value or "" for value in item[0]]):
        folders = (
            f"{name}={_NULL if value is None else quote(value, safe='')}"
            for name, value in zip(by, values, strict=True)
        )
        yield "/".join(folders), table.take(row_numbers)
