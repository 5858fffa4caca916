"""A job: inputs mapped into a folder, part by part, by an engine, and the small files of a finished job put together."""

from __future__ import annotations

import base64
import gc
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from decimal import Decimal
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import quote

import attrs
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswalk import __version__
from crosswalk.codec import FORMAT_VERSION, from_json, to_json
from crosswalk.commands import Progress, UsageError, counted
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.records import Layout, load_layout
from crosswalk.types import ChatResponse
from crosswalk.types.json import dump_json, load_json
from crosswalk_batch.batches import (
    Normalized,
    Options,
    error_columns,
    normalize_batch,
    rejects_schema,
    responses_schema,
)
from crosswalk_batch.columns import from_arrow, to_arrow
from crosswalk_batch.inputs import MIB, Input, InputError, LocalStore, Rows, StoredFile, store_at
from crosswalk_batch.manifest import (
    MANIFEST,
    Compacted,
    JobManifest,
    Part,
    Total,
    manifest_at,
    read_manifest,
)
from crosswalk_batch.pieces import InputPiece, blocks, bytes_of, pieces, records

# --------------------------------------------------------------------------------- engines
# Engines that perform the tasks of a job in one process or several, in order, within the available memory.


T = TypeVar("T")
R = TypeVar("R")

GOES_ON: Final = "finished parts are stored, and the same command continues from there"

_NEW_OBJECTS: Final = 50_000
"""The number of new objects before Python collects garbage, as in the command line."""


class JobStoppedError(CrosswalkError):
    """A job was stopped before its end. Finished parts are stored, and running the same job again continues from there."""


def in_order(tasks: Iterable[T], submit: Callable[[T], Callable[[], R]], most: int) -> Iterator[R]:
    """Yield the results of *tasks*, in order.

    Args:
        tasks: the tasks, taken when there is capacity.
        submit: starts a task, and returns a function that waits for its result.
        most: the maximum number of tasks that are started and whose results are not taken yet.
    """
    begun: deque[Callable[[], R]] = deque()
    for task in tasks:
        begun.append(submit(task))
        if len(begun) >= most:
            yield begun.popleft()()
    while begun:
        yield begun.popleft()()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def processes(perform: Callable[[T], R], count: int) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """Return a function that performs tasks in *count* processes, or in this one if *count* is 1.

    Raises:
        StoppedError: a process died.
    """
    if count == 1:
        yield lambda tasks: map(perform, tasks)
        return
    # Spawned, not forked, because Arrow has threads.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield lambda tasks: in_order(tasks, lambda task: pool.submit(perform, task).result, 2 * count)
    except BrokenProcessPool:
        raise JobStoppedError(f"a process died, perhaps for lack of memory; {GOES_ON}") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Set up a worker process. It ignores Ctrl-C, which its parent handles, and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    pa.set_cpu_count(1)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


# ----------------------------------------------------------------------------------- parts
# A piece of a job, read, mapped and stored as a part, in any process.


RESPONSES_FOLDER: Final = "responses"
REJECTS_FOLDER: Final = "rejects"


@attrs.frozen
class JobOutput:
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
    def store(self) -> LocalStore:
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

    piece: InputPiece
    options: Options
    output: JobOutput
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
    left_out: Counter[str] = Counter()
    for number, result in enumerate(_results(task, faults)):
        files += store(result, task.output, task.piece.number, task.options, number)
        records += result.responses.num_rows + result.rejects.num_rows
        errors.update(sorted(result.rejects["error"].to_pylist()))
        guesses.update(result.guesses)
        layouts.update(result.layouts)
        left_out.update(result.left_out)
    return Part(
        task.piece.number,
        records,
        dict(errors),
        task.piece.weight,
        dict(guesses),
        dict(layouts),
        tuple(files),
        faults,
        dict(left_out),
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
        sum((one.left_out for one in results), Counter()),
    )


def _mapped(piece: InputPiece, options: Options) -> Normalized:
    if options.layout is None and piece.layout is not None:
        options = attrs.evolve(options, layout=attrs.evolve(load_layout(piece.layout), is_fallback=True))
    return normalize_batch(records(piece, options), options)


