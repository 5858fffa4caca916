"""``crosswalk normalize --output``: mapped answers as files, for a later comparison."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

import orjson

from crosswalk.cli.exits import OutputError, UsageError
from crosswalk.cli.logs.many import Failed, Guess, Tally, failed, guesses, total_size, worked
from crosswalk.cli.logs.sources import Answer, Fault, Item, Source, find_sources, records_of
from crosswalk.cli.logs.stored import Failure, outcome_of, stored_json, stored_path
from crosswalk.cli.progress import Progress
from crosswalk.drafts import written
from crosswalk.types.json import dump_json

__all__ = ["store_all"]


def store_all(arguments: argparse.Namespace) -> int:
    """Store the result of mapping every answer in the folder ``arguments.output``; return the exit status.

    A capture's result goes into a file of its own, which is replaced. A log is written again, with the stored form as
    ``response`` of each record. An answer that cannot be mapped is reported and stored as a failure.

    Raises:
        UsageError: a file is missing, or the folder cannot be created.
        OutputError: a file cannot be written.
    """
    folder = Path(arguments.output)
    sources, faults = find_sources(arguments.paths, records=records_of(arguments), without=folder)
    if any(source.file is None for source in sources):
        raise UsageError("--output needs files: standard input has no name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or type(error).__name__}") from None
    with Progress("storing", total_size(sources)) as progress:
        tally = Tally(progress, "stored")
        for fault in faults:
            tally.report(failed(fault))
        files = dict(_files(sources, folder, tally))
        result = worked(list(files), arguments, partial(_stored, arguments))
        for source, of_source in groupby(result, lambda one: one[0].source):
            _store(files.pop(source), _pieces(of_source, tally))
        for file in files.values():  # of logs that are empty
            _store(file, iter(()))
    tally.write_total()
    return tally.status


def _files(sources: list[Source], folder: Path, tally: Tally) -> Iterator[tuple[Source, Path]]:
    """Each source with its output file. No input and no other output is ever overwritten."""
    taken = {source.path.resolve() for source in sources if source.path is not None}
    for source in sources:
        file = folder / stored_path(source)
        if file.resolve() in taken:
            tally.report(Failed(source.name, f"not stored: there is another answer at {file}", "not stored"))
        else:
            taken.add(file.resolve())
            yield source, file


def _pieces(
    found: Iterable[tuple[Item, Iterable[bytes | Failed | Guess | None]]], tally: Tally
) -> Iterator[bytes | None]:
    """The pieces to write, ``None`` if there is no answer; failures are reported."""
    for item, pieces in found:
        for piece in pieces:
            if isinstance(piece, Failed):
                tally.report(piece, item)
            elif isinstance(piece, Guess):
                tally.note(piece)
            else:
                yield piece
        tally.take(item.size)


def _store(file: Path, pieces: Iterator[bytes | None]) -> None:
    """Write *pieces* into *file*. If there is no answer and so no piece, the file stays as it is."""
    first = next(pieces, b"")
    if first is None:
        return
    try:
        with written(file, replace=True) as out:
            out.write(first)
            for piece in pieces:
                out.write(piece or b"")
    except OSError as error:
        raise OutputError(f"{file}: {error.strerror or type(error).__name__}") from None


def _stored(
    arguments: argparse.Namespace, item: Item, answer: Answer | Fault
) -> Iterator[bytes | Failed | Guess | None]:
    """The stored form of *answer*, as a log's line or a document, and the failure if there is one."""
    if isinstance(answer, Fault):
        yield failed(answer)
        if item.source.records:
            yield answer.line + b"\n" if answer.line else b""
        else:
            yield None
        return
    raw = arguments.raw
    outcome = outcome_of(answer, arguments, keep_raw=raw)
    if isinstance(outcome, Failure):
        location = f"{answer.place} ({answer.id})" if answer.id else answer.place
        yield Failed(location, f"{outcome.error}: {outcome.message}", outcome.error)
    else:
        yield from guesses(outcome)
    stored = stored_json(outcome, indent=answer.record is None, include_raw=raw)
    if answer.record is None:
        yield stored + b"\n"
        return
    try:
        # The line of a log, with the result of mapping it.
        yield dump_json({**answer.record.fields, "response": orjson.Fragment(stored)}) + b"\n"
    except TypeError:
        cause = "left out: the record is nested too deeply to be written again"
        yield Failed(answer.place, cause, "left out")
