"""Proposals for logs that no layout describes: the options that would read them. Nothing is counted by shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import attrs

from crosswalk.cli.answers import provider_of
from crosswalk.errors import CrosswalkError
from crosswalk.records import Record, decoded, has_content
from crosswalk.text import counted
from crosswalk.types.json import dump_json

_MAX_DEPTH: Final = 2
_MAX_KEYS: Final = 200
_TIME_KEYS: Final = (
    "ts",
    "timestamp",
    "time",
    "created",
    "created_at",
    "date",
    "datetime",
    "start_time",
    "@timestamp",
)
_ISO_TIME_PATTERN: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_PLAIN_KEY_PATTERN: Final = re.compile(r"[^.\[\]\"\s]+")


@attrs.frozen
class Proposal:
    """Where a line seems to have its answer.

    Attributes:
        provider: the provider id of the answer's form.
        options: the options to type.
    """

    provider: str
    options: tuple[str, ...]


class Proposals:
    """Counts proposals, each once for all lines with the same places."""

    def __init__(self) -> None:
        self._counts: Counter[Proposal] = Counter()

    def add(self, proposal: Proposal) -> None:
        """Count *proposal*."""
        self._counts[proposal] += 1

    def lines(self) -> Iterator[str]:
        """A sentence for each proposal, the most frequent first."""
        for proposal, count in self._counts.most_common():
            verb = "holds" if count == 1 else "hold"
            options = " ".join(f"--field {option}" for option in proposal.options)
            answer_path = proposal.options[0].partition("=")[2]
            yield (
                f"{counted(count, 'line')} {verb} an answer in the form of {proposal.provider} under {answer_path}; "
                f"to read it: {options}"
            )


def proposal_of(record: Record) -> Proposal | None:
    """Return where the line of *record*, which no layout describes, seems to have its answer, or ``None``."""
    line = record.fields["body"]
    for path, value in _objects(line, (), _MAX_DEPTH):
        if not has_content(value):
            continue
        try:
            provider = provider_of(dump_json(value), None, None).name
        except CrosswalkError:
            continue
        return Proposal(provider, (f"response={_text(path)}", *_time(line)))
    return None


def _objects(
    value: Any, path: tuple[str, ...], depth: int
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the objects below *value* with their paths, those that are nearest first."""
    inner_objects = []
    for key, item in list(value.items())[:_MAX_KEYS]:
        inner_value = decoded(item) if type(item) is str else item
        if type(inner_value) is dict:
            inner_objects.append(((*path, key), inner_value))
    yield from inner_objects
    if depth > 1:
        for inner_path, inner_value in inner_objects:
            yield from _objects(inner_value, inner_path, depth - 1)


def _text(path: tuple[str, ...]) -> str:
    return ".".join(key if _PLAIN_KEY_PATTERN.fullmatch(key) else f'["{key}"]' for key in path).replace(
        ".[", "["
    )


def _time(record: dict[str, Any]) -> Iterator[str]:
    for key in _TIME_KEYS:
        value = record.get(key)
        if type(value) is str and _ISO_TIME_PATTERN.match(value):
            yield f"created={key}"
            return
        if isinstance(value, int | float) and 10**8 < value < 10**14:  # not a truth value
            yield f"created={key}" if value < 10**11 else f"created={key}@ms"
            return
