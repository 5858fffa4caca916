"""The choices of OpenAI's chat dialect: which of their parts speaks, and what the other one says again.

A chunk has a delta and a body has a message, but Perplexity sends both in both: beside a chunk's delta the message so far,
beside a body's message an empty delta. And some servers send one reasoning under two names.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from crosswalk.plugin.state import MappingState
from crosswalk.types.merge import same_json
from crosswalk.types.segment import SegmentType
from crosswalk.wire.chat import SPEECH

__all__ = ["Choices", "Echo", "speaking_part", "take_beside"]


class Choices:
    """What is known of choices beside what they have said.

    Attributes:
        first: the number of the first one in the present event; ``None`` where it has none.
        silent: those of which the present event says nothing: it tells that they have begun, and no delta does.
    """

    def __init__(self) -> None:
        self.first: int | None = None
        self.silent: set[int] = set()


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
    return "delta" if _speaks(choice["delta"]) or not _speaks(choice["message"]) else "message"


def take_beside(choice: dict[str, Any], name: str, part: dict[str, Any]) -> dict[str, Any] | None:
    """Take from the part *name* of *choice*, which is not read, what says nothing that *part*, which is read, does not say.

    Gives what is left of it; ``None`` where it is no object.
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
    """Tells whether reasoning under a second name says again what came under the first, in pieces of any length.

    Names that speak at once, and one that says something else, are no echo: from then on all of them count.
    """

    def __init__(self) -> None:
        self._names: dict[int, set[str]] = {}  # by choice, the names under which reasoning counts
        # By choice, how far another name has said it again: the part, the piece in it, the characters of that.
        self._places: dict[int, tuple[int, int, int]] = {}

    def is_repeated(self, names: Set[str], text: str, choice: int, state: MappingState) -> bool:
        """Whether *text*, which *choice* says under all of *names* at once, is what other names have said, in its order."""
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
            said = part[1][piece]
            count = min(len(text) - at, len(said) - start)
            if text[at : at + count] != said[start : start + count]:
                return False
            at, start = at + count, start + count
            if start == len(said):
                piece, start = piece + 1, 0
        self._places[choice] = number, piece, start
        return True
