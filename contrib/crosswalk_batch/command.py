"""Map logs of recorded answers to columns: JSON Lines (plain, gzip, zstd), folders of captures, Parquet with a column of
bytes, HAR files, results of OpenAI's and Anthropic's batches. DIR gets parts of Parquet in responses/ and rejects/, and a
receipt for each part: a job that was stopped goes on where it was, and one that is done is not done again. The same input
gives the same bytes, however many processes work on it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC
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
    processes,
    say,
    whole_number,
    zoned_time,
)

if TYPE_CHECKING:
    from crosswalk_batch.job import Receipt

_STOPPED: Final = 3
"""The exit status of a stopped job, which the same command continues."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``crosswalk batch``."""
    parser.epilog = (
        "Exit status: 0 done, whatever was rejected; 1 done, but an input is damaged, or there are more rejects than "
        "--max-rejects allows; 2 wrong use, nothing was tried; 3 stopped: the same command goes on. "
        "Example: crosswalk batch logs/*.jsonl.gz --output columns"
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="INPUT", help="files and folders")
    add("--output", required=True, metavar="DIR", help="the folder for what comes of it")
    by = "put responses into folders by day, provider, or both with a comma between (default: one folder)"
    add("--partition-by", type=_partitions, default=(), metavar="NAMES", help=by)
    provider = "the provider id (default: the record's provider, or detected from each answer)"
    add("--provider", metavar="NAME", help=provider)
    status = "the HTTP status (default: the status in the record, else 200)"
    add("--status", type=http_status, metavar="N", help=status)
    unknown = "reject an event or finish word that no mapping knows, or keep it (default: raise)"
    add("--unknown", choices=("raise", "keep"), default="raise", help=unknown)
    add_layout_arguments(parser)
    keep = "further values of each line to keep as columns, such as tenant,client=request.user"
    add("--keep", type=_kept, default={}, metavar="PATHS", help=keep)
    prices = "estimate missing costs by list prices (needs the extra prices)"
    add("--prices", action="store_true", help=prices)
    column = "the column of Parquet with the answers (default: body)"
    add("--column", default="body", metavar="NAME", help=column)
    created = (
        "the time of answers without one in the answer or the log, in ISO 8601 with a zone (default: null)"
    )
    add("--created", type=zoned_time, metavar="TIME", help=created)
    add("--raw", action="store_true", help="keep the provider's own events too, as raw_events")
    content = parser.add_mutually_exclusive_group().add_argument
    drop = "leave out what people wrote and models answered, also from rejects"
    content("--no-content", dest="content", action="store_const", const="drop", help=drop)
    hashed = "write the SHA-256 of texts in their place"
    content("--hash-content", dest="content", action="store_const", const="hash", help=hashed)
    columns = "write only these columns of responses, plus source and number (default: all)"
    add("--columns", type=lambda text: (*text.split(","),), default=(), metavar="NAMES", help=columns)
    size = "how much input makes a part (default: 8)"
    add("--part-size", type=whole_number, default=8, metavar="MIB", help=size)
    rejects = (
        "how many records, or per cent of them as in 0.5%%, may be rejects for exit status 0 (default: any)"
    )
    add("--max-rejects", type=_limit, metavar="N", help=rejects)
    verify = "map nothing: read every file of the output, and list those that are missing or damaged"
    add("--verify", action="store_true", help=verify)
    more = "add the inputs to an output that is done, such as a new day; those that are in it already are left out"
    add("--add", action="store_true", help=more)
    jobs = "processes to use (default: one for each core)"
    add("--jobs", type=whole_number, metavar="N", help=jobs)


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
        from crosswalk_batch.job import Job, JobStoppedError, cores, perform, run
    except ImportError as error:
        raise UsageError(f"{error}: install the extra batch: pip install 'crosswalk-llm[batch]'") from None

    folder = absolute(arguments.output)
    if arguments.verify:
        return _verify(folder)
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    passed_over: list[str] = []
    inputs = find_inputs(arguments.paths, arguments.output, passed_over)
    options = Options(
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
    )
    if unknown := {*arguments.columns} - {*responses_schema(options).names}:
        raise UsageError(f"--columns: no column {min(unknown)!r}")
    job = Job(
        folder=folder,
        partition_by=arguments.partition_by,
        columns=arguments.columns,
        options=options,
        piece_bytes=arguments.part_size * MIB,
        column=arguments.column,
    )
    is_short = sum(each.size for each in inputs) <= job.piece_bytes and all(
        each.kind in ("lines", "capture") for each in inputs
    )
    engine = processes(perform, arguments.jobs or (1 if is_short else cores()), arguments.settings)
    try:
        total = run(job, inputs, engine, is_adding=arguments.add)
    except JobStoppedError as error:
        say(f"crosswalk batch: {error}")
        return _STOPPED
    _say(total, passed_over)
    allowed = arguments.max_rejects
    too_many = allowed is not None and total.counts["errors"].total() > allowed(total.records)
    return FAILED if total.faults or too_many else OK


def _say(total: Receipt, passed_over: list[str]) -> None:
    for fault in total.faults:
        say(fault)
    if passed_over:
        some = ", ".join(passed_over[:3]) + (", …" if passed_over[3:] else "")
        say(f"passed over {counted(len(passed_over), 'file')} without a log in it: {some}")
    errors, guesses, layouts, left = (
        total.counts[name] for name in ("errors", "guesses", "layouts", "left_out")
    )
    error_tally = ", ".join(f"{count:,} {error}" for error, count in errors.most_common())
    rejects = errors.total()
    mapped = f"{total.records - rejects:,} mapped, {rejects:,} rejected{error_tally and f' ({error_tally})'}"
    say(f"{counted(total.records, 'record')}: {mapped}")
    if left:
        say(left_out(left))
    if {*layouts} - {"exchange", "plain", "unreadable"}:
        say(f"layouts: {', '.join(f'{count:,} {name}' for name, count in layouts.most_common())}")
    if guesses:
        say(guessed(guesses))


def _verify(folder: str) -> int:
    from crosswalk_batch.job import damages, other_files, read_receipts, unfinished

    receipts = read_receipts(folder)
    if not receipts:
        raise UsageError(f"{folder}: no receipts in it")
    messages = [each for some in damages(folder, receipts, with_checksums=True).values() for each in some]
    others = other_files(folder, receipts)
    for damage in (*messages, *(f"{name}: no receipt names it" for name in others)):
        say(f"{folder}: {damage}")
    is_done = not unfinished(receipts)
    files = sum(len(one.files) for one in receipts)
    found = (
        f"{counted(files, 'file')} of {counted(len(receipts), 'part')}, {len(messages):,} missing or damaged"
    )
    say(found + ("" if is_done else "; the job is not done yet"))
    return FAILED if messages or (others and is_done) else OK if is_done else _STOPPED


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
