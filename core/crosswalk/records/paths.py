"""Paths to values in the lines of a log, and the units of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import attrs

Path: TypeAlias = tuple[str, ...]
"""The keys that lead from the object of a line to a value."""

_STEP: Final = re.compile(r'\[(\d+)\]|\["([^"]+)"\]|\.?([^.\[\]"]+)')
_UNIT: Final = re.compile(r"(.+)@(s|ms|us|ns|cents)")
_PER_UNIT: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000, "cents": 100}


@attrs.frozen
class Field:
    """The location of a fact in a line.

    Attributes:
        paths: the paths to try, in order. The first with a value counts.
        per_unit: how many of the log's units make a second, for times and durations, or a unit of money, for a cost.
    """

    paths: tuple[Path, ...]
    per_unit: int = 1

    def read(self, record: dict[str, Any]) -> Any:
        """Return the value in *record*, or ``None`` if no path has one."""
        for path in self.paths:
            value = record.get(path[0]) if len(path) == 1 else look_up(record, path)
            if value is not None:
                return value
        return None


@attrs.frozen
class Condition:
    """Values that a line may have at a path.

    Attributes:
        path: the path.
        values: the values, as JSON.
    """

    path: Path
    values: tuple[Any, ...]

    def verdict(self, record: dict[str, Any]) -> bool | None:
        """Return whether *record* has one of the values, or ``None`` if it has no value at the path."""
        value = look_up(record, self.path)
        if value is None:
            return None
        return any(type(value) is type(one) and value == one for one in self.values)


def verdict_of(conditions: Iterable[Condition], record: dict[str, Any]) -> bool | None:
    """Return whether *record* meets one of *conditions*, or ``None`` if it has no value at any of their paths."""
    verdicts = {condition.verdict(record) for condition in conditions} - {None}
    return any(verdicts) if verdicts else None


def parse_condition(where: str, values: Any) -> Condition:
    """Parse a path and its values.

    Raises:
        ValueError: *where* is not a path, or *values* is not an array.
    """
    if type(values) is not list or not values:
        raise ValueError(f"{where}: expected the values in an array")
    return Condition(parse_path(where), tuple(values))


def parse_path(text: str) -> Path:
    """Parse a path such as ``response.body``, ``choices[0].text`` or ``attributes["gen_ai.request.model"]``.

    A number is the index in an array. Any other key is looked up in OpenTelemetry's arrays of ``{"key": …, "value": …}``.

    Raises:
        ValueError: *text* is not a path.
    """
    steps: list[str] = []
    end = 0
    text = text.removeprefix(".")
    while match := _STEP.match(text, end):
        if end == 0 and match[0].startswith("."):
            break
        steps.append(match[1] or match[2] or match[3])
        end = match.end()
    if not steps or end != len(text):
        raise ValueError('a path is keys with dots between them, such as response.body or attributes["a.b"]')
    return tuple(steps)


def parse_field(text: str | list[str]) -> Field:
    """Parse one path, or several to be tried in order.

    ``@ms`` after a path is the unit of a time or a duration, and ``@cents`` that of a cost.

    Raises:
        ValueError: one of them is not a path, or they have different units.
    """
    paths, units = [], set()
    for one in [text] if isinstance(text, str) else text:
        match = _UNIT.fullmatch(one)
        paths.append(parse_path(match[1] if match else one))
        units.add(match[2] if match else "s")
    if len(units) != 1:
        raise ValueError("one field has one unit, and at least one path")
    return Field(tuple(paths), _PER_UNIT[units.pop()])


def look_up(value: Any, path: Path) -> Any:
    """Return the value at *path* below *value*, or ``None``."""
    for key in path:
        if type(value) is dict:
            value = value.get(key)
        elif type(value) is list:
            value = _item(value, key)
        else:
            return None
    return value


def _item(items: list[Any], key: str) -> Any:
    if key.isdecimal():
        index = int(key)
        return items[index] if index < len(items) else None
    for item in items:
        if type(item) is dict and item.get("key") == key:
            return _any_value(item.get("value"))
    return None


def _any_value(value: Any) -> Any:
    """Return the value of an ``AnyValue`` object: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding."""
    if type(value) is not dict or len(value) != 1:
        return value
    ((kind, buffered),) = value.items()
    if kind == "intValue" and type(buffered) is str:
        return int(buffered) if buffered.lstrip("-").isdecimal() else buffered
    if kind == "arrayValue" and type(buffered) is dict:
        return [_any_value(item) for item in buffered.get("values", ())]
    return buffered if kind in ("stringValue", "intValue", "doubleValue", "boolValue") else value
