"""The crosswalk of providers: wire paths with their canonical paths, one provider or several side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.cli.terminal import harmless
from crosswalk.cli.tracing import Effect, How, Tracer, said
from crosswalk.codec.layout import layout
from crosswalk.errors import MappingError
from crosswalk.mapping.fields import same, stated_rows
from crosswalk.plugin.registry import DialectFamily, Mapper
from crosswalk.testing.captures import Capture
from crosswalk.testing.perturbation import MISSING, Leaf, Path, at
from crosswalk.text import counted, json_type_name
from crosswalk.types.message import ToolCall
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import ContentFilterResult, SegmentType, TokenLogprob

# -------------------------------------------------------------------------------- sections
# The crosswalk of a provider: its wire paths, gathered over captures, each with its canonical paths.
#
# There is a section for each kind of answer that can be distinguished without knowing the provider: by endpoint, whole
# or
# streamed, and by the type of events that name it. HTTP errors are one section.


_ANY_ITEM: Final = "[]"
"""Stands for every item of an array."""
_ANY_KEY: Final = "*"
"""Stands for every key of an object whose keys are data."""
_PLAIN_KEY: Final = re.compile(r"[\w*-]+")

Shape: TypeAlias = tuple[str, ...]
"""A path without the indices of items."""


def shape(path: Path) -> Shape:
    """*path* without the indices of items. A key that is a number, such as a token's, counts as data, too."""
    return tuple(_ANY_ITEM if isinstance(key, int) else _ANY_KEY if key.isdecimal() else key for key in path)


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
        leaf_trace = tracer.trace(leaf)
        self.response |= _shapes(leaf_trace.response)
        self.delta |= _shapes(leaf_trace.delta)
        self.refused |= {leaf_trace.refused} if leaf_trace.refused else set()
        self.is_lost |= leaf_trace.is_lost
        paths_and_values = (
            (_shape_of(effect), at(tracer.baseline.response, effect.path)) for effect in leaf_trace.response
        )
        canonical_values = {path: value for path, value in paths_and_values if value is not MISSING}
        self._see(Example(tracer.case, leaf.value, canonical_values))

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
    segment_index = path.index("segments") + 1
    return (*path[:segment_index], f"[{effect.segment}]", *path[segment_index + 1 :])


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
    requested_path = (capture.path or "").partition("?")[0]
    return max(
        (endpoint for endpoint in endpoints if _pattern(endpoint).search(requested_path)),
        key=len,
        default=None,
    )


@lru_cache(maxsize=512)
def _pattern(endpoint: str) -> re.Pattern[str]:
    """A pattern for the end of a path of *endpoint*; ``{model}`` and the like match one part."""
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(endpoint)) + "$")


