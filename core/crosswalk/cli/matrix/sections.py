"""The crosswalk of a provider: its wire paths, gathered over captures, each with its canonical paths.

There is a section for each kind of answer that can be distinguished without knowing the provider: by endpoint, whole or
streamed, and by the type of events that name it. HTTP errors are one section.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.cli.matrix.effects import Effect, How, said
from crosswalk.cli.matrix.tracing import Tracer
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture
from crosswalk.testing.perturbation import MISSING, Leaf, Path, at
from crosswalk.text import json_type_name

_ITEM: Final = "[]"
"""Stands for every item of an array."""
_ANY: Final = "*"
"""Stands for every key of an object whose keys are data."""
_PLAIN_KEY: Final = re.compile(r"[\w*-]+")

Shape: TypeAlias = tuple[str, ...]
"""A path without the indices of items."""


def shape(path: Path) -> Shape:
    """*path* without the indices of items. A key that is a number, such as a token's, counts as data, too."""
    return tuple(_ITEM if isinstance(key, int) else _ANY if key.isdecimal() else key for key in path)


def shown(path: Shape) -> str:
    """``choices[].delta.content`` for its keys."""
    text = ""
    for key in path:
        if key.startswith("["):
            text += key
        elif _PLAIN_KEY.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f"[{orjson.dumps(key).decode()}]"
    return text


@attrs.frozen
class Example:
    """An observed leaf and the values of the response that it became.

    Attributes:
        case: the capture.
        value: the provider's value.
        canonical: the values of the response that it became, by path; absent values are left out.
    """

    case: str
    value: Any
    canonical: dict[Shape, Any]


@attrs.define
class Row:
    """One wire path of a section, with the evidence of all leaves there.

    Attributes:
        path: the wire path.
        types: the JSON types of the leaves.
        response: its effects on the response.
        delta: its effects on the deltas.
        refused: the errors that other values cause.
        is_lost: whether a leaf there left no trace.
        example: the first leaf with a value.
    """

    path: Shape
    types: set[str] = attrs.field(factory=set)
    response: set[tuple[Shape, How]] = attrs.field(factory=set)
    delta: set[tuple[Shape, How]] = attrs.field(factory=set)
    refused: set[str] = attrs.field(factory=set)
    is_lost: bool = False
    example: Example = Example("", None, {})

    def trace(self, tracer: Tracer, leaf: Leaf) -> None:
        """Trace *leaf* and count it."""
        result = tracer.trace(leaf)
        self.response |= _shapes(result.response)
        self.delta |= _shapes(result.delta)
        self.refused |= {result.refused} if result.refused else set()
        self.is_lost |= result.is_lost
        stands = (
            (_shape_of(effect), at(tracer.baseline.response, effect.path)) for effect in result.response
        )
        canonical = {path: value for path, value in stands if value is not MISSING}
        self._see(Example(tracer.case, leaf.value, canonical))

    def add(self, other: Row) -> None:
        """Count the leaves of *other*."""
        self.types |= other.types
        self.response |= other.response
        self.delta |= other.delta
        self.refused |= other.refused
        self.is_lost |= other.is_lost
        self._see(other.example)

    def _see(self, example: Example) -> None:
        if self.example.value in ("", None):
            self.example = example


def _shapes(effects: Iterable[Effect]) -> set[tuple[Shape, How]]:
    return {(_shape_of(effect), effect.how) for effect in effects}


def _shape_of(effect: Effect) -> Shape:
    """The shape of a canonical path, in which a segment is named by its type."""
    path = shape(effect.path)
    if effect.segment is None:
        return path
    number = path.index("segments") + 1
    return (*path[:number], f"[{effect.segment}]", *path[number + 1 :])


@attrs.frozen
class Section:
    """The rows of one kind of answer.

    Attributes:
        title: the kind.
        is_stream: whether it consists of events, so that the deltas matter more than the response.
        captures: the number of captures.
        rows: in the order of the wire.
        said: the canonical paths with a value in any response.
    """

    title: str
    is_stream: bool
    captures: int
    rows: list[Row]
    said: set[Shape]


def endpoint_of(capture: Capture, endpoints: Iterable[str]) -> str | None:
    """The member of *endpoints* that *capture* comes from, also behind a gateway's prefix, or ``None`` if it is another."""
    requested = (capture.path or "").partition("?")[0]
    return max((known for known in endpoints if _pattern(known).search(requested)), key=len, default=None)


@lru_cache(maxsize=512)
def _pattern(endpoint: str) -> re.Pattern[str]:
    """A pattern for the end of a path of *endpoint*; ``{model}`` and the like match one part."""
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(endpoint)) + "$")


