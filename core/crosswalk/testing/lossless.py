"""Checks that nothing is lost: another value, one more item, one more field show (P1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import attrs

from crosswalk.testing.case import Case
from crosswalk.testing.mistaken import vanished
from crosswalk.testing.perturbation import (
    Leaf,
    Path,
    at,
    changes,
    replaced,
    show_path,
    without,
)
from crosswalk.testing.problems import Problem


def nothing_lost(case: Case) -> Iterator[Problem]:
    """P1: if one leaf of the payload changes, the canonical JSON changes."""
    for leaf in case.sampled():
        for change in changes(case.events, leaf):
            after = case.map(change.events)
            if after.is_like(case.baseline):
                yield case.problem("P1", leaf, f"lost: changing its {change.name} changes nothing")
            elif after.untyped:
                yield case.problem("P4", leaf, f"changing its {change.name}: {after.error}")
    yield from _more_items(case)
    yield from _more_fields(case)
    yield from _more_calls(case)
    yield from _equal_arrays(case)


def _more_items(case: Case) -> Iterator[Problem]:
    """One more item in an array, similar to its items, is neither taken for another thing nor dropped."""
    ends = [
        Leaf(number, (*path, len(items)), items)
        for number, event in enumerate(case.events)
        for path, items in _arrays(event)
    ]
    for end in case.some(case.alike(ends), None if case.sample is None else max(case.sample // 4, 2)):
        array, items = attrs.evolve(end, path=end.path[:-1]), end.value
        item = next((more for kind, more in _ITEMS.items() if type(items[-1]) is kind), "crosswalk")
        # An optional item may come between.
        for more in ([item], [None, None, None, item]):
            after = case.map(replaced(case.events, array, [*items, *more]))
            if after.error is None:
                if vanished(case.baseline, after, item):
                    yield case.problem(
                        "P1", end, "lost: one more item at the end of the array changes nothing"
                    )
                break


def _more_fields(case: Case) -> Iterator[Problem]:
    """One more field in an object, unknown to all plugins, arrives, or is refused."""
    fields = [
        Leaf(number, (*path, "crosswalk"), value)
        for number, event in enumerate(case.events)
        for path, value in _objects(event)
    ]
    for field in case.some(case.alike(fields), None if case.sample is None else max(case.sample // 4, 2)):
        after = case.map(replaced(case.events, field, 1234.5))
        if after.error is None and vanished(case.baseline, after, 1234.5):
            yield case.problem("P1", field, "lost: an unknown field of the object changes nothing")


def _equal_arrays(case: Case) -> Iterator[Problem]:
    """An array of scalars that equals the one of an earlier event is a piece like any other."""
    rules = case.mapper.info.cumulative
    results: dict[Path, list[Leaf]] = {}
    for number, event in enumerate(case.events):
        for path, items in _arrays(event):
            if (
                path
                and isinstance(path[-1], str)
                and not any(isinstance(item, dict | list) for item in items)
            ):
                results.setdefault(path, []).append(Leaf(number, path, items))
    for path in case.some([*results], None if case.sample is None else max(case.sample // 4, 2)):
        arrays = results[path]
        if show_path(path, items=False) in rules:
            pairs = itertools.pairwise(arrays)
            broken = [after for before, after in pairs if after.value[: len(before.value)] != before.value]
            why = "declared as cumulative, and does not go on from the one before"
            yield from (case.problem("P1", after, why) for after in broken[:1])
            continue
        different = [one for one in arrays[2:] if one.value != arrays[0].value]
        if not different:
            continue  # an array that is the same in every event is a single one
        changed = replaced(case.events, arrays[1], arrays[0].value)
        if case.map(changed).is_like(case.map(without(changed, arrays[1]))):
            yield case.problem("P1", arrays[1], "lost: an array that equals the one before changes nothing")


def _more_calls(case: Case) -> Iterator[Problem]:
    """One more call after the last of an array of calls is a call, too."""
    calls = case.baseline.response["message"].get("tool_calls", ()) if case.is_answer else ()
    id = calls[-1]["id"] if calls else None
    results = [leaf for leaf in case.leaves if leaf.value == id]
    depth = max(
        (depth for leaf in results for depth, key in enumerate(leaf.path) if isinstance(key, int)), default=0
    )
    if id is None or len(results) != 1 or not depth:
        return
    leaf = results[0]
    array = Leaf(leaf.event, leaf.path[:depth], None)
    items: list[Any] = at(case.events[array.event], array.path)
    if not isinstance(items[-1], dict):
        return
    after = case.map(replaced(case.events, array, [*items, _another(items[-1], id)]))
    if after.error is None and len(after.response["message"].get("tool_calls", ())) <= len(calls):
        yield case.problem(
            "P1", array, "one more call at the end of the array is not read as a call", about="calls"
        )


def _another(value: Any, id: str) -> Any:
    """Return a copy of *value*, a call, with another id and other numbers."""
    if isinstance(value, dict):
        return {key: _another(item, id) for key, item in value.items()}
    return value + 1 if type(value) is int else f"{id}-2" if value == id else value


def _objects(value: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every object in *value* that has a field, with the keys that lead to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict) and value:
        yield path, value
    for key, item in items:
        yield from _objects(item, (*path, key))


_ITEMS: Final[dict[type, Any]] = {
    dict: {"crosswalk": "crosswalk"},
    list: ["crosswalk"],
    int: 7070707,
    float: 1234.5,
}


def _arrays(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    """Yield every array in *value*, a JSON value, that is not empty, with the keys that lead to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, list) and value:
        yield path, value
    for key, item in items:
        yield from _arrays(item, (*path, key))
