"""The items of a response that was read, as far as anything is kept of them, and which of them is written next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from crosswalk.convert.response_items import OpenItem
from crosswalk.convert.source import without_place
from crosswalk.convert.writer import Event
from crosswalk.types.merge import copy_json
from crosswalk.wire.responses import ITEMS, ItemRole

__all__ = ["KeptItems"]

_EMPTY: Final[Mapping[str, Event]] = {
    "message": {"role": "assistant", "content": []},
    "reasoning": {"summary": []},
    "additional_tools": {"role": "assistant"},
}
"""What an item has that nothing is kept of but its id."""


class KeptItems:
    """What is kept of each item, in their order; nothing where another form was read.

    Args:
        output: gives what is kept under the name ``output``, as far as it has come.
    """

    def __init__(self, output: Callable[[], Any]) -> None:
        self._output = output
        self._at = 0  # how many of them have been written, or passed over
        self._passed: list[int] = []

    def entry(self, place: int | None) -> Event:
        """What is kept of the item at *place*; empty for ``None``."""
        entry = self._output()[place] if place is not None and place < self._count() else None
        return entry if isinstance(entry, dict) else {}

    def left_of(self, item: OpenItem, status: str, *, is_late: bool) -> Event | None:
        """What is kept of *item*, which ends with *status*, less what is known better; ``None`` where it was none.

        Where the answer *is late*, the item's own end has come to nobody's knowledge yet.
        """
        if item.place is None:
            return None
        left: Event = copy_json(without_place(self.entry(item.place)))
        for name in ("added", *item.about):  # what it began with, or what is known better
            left.pop(name, None)
        if is_late and left.get("status") == "in_progress":
            left["status"] = status
        return left

    def next_is(self, type: str) -> bool:
        """Whether the next item of which pieces tell is of that *type*."""
        for place in range(self._at, self._count()):
            known = ITEMS.get(self._type(place))
            if known is not None and known.role is not ItemRole.STATE:
                return self._type(place) == type
        return False

    def pass_over(
        self, type: str | None, called: str | None = None, id: Any = None
    ) -> tuple[int | None, dict[int, Event]]:
        """The place of the next item of that *type* and *id*, or of a call of what is *called* so; ``None`` without one.

        With it come the items before it, by place, which no piece tells of so far: all that are left where *type* is
        ``None``. Behind the last one the first of those is next: somebody has put the answer in another order.
        """
        ahead = range(self._at, self._count())
        place = next((number for number in ahead if self._fits(number, type, called, id)), None)
        if place is None and type is not None:
            again = next((number for number in self._passed if self._fits(number, type, called, id)), None)
            if again is not None:
                self._passed.remove(again)
            return again, {}
        passed = range(self._at, self._count() if place is None else place)
        self._at = passed.stop + 1
        self._passed += passed
        return place, {number: self._whole(self.entry(number)) for number in passed}

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
