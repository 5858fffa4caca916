"""The reverse of reading OpenAI's chat dialect: what an answer in OpenAI's words is in those of a server that speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crosswalk.wire import chat as wire

__all__ = ["SEVERAL_PATHS", "spell"]

SEVERAL_PATHS: Final = tuple(name for name, path in wire.COUNTS.items() if "." in path)
"""The counts that stand elsewhere with some servers."""
_WRITTEN: Final = {**wire.COUNTS, **wire.DETAILS}


def spell(
    event: dict[str, Any], paths: Mapping[str, str], reasoning_name: str, *, numbers_calls: bool
) -> None:
    """Make of *event*, a body or chunk in OpenAI's words, one that has its counts at these *paths*.

    Args:
        event: what is changed.
        paths: by count, where the server has it.
        reasoning_name: what it calls reasoning.
        numbers_calls: whether the calls of a whole answer have an ``index``, too.
    """
    for choice in event.get("choices", ()):
        part = choice.get("message") or choice.get("delta") or {}
        if "reasoning_content" in part and reasoning_name not in part:
            part[reasoning_name] = part.pop("reasoning_content")
        if numbers_calls:
            for index, call in enumerate(part.get("tool_calls") or ()):
                call.setdefault("index", index)
        if choice.get("finish_reason") == "function_call" and part.get("tool_calls"):
            part["function_call"] = part.pop("tool_calls")[0]["function"]
    usage = event.get("usage")
    if usage:
        for name, path in paths.items():
            _move(usage, _WRITTEN[name], path)


def _move(usage: dict[str, Any], old: str, new: str) -> None:
    """Put the count at the path *old* of *usage* to the path *new*; where it stood alone, nothing stays."""
    group, _, name = old.partition(".")
    if old == new or name not in usage.get(group, ()):
        return
    count = usage[group].pop(name)
    if not usage[group]:
        del usage[group]
    *groups, name = new.split(".")
    for group in groups:
        usage = usage.setdefault(group, {})
    usage[name] = count
