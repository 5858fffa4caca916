"""Output of ``crosswalk batch``, read again: for ``crosswalk diff``, which compares it, and for ``crosswalk report``.

``diff`` maps each part again, on all cores. The rows of a part are those of its files. If an engine has written the files
of the folder anew, put together or in another order, they are found by their origin, and there have to be as many as the
receipt says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence, Set
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from crosswalk.commands import Comparison, Failure, Progress, ReportRow, UsageError, processes, row_of, say
from crosswalk.types import ChatResponse, Provenance
from crosswalk_batch.batches import Normalized
from crosswalk_batch.columns import from_arrow
from crosswalk_batch.inputs import Input, InputError, OutputStore, find_inputs
from crosswalk_batch.job import (
    RECEIPTS_FOLDER,
    REJECTS_FOLDER,
    RESPONSES_FOLDER,
    Job,
    Receipt,
    cores,
    damages,
    joined,
    mapped,
    other_files,
    read_again,
    read_receipts,
    say_what_is_open,
)
from crosswalk_batch.pieces import InputPiece

# ------------------------------------------------------------------------------ comparison


def compare(folder: Path, arguments: argparse.Namespace, comparison: Comparison) -> int:
    """Compare *folder* with a new mapping of the same inputs, or with the output of another batch. Returns the failures.

    Raises:
        UsageError: the inputs differ from those that were mapped, or have changed.
    """
    paths: list[str] = arguments.paths
    receipts, faults, anew = _looked_into(str(folder))
    if any(one.job["columns"] for one in receipts):
        raise UsageError(f"{folder} has only some of the columns, so changes cannot be found")
    inputs: list[Input] = []
    others: dict[int, _Part] = {}
    if len(paths) == 1 and (Path(paths[0]) / RECEIPTS_FOLDER).is_dir():
        found, faults_there, anew_there = _looked_into(paths[0])
        if [_covered(one) for one in receipts] != [_covered(one) for one in found]:
            raise UsageError(f"{paths[0]} and {folder} hold the answers of other inputs, or in other parts")
        others = {one.part: (paths[0], one, anew_there) for one in found}
        faults = {**faults_there, **faults}
    elif paths:
        inputs = find_inputs(paths, folder)
        pieces = {piece.input.key: piece for one in receipts for piece in one.pieces}
        here = {each.key for each in inputs}
        grown = [
            (each.key, key)
            for each in inputs
            for key, piece in pieces.items()
            if key not in here and piece.is_range and each.begins_with(piece.input)
        ]
        if here | {key for _, key in grown} != pieces.keys() | {key for key, _ in grown}:
            raise UsageError(f"{folder} holds the answers of other inputs, or they have changed since")
    for fault in faults:
        say(fault)
    whole = [one for one in receipts if one.part not in faults.values()]

    def tasks() -> Iterator[_Comparing]:
        for receipt, pieces in ((one, []) for one in whole) if others else read_again(whole, inputs):
            job = Job.of_description(receipt.job, str(folder))
            options = attrs.evolve(job.options, provider=arguments.provider or job.options.provider)
            part, job = (str(folder), receipt, anew), attrs.evolve(job, options=options)
            yield _Comparing(part, others.get(receipt.part), job, pieces, comparison.summary.accepted)

    weight = sum(one.weight for one in whole)
    try:
        with (
            Progress("comparing", weight, in_bytes=True) as progress,
            processes(_compared, cores(), arguments.settings) as perform,
        ):
            for receipt, (result, more) in zip(whole, perform(tasks()), strict=True):
                comparison.include(result)
                progress.advance(receipt.weight)
                for fault in more:
                    faults[fault] = receipt.part
                    progress.say(fault)
    except InputError as error:
        raise UsageError(str(error)) from None
    return len(faults)


_Part: TypeAlias = tuple[str, Receipt, tuple[str, ...]]
"""A part: its folder, its receipt, and the files that an engine wrote instead of the job's, or none."""


@attrs.frozen(eq=False)
class _Comparing:
    """A part, and what it is compared with: the same part elsewhere, or else the *pieces*, mapped by the *job*."""

    part: _Part
    other: _Part | None
    job: Job
    pieces: list[InputPiece]
    accepted: Set[tuple[str, str, str, str]]


