"""A job on one machine: inputs mapped into a folder, part by part. Each part has a receipt, which is written last.

A receipt in ``crosswalk-batch/`` says what its part holds: the pieces of its inputs, known by their content, how they were
mapped and by which version, the records, and each file with its size and checksum. A part is done if its receipt is there
and its files are what the receipt says. There is no other list, so nothing can contradict the files: a run does the pieces
that no receipt names, and files that no receipt names are left over from a run that was killed, and are deleted.

The receipt also names its run, the inputs that were added together. So an output is done when each run has all its inputs,
each to its last piece. Processes share nothing but the files: each writes its parts and their receipts in any order.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from itertools import count, filterfalse
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import attrs
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswalk import __version__
from crosswalk.codec import FORMAT_VERSION
from crosswalk.commands import Progress, UsageError, WorkerError, counted, say
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.records import Layout, LogFileError, load_layout
from crosswalk_batch.batches import Normalized, Options, normalize_batch, rejects_schema, responses_schema
from crosswalk_batch.inputs import MIB, Input, InputError, OutputStore, StoredFile
from crosswalk_batch.pieces import InputPiece, blocks, cut, grouped, holds_records

fcntl = import_module("fcntl") if find_spec("fcntl") else None  # Windows has none
_GOES_ON: Final = "finished parts are stored, and the same command continues from there"


class JobStoppedError(CrosswalkError):
    """A job was stopped before its end. Finished parts are stored, and running the same job again continues from there."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ------------------------------------------------------------------------------------- job

RESPONSES_FOLDER: Final = "responses"
REJECTS_FOLDER: Final = "rejects"
RECEIPTS_FOLDER: Final = "crosswalk-batch"
_BEGUN: Final = f"{RECEIPTS_FOLDER}/begun"
"""An empty file that is there from the beginning of a job to its first receipt. Only then are parts without one its own."""
_RECEIPT: Final = re.compile(rf"{RECEIPTS_FOLDER}/part-\d{{6,}}\.json")


@attrs.frozen(kw_only=True)
class Job:
    """How inputs are mapped and written. A folder holds the output of one job.

    Attributes:
        folder: the absolute path or URL of the output.
        partition_by: the values to partition responses by, the outermost first. See :data:`PARTITIONS`.
        columns: the columns of responses to write, in addition to ``source`` and ``number``, or empty for all.
        options: how records are mapped.
        piece_bytes: the bytes of input in a part.
        column: the column of Parquet with the answers.
    """

    folder: str
    partition_by: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    columns: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    options: Options = attrs.field(factory=Options)
    piece_bytes: int = 8 * MIB
    column: str = "body"

    def description(self) -> dict[str, Any]:
        """Return the job as plain JSON, with the version that does it, and without its folder."""
        made = attrs.asdict(self, filter=lambda field, _: field.name != "folder")
        plain: dict[str, Any] = orjson.loads(orjson.dumps(made))
        return {"crosswalk": __version__, "format_version": FORMAT_VERSION, **plain}

    @classmethod
    def of_description(cls, made: Mapping[str, Any], folder: str) -> Job:
        """Return the job with its output in *folder* that a receipt describes."""
        options = made["options"]
        created, layout = options["created"], options["layout"]
        given = {
            **options,
            "created": created and datetime.fromisoformat(created),
            "layout": layout and Layout.of_description(layout),
            "keep": {name: tuple(path) for name, path in options["keep"].items()},
        }
        names = {field.name for field in attrs.fields(cls)} & made.keys()
        return cls(folder=folder, **{**{name: made[name] for name in names}, "options": Options(**given)})


_COUNTS: Final = ("guesses", "layouts", "left_out")


def _counters(counts: Mapping[str, Mapping[str, int]]) -> dict[str, Counter[str]]:
    return {name: Counter(counts[name]) for name in counts}


def _sums(several: Iterable[Mapping[str, Counter[str]]]) -> dict[str, Counter[str]]:
    """Return the sums of *several* counts by name. There is one for each name."""
    sums: dict[str, Counter[str]] = {name: Counter() for name in ("errors", *_COUNTS)}
    for counts in several:
        for name in counts:
            sums[name] += counts[name]
    return sums


