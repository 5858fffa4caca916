"""Stored answers: written, read back, and compared with the result of mapping them now."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Set
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

import attrs
import orjson

from crosswalk.cli.answers import (
    Failed,
    Guess,
    MappingTally,
    failed,
    guesses,
    response_of,
    total_size,
    worked,
)
from crosswalk.cli.inputs import (
    InputFault,
    InputItem,
    InputSource,
    RecordedAnswer,
    find_sources,
    records_of,
)
from crosswalk.cli.parser import InstalledCommand
from crosswalk.cli.report_rows import ReportRow
from crosswalk.cli.terminal import OutputError, Progress, UsageError, harmless
from crosswalk.codec import ABSENT, Difference, differences, from_json, to_json
from crosswalk.drafts import written
from crosswalk.errors import CanonicalJSONError, CrosswalkError, MappingError
from crosswalk.plugin.installed import installed_points
from crosswalk.testing.changes import ERROR, ChangeKind, ChangeSummary, accepted_lines
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import SegmentType

# --------------------------------------------------------------------------------- storing
# Stored answers, as ``crosswalk normalize --output`` writes them and ``crosswalk diff`` reads them.
#
# The stored form of an answer is its canonical JSON. If mapping failed it is an object with ``error``, the name of the
# error, ``message``, and ``partial``, the canonical JSON of the partial answer. A snapshot of the conformance kit has
# the
# same form, or holds the canonical JSON as ``response``.


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


def outcome_of(answer: RecordedAnswer, arguments: argparse.Namespace, *, keep_raw: bool = False) -> Outcome:
    """The result of mapping *answer*; arguments as for :func:`crosswalk.cli.answers.deltas_of`.

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


def stored_path(source: InputSource) -> Path:
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
    failure: dict[str, Any] = {"error": outcome.error, "message": outcome.message}
    if outcome.partial is not None:
        failure["partial"] = load_json(to_json(outcome.partial, include_raw=include_raw))
    return dump_json(failure, option=orjson.OPT_INDENT_2 if indent else 0)


def read_stored(stored_form: Any) -> Outcome:
    """The outcome with the stored form *stored_form*, which is decoded JSON.

    Raises:
        CanonicalJSONError: it is not a stored form.
    """
    if isinstance(stored_form, dict) and "message" not in stored_form and "response" in stored_form:
        stored_form = stored_form["response"]
    if not isinstance(stored_form, dict):
        raise CanonicalJSONError(f"expected an object, got {json_type_name(stored_form)}")
    error, message = stored_form.get("error"), stored_form.get("message")
    if not isinstance(error, str) or not isinstance(message, str):
        return _response(stored_form)
    partial = stored_form.get("partial")
    return Failure(error, message, None if partial is None else _response(partial))


def _response(response_object: Any) -> ChatResponse:
    try:
        return from_json(dump_json(response_object), ChatResponse)
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
        tally = MappingTally(progress, "stored")
        for fault in faults:
            tally.report(failed(fault))
        files = dict(_files(sources, folder, tally))
        results = worked(list(files), arguments, partial(_stored, arguments))
        for source, source_results in groupby(results, lambda one: one[0].source):
            _store(files.pop(source), _pieces(source_results, tally))
        for file in files.values():  # of logs that are empty
            _store(file, iter(()))
    tally.write_total()
    return tally.status


def _files(
    sources: list[InputSource], folder: Path, tally: MappingTally
) -> Iterator[tuple[InputSource, Path]]:
    """Each source with its output file. No input and no other output is ever overwritten."""
    taken_paths = {source.path.resolve() for source in sources if source.path is not None}
    for source in sources:
        file = folder / stored_path(source)
        if file.resolve() in taken_paths:
            tally.report(Failed(source.name, f"not stored: there is another answer at {file}", "not stored"))
        else:
            taken_paths.add(file.resolve())
            yield source, file


