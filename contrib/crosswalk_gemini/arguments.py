"""The arguments of a tool call that come path by path, as JSON text that grows (section 3, Vertex)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from crosswalk.plugins import take_boolean, take_number, take_string, wrong_type

__all__ = ["ArgumentsWriter"]

Path: TypeAlias = tuple[str | int, ...]

_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")

_TAKES: dict[str, Callable[[dict[str, Any], str], str | float | bool | None]] = {
    "stringValue": take_string,
    "numberValue": take_number,
    "boolValue": take_boolean,
}


class ArgumentsWriter:
    """Writes one JSON object value by value, in the order in which a model writes it; it takes nothing back."""

    def __init__(self) -> None:
        self._keys: list[str | int] = []  # of the containers that are open inside the object
        self._used: list[set[str | int]] = []  # of each open container, the object itself first
        self._leaf: Path = ()
        self._in_string = False

    def write(self, piece: dict[str, Any]) -> str:
        """The text that *piece* adds; ``""`` where it has no value, and stays as it is.

        Args:
            piece: ``{jsonPath, stringValue | numberValue | boolValue | nullValue}``. A string at the path of the
                string before continues it.

        Raises:
            WireTypeError: a leaf has another type, or the path leads back to what has been written.
        """
        if all(piece.get(key) is None for key in _TAKES) and "nullValue" not in piece:
            return ""
        value = _take_value(piece)
        path = _path(piece)
        if path == self._leaf and self._in_string and type(value) is str:
            text = _escaped(value)
        else:
            text = self._end_string() + self._go_to(path, piece)
            text += f'"{_escaped(value)}' if type(value) is str else orjson.dumps(value).decode()
            self._leaf, self._in_string = path, type(value) is str
        del piece["jsonPath"]
        return text

    def close(self) -> str:
        """The text that ends the object; ``""`` when nothing has been written."""
        if not self._used:
            return ""
        closed = self._end_string() + self._close_to(0) + "}"
        self._used.clear()
        return closed

    def _end_string(self) -> str:
        ended, self._in_string = '"' if self._in_string else "", False
        return ended

    def _close_to(self, depth: int) -> str:
        """Close the containers that are deeper than *depth*."""
        closers = ""
        while len(self._keys) > depth:
            self._keys.pop()
            used = self._used.pop()
            closers += "]" if 0 in used else "}"
        return closers

    def _go_to(self, path: Path, piece: dict[str, Any]) -> str:
        """Close and open containers, up to the key or the comma before the value at *path*, which *piece* has."""
        text = ""
        if not self._used:
            self._used.append(set())
            text += "{"
        shared = 0
        while shared < min(len(self._keys), len(path) - 1) and self._keys[shared] == path[shared]:
            shared += 1
        text += self._close_to(shared)
        for step, key in enumerate(path[shared:], shared):
            used = self._used[-1]
            expected = len(used) if 0 in used or not used else None
            fits = key == expected if type(key) is int else 0 not in used and key not in used
            if not fits:
                raise wrong_type(piece, "jsonPath", "a path that leads on")
            if used:
                text += ","
            used.add(key)
            if type(key) is str:
                text += f"{orjson.dumps(key).decode()}:"
            if step < len(path) - 1:
                self._keys.append(key)
                self._used.append(set())
                text += "{" if type(path[step + 1]) is str else "["
        return text


def _take_value(piece: dict[str, Any]) -> str | float | bool | None:
    """The value of *piece*, which has one."""
    for key, take in _TAKES.items():
        if piece.get(key) is not None:
            return take(piece, key)
    if piece["nullValue"] not in (None, "NULL_VALUE"):
        raise wrong_type(piece, "nullValue", "null")
    del piece["nullValue"]
    return None


def _path(piece: dict[str, Any]) -> Path:
    """``$.operations[0].action`` as the keys that lead there; the first one is a name: arguments are an object."""
    text = piece.get("jsonPath")
    keys: list[str | int] = []
    at = 1
    if type(text) is str and text.startswith("$"):
        while at < len(text) and (step := _STEP.match(text, at)) is not None:
            keys.append(
                int(step[2]) if step[2] is not None else next(s for s in step.groups() if s is not None)
            )
            at = step.end()
        if at == len(text) and keys and type(keys[0]) is str:
            return tuple(keys)
    raise wrong_type(piece, "jsonPath", "a JSON path")


def _escaped(text: str) -> str:
    return orjson.dumps(text)[1:-1].decode()
