"""Whether whole answers that are read by their likeness to one before say what the hooks make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from crosswalk.errors import CrosswalkError
from crosswalk.mapping.bodies import read_body, shape_of
from crosswalk.mapping.learnt.marks import spans_of
from crosswalk.mapping.times import time_of
from crosswalk.plugin.info import Path
from crosswalk.testing.case import MARKER, Case, Problem, reader_options
from crosswalk.testing.fixed import fixed_clock, fixed_id
from crosswalk.testing.perturbation import Leaf, at
from crosswalk.types.json import dump_json
from crosswalk.types.told import told

__all__ = ["body_leaves_hold"]

_TEXTS: Final = (
    "", " ", "\n", "0", "a", "{", "[]", "{}", '{"a": 1}', "<think>", "<think>a</think>b", "null", "stop", '"\\\u2028\x00',
    MARKER, "long " * 8000,
)  # fmt: skip
_TIMES: Final = (
    "2031-01-02T03:04:05.678901234+05:30",
    "1969-12-31T23:59:59Z",
    "0001-01-01T00:00:00+10:00",
    "soon",
    "",
)
_NUMBERS: Final = (0, 1, 7, 1000, 10**9, 10**12, 10**15, 2**63, -1, 1.5, 1e-9, 12345.678)
_OBJECTS: Final[tuple[dict[str, Any], ...]] = (
    {}, {"a": MARKER}, {"": {"b": [], "c": {}, "d": None}}, {"a": [1.0, -0.0, 1e300, 10**30, True]}, {"\u2028": '"\\'},
)  # fmt: skip
_MORE: Final = 1000
"""So much more is counted, by one leaf and by another that may hold the sum."""


def body_leaves_hold(case: Case) -> Iterator[Problem]:
    """P3: with other values in the leaves that ``ProviderInfo.body_leaves`` names, a body says these and nothing else new.

    Bodies like one before are read without the hooks, trusting in that; here the hooks read each as well. Of a body from
    which nothing can be learnt nothing is tried, for all are then read by the hooks.
    """
    data, options = case.capture.body.strip(), reader_options(case.capture, keep_raw=True)
    info = case.mapper.info
    if not case.is_answer or case.capture.stream or not (info.body_leaves or info.speaks):
        return
    shape = shape_of(case.mapper, data)
    case.tally.bodies += 1
    if shape is None:
        return
    case.tally.learnt_bodies += 1
    said = {path: at(case.events[0], path) for path in case.mapper.info.body_leaves}
    spans = spans_of(data, [path for path, value in said.items() if isinstance(value, dict)])
    leaves = [Leaf(0, path, value) for path, value in said.items() if path in spans]
    for leaf, values in case.some([*_trials(leaves)], case.sample):
        case.tally.mappings += 1
        body = _with(data, spans, values)
        try:
            found = shape(body, fixed_id, fixed_clock, True)
        except Exception:  # so it says that the hooks have to read it
            continue
        try:
            is_right = found is None or told(found) == told(read_body(case.mapper, body, options))
        except CrosswalkError:
            is_right = False
        if not is_right:
            value = dump_json(values[leaf.path]).decode()
            what = f"with {value if len(value) <= 40 else value[:40] + '…'} in its place"
            yield case.problem("P3", leaf, f"{what} the body is not read as its leaves promise")


def _trials(leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, Mapping[Path, Any]]]:
    """Leaves that may change, and what to put into which: a value, another leaf's too, or the like into both."""
    for leaf in leaves:
        for value in _others(leaf.value):
            yield leaf, {leaf.path: value}
        for other in leaves:
            kind = type(leaf.value)
            if other is leaf or type(other.value) is not kind:
                continue
            yield leaf, {leaf.path: other.value}
            if kind is str and other.value == leaf.value:
                yield leaf, {leaf.path: MARKER, other.path: MARKER}
            elif kind is int and other.value >= leaf.value:  # perhaps the sum
                yield leaf, {leaf.path: leaf.value + _MORE, other.path: other.value + _MORE}


def _others(value: Any) -> tuple[Any, ...]:
    """Values that may stand in the place of *value*, and some that may not."""
    if isinstance(value, str):
        return _TIMES if time_of(value) else (*_TEXTS, value * 2)
    return _NUMBERS if type(value) in (int, float) else _OBJECTS if isinstance(value, dict) else ()


def _with(data: bytes, spans: Mapping[Path, tuple[int, int]], values: Mapping[Path, Any]) -> bytes:
    """The body *data* with *values* in the places of these leaves."""
    for path in sorted(values, key=spans.__getitem__, reverse=True):
        start, end = spans[path]
        data = data[:start] + dump_json(values[path]) + data[end:]
    return data
