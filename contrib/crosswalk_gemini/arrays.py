"""The framing that ``streamGenerateContent`` has by default: one JSON array that is sent piece by piece (section 1).

Each element is an event of its own, given as soon as its last bracket is there.
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
    MappingError,
    PushDecoder,
    TrailingContentError,
)

__all__ = ["ArrayDecoder", "framing"]

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_BETWEEN: Final = re.compile(rb'["\[\]{},]')  # in an element, outside its brackets: a comma ends it
_INSIDE: Final = re.compile(rb'["\[\]{}]')
_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)  # possessive: no bytes are looked at twice
_OPENING: Final = b"[{"


class _At(Enum):
    """Where in the array the next byte stands."""

    START = auto()  # before its bracket
    FIRST = auto()  # before the first element, or the end
    NEXT = auto()  # before an element, after a comma
    ELEMENT = auto()
    STRING = auto()  # of an element
    ESCAPE = auto()  # after the backslash in a string
    AFTER = auto()  # behind an element
    END = auto()  # behind the array


class ArrayDecoder(PushDecoder):
    """Turn the chunks of one JSON array, cut anywhere, into frames: its elements, whatever they are.

    It finds where an element ends and no more: whether it is JSON, and how deep, is found out when it is parsed.

    Args:
        limits: ``line_bytes`` holds for each element, ``total_bytes`` for the stream.

    Raises:
        IncompleteStreamError: from :meth:`flush`, the array has not ended.
        InvalidJSONError: these bytes are no array.
        LineTooLongError: an element is longer than ``line_bytes``.
        StreamTooLargeError: the stream is longer than ``total_bytes``.
        TrailingContentError: something follows the array.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._at = _At.START
        self._depth = 0  # of the brackets that are open inside the element
        self._element = bytearray()  # what earlier chunks have of it
        self._elements = 0
        self._wrong: MappingError | None = None

    def _decode(self, chunk: bytes, frames: list[Frame]) -> None:
        if self._wrong is None:
            self._wrong = self._cut(chunk, frames)
        if self._wrong is not None and not frames:
            raise self._wrong

    def _finish(self, frames: list[Frame]) -> None:
        if self._wrong is not None:
            raise self._wrong
        if self._at is not _At.END:
            raise IncompleteStreamError("the input ended before its array", place=self._place())

    def _cut(self, chunk: bytes, frames: list[Frame]) -> MappingError | None:
        """Add the elements that *chunk* completes to *frames*; what is wrong with it, which comes after them."""
        position = 0
        while position < len(chunk):
            if self._is(_At.ELEMENT, _At.STRING, _At.ESCAPE):
                start, position = position, self._within(chunk, position)
                self._keep(chunk[start:position])
                if self._at is _At.AFTER:
                    frames.append((bytes(self._element), None))
                    self._elements += 1
                    self._element.clear()
                continue
            position = _end(_SPACE, chunk, position)
            if position == len(chunk):
                break
            wrong = self._between(chunk[position : position + 1])
            if wrong is not None:
                return wrong
            if self._at is not _At.ELEMENT:
                position += 1
        return None

    def _between(self, mark: bytes) -> MappingError | None:
        """Go past *mark*, which stands outside the elements; what is wrong with it."""
        at = self._at
        if at is _At.END:
            return TrailingContentError("content after the end of the array", place=self._place())
        if at is _At.START and mark == b"[":
            self._at = _At.FIRST
        elif at in (_At.FIRST, _At.AFTER) and mark == b"]":
            self._at = _At.END
        elif at is _At.AFTER and mark == b",":
            self._at = _At.NEXT
        elif at in (_At.FIRST, _At.NEXT) and mark not in b",]":
            self._at = _At.ELEMENT
        else:
            return InvalidJSONError(
                "no JSON array: a bracket, comma or element is missing", place=self._place()
            )
        return None

    def _within(self, chunk: bytes, position: int) -> int:
        """Where the element ends, or *chunk*, from *position* on, which is inside the element."""
        while position < len(chunk):
            if self._is(_At.ELEMENT):
                position = self._to_string_or_end(chunk, position)
                if self._at is _At.AFTER:
                    return position
            elif self._at is _At.ESCAPE:
                self._at = _At.STRING
                position += 1
            else:
                position = _end(_STRING, chunk, position)
                if position < len(chunk):  # a quote, or a backslash whose character has not come
                    self._at = _At.ELEMENT if chunk[position : position + 1] == b'"' else _At.ESCAPE
                    position += 1
        return position

    def _to_string_or_end(self, chunk: bytes, position: int) -> int:
        """Past the next quote, or to the end of the element or of *chunk*."""
        while found := (_INSIDE if self._depth else _BETWEEN).search(chunk, position):
            mark, position = found[0], found.end()
            if mark == b'"':
                self._at = _At.STRING
                return position
            if mark in _OPENING:
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth:
                    self._at = _At.AFTER
                    return position
            elif mark != b"}":  # the element is no object and no array: what follows it ends it
                self._at = _At.AFTER
                return found.start()
        return len(chunk)

    def _keep(self, piece: bytes) -> None:
        self._element += piece
        if len(self._element) > self.limits.line_bytes:
            raise self._too_long("an element of the array")

    def _is(self, *places: _At) -> bool:
        return self._at in places

    def _place(self) -> str:
        return f"after element {self._elements} of the array"


def framing(start: bytes, limits: Limits) -> ArrayDecoder | None:
    """The decoder for an answer whose first bytes are *start*; ``None`` where it is no array."""
    return ArrayDecoder(limits) if start.startswith(b"[") else None


def _end(pattern: re.Pattern[bytes], chunk: bytes, position: int) -> int:
    """Where the match of *pattern*, which matches nothing as well, ends."""
    found = pattern.match(chunk, position)
    return position if found is None else found.end()
