"""All events of a stream as one type, and how a program adds its own."""

from __future__ import annotations

from typing import TypeAlias

from crosswalk.responses.events.calls import CallEvent
from crosswalk.responses.events.event import Event, UnknownEvent
from crosswalk.responses.events.lifecycle import LifecycleEvent
from crosswalk.responses.events.text import TextEvent
from crosswalk.responses.families import register

KnownStreamEvent: TypeAlias = LifecycleEvent | TextEvent | CallEvent
"""An event of a stream, of a type of the API, selected by ``type``."""

ResponseStreamEvent: TypeAlias = KnownStreamEvent | UnknownEvent
"""An event of a stream."""


def register_event(cls: type[Event]) -> type[Event]:
    """Read events with the ``type`` of *cls* as one.

    Use it as a decorator of a :func:`crosswalk.responses.record` that derives from ``Event``. A ``type`` of the
    API keeps its meaning. If two classes have the same ``type``, the later one counts.

    Raises:
        TypeError: *cls* has no ``type`` that is a ``Literal``.
    """
    return register(cls, UnknownEvent)
