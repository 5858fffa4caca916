"""Whether the arguments of a call have come to their end, told while they come."""

from __future__ import annotations

from typing import Any

import orjson

__all__ = ["JSONObjectText", "as_object"]


class JSONObjectText:
    """The text of a JSON object while it comes in pieces.

    Attributes:
        is_complete: whether the object has been closed.
        is_object: whether it can be an object at all: it begins with ``{``, or has not begun.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self.is_object = True
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def add(self, text: str) -> None:
        """Take the next piece; each character is looked at once."""
        for character in text:
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_string = False
            elif self._depth == 0 and not self.is_complete:
                if character == "{":
                    self._depth = 1
                elif not character.isspace():
                    self.is_object = False
                    self.is_complete = True
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self.is_complete = self._depth == 0 or self.is_complete


def as_object(text: str) -> dict[str, Any] | None:
    """The JSON object that *text* is; ``None`` when it is none."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
