"""One piece of a job: read, mapped and stored as a part, in whichever process."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import attrs
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from crosswalk.codec import from_json, to_json
from crosswalk.commands import written
from crosswalk.types import ChatResponse
from crosswalk.types.json import dump_json, load_json
from crosswalk_batch.arrow import from_arrow, to_arrow
from crosswalk_batch.batches import PLACE, REJECTS, Normalized, Options, normalize_batch, responses_schema
from crosswalk_batch.manifest import Part
from crosswalk_batch.partitions import partitions
from crosswalk_batch.pieces import Piece, records

__all__ = ["REJECTS_FOLDER", "RESPONSES_FOLDER", "Output", "Task", "mapped", "perform", "stored"]

RESPONSES_FOLDER: Final = "responses"
REJECTS_FOLDER: Final = "rejects"


@attrs.frozen
class Output:
    """Where parts go, and in which form.

    Attributes:
        folder: the folder of the job.
        format: ``parquet`` or ``jsonl``.
        partition_by: what responses are put into folders by, the outermost first; see :data:`PARTITIONS`.
    """

    folder: str
    format: Literal["parquet", "jsonl"] = "parquet"
    partition_by: tuple[str, ...] = attrs.field(default=(), converter=tuple)

    def file(self, kind: str, part: int, partition: str = "") -> Path:
        """The file of *part* in the folder of its *kind*, and there in that of its *partition*."""
        return Path(self.folder) / kind / partition / f"part-{part:06}.{self.format}"

    def files(self, kind: str, part: int) -> list[Path]:
        """The files of *part* that are there."""
        return sorted((Path(self.folder) / kind).rglob(self.file(kind, part).name))


@attrs.frozen(eq=False)
class Task:
    """What one process is asked to do."""

    piece: Piece
    options: Options
    output: Output


def perform(task: Task) -> Part:
    """Map a piece and store it. It may be done again, and gives the same files then.

    Raises:
        InputError: the piece cannot be read, or has changed.
        OSError: the part cannot be written; nothing of it is there then that was not before.
    """
    found = mapped(task.piece, task.options)
    store(found, task.output, task.piece.number, include_raw=task.options.include_raw)
    errors = Counter(sorted(found.rejects["error"].to_pylist()))
    rows = found.responses.num_rows + found.rejects.num_rows
    return Part(task.piece.number, rows, dict(errors), task.piece.weight, dict(found.guesses))


def mapped(piece: Piece, options: Options) -> Normalized:
    """What the records of *piece* are mapped to.

    Raises:
        InputError: the piece cannot be read, or has changed.
    """
    return normalize_batch(records(piece), options)


def store(found: Normalized, output: Output, part: int, *, include_raw: bool = False) -> None:
    """Write the files of *part*: each is there as a whole or not at all, and not where it would be empty.

    Raises:
        OSError: they cannot be written.
    """
    for kind, table, by in (
        (RESPONSES_FOLDER, found.responses, output.partition_by),
        (REJECTS_FOLDER, found.rejects, ()),
    ):
        for partition, rows in partitions(table, by) if table.num_rows else ():
            if output.format == "parquet":
                data = _parquet(rows)
            elif kind is RESPONSES_FOLDER:
                data = b"".join(_response_lines(rows, include_raw))
            else:
                data = b"".join(_reject_lines(rows))
            with written(output.file(kind, part, partition), replace=True) as out:
                out.write(data)


def stored(output: Output, part: int, *, include_raw: bool = False) -> Normalized:
    """What :func:`store` wrote of *part*, in the order of the records.

    Raises:
        OSError, ValueError: it cannot be read. CanonicalJSONError: a response in it cannot.
    """
    read = _read_parquet if output.format == "parquet" else _read_lines
    kinds = {RESPONSES_FOLDER: responses_schema(include_raw=include_raw), REJECTS_FOLDER: REJECTS}
    tables = []
    for kind, schema in kinds.items():
        found = [read(file, schema) for file in output.files(kind, part)]
        table = pa.concat_tables(found) if found else schema.empty_table()
        # A part is of one input, of captures in the order of their names.
        tables.append(
            table.sort_by([("source", "ascending"), ("number", "ascending")]) if found[1:] else table
        )
    return Normalized(*tables)


def _read_parquet(file: Path, kind: pa.Schema) -> pa.Table:
    return pq.ParquetFile(file).read(use_threads=False)


def _read_lines(file: Path, kind: pa.Schema) -> pa.Table:
    rows = [load_json(line) for line in file.read_bytes().splitlines()]
    if kind is REJECTS:
        for row in rows:
            coded = row.pop("body_base64", None)
            row |= {"record_id": row.pop("id", None), "body": coded and base64.b64decode(coded)}
        return pa.Table.from_pylist(rows, kind)
    answers = to_arrow(
        (from_json(dump_json(row["response"]), ChatResponse) for row in rows),
        include_raw="raw_events" in kind.names,
    )
    places = pa.Table.from_pylist([{name: row.get(name) for name in PLACE.names} for row in rows], PLACE)
    return pa.Table.from_arrays([*places.columns, *answers.columns], schema=kind)


def _parquet(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _response_lines(table: pa.Table, include_raw: bool) -> Iterator[bytes]:
    places = table.select(["source", "number", "record_id"]).to_pylist()
    for place, response in zip(places, from_arrow(table), strict=True):
        said = orjson.Fragment(to_json(response, include_raw=include_raw))
        yield orjson.dumps({**place, "response": said}) + b"\n"


def _reject_lines(table: pa.Table) -> Iterator[bytes]:
    for row in table.to_pylist():
        data = row.pop("body")
        coded = None if data is None else base64.b64encode(data).decode()
        # With the keys of a recorded exchange, it can be read again.
        fields: dict[str, Any] = {"id": row.pop("record_id"), **row, "body_base64": coded}
        yield orjson.dumps({key: value for key, value in fields.items() if value is not None}) + b"\n"
