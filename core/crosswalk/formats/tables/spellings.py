"""Canonical values of options that are objects, and the functions that several tables read and write them with.

A function that finds something else raises ``LookupError``, ``TypeError`` or ``AttributeError``, as an access to it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crosswalk.wire.rows import Row, put

_MODES: Final = ("auto", "required")
_NAMED_KINDS: Final = ("function", "custom")


def allowed_tools(value: Any) -> dict[str, Any]:
    """Return *value* as the option ``allowed_tools``: ``{"mode": …, "tools": [{"type": "function", "name": …}]}``."""
    tools = [{"type": tool["type"], "name": tool["name"]} for tool in value["tools"]]
    if value["mode"] not in _MODES or not all(
        tool["type"] in _NAMED_KINDS and isinstance(tool["name"], str) for tool in tools
    ):
        raise LookupError
    return {"mode": value["mode"], "tools": tools}


def read_location(location: Any) -> dict[str, Any]:
    """Return the place of a searcher without its type."""
    if location.get("type", "approximate") != "approximate":
        raise LookupError
    return {name: value for name, value in location.items() if name != "type"}


def write_location(location: Any) -> dict[str, Any]:
    """Return the place of a searcher with its type."""
    return {"type": "approximate", **location}


def placed(values: Mapping[str, Any], of: str, rows: tuple[Row, ...], at: str) -> dict[str, Any]:
    """Return those of *values*, the details of an *of* by name, that *rows* have in an object at the path *at*."""
    result: dict[str, Any] = {}
    for row in rows:
        value = values.get(row.place.removeprefix(f"{of}.")) if row.place else None
        if value is not None:
            put(result, row.path.removeprefix(f"{at}."), row.written(value))
    return result