def _checksum(made: Mapping[str, Any]) -> str:
    """Return the checksum of a receipt, in hexadecimal."""
    rest = {name: value for name, value in made.items() if name != "sha256"}
    return hashlib.sha256(orjson.dumps(rest)).hexdigest()


@attrs.frozen
class Receipt:
    """The contents of a part, written when all its files are there.

    Attributes:
        part: its number, from 0.
        job: how it was made. See :meth:`Job.description`.
        run: the id of the run that it belongs to.
        inputs: the number of inputs of that run.
        pieces: the pieces of inputs in it.
        records: the number of its records.
        counts: ``errors``, the number of records that could not be mapped, by the name of the error, and the counts of
            :class:`crosswalk_batch.Normalized`.
        faults: why inputs could not be read to their end.
        files: its files.
    """

    part: int
    job: dict[str, Any]
    run: str
    inputs: int
    pieces: tuple[InputPiece, ...]
    records: int = 0
    counts: dict[str, Counter[str]] = attrs.field(factory=dict, converter=_counters)
    faults: tuple[str, ...] = ()
    files: tuple[StoredFile, ...] = ()

    @classmethod
    def of_json(cls, data: bytes) -> Receipt:
        """Return the receipt in a file.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: it is none.
        """
        made = orjson.loads(data)
        if _checksum(made) != made.pop("sha256"):
            raise ValueError("it is not what was written")
        pieces = [InputPiece(**{**piece, "input": Input(**piece["input"])}) for piece in made.pop("pieces")]
        files = [StoredFile(**file) for file in made.pop("files")]
        faults = tuple(made.pop("faults"))
        return cls(**made, pieces=tuple(pieces), faults=faults, files=tuple(files))

    def to_json(self) -> bytes:
        """Return the content of its file."""
        made = attrs.asdict(self, filter=lambda field, _: field.name != "data")
        return orjson.dumps(made | {"sha256": _checksum(made)})

    @property
    def name(self) -> str:
        """The name of its file in the output."""
        return f"{RECEIPTS_FOLDER}/part-{self.part:06}.json"

    @property
    def weight(self) -> int:
        """The bytes of input that it covers."""
        return sum(piece.weight for piece in self.pieces)


def total(receipts: Sequence[Receipt], faults: Iterable[str] = ()) -> Receipt:
    """Return the sum of *receipts*, with the further *faults* of their inputs."""
    known = dict.fromkeys([*(fault for one in receipts for fault in one.faults), *faults])
    pieces = tuple(piece for one in receipts for piece in one.pieces)
    records, counts = sum(one.records for one in receipts), _sums(one.counts for one in receipts)
    return Receipt(len(receipts), {}, "", 0, pieces, records, counts, tuple(known))


def read_receipts(folder: str) -> list[Receipt]:
    """Return the receipts of the output in *folder*, by number. Other files, such as a draft of one, are none.

    Raises:
        ConfigurationError: one cannot be read, or the folder was written by an earlier version.
    """
    store = OutputStore(folder)
    if store.folder is not None and (store.folder / "crosswalk-batch.jsonl").exists():
        raise ConfigurationError(f"{folder}: an earlier version wrote it; map the inputs into another folder")
    receipts = []
    for name in filter(_RECEIPT.fullmatch, store.sizes(RECEIPTS_FOLDER)):
        try:
            receipts.append(Receipt.of_json(store.read(name)))
            if name != receipts[-1].name:
                raise ValueError(f"it is the receipt of part {receipts[-1].part}")
            if receipts[-1].job != receipts[0].job or len(receipts) == 1:
                Job.of_description(receipts[-1].job, folder)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigurationError(f"{folder}/{name}: it cannot be read: {error}") from None
    return receipts


