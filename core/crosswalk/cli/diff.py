"""``crosswalk diff``: stored answers mapped again, and what is different now."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from crosswalk.cli.changes import ERROR, Summary, shown
from crosswalk.cli.exits import FAILED, OK, UsageError
from crosswalk.cli.many import Failed, Tally, failed, total_size, worked
from crosswalk.cli.progress import Progress
from crosswalk.cli.sources import Answer, Fault, Item, Source, find_sources, records_of
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
    sources, faults = find_sources(arguments.paths, records=records_of(arguments), without=stored)
    sources = [_with_stored(source, stored) for source in sources]
    summary, different = Summary(), 0
    with Progress("comparing", total_size(sources)) as progress:
        tally = Tally(progress, "compared")
        for fault in faults:
            tally.report(failed(fault))
        compared = 0
        for item, found in worked(sources, arguments, partial(_compared, arguments, stored)):
            for one in found:
                if isinstance(one, Failed):
                    tally.report(one, item)
                    continue
                place, differing = one
                compared += 1
                if differing:
                    different += 1
                    summary.add(differing)
                    if not arguments.summary:
                        _write(place, differing, as_json=arguments.json)
            tally.take(item.size)
    if not compared:
        raise UsageError("nothing could be compared")
    counts = {
        "compared": compared,
        "different": different,
        "same": compared - different,
        "not_compared": tally.failed,
    }
    _write_summary(arguments, summary, counts)
    return FAILED if different or tally.failed else OK


def _with_stored(source: Source, stored: Path | None) -> Source:
    """*source*, or the log with the stored answers that was made of it."""
    if stored is not None and source.records and (file := stored / stored_path(source)).is_file():
        return attrs.evolve(source, path=file, root=None)
    return source


class _Unstored(Exception):
    """There is no stored form of an answer, or it cannot be read."""


def _compared(
    arguments: argparse.Namespace, stored: Path | None, item: Item, answer: Answer | Fault
) -> Iterator[tuple[str, list[Difference]] | Failed]:
    """The place of *answer* and in what it differs from what was stored; or why it cannot be compared."""
    if isinstance(answer, Fault):
        yield failed(answer)
        return
    place = f"{answer.place} ({answer.id})" if answer.id else answer.place
    try:
        before = _before(answer, None if stored is None else stored / stored_path(item.source))
    except _Unstored as error:
        yield Failed(place, str(error), "not compared")
        return
    stored_as = before.partial if isinstance(before, Failure) else before
    if answer.provider is None and stored_as is not None:
        # It is mapped as it was; else it is found out again.
        metadata = stored_as.metadata
        is_guess = "metadata.provider_id" in metadata.provenance
        answer = attrs.evolve(answer, provider=metadata.provider_id, is_guess=is_guess)
    yield place, _differences(before, outcome_of(answer, arguments))


def _write(place: str, found: list[Difference], *, as_json: bool) -> None:
    if as_json:
        _write_line({"place": harmless(place), "differences": [_plain(difference) for difference in found]})
        return
    for difference in found[:_MOST_LINES]:
        before, after = shown(difference)
        write_text(harmless(f"{place}: {difference.place}: {before} -> {after}") + "\n")
    if len(found) > _MOST_LINES:
        write_text(harmless(f"{place}: and {len(found) - _MOST_LINES} more differences") + "\n")


def _write_summary(arguments: argparse.Namespace, summary: Summary, counts: dict[str, int]) -> None:
    """Write how many differ, and every kind of change with its captures."""
    kinds = summary.kinds()
    if arguments.json:
        _write_line({**counts, "changes": [attrs.asdict(kind) for kind in kinds]})
        return
    if kinds and not arguments.summary:
        write_text("\n")
    for kind in kinds:
        write_text(harmless(str(kind)) + "\n")
    left = f"; {counts['not_compared']} could not be compared" if counts["not_compared"] else ""
    write_text(
        f"{counts['compared']} compared: {counts['different']} differ, {counts['same']} are the same{left}\n"
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