def _pieces(
    results: Iterable[tuple[InputItem, Iterable[bytes | Failed | Guess | None]]], tally: MappingTally
) -> Iterator[bytes | None]:
    """The pieces to write, ``None`` if there is no answer; failures are reported."""
    for item, pieces in results:
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
    first_piece = next(pieces, b"")
    if first_piece is None:
        return
    try:
        with written(file, replace=True) as out:
            out.write(first_piece)
            for piece in pieces:
                out.write(piece or b"")
    except OSError as error:
        raise OutputError(f"{file}: {error.strerror or type(error).__name__}") from None


def _stored(
    arguments: argparse.Namespace, item: InputItem, answer: RecordedAnswer | InputFault
) -> Iterator[bytes | Failed | Guess | None]:
    """The stored form of *answer*, as a log's line or a document, and the failure if there is one."""
    if isinstance(answer, InputFault):
        yield failed(answer)
        if item.source.records:
            yield answer.line + b"\n" if answer.line else b""
        else:
            yield None
        return
    keep_raw = arguments.raw
    outcome = outcome_of(answer, arguments, keep_raw=keep_raw)
    if isinstance(outcome, Failure):
        yield Failed(answer.label, f"{outcome.error}: {outcome.message}", outcome.error)
    else:
        yield from guesses(outcome)
    outcome_json = stored_json(outcome, indent=answer.record is None, include_raw=keep_raw)
    if answer.record is None:
        yield outcome_json + b"\n"
        return
    try:
        # The line of a log, with the result of mapping it.
        yield dump_json({**answer.record.fields, "response": orjson.Fragment(outcome_json)}) + b"\n"
    except TypeError:
        cause = "left out: the record is nested too deeply to be written again"
        yield Failed(answer.place, cause, "left out")


# ------------------------------------------------------------------------------- comparing
# The comparison of stored answers with the result of mapping them now, and the list of accepted changes.
#
# ``crosswalk diff --write-accepted`` writes the list and ``--accept`` reads it. A line is a JSON object that names a
# kind of
# change: the provider, the path, and the values or types before and after.
# ``{"provider":"ollama","path":"usage.cached_tokens","before":"absent","after":"number"}``. Other keys, such as a
# reason,
# are ignored, and so are blank lines and lines that begin with ``#``.


class Comparison:
    """Counts differences. Its size does not grow with the number of answers, and it can be sent between processes.

    Args:
        accepted: the accepted changes, as :func:`crosswalk.cli.accepted.read_accepted` returns them.

    Attributes:
        compared: the number of answers compared.
        different: the number of answers with a difference that is not accepted.
        accepted: the number of answers with accepted differences only.
        summary: every kind of change.
    """

    def __init__(self, accepted: Set[tuple[str, str, str, str]] = frozenset()) -> None:
        self.summary = ChangeSummary(accepted)
        self.compared = 0
        self.different = 0
        self.accepted = 0

    def add(self, place: str, before: Outcome, after: Outcome) -> list[Difference]:
        """Compare one answer, and return the differences.

        Args:
            place: the place of the answer, for reports.
            before: the stored form.
            after: the result of mapping it now.
        """
        found_differences = between(before, after)
        self.count(place, provider_of_both(before, after), found_differences)
        return found_differences

    def count(self, place: str, provider: str, found_differences: list[Difference]) -> None:
        """Count one answer that was compared.

        Args:
            place: the place of the answer, for reports.
            provider: its provider id, or empty if unknown.
            found_differences: the differences.
        """
        self.compared += 1
        if found_differences:
            is_accepted = self.summary.add(found_differences, provider, harmless(place))
            self.accepted += is_accepted
            self.different += not is_accepted

    def add_same(self, count: int) -> None:
        """Count answers that are known to be equal."""
        self.compared += count

    def include(self, other: Comparison) -> None:
        """Add the counts of *other*, which was compared later."""
        self.summary.include(other.summary)
        self.compared += other.compared
        self.different += other.different
        self.accepted += other.accepted


