"""The registry of processors, the events that each takes, and the failures of a pipeline's stages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from crosswalk.responses.accumulator.accumulating import ResponseSnapshot
from crosswalk.responses.display import Update
from crosswalk.responses.errors import ResponsesError, ResponsesValueError
from crosswalk.responses.events import Event, ResponseStreamEvent
from crosswalk.text import clean_message

StageKind: TypeAlias = Literal["handler", "processor", "display", "status"]
"""The stages of a pipeline. ``status`` checks the statuses of tool calls."""


@attrs.frozen(kw_only=True)
class StageFailure:
    """A handler, processor or display that failed, or an impossible step of a tool call's status.

    Attributes:
        stage: its stage.
        name: its name, or the tool for a status.
        event_type: the event at which it failed, or ``None`` at the opening or closing of a display.
        sequence_number: the event's position in the stream, or ``None`` if the server sent none.
        error: the exception that it raised.
    """

    stage: StageKind
    name: str
    event_type: str | None
    sequence_number: int | None
    error: Exception

    def __str__(self) -> str:
        location = clean_message(self.event_type or "opening or closing", 80)
        if self.sequence_number is not None:
            location = f"{location} (sequence_number {self.sequence_number})"
        # Its message may quote content, so it is only in the cause.
        return f"{self.stage} {self.name!r} failed at {location}: {type(self.error).__name__}"


class PipelineError(ResponsesError):
    """Handlers, processors or displays of a pipeline failed, or a status took an impossible step. Everything else continued.

    The first failure's error is the cause.

    Attributes:
        failures: the failures in order, at least one.
        snapshot: the response after the last event, or ``None`` before the first.
    """

    def __init__(self, failures: Sequence[StageFailure], *, snapshot: ResponseSnapshot | None) -> None:
        super().__init__(clean_message("; ".join(map(str, failures))))
        self.failures = tuple(failures)
        self.snapshot = snapshot
        self.__cause__ = failures[0].error


Updates: TypeAlias = Iterable[Update] | None
Processor: TypeAlias = Callable[[ResponseSnapshot], Updates | Awaitable[Updates]]
"""Takes the snapshot after an event (``snapshot.event`` is the event) and returns the updates to show. May be a
coroutine function."""
EventHandler: TypeAlias = Callable[[ResponseSnapshot], Any]
"""Takes the snapshot after an event. May be a coroutine function."""
EventKey: TypeAlias = type[Event] | str
"""A selection of events: a class, which includes its subclasses, or a ``type`` such as ``response.completed``."""


@attrs.frozen(kw_only=True)
class Stage:
    """A handler or processor of one stream, and the events that it takes.

    Attributes:
        kind: ``handler`` or ``processor``.
        name: its name.
        call: the function.
        events: the events that it takes, or empty for all.
    """

    kind: StageKind
    name: str
    call: Callable[[ResponseSnapshot], Any]
    events: tuple[EventKey, ...] = ()

    def takes(self, event: ResponseStreamEvent) -> bool:
        """Whether it takes *event*."""
        return not self.events or any(
            event.type == key if isinstance(key, str) else isinstance(event, key) for key in self.events
        )


class ProcessorRegistry:
    """Processors by name, for any number of streams."""

    def __init__(self) -> None:
        self._makers: dict[str, tuple[Callable[[], Processor], tuple[EventKey, ...]]] = {}

    def register(self, name: str, processor: Processor, *events: EventKey) -> None:
        """Add a stateless processor.

        Args:
            name: its name. A processor with the same name is replaced.
            processor: a function or other callable.
            events: the events that it takes, or empty for all.

        Raises:
            ResponsesValueError: *events* contains something other than an event class or a ``type``.
        """
        self.register_factory(name, lambda: processor, *events)

    def register_factory(self, name: str, factory: Callable[[], Processor], *events: EventKey) -> None:
        """Add a processor that has a state: *factory* makes a new one for each stream. See :meth:`register`."""
        check_events(events)
        self._makers[name] = (factory, events)

    def unregister(self, name: str) -> None:
        """Remove a processor, if it is registered."""
        self._makers.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The processors' names, in order of registration, which is that of their work."""
        return tuple(self._makers)

    def copy(self) -> ProcessorRegistry:
        """A registry with the same processors, to add others to."""
        registry = ProcessorRegistry()
        registry._makers = dict(self._makers)
        return registry

    def stages(self) -> list[Stage]:
        """New processors for one stream."""
        return [
            Stage(kind="processor", name=name, call=factory(), events=events)
            for name, (factory, events) in self._makers.items()
        ]


class EventRouter:
    """Finds the stages that take an event.

    Args:
        stages: all of them, in order.
    """

    def __init__(self, stages: Iterable[Stage] = ()) -> None:
        self._stages = list(stages)
        self._routes: dict[tuple[type, str | None], tuple[Stage, ...]] = {}

    def add(self, stage: Stage) -> None:
        """Have *stage* get its events, after the others."""
        self._stages.append(stage)
        self._routes.clear()

    def remove(self, stage: Stage) -> None:
        """Let *stage* get no more events."""
        self._stages = [other for other in self._stages if other is not stage]
        self._routes.clear()

    def route(self, event: ResponseStreamEvent) -> tuple[Stage, ...]:
        """The stages that take *event*, in order."""
        key = (type(event), event.type)
        result = self._routes.get(key)
        if result is None:
            result = tuple(stage for stage in self._stages if stage.takes(event))
            if len(self._routes) < _MOST_ROUTES:  # a server can make up any number of types
                self._routes[key] = result
        return result


_MOST_ROUTES = 1000


def check_events(events: Iterable[object]) -> None:
    """Check a selection of events.

    Raises:
        ResponsesValueError: a member is neither an event class nor a ``type``.
    """
    for key in events:
        if not isinstance(key, str) and not (isinstance(key, type) and issubclass(key, Event)):
            raise ResponsesValueError(
                f"neither an event class nor a type: {type(key).__name__}", path="events"
            )
