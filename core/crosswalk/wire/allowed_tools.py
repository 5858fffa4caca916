"""A choice among some of the tools, as each format writes it.

The option ``allowed_tools`` is ``{"mode": "auto" | "required", "tools": [{"type": "function" | "custom", "name": …}]}``.
"""

from __future__ import annotations

from typing import Any, Final

from crosswalk.wire.gemini import json_name

_MODES: Final = {"auto": "VALIDATED", "required": "ANY"}
"""Gemini's words. With both it calls only the functions that are named."""
_TOOLS: Final = ("function", "custom")


def write_allowed_tools(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option *value* as *format* writes it, or ``None`` if it is not such an option."""
    try:
        mode, tools = value["mode"], [(tool["type"], tool["name"]) for tool in value["tools"]]
        is_known = mode in _MODES and all(kind in _TOOLS and isinstance(name, str) for kind, name in tools)
    except (KeyError, TypeError):
        return None
    if not is_known:
        return None
    if format == "gemini":
        return {"mode": _MODES[mode], "allowedFunctionNames": [name for _, name in tools]}
    if format == "chat":
        nested = [{"type": kind, kind: {"name": name}} for kind, name in tools]
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": nested}}
    flat = [{"type": kind, "name": name} for kind, name in tools]
    return {"type": "allowed_tools", "mode": mode, "tools": flat}


def read_allowed_tools(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option that *value* is in *format*, or ``None`` if it is something else or more."""
    try:
        if format == "gemini":
            value = {json_name(key): inner for key, inner in value.items()}
            mode = next(ours for ours, theirs in _MODES.items() if theirs == value["mode"])
            tools = [{"type": "function", "name": name} for name in value["allowedFunctionNames"]]
        elif format == "chat":
            mode, tools = value["allowed_tools"]["mode"], value["allowed_tools"]["tools"]
            tools = [{"type": tool["type"], "name": tool[tool["type"]]["name"]} for tool in tools]
        else:
            mode, tools = (
                value["mode"],
                [{"type": tool["type"], "name": tool["name"]} for tool in value["tools"]],
            )
    except (AttributeError, KeyError, TypeError, StopIteration):
        return None
    results = {"mode": mode, "tools": tools}
    return results if write_allowed_tools(results, format) == value else None
