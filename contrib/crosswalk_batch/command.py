"""Map logs of recorded answers to columns: JSON Lines (plain, gzip, zstd), folders of captures, Parquet with a column of
bytes, HAR files, results of OpenAI's and Anthropic's batches. DIR gets parts of Parquet in responses/ and rejects/, and a
manifest: a job that was stopped goes on where it was, and one that is done is not done again. The same input gives the
same bytes, however many processes work on it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crosswalk.commands import (
    FAILED,
    OK,
    UsageError,
    add_layout_arguments,
    counted,
    guessed,
    http_status,
    layout_from,
    left_out,
    say,
    whole_number,
    written,
    zoned_time,
)
from crosswalk.types.json import dump_json

if TYPE_CHECKING:
    from crosswalk_batch.job import Engine, Job
    from crosswalk_batch.manifest import Total


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``crosswalk batch``."""
    parser.epilog = (
        "Exit status: 0 done, whatever was rejected; 1 done, but an input is damaged, or there are more rejects than "
        "--max-rejects allows; 2 wrong use, nothing was tried; 3 stopped: the same command goes on. "
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
        help="the provider id (default: the record's provider, or detected from each answer)",
    )
    parser.add_argument(
        "--status",
        type=http_status,
        metavar="N",
        help="the HTTP status (default: the status in the record, else 200)",
    )
    parser.add_argument(
        "--unknown",
        choices=("raise", "keep"),
        default="raise",
        help="reject an event or finish word that no mapping knows, or keep it (default: raise)",
    )
    add_layout_arguments(parser)
    parser.add_argument(
        "--keep",
        type=_kept,
        default={},
        metavar="PATHS",
        help="further values of each line to keep as columns, such as tenant,client=request.user",
    )
    parser.add_argument(
        "--prices",
        action="store_true",
        help="estimate missing costs by list prices (needs the extra prices)",
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
        metavar="TIME",
        help="the time of answers without a time in the answer or the log, in ISO 8601 with a zone (default: null)",
    )
    parser.add_argument(
        "--raw", action="store_true", help="keep the provider's own events too, as raw_events"
    )
    content = parser.add_mutually_exclusive_group()
    content.add_argument(
        "--no-content",
        dest="content",
        action="store_const",
        const="drop",
        help="leave out what people wrote and models answered, also from rejects",
    )
    content.add_argument(
        "--hash-content",
        dest="content",
        action="store_const",
        const="hash",
        help="write the SHA-256 of texts in their place",
    )
    parser.add_argument(
        "--columns",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="NAMES",
        help="write only these columns of responses, plus source and number (default: all)",
    )
    parser.add_argument(
        "--part-size",
        type=whole_number,
        default=8,
        metavar="MIB",
        help="how much input makes a part (default: 8)",
    )
    parser.add_argument(
        "--max-rejects",
        type=_limit,
        metavar="N",
        help="how many records, or per cent of them as in 0.5%%, may be rejects for exit status 0 (default: any number)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="map nothing: read every file of the output, and list those that are missing or damaged",
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="add the inputs to an output that is done, such as a new day; those that are in it already are left out",
    )
    parser.add_argument(
        "--compact",
        action="store_true",
        help="then put the files of Parquet together to files of 256 MB; without INPUT, those of an output that is done",
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write what was done there as JSON, by error and by layout"
    )
    parser.add_argument(
        "--jobs", type=whole_number, metavar="N", help="processes to use (default: one for each core)"
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="let a Ray cluster do it: auto, local, or its address"
    )


_STOPPED: Final = 3
"""The exit status of a stopped job, which the same command continues."""