def provider_of_both(before: Outcome, after: Outcome) -> str:
    """The provider of an answer: the stored one, else the present one, or empty if neither is known."""
    return _provider(before) or _provider(after) or ""


def _provider(outcome: Outcome) -> str | None:
    response = outcome.partial if isinstance(outcome, Failure) else outcome
    return None if response is None else response.metadata.provider_id


def between(before: Outcome, after: Outcome) -> list[Difference]:
    """The differences between *before* and *after*. A difference in whether or how mapping fails hides all others."""
    if _error(before) != _error(after):
        return [Difference((ERROR,), _message(before), _message(after))]
    old_response, new_response = _received(before), _received(after)
    if old_response is None or new_response is None:
        return (
            []
            if old_response is new_response
            else [Difference(("partial",), *map(_presence, (old_response, new_response)))]
        )
    return differences(old_response, new_response)


def _received(outcome: Outcome) -> ChatResponse | None:
    """The response. For a failure it is the partial answer, without the text of the error."""
    if not isinstance(outcome, Failure):
        return outcome
    partial = outcome.partial
    if partial is None or not partial.segments or partial.segments[-1].type is not SegmentType.ERROR:
        return partial
    return attrs.evolve(partial, refusal=None, segments=partial.segments[:-1])


def _error(outcome: Outcome) -> str | None:
    """The name of the error; its message is wording and makes no difference."""
    return outcome.error if isinstance(outcome, Failure) else None


def _message(outcome: Outcome) -> Any:
    return f"{outcome.error}: {outcome.message}" if isinstance(outcome, Failure) else ABSENT


def _presence(partial: object) -> Any:
    return ABSENT if partial is None else {}


Accepted: TypeAlias = frozenset[tuple[str, str, str, str]]
"""Provider, path, before, after of each change that is accepted."""

_KEYS: Final = ("provider", "path", "before", "after")


def read_accepted(path: str) -> Accepted:
    """The list in the file *path*.

    Raises:
        UsageError: the file, or a line in it, cannot be read.
    """
    try:
        file_content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None
    accepted_changes = set()
    for number, line in enumerate(file_content.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        try:
            accepted_change = orjson.loads(line)
            provider, field, before, after = (accepted_change[key] for key in _KEYS)
            accepted_changes.add((str(provider), str(field), str(before), str(after)))
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"{path}:{number}: expected an object with {', '.join(_KEYS)}") from None
    return frozenset(accepted_changes)


def write_accepted(path: str, kinds: Iterable[ChangeKind]) -> None:
    """Write the list of *kinds*, including those that were accepted before, and replace an earlier list.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        with written(Path(path), replace=True) as out:
            out.writelines(accepted_lines(kinds))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None


# --------------------------------------------------------------------------------- keepers
# Stores of answers that ``crosswalk diff`` can compare: the entry-point group ``crosswalk.stored``.
#
# The name of an entry is the name of a file or folder that every folder of such a store has. Looking for it imports nothing.


GROUP: Final = "crosswalk.stored"


class Keeper(Protocol):
    """The interface of an entry of the group ``crosswalk.stored``."""

    def compare(self, folder: Path, arguments: argparse.Namespace, comparison: Comparison) -> int:
        """Compare the answers in *folder* with the result of mapping them now.

        Args:
            folder: the stored answers.
            arguments: those of ``crosswalk diff``.
            comparison: takes every pair.

        Returns:
            The number of answers that could not be compared. Each was reported.
        """

    def report_rows(self, folder: Path) -> Iterable[ReportRow]:
        """The exchanges in *folder*, as ``crosswalk report`` counts them."""


def keeper_of(folder: Path) -> Keeper | None:
    """The store that *folder* belongs to, or ``None`` for a folder of JSON files.

    Raises:
        PluginError: its package cannot be imported.
    """
    for point in installed_points(GROUP):
        if (folder / point.name).exists():
            return cast("Keeper", InstalledCommand(point.name, point).load())
    return None
