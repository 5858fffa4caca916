"""The processors of a pipeline, which turn events into updates to show, and their registry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import attrs

from crosswalk.responses.accumulator import END_EVENTS, EVENT_CLASSES, ResponseSnapshot
from crosswalk.responses.answer_events import (
    Event,
    ItemEvent,
    PartEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputTextAnnotationAddedEvent,
)
from crosswalk.responses.citations import CitationAnnotation, source_name
from crosswalk.responses.content import AnnotationFileCitation, AnnotationURLCitation, ResponseOutputText
from crosswalk.responses.display import Update, UpdateKind
from crosswalk.responses.events import ResponseImageGenCallPartialImageEvent, ResponseStreamEvent
from crosswalk.responses.messages import Item, ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.response import Response
from crosswalk.responses.toolkit import ToolCallRegistry
from crosswalk.responses.vocabulary import ResponsesError, ResponseStatus, ResponsesValueError
from crosswalk.text import clean_message, shortened
from crosswalk.wire.responses import EVENTS, LISTS, PARTS, EventRole

# -------------------------------------------------------------------------------- registry
# The registry of processors, the events that each takes, and the failures of a pipeline's stages.


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
        event_label = clean_message(self.event_type or "opening or closing", 80)
        if self.sequence_number is not None:
            event_label = f"{event_label} (sequence_number {self.sequence_number})"
        # Its message may quote content, so it is only in the cause.
        return f"{self.stage} {self.name!r} failed at {event_label}: {type(self.error).__name__}"


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
class StreamStage:
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

    def stages(self) -> list[StreamStage]:
        """New processors for one stream."""
        return [
            StreamStage(kind="processor", name=name, call=factory(), events=events)
            for name, (factory, events) in self._makers.items()
        ]


class EventRouter:
    """Finds the stages that take an event.

    Args:
        stages: all of them, in order.
    """

    def __init__(self, stages: Iterable[StreamStage] = ()) -> None:
        self._stages = list(stages)
        self._routes: dict[tuple[type, str | None], tuple[StreamStage, ...]] = {}

    def add(self, stage: StreamStage) -> None:
        """Have *stage* get its events, after the others."""
        self._stages.append(stage)
        self._routes.clear()

    def remove(self, stage: StreamStage) -> None:
        """Let *stage* get no more events."""
        self._stages = [other for other in self._stages if other is not stage]
        self._routes.clear()

    def route(self, event: ResponseStreamEvent) -> tuple[StreamStage, ...]:
        """The stages that take *event*, in order."""
        key = (type(event), event.type)
        stages = self._routes.get(key)
        if stages is None:
            stages = tuple(stage for stage in self._stages if stage.takes(event))
            if len(self._routes) < _MAX_ROUTES:  # a server can make up any number of types
                self._routes[key] = stages
        return stages


_MAX_ROUTES = 1000


def check_events(events: Iterable[object]) -> None:
    """Check a selection of events.

    Raises:
        ResponsesValueError: a member is neither an event class nor a ``type``.
    """
    for key in events:
        if not isinstance(key, str) and not (isinstance(key, type) and issubclass(key, Event)):
            raise ResponsesValueError(f"not an event class or type: {type(key).__name__}", path="events")


# ----------------------------------------------------------------------------------- watch
# The items and parts of a stream, and the progress of its calls.


class Places:
    """Names for items, the same from their first event to their last.

    Items are distinguished by ``output_index``, or by ``item_id`` if a server sends no index
    (provider document "OpenAI Responses", section 3.3).
    """

    def __init__(self) -> None:
        self._name_by_id: dict[str, str] = {}
        self._shared_ids: set[str] = set()

    def of(self, output_index: int | None, item_id: str | None) -> str:
        """The name of the item with this place and id."""
        if output_index is not None:
            name = str(output_index)
            if item_id and self._name_by_id.setdefault(item_id, name) != name:
                self._shared_ids.add(item_id)
            return name
        return self._name_by_id.setdefault(item_id or "", item_id or "?")

    def of_final(self, index: int, item_id: str | None) -> str:
        """Return the name of the item at *index* of the final output."""
        if item_id in self._shared_ids:
            return str(index)  # the server gives several items the same id
        return self._name_by_id.get(item_id or "", str(index))


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
        status_word, item_name = str(status), self._places.of(event.output_index, item_id)
        if isinstance(event, ItemEvent) and status_word not in cls.progression.words:
            return  # an event of the tool's own, which tells no status
        if isinstance(event, ResponseOutputItemAddedEvent):
            if self._opened.get(item_name, item_id) != item_id:
                self._statuses.pop(item_name, None)  # a server that gives all its items the same place
            self._opened[item_name] = item_id
        earlier_status = self._statuses.get(item_name)
        self._statuses[item_name] = status_word
        cls.progression.check(earlier_status, status_word, tool=cls.tool(), call_id=item_id)


# --------------------------------------------------------------------------------- written
# The processor of what is written: text, reasoning, refusals.


class WrittenProcessor:
    """Yields text, reasoning or refusals as they are written.

    The joined updates equal the text of the final response. Text without deltas is yielded with the event that has
    the complete text. A complete text that does not continue the deltas replaces them.

    Args:
        kind: ``text``, ``reasoning`` or ``refusal``.

    Attributes:
        events: the events that it takes.
    """

    def __init__(self, kind: UpdateKind) -> None:
        self.kind = kind
        self._leaf_by_part_type = {
            type: part.leaf for type, part in PARTS.items() if part.segment.value == kind.value
        }
        self._places = Places()
        self._shown_pieces: dict[str, list[str]] = {}

        text_event_classes = (
            EVENT_CLASSES[type]
            for type, wire_event in EVENTS.items()
            if wire_event.role is EventRole.TEXT and wire_event.of in self._leaf_by_part_type
        )
        self.events: tuple[type[Event], ...] = (
            *text_event_classes,
            ResponseOutputItemDoneEvent,
            *END_EVENTS,
        )

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        event: Any = snapshot.event
        if isinstance(event, ResponseOutputItemDoneEvent):
            return self._item(self._places.of(event.output_index, event.item.id), event.item)
        if snapshot.is_final:
            return self._rest(snapshot.response)
        if type(event) not in self.events:
            return ()
        wire_event = EVENTS[event.type]
        list_name = PARTS[wire_event.of].list
        index = getattr(event, LISTS[list_name]) or 0
        key = f"{self._places.of(event.output_index, event.item_id)}.{list_name}.{index}"
        text = getattr(event, wire_event.leaf)
        return self._piece(key, text) if wire_event.word == "delta" else self._whole(key, text)

    def _rest(self, response: Response) -> Iterator[Update]:
        for index, item in enumerate(response.output):
            yield from self._item(self._places.of_final(index, item.id), item)

    def _item(self, item_name: str, item: Item) -> Iterator[Update]:
        if not isinstance(item, ResponseOutputMessage | ResponseReasoningItem):
            return
        for list_name in ("summary", "content"):
            for index, part in enumerate(getattr(item, list_name, None) or ()):
                field_name = self._leaf_by_part_type.get(part.type)
                if field_name is not None:
                    yield from self._whole(f"{item_name}.{list_name}.{index}", getattr(part, field_name))

    def _piece(self, key: str, text: str) -> Iterator[Update]:
        if text:
            self._shown_pieces.setdefault(key, []).append(text)
            yield Update(kind=self.kind, text=text, key=key)

    def _whole(self, key: str, text: str) -> Iterator[Update]:
        shown_text = "".join(self._shown_pieces.get(key, ()))
        if text.startswith(shown_text):
            yield from self._piece(key, text[len(shown_text) :])
        else:
            yield Update(kind=self.kind, text=text, key=key, replaces=True)
        self._shown_pieces[key] = [text]  # put together once


# ------------------------------------------------------------------------------ processors
# The shipped processors, which turn events into updates to show.


_ITEM_EVENTS: Final = (ResponseOutputItemAddedEvent, ResponseOutputItemDoneEvent)


class ToolProcessor:
    """Gives a line for each call of a tool, and a new one in its place when its status changes."""

    events: Final[tuple[type[Event], ...]] = (*_ITEM_EVENTS, ItemEvent, *END_EVENTS)

    def __init__(self) -> None:
        self._places = Places()
        self._call_texts: dict[str, str] = {}
        self._lines: dict[str, str] = {}

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        event = snapshot.event
        if isinstance(event, ResponseOutputItemAddedEvent | ResponseOutputItemDoneEvent):
            return self._item(self._places.of(event.output_index, event.item.id), event.item)
        if isinstance(event, PartEvent):
            return ()
        if isinstance(event, ItemEvent):
            tool_and_status = call_status(event)
            if tool_and_status is None or isinstance(event, ResponseImageGenCallPartialImageEvent):
                return ()
            item_name = self._places.of(event.output_index, event.item_id)
            return self._line(
                item_name,
                self._call_texts.setdefault(item_name, tool_and_status[0].removesuffix("_call")),
                tool_and_status[1],
            )
        return self._rest(snapshot.response)

    def _rest(self, response: Response) -> Iterator[Update]:
        for index, item in enumerate(response.output):
            yield from self._item(self._places.of_final(index, item.id), item)

    def _item(self, item_name: str, item: Item) -> Iterator[Update]:
        item_type = str(getattr(item, "type", None))
        if item_type.endswith("_call"):
            self._call_texts[item_name] = _described(item_type.removesuffix("_call"), item)
            yield from self._line(item_name, self._call_texts[item_name], getattr(item, "status", None))

    def _line(self, item_name: str, call_text: str, status: str | None) -> Iterator[Update]:
        line = call_text if status is None else f"{call_text}: {status}"
        if line != self._lines.get(item_name):
            self._lines[item_name] = line
            yield Update(kind=UpdateKind.TOOL, text=line, key=item_name, replaces=True)


def _described(tool: str, item: Any) -> str:
    """Return the call in short: the tool and its arguments."""
    name = getattr(item, "name", None)
    if name is not None:
        arguments = getattr(item, "arguments", None) or getattr(item, "input", None) or ""
        return f"{name}({shortened(str(arguments))})"
    action = getattr(item, "action", None)
    queries = getattr(item, "queries", None) or getattr(action, "queries", None) or ()
    subject = "; ".join(queries) or getattr(action, "query", None) or getattr(action, "url", None) or ""
    return f"{tool}({shortened(subject)})" if subject else tool


class CitationProcessor:
    """Gives a line for each source that the text cites, once."""

    events: Final[tuple[type[Event], ...]] = (ResponseOutputTextAnnotationAddedEvent, *END_EVENTS)

    def __init__(self) -> None:
        self._seen: set[CitationAnnotation] = set()

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        event = snapshot.event
        if isinstance(event, ResponseOutputTextAnnotationAddedEvent):
            return self._cited([event.annotation])
        return self._cited(
            annotation
            for item in snapshot.response.output
            if isinstance(item, ResponseOutputMessage)
            for part in item.content
            if isinstance(part, ResponseOutputText)
            for annotation in part.annotations
        )

    def _cited(self, annotations: Iterable[object]) -> Iterator[Update]:
        for annotation in annotations:
            if not isinstance(annotation, CitationAnnotation) or annotation in self._seen:
                continue
            self._seen.add(annotation)
            yield Update(kind=UpdateKind.CITATION, text=_source_line(annotation))


def _source_line(annotation: AnnotationFileCitation | AnnotationURLCitation) -> str:
    name = source_name(annotation)
    if isinstance(annotation, AnnotationFileCitation):
        return name if annotation.page_number is None else f"{name}, page {annotation.page_number}"
    return name if name == annotation.url else f"{name} <{annotation.url}>"


class EndProcessor:
    """Gives the last line, how the response ended, with the whole response."""

    events: Final = END_EVENTS

    def __init__(self) -> None:
        self._said: str | None = None

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        response = snapshot.response
        has_failed = response.status == ResponseStatus.FAILED
        text = _failure(response) if has_failed else _ending(response)
        if text == self._said:  # some servers report an error, and then the response that failed with it
            return ()
        self._said = text
        return (
            Update(kind=UpdateKind.ERROR if has_failed else UpdateKind.END, text=text, response=response),
        )


def _failure(response: Response) -> str:
    error = response.error
    parts = (error.code, error.message) if error is not None else ()
    return ": ".join(str(part) for part in parts if part) or "failed"


def _ending(response: Response) -> str:
    text = str(response.status or "ended")
    if response.incomplete_details is not None and response.incomplete_details.reason is not None:
        text = f"{text} ({response.incomplete_details.reason})"
    usage = response.usage
    if usage is not None:
        text = f"{text}, {usage.input_tokens} input and {usage.output_tokens} output tokens"
    return text


def default_processors() -> ProcessorRegistry:
    """A new registry with the shipped processors.

    They are ``reasoning``, ``text``, ``refusal``, ``tools``, ``citations`` and ``end``.
    """
    registry = ProcessorRegistry()
    for kind in (UpdateKind.REASONING, UpdateKind.TEXT, UpdateKind.REFUSAL):
        registry.register_factory(kind.value, partial(WrittenProcessor, kind), *WrittenProcessor(kind).events)
    registry.register_factory("tools", ToolProcessor, *ToolProcessor.events)
    registry.register_factory("citations", CitationProcessor, *CitationProcessor.events)
    registry.register_factory("end", EndProcessor, *EndProcessor.events)
    return registry
