"""Watches the statuses of tool calls in a stream."""

from __future__ import annotations

from crosswalk.responses.events import (
    ItemEvent,
    PartEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseStreamEvent,
)
from crosswalk.responses.pipeline.places import Places
from crosswalk.responses.toolkit import ToolCallRegistry

__all__ = ["ProgressWatch"]


def call_status(event: ItemEvent) -> tuple[str, str] | None:
    """The tool and the status that *event* tells by its type; ``None`` when it tells none.

    ``response.web_search_call.searching`` says that a ``web_search_call`` is ``searching``.
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
        """Take note of *event*.

        Raises:
            StatusProgressionError: it says a status that cannot follow the one before; the next is checked against it.
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
        word, place = str(status), self._places.of(event.output_index, item_id)
        if isinstance(event, ItemEvent) and word not in cls.progression.words:
            return  # an event of the tool's own, which tells no status
        if isinstance(event, ResponseOutputItemAddedEvent):
            if self._opened.get(place, item_id) != item_id:
                self._statuses.pop(place, None)  # a server that gives all its items the same place
            self._opened[place] = item_id
        before = self._statuses.get(place)
        self._statuses[place] = word
        cls.progression.check(before, word, tool=cls.tool(), call_id=item_id)
