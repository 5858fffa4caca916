"""The remainder of an event: its place in the extensions, and the removal of data that need not be repeated."""

from __future__ import annotations

from typing import Any, TypeAlias

from crosswalk.plugins import responses as wire, same_json, take_string

Object: TypeAlias = dict[str, Any]
"""A JSON object, to be taken apart."""


def numbered(left: Object, number: int) -> Object:
    """Return *left* with the number of its source as ``index``. An existing ``index`` gets another name."""
    remainder = {"own_index" if name == "index" else name: value for name, value in left.items()}
    left.clear()
    left.update({"index": number, **remainder})
    return left


def drop_known(raw: Object, known: Object) -> None:
    """Remove from *raw* the data that *known*, of the same structure, also has. Items of lists keep their places."""
    for name in [name for name in raw if name in known and _take_known(raw[name], known[name])]:
        del raw[name]


def _take_known(value: Any, known: Any) -> bool:
    """Remove from *value* the data that *known* also has, and return whether nothing is left."""
    if type(value) is dict and type(known) is dict:
        drop_known(value, known)
        return not value
    if type(value) is list and type(known) is list and all(type(item) is dict for item in value):
        for item, other in zip(value, known, strict=False):
            _take_known(item, other)
        return not any(value)
    return value is None or same_json(value, known)


def look_string(raw: Object, name: str) -> str | None:
    """Return the string under *name*, without removing it.

    Raises:
        WireTypeError: it is something else.
    """
    result = raw.get(name)
    return result if type(result) is str else take_string(raw, name)


def number_parts(raw: Object) -> None:
    """Number the remaining parts of *raw*."""
    for name in wire.LISTS:
        parts = raw.get(name)
        if type(parts) is list and all(type(part) is dict for part in parts):
            raw[name] = [numbered(part, number) for number, part in enumerate(parts) if part]
            if not raw[name]:
                del raw[name]
