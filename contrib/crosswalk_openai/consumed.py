"""Tables of consumed leaves: how a dialect of this family extends the one it builds on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crosswalk import MappingState

__all__ = ["extended", "says_the_same"]

Table = Mapping[str, Any]


def extended(
    consumed: Table,
    *,
    top: Table | None = None,
    choice: Table | None = None,
    part: Table | None = None,
    usage: Table | None = None,
) -> dict[str, Any]:
    """*consumed* with further rules; a rule for a key that is known replaces the old one.

    Args:
        consumed: the table of the dialect below, in the shape of ``OpenAIChatDialect.consumed``.
        top: rules for the event itself.
        choice: rules for each choice.
        part: rules for each choice's ``delta`` or ``message``, whichever is read.
        usage: rules for the usage object.
    """
    rules = consumed["choices"][0]
    if part is not None:
        parts = {**rules["delta"], **part}
        rules = {**rules, "delta": parts, "message": parts}
    return {
        **consumed,
        "choices": [{**rules, **(choice or {})}],
        "usage": {**consumed["usage"], **(usage or {})},
        **(top or {}),
    }


def says_the_same(group: str, field: str) -> Callable[[Any, dict[str, Any], MappingState], bool]:
    """Whether a count beside ``usage[group][field]`` is the one that was read from there, or instead of it."""

    def test(count: Any, usage: dict[str, Any], _: MappingState) -> bool:
        return count is None or (usage.get(group) or {}).get(field) in (None, count)

    return test