def _looked_into(folder: str) -> tuple[list[Receipt], dict[str, int], tuple[str, ...]]:
    """Return the receipts of *folder*, what is wrong with its files, and those that an engine wrote instead of them."""
    receipts = read_receipts(folder)
    harm = damages(folder, receipts, with_checksums=True)
    others = tuple(other_files(folder, receipts))
    is_anew = others and len(harm) == sum(bool(one.files) for one in receipts)
    say_what_is_open(folder, receipts, () if is_anew else others)
    if is_anew:
        return receipts, {}, others
    return receipts, {f"{folder}: {one}": part for part, some in harm.items() for one in some}, ()


def _covered(receipt: Receipt) -> list[tuple[Any, ...]]:
    return [(piece.key, piece.start, piece.size) for piece in receipt.pieces]


def _compared(task: _Comparing) -> tuple[Comparison, list[str]]:
    """Return the comparison of a part, and why it could not be compared."""
    folder, receipt, _ = task.part
    faults: list[str] = []
    comparison = Comparison(task.accepted)
    before = _stored(*task.part)
    if task.other is not None:
        after = _renamed(_stored(*task.other), task.other[1].pieces, receipt.pieces)
    else:
        after = joined(mapped(task.pieces, task.job, faults), task.job.options)
    if before.equals(after):
        comparison.add_same(receipt.records)
        return comparison, faults
    if len(before.responses) + len(before.rejects) != receipt.records:
        return comparison, [f"{folder}: rows of part {receipt.part} are missing, or there more than once"]
    old, new = _outcomes(before), _outcomes(after)
    nothing = Failure("absent", "")
    for key in {**old, **new}:
        source, number, name = key
        place = f"{source}:{number}" + (f" ({name})" if name else "")
        comparison.add(place, old.get(key, nothing), new.get(key, nothing))
    return comparison, faults


def _stored(folder: str, receipt: Receipt, anew: tuple[str, ...]) -> Normalized:
    """Return the rows of a part in the order of its records."""
    store = OutputStore(folder)
    nothing = joined((), Job.of_description(receipt.job, folder).options)
    tables = []
    for kind, table in ((RESPONSES_FOLDER, nothing.responses), (REJECTS_FOLDER, nothing.rejects)):
        names = [file.name for file in receipt.files if file.name.startswith(f"{kind}/")]
        if anew and names:
            files = [f"{folder}/{name}" for name in anew if name.startswith(f"{kind}/")]
            dataset = ds.dataset(files, format="parquet")
            table = dataset.to_table(filter=_origins(receipt.pieces, dataset.schema.field("source").type))
        elif names:
            read = [
                pq.ParquetFile(pa.BufferReader(store.read(name))).read(use_threads=False) for name in names
            ]
            table = pa.concat_tables(read)
        is_one_file = len(names) < 2 and not anew
        tables.append(
            table if is_one_file else table.sort_by([("source", "ascending"), ("number", "ascending")])
        )
    return Normalized(*tables)


def _renamed(found: Normalized, pieces: Sequence[InputPiece], to: Sequence[InputPiece]) -> Normalized:
    """Return the rows of *pieces* under the names of the same inputs in *to*."""
    names = {one.input.name: other.input.name for one, other in zip(pieces, to, strict=True)}
    tables = []
    for table in (found.responses, found.rejects):
        sources = [names.get(name, name) for name in table["source"].to_pylist()]
        field = table.schema.field("source")
        tables.append(table.set_column(0, field, pa.chunked_array([pa.array(sources, field.type)])))
    return Normalized(*tables)


def _origins(pieces: Sequence[InputPiece], kind: pa.DataType) -> pc.Expression:
    """Return the condition that a row comes from one of *pieces*. *kind* is the type of the column ``source``."""
    source, number = pc.field("source"), pc.field("number")
    whole = [piece.input.name for piece in pieces if piece.rows is None]
    ranges = (
        (source == piece.input.name) & (number >= piece.first) & (number < piece.first + piece.rows)
        for piece in pieces
        if piece.rows is not None
    )
    return reduce(or_, ranges, source.isin(pa.array(whole, kind)))


