"""``crosswalk normalize``: recorded answers to canonical JSON."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

import attrs

from crosswalk.cli.exits import FAILED, OK, UsageError
from crosswalk.cli.progress import Progress
from crosswalk.cli.reading import deltas_of, response_of
from crosswalk.cli.sources import Answer, Fault, Source, answers, find_sources
from crosswalk.cli.terminal import write_json
from crosswalk.codec.writing import to_json
from crosswalk.errors import CrosswalkError, MappingError
from crosswalk.plugin.registry import registry
from crosswalk.types.response import ChatResponse

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Map every answer that *arguments* names.

    Raises:
        UsageError: they contradict each other, or a file is not there.
        PluginError: the provider that they name cannot be used.
    """
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    if arguments.output is not None:
        return _store(arguments)
    sources, faults = find_sources(arguments.paths, records=arguments.records)
    shape = _shape(arguments, sources)
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(filter(None, sizes))
    with Progress("normalizing", total) as progress, _Writer(shape) as writer:
        job = _Job(arguments, writer, progress)
        for fault in faults:
            job.take(fault)
        for source in sources:
            for answer in answers(source, arguments.body_path):
                job.take(answer)
    return FAILED if job.failed else OK


def _store(arguments: argparse.Namespace) -> int:
    if arguments.stream or arguments.partial or arguments.format or arguments.indent is not None:
        raise UsageError("--output writes files: without --stream, --partial, --format and --indent")
    from crosswalk.cli.storing import store_all

    return OK if store_all(arguments) else FAILED


@attrs.frozen(eq=False, repr=False)
class _Shape:
    """How several JSON values become one output.

    Attributes:
        kind: a line each, one value alone, or an array.
        pretty: whether each is indented.
    """

    kind: Literal["lines", "value", "array"]
    pretty: bool


def _shape(arguments: argparse.Namespace, sources: list[Source]) -> _Shape:
    # A folder is many, whatever is in it today.
    has_folder = any(Path(path).is_dir() for path in arguments.paths)
    is_one = len(sources) == 1 and not sources[0].records and not has_folder
    if arguments.stream and (arguments.partial or arguments.raw or arguments.format == "json"):
        raise UsageError("--stream writes deltas as JSON Lines: without --partial, --raw and --format json")
    chosen = arguments.format or ("json" if is_one and not arguments.stream else "jsonl")
    if chosen == "jsonl":
        if arguments.indent:
            raise UsageError("JSON Lines have no indentation; say --format json")
        return _Shape("lines", pretty=False)
    return _Shape("value" if is_one else "array", pretty=arguments.indent is not False)


class _Writer:
    """Writes JSON values to standard output in one of the shapes, each as soon as it is there."""

    def __init__(self, shape: _Shape) -> None:
        self.pretty = shape.pretty
        self._is_array = shape.kind == "array"
        self._count = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What was interrupted stays open: it must not look complete.
        if self._is_array and kind is None:
            write_json(b"\n]\n" if self._count else b"[]\n")

    def write(self, value: bytes) -> None:
        """Write one JSON value."""
        self._count += 1
        if self._is_array:
            write_json((b"[\n" if self._count == 1 else b",\n") + value)
        else:
            write_json(value + b"\n")


class _Job:
    """Maps one answer after another; what fails is reported, and the rest goes on."""

    def __init__(self, arguments: argparse.Namespace, writer: _Writer, progress: Progress) -> None:
        self._arguments = arguments
        self._writer = writer
        self._progress = progress
        self.failed = 0

    def take(self, answer: Answer | Fault) -> None:
        """Map *answer* and write what comes of it, or report why nothing does."""
        if isinstance(answer, Fault):
            self._report(answer.place, answer.cause)
        else:
            try:
                self._map(answer)
            except CrosswalkError as error:
                place = f"{answer.place} ({answer.id})" if answer.id else answer.place
                self._report(place, f"{type(error).__name__}: {error}")
                if self._arguments.partial and isinstance(error, MappingError) and error.partial:
                    self._write(error.partial)
        self._progress.advance(answer.size)

    def _report(self, place: str, cause: str) -> None:
        self.failed += 1
        self._progress.say(f"{place}: {cause}")

    def _map(self, answer: Answer) -> None:
        if self._arguments.stream:
            for delta in deltas_of(answer, self._arguments, keep_raw=self._arguments.raw):
                self._writer.write(to_json(delta))
        else:
            self._write(response_of(answer, self._arguments, keep_raw=self._arguments.raw))

    def _write(self, response: ChatResponse) -> None:
        raw = self._arguments.raw
        self._writer.write(to_json(response, indent=self._writer.pretty, include_raw=raw))
