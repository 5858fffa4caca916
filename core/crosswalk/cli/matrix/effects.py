"""The effect of a changed leaf: the differences between two results of mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.codec.layout import CANONICAL, layout
from crosswalk.testing.perturbation import MISSING, Leaf, Path, at, changed_paths, scalars, show_path
from crosswalk.text import json_type_name
from crosswalk.types.json import load_json
from crosswalk.types.usage import Provenance


class How(StrEnum):
    """The relation of a canonical path to a leaf, most telling first."""

    TYPED = "typed"
    """A typed field holds the value."""
    CONVERTED = "converted"
    """A typed field holds it in another unit or form."""
    DECIDES = "decides"
    """The value decides what a typed field holds."""
    SAME = "same"
    """A typed field holds the same value already."""
    EMPTY = "empty"
    """A typed field would hold a value, but the leaf is empty."""
    EXTENSIONS = "extensions"
    """The extensions hold it as sent."""
    OTHERWISE = "otherwise"
    """The extensions would hold another value here; this one is understood."""


@attrs.frozen
class Effect:
    """A canonical path and its relation to a leaf.

    Attributes:
        path: the keys that lead there, from the response or from a delta.
        how: the relation.
        segment: the type of the segment on the path, or ``None`` if the path leads through none.
    """

    path: Path
    how: How
    segment: str | None = None


def response_effects(leaf: Leaf, value: Any, before: Any, after: Any) -> list[Effect]:
    """The paths of the response that change when *leaf* becomes *value*.

    Args:
        leaf: the changed leaf.
        value: its new value.
        before: the canonical JSON without the change, or ``None`` if there is no response.
        after: the same with it.
    """
    result = _effects(leaf, value, _differences(before or {}, after or {}))
    return list(dict.fromkeys(_in_segment(effect, after) for effect in result))


def delta_effects(leaf: Leaf, value: Any, before: list[Any], after: list[Any]) -> list[Effect]:
    """The same for the deltas, as paths inside a delta."""
    return list(dict.fromkeys(_effects(leaf, value, _delta_differences(before, after))))


_Difference: TypeAlias = tuple[Path, Any, Any]


def _effects(leaf: Leaf, value: Any, changed: Iterable[_Difference]) -> Iterator[Effect]:
    """The paths of canonical JSON that change when *leaf* becomes *value*."""
    typed: list[_Difference] = []
    stored: list[_Difference] = []
    for path, old, new in changed:
        if "extensions" in path[:2]:
            stored.append((path, old, new))
        elif "provenance" not in path[:2] and path[-1] not in _COMPUTED:
            typed.append((path, old, new))
    buffered = [(path, old) for path, old, new in typed if _holds(new, value)]
    if buffered:
        for path, old in buffered:
            is_empty = leaf.value is None and old is not None
            yield Effect(path, How.EMPTY if is_empty else How.TYPED)
    else:
        # A path that only appears or disappears along with a change is a consequence of it.
        for path, old, new in [result for result in typed if MISSING not in result] or typed:
            is_said = not isinstance(leaf.value, bool) and _is_quantity(new if old is MISSING else old)
            yield Effect(path, How.CONVERTED if is_said else How.DECIDES)
    now_kept = [(path, old) for path, old, new in stored if equals(new, value)]
    in_place = [(path, old) for path, old in now_kept if path[-len(leaf.path) :] == leaf.path]
    for path, old in in_place or now_kept:
        yield Effect(path, How.OTHERWISE if old is MISSING else How.EXTENSIONS)


_COMPUTED: Final = {key.name for cls in CANONICAL for key in layout(cls) if key.computed}


def _delta_differences(before: list[Any], after: list[Any]) -> Iterator[_Difference]:
    """The differences between two streams, as paths inside a delta. One may have more deltas than the other."""
    old, new = ([{**delta, "index": 0} for delta in deltas] for deltas in (before, after))
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    for left, right in zip_longest(old, new, fillvalue={"index": 0}):
        yield from _differences(left, right)


def _differences(before: Any, after: Any) -> Iterator[_Difference]:
    """Every scalar that differs, including those that only one side has."""
    for path in changed_paths(before, after):
        old, new = at(before, path), at(after, path)
        if new is MISSING:
            yield from ((result, value, MISSING) for result, value in scalars(old, path))
        elif old is MISSING or isinstance(new, dict | list):
            yield from ((result, MISSING, value) for result, value in scalars(new, path))
        else:
            yield path, old, new


def said(response: Any) -> Iterator[Effect]:
    """Every typed scalar of a response, without derived values."""
    metadata = response["metadata"]
    made_up = [name for name, word in metadata.get("provenance", {}).items() if word != Provenance.DERIVED]
    if "model" in made_up:
        made_up.append("metadata.model_id")
    for path, _ in scalars(response):
        if path[:2] not in _UNTYPED and not show_path(path).startswith(tuple(made_up)):
            yield _in_segment(Effect(path, How.DECIDES), response)


_UNTYPED: Final = (("metadata", "extensions"), ("metadata", "provenance"))


def equals(left: Any, right: Any) -> bool:
    """Whether two scalars are equal as JSON, where 1 equals 1.0 and not ``true``."""
    return json_type_name(left) == json_type_name(right) and bool(left == right)


def _holds(canonical: Any, value: Any) -> bool:
    """Whether a canonical scalar is *value*, or a text that contains it."""
    if not isinstance(canonical, str) or isinstance(value, bool):
        return canonical is not MISSING and equals(canonical, value)
    if isinstance(value, str):
        return value in canonical
    try:
        inside = load_json(canonical)
    except orjson.JSONDecodeError:
        return False
    return any(equals(scalar, value) for _, scalar in scalars(inside))


def _is_quantity(value: Any) -> bool:
    """Whether *value* is a number or a time, which may appear in another unit."""
    try:
        return json_type_name(value) == "number" or bool(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return False


def _in_segment(effect: Effect, response: Any) -> Effect:
    """*effect*, with the type of its segment if it is in one."""
    if "segments" not in effect.path[:3] or "extensions" in effect.path[:2]:
        return effect
    segment = at(response, effect.path[: effect.path.index("segments") + 2])
    return effect if segment is MISSING else attrs.evolve(effect, segment=segment["type"])


def with_same(leaf: Leaf, found: list[Effect], response: Any) -> Iterator[Effect]:
    """*found*, and, if no field holds an understood leaf, the typed fields that already have its value."""
    if found and all(effect.how is How.OTHERWISE for effect in found):
        for path, value in scalars(response):
            is_typed = "extensions" not in path[:2] and "provenance" not in path[:2]
            if is_typed and path[-1] == leaf.path[-1] and equals(value, leaf.value):
                yield Effect(path, How.SAME)
    yield from found
