"""The arguments of a tool call that come path by path, as JSON text that grows (section 3, Vertex)."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import orjson

from crosswalk import WireTypeError, get_boolean, get_number, get_string

__all__ = ["VALUES", "ArgumentsWriter", "value_key"]

Path: TypeAlias = tuple[str | int, ...]

_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
"""Where a piece may have its value."""


def value_key(piece: dict[str, Any]) -> str | None:
    """Under which key a piece has its value, which for ``nullValue`` may be ``null``; ``None`` without any."""
    for key in VALUES:
        if piece.get(key) is not None or (key == "nullValue" and key in piece):
            return key
    return None


class ArgumentsWriter:
    """Writes one JSON object value by value, in the order in which a model writes it; it takes nothing back."""

    def __init__(self) -> None:
        self._keys: list[str | int] = []  # of the containers that are open inside the object
        self._used: list[set[str | int]] = []  # of each open container, the object itself first
        self._leaf: Path = ()
        self._in_string = False

    def write(self, piece: dict[str, Any], place: str) -> str:
        """The text that *piece* adds; ``""`` where it has no value.

        Args:
            piece: ``{jsonPath, stringValue | numberValue | boolValue | nullValue}``. A string at the path of the
                string before continues it.
            place: where it stands in the event, for error messages.

        Raises:
            WireTypeError: a leaf has another type, or the path leads back to what has been written.
        """
        key = value_key(piece)
        if key is None:
            return ""
        value = _value(piece, key, place)
        path = _path(piece, place)
        if path == self._leaf and self._in_string and type(value) is str:
            return _escaped(value)
        text = [self._end_string(), *self._go_to(path, f"{place}.jsonPath")]
        self._leaf, self._in_string = path, type(value) is str
        text.append(f'"{_escaped(value)}' if type(value) is str else orjson.dumps(value).decode())
        return "".join(text)

    def close(self) -> str:
        """The text that ends the object; ``""`` when nothing has been written."""
        if not self._used:
            return ""
        closed = self._end_string() + "".join(self._close_to(0)) + "}"
        self._used.clear()
        return closed

    def _end_string(self) -> str:
        ended, self._in_string = '"' if self._in_string else "", False
        return ended

    def _close_to(self, depth: int) -> list[str]:
        """Close the containers that are deeper than *depth*."""
        closers = []
        while len(self._keys) > depth:
            self._keys.pop()
            used = self._used.pop()
            closers.append("]" if 0 in used else "}")
        return closers

    def _go_to(self, path: Path, place: str) -> list[str]:
        """Close and open containers, up to the key or the comma before the value at *path*."""
        text = []
        if not self._used:
            self._used.append(set())
            text.append("{")
        shared = 0
        while shared < min(len(self._keys), len(path) - 1) and self._keys[shared] == path[shared]:
            shared += 1
        text += self._close_to(shared)
        for step, key in enumerate(path[shared:], shared):
            used = self._used[-1]
            expected = len(used) if 0 in used or not used else None
            fits = key == expected if type(key) is int else 0 not in used and key not in used
            if not fits:
                raise WireTypeError(place, expected="a path that leads on", got=path[step])
            if used:
                text.append(",")
            used.add(key)
            if type(key) is str:
                text.append(f"{orjson.dumps(key).decode()}:")
            if step < len(path) - 1:
                self._keys.append(key)
                self._used.append(set())
                text.append("{" if type(path[step + 1]) is str else "[")
        return text


def _value(piece: dict[str, Any], key: str, place: str) -> Any:
    if key == "stringValue":
        return get_string(piece, key, place)
    if key == "numberValue":
        return get_number(piece, key, place)
    if key == "boolValue":
        return get_boolean(piece, key, place)
    if piece[key] not in (None, "NULL_VALUE"):
        raise WireTypeError(f"{place}.{key}", expected="null", got=piece[key])
    return None


def _path(piece: dict[str, Any], place: str) -> Path:
    """``$.operations[0].action`` as the keys that lead there; the first one is a name: arguments are an object."""
    text = get_string(piece, "jsonPath", place) or ""
    keys: list[str | int] = []
    at = 1
    while at < len(text) and (step := _STEP.match(text, at)) is not None:
        keys.append(int(step[2]) if step[2] is not None else next(s for s in step.groups() if s is not None))
        at = step.end()
    if not text.startswith("$") or at < len(text) or not keys or type(keys[0]) is int:
        raise WireTypeError(f"{place}.jsonPath", expected="a JSON path", got=piece.get("jsonPath"))
    return tuple(keys)


def _escaped(text: str) -> str:
    return orjson.dumps(text)[1:-1].decode()
