"""Finds the canonical place of a leaf from outside: change it, map again, and compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final, Literal, TypeAlias

import attrs
import orjson

from crosswalk.codec.layout import CANONICAL, layout
from crosswalk.errors import MappingError
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture, reframer
from crosswalk.testing.perturbation import (
    MISSING,
    Leaf,
    Outcome,
    Path,
    at,
    changed_paths,
    leaves,
    outcome,
    replaced,
    scalars,
    show_path,
)
from crosswalk.text import json_type_name
from crosswalk.types.json import load_json
from crosswalk.types.usage import Provenance
from crosswalk.types.values import FinishReason
from crosswalk.wire.framing import Frame, is_done, load_event

# --------------------------------------------------------------------------------- effects
# The effect of a changed leaf: the differences between two results of mapping.


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
    effects = _effects(leaf, value, _differences(before or {}, after or {}))
    return list(dict.fromkeys(_in_segment(effect, after) for effect in effects))


def delta_effects(leaf: Leaf, value: Any, before: list[Any], after: list[Any]) -> list[Effect]:
    """The same for the deltas, as paths inside a delta."""
    return list(dict.fromkeys(_effects(leaf, value, _delta_differences(before, after))))


_Difference: TypeAlias = tuple[Path, Any, Any]


def _effects(leaf: Leaf, value: Any, changes: Iterable[_Difference]) -> Iterator[Effect]:
    """The paths of canonical JSON that change when *leaf* becomes *value*."""
    typed_changes: list[_Difference] = []
    extension_changes: list[_Difference] = []
    for path, old, new in changes:
        if "extensions" in path[:2]:
            extension_changes.append((path, old, new))
        elif "provenance" not in path[:2] and path[-1] not in _COMPUTED_KEYS:
            typed_changes.append((path, old, new))
    changes_with_value = [(path, old) for path, old, new in typed_changes if _holds(new, value)]
    if changes_with_value:
        for path, old in changes_with_value:
            is_empty = leaf.value is None and old is not None
            yield Effect(path, How.EMPTY if is_empty else How.TYPED)
    else:
        # A path that only appears or disappears along with a change is a consequence of it.
        for path, old, new in [change for change in typed_changes if MISSING not in change] or typed_changes:
            is_conversion = not isinstance(leaf.value, bool) and _is_quantity(new if old is MISSING else old)
            yield Effect(path, How.CONVERTED if is_conversion else How.DECIDES)
    extension_matches = [(path, old) for path, old, new in extension_changes if equals(new, value)]
    same_path_matches = [
        (path, old) for path, old in extension_matches if path[-len(leaf.path) :] == leaf.path
    ]
    for path, old in same_path_matches or extension_matches:
        yield Effect(path, How.OTHERWISE if old is MISSING else How.EXTENSIONS)


_COMPUTED_KEYS: Final = {key.name for cls in CANONICAL for key in layout(cls) if key.computed}


def _delta_differences(before: list[Any], after: list[Any]) -> Iterator[_Difference]:
    """The differences between two streams, as paths inside a delta. One may have more deltas than the other."""
    old_deltas, new_deltas = ([{**delta, "index": 0} for delta in deltas] for deltas in (before, after))
    while old_deltas and new_deltas and old_deltas[-1] == new_deltas[-1]:
        old_deltas.pop()
        new_deltas.pop()
    while old_deltas and new_deltas and old_deltas[0] == new_deltas[0]:
        del old_deltas[0], new_deltas[0]
    for left, right in zip_longest(old_deltas, new_deltas, fillvalue={"index": 0}):
        yield from _differences(left, right)


def _differences(before: Any, after: Any) -> Iterator[_Difference]:
    """Every scalar that differs, including those that only one side has."""
    for path in changed_paths(before, after):
        old, new = at(before, path), at(after, path)
        if new is MISSING:
            yield from ((inner_path, value, MISSING) for inner_path, value in scalars(old, path))
        elif old is MISSING or isinstance(new, dict | list):
            yield from ((inner_path, MISSING, value) for inner_path, value in scalars(new, path))
        else:
            yield path, old, new


def said(response: Any) -> Iterator[Effect]:
    """Every typed scalar of a response, without derived values."""
    metadata = response["metadata"]
    made_up_paths = [
        name for name, word in metadata.get("provenance", {}).items() if word != Provenance.DERIVED
    ]
    if "model" in made_up_paths:
        made_up_paths.append("metadata.model_id")
    for path, _ in scalars(response):
        if path[:2] not in _UNTYPED_PATHS and not show_path(path).startswith(tuple(made_up_paths)):
            yield _in_segment(Effect(path, How.DECIDES), response)


_UNTYPED_PATHS: Final = (("metadata", "extensions"), ("metadata", "provenance"))


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
        decoded_json = load_json(canonical)
    except orjson.JSONDecodeError:
        return False
    return any(equals(scalar, value) for _, scalar in scalars(decoded_json))


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


def with_same(leaf: Leaf, found_effects: list[Effect], response: Any) -> Iterator[Effect]:
    """*found_effects*, and, if no field holds an understood leaf, the typed fields that already have its value."""
    if found_effects and all(effect.how is How.OTHERWISE for effect in found_effects):
        for path, value in scalars(response):
            is_typed = "extensions" not in path[:2] and "provenance" not in path[:2]
            if is_typed and path[-1] == leaf.path[-1] and equals(value, leaf.value):
                yield Effect(path, How.SAME)
    yield from found_effects


# --------------------------------------------------------------------------------- tracing
# Finds the canonical place of a leaf from outside: change it, map again, and compare.
#
# It knows no provider and reads no table of a plugin, so its findings hold for any mapping.


@attrs.frozen
class Trace:
    """The canonical places of one leaf.

    Attributes:
        leaf: the leaf.
        response: its effects on the response.
        delta: its effects on the deltas.
        refused: the error that another value causes, or ``None`` if one is mapped.
        is_lost: whether it has no effect at all, which promise P1 forbids.
    """

    leaf: Leaf
    response: tuple[Effect, ...]
    delta: tuple[Effect, ...]
    refused: str | None
    is_lost: bool


class Tracer:
    """Traces the leaves of one capture.

    Args:
        mapper: the provider.
        capture: the recorded answer.

    Attributes:
        case: the name of the capture.
        events: its decoded events, up to the first that is not JSON, since a stream may be cut inside an event.
        baseline: the result of mapping them.
    """

    def __init__(self, mapper: Mapper, capture: Capture) -> None:
        self._mapper = mapper
        self._capture = capture
        self.case = capture.case
        frames, self.events = _readable(capture, mapper)
        self._as_bytes = reframer(capture, frames, self.events, text_events=mapper.info.text_events)
        self.baseline = self._map(self.events) if self.events else Outcome(None)

    def leaves(self) -> list[Leaf]:
        """Every leaf of every event, in order."""
        return list(leaves(self.events))

    def trace(self, leaf: Leaf) -> Trace:
        """Find the canonical places of *leaf*."""
        findings = _Found(leaf, self.baseline)
        for value in _trials(leaf.value):
            findings.add(value, self._map(replaced(self.events, leaf, value)))
        if findings.is_untold and type(leaf.value) is int and len(self.events) > 1:
            # It may distinguish items. Then it has to change in all events at once.
            for value in _trials(leaf.value):
                findings.add(value, self._map([_everywhere(event, leaf, value) for event in self.events]))
        refusal = findings.refused
        if not findings.has_changed and refusal is None:
            refusal = self._refused(leaf)
        response = tuple(with_same(leaf, findings.response, self.baseline.response))
        is_lost = not findings.has_changed and refusal is None
        return Trace(leaf, response, tuple(findings.delta), refusal, is_lost)

    def _refused(self, leaf: Leaf) -> str | None:
        """The error that another value causes if nothing unknown is kept."""
        strict_baseline = self._map(self.events, "raise")
        errors = (self._map(replaced(self.events, leaf, v), "raise").error for v in _trials(leaf.value))
        return next((_name(error) for error in errors if error != strict_baseline.error), None)

    def _map(self, events: list[Any], unknown: Literal["raise", "keep"] = "keep") -> Outcome:
        options = ReaderOptions(status=self._capture.status, unknown=unknown)
        return outcome(self._mapper, events, options=options, as_bytes=self._as_bytes)


def _readable(capture: Capture, mapper: Mapper) -> tuple[list[Frame], list[Any]]:
    """The frames and events of *capture* as far as they can be read; an HTTP error has no frames."""
    events: list[Any] = []
    frames: list[Frame] = []
    try:
        if capture.status >= 400:
            return [], capture.events(mapper)
        for data, name in _cut_out(capture.body, mapper):
            if data and not is_done(data):
                events.append(mapper.info.opened(load_event(data, halves="mend")))
                frames.append((data, name))
    except (MappingError, orjson.JSONDecodeError):
        pass
    return frames, events


def _cut_out(body: bytes, mapper: Mapper) -> Iterator[Frame]:
    decoder = mapper.new_decoder()
    yield from decoder.decode(body)
    yield from decoder.flush()


class _Found:
    """Collects the effects of several changes of one leaf."""

    def __init__(self, leaf: Leaf, baseline: Outcome) -> None:
        self._leaf = leaf
        self._before = baseline
        self.response: list[Effect] = []
        self.delta: list[Effect] = []
        self.refused: str | None = None
        self.has_changed = False

    @property
    def is_untold(self) -> bool:
        """Whether no typed field is known to hold it."""
        return not any(effect.how in (How.TYPED, How.CONVERTED) for effect in self.response)

    def add(self, value: Any, after: Outcome) -> None:
        """Compare *after*, the result of mapping with *value* in place of the leaf."""
        leaf, baseline = self._leaf, self._before
        if after.error != baseline.error:
            self.refused = self.refused or _name(after.error)
            return
        self.has_changed |= (after.response, after.deltas) != (baseline.response, baseline.deltas)
        _extend(self.response, response_effects(leaf, value, baseline.response, after.response))
        paths = {effect.path for effect in self.response}
        all_effects = delta_effects(leaf, value, baseline.deltas, after.deltas)
        direct_effects = [effect for effect in all_effects if not _is_consequence(effect, paths)]
        _extend(self.delta, direct_effects if direct_effects or self.response else all_effects)


def _extend(all_effects: list[Effect], new_effects: list[Effect]) -> None:
    all_effects += [effect for effect in new_effects if effect not in all_effects]


def _is_consequence(effect: Effect, paths: set[Path]) -> bool:
    """Whether a delta only moved along with a change: its values are at none of the response's *paths*."""
    return effect.how in (How.CONVERTED, How.DECIDES) and effect.path not in paths


def _name(error: str | None) -> str:
    return (error or "no error").partition(":")[0]


_MARK: Final = "Xcrosswalk"
"""A text that occurs nowhere by chance."""
_MAX_EXACT_INTEGER: Final = 2**53


def _trials(value: Any) -> Iterator[Any]:
    """Other values of the type of *value*, chosen to show where it goes."""
    if value is None:
        yield from (_MARK, 7)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        # A change that is visible in any unit.
        yield value * 2 + 1 if abs(value) < _MAX_EXACT_INTEGER and value != -1 else value // 2 - 1
    elif isinstance(value, float):
        yield value / 2 if value else 0.5
    else:
        middle = len(value) // 2
        yield f"{value[:middle]}{_MARK}{value[middle:]}"
        if value in list(FinishReason):  # a known word has effects that unknown words do not have
            yield FinishReason.LENGTH.value if value == FinishReason.STOP else FinishReason.STOP.value


def _everywhere(event: Any, leaf: Leaf, value: Any) -> Any:
    """*event* with *value* in every place that has the value of *leaf*."""
    event_value = at(event, leaf.path)
    if event_value is MISSING or not equals(event_value, leaf.value):
        return event
    return replaced([event], Leaf(0, leaf.path, leaf.value), value)[0]
