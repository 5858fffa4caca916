"""The stored items of a response that was read, and the one that is written next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from crosswalk.convert.response_items import OpenItem
from crosswalk.convert.source import without_place
from crosswalk.convert.writer import Event
from crosswalk.types.json import copy_json
from crosswalk.wire.responses import ITEMS, ItemRole

_EMPTY: Final[Mapping[str, Event]] = {
    "message": {"role": "assistant", "content": []},
    "reasoning": {"summary": []},
    "additional_tools": {"role": "assistant"},
}
"""The key of an item of which only the id is stored."""


class KeptItems:
    """The stored data of each item, in order, or empty if another form was read.

    Args:
        output: returns the stored data under the name ``output``, so far.
    """

    def __init__(self, output: Callable[[], Any]) -> None:
        self._output = output
        self._at = 0  # the number of items that have been written, or passed over
        self._passed: list[int] = []

    def entry(self, place: int | None) -> Event:
        """Return the stored data of the item at *place*, or empty for ``None``."""
        entry = self._output()[place] if place is not None and place < self._count() else None
        return entry if isinstance(entry, dict) else {}

    def left_of(self, item: OpenItem, status: str, *, is_late: bool) -> Event | None:
        """Return the stored data of *item*, which ends with *status*, without newer facts, or ``None`` for a new item.

        If the answer *is late*, the item's own end has not been read yet.
        """
        if item.place is None:
            return None
        remaining: Event = copy_json(without_place(self.entry(item.place)))
        for name in ("added", *item.about):  # its beginning, or newer facts
            remaining.pop(name, None)
        if is_late and remaining.get("status") == "in_progress":
            remaining["status"] = status
        return remaining

    def next_is(self, type: str) -> bool:
        """Whether the next item that has pieces is of that *type*."""
        for position in range(self._at, self._count()):
            known = ITEMS.get(self._type(position))
            if known is not None and known.role is not ItemRole.STATE:
                return self._type(position) == type
        return False

    def pass_over(
        self, type: str | None, called: str | None = None, id: Any = None
    ) -> tuple[int | None, dict[int, Event]]:
        """Return the position of the next item of *type* and *id*, or of a call of *called*, or ``None`` if there is none.

        The result includes the items before it, by position, that have had no pieces so far: all remaining items if *type*
        is ``None``. Behind the last one, the first of those is next: the answer has been reordered.
        """
        ahead = range(self._at, self._count())
        location = next((number for number in ahead if self._fits(number, type, called, id)), None)
        if location is None and type is not None:
            again = next((number for number in self._passed if self._fits(number, type, called, id)), None)
            if again is not None:
                self._passed.remove(again)
            return again, {}
        passed = range(self._at, self._count() if location is None else location)
        self._at = passed.stop + 1
        self._passed += passed
        return location, {number: self._whole(self.entry(number)) for number in passed}

    def _whole(self, entry: Event) -> Event:
        return {**_EMPTY.get(str(entry.get("type")), {}), **copy_json(without_place(entry))}

    def _count(self) -> int:
        output = self._output()
        return len(output) if isinstance(output, list) else 0

    def _type(self, place: int) -> str:
        return str(self.entry(place).get("type"))

    def _fits(self, place: int, type: str | None, called: str | None, id: Any) -> bool:
        there = self._type(place)
        if called is None or there not in ITEMS:
            return there == type and id in (None, self.entry(place).get("id", id))
        role = ITEMS[there].role
        return role is ItemRole.CALL or (role is ItemRole.ACTION and there == called)
