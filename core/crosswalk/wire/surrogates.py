"""Halves of surrogate pairs: JSON allows them (RFC 8259, section 8.2), and servers cut a character in two.

A server that streams UTF-16 code units ends one event with ``\\ud83d`` and begins the next with ``\\ude00``. An event that
ends a string with the first half waits for the next one about the same choice, call or block. A half without its other
half becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any, Final, NoReturn

__all__ = ["REPLACEMENT", "HalfBuffer", "load_with_halves", "mend_halves"]

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MOST_WAITING: Final = 64


class HalfBuffer:
    """Holds back events that end a string with the first half of a pair until the other half may come."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, str | None, Any]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def push(
        self, event: Any, name: str | None, source: Any, *, has_halves: bool
    ) -> list[tuple[Any, str | None, Any]]:
        """The events that are complete now, in their order.

        Args:
            event: the next event. Second halves that belong to earlier events are taken out of it.
            name: handed back with the event, and so is *source*.
            has_halves: whether *event* may hold halves of pairs.
        """
        ready, waiting = [], self._waiting
        self._waiting = []
        for earlier in waiting:
            if len(waiting) < _MOST_WAITING and _is_about_another(earlier[0], event):
                self._waiting.append(earlier)
            else:
                _join_halves(earlier[0], event)
                ready.append(earlier)
        (self._waiting if has_halves and _awaits_half(event) else ready).append((event, name, source))
        return ready

    def flush(self) -> list[tuple[Any, str | None, Any]]:
        """The events whose other half has not come, in their order."""
        waiting, self._waiting = self._waiting, []
        return waiting


def load_with_halves(data: bytes) -> Any:
    """The value of JSON in which halves of pairs stay as they are.

    Raises:
        ValueError: it is not JSON, or has a half in a key.
        RecursionError: it is nested too deeply.
    """
    return json.loads(data.decode(), parse_constant=_refuse, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, _ in pairs:
        key.encode()
    return dict(pairs)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _awaits_half(event: Any) -> bool:
    """Whether a string of *event* ends with the first half of a pair."""
    return any(_is_first(holder[key][-1:]) for holder, key, _ in _strings(event))


def _join_halves(event: Any, following: Any) -> None:
    """Complete the strings of *event* with the second halves at the same paths of the *following* event."""
    others = {path: (holder, key) for holder, key, path in _strings(following)}
    for holder, key, path in [*_strings(event)]:
        if _is_first(holder[key][-1:]) and path in others:
            other, other_key = others[path]
            if _is_second(other[other_key][:1]):
                holder[key] = _whole(holder[key] + other[other_key][0])
                other[other_key] = other[other_key][1:]


def _is_about_another(event: Any, following: Any) -> bool:
    """Whether the *following* event is about other choices, calls or blocks alone: an ``index`` says which."""
    if type(event) is dict and type(following) is dict:
        indexes = event.get("index"), following.get("index")
        if type(indexes[0]) is type(indexes[1]) is int and indexes[0] != indexes[1]:
            return True
        return any(_is_about_another(event[key], following[key]) for key in event.keys() & following.keys())
    if type(event) is list and type(following) is list:
        pairs = product(event, following)
        return bool(event and following) and all(_is_about_another(one, other) for one, other in pairs)
    return False


def mend_halves(event: Any) -> bool:
    """Replace each half without its other half; whether there was one."""
    found = False
    for holder, key, _ in [*_strings(event)]:
        text = holder[key]
        try:
            text.encode()
        except UnicodeEncodeError:
            holder[key] = _whole(text)
            found = True
    return found


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_first(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_second(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"


def _strings(value: Any) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Each string in *value*, as its container, its key there, and its path, in which an item with an ``index`` has that."""
    level: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while level:
        container, path = level.pop()
        if type(container) is dict:
            items: Any = container.items()
        elif type(container) is list:
            items = enumerate(container)
        else:
            continue
        for key, item in items:
            if type(item) is str:
                yield container, key, (*path, key)
            elif type(container) is list and type(item) is dict and type(item.get("index")) is int:
                level.append((item, (*path, ("index", item["index"]))))
            else:
                level.append((item, (*path, key)))
