"""A choice among some of the tools, as each format writes it.

The option ``allowed_tools`` is ``{"mode": "auto" | "required", "names": [...]}``.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["read_allowed_tools", "write_allowed_tools"]

_MODES: Final = {"auto": "VALIDATED", "required": "ANY"}
"""Gemini's words. With both it calls only the functions that are named."""


def write_allowed_tools(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option *value* as *format* writes it, or ``None`` if it is not such an option."""
    if not isinstance(value, dict) or value.keys() != {"mode", "names"} or value["mode"] not in _MODES:
        return None
    mode, names = value["mode"], value["names"]
    if format == "gemini":
        return {"mode": _MODES[mode], "allowedFunctionNames": names}
    if format == "chat":
        tools = [{"type": "function", "function": {"name": name}} for name in names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
    return {
        "type": "allowed_tools",
        "mode": mode,
        "tools": [{"type": "function", "name": name} for name in names],
    }


def read_allowed_tools(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option that *value* is in *format*, or ``None`` if it is something else or more."""
    try:
        if format == "gemini":
            mode = next(ours for ours, theirs in _MODES.items() if theirs == value["mode"])
            found = {"mode": mode, "names": value["allowedFunctionNames"]}
        else:
            inner = value["allowed_tools"] if format == "chat" else value
            names = [(tool["function"] if format == "chat" else tool)["name"] for tool in inner["tools"]]
            found = {"mode": inner["mode"], "names": names}
    except (KeyError, TypeError, StopIteration):
        return None
    return found if write_allowed_tools(found, format) == value else None