def sections(mapper: Mapper, captures: Iterable[Capture]) -> list[Section]:
    """The crosswalk of *mapper*'s provider, as far as *captures* show it."""
    gathered_by_key: dict[_Key, _Gathering] = defaultdict(_Gathering)
    endpoints = mapper.endpoints()
    for capture in captures:
        tracer = Tracer(mapper, capture)
        keys = [_key(capture, event, len(tracer.events), endpoints) for event in tracer.events]
        shapes = (
            {_shape_of(effect) for effect in said(tracer.baseline.response)}
            if tracer.baseline.response
            else set()
        )
        for key in dict.fromkeys(keys):
            gathered_by_key[key].captures += 1
            gathered_by_key[key].said |= shapes
        leaves_by_kind: dict[tuple[_Key, Shape, str], list[Leaf]] = defaultdict(list)
        for leaf in tracer.leaves():
            leaves_by_kind[keys[leaf.event], shape(leaf.path), _type_of(leaf.value)].append(leaf)
        for (key, path, kind), leaves in leaves_by_kind.items():
            gathered_by_key[key].add(tracer, path, kind, leaves)
    return [
        Section(key.title, key.is_stream, gathering.captures, gathering.rows(), gathering.said)
        for key, gathering in sorted(gathered_by_key.items())
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


def _key(capture: Capture, event: Any, event_count: int, endpoints: tuple[str, ...]) -> _Key:
    if capture.status >= 400:
        return _Key(len(endpoints) + 1, "")
    endpoint = endpoint_of(capture, endpoints)
    endpoint_number = endpoints.index(endpoint) if endpoint else len(endpoints)
    is_stream = event_count > 1 or not capture.body.lstrip().startswith(b"{")
    event_type = event.get("type") if isinstance(event, dict) else None
    return _Key(
        endpoint_number,
        endpoint or "unknown endpoint",
        is_stream,
        event_type if isinstance(event_type, str) else "",
    )


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
        for index in sorted({0, min(1, len(leaves) - 1), len(leaves) - 1}):
            row.trace(tracer, leaves[index])

    def rows(self) -> list[Row]:
        """The rows so far. A null counts only if nothing else was observed."""
        for path, null_row in self._nulls.items():
            row = self._rows.setdefault(path, null_row)
            row.types |= null_row.types
            row.is_lost |= null_row.is_lost
        rows = sorted(self._rows.values(), key=self._place)
        return _without_data_keys(rows)

    def _place(self, row: Row) -> list[int]:
        """The position of *row*: the fields of one object stay together, in the order in which they were observed."""
        return [self._order[row.path[:length]] for length in range(1, len(row.path) + 1)]


def _without_data_keys(rows: list[Row]) -> list[Row]:
    """*rows*, with one row for all keys of an object whose keys are data: they become the same typed fields."""
    rows_by_parent: dict[Shape, list[Row]] = defaultdict(list)
    for row in rows:
        for length in range(len(row.path)):
            rows_by_parent[row.path[:length]].append(row)
    merged_rows: dict[Shape, Row] = {}
    for row in rows:
        parents = (row.path[:length] for length in range(len(row.path)))
        path = next(
            ((*parent, _ANY_KEY) for parent in parents if _are_data(parent, rows_by_parent[parent])), row.path
        )
        if path in merged_rows:
            merged_rows[path].add(row)
        else:
            merged_rows[path] = attrs.evolve(row, path=path)
    return list(merged_rows.values())


def _are_data(parent: Shape, rows: list[Row]) -> bool:
    """Whether the keys below *parent* are data."""
    keys = {row.path[len(parent)] for row in rows}
    first_response = rows[0].response
    is_typed = any(how is How.TYPED for _, how in first_response)
    return len(keys) > 1 and is_typed and all(row.response == first_response for row in rows)


# --------------------------------------------------------------------------------- wording
# The words in the rows of a crosswalk, the same for every format.


ELSEWHERE: Final = "another value"
REFUSED: Final = "refused otherwise"
IMPLIED: Final = "implied"
IN_DELTA: Final = "delta"
LOST: Final = "LOST"

LEGEND: Final[dict[str, str]] = {
    How.TYPED: "a typed field holds the value",
    How.CONVERTED: "a typed field holds the value in another unit or form",
    How.DECIDES: "the value decides what the typed fields hold",
    How.SAME: "a typed field already holds the same value",
    How.EMPTY: "the value is null, and so is the typed field",
    How.EXTENSIONS: "stored exactly as sent",
    IMPLIED: "the structure of the typed fields implies it",
    IN_DELTA: "the delta of its event holds it, and a later event replaces it in the response",
    ELSEWHERE: "the extensions hold a value that the typed fields cannot hold",
    REFUSED: "the error that another value raises",
    LOST: "the value is lost, which is a bug of the plugin",
}
"""The words of the tables with their meaning."""

NOTE: Final = (
    "Crosswalk changes each leaf of the recorded answers, maps them again, and lists the canonical paths that change. "
    "In a path, [] means every item of an array, * means every key of an object with free keys, and [text] means the "
    "segments of type text. If an answer has several choices, the others have the same paths below alternatives[]."
)
"""The explanation above each table."""


@attrs.frozen
class CellPiece:
    """A piece of a cell.

    Attributes:
        text: its text, in which control characters are not escaped yet.
        is_path: whether it is a path.
        label: a word of the legend before it.
    """

    text: str
    is_path: bool = False
    label: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.text}" if self.label else self.text


