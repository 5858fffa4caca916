"""The arguments of a call: incremental detection of their end, and their values."""

from __future__ import annotations

import json
import re
from decimal import Context, Decimal
from itertools import accumulate
from typing import Any, Final

import orjson

INVALID_JSON: Final = "INVALID_JSON"
"""The key of arguments that are not a JSON object, for a format that takes an object only. Anthropic advises it."""


class JSONObjectText:
    """The text of a JSON object that arrives in pieces.

    Attributes:
        is_complete: whether the object has been closed.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def add(self, text: str) -> None:
        """Take the next piece. Each character is read once."""
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
                    self.is_complete = True
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self.is_complete = self._depth == 0 or self.is_complete


_DEPTH: Final = 190
"""The maximum nesting depth of an input's objects and arrays. The official client takes 200 in the whole body."""


def as_input(text: str) -> dict[str, Any] | None:
    """Return *text* as an input that official clients can read, with all digits of numbers, or ``None`` if invalid."""
    if not _is_input(text):
        return None
    exact: dict[str, Any] = json.loads(text, parse_int=orjson.Fragment, parse_float=orjson.Fragment)
    return exact


def input_of(text: str) -> dict[str, Any]:
    """Return *text* as an input, or under ``INVALID_JSON``. An empty object would be a call without arguments."""
    requested = as_input(text or "{}")
    return {INVALID_JSON: text} if requested is None else requested


def is_cut_input(text: str) -> bool:
    """Whether *text* is the beginning of a JSON object that lacks only its rest, and is not too deep."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        is_cut = error.pos == len(text) and text.lstrip().startswith("{")
        return is_cut and _depth(text) <= _DEPTH
    return False


def is_same_object(one: str, other: str) -> bool:
    """Whether two texts are the same JSON object: every digit of a number counts, and every key that comes twice."""
    return _is_input(one) and _is_input(other) and bool(_exact(one) == _exact(other))


def _is_input(text: str) -> bool:
    """Whether *text* is a JSON object, and not too deep."""
    try:
        is_object = isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
    return is_object and _depth(text) <= _DEPTH


def _depth(text: str) -> int:
    """Return the maximum nesting depth of the objects and arrays of *text*."""
    return max(accumulate((mark in "{[") - (mark in "}]") for mark in _MARKS.findall(text)))


_MARKS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]')
"""The characters that open and close objects and arrays, and texts, in which they have no effect."""


def _exact(text: str) -> Any:
    """Return *text*, which is JSON, as values that are equal only for the same JSON."""
    return json.loads(text, parse_int=_integer, parse_float=_number, object_pairs_hook=_object)


_QUIET: Final = Context(traps=[])


def _integer(digits: str) -> tuple[str, str]:
    """An integer. Python would treat it as equal to a number with a point, and 1 as equal to true."""
    return "integer", digits


def _number(digits: str) -> tuple[str, Decimal | str]:
    """A number with all its digits, or its text if the exponent is too large."""
    value = Decimal(digits, _QUIET)
    return "number", value if value.is_finite() else digits


def _object(pairs: list[tuple[str, Any]]) -> Any:
    raw = dict(pairs)
    return raw if len(raw) == len(pairs) else pairs


class CallIDs:
    """The ids of the calls of one answer, all different.

    Args:
        choice: the answer's number.
    """

    def __init__(self, choice: int = 0) -> None:
        self._prefix = f"call_{choice}_" if choice else "call_"
        self._taken: set[str] = set()

    def take(self, id: str | None, index: int) -> str:
        """Return *id*, or the answer's own id for its call *index* if it is missing or taken by another call."""
        if not id or id in self._taken:
            id = f"{self._prefix}{index}"
            while id in self._taken:
                id += "_"
        self._taken.add(id)
        return id