def unfinished(receipts: Iterable[Receipt]) -> set[str]:
    """Return the runs that have not all their inputs, each from its first piece to the last."""
    numbers: dict[tuple[Any, ...], set[int]] = {}
    last: dict[tuple[Any, ...], int] = {}
    runs: dict[str, tuple[int, set[tuple[Any, ...]]]] = {}
    for receipt in receipts:
        for piece in receipt.pieces:
            numbers.setdefault(piece.input.key, set()).add(piece.number)
            runs.setdefault(receipt.run, (receipt.inputs, set()))[1].add(piece.input.key)
            if piece.is_last:
                last[piece.input.key] = piece.number
    whole = {key for key, found in numbers.items() if len(found) - 1 == last.get(key)}
    return {run for run, (inputs, keys) in runs.items() if len(keys & whole) < inputs}


def say_what_is_open(folder: str, receipts: Sequence[Receipt], others: Sequence[str]) -> None:
    """Say that the job in *folder* is not done, and that no receipt names *others*, its files."""
    if unfinished(receipts):
        say(f"{folder}: the job is not done yet")
    if others:
        say(f"{folder}: no receipt names {counted(len(others), 'file')}, such as {others[0]}")


def damages(
    folder: str, receipts: Iterable[Receipt], *, with_checksums: bool = False
) -> dict[int, list[str]]:
    """Return a message for each file that is missing or differs from the one that was written, by the number of its part.

    Args:
        folder: the output.
        receipts: its receipts.
        with_checksums: read the files instead of comparing only their sizes.
    """
    store = OutputStore(folder)
    sizes = {**store.sizes(RESPONSES_FOLDER), **store.sizes(REJECTS_FOLDER)}
    results: dict[int, list[str]] = {}
    for receipt in receipts:
        for file in receipt.files:
            if (size := sizes.get(file.name)) is None:
                fault = "is missing"
            elif size == file.size and not (
                with_checksums and StoredFile.of(file.name, store.read(file.name)) != file
            ):
                continue
            else:
                fault = "is damaged: it is not what was written; delete it and run the batch again"
            results.setdefault(receipt.part, []).append(f"{file.name} {fault}")
    return results


# ------------------------------------------------------------------------------------ runs