def sections(mapper: Mapper, captures: Iterable[Capture]) -> list[Section]:
    """The crosswalk of *mapper*'s provider, as far as *captures* show it."""
    results: dict[_Key, _Gathering] = defaultdict(_Gathering)
    endpoints = mapper.endpoints()
    for capture in captures:
        tracer = Tracer(mapper, capture)
        keys = [_key(capture, event, len(tracer.events), endpoints) for event in tracer.events]
        described = (
            {_shape_of(effect) for effect in said(tracer.baseline.response)}
            if tracer.baseline.response
            else set()
        )
        for key in dict.fromkeys(keys):
            results[key].captures += 1
            results[key].said |= described
        similar: dict[tuple[_Key, Shape, str], list[Leaf]] = defaultdict(list)
        for leaf in tracer.leaves():
            similar[keys[leaf.event], shape(leaf.path), _type_of(leaf.value)].append(leaf)
        for (key, path, kind), leaves in similar.items():
            results[key].add(tracer, path, kind, leaves)
    return [
        Section(key.title, key.is_stream, gathering.captures, gathering.rows(), gathering.said)
        for key, gathering in sorted(results.items())
    ]


@attrs.frozen(order=True)
class _Key:
    """The key that distinguishes sections, and their order."""

    place: int
    endpoint: str
    is_stream: bool = False
    event_type: str = ""

    @property
    def title(self) -> str:
        if not self.endpoint:
            return "HTTP errors"
        form = "streamed" if self.is_stream else "whole"
        return f"{self.endpoint}, {form}" + (f", {self.event_type}" if self.event_type else "")


def _key(capture: Capture, event: Any, events: int, endpoints: tuple[str, ...]) -> _Key:
    if capture.status >= 400:
        return _Key(len(endpoints) + 1, "")
    endpoint = endpoint_of(capture, endpoints)
    location = endpoints.index(endpoint) if endpoint else len(endpoints)
    is_stream = events > 1 or not capture.body.lstrip().startswith(b"{")
    word = event.get("type") if isinstance(event, dict) else None
    return _Key(location, endpoint or "unknown endpoint", is_stream, word if isinstance(word, str) else "")


def _type_of(value: Any) -> str:
    return "integer" if type(value) is int else json_type_name(value)


class _Gathering:
    """Gathers the rows of one section."""

    def __init__(self) -> None:
        self.captures = 0
        self.said: set[Shape] = set()
        self._rows: dict[Shape, Row] = {}
        self._nulls: dict[Shape, Row] = {}
        self._order: dict[Shape, int] = {}

    def add(self, tracer: Tracer, path: Shape, kind: str, leaves: list[Leaf]) -> None:
        """Trace the first, the second and the last of *leaves*, which have the same *path* and type."""
        for length in range(1, len(path) + 1):
            self._order.setdefault(path[:length], len(self._order))
        rows = self._nulls if kind == "null" else self._rows
        row = rows.setdefault(path, Row(path))
        row.types.add(kind)
        for number in sorted({0, min(1, len(leaves) - 1), len(leaves) - 1}):
            row.trace(tracer, leaves[number])

    def rows(self) -> list[Row]:
        """The rows so far. A null counts only if nothing else was observed."""
        for path, nulls in self._nulls.items():
            row = self._rows.setdefault(path, nulls)
            row.types |= nulls.types
            row.is_lost |= nulls.is_lost
        rows = sorted(self._rows.values(), key=self._place)
        return _without_data_keys(rows)

    def _place(self, row: Row) -> list[int]:
        """The position of *row*: the fields of one object stay together, in the order in which they were observed."""
        return [self._order[row.path[:length]] for length in range(1, len(row.path) + 1)]


def _without_data_keys(rows: list[Row]) -> list[Row]:
    """*rows*, with one row for all keys of an object whose keys are data: they become the same typed fields."""
    below: dict[Shape, list[Row]] = defaultdict(list)
    for row in rows:
        for length in range(len(row.path)):
            below[row.path[:length]].append(row)
    result: dict[Shape, Row] = {}
    for row in rows:
        parents = (row.path[:length] for length in range(len(row.path)))
        path = next(((*parent, _ANY) for parent in parents if _are_data(parent, below[parent])), row.path)
        if path in result:
            result[path].add(row)
        else:
            result[path] = attrs.evolve(row, path=path)
    return list(result.values())


def _are_data(parent: Shape, rows: list[Row]) -> bool:
    """Whether the keys below *parent* are data."""
    keys = {row.path[len(parent)] for row in rows}
    first = rows[0].response
    is_typed = any(how is How.TYPED for _, how in first)
    return len(keys) > 1 and is_typed and all(row.response == first for row in rows)
