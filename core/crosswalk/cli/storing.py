"""``crosswalk normalize --output``: what answers are mapped to, as files to be compared with later."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import orjson

from crosswalk.cli.drafts import written
from crosswalk.cli.exits import UsageError
from crosswalk.cli.progress import Progress
from crosswalk.cli.sources import Answer, Fault, Source, answers, find_sources
from crosswalk.cli.stored import Failure, outcome_of, stored_json, stored_path
from crosswalk.types.json import dump_json

__all__ = ["store_all"]


def store_all(arguments: argparse.Namespace) -> bool:
    """Store what every answer is mapped to in the folder ``arguments.output``; whether all could be mapped.

    A capture's goes into a file of its own, which is written anew; a log is written again, with the stored form
    as ``response`` of each record. What cannot be mapped is reported and stored as a failure.

    Raises:
        UsageError: a file is not there, or nothing can be written.
    """
    folder = Path(arguments.output)
    sources, faults = find_sources(arguments.paths, records=arguments.records, without=folder)
    if any(source.path is None for source in sources):
        raise UsageError("--output needs files: standard input has no name")
    job = _Job(arguments, folder, sources)
    with Progress("storing", sum(source.size or 0 for source in sources)) as job.progress:
        for fault in faults:
            job.report(fault.place, fault.cause)
        for source in sources:
            job.store(source)
    return not job.failed


class _Job:
    """Stores one source after another; what fails is reported, and the rest goes on."""

    progress: Progress

    def __init__(self, arguments: argparse.Namespace, folder: Path, sources: list[Source]) -> None:
        self._arguments = arguments
        self._folder = folder
        # No answer is ever written over, and no stored one by another.
        self._taken = {source.path.resolve() for source in sources if source.path is not None}
        self.failed = 0

    def report(self, place: str, cause: str) -> None:
        """Say that something failed."""
        self.failed += 1
        self.progress.say(f"{place}: {cause}")

    def store(self, source: Source) -> None:
        """Store what the answers of *source* are mapped to."""
        file = self._folder / stored_path(source)
        if file.resolve() in self._taken:
            self.report(source.name, f"not stored: there is another answer at {file}")
            return
        self._taken.add(file.resolve())
        try:
            if source.records:
                with written(file, replace=True) as out:
                    for answer in self._reported(source):
                        out.write(self._line(answer))
            else:
                for answer in self._reported(source):
                    if isinstance(answer, Answer):
                        with written(file, replace=True) as out:
                            out.write(self._stored(answer, indent=True) + b"\n")
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror or type(error).__name__}") from None

    def _reported(self, source: Source) -> Iterator[Answer | Fault]:
        """The answers of *source*; input that is not an answer is reported."""
        for answer in answers(source, self._arguments.body_path):
            if isinstance(answer, Fault):
                self.report(answer.place, answer.cause)
            yield answer
            self.progress.advance(answer.size)

    def _line(self, answer: Answer | Fault) -> bytes:
        """The line of a log, with what it is mapped to; one that is no record stays as it is."""
        if isinstance(answer, Fault):
            return answer.line + b"\n" if answer.line else b""
        stored = orjson.Fragment(self._stored(answer, indent=False))
        try:
            fields = {} if answer.record is None else answer.record.fields
            return dump_json({**fields, "response": stored}) + b"\n"
        except TypeError:
            self.report(answer.place, "left out: the record is nested too deeply to be written again")
            return b""

    def _stored(self, answer: Answer, *, indent: bool) -> bytes:
        place = f"{answer.place} ({answer.id})" if answer.id else answer.place
        raw = self._arguments.raw
        outcome = outcome_of(answer, self._arguments, keep_raw=raw)
        if isinstance(outcome, Failure):
            self.report(place, f"{outcome.error}: {outcome.message}")
        return stored_json(outcome, indent=indent, include_raw=raw)