def run(arguments: argparse.Namespace) -> int:
    """Run the job.

    Raises:
        UsageError: an input is missing, or the output belongs to another job.
        PluginError: the provider cannot be used.
    """
    from crosswalk import registry

    try:
        from crosswalk_batch.batches import Options, responses_schema
        from crosswalk_batch.inputs import MIB, absolute, find_inputs
        from crosswalk_batch.job import Job, JobOutput as Output, JobStoppedError as StoppedError
    except ImportError as error:
        raise UsageError(f"{error}: install the extra batch: pip install 'crosswalk-llm[batch]'") from None

    if arguments.verify:
        return _verify(absolute(arguments.output))
    if arguments.compact and not arguments.paths:
        return _compact(absolute(arguments.output))
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    if arguments.format == "jsonl" and (arguments.content is not None or arguments.columns):
        raise UsageError("--no-content, --hash-content and --columns are for Parquet")
    passed_over: list[str] = []
    job = Job(
        inputs=find_inputs(arguments.paths, arguments.output, passed_over),
        output=Output(
            absolute(arguments.output), arguments.format, arguments.partition_by, arguments.columns
        ),
        options=Options(
            provider=arguments.provider,
            prefer=arguments.settings.default_provider,
            status=arguments.status,
            unknown=arguments.unknown,
            created=arguments.created and arguments.created.astimezone(UTC),
            include_raw=arguments.raw,
            layout=layout_from(arguments),
            keep=arguments.keep,
            with_prices=arguments.prices,
            content=arguments.content or "keep",
        ),
        piece_bytes=arguments.part_size * MIB,
        column=arguments.column,
    )
    if unknown := {*arguments.columns} - {*responses_schema(job.options).names}:
        raise UsageError(f"--columns: no column {min(unknown)!r}")
    try:
        total = job.run(_engine(arguments, job), is_adding=arguments.add)
    except StoppedError as error:
        say(f"crosswalk batch: {error}")
        return _STOPPED
    for fault in total.faults:
        say(fault)
    if passed_over:
        some = ", ".join(passed_over[:3]) + (", …" if passed_over[3:] else "")
        say(f"passed over {counted(len(passed_over), 'file')} without a log in it: {some}")
    kinds = ", ".join(f"{count:,} {error}" for error, count in total.errors.most_common())
    say(
        f"{counted(total.records, 'record')}: {total.records - total.rejects:,} mapped, {total.rejects:,} rejected"
        f"{kinds and f' ({kinds})'}"
    )
    if total.left_out:
        say(left_out(total.left_out))
    if {*total.layouts} - {"exchange", "plain", "unreadable"}:
        say(f"layouts: {', '.join(f'{count:,} {name}' for name, count in total.layouts.most_common())}")
    if total.guesses:
        say(guessed(total.guesses))
    if arguments.compact and (status := _compact(job.output.folder)) != OK:
        return status
    if arguments.report is not None:
        _write_report(arguments.report, total, job)
    allowed = arguments.max_rejects
    too_many = allowed is not None and total.rejects > allowed(total.records)
    return FAILED if total.faults or too_many else OK


def _compact(folder: str) -> int:
    from crosswalk_batch.job import JobOutput as Output, JobStoppedError as StoppedError, compact

    try:
        before, after = compact(Output(folder))
    except StoppedError as error:
        say(f"crosswalk batch: {error}")
        return _STOPPED
    say(f"{counted(before, 'file')} put together to {after:,}")
    return OK


def _verify(folder: str) -> int:
    from crosswalk_batch.job import Job
    from crosswalk_batch.manifest import is_finished, read_manifest

    description, parts = read_manifest(folder)
    output = Job.of_description(description, folder).output
    files = {file.on_disk: None for part in parts for file in part.files}
    damages = list(output.damages(files, with_checksums=True))
    for damage in damages:
        say(f"{folder}: {damage}")
    is_done = is_finished(folder)
    ending = "" if is_done else "; the job is not done yet"
    say(
        f"{counted(len(files), 'file')} of {counted(len(parts), 'part')}, {len(damages):,} missing or damaged{ending}"
    )
    return FAILED if damages else OK if is_done else _STOPPED


def _write_report(file: str, total: Total, job: Job) -> None:
    report = {
        "records": total.records,
        "mapped": total.records - total.rejects,
        "rejects": dict(total.errors),
        "layouts": dict(total.layouts),
        "guesses": dict(total.guesses),
        "left_out": dict(total.left_out),
        "faults": total.faults,
        "parts": total.parts,
        "input_bytes": total.weight,
        "output": job.output.folder,
    }
    with written(Path(file), replace=True) as out:
        out.write(dump_json(report) + b"\n")


def _engine(arguments: argparse.Namespace, job: Job) -> Engine:
    from crosswalk_batch.job import perform

    if arguments.ray is not None:
        try:
            from crosswalk_batch.ray import tasks_on
        except ImportError as error:
            raise UsageError(f"{error}: install the extra ray: pip install 'crosswalk-llm[ray]'") from None
        return tasks_on(arguments.ray, perform)
    from crosswalk_batch.job import cores, processes

    is_short = (
        all(each.kind in ("lines", "captures") for each in job.inputs) and job.weight <= job.piece_bytes
    )
    return processes(perform, arguments.jobs or (1 if is_short else cores()))


def _partitions(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not {*names} <= {"day", "provider"} or len({*names}) != len(names):
        raise argparse.ArgumentTypeError(f"not day, provider, or both with a comma between: {text!r}")
    return names


def _limit(text: str) -> Callable[[int], float]:
    """Return a function that gives the maximum rejects for a number of records."""
    share = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"not a number of records, nor a share such as 0.5%: {text!r}")
    return (lambda records: records * value / 100) if share else (lambda records: value)


def _kept(text: str) -> dict[str, tuple[str, ...]]:
    """Return the paths of ``--keep`` by column name, which is the last key if there is no name."""
    from crosswalk.records import parse_path

    paths = {}
    for one in text.split(","):
        name, equals, path = one.rpartition("=")
        try:
            keys = parse_path(path)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        paths[name if equals else keys[-1]] = keys
    return paths
