"""``crosswalk convert``: recorded answers in another wire form, with a report of what it cannot express."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import orjson

from crosswalk.cli.exits import FAILED, OK, UsageError
from crosswalk.cli.progress import Progress
from crosswalk.cli.reading import deltas_of
from crosswalk.cli.sources import Answer, Fault, answers, find_sources
from crosswalk.cli.terminal import write_json
from crosswalk.convert import ConversionReport, WireForm, convert, convert_stream
from crosswalk.errors import CrosswalkError
from crosswalk.mapping.reader import drain
from crosswalk.plugin.registry import registry

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Convert every answer that *arguments* names.

    Raises:
        UsageError: they contradict each other, a file is not there, or the report cannot be written.
        PluginError: the provider that they name, or that of the form, cannot be used.
    """
    form = WireForm.of(arguments.to)
    for provider in (arguments.provider, form.provider):
        if provider is not None:
            registry.mapper(provider)
    sources, faults = find_sources(arguments.paths, records=arguments.records)
    has_folder = any(Path(path).is_dir() for path in arguments.paths)
    if arguments.stream and (len(sources) != 1 or sources[0].records or has_folder):
        raise UsageError("--stream writes one stream: name one answer")
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(filter(None, sizes))
    with ExitStack() as stack:
        file = _open(arguments.report, stack)
        progress = stack.enter_context(Progress("converting", total))
        job = _Job(arguments, form, progress, file)
        for fault in faults:
            job.take(fault)
        for source in sources:
            for answer in answers(source, arguments.body_path):
                job.take(answer)
    return FAILED if job.failed else OK


def _open(report: str | None, stack: ExitStack) -> BinaryIO | None:
    """The file that the report goes to; ``None`` where it goes to none."""
    if report is None or report == "-":
        return None
    try:
        return stack.enter_context(Path(report).open("wb"))
    except OSError as error:
        raise UsageError(f"{report}: {error.strerror or type(error).__name__}") from None


class _Job:
    """Converts one answer after another; what fails is reported, and the rest goes on."""

    def __init__(
        self, arguments: argparse.Namespace, form: WireForm, progress: Progress, file: BinaryIO | None
    ) -> None:
        self._arguments = arguments
        self._form = form
        self._progress = progress
        self._file = file
        self._reports_alone = arguments.report == "-"
        self.failed = 0

    def take(self, answer: Answer | Fault) -> None:
        """Convert *answer* and write what comes of it, or report why nothing does."""
        if isinstance(answer, Fault):
            self._fail(answer.place, answer.cause)
        else:
            place = f"{answer.place} ({answer.id})" if answer.id else answer.place
            try:
                self._tell(place, self._convert(answer))
            except CrosswalkError as error:
                self._fail(place, f"{type(error).__name__}: {error}")
        self._progress.advance(answer.size)

    def _fail(self, place: str, cause: str) -> None:
        self.failed += 1
        self._progress.say(f"{place}: {cause}")

    def _convert(self, answer: Answer) -> ConversionReport:
        deltas = deltas_of(answer, self._arguments)
        if self._arguments.stream:
            stream = convert_stream(deltas, self._form)
            for frame in stream:
                self._write(frame)
            return stream.report
        drain(deltas)
        converted = convert(deltas.response, self._form)
        self._write(converted.value + b"\n")
        return converted.report

    def _write(self, data: bytes) -> None:
        if not self._reports_alone:
            write_json(data)

    def _tell(self, place: str, report: ConversionReport) -> None:
        line = orjson.dumps({"place": place, **report.to_jsonable()}) + b"\n"
        if self._file is not None:
            self._file.write(line)
        elif self._reports_alone:
            write_json(line)
        else:
            for text in _lines(place, report):
                self._progress.say(text)


def _lines(place: str, report: ConversionReport) -> Iterator[str]:
    first, *rest = str(report).splitlines()
    yield f"{place}: {first}"
    yield from rest
