"""The arguments of a tool call that come path by path, as JSON text that grows (section 3, Vertex)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from crosswalk.plugins import dump_json, take_boolean, take_number, take_string, wrong_type

Path: TypeAlias = tuple[str | int, ...]

_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_INDEX = 2  # the group of a place in an array
_PATH = re.compile(rf"\$(?:{_STEP.pattern})+")

_TAKES: dict[str, Callable[[dict[str, Any], str], str | float | bool | None]] = {
    "stringValue": take_string,
    "numberValue": take_number,
    "boolValue": take_boolean,
}


class ArgumentsWriter:
    """Writes one JSON object value by value, in the order of the model, without corrections."""

    def __init__(self) -> None:
        self._keys: list[str | int] = []  # of the containers that are open inside the object
        self._used: list[set[str | int]] = []  # of each open container, the object itself first
        self._string: Path | None = None  # that of the string that is open

    def write(self, piece: dict[str, Any]) -> str:
        """Return the text that *piece* adds, or ``""`` if it has no value, and is not changed.

        Args:
            piece: ``{jsonPath, stringValue | numberValue | boolValue | nullValue}``. A string at the path of the
                string before continues it.

        Raises:
            WireTypeError: a leaf has another type, or the path leads to a part that is already written.
        """
        kind = next((key for key in _TAKES if piece.get(key) is not None), None)
        if kind is None and "nullValue" not in piece:
            return ""
        if kind is None and piece["nullValue"] not in (None, "NULL_VALUE"):
            raise wrong_type(piece, "nullValue", "null")
        piece.pop("nullValue", None)
        value = None if kind is None else _TAKES[kind](piece, kind)
        path = _path(piece)
        if type(value) is not str:
            text = self._go_to(path, piece) + dump_json(value).decode()
        elif path == self._string:
            text = _escaped(value)
        else:
            text = f'{self._go_to(path, piece)}"{_escaped(value)}'
            self._string = path
        del piece["jsonPath"]
        return text

    def close(self) -> str:
        """Return the text that ends the object, or ``""`` if nothing was written."""
        if not self._used:
            return ""
        closed = self._close_to(0) + "}"
        self._used.clear()
        return closed

    def _close_to(self, depth: int) -> str:
        """Close the string that is open, and the containers that are deeper than *depth*."""
        closers = "" if self._string is None else '"'
        self._string = None
        while len(self._keys) > depth:
            self._keys.pop()
            closers += "]" if 0 in self._used.pop() else "}"
        return closers

    def _go_to(self, path: Path, piece: dict[str, Any]) -> str:
        """Close and open containers, up to the key or the comma before the value at *path*, which *piece* has."""
        shared = 0
        while shared < min(len(self._keys), len(path) - 1) and self._keys[shared] == path[shared]:
            shared += 1
        text = self._close_to(shared)
        if not self._used:
            self._used.append(set())
            text = "{"
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


def _path(piece: dict[str, Any]) -> Path:
    """Return the keys of ``$.operations[0].action``. The first one is a name, because arguments are an object."""
    text = piece.get("jsonPath")
    if type(text) is str and _PATH.fullmatch(text):
        raw = ((step.lastindex or 0, step) for step in _STEP.finditer(text))
        keys = tuple(int(step[group]) if group == _INDEX else step[group] for group, step in raw)
        if type(keys[0]) is str:
            return keys
    raise wrong_type(piece, "jsonPath", "a JSON path")


def _escaped(text: str) -> str:
    return orjson.dumps(text)[1:-1].decode()
