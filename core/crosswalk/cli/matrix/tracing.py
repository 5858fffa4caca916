"""Finds the canonical place of a leaf from outside: change it, map again, and compare.

It knows no provider and reads no table of a plugin, so its findings hold for any mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import attrs
import orjson

from crosswalk.cli.matrix.effects import Effect, How, delta_effects, equals, response_effects, with_same
from crosswalk.errors import MappingError
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture, reframer
from crosswalk.testing.perturbation import MISSING, Leaf, Outcome, Path, at, leaves, outcome, replaced
from crosswalk.types.values import FinishReason
from crosswalk.wire.events import load_event
from crosswalk.wire.framing import Frame, is_done


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
        result = _Found(leaf, self.baseline)
        for value in _trials(leaf.value):
            result.add(value, self._map(replaced(self.events, leaf, value)))
        if result.is_untold and type(leaf.value) is int and len(self.events) > 1:
            # It may distinguish items. Then it has to change in all events at once.
            for value in _trials(leaf.value):
                result.add(value, self._map([_everywhere(event, leaf, value) for event in self.events]))
        refused = result.refused
        if not result.has_changed and refused is None:
            refused = self._refused(leaf)
        response = tuple(with_same(leaf, result.response, self.baseline.response))
        is_lost = not result.has_changed and refused is None
        return Trace(leaf, response, tuple(result.delta), refused, is_lost)

    def _refused(self, leaf: Leaf) -> str | None:
        """The error that another value causes if nothing unknown is kept."""
        before = self._map(self.events, "raise")
        errors = (self._map(replaced(self.events, leaf, v), "raise").error for v in _trials(leaf.value))
        return next((_name(error) for error in errors if error != before.error), None)

    def _map(self, events: list[Any], unknown: Literal["raise", "keep"] = "keep") -> Outcome:
        options = ReaderOptions(status=self._capture.status, unknown=unknown)
        return outcome(self._mapper, events, options=options, as_bytes=self._as_bytes)


def _readable(capture: Capture, mapper: Mapper) -> tuple[list[Frame], list[Any]]:
    """The frames and events of *capture* as far as they can be read; an HTTP error has no frames."""
    events: list[Any] = []
    frames: list[Frame] = []
    try:
        if capture.status >= 400:
            return [], capture.events()
        for data, name in _cut_out(capture.body, mapper):
            if data and not is_done(data):
                events.append(load_event(data, halves="mend"))
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

    def __init__(self, leaf: Leaf, before: Outcome) -> None:
        self._leaf = leaf
        self._before = before
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
        leaf, before = self._leaf, self._before
        if after.error != before.error:
            self.refused = self.refused or _name(after.error)
            return
        self.has_changed |= (after.response, after.deltas) != (before.response, before.deltas)
        _extend(self.response, response_effects(leaf, value, before.response, after.response))
        paths = {effect.path for effect in self.response}
        moved = delta_effects(leaf, value, before.deltas, after.deltas)
        described = [effect for effect in moved if not _is_consequence(effect, paths)]
        _extend(self.delta, described if described or self.response else moved)


def _extend(known: list[Effect], found: list[Effect]) -> None:
    known += [effect for effect in found if effect not in known]


def _is_consequence(effect: Effect, paths: set[Path]) -> bool:
    """Whether a delta only moved along with a change: its values are at none of the response's *paths*."""
    return effect.how in (How.CONVERTED, How.DECIDES) and effect.path not in paths


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
        # A change that is visible in any unit.
        yield value * 2 + 1 if abs(value) < _LARGE and value != -1 else value // 2 - 1
    elif isinstance(value, float):
        yield value / 2 if value else 0.5
    else:
        middle = len(value) // 2
        yield f"{value[:middle]}{_MARK}{value[middle:]}"
        if value in list(FinishReason):  # a known word has effects that unknown words do not have
            yield FinishReason.LENGTH.value if value == FinishReason.STOP else FinishReason.STOP.value


def _everywhere(event: Any, leaf: Leaf, value: Any) -> Any:
    """*event* with *value* in every place that has the value of *leaf*."""
    same = at(event, leaf.path)
    if same is MISSING or not equals(same, leaf.value):
        return event
    return replaced([event], Leaf(0, leaf.path, leaf.value), value)[0]