def _outcomes(found: Normalized) -> dict[tuple[Any, ...], ChatResponse | Failure]:
    """Return every outcome of a part by its origin."""
    failures = (Failure(row["error"], row["message"]) for row in found.rejects.to_pylist())
    origins = (
        tuple(row.values())
        for table in (found.responses, found.rejects)
        for row in table.select(["source", "number", "record_id"]).to_pylist()
    )
    return dict(zip(origins, (*from_arrow(found.responses), *failures), strict=True))


# ---------------------------------------------------------------------------------- report


_LABELS: Final = (
    "status",
    "session",
    "user",
    "tags",
    "team",
    "tier",
    "vendor",
    "vendor_source",
    "logged_vendor",
)
_IDS: Final = ("record_id", "trace_id", "parent")
_FACTS: Final = (*_LABELS, *_IDS, "time", "latency_seconds", "cost", "cost_source", "requested_model")
_ANSWER: Final = (
    *_FACTS,
    "id",
    "model",
    "created",
    "message",
    "finish_reason",
    "usage",
    "metadata",
    "error_kind",
)
_REJECT: Final = (*_FACTS, "provider", "error", "partial")


def report_rows(folder: Path) -> Iterator[ReportRow]:
    """Yield the exchanges in the columns of *folder*.

    Raises:
        UsageError: a column that a report needs is missing, or a file is damaged.
    """
    receipts = read_receipts(str(folder))
    others = other_files(str(folder), receipts)
    is_anew = len(damages(str(folder), receipts)) == sum(bool(one.files) for one in receipts)
    say_what_is_open(str(folder), receipts, () if is_anew else others)
    for kind, names, rows in ((RESPONSES_FOLDER, _ANSWER, _answers), (REJECTS_FOLDER, _REJECT, _rejects)):
        # The partitions of a part follow each other, so that the spans of one trace are near each other.
        found = sorted((folder / kind).rglob("*.parquet"), key=lambda file: (file.name, file))
        files = [str(file) for file in found]
        if not files:
            continue
        try:
            dataset = ds.dataset(files, format="parquet")
            if missing := {*names} - {*dataset.schema.names}:
                raise UsageError(f"{folder}: a report needs the column {min(missing)}")
            for batch in dataset.to_batches(columns=list(names)):
                yield from rows(batch)
        except (OSError, pa.ArrowException):
            raise UsageError(f"{folder}: a file is damaged; crosswalk batch --verify names it") from None


def _known(row: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a row beside its answer."""
    span, parent = (
        None if row[name] is None else (row["trace_id"], row[name]) for name in ("record_id", "parent")
    )
    facts = {
        "span": span,
        "parent": parent,
        "time": row["time"],
        "latency": row["latency_seconds"],
        "cost": row["cost"],
    }
    return {
        **facts,
        "is_estimated": row["cost_source"] == "estimated",
        **{name: row[name] for name in _LABELS},
    }


def _row(row: dict[str, Any], response: ChatResponse, error: str | None) -> ReportRow:
    found = row_of(response, **_known(row), error=error)
    found = attrs.evolve(found, model=found.model or row["requested_model"])
    if response.metadata.provenance.get("message.content") is not Provenance.ABSENT:
        return found
    return attrs.evolve(found, has_answer=False, finish_reason=None)  # only what the log states


def _answers(batch: pa.RecordBatch) -> Iterator[ReportRow]:
    facts = batch.select([*_FACTS, "error_kind"]).to_pylist()
    for row, response in zip(facts, from_arrow(batch), strict=True):
        yield _row(row, response, row["error_kind"])


def _rejects(batch: pa.RecordBatch) -> Iterator[ReportRow]:
    partials = batch.column("partial")
    answers = iter(from_arrow(pa.RecordBatch.from_struct_array(partials.drop_null())))
    facts = batch.select([*_FACTS, "provider", "error"]).to_pylist()
    for row, has_partial in zip(facts, partials.is_valid().to_pylist(), strict=True):
        error = "unreadable" if row["error"] == "RecordError" else row["error"]
        stated = {"model": row["requested_model"], "provider": row["provider"]}
        if not has_partial:
            yield ReportRow(**_known(row), **stated, error=error, is_unread=True)
        elif (found := _row(row, next(answers), error)).has_answer:
            yield found
        else:
            yield attrs.evolve(found, **stated, is_unread=True, has_answer=True)