def _without_path(row: Row, *, in_delta: bool) -> str:
    """The wording for a row without an effect on the response."""
    if in_delta:
        return IN_DELTA
    if row.is_lost:
        return LOST
    if row.types == {"null"}:
        return How.EMPTY
    return How.DECIDES if row.refused else IMPLIED


def told(effects: set[tuple[Shape, How]]) -> list[tuple[Shape, How]]:
    """*effects* in their order, without those that others make redundant."""
    paths = {path for path, how in effects if how is not How.OTHERWISE}
    is_typed = any(how is How.TYPED for _, how in effects)
    ordered_effects: list[tuple[Shape, How]] = []
    for path, how in sorted(effects, key=_order_of_telling):
        is_consequence = is_typed and how in (How.CONVERTED, How.DECIDES, How.SAME)
        is_repeated = path[:2] == ("alternatives", "[]") and path[2:] in paths
        if how is not How.OTHERWISE and not is_consequence and not is_repeated:
            ordered_effects.append((path, how))
    return ordered_effects


def _order_of_telling(effect: tuple[Shape, How]) -> tuple[int, bool, int, Shape]:
    path, how = effect
    return list(How).index(how), "segments" in path, len(path), path


def _paths(effects: list[tuple[Shape, How]]) -> list[CellPiece]:
    return [CellPiece(shown(path), is_path=True) for path in dict.fromkeys(path for path, _ in effects)]


def headings(section: Section) -> list[str]:
    """The headings of the columns of *section*."""
    middle_headings = ["canonical", "in the delta"] if section.is_stream else ["canonical"]
    return ["wire", "type", *middle_headings, "how"]


def pieces(row: Row, section: Section) -> list[list[CellPiece]]:
    """The cells of *row*, one for each heading."""
    response, delta = told(row.response), told(row.delta)
    canonical_cells = [_paths(response), _paths(delta)] if section.is_stream else [_paths(response)]
    how: list[str] = list(dict.fromkeys(how for _, how in response))
    how = how or [_without_path(row, in_delta=bool(delta))]
    other_paths = {path for path, how in row.response if how is How.OTHERWISE}
    other_paths -= {path for path, _ in response}
    is_switch = not response or How.DECIDES in how
    refusals = row.refused if is_switch and row.types != {"null"} else ()
    mapping_cells = [
        *map(CellPiece, how),
        *(CellPiece(path, is_path=True, label=ELSEWHERE) for path in sorted(map(shown, other_paths))),
        *(CellPiece(error, label=REFUSED) for error in sorted(refusals)),
        *([CellPiece(LOST)] if row.is_lost and LOST not in how else []),
    ]
    wire_cell, type_cells = (
        [CellPiece(shown(row.path), is_path=True)],
        [CellPiece(kind) for kind in sorted(row.types)],
    )
    return [wire_cell, type_cells, *canonical_cells, mapping_cells]


# ---------------------------------------------------------------------------------- fields
# What a plugin says itself that it takes: the rows of its field tables, with the captures that show each.


FIELD_HEADINGS: Final = ("row", "canonical", "captures")
FIELD_NOTE: Final = "The plugin says these fields itself, as rows. No capture shows a row with the number 0."


@attrs.define
class ShownField:
    """A row of a field table.

    Attributes:
        path: its path, such as ``message.content``.
        place: the canonical field.
        captures: the number of captures with a value there.
    """

    path: str
    place: str
    captures: int = 0


