"""The class of each event, item and part of :mod:`crosswalk.wire.responses`."""

from __future__ import annotations

from typing import Any, Final

from crosswalk.responses.content import StreamedPart
from crosswalk.responses.events import Event, KnownStreamEvent
from crosswalk.responses.families import classes_of
from crosswalk.responses.items import KnownOutputItem
from crosswalk.wire.responses import EVENTS, PENDING, EventRole

__all__ = ["ENDS", "EVENT_CLASSES", "ITEM_CLASSES", "PART_CLASSES"]

EVENT_CLASSES: Final[dict[str, type[Any]]] = classes_of(KnownStreamEvent)
"""The classes of events, by type."""
ITEM_CLASSES: Final[dict[str, type[Any]]] = classes_of(KnownOutputItem)
"""The classes of items, by type."""
PART_CLASSES: Final[dict[str, type[Any]]] = classes_of(StreamedPart)
"""The classes of parts, by type."""

ENDS: Final[tuple[type[Event], ...]] = tuple(
    EVENT_CLASSES[type]
    for type, event in EVENTS.items()
    if event.role is EventRole.ERROR or (event.role is EventRole.RESPONSE and event.of not in PENDING)
)
"""The events with which a response ends."""
