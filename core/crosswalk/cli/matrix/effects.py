"""What two results of mapping tell of the leaf that was changed between them."""

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
from crosswalk.types.metadata import Provenance

__all__ = ["Effect", "How", "delta_effects", "equals", "response_effects", "said", "with_same"]


class How(StrEnum):
    """What a canonical path has to do with a leaf, in the order in which it is told."""

    TYPED = "typed"
    """A typed field holds the value."""
    CONVERTED = "converted"
    """A typed field says it in another unit or form."""
    DECIDES = "decides"
    """It is a switch: what a typed field says hangs on it."""
    SAME = "same"
    """A typed field says the same already."""
    EMPTY = "empty"
    """A typed field would hold a value; there is none."""
    EXTENSIONS = "extensions"
    """The extensions keep it as it came."""
    OTHERWISE = "otherwise"
    """The extensions would keep another value here; this one is understood."""


@attrs.frozen
class Effect:
    """A canonical path, and what it has to do with a leaf.

    Attributes:
        path: the keys that lead there, from the response or from a delta.
        how: what it has to do with the leaf.
        segment: the type of the segment that the path leads through; ``None`` where it leads through none.
    """

    path: Path
    how: How
    segment: str | None = None


def response_effects(leaf: Leaf, value: Any, before: Any, after: Any) -> list[Effect]:
    """Where two responses tell that *leaf* became *value*.

    Args:
        leaf: what was changed.
        value: what it was changed to.
        before: the canonical JSON without the change; ``None`` where there is no response.
        after: the same with it.
    """
    found = _effects(leaf, value, _differences(before or {}, after or {}))
    return list(dict.fromkeys(_in_segment(effect, after) for effect in found))


def delta_effects(leaf: Leaf, value: Any, before: list[Any], after: list[Any]) -> list[Effect]:
    """The same for the deltas, as paths inside a delta."""
    return list(dict.fromkeys(_effects(leaf, value, _delta_differences(before, after))))


_Difference: TypeAlias = tuple[Path, Any, Any]


def _effects(leaf: Leaf, value: Any, changed: Iterable[_Difference]) -> Iterator[Effect]:
    """Where canonical JSON shows that *leaf* became *value*."""
    typed: list[_Difference] = []
    kept: list[_Difference] = []
    for path, old, new in changed:
        if "extensions" in path[:2]:
            kept.append((path, old, new))
        elif "provenance" not in path[:2] and path[-1] not in _COMPUTED:
            typed.append((path, old, new))
    held = [(path, old) for path, old, new in typed if _holds(new, value)]
    if held:
        for path, old in held:
            is_empty = leaf.value is None and old is not None
            yield Effect(path, How.EMPTY if is_empty else How.TYPED)
    else:
        # What only comes or goes along with a change is its consequence.
        for path, old, new in [found for found in typed if MISSING not in found] or typed:
            is_said = not isinstance(leaf.value, bool) and _is_quantity(new if old is MISSING else old)
            yield Effect(path, How.CONVERTED if is_said else How.DECIDES)
    now_kept = [(path, old) for path, old, new in kept if equals(new, value)]
    in_place = [(path, old) for path, old in now_kept if path[-len(leaf.path) :] == leaf.path]
    for path, old in in_place or now_kept:
        yield Effect(path, How.OTHERWISE if old is MISSING else How.EXTENSIONS)


_COMPUTED: Final = {key.name for cls in CANONICAL for key in layout(cls) if key.computed}


def _delta_differences(before: list[Any], after: list[Any]) -> Iterator[_Difference]:
    """What differs between two streams, as paths inside a delta; one may have more deltas than the other."""
    old, new = ([{**delta, "index": 0} for delta in deltas] for deltas in (before, after))
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    for left, right in zip_longest(old, new, fillvalue={"index": 0}):
        yield from _differences(left, right)


def _differences(before: Any, after: Any) -> Iterator[_Difference]:
    """Every scalar that differs, also inside what is there on one side alone."""
    for path in changed_paths(before, after):
        old, new = at(before, path), at(after, path)
        if new is MISSING:
            yield from ((found, value, MISSING) for found, value in scalars(old, path))
        elif old is MISSING or isinstance(new, dict | list):
            yield from ((found, MISSING, value) for found, value in scalars(new, path))
        else:
            yield path, old, new


def said(response: Any) -> Iterator[Effect]:
    """Every typed scalar of a response; a value that only stands in for one is none."""
    metadata = response["metadata"]
    made_up = [name for name, word in metadata.get("provenance", {}).items() if word != Provenance.DERIVED]
    if "model" in made_up:
        made_up.append("metadata.model_id")
    for path, _ in scalars(response):
        if path[:2] not in _UNTYPED and not show_path(path).startswith(tuple(made_up)):
            yield _in_segment(Effect(path, How.DECIDES), response)


_UNTYPED: Final = (("metadata", "extensions"), ("metadata", "provenance"))


def equals(left: Any, right: Any) -> bool:
    """Whether two scalars are equal as JSON, in which 1 is 1.0 and not ``true``."""
    return json_type_name(left) == json_type_name(right) and bool(left == right)


def _holds(canonical: Any, value: Any) -> bool:
    """Whether a canonical scalar is *value*, or a text with it inside."""
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
    """Whether *value* is a number or a time: what may be said in another unit."""
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
    """*found*; where a leaf is understood and yet held nowhere, also the typed fields that say the same."""
    if found and all(effect.how is How.OTHERWISE for effect in found):
        for path, value in scalars(response):
            is_typed = "extensions" not in path[:2] and "provenance" not in path[:2]
            if is_typed and path[-1] == leaf.path[-1] and equals(value, leaf.value):
                yield Effect(path, How.SAME)
    yield from found
