"""Stored answers, as ``crosswalk normalize --output`` writes them and ``crosswalk diff`` reads them.

The stored form of an answer is its canonical JSON. If mapping failed it is an object with ``error``, the name of the
error, ``message``, and ``partial``, the canonical JSON of the partial answer. A snapshot of the conformance kit has the
same form, or holds the canonical JSON as ``response``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import orjson

from crosswalk.cli.logs.many import Failed, Guess, Tally, failed, guesses, total_size, worked
from crosswalk.cli.logs.reading import response_of
from crosswalk.cli.logs.sources import Answer, Fault, Item, Source, find_sources, records_of
from crosswalk.cli.progress import Progress
from crosswalk.cli.terminal import OutputError, UsageError
from crosswalk.codec import from_json, to_json
from crosswalk.drafts import written
from crosswalk.errors import CanonicalJSONError, CrosswalkError, MappingError
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.response import ChatResponse


@attrs.frozen
class Failure:
    """The failure of mapping an answer.

    Attributes:
        error: the name of the error.
        message: its message.
        partial: the partial answer, or ``None`` if nothing was received.
    """

    error: str
    message: str
    partial: ChatResponse | None = None


Outcome: TypeAlias = ChatResponse | Failure


def outcome_of(answer: Answer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> Outcome:
    """The result of mapping *answer*; arguments as for :func:`crosswalk.cli.logs.reading.deltas_of`.

    A response that cannot be written as JSON is a failure, too.
    """
    try:
        response = response_of(answer, arguments, keep_raw=keep_raw)
        to_json(response)
        return response
    except CrosswalkError as error:
        partial = error.partial if isinstance(error, MappingError) else None
        return Failure(type(error).__name__, str(error), _if_writable(partial))


def _if_writable(partial: ChatResponse | None) -> ChatResponse | None:
    try:
        if partial is not None:
            to_json(partial)
        return partial
    except CanonicalJSONError:
        return None


def stored_path(source: Source) -> Path:
    """The path of the stored form of *source* inside the output folder; for a capture, ``CASE.json``."""
    if source.path is None:
        return Path(source.name)
    path = Path(source.path.name) if source.root is None else source.path.relative_to(source.root)
    if source.records:
        return path
    return path.with_name(f"{path.name.removesuffix(path.suffix).removesuffix('.response')}.json")


def stored_json(outcome: Outcome, *, indent: bool, include_raw: bool) -> bytes:
    """The stored form of *outcome*, which :func:`outcome_of` returned."""
    if isinstance(outcome, ChatResponse):
        return to_json(outcome, indent=indent, include_raw=include_raw)
    payload: dict[str, Any] = {"error": outcome.error, "message": outcome.message}
    if outcome.partial is not None:
        payload["partial"] = load_json(to_json(outcome.partial, include_raw=include_raw))
    return dump_json(payload, option=orjson.OPT_INDENT_2 if indent else 0)


def read_stored(stored: Any) -> Outcome:
    """The outcome with the stored form *stored*, which is decoded JSON.

    Raises:
        CanonicalJSONError: it is not a stored form.
    """
    if isinstance(stored, dict) and "message" not in stored and "response" in stored:
        stored = stored["response"]
    if not isinstance(stored, dict):
        raise CanonicalJSONError(f"expected an object, got {json_type_name(stored)}")
    error, message = stored.get("error"), stored.get("message")
    if not isinstance(error, str) or not isinstance(message, str):
        return _response(stored)
    partial = stored.get("partial")
    return Failure(error, message, None if partial is None else _response(partial))


def _response(stored: Any) -> ChatResponse:
    try:
        return from_json(dump_json(stored), ChatResponse)
    except TypeError:
        raise CanonicalJSONError("nested too deeply") from None


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