class FieldRows:
    """The rows that a provider's dialects state, as in field tables. Empty if its plugin reads without any.

    Args:
        mapper: the provider.
    """

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper
        plugin = getattr(mapper.map_delta, "__self__", None)
        self._dialects = plugin.dialects if isinstance(plugin, DialectFamily) else (plugin,)
        self._rows = [_rows_of(dialect) for dialect in self._dialects]

    @property
    def tables(self) -> dict[str, list[ShownField]]:
        """The rows of each dialect that has any, and a capture that shows one, by a title."""
        return {
            f"Fields of {type(dialect).__name__}": rows
            for dialect, rows in zip(self._dialects, self._rows, strict=True)
            if any(row.captures for row in rows)
        }

    def counted(self, captures: Iterable[Capture]) -> Iterator[Capture]:
        """Yield the *captures*, and count which rows each of them shows."""
        for capture in captures:
            if any(self._rows) and capture.status < 400:
                self._count(capture)
            yield capture

    def _count(self, capture: Capture) -> None:
        try:
            events = capture.events(self._mapper)
        except MappingError:  # cut off, or in a broken frame
            return
        if not events or self._mapper.dialect_of(events[0]) is not self._mapper:
            return
        position = 0
        if len(self._dialects) > 1:
            fits = [dialect.recognizes(events[0]) for dialect in self._dialects]
            position = fits.index(max(fits))
        for row in self._rows[position]:
            row.captures += any(_has_value(event, row.path) for event in events)


def _rows_of(dialect: object) -> list[ShownField]:
    """The rows that *dialect* states, each path once with all its places, without those that only take a null."""
    places_by_path: dict[str, dict[str, None]] = {}
    for path, row in (item for rows in stated_rows(dialect) for item in rows.items()):
        if row.place != same(None).place:
            places_by_path.setdefault(path, {})[row.place] = None
    return [
        ShownField(path, ", ".join(places))
        for path, places in places_by_path.items()
        if len(places) == 1 or not all(place.startswith("always ") for place in places)  # the types
    ]


def _has_value(value: Any, path: str) -> bool:
    key, _, rest = re.sub(r"(?<!^)(\[\d+\])", r".\1", path).partition(".")
    if key[0] == "[":
        value = {f"[{number}]": item for number, item in enumerate(value)} if type(value) is list else None
    inner = value.get(key.removesuffix("[]")) if type(value) is dict else None
    if inner is None or not rest:
        return inner is not None
    is_each = key.endswith("[]") and type(inner) is list
    return any(_has_value(item, rest) for item in (inner if is_each else [inner]))


# ------------------------------------------------------------------------------------ rows
# Several crosswalks side by side: which provider has which canonical field, as far as captures show it.


class State(StrEnum):
    """The ways in which a provider has a canonical field, the best first."""

    NATIVE = "native"
    DERIVED = "derived"
    EXTENSIONS = "in extensions"
    ABSENT = "absent"


STATES: Final[dict[State, str]] = {
    State.NATIVE: "the provider sends it, and a typed field holds it",
    State.DERIVED: "worked out from what the provider sends: another unit or form, a sum, a switch",
    State.EXTENSIONS: "kept as it was sent, in no typed field",
    State.ABSENT: "in none of the captures",
}
"""The meaning of the states."""

_STATE_OF: Final = {
    How.TYPED: State.NATIVE,
    How.EMPTY: State.NATIVE,
    How.CONVERTED: State.DERIVED,
    How.DECIDES: State.DERIVED,
    How.SAME: State.DERIVED,
    How.EXTENSIONS: State.EXTENSIONS,
}

EXTENSIONS: Final[Shape] = ("metadata", "extensions")
"""The first keys of the lines that are not typed fields."""


@attrs.frozen
class Crosswalk:
    """The crosswalk of one provider.

    Attributes:
        name: the provider id.
        title: its name for people.
        sections: the evidence in its captures.
        fields: the rows of its plugin's field tables, by a title.
    """

    name: str
    title: str
    sections: list[Section]
    fields: dict[str, list[ShownField]] = attrs.Factory(dict)


