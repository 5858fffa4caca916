"""``crosswalk diff``: stored answers mapped again, and what is different now."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from crosswalk.cli.changes import ERROR, Summary, shown
from crosswalk.cli.exits import FAILED, OK, UsageError
from crosswalk.cli.progress import Progress
from crosswalk.cli.sources import Answer, Fault, Source, answers, find_sources
from crosswalk.cli.stored import Failure, Outcome, outcome_of, read_stored, stored_path
from crosswalk.cli.terminal import harmless, write_json, write_text
from crosswalk.codec import ABSENT, Difference, differences
from crosswalk.errors import CanonicalJSONError
from crosswalk.plugin.registry import registry
from crosswalk.types.json import load_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import SegmentType

__all__ = ["run"]

_MOST_LINES: Final = 20
"""How many differences of one capture are shown in lines; all are counted."""


def run(arguments: argparse.Namespace) -> int:
    """Map every answer again and write what differs from the stored one; any difference makes it fail.

    Raises:
        UsageError: a file is not there, or there is nothing that could be compared.
        PluginError: the provider that was named cannot be used.
    """
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    stored = None if arguments.stored is None else Path(arguments.stored)
    if stored is not None and not stored.is_dir():
        raise UsageError(f"no such folder: {stored}")
    sources, faults = find_sources(arguments.paths, records=arguments.records, without=stored)
    sizes = [source.size for source in sources]
    with Progress("comparing", None if None in sizes else sum(filter(None, sizes))) as progress:
        job = _Job(arguments, stored, progress)
        for fault in faults:
            job.report(fault.place, fault.cause)
        for source in sources:
            job.compare_all(source)
    if not job.compared:
        raise UsageError("nothing could be compared")
    job.write_summary()
    return FAILED if job.different or job.failed else OK


class _Unstored(Exception):
    """There is no stored form of an answer, or it cannot be read."""


class _Job:
    """Compares one answer after another; what cannot be compared is reported, and the rest goes on."""

    def __init__(self, arguments: argparse.Namespace, stored: Path | None, progress: Progress) -> None:
        self._arguments = arguments
        self._stored = stored
        self._progress = progress
        self._summary = Summary()
        self.compared = 0
        self.different = 0
        self.failed = 0

    def report(self, place: str, cause: str) -> None:
        """Say that something cannot be compared."""
        self.failed += 1
        self._progress.say(f"{place}: {cause}")

    def compare_all(self, source: Source) -> None:
        """Compare every answer of *source*."""
        file = None if self._stored is None else self._stored / stored_path(source)
        if source.records and file is not None and file.is_file():
            source, file = attrs.evolve(source, path=file), None
        for answer in answers(source, self._arguments.body_path):
            if isinstance(answer, Fault):
                self.report(answer.place, answer.cause)
            else:
                place = f"{answer.place} ({answer.id})" if answer.id else answer.place
                try:
                    self._compare(answer, place, file)
                except _Unstored as error:
                    self.report(place, str(error))
            self._progress.advance(answer.size)

    def _compare(self, answer: Answer, place: str, file: Path | None) -> None:
        before = _before(answer, file)
        after = outcome_of(attrs.evolve(answer, provider=_provider(answer, before)), self._arguments)
        found = _differences(before, after)
        self.compared += 1
        if found:
            self.different += 1
            self._summary.add(found)
            if not self._arguments.summary:
                self._write(place, found)

    def _write(self, place: str, found: list[Difference]) -> None:
        if self._arguments.json:
            _write_line(
                {"place": harmless(place), "differences": [_plain(difference) for difference in found]}
            )
            return
        for difference in found[:_MOST_LINES]:
            before, after = shown(difference)
            write_text(harmless(f"{place}: {difference.place}: {before} -> {after}") + "\n")
        if len(found) > _MOST_LINES:
            write_text(harmless(f"{place}: and {len(found) - _MOST_LINES} more differences") + "\n")

    def write_summary(self) -> None:
        """Write how many differ, and every kind of change with its captures."""
        kinds = self._summary.kinds()
        counts = {
            "compared": self.compared,
            "different": self.different,
            "same": self.compared - self.different,
            "not_compared": self.failed,
        }
        if self._arguments.json:
            _write_line({**counts, "changes": [attrs.asdict(kind) for kind in kinds]})
            return
        if kinds and not self._arguments.summary:
            write_text("\n")
        for kind in kinds:
            write_text(harmless(str(kind)) + "\n")
        left = f"; {self.failed} could not be compared" if self.failed else ""
        write_text(
            f"{self.compared} compared: {self.different} differ, {counts['same']} are the same{left}\n"
        )


def _before(answer: Answer, file: Path | None) -> Outcome:
    """The stored form of *answer*: in its record, or in *file*.

    Raises:
        _Unstored: there is none, or it cannot be read.
    """
    try:
        if answer.record is not None:
            stored = answer.record.stored
            if stored is None:
                raise _Unstored('no stored answer: no "response" in the record')
            return read_stored(load_json(stored) if isinstance(stored, str) else stored)
        if file is None:
            raise _Unstored("no stored answer: --stored names the folder of them")
        return read_stored(load_json(file.read_bytes()))
    except FileNotFoundError:
        raise _Unstored(f"no stored answer: no {file}") from None
    except OSError as error:
        raise _Unstored(f"the stored answer: {file}: {error.strerror or type(error).__name__}") from None
    except orjson.JSONDecodeError as error:
        raise _Unstored(f"the stored answer: not JSON: {error.msg}") from None
    except CanonicalJSONError as error:
        raise _Unstored(f"the stored answer: {error}") from None


def _provider(answer: Answer, before: Outcome) -> str | None:
    """The provider to map *answer* with: as recorded, else the one it was mapped with; ``None`` to detect it."""
    stored = before.partial if isinstance(before, Failure) else before
    return answer.provider or (None if stored is None else stored.metadata.provider_id)


def _differences(before: Outcome, after: Outcome) -> list[Difference]:
    """What *after* says otherwise than *before*; whether and how mapping fails comes before all else."""
    if _error(before) != _error(after):
        return [Difference((ERROR,), _message(before), _message(after))]
    one, other = _received(before), _received(after)
    if one is None or other is None:
        return [] if one is other else [Difference(("partial",), *map(_presence, (one, other)))]
    return differences(one, other)


def _received(outcome: Outcome) -> ChatResponse | None:
    """The response; of a failure what had been received, without the words of the error."""
    if not isinstance(outcome, Failure):
        return outcome
    partial = outcome.partial
    if partial is None or not partial.segments or partial.segments[-1].type is not SegmentType.ERROR:
        return partial
    return attrs.evolve(partial, refusal=None, segments=partial.segments[:-1])


def _error(outcome: Outcome) -> str | None:
    """How mapping failed. What the error said is wording, and no difference."""
    return outcome.error if isinstance(outcome, Failure) else None


def _message(outcome: Outcome) -> Any:
    return f"{outcome.error}: {outcome.message}" if isinstance(outcome, Failure) else ABSENT


def _presence(partial: object) -> Any:
    return ABSENT if partial is None else {}


def _plain(difference: Difference) -> dict[str, str]:
    before, after = shown(difference)
    return {"path": difference.place, "before": before, "after": after}


def _write_line(value: dict[str, Any]) -> None:
    write_json(orjson.dumps(value) + b"\n")
