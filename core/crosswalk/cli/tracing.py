"""Where a leaf of a payload went, found out from outside: change it, map again, and see what else changed.

It knows no provider and reads no table of a plugin, so what it says is true of any mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias

import attrs
import orjson

from crosswalk.codec.layout import CANONICAL, layout
from crosswalk.errors import FramingError, json_type_name
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.mapper import Mapper
from crosswalk.testing.captures import Capture, reframed
from crosswalk.testing.perturbation import (
    MISSING,
    Leaf,
    Outcome,
    Path,
    changed_paths,
    leaves,
    outcome,
    replaced,
)
from crosswalk.types.finish import FinishReason

__all__ = ["How", "Landing", "Trace", "Tracer"]


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
class Landing:
    """A canonical path, and what it has to do with a leaf.

    Attributes:
        path: the keys that lead there, from the response or from a delta.
        how: what it has to do with the leaf.
        segment: the type of the segment that the path leads through; ``None`` where it leads through none.
    """

    path: Path
    how: How
    segment: str | None = None


@attrs.frozen
class Trace:
    """Where one leaf went.

    Attributes:
        leaf: the leaf.
        response: where it shows in the response.
        delta: where it shows in the deltas.
        refused: the error that another value meets; ``None`` where one is mapped.
        is_lost: whether nothing tells of it: what promise P1 forbids.
    """

    leaf: Leaf
    response: tuple[Landing, ...]
    delta: tuple[Landing, ...]
    refused: str | None
    is_lost: bool


class Tracer:
    """Traces the leaves of one capture.

    Args:
        mapper: the provider.
        capture: the recorded answer.

    Attributes:
        events: its decoded events; empty where one is no JSON, so that there are no leaves.
        baseline: what they are mapped to.
    """

    def __init__(self, mapper: Mapper, capture: Capture) -> None:
        self._mapper = mapper
        self._capture = capture
        self.events: list[Any] = []
        try:
            self._frames = [] if capture.status >= 400 else capture.frames()
            self.events = capture.events()
        except (FramingError, orjson.JSONDecodeError):
            pass
        self.baseline = self._map(self.events) if self.events else Outcome(None, [])

    def leaves(self) -> list[Leaf]:
        """Every leaf of every event, in order."""
        return list(leaves(self.events))

    def trace(self, leaf: Leaf) -> Trace:
        """Find out where *leaf* went."""
        found = _Found(leaf, self.baseline)
        for value in _trials(leaf.value):
            found.add(value, self._map(replaced(self.events, leaf, value)))
        if found.is_untold and type(leaf.value) is int and len(self.events) > 1:
            # It may be what tells items apart: then all events that say it have to change as one.
            for value in _trials(leaf.value):
                found.add(value, self._map([_everywhere(event, leaf, value) for event in self.events]))
        refused = found.refused
        if not found.has_changed and refused is None:
            refused = self._refused(leaf)
        response = tuple(_with_same(leaf, found.response, self.baseline.response))
        is_lost = not found.has_changed and refused is None
        return Trace(leaf, response, tuple(found.delta), refused, is_lost)

    def _refused(self, leaf: Leaf) -> str | None:
        """The error that another value meets where nothing unknown is kept."""
        before = self._map(self.events, "raise")
        errors = (self._map(replaced(self.events, leaf, v), "raise").error for v in _trials(leaf.value))
        return next((_name(error) for error in errors if error != before.error), None)

    def _map(self, events: list[Any], unknown: Literal["raise", "keep"] = "keep") -> Outcome:
        options = ReaderOptions(status=self._capture.status, unknown=unknown)
        return outcome(self._mapper, events, options=options, as_bytes=self._as_bytes)

    def _as_bytes(self, events: list[Any]) -> bytes:
        return reframed(self._capture, self._frames, self.events, events)


class _Found:
    """Gathers what several changes of one leaf show."""

    def __init__(self, leaf: Leaf, before: Outcome) -> None:
        self._leaf = leaf
        self._before = before
        self.response: list[Landing] = []
        self.delta: list[Landing] = []
        self.refused: str | None = None
        self.has_changed = False

    @property
    def is_untold(self) -> bool:
        """Whether no typed field is known to hold it."""
        return not any(landing.how in (How.TYPED, How.CONVERTED) for landing in self.response)

    def add(self, value: Any, after: Outcome) -> None:
        """Look at *after*, which mapping gives where the leaf is *value*."""
        leaf, before = self._leaf, self._before
        if after.error != before.error:
            self.refused = self.refused or _name(after.error)
            return
        self.has_changed |= (after.response, after.deltas) != (before.response, before.deltas)
        landings = _landings(leaf, value, _differences(before.response or {}, after.response or {}))
        _extend(self.response, (_in_segment(landing, after.response) for landing in landings))
        paths = {landing.path for landing in self.response}
        moved = list(_landings(leaf, value, _delta_differences(before.deltas, after.deltas)))
        told = [landing for landing in moved if not _is_consequence(landing, paths)]
        _extend(self.delta, told if told or self.response else moved)


def _extend(known: list[Landing], found: Iterable[Landing]) -> None:
    known += [landing for landing in dict.fromkeys(found) if landing not in known]


def _is_consequence(landing: Landing, paths: set[Path]) -> bool:
    """Whether a delta only moved along with a change: it says what none of *paths*, the response's, says."""
    return landing.how in (How.CONVERTED, How.DECIDES) and landing.path not in paths


