"""Halves of surrogate pairs: JSON allows them (RFC 8259, section 8.2), and servers cut a character in two.

A server that streams UTF-16 code units ends a text in one event with ``\\ud83d`` and goes on with ``\\ude00`` in a later
one. Until then this event and those after it wait. A half without its other half becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import attrs

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_MOST_WAITING: Final = 32


@attrs.define(eq=False)
class HeldEvent:
    """An event that waits.

    Attributes:
        event: the event, decoded.
        name: its SSE name.
        source: its original bytes or object.
        open_strings: the number of its strings that end with the first half of a pair.
    """

    event: Any
    name: str | None
    source: Any
    open_strings: int = 0


class HalfBuffer:
    """Holds events back, in their order, while a string of the first one ends with the first half of a pair.

    The next text at the same path has the other half, or nothing has. At most 32 events wait.

    Attributes:
        waiting: these events.
    """

    def __init__(self) -> None:
        self.waiting: list[HeldEvent] = []
        self._open: dict[tuple[Any, ...], tuple[HeldEvent, Any, Any]] = {}

    def push(self, event: Any, name: str | None, source: Any) -> list[HeldEvent]:
        """Return the events that the next *event* completes. A second half goes to the event with the first."""
        buffered = HeldEvent(event, name, source)
        self.waiting.append(buffered)
        for container, key, path in [*_strings(event)]:
            text = container[key]
            if path in self._open and text:
                earlier, holder, position = self._open.pop(path)
                earlier.open_strings -= 1
                if _is_second(text[0]):
                    holder[position] = _whole(holder[position] + text[0])
                    container[key] = text = text[1:]
            if _is_first(text[-1:]):
                self._open[path] = buffered, container, key
                buffered.open_strings += 1
        if len(self.waiting) > _MOST_WAITING:
            return self.flush()
        ready = next((position for position, one in enumerate(self.waiting) if one.open_strings), None)
        complete, self.waiting = self.waiting[:ready], [] if ready is None else self.waiting[ready:]
        return complete

    def flush(self) -> list[HeldEvent]:
        """All events that wait: no other half has come."""
        self._open.clear()
        waiting, self.waiting = self.waiting, []
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


def mend_halves(event: Any) -> bool:
    """Replace each half without its other half. Return whether there was one."""
    result = False
    for holder, key, _ in [*_strings(event)]:
        text = holder[key]
        try:
            text.encode()
        except UnicodeEncodeError:
            holder[key] = _whole(text)
            result = True
    return result


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_first(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_second(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"


def _strings(value: Any) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Each string in *value*, as its container, its key there, and its path.

    If an object has an index, like choices, calls and blocks, the path has it in place of the position.
    """
    level: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while level:
        container, path = level.pop()
        if type(container) is dict:
            items: Any = container.items()
            indexes = [item for item in items if type(item[1]) is int and item[0][-5:].lower() == "index"]
            if indexes:
                path = (*path[:-1], *indexes) if path and type(path[-1]) is int else (*path, *indexes)
        elif type(container) is list:
            items = enumerate(container)
        else:
            continue
        for key, item in items:
            if type(item) is str:
                yield container, key, (*path, key)
            else:
                level.append((item, (*path, key)))
