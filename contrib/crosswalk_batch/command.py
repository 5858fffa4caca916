"""Map logs of recorded answers to columns: JSON Lines (plain, gzip, zstd), folders of captures, Parquet with a column of
bytes, HAR files, results of OpenAI's and Anthropic's batches. DIR gets parts of Parquet in responses/ and rejects/, and a
manifest: a job that was stopped goes on where it was, and one that is done is not done again. The same input gives the
same bytes, however many processes work on it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from crosswalk.commands import (
    FAILED,
    OK,
    UsageError,
    counted,
    guessed,
    http_status,
    say,
    whole_number,
    zoned_time,
)

if TYPE_CHECKING:
    from crosswalk_batch.job import Engine, Job

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what can be said to ``crosswalk batch``."""
    parser.epilog = (
        "Exit status: 0 every record was mapped, 1 some are rejects, or the job was stopped; 2 nothing was tried. "
        "Example: crosswalk batch logs/*.jsonl.gz --output columns"
    )
    parser.add_argument("paths", nargs="*", metavar="INPUT", help="files and folders")
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder for what comes of it")
    parser.add_argument(
        "--format", choices=("parquet", "jsonl"), default="parquet", help="what to write (default: parquet)"
    )
    parser.add_argument(
        "--partition-by",
        type=_partitions,
        default=(),
        metavar="NAMES",
        help="put responses into folders by day, provider, or both with a comma between (default: one folder)",
    )
    parser.add_argument(
        "--provider",
        metavar="NAME",
        help="the provider id (default: what a record says, or found out from each answer)",
    )
    parser.add_argument(
        "--status",
        type=http_status,
        metavar="N",
        help="the HTTP status (default: what a record says, else 200)",
    )
    parser.add_argument(
        "--unknown",
        choices=("raise", "keep"),
        default="raise",
        help="reject an event or finish word that no mapping knows, or keep it (default: raise)",
    )
    parser.add_argument(
        "--body-path",
        metavar="PATH",
        help="where in a line its answer stands, such as response.body (default: found out)",
    )
    parser.add_argument(
        "--column",
        default="body",
        metavar="NAME",
        help="the column of Parquet with the answers (default: body)",
    )
    parser.add_argument(
        "--created",
        type=zoned_time,
        default=datetime(1970, 1, 1, tzinfo=UTC),
        metavar="TIME",
        help="the time of answers that do not say theirs, in ISO 8601 with a zone (default: 1970-01-01T00:00:00Z)",
    )
    parser.add_argument(
        "--raw", action="store_true", help="keep the provider's own events too, as raw_events"
    )
    parser.add_argument(
        "--part-size",
        type=whole_number,
        default=8,
        metavar="MIB",
        help="how much input makes a part (default: 8)",
    )
    parser.add_argument(
        "--jobs", type=whole_number, metavar="N", help="processes to use (default: one for each core)"
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="let a Ray cluster do it: auto, local, or its address"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do the job.

    Raises:
        UsageError: an input is not there, or the output belongs to another job.
        PluginError: the provider that was named cannot be used.
    """
    from pathlib import Path

    from crosswalk import registry
    from crosswalk.records import body_path

    try:
        from crosswalk_batch.batches import Options
        from crosswalk_batch.engines import StoppedError
        from crosswalk_batch.inputs import MIB, find_inputs
        from crosswalk_batch.job import Job
        from crosswalk_batch.parts import Output
    except ImportError as error:
        raise UsageError(f"{error}: install the extra batch: pip install 'crosswalk-llm[batch]'") from None

    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    try:
        path = None if arguments.body_path is None else body_path(arguments.body_path)
    except ValueError as error:
        raise UsageError(f"--body-path: {error}") from None
    job = Job(
        inputs=find_inputs(arguments.paths, Path(arguments.output)),
        output=Output(arguments.output, arguments.format, arguments.partition_by),
        options=Options(
            provider=arguments.provider,
            prefer=arguments.settings.default_provider,
            status=arguments.status,
            unknown=arguments.unknown,
            created=arguments.created.astimezone(UTC),
            include_raw=arguments.raw,
            body_path=path,
        ),
        piece_bytes=arguments.part_size * MIB,
        column=arguments.column,
    )
    try:
        total = job.run(_engine(arguments, job))
    except StoppedError as error:
        say(f"crosswalk batch: {error}")
        return FAILED
    for fault in total.faults:
        say(fault)
    kinds = ", ".join(f"{count:,} {error}" for error, count in total.errors.most_common())
    say(
        f"{counted(total.records, 'record')}: {total.records - total.rejects:,} mapped, {total.rejects:,} rejected"
        f"{kinds and f' ({kinds})'}"
    )
    if total.guesses:
        say(guessed(total.guesses))
    return FAILED if total.rejects or total.faults else OK


def _engine(arguments: argparse.Namespace, job: Job) -> Engine:
    from crosswalk_batch.parts import perform

    if arguments.ray is not None:
        try:
            from crosswalk_batch.ray import tasks_on
        except ImportError as error:
            raise UsageError(f"{error}: install the extra ray: pip install 'crosswalk-llm[ray]'") from None
        return tasks_on(arguments.ray, perform)
    from crosswalk_batch.engines import cores, processes

    is_short = (
        all(each.kind in ("lines", "captures") for each in job.inputs) and job.weight <= job.piece_bytes
    )
    return processes(perform, arguments.jobs or (1 if is_short else cores()))


def _partitions(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not {*names} <= {"day", "provider"} or len({*names}) != len(names):
        raise argparse.ArgumentTypeError(f"not day, provider, or both with a comma between: {text!r}")
    return names
