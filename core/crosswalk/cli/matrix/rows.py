"""Several crosswalks side by side: which provider has which canonical field, as far as captures show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain
from typing import Final

import attrs

from crosswalk.cli.matrix.effects import How
from crosswalk.cli.matrix.sections import Row, Section, Shape
from crosswalk.cli.matrix.wording import told
from crosswalk.codec.layout import layout
from crosswalk.types.message import ToolCall
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import ContentFilterResult, SegmentType, TokenLogprob


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
    """

    name: str
    title: str
    sections: list[Section]


@attrs.frozen
class Line:
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
            path: [State.ABSENT] * len(crosswalks) for path in _EXPECTED
        }
        rows = [[row for section in crosswalk.sections for row in section.rows] for crosswalk in crosswalks]
        wanted: dict[Shape, set[Shape]] = defaultdict(set)
        for row in chain.from_iterable(rows):
            wanted[row.path] |= {_field(path) for path, how in told(row.response) if how is How.TYPED}
        for number, crosswalk in enumerate(crosswalks):
            for row in rows[number]:
                self._add(number, row, _states(row, wanted[row.path]))
            untold = {path for path in _EXPECTED if self._states[path][number] is State.ABSENT}
            worked_out = untold.intersection(
                chain.from_iterable(section.said for section in crosswalk.sections)
            )
            for row in rows[number]:  # a consequence counts only if there is nothing else
                paths = {path for path, how in row.response if how in (How.CONVERTED, How.DECIDES)}
                self._add(number, row, dict.fromkeys(paths & worked_out, State.DERIVED))
            for path in worked_out:
                self._states[path][number] = State.DERIVED
        self.lines = [Line(path, self._states[path]) for path in sorted(self._states, key=_place)]

    def fields_of(self, row: Row) -> set[Shape]:
        """The lines that *row*, one of the crosswalks', is about."""
        return self._fields[id(row)]

    def _add(self, number: int, row: Row, found: dict[Shape, State]) -> None:
        self._fields.setdefault(id(row), set()).update(found)
        for path, state in found.items():
            states = self._states.setdefault(path, [State.ABSENT] * len(self.crosswalks))
            states[number] = _better(states[number], state)


def _states(row: Row, wanted: set[Shape]) -> dict[Shape, State]:
    """The fields that *row* is evidence for. *wanted* are the typed fields of other providers for its wire path."""
    states: dict[Shape, State] = {}
    for path, how in told(row.response):
        # A change may have changed the type of the segment, which is in the path.
        if path[:2] != ("segments", "[]") and (path[:1], path[2:]) != (("segments",), ("type",)):
            name = _field(path)
            states[name] = _better(states.get(name, State.ABSENT), _STATE_OF[how])
    if set(states.values()) == {State.EXTENSIONS}:
        states |= dict.fromkeys(wanted - set(states), State.EXTENSIONS)
    return states


def _better(one: State, other: State) -> State:
    return min(one, other, key=list(State).index)


_KEPT: Final = 2
"""The depth of keys that lines distinguish below the extensions. More would give a line for each leaf of a settings dump."""


def _field(path: Shape) -> Shape:
    """The canonical field of *path*. In metadata, whose shape is the provider's, leaves do not count one by one."""
    if path[:2] == EXTENSIONS:
        keys = [number for number, key in enumerate(path) if key != "[]"]
        return path[: keys[1 + _KEPT] + 1] if len(keys) > 1 + _KEPT else path
    if "metadata" in path[1:]:
        return path[: path.index("metadata", 1) + 2]
    return path


def _keys_of(cls: type, *before: str) -> list[Shape]:
    return [(*before, key.name) for key in layout(cls) if key.name not in ("cost", "top", "bytes")]


_EXPECTED: Final[list[Shape]] = [
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
    similar = [_alike(path, known) for known in _EXPECTED]
    return (len(similar) if path[:2] == EXTENSIONS else similar.index(max(similar))), path


def _alike(path: Shape, known: Shape) -> int:
    """The number of keys that two paths have in common at their beginning."""
    return next(
        (n for n, (a, b) in enumerate(zip(path, known, strict=False)) if a != b), min(len(path), len(known))
    )
