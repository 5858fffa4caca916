"""Which item an event is about, where servers say it in two ways or in one."""

from __future__ import annotations

__all__ = ["Places"]


class Places:
    """Names for items, the same from their first event to their last.

    Items are told apart by ``output_index``, and where a server sends none by ``item_id``
    (provider document "OpenAI Responses", section 3.3).
    """

    def __init__(self) -> None:
        self._by_id: dict[str, str] = {}
        self._shared: set[str] = set()

    def of(self, output_index: int | None, item_id: str | None) -> str:
        """The name of the item with this place and id."""
        if output_index is not None:
            name = str(output_index)
            if item_id and self._by_id.setdefault(item_id, name) != name:
                self._shared.add(item_id)
            return name
        return self._by_id.setdefault(item_id or "", item_id or "?")

    def of_final(self, index: int, item_id: str | None) -> str:
        """The name of the item that stands at *index* of the final output."""
        if item_id in self._shared:
            return str(index)  # the server gives several items the same id
        return self._by_id.get(item_id or "", str(index))