Engine: TypeAlias = AbstractContextManager[Callable[[Iterable["Task"]], Iterator[Receipt]]]
"""A context manager that yields a function, which performs tasks and yields their receipts."""


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep other processes from writing to *folder*, except in object storage."""
    place = OutputStore(folder).folder
    try:
        if place is not None:
            (place / RECEIPTS_FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}") from None
    if place is None or fcntl is None:
        yield
        return
    lock = os.open(place / RECEIPTS_FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"{folder}: another process writes there") from None
    finally:
        os.close(lock)


def run(job: Job, inputs: Sequence[Input], engine: Engine, *, is_adding: bool = False) -> Receipt:
    """Do what remains of *job*, and repeat parts with missing or damaged files. Returns the sum of all parts.

    Args:
        job: what is done.
        inputs: the inputs.
        engine: performs the tasks.
        is_adding: whether to add the inputs to those of the output. Those that are in it already are not.

    Raises:
        UsageError: the output belongs to another job.
        JobStoppedError: a file cannot be written, an input has changed, or a process died.
    """
    try:
        with _locked(job.folder):
            return _run(job, inputs, engine, is_adding)
    except WorkerError as error:
        raise JobStoppedError(f"{error}; {_GOES_ON}") from None
    except OSError as error:
        where = error.filename or job.folder
        raise JobStoppedError(f"{where}: {error.strerror or error}; {_GOES_ON}") from None
    except InputError as error:
        raise JobStoppedError(str(error)) from None


def _run(job: Job, inputs: Sequence[Input], engine: Engine, is_adding: bool) -> Receipt:
    receipts = read_receipts(job.folder)
    _check_job(job, receipts)
    begun = unfinished(receipts)
    inputs, grown = _as_begun(inputs, [each for one in receipts if one.run in begun for each in one.pieces])
    done = {piece.key: piece.input.name for one in receipts for piece in one.pieces}
    names = {key[:-1]: name for key, name in done.items()}
    ends = [piece for one in receipts if one.run not in begun for piece in one.pieces if piece.is_last]
    whole = {piece.input.key for piece in ends}
    here = {each.key for each in inputs}
    new, faults = _beginnings(
        [each for each in inputs if each.key not in whole],
        [piece for piece in ends if piece.input.key not in here],
    )
    run_id = hashlib.sha256(repr(sorted(each.key for each, _, _ in new)).encode()).hexdigest()[:16]
    if begun - {run_id}:
        runs = {one.run: one.inputs for one in receipts if one.run in begun}
        known = dict.fromkeys(each.input for one in receipts if one.run in begun for each in one.pieces)
        some = ", ".join([each.name for each in known])
        more = (
            f" and {counted(unknown, 'more input')}" if (unknown := sum(runs.values()) - len(known)) else ""
        )
        first = f"run that first, with its inputs alone, {some}{more}"
        raise UsageError(f"{job.folder}: its job is not done; {first}; then add others to it")
    if receipts and not begun and not is_adding and (new or faults or whole - here):
        raise UsageError(_OTHER.format(job.folder, "inputs", "--add adds inputs to it; or "))
    _delete_left_over(job.folder, receipts)
    damaged = damages(job.folder, receipts)

    def undone() -> Iterator[InputPiece | None]:
        for each, first, start in new:
            named = attrs.evolve(each, name=names.get(each.key, each.name))
            for piece in cut(named, job.piece_bytes, first, start):
                yield None if piece.key in done else piece

    def tasks() -> Iterator[Task]:
        for receipt, pieces in read_again([one for one in receipts if one.part in damaged], inputs):
            yield Task(job, receipt, pieces, is_repeat=True)
        free = filterfalse({one.part for one in receipts}.__contains__, count())
        for group in _groups(undone(), job.piece_bytes):
            stored = tuple(attrs.evolve(piece, data=None) for piece in group)
            yield Task(job, Receipt(next(free), job.description(), run_id, len(new), stored), group)

    with Progress("mapping", sum(each.size for each, _, _ in new), in_bytes=True) as progress:
        progress.advance(sum(one.weight for one in receipts if one.run == run_id))
        with engine as perform:
            for receipt in perform(tasks()) if new or damaged else ():
                if receipt.part in damaged:
                    what = f"part {receipt.part} was missing or damaged; it is there again"
                    progress.say(f"{job.folder}: {what}")
                else:
                    if not receipts:
                        OutputStore(job.folder).delete(_BEGUN)
                    receipts.append(receipt)
                    progress.advance(receipt.weight)
    return total(receipts, [*faults, *grown])


def _as_begun(inputs: Sequence[Input], begun: Iterable[InputPiece]) -> tuple[list[Input], list[str]]:
    """Return *inputs*, and a message for each that has grown since its run was *begun*. It ends where it ended then."""
    here = {each.key for each in inputs}
    left = {piece.input.key: piece.input for piece in begun if piece.is_range and piece.input.key not in here}
    results, messages = [], []
    for each in inputs:
        if (was := next((one for one in left.values() if each.begins_with(one)), None)) is not None:
            del left[was.key]
            messages.append(f"{each.name}: it has grown since its job was begun; add the rest with --add")
        results.append(each if was is None else attrs.evolve(was, path=each.path, seen=each.seen))
    return results, messages


_OTHER: Final = "{} holds the output of another job ({} differ): {}name another folder, or remove it"
_PART: Final = re.compile(r".*/part-\d{6,}(_\d+)?\.parquet")


def _check_job(job: Job, receipts: Iterable[Receipt]) -> None:
    """Check that *receipts* are those of *job*.

    Raises:
        UsageError: they are of another one.
    """
    described = job.description()
    for receipt in receipts:
        if changed := [name for name, value in described.items() if receipt.job.get(name) != value]:
            raise UsageError(_OTHER.format(job.folder, ", ".join(changed), ""))


def _delete_left_over(folder: str, receipts: Iterable[Receipt]) -> None:
    """Delete the files of parts that have no receipt, because a run was killed before it wrote that.

    Raises:
        UsageError: there are other files, such as an engine writes that puts parts together, or all receipts are lost.
    """
    store = OutputStore(folder)
    is_begun = _BEGUN in store.sizes(RECEIPTS_FOLDER)
    for name in other_files(folder, receipts):
        if _PART.fullmatch(name) is None or not (receipts or is_begun):
            raise UsageError(f"{folder}: no receipt names {name}; name another folder")
        store.delete(name)
    if is_begun and receipts:
        store.delete(_BEGUN)
    elif not receipts:
        store.write(_BEGUN, b"")


def other_files(folder: str, receipts: Iterable[Receipt]) -> list[str]:
    """Return the files of parts in *folder* that no receipt names, without hidden ones."""
    store = OutputStore(folder)
    known = {file.name for receipt in receipts for file in receipt.files}
    there = [*store.sizes(RESPONSES_FOLDER), *store.sizes(REJECTS_FOLDER)]
    return [name for name in there if name not in known and not name.rpartition("/")[2].startswith(".")]


def _beginnings(
    new: Iterable[Input], ends: Sequence[InputPiece]
) -> tuple[list[tuple[Input, int, int]], list[str]]:
    """Return each new input with its first record and byte that is not in the output, and why others cannot be added.

    Args:
        new: inputs that are not in the output.
        ends: the last pieces of those that are, and are not there as they were. An input may have grown out of one of them.
    """
    results, faults = [], []
    for each in new:
        earlier = [
            piece
            for piece in ends
            if piece.input.kind != "capture"
            and each.begins_with(piece.input)
            and holds_records(each, piece.input.size)
        ]
        if not earlier:
            results.append((each, 1, 0))
            continue
        end = max(earlier, key=lambda piece: piece.input.size)
        if each.kind != "lines" or end.rows is None:
            faults.append(
                f"{each.name}: it has grown since it was mapped, and only JSON Lines can be continued"
            )
        elif not end.has_end:
            faults.append(f"{each.name}: it has grown since it was mapped in the middle of a line")
        else:
            results.append((each, end.first + end.rows, end.input.size))
    return results, faults


def _groups(pieces: Iterable[InputPiece | None], size: int) -> Iterator[list[InputPiece]]:
    """Yield the pieces of each part: small ones that follow each other, up to *size* bytes. ``None`` ends a part."""
    group: list[InputPiece] = []
    length = 0
    for piece in pieces:
        taken = 0 if piece is None else piece.weight if piece.data is None else piece.data.nbytes
        if group and (piece is None or length + taken > size):
            yield group
            group, length = [], 0
        if piece is not None:
            group.append(piece)
            length += taken
    if group:
        yield group


def read_again(
    receipts: Iterable[Receipt], inputs: Sequence[Input] = ()
) -> Iterator[tuple[Receipt, list[InputPiece]]]:
    """Yield *receipts* with their pieces, to be read again.

    They are read from *inputs* with the same content, or logs that begin with it, or where they were.

    Raises:
        InputError: another file is where an input was.
    """
    here = {each.key: each for each in inputs}
    cutters: dict[Any, Iterator[InputPiece]] = {}
    for receipt in receipts:
        pieces = []
        for piece in receipt.pieces:
            known, key = piece.input, piece.input.key
            if key not in here and piece.is_range:
                here.update((key, each) for each in inputs if each.begins_with(known))
            if (there := here.get(key)) is not None:
                place = attrs.evolve(known, path=there.path, seen=there.seen)
            else:
                place = known.found(may_be_longer=piece.is_range)
            again = attrs.evolve(piece, input=place)
            if piece.is_passed:
                passed = cutters.setdefault(key, cut(place, receipt.job["piece_bytes"]))
                again = next((one for one in passed if one.number == piece.number), again)
            pieces.append(again)
        yield receipt, pieces


# ----------------------------------------------------------------------------------- parts


@attrs.frozen(eq=False)
class Task:
    """A task for one process.

    Attributes:
        job: how it is done.
        receipt: the receipt of the part, so far as it is known before.
        pieces: the pieces to map.
        is_repeat: whether the receipt was written before, so that the part has to be the same.
    """

    job: Job
    receipt: Receipt
    pieces: Sequence[InputPiece]
    is_repeat: bool = False


def perform(task: Task) -> Receipt:
    """Map the pieces of a task, store the part, and write its receipt. Doing it again gives the same files.

    Raises:
        InputError: an input has changed.
        JobStoppedError: the receipt was written before, and says something else.
        OSError: the part cannot be written. Nothing new of it counts then.
    """
    job, receipt, records = task.job, task.receipt, 0
    faults: list[str] = []
    files: list[StoredFile] = []
    counts: list[dict[str, Counter[str]]] = []
    for number, found in enumerate(mapped(task.pieces, job, faults)):
        records += found.responses.num_rows + found.rejects.num_rows
        errors = Counter(found.rejects["error"].to_pylist())
        counts.append({"errors": errors, **{name: getattr(found, name) for name in _COUNTS}})
        files += _stored(found, job, receipt.part, number)
    made = attrs.evolve(
        receipt, records=records, counts=_sums(counts), faults=tuple(faults), files=tuple(files)
    )
    if task.is_repeat and made != receipt:
        again = "map the inputs again, into another folder"
        raise JobStoppedError(f"{job.folder}: part {made.part} differs from its first version; {again}")
    OutputStore(job.folder).write(made.name, made.to_json())
    return made


def mapped(pieces: Iterable[InputPiece], job: Job, faults: list[str]) -> Iterator[Normalized]:
    """Yield the result for each file of a part. Adds the reasons why inputs end early to *faults*."""
    some: list[Normalized] = []
    length = 0
    for group in grouped(pieces):
        try:
            for batch, layout in blocks(group, job.piece_bytes, job.column, job.options):
                names = {"body", "line"} & {*batch.schema.names}
                taken = sum(batch.column(name).nbytes for name in names)
                if some and length + taken > job.piece_bytes:
                    yield joined(some, job.options)
                    some, length = [], 0
                options = job.options
                if options.layout is None and layout is not None:
                    options = attrs.evolve(
                        options, layout=attrs.evolve(load_layout(layout), is_fallback=True)
                    )
                some.append(normalize_batch(batch, options))
                length += taken
        except LogFileError as error:
            faults.append(f"{group[0].input.name}: {error}")
    if some:
        yield joined(some, job.options)


def joined(results: Iterable[Normalized], options: Options) -> Normalized:
    """Return several results as one."""
    results = [*results]
    return Normalized(
        pa.concat_tables([responses_schema(options).empty_table(), *(one.responses for one in results)]),
        pa.concat_tables([rejects_schema(options).empty_table(), *(one.rejects for one in results)]),
        *(sum((getattr(one, name) for one in results), Counter()) for name in _COUNTS),
    )


def _stored(result: Normalized, job: Job, part: int, number: int) -> Iterator[StoredFile]:
    """Write the files *number* of *part*, each completely or not at all. Empty files are not written."""
    store = OutputStore(job.folder)
    for kind, table, by in (
        (RESPONSES_FOLDER, result.responses, job.partition_by),
        (REJECTS_FOLDER, result.rejects, ()),
    ):
        for partition, rows in partitions(table, by) if table.num_rows else ():
            name = f"part-{part:06}_{number}.parquet" if number else f"part-{part:06}.parquet"
            if job.columns and kind is RESPONSES_FOLDER:
                wanted = {"source", "number", *job.columns}
                rows = rows.select([each for each in rows.schema.names if each in wanted])
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, compression="zstd")
            yield store.write("/".join(filter(None, (kind, partition, name))), memoryview(sink.getvalue()))


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
    rows: dict[str, list[int]] = {}
    columns = [
        [_NULL if one is None else quote(one, safe="") for one in PARTITIONS[name](table).to_pylist()]
        for name in by
    ]
    for row, values in enumerate(zip(*columns, strict=True)):
        folder = "/".join(f"{name}={value}" for name, value in zip(by, values, strict=True))
        rows.setdefault(folder, []).append(row)
    yield from ((folder, table.take(rows[folder])) for folder in sorted(rows)) if by else [("", table)]