def _name(error: str | None) -> str:
    return (error or "no error").partition(":")[0]


_MARK: Final = "Xcrosswalk"
"""A text that occurs nowhere by chance."""
_LARGE: Final = 2**53


def _trials(value: Any) -> Iterator[Any]:
    """Other values of the type of *value*, chosen to show where it goes."""
    if value is None:
        yield from (_MARK, 7)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        # By so much that it shows after a change of units, too.
        yield value * 2 + 1 if abs(value) < _LARGE else value // 2
    elif isinstance(value, float):
        yield value / 2 if value else 0.5
    else:
        middle = len(value) // 2
        yield f"{value[:middle]}{_MARK}{value[middle:]}"
        if value in list(FinishReason):  # a word that is known shows what unknown ones do not
            yield FinishReason.LENGTH.value if value == FinishReason.STOP else FinishReason.STOP.value


def _everywhere(event: Any, leaf: Leaf, value: Any) -> Any:
    """*event* with *value* where it says the same as *leaf*: what tells items apart has to change as one."""
    same = _at(event, leaf.path)
    if same is MISSING or not _equals(same, leaf.value):
        return event
    return replaced([event], Leaf(0, leaf.path, leaf.value), value)[0]


_Difference: TypeAlias = tuple[Path, Any, Any]


def _landings(leaf: Leaf, value: Any, differences: Iterable[_Difference]) -> Iterator[Landing]:
    """Where canonical JSON shows that *leaf* became *value*."""
    typed: list[_Difference] = []
    kept: list[_Difference] = []
    for path, old, new in differences:
        if "extensions" in path[:2]:
            kept.append((path, old, new))
        elif "provenance" not in path[:2] and path[-1] not in _COMPUTED:
            typed.append((path, old, new))
    held = [(path, old) for path, old, new in typed if _holds(new, value)]
    if held:
        for path, old in held:
            is_empty = leaf.value is None and old is not None
            yield Landing(path, How.EMPTY if is_empty else How.TYPED)
    else:
        # What only comes or goes along with a change is its consequence.
        changed = [found for found in typed if MISSING not in found] or typed
        for path, old, new in changed:
            is_said = not isinstance(leaf.value, bool) and _is_quantity(new if old is MISSING else old)
            yield Landing(path, How.CONVERTED if is_said else How.DECIDES)
    now_kept = [(path, old) for path, old, new in kept if _equals(new, value)]
    in_place = [(path, old) for path, old in now_kept if path[-len(leaf.path) :] == leaf.path]
    for path, old in in_place or now_kept:
        yield Landing(path, How.OTHERWISE if old is MISSING else How.EXTENSIONS)


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
        old, new = _at(before, path), _at(after, path)
        if new is MISSING:
            yield from ((found, value, MISSING) for found, value in _scalars(old, path))
        elif old is MISSING or isinstance(new, dict | list):
            yield from ((found, MISSING, value) for found, value in _scalars(new, path))
        else:
            yield path, old, new


def _at(value: Any, path: Path) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _scalars(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _scalars(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _scalars(item, (*path, number))
    else:
        yield path, value


def _equals(left: Any, right: Any) -> bool:
    """Whether two scalars are equal as JSON, in which 1 is 1.0 and not ``true``."""
    return json_type_name(left) == json_type_name(right) and bool(left == right)


def _holds(canonical: Any, value: Any) -> bool:
    """Whether a canonical scalar is *value*, or a text with it inside."""
    if not isinstance(canonical, str) or isinstance(value, bool):
        return canonical is not MISSING and _equals(canonical, value)
    if isinstance(value, str):
        return value in canonical
    if canonical == str(value):
        return True
    try:
        inside = orjson.loads(canonical)
    except orjson.JSONDecodeError:
        return False
    return any(_equals(scalar, value) for _, scalar in _scalars(inside))


def _is_quantity(value: Any) -> bool:
    """Whether *value* is a number or a time: what may be said in another unit."""
    try:
        return json_type_name(value) == "number" or bool(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return False


def _in_segment(landing: Landing, response: Any) -> Landing:
    """*landing*, with the type of its segment if it is in one."""
    if "segments" not in landing.path[:3] or "extensions" in landing.path[:2]:
        return landing
    segment = _at(response, landing.path[: landing.path.index("segments") + 2])
    return landing if segment is MISSING else attrs.evolve(landing, segment=segment["type"])


def _with_same(leaf: Leaf, found: list[Landing], response: Any) -> Iterator[Landing]:
    """*found*; where a leaf is understood and yet held nowhere, also the typed fields that say the same."""
    if found and all(landing.how is How.OTHERWISE for landing in found):
        for path, value in _scalars(response):
            is_typed = "extensions" not in path[:2] and "provenance" not in path[:2]
            if is_typed and path[-1] == leaf.path[-1] and _equals(value, leaf.value):
                yield Landing(path, How.SAME)
    yield from found
