"""The items and parts of a stream, and the progress of its calls."""

from __future__ import annotations

from crosswalk.responses.events import (
    ItemEvent,
    PartEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseStreamEvent,
)
from crosswalk.responses.toolkit import ToolCallRegistry


class Places:
    """Names for items, the same from their first event to their last.

    Items are distinguished by ``output_index``, or by ``item_id`` if a server sends no index
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
        """Return the name of the item at *index* of the final output."""
        if item_id in self._shared:
            return str(index)  # the server gives several items the same id
        return self._by_id.get(item_id or "", str(index))


def call_status(event: ItemEvent) -> tuple[str, str] | None:
    """Return the tool and the status in the type of *event*, or ``None`` if it has none.

    ``response.web_search_call.searching`` means that a ``web_search_call`` is ``searching``.
    """
    tool, _, status = str(event.type).removeprefix("response.").rpartition(".")  # type: ignore[attr-defined]
    return (tool, status) if tool.endswith("_call") else None


class ProgressWatch:
    """Refuses impossible steps of the tool calls of one stream.

    Args:
        registry: the tools, whose progressions are enforced.
    """

    def __init__(self, registry: ToolCallRegistry) -> None:
        self._registry = registry
        self._places = Places()
        self._statuses: dict[str, str] = {}
        self._opened: dict[str, str | None] = {}

    def check(self, event: ResponseStreamEvent) -> None:
        """Add *event*.

        Raises:
            StatusProgressionError: its status cannot follow the previous one. The next status is checked against it.
        """
        if isinstance(event, ResponseOutputItemAddedEvent | ResponseOutputItemDoneEvent):
            item_id, tool = event.item.id, event.item.type
            status = getattr(event.item, "status", None)
        elif isinstance(event, ItemEvent) and not isinstance(event, PartEvent):
            item_id = event.item_id
            tool, status = call_status(event) or (None, None)
        else:
            return
        cls = self._registry.get(tool)
        if cls is None or status is None:
            return
        word, location = str(status), self._places.of(event.output_index, item_id)
        if isinstance(event, ItemEvent) and word not in cls.progression.words:
            return  # an event of the tool's own, which tells no status
        if isinstance(event, ResponseOutputItemAddedEvent):
            if self._opened.get(location, item_id) != item_id:
                self._statuses.pop(location, None)  # a server that gives all its items the same place
            self._opened[location] = item_id
        before = self._statuses.get(location)
        self._statuses[location] = word
        cls.progression.check(before, word, tool=cls.tool(), call_id=item_id)