def store(
    result: Normalized, output: JobOutput, part: int, options: Options, number: int = 0
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


def read_part(output: JobOutput, part: Part, options: Options | None = None) -> Normalized:
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
        file_tables = [
            _read_rows(output.folder, file.within)
            if file.within
            else read(file_store.read(file.name), schema)
            for file in files
        ]
        table = pa.concat_tables(file_tables) if file_tables else schema.empty_table()
        # A part is of one input, of captures in the order of their names.
        tables.append(
            table.sort_by([("source", "ascending"), ("number", "ascending")]) if file_tables[1:] else table
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
        response_json = orjson.Fragment(to_json(response, include_raw=options.include_raw))
        yield orjson.dumps({**row, "response": response_json}) + b"\n"


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


# ------------------------------------------------------------------------------ compaction
# Compaction: the small files of a finished job, put together into files of 256 MB with the same rows in the same order.
#
# A new file is written beside the columns, then the manifest names it, then the files that it replaces are deleted, and
# it
# is moved to its place. So no row is there twice at any moment, and a compaction that was killed is completed by the
# next run.


FILE_BYTES: Final = 256 * MIB
_ROW_GROUP: Final = 128 * MIB
"""The bytes of a row group in memory."""
_AGAIN: Final = "delete what is left of it, and run the job again, which writes it anew"
_DRAFT: Final = "compacting.parquet"


@attrs.frozen
class _Source:
    """A file to put together with others.

    Attributes:
        file: the file.
        rows: the files of parts in it and their numbers of rows, or empty if it is one of them.
    """

    file: StoredFile
    rows: list[tuple[str, int]]


def compact(output: JobOutput) -> tuple[int, int]:
    """Put the files of *output*, of a finished job, together. Returns their number before and after.

    Raises:
        UsageError: the job is not done, or writes JSON Lines.
        StoppedError: a file is missing or damaged, or none can be written.
    """
    description, _ = read_manifest(output.folder)
    if description["output"]["format"] != "parquet":
        raise UsageError(f"{output.folder}: --compact is for Parquet; it holds JSON Lines")
    with manifest_at(output.folder, description) as manifest:
        if not manifest.total.is_done:
            raise UsageError(f"{output.folder}: its job is not done; run that first, then compact it")
        try:
            settle(output.store, manifest)
            if damage := next(output.damages(file for part in manifest.parts for file in part.files), None):
                raise JobStoppedError(f"{output.folder}: {damage}; {_AGAIN}")
            folders = _sources(manifest.parts)
            groups = [group for folder in folders for group in _groups(folder)]
            before = sum(map(len, folders))
            with Progress("compacting", sum(map(_size, groups)), in_bytes=True) as progress:
                for group in groups:
                    _put_together(group, output.store, manifest)
                    progress.advance(_size(group))
        except OSError as error:
            raise JobStoppedError(
                f"{output.folder}: {error.strerror or error}; the same command goes on"
            ) from None
    return before, before - sum(len(group) - 1 for group in groups)


def settle(store: LocalStore, manifest: JobManifest) -> None:
    """Complete a compaction that the manifest names, if there is one."""
    if (pending := manifest.pending) is not None:
        for name in pending.replaces:
            store.delete(name)
        if store.size(_DRAFT) is not None:
            store.move(_DRAFT, pending.file.name)
        manifest.settle()


def _sources(parts: list[Part]) -> list[list[_Source]]:
    """Return the files of *parts* in their order, for each folder."""
    folders: dict[str, list[_Source]] = {}
    for part in parts:
        for file in part.files:
            sources = folders.setdefault(file.name.rpartition("/")[0], [])
            if not sources or sources[-1].file != file.on_disk:
                sources.append(_Source(file.on_disk, []))
            if file.within is not None:
                sources[-1].rows.append((file.name, file.within.rows))
    return list(folders.values())


def _groups(sources: list[_Source]) -> Iterator[list[_Source]]:
    """Yield the consecutive *sources* that become one file."""
    group: list[_Source] = []
    for source in sources:
        if _size([*group, source]) > FILE_BYTES:
            if len(group) > 1:
                yield group
            group = []
        group.append(source)
    if len(group) > 1:
        yield group


def _size(sources: list[_Source]) -> int:
    return sum(source.file.size for source in sources)


def _put_together(sources: list[_Source], store: LocalStore, manifest: JobManifest) -> None:
    rows: list[tuple[str, int]] = []
    waiting: list[pa.Table] = []
    sink = pa.BufferOutputStream()
    writer: pq.ParquetWriter | None = None
    for source in sources:
        data = store.read(source.file.name)
        if StoredFile.of(source.file.name, data) != source.file:
            raise JobStoppedError(f"{source.file.name} is damaged; {_AGAIN}")
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            rows += source.rows or [(source.file.name, file.metadata.num_rows)]
            writer = writer or pq.ParquetWriter(sink, file.schema_arrow, compression="zstd")
            for number in range(file.num_row_groups):
                waiting.append(file.read_row_group(number, use_threads=False))
                if sum(table.nbytes for table in waiting) >= _ROW_GROUP:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting.clear()
    assert writer is not None
    if waiting:
        writer.write_table(pa.concat_tables(waiting))
    writer.close()
    whole = memoryview(sink.getvalue())
    store.write(_DRAFT, whole)
    replaces = tuple(source.file.name for source in sources)
    manifest.compact(Compacted(StoredFile.of(_name_of(rows), whole), tuple(rows), replaces))
    settle(store, manifest)


def _name_of(rows: list[tuple[str, int]]) -> str:
    """Return the name of a file with the rows of these files: ``compact-000000-000031.parquet``."""
    folder, _, first = rows[0][0].removesuffix(".parquet").rpartition("/part-")
    last = rows[-1][0].removesuffix(".parquet").rpartition("/part-")[2]
    return f"{folder}/compact-{first}-{last}.parquet"


# ------------------------------------------------------------------------------------- job
# A job: inputs mapped into a folder, part by part, so that a stopped job can continue.


Engine: TypeAlias = AbstractContextManager[Callable[[Iterable[Task]], Iterator[Part]]]
"""A context manager that yields a function, which performs tasks and yields their parts in the same order."""

_EVERY: Final = 60.0
"""Seconds between two progress messages if there is no terminal for a progress bar."""


@attrs.frozen(kw_only=True)
class Job:
    """The description of a job. Its parts depend on nothing else.

    Attributes:
        inputs: the inputs.
        output: the folder and format of the parts.
        options: how records are mapped.
        piece_bytes: the bytes of input in a part.
        column: the column of Parquet with the answers.
        additions: the first input and the first part of each run that added inputs.
    """

    inputs: list[Input]
    output: JobOutput
    options: Options = attrs.field(factory=Options)
    piece_bytes: int = 8 * MIB
    column: str = "body"
    additions: tuple[tuple[int, int], ...] = ()

    def description(self) -> dict[str, Any]:
        """Return the job as plain JSON, the first line of its manifest."""
        made = {
            "crosswalk": __version__,
            "format_version": FORMAT_VERSION,
            "options": attrs.asdict(self.options),
            "output": attrs.asdict(self.output, filter=lambda field, _: field.name != "folder"),
            "piece_bytes": self.piece_bytes,
            "column": self.column,
            "inputs": [each.identity for each in self.inputs],
            "places": [
                {"path": each.path, "name": each.name, "changed": each.changed} for each in self.inputs
            ],
            "additions": self.additions,
        }
        plain: dict[str, Any] = orjson.loads(orjson.dumps(made))
        return plain

    @classmethod
    def of_description(cls, made: dict[str, Any], folder: Path | str) -> Job:
        """Return the job with its output in *folder*, from the first line of its manifest.

        Raises:
            ConfigurationError: the line does not describe a job.
        """
        try:
            options = made["options"]
            given = {
                **options,
                "created": _optional(datetime.fromisoformat, options["created"]),
                "layout": _optional(Layout.of_description, options["layout"]),
                "keep": {name: tuple(path) for name, path in options["keep"].items()},
            }
            return cls(
                inputs=_inputs_of(made),
                output=JobOutput(str(folder), **made["output"]),
                options=Options(**given),
                piece_bytes=made["piece_bytes"],
                column=made["column"],
                additions=_additions_of(made),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"{Path(folder) / MANIFEST}: it cannot be read: {error!r}") from None

    @property
    def weight(self) -> int:
        """The bytes of all inputs."""
        return sum(each.size for each in self.inputs)

    def cut(self, part: int = 0) -> Iterator[InputPiece | InputError]:
        """Yield the pieces of the inputs, and an error for each input that cannot be read to its end.

        Args:
            part: the first part that is needed. Inputs whose addition ended before it are not read.
        """
        ends = [start for start, _ in self.additions]
        for (start, number), end in zip([(0, 0), *self.additions], [*ends, None], strict=True):
            following = [first for _, first in self.additions if first > number]
            if not following or following[0] > part:
                yield from pieces(
                    self.inputs[start:end],
                    size=self.piece_bytes,
                    column=self.column,
                    options=self.options,
                    number=number,
                )

    def task(self, piece: InputPiece) -> Task:
        """Return the task to map and store *piece*."""
        return Task(piece, self.options, self.output, self.piece_bytes, self.column)

    def run(self, engine: Engine, *, is_adding: bool = False) -> Total:
        """Do the remaining work of the job, and redo parts with missing or damaged files.

        Args:
            engine: performs the tasks.
            is_adding: whether to add the inputs to the output of an earlier run.

        Raises:
            UsageError: the output belongs to another job.
            StoppedError: a file cannot be written, an input has changed, or a process died.
        """
        try:
            with manifest_at(self.output.folder, self.description(), is_adding=is_adding) as manifest:
                job = self._as_stored(manifest.job)
                settle(self.output.store, manifest)
                damaged = {part.part for part in manifest.parts if any(self.output.damages(part.files))}
                if damaged or not manifest.total.is_done:
                    job._go_on(manifest, engine, damaged)
                return manifest.total
        except OSError as error:
            where = error.filename or self.output.folder
            raise JobStoppedError(f"{where}: {error.strerror or error}; {GOES_ON}") from None
        except InputError as error:
            raise JobStoppedError(str(error)) from None

    def _as_stored(self, description: dict[str, Any]) -> Job:
        """Return this job with all inputs of its manifest, under the names of their first run.

        They are read where this job has them, or else where they were then.
        """
        inputs_by_key: dict[tuple[Any, ...], deque[Input]] = {}
        for each in self.inputs:
            inputs_by_key.setdefault(_key(each), deque()).append(each)
        inputs = []
        for each in _inputs_of(description):
            known_inputs = inputs_by_key.get(_key(each))
            inputs.append(attrs.evolve(known_inputs.popleft(), name=each.name) if known_inputs else each)
        return attrs.evolve(self, inputs=inputs, additions=_additions_of(description))

    def _go_on(self, manifest: JobManifest, engine: Engine, damaged: Set[int]) -> None:
        faults: list[str] = []
        done, is_done = manifest.total.parts, manifest.total.is_done
        first = min({*damaged, done})
        store = self.output.store
        compacted = {file.on_disk for part in manifest.parts for file in part.files if file.within}
        lost = {file for file in compacted if any(self.output.damages([file]))}
        for file in lost:
            store.delete(file.name)

        def tasks() -> Iterator[Task]:
            for piece in self.cut(first):
                if isinstance(piece, InputError):
                    faults.append(str(piece))
                elif piece.number in damaged or piece.number >= done:
                    yield self.task(piece)

        with Progress("mapping", self.weight, in_bytes=True) as progress, engine as perform:
            progress.advance(manifest.total.weight)
            pace = Pace(manifest.total.weight, self.weight)
            for part in perform(tasks()):
                self._see(part)
                if part.part < done:
                    before = manifest.parts[part.part]
                    self._compare(part, before)
                    for file in before.files:
                        if file.within is not None and file.on_disk not in lost:
                            store.delete(file.name)  # its rows are there
                    progress.say(
                        f"{self.output.folder}: part {part.part} was missing or damaged; it is there again"
                    )
                    continue
                manifest.add(part)
                progress.advance(part.weight)
                if line := pace.line(manifest.total):
                    progress.say(line)
        for each in self.inputs[max((start for start, part in self.additions if part <= first), default=0) :]:
            each.check()
        for file in sorted(lost, key=lambda file: file.name):
            manifest.restore(file.name)
        if not is_done:
            manifest.close_with(faults)

    def _see(self, part: Part) -> None:
        """Check that the files of *part*, written on any machine, are visible from here.

        Raises:
            StoppedError: they are not.
        """
        if damage := next(self.output.damages(part.files), None):
            raise JobStoppedError(
                f"{self.output.folder}: files that the workers wrote are not visible from here ({damage}): "
                "input and output must be on a file system that every node shares"
            )

    def _compare(self, again: Part, before: Part) -> None:
        """Check that *again*, a repeated part, equals *before*.

        Raises:
            StoppedError: they differ.
        """
        if again != before:
            raise JobStoppedError(
                f"{self.output.folder}: part {before.part} differs from its first version; "
                "map the inputs again, into another folder"
            )


def _inputs_of(description: dict[str, Any]) -> list[Input]:
    return [
        Input(**{**each, **place, "files": tuple(each["files"])})
        for each, place in zip(description["inputs"], description["places"], strict=True)
    ]


def _additions_of(description: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple((start, part) for start, part in description["additions"])


def _key(each: Input) -> tuple[Any, ...]:
    """Return the properties that stay the same when *each* is moved, as a key."""
    return each.kind, each.size, each.digest, each.files


def _optional(make: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else make(value)


class Pace:
    """The progress of a job as log messages.

    Args:
        before: the bytes that were done in earlier runs.
        weight: all bytes.
        clock: returns monotonic seconds.
    """

    def __init__(self, before: int, weight: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._before = before
        self._weight = weight
        self._clock = clock
        self._began = self._said = clock()

    def line(self, total: Total) -> str | None:
        """Return a progress message, at most once a minute and only without a progress bar, or ``None``."""
        now = self._clock()
        if sys.stderr.isatty() or now - self._said < _EVERY:
            return None
        self._said = now
        rate = (total.weight - self._before) / (now - self._began)
        remaining = (self._weight - total.weight) / rate if rate else 0.0
        share = 100 * total.weight // max(1, self._weight)
        return f"{share} %: {counted(total.records, 'record')}, {rate / 1e6:.1f} MB/s, {remaining:.0f} s left"
