"""What an event is: wrapped in its name, named by its frame, or a whole body (sections 1 to 3)."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk import MappingState, UnknownEventError, event_type, require_object

__all__ = ["BODY", "ERROR", "EVENTS", "Event", "read_event"]

EVENTS = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
)
BODY = "body"
ERROR = "error"
_BODY_KEYS = ("output", "stopReason")


@attrs.frozen
class Event:
    """An event without its wrapping.

    Attributes:
        kind: one of :data:`EVENTS`, :data:`BODY` or :data:`ERROR`.
        payload: what it says; of an error the exception.
        wrapper: the key that held the payload; ``None`` where the frame's name told, and of a body.
        name: the exception's name; ``None`` where only its payload tells, and for anything else.
    """

    kind: str
    payload: Any
    wrapper: str | None = None
    name: str | None = None

    @property
    def place(self) -> str:
        """Where the payload stands in the event."""
        return self.wrapper or ""


def read_event(event: Any, state: MappingState) -> Event:
    """*event*, unwrapped: SDKs give ``{"messageStop": {…}}``, a frame has the name beside the payload.

    Raises:
        WireTypeError: the event is no object, or has something else than one under its name.
        UnknownEventError: it is of no known type.
    """
    event = require_object(event, "the event")
    for name in EVENTS:
        if event.get(name) is not None:
            return Event(name, require_object(event[name], name), name)
    for name, value in event.items():
        if name.endswith("Exception") and value is not None:
            return Event(ERROR, value, name, name)
    if event.get("error") is not None:
        return Event(ERROR, event["error"], "error")
    name = state.event_name or ""
    if name in EVENTS:
        return Event(name, event)
    if name.endswith("Exception"):
        return Event(ERROR, event, None, name)
    if any(key in event for key in _BODY_KEYS):
        return Event(BODY, event)
    if isinstance(event.get("message"), str) and len(event) <= 2:
        return Event(ERROR, event)  # an HTTP error whose status nobody kept
    word = event_type(event) or name or next(iter(event), "")[:60]
    raise UnknownEventError(f"an event of an unknown type ({word or 'no type'})", event_type=word or None)
