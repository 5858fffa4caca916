"""The choices of OpenAI's chat dialect: which of its parts speaks, where one has a ``delta`` and a ``message``.

A chunk has a delta and a body has a message, but Perplexity sends both in both: beside a chunk's delta the message so far,
beside a body's message an empty delta.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from crosswalk.mapping.leaves import get_count
from crosswalk.mapping.residue import same_json

__all__ = ["number_of", "part_of", "speaking_part"]

SPEECH: Final = ("content", "reasoning", "reasoning_content", "refusal", "tool_calls", "function_call")
"""The leaves with which a part speaks."""


def speaking_part(choice: dict[str, Any], *, has_spoken: bool = False) -> str:
    """Which part of *choice* is to be read: ``delta`` or ``message``.

    Of two it is the delta where that says anything, where the message says nothing, and where the choice
    *has_spoken* in an earlier event: then the message says it again. Else it is the message. A part of a wrong
    type counts as saying something, so that whoever reads it will refuse it.
    """
    if "delta" not in choice:
        return "message"
    if "message" not in choice or has_spoken:
        return "delta"
    return "delta" if _speaks(choice["delta"]) or not _says_anything(choice["message"]) else "message"


def part_of(choice: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What *choice* calls the part that speaks, and that; empty where it has none or no object."""
    name = speaking_part(choice)
    part = choice.get(name)
    return name, part if type(part) is dict else {}


def number_of(choice: dict[str, Any], number: int, place: str) -> int:
    """The index of *choice*; *number*, its place in the event, where it has none.

    Raises:
        WireTypeError: the index is no count.
    """
    index = get_count(choice, "index", place)
    return number if index is None else index


def has_speech(choice: dict[str, Any]) -> bool:
    """Whether *choice*, whose leaves have been checked, says anything with which an answer begins."""
    return bool(choice.get("text")) or _speaks(choice.get(speaking_part(choice)))


def is_said(name: str, value: Any, part: dict[str, Any]) -> bool:
    """Whether the leaf *name* of the part that is not read says nothing that *part*, which is read, does not."""
    if name == "role" and value == "assistant":
        return True
    if name in SPEECH and (value is None or value == "" or value == []):
        return True
    return name in part and same_json(value, part[name])


def _speaks(part: Any) -> bool:
    return any(part.get(name) for name in SPEECH) if type(part) is dict else part is not None


def _says_anything(part: Any) -> bool:
    if type(part) is not dict:
        return part is not None
    return any(value for name, value in part.items() if name != "role")


@attrs.frozen
class _Beside:
    """The key, which no payload can have, of what is left of a part that was not read."""

    name: str


def beside(choice: dict[str, Any], other: str, unsaid: Any) -> dict[Any, Any]:
    """*choice* with what the part that it calls *other* says beside, if anything, where no table takes it."""
    return choice if unsaid is None or unsaid == {} else {**choice, _Beside(other): unsaid}


def named_again(rest: dict[str, Any]) -> dict[str, Any]:
    """*rest*, what is left of an event, with the names that :func:`beside` took."""
    for choice in rest.get("choices", ()):
        for key in [key for key in choice if type(key) is _Beside]:
            choice[key.name] = choice.pop(key)
    return rest
