"""Where the arguments of a streamed call are complete: TGI may send nothing after them."""

from __future__ import annotations

import attrs

__all__ = ["Arguments"]


@attrs.define
class Arguments:
    """The JSON object that a call's fragments make up, as far as its end needs to be known.

    Each character is looked at once.

    Attributes:
        depth: how many objects and arrays are open.
        in_string: whether a string is.
        escaped: whether the next character of the string stands for itself.
        complete: whether the object has been closed.
    """

    depth: int = 0
    in_string: bool = False
    escaped: bool = False
    complete: bool = False

    def add(self, fragment: str) -> None:
        """Take the next fragment."""
        for character in fragment:
            if self.escaped:
                self.escaped = False
            elif self.in_string:
                self.escaped = character == "\\"
                self.in_string = character != '"'
            elif character == '"':
                self.in_string = True
            elif character in "{[":
                self.depth += 1
                self.complete = False
            elif character in "}]":
                self.depth -= 1
                self.complete = self.depth == 0