@attrs.frozen
class MatrixLine:
    """One line of the matrix.

    Attributes:
        path: the canonical field.
        states: the state of each provider, in their order.
    """

    path: Shape
    states: list[State]


class Matrix:
    """A line for each canonical field that answers usually have, and for each other field that captures show.

    A field that one provider keeps in its extensions and another in a typed field, under the same wire path, is one line.

    Args:
        crosswalks: the crosswalks to compare.

    Attributes:
        crosswalks: the same.
        lines: in the order of the canonical JSON, the extensions last.
    """

    def __init__(self, crosswalks: Sequence[Crosswalk]) -> None:
        self.crosswalks = crosswalks
        self._fields: dict[int, set[Shape]] = {}
        self._states: dict[Shape, list[State]] = {
            path: [State.ABSENT] * len(crosswalks) for path in _EXPECTED_FIELDS
        }
        rows_by_crosswalk = [
            [row for section in crosswalk.sections for row in section.rows] for crosswalk in crosswalks
        ]
        typed_fields_by_path: dict[Shape, set[Shape]] = defaultdict(set)
        for row in chain.from_iterable(rows_by_crosswalk):
            typed_fields_by_path[row.path] |= {
                _field(path) for path, how in told(row.response) if how is How.TYPED
            }
        for number, crosswalk in enumerate(crosswalks):
            for row in rows_by_crosswalk[number]:
                self._add(number, row, _states(row, typed_fields_by_path[row.path]))
            absent_fields = {path for path in _EXPECTED_FIELDS if self._states[path][number] is State.ABSENT}
            derived_fields = absent_fields.intersection(
                chain.from_iterable(section.said for section in crosswalk.sections)
            )
            for row in rows_by_crosswalk[number]:  # a consequence counts only if there is nothing else
                paths = {path for path, how in row.response if how in (How.CONVERTED, How.DECIDES)}
                self._add(number, row, dict.fromkeys(paths & derived_fields, State.DERIVED))
            for path in derived_fields:
                self._states[path][number] = State.DERIVED
        self.lines = [MatrixLine(path, self._states[path]) for path in sorted(self._states, key=_place)]

    def fields_of(self, row: Row) -> set[Shape]:
        """The lines that *row*, one of the crosswalks', is about."""
        return self._fields[id(row)]

    def _add(self, number: int, row: Row, found_states: dict[Shape, State]) -> None:
        self._fields.setdefault(id(row), set()).update(found_states)
        for path, state in found_states.items():
            states = self._states.setdefault(path, [State.ABSENT] * len(self.crosswalks))
            states[number] = _better(states[number], state)


def _states(row: Row, wanted_fields: set[Shape]) -> dict[Shape, State]:
    """The fields that *row* is evidence for. *wanted_fields* are the typed fields of other providers for its wire path."""
    states: dict[Shape, State] = {}
    for path, how in told(row.response):
        # A change may have changed the type of the segment, which is in the path.
        if path[:2] != ("segments", "[]") and (path[:1], path[2:]) != (("segments",), ("type",)):
            field = _field(path)
            states[field] = _better(states.get(field, State.ABSENT), _STATE_OF[how])
    if set(states.values()) == {State.EXTENSIONS}:
        states |= dict.fromkeys(wanted_fields - set(states), State.EXTENSIONS)
    return states


def _better(one: State, other: State) -> State:
    return min(one, other, key=list(State).index)


_EXTENSION_DEPTH: Final = 2
"""The depth of keys that lines distinguish below the extensions. More would give a line for each leaf of a settings dump."""


def _field(path: Shape) -> Shape:
    """The canonical field of *path*. In metadata, whose shape is the provider's, leaves do not count one by one."""
    if path[:2] == EXTENSIONS:
        key_indexes = [number for number, key in enumerate(path) if key != "[]"]
        return (
            path[: key_indexes[1 + _EXTENSION_DEPTH] + 1] if len(key_indexes) > 1 + _EXTENSION_DEPTH else path
        )
    if "metadata" in path[1:]:
        return path[: path.index("metadata", 1) + 2]
    return path


