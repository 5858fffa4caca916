"""The shipped processors, which turn events into updates to show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from crosswalk.responses import events as ev
from crosswalk.responses.accumulator.accumulating import ResponseSnapshot
from crosswalk.responses.accumulator.drafts import ENDS
from crosswalk.responses.annotations import AnnotationFileCitation, AnnotationURLCitation
from crosswalk.responses.chunks import CitationAnnotation, source_name
from crosswalk.responses.content import ResponseOutputText
from crosswalk.responses.display import Update, UpdateKind
from crosswalk.responses.item import Item
from crosswalk.responses.messages import ResponseOutputMessage
from crosswalk.responses.pipeline.registry import ProcessorRegistry
from crosswalk.responses.pipeline.watch import Places, call_status
from crosswalk.responses.pipeline.written import WrittenProcessor
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponseStatus
from crosswalk.text import shortened

_ITEMS: Final = (ev.ResponseOutputItemAddedEvent, ev.ResponseOutputItemDoneEvent)


class ToolProcessor:
    """Gives a line for each call of a tool, and a new one in its place when its status changes."""

    events: Final[tuple[type[ev.Event], ...]] = (*_ITEMS, ev.ItemEvent, *ENDS)

    def __init__(self) -> None:
        self._places = Places()
        self._calls: dict[str, str] = {}
        self._lines: dict[str, str] = {}

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        event = snapshot.event
        if isinstance(event, ev.ResponseOutputItemAddedEvent | ev.ResponseOutputItemDoneEvent):
            return self._item(self._places.of(event.output_index, event.item.id), event.item)
        if isinstance(event, ev.PartEvent):
            return ()
        if isinstance(event, ev.ItemEvent):
            described = call_status(event)
            if described is None or isinstance(event, ev.ResponseImageGenCallPartialImageEvent):
                return ()
            location = self._places.of(event.output_index, event.item_id)
            return self._line(
                location, self._calls.setdefault(location, described[0].removesuffix("_call")), described[1]
            )
        return self._rest(snapshot.response)

    def _rest(self, response: Response) -> Iterator[Update]:
        for index, item in enumerate(response.output):
            yield from self._item(self._places.of_final(index, item.id), item)

    def _item(self, place: str, item: Item) -> Iterator[Update]:
        word = str(getattr(item, "type", None))
        if word.endswith("_call"):
            self._calls[place] = _described(word.removesuffix("_call"), item)
            yield from self._line(place, self._calls[place], getattr(item, "status", None))

    def _line(self, place: str, call: str, status: str | None) -> Iterator[Update]:
        line = call if status is None else f"{call}: {status}"
        if line != self._lines.get(place):
            self._lines[place] = line
            yield Update(kind=UpdateKind.TOOL, text=line, key=place, replaces=True)


def _described(tool: str, item: Any) -> str:
    """Return the call in short: the tool and its arguments."""
    name = getattr(item, "name", None)
    if name is not None:
        given = getattr(item, "arguments", None) or getattr(item, "input", None) or ""
        return f"{name}({shortened(str(given))})"
    action = getattr(item, "action", None)
    requested = getattr(item, "queries", None) or getattr(action, "queries", None) or ()
    about = "; ".join(requested) or getattr(action, "query", None) or getattr(action, "url", None) or ""
    return f"{tool}({shortened(about)})" if about else tool


class CitationProcessor:
    """Gives a line for each source that the text cites, once."""

    events: Final[tuple[type[ev.Event], ...]] = (ev.ResponseOutputTextAnnotationAddedEvent, *ENDS)

    def __init__(self) -> None:
        self._seen: set[CitationAnnotation] = set()

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        event = snapshot.event
        if isinstance(event, ev.ResponseOutputTextAnnotationAddedEvent):
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

    events: Final = ENDS

    def __init__(self) -> None:
        self._said: str | None = None

    def __call__(self, snapshot: ResponseSnapshot) -> Iterable[Update]:
        """See :data:`Processor`."""
        response = snapshot.response
        failed = response.status == ResponseStatus.FAILED
        text = _failure(response) if failed else _ending(response)
        if text == self._said:  # some servers report an error, and then the response that failed with it
            return ()
        self._said = text
        return (Update(kind=UpdateKind.ERROR if failed else UpdateKind.END, text=text, response=response),)


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
