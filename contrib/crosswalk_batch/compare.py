"""``crosswalk diff`` for output of ``crosswalk batch``: maps each part again, on all cores, and compares."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from crosswalk.commands import Comparison, Failure, Progress, ReportRow, UsageError, say

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswalk_batch.inputs import StoredFile
    from crosswalk_batch.job import Job, JobOutput
    from crosswalk_batch.manifest import Part
    from crosswalk_batch.pieces import InputPiece


def compare(folder: Path, arguments: argparse.Namespace, comparison: Comparison) -> int:
    """Compare *folder* with a new mapping of the same inputs, or with the output of another batch. Returns the failures.

    Raises:
        UsageError: the inputs differ from those that were mapped, or have changed.
    """
    from crosswalk_batch.inputs import InputError, find_inputs
    from crosswalk_batch.job import Job, cores, processes
    from crosswalk_batch.manifest import MANIFEST, read_manifest

    description, parts = read_manifest(folder)
    job = Job.of_description(description, folder)
    if job.output.columns:
        raise UsageError(f"{folder} has only some of the columns, so changes cannot be found")
    paths = arguments.paths
    other: Job | None = None
    others: list[Part] = []
    if len(paths) == 1 and (Path(paths[0]) / MANIFEST).is_file():
        other_description, others = read_manifest(Path(paths[0]))
        other = Job.of_description(other_description, Path(paths[0]))
        if any(other_description[key] != description[key] for key in ("inputs", "piece_bytes", "column")):
            raise UsageError(f"{paths[0]} and {folder} hold the answers of other inputs, or in other parts")
    elif paths:
        inputs = find_inputs(paths, folder)
        if [each.identity for each in inputs] != description["inputs"]:
            raise UsageError(f"{folder} holds the answers of other inputs, or they have changed since")
        names = [place["name"] for place in description["places"]]
        inputs = [attrs.evolve(each, name=name) for each, name in zip(inputs, names, strict=True)]
        job = attrs.evolve(job, inputs=inputs)
    options = attrs.evolve(job.options, provider=arguments.provider or job.options.provider)
    job = attrs.evolve(job, options=options)
    failed = 0

    @cache
    def is_undamaged(output: JobOutput, file: StoredFile) -> bool:
        nonlocal failed
        for damage in output.damages([file], with_checksums=True):
            failed += 1
            say(f"{output.folder}: {damage}")
            return False
        return True

    def is_whole(output: JobOutput, part: Part) -> bool:
        return all(is_undamaged(output, file.on_disk) for file in part.files)

    def tasks() -> Iterator[_Task]:
        nonlocal failed
        if other is not None:
            for one, another in zip(parts, others, strict=False):
                if is_whole(job.output, one) and is_whole(other.output, another):
                    yield _Task(job, one, None, other, another, one.weight, job_accepted)
            return
        for piece in job.cut():
            if isinstance(piece, InputError):
                failed += 1
                say(str(piece))
            elif piece.number < len(parts) and is_whole(job.output, parts[piece.number]):
                yield _Task(job, parts[piece.number], piece, None, None, piece.weight, job_accepted)

    job_accepted = comparison.summary.accepted
    try:
        with (
            Progress("comparing", job.weight, in_bytes=True) as progress,
            processes(_compare_part, cores()) as perform,
        ):
            for weight, result in perform(tasks()):
                comparison.include(result)
                progress.advance(weight)
    except InputError as error:
        raise UsageError(str(error)) from None
    return failed


def report_rows(folder: Path) -> Iterator[ReportRow]:
    """Yield the exchanges in *folder*, as ``crosswalk report`` counts them."""
    from crosswalk_batch.report import report_rows

    return report_rows(folder)


@attrs.frozen(eq=False)
class _Task:
    """A part to compare: with a new mapping of *piece*, or with the same part of the job *other*."""

    job: Job
    part: Part
    piece: InputPiece | None
    other: Job | None
    other_part: Part | None
    weight: int
    accepted: Set[tuple[str, str, str, str]]


def _compare_part(task: _Task) -> tuple[int, Comparison]:
    from crosswalk_batch.job import mapped, read_part

    before = read_part(task.job.output, task.part, task.job.options)
    if task.other is not None and task.other_part is not None:
        after = read_part(task.other.output, task.other_part, task.other.options)
    else:
        assert task.piece is not None
        after = mapped(task.job.task(task.piece))
    comparison = Comparison(task.accepted)
    if before.responses.equals(after.responses) and before.rejects.equals(after.rejects):
        comparison.add_same(before.responses.num_rows + before.rejects.num_rows)
        return task.weight, comparison
    old, new = _outcomes(before), _outcomes(after)
    nothing = Failure("absent", "")
    for key in {**old, **new}:
        source, number, name = key
        place = f"{source}:{number}" + (f" ({name})" if name else "")
        comparison.add(place, old.get(key, nothing), new.get(key, nothing))
    return task.weight, comparison


def _outcomes(found: Any) -> dict[tuple[Any, ...], Any]:
    """Return every outcome of a part by its origin."""
    from crosswalk_batch.columns import from_arrow

    rejects = found.rejects.to_pylist()
    return {
        **dict(zip(_origins(found.responses), from_arrow(found.responses), strict=True)),
        **dict(
            zip(
                _origins(found.rejects),
                (Failure(row["error"], row["message"]) for row in rejects),
                strict=True,
            )
        ),
    }


def _origins(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.select(["source", "number", "record_id"]).to_pylist()]
