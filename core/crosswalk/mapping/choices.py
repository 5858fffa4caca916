"""The choices of OpenAI's chat dialect: the part to read, and the repetitions in the other part.

A chunk has a delta and a body has a message, but Perplexity sends both in both: the message so far next to a chunk's
delta, and an empty delta next to a body's message. Some servers send the same reasoning under two names.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from crosswalk.plugin.state import MappingState
from crosswalk.types.json import same_json
from crosswalk.types.values import SegmentType
from crosswalk.wire.chat import SPEECH


class Choices:
    """The state of choices, apart from their content.

    Attributes:
        first: the number of the first one in the present event, or ``None`` without any.
        silent: the choices that the present event opens without a delta.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self.silent: set[int] = set()


def speaking_part(choice: dict[str, Any], *, has_spoken: bool = False) -> str:
    """Return the part of *choice* to read: ``delta`` or ``message``.

    If there are two, it is the delta if that has content, if the message is empty, or if the choice *has_spoken* in an
    earlier event, which the message repeats. Otherwise it is the message. A part of a wrong type counts as content, so
    that reading refuses it.
    """
    if "delta" not in choice:
        return "message"
    if "message" not in choice or has_spoken:
        return "delta"
    return "delta" if _speaks(choice["delta"]) or not _speaks(choice["message"]) else "message"


def take_beside(choice: dict[str, Any], name: str, part: dict[str, Any]) -> dict[str, Any] | None:
    """Take the repetitions of *part*, which is read, from the other part *name* of *choice*.

    Returns the residue, or ``None`` if it is not an object.
    """
    other = choice[name]
    if other is None or other == {}:
        del choice[name]
    if type(other) is not dict:
        return None
    for key in list(other):
        value = other[key]
        if (
            (key == "role" and value == "assistant")
            or (key in SPEECH and (value is None or value == "" or value == []))
            or (key in part and same_json(value, part[key]))
        ):
            del other[key]
    return other


def _speaks(part: Any) -> bool:
    return any(part.get(name) for name in SPEECH) if type(part) is dict else part is not None


class Echo:
    """Decides whether reasoning under a second name repeats the first, in pieces of any length.

    Two names with new text in one event, or with different texts, are not an echo. From then on all of them count.
    """

    def __init__(self) -> None:
        self._names: dict[int, set[str]] = {}  # by choice, the names under which reasoning counts
        # By choice, the position of the repetition: the part, its piece, and the characters in that piece.
        self._places: dict[int, tuple[int, int, int]] = {}

    def is_repeated(self, names: Set[str], text: str, choice: int, state: MappingState) -> bool:
        """Return whether *text*, under all of *names* of *choice* at once, repeats the text of other names in order."""
        first = self._names.setdefault(choice, set(names))
        if first.isdisjoint(names) and self._goes_on(text, choice, state):
            return True
        first |= names
        return False

    def _goes_on(self, text: str, choice: int, state: MappingState) -> bool:
        parts = state.choice(choice).parts
        number, piece, start = self._places.get(choice, (0, 0, 0))
        at = 0
        while at < len(text):
            if number == len(parts):
                return False
            part = parts[number]
            if type(part) is not tuple or part[0] is not SegmentType.REASONING or piece == len(part[1]):
                number, piece = number + 1, 0
                continue
            raw = part[1][piece]
            count = min(len(text) - at, len(raw) - start)
            if text[at : at + count] != raw[start : start + count]:
                return False
            at, start = at + count, start + count
            if start == len(raw):
                piece, start = piece + 1, 0
        self._places[choice] = number, piece, start
        return True
