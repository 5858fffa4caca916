"""Where a leaf of a payload went, found out from outside: change it, map again, and see what else changed.

It knows no provider and reads no table of a plugin, so what it says is true of any mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.errors import FramingError
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.mapper import Mapper
from crosswalk.testing.captures import Capture
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
    """What a canonical path has to do with a leaf."""

    TYPED = "typed"
    """A typed field holds the value."""
    CONVERTED = "converted"
    """A typed field says it in another unit or form."""
    DECIDES = "decides"
    """It is a switch: what the typed field says hangs on it."""
    SAME = "same"
    """A typed field says the same already; only another value would be kept in the extensions."""
    EXTENSIONS = "extensions"
    """The extensions keep it as it came."""
    OTHERWISE = "otherwise"
    """Here the extensions would keep another value; this one is understood."""


@attrs.frozen
class Landing:
    """A canonical path, and what it has to do with a leaf."""

    how: How
    path: Path


@attrs.frozen
class Trace:
    """Where one leaf went.

    Attributes:
        leaf: the leaf.
        response: where it shows in the response.
        delta: where it shows in the delta of its event.
        refused: the error that another value of the same type meets; ``None`` when it is mapped.
    """

    leaf: Leaf
    response: tuple[Landing, ...]
    delta: tuple[Landing, ...]
    refused: str | None = None

    @property
    def is_lost(self) -> bool:
        """Whether nothing tells of it: what promise P1 forbids."""
        return not (self.response or self.delta or self.refused)


class Tracer:
    """Traces the leaves of one capture.

    Args:
        mapper: the provider.
        capture: the recorded answer.
        status: its HTTP status; ``None`` for the capture's own.
    """

    def __init__(self, mapper: Mapper, capture: Capture, status: int | None = None) -> None:
        self._mapper = mapper
        self._capture = capture if status is None else attrs.evolve(capture, status=status)
        try:
            self.events: list[Any] = self._capture.events()
        except (FramingError, orjson.JSONDecodeError):
            self.events = []
        # An unknown finish word is kept: it shows where such words go.
        self.baseline = self._map(self.events, "keep") if self.events else Outcome(None, [])

    def leaves(self) -> list[Leaf]:
        """Every leaf of every event."""
        return list(leaves(self.events))

    def trace(self, leaf: Leaf) -> Trace:
        """Find out where *leaf* went."""
        response: dict[Landing, None] = {}
        delta: dict[Landing, None] = {}
        refused = None
        for value in _trials(leaf.value):
            events = replaced(self.events, leaf, value)
            after = self._map(events, "keep")
            if after.error != self.baseline.error:
                refused = refused or _error_name(after)
                continue
            found = list(_landings(leaf, value, self.baseline.response, after.response))
            response.update(dict.fromkeys(found))
            delta.update(dict.fromkeys(_delta_landings(leaf, value, self.baseline.deltas, after.deltas)))
            if not response and not delta and refused is None:
                strict = self._map(events, "raise")
                refused = None if strict.error == self.baseline.error else _error_name(strict)
        if response or delta:
            refused = None
        return Trace(leaf, _with_same(leaf, response, self.baseline.response), tuple(delta), refused)

    def _map(self, events: list[Any], unknown: Any) -> Outcome:
        options = ReaderOptions(status=self._capture.status, unknown=unknown)
        return outcome(self._mapper, events, options=options, as_bytes=self._as_bytes)

    def _as_bytes(self, events: list[Any]) -> bytes:
        return self._capture.rewritten(events)


_SHORT: Final = 2**53


def _trials(value: Any) -> Iterator[Any]:
    """Other values of the type of *value*, chosen to show where it goes."""
    if value is None:
        yield from ("crosswalk", 7)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value * 2 + 1 if value < _SHORT else value // 2  # by more than a change of units rounds off
    elif isinstance(value, float):
        yield value / 2 if value else 0.5
    else:
        middle = len(value) // 2
        yield f"{value[:middle]}X{value[middle:]}"
        if value in list(FinishReason):
            yield FinishReason.LENGTH.value if value == FinishReason.STOP else FinishReason.STOP.value


def _error_name(after: Outcome) -> str:
    return str(after.error).partition(":")[0]