def _keys_of(cls: type, *prefix: str) -> list[Shape]:
    return [(*prefix, key.name) for key in layout(cls) if key.name not in ("cost", "top", "bytes")]


_EXPECTED_FIELDS: Final[list[Shape]] = [
    *((name,) for name in ("id", "created", "model", "finish_reason", "raw_finish_reason", "refusal")),
    ("message", "role"),
    ("message", "content"),
    *_keys_of(ToolCall, "message", "tool_calls", "[]"),
    *_keys_of(UsageInfo, "usage"),
    ("usage", "cost", "amount"),
    *(("segments", f"[{kind}]", "content") for kind in SegmentType),
    *_keys_of(TokenLogprob, "logprobs", "[]"),
    ("logprobs", "[]", "bytes", "[]"),
    *_keys_of(TokenLogprob, "logprobs", "[]", "top", "[]"),
    *_keys_of(ContentFilterResult, "content_filter_results", "[]"),
    ("alternatives", "[]", "index"),
    ("alternatives", "[]", "message", "content"),
    ("metadata", "model_id"),
    ("metadata", "request_duration_seconds"),
]
"""The fields that have a line even if no provider has them."""


def _place(path: Shape) -> tuple[int, Shape]:
    """The position of a field: as in the canonical JSON, the extensions last."""
    common_lengths = [_alike(path, expected_field) for expected_field in _EXPECTED_FIELDS]
    return (
        len(common_lengths) if path[:2] == EXTENSIONS else common_lengths.index(max(common_lengths))
    ), path


def _alike(path: Shape, other_path: Shape) -> int:
    """The number of keys that two paths have in common at their beginning."""
    return next(
        (n for n, (a, b) in enumerate(zip(path, other_path, strict=False)) if a != b),
        min(len(path), len(other_path)),
    )


# ----------------------------------------------------------------------------------- pages
# A crosswalk as a page of Markdown.


def markdown_page(crosswalk: Crosswalk, command: str) -> str:
    """The *crosswalk* as a page of Markdown, which *command* writes."""
    lines = [
        f"# The crosswalk of {_markdown(crosswalk.title)}",
        "",
        f"`{command}` generates this crosswalk, so do not edit it by hand.",
        "",
    ]
    lines += [_markdown(NOTE), "", "| how | |", "|---|---|"]
    lines += [f"| {word} | {meaning} |" for word, meaning in LEGEND.items()]
    for section in crosswalk.sections:
        heads = headings(section)
        capture_count = counted(section.captures, "capture")
        lines += ["", f"## {_markdown(section.title)}", "", f"From {capture_count}.", ""]
        lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in section.rows:
            cells = (", ".join(_markdown_piece(piece) for piece in cell) for cell in pieces(row, section))
            lines.append(f"| {' | '.join(cells)} |")
    for title, rows in crosswalk.fields.items():
        lines += ["", f"## {_markdown(title)}", "", FIELD_NOTE, ""]
        lines += [f"| {' | '.join(FIELD_HEADINGS)} |", "|---" * len(FIELD_HEADINGS) + "|"]
        lines += [f"| `{row.path}` | `{row.place}` | {row.captures} |" for row in rows]
    return "\n".join(lines) + "\n"


def _markdown_piece(piece: CellPiece) -> str:
    label = f"{piece.label}: " if piece.label else ""
    if not piece.is_path or "`" in piece.text:
        return label + _markdown(piece.text)
    safe_text = harmless(piece.text).replace("|", "\\|")
    return f"{label}`{safe_text}`"


def _markdown(text: str) -> str:
    for mark in "\\`*_<>|[]#":
        text = text.replace(mark, f"\\{mark}")
    return harmless(text)
