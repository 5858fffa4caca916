"""The framing that ``streamGenerateContent`` has by default: one JSON array that is sent piece by piece (section 1).

Each element is an event, available as soon as its last bracket arrives.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

from crosswalk.plugins import (
    Frame,
    IncompleteStreamError,
    InvalidJSONError,
    Limits,
    PushDecoder,
    TrailingContentError,
)

_MARK_PATTERN: Final = re.compile(rb"[^ \t\r\n]")
# The remainder of a string, and its quote if it is there. Possessive: no byte is read twice.
_STRING_PATTERN: Final = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)
_OUTER_MARK_PATTERN: Final = re.compile(
    rb'["\[\]{},]'
)  # in an element, outside its brackets: a comma ends it
_INNER_MARK_PATTERN: Final = re.compile(rb'["\[\]{}]')


class _At(Enum):
    """The position of the next byte in the array."""

    START = auto()  # before its bracket
    FIRST = auto()  # before the first element, or the end
    NEXT = auto()  # before an element, after a comma
    ELEMENT = auto()
    AFTER = auto()  # behind an element
    END = auto()  # behind the array


_FOLLOWING: Final = {
    (_At.START, b"["): _At.FIRST,
    (_At.FIRST, b"]"): _At.END,
    (_At.AFTER, b"]"): _At.END,
    (_At.AFTER, b","): _At.NEXT,
}


class ArrayDecoder(PushDecoder):
    """Decodes the chunks of one JSON array, of any length, into frames: its elements, of any type.

    It only finds the end of an element. Parsing checks its JSON and its depth.

    Args:
        limits: ``line_bytes`` applies to each element, ``total_bytes`` to the stream.

    Raises:
        IncompleteStreamError: the input ended before the array. InvalidJSONError: it is not an array.
        LineTooLongError: an element is longer than ``line_bytes``.
        StreamTooLargeError: the stream is longer than ``total_bytes``.
        TrailingContentError: something follows the array.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._at = _At.START
        self._depth = 0  # of the brackets that are open inside the element
        self._is_in_string = False
        self._backslash = b""  # the last byte, if it waits for the character that it escapes
        self._element = bytearray()  # what earlier chunks have of it
        self._element_count = 0

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        if self._at is not _At.END:
            raise IncompleteStreamError("the input ended before its array", place=self._place())

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        chunk, self._backslash = self._backslash + chunk, b""
        position = 0
        while True:
            if self._at is _At.ELEMENT:
                start, position = position, self._within(chunk, position)
                self._element += chunk[start:position]
                if len(self._element) > self.limits.line_bytes:
                    raise self.too_long("an element of the array")
                if self._at is _At.ELEMENT:
                    self._backslash = chunk[position:]
                    return
                frames.append((bytes(self._element), None))
                self._element_count += 1
                self._element.clear()
            match = _MARK_PATTERN.search(chunk, position)
            if match is None:
                return
            if (self._at, match[0]) in _FOLLOWING:
                self._at, position = _FOLLOWING[self._at, match[0]], match.end()
            elif self._at in (_At.FIRST, _At.NEXT) and match[0] not in b",]":
                self._at, position = _At.ELEMENT, match.start()
            elif self._at is _At.END:
                raise TrailingContentError("content after the end of the array", place=self._place())
            else:
                raise InvalidJSONError(
                    "not a JSON array: a bracket, comma or element is missing", place=self._place()
                )

    def _within(self, chunk: bytes, position: int) -> int:
        """Return the end of the present element in *chunk* from *position*, or of its available part."""
        while True:
            if self._is_in_string and (string_match := _STRING_PATTERN.match(chunk, position)):
                self._is_in_string, position = not string_match[1], string_match.end()
                if self._is_in_string:
                    return position  # the end of the chunk, or a backslash before it
            match = (_INNER_MARK_PATTERN if self._depth else _OUTER_MARK_PATTERN).search(chunk, position)
            if match is None:
                return len(chunk)
            mark, position = match[0], match.end()
            if mark == b'"':
                self._is_in_string = True
            elif mark in b"[{":
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth:
                    self._at = _At.AFTER
                    return position
            elif mark != b"}":  # the element is not an object or array, so the next byte ends it
                self._at = _At.AFTER
                return match.start()

    def _place(self) -> str:
        return f"after element {self._element_count} of the array"
