"""The response so far, after each event of its stream.

A snapshot consists of the draft and a number. Taking one costs the same for a response of any length, and it never
changes afterwards. The response is built only when you read it, in time proportional to its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from crosswalk.responses import events as ev
from crosswalk.responses.accumulator.drafts import ENDS, EVENT_CLASSES, ITEM_CLASSES, Draft, DraftItem
from crosswalk.responses.details import ErrorDetail, ResponseError
from crosswalk.responses.errors import SnapshotError
from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.item import Item
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.records import Unknown
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponseStatus
from crosswalk.wire.responses import EVENTS, ITEMS, LISTS, PARTS, EventRole, WireEvent

__all__ = ["ResponseAccumulator", "ResponseSnapshot", "snapshots"]


class ResponseSnapshot:
    """The response as it was after an event. Immutable.

    Attributes:
        event: the event.
        number: the number of events before it.
        is_final: whether the response ended with it.
    """

    __slots__ = ("_draft", "_response", "event", "is_final", "number")

    def __init__(self, draft: Draft, event: ResponseStreamEvent, *, is_final: bool) -> None:
        self._draft = draft
        self._response: Response | None = None
        self.event = event
        self.number = draft.version
        self.is_final = is_final

    @property
    def response(self) -> Response:
        """The response so far, built when it is first read.

        Fields that the server has not sent are absent, so a call without an opening event has no item. The last snapshot
        of a stream holds the response of its terminal event, plus the streamed items if the terminal event has fewer.
        After an ``error`` event the response has failed with that error.
        """
        if self._response is None:
            self._response = self._draft.at(self.number)
        return self._response

    @property
    def text(self) -> str:
        """The text so far."""
        return self.response.output_text

    def __repr__(self) -> str:
        return f"ResponseSnapshot(number={self.number}, event={self.event.type!r}, is_final={self.is_final})"


class ResponseAccumulator:
    """Accumulates the events of one response.

    Items are distinguished by ``output_index``, or by ``item_id`` if a server sends no index. The event that ends an item,
    a part or a text replaces the content of its deltas, which may be absent. Previews of images and audio have no field in
    a response, so you find them only in their events.
    """

    def __init__(self) -> None:
        self._draft = Draft()
        self._last: ResponseSnapshot | None = None
        self._sequence_number: int | None = None
        self._has_erred = False

    def add(self, event: ResponseStreamEvent) -> ResponseSnapshot:
        """Return the response after *event*.

        Raises:
            SnapshotError: the response had ended, *event* was already applied according to its ``sequence_number`` (a
                resumed stream repeats events), or it changes a part that its item does not have. The accumulator is
                unchanged.
        """
        kind, last, before = type(event), self._last, self._sequence_number
        number, is_final = event.sequence_number, kind in ENDS
        draft = self._draft
        draft.version = 0 if last is None else last.number + 1
        if kind is ev.ResponseKeepAliveEvent:  # its number does not say where the stream is
            is_final = last is not None and last.is_final
        else:
            # OpenAI lets its failed response follow the error.
            failing = self._has_erred and kind is ev.ResponseFailedEvent
            if last is not None and last.is_final and not failing:
                raise _misfit(event, "comes after the end of the response")
            # Servers that do not count send no number, or 0 with each event.
            if number and before is not None and number <= before:
                raise _misfit(event, f"comes after sequence_number {before}")
            fold = _FOLDS.get((kind, event.type or "error"))
            if fold is not None:
                fold(draft, event)
            self._has_erred = kind is ev.ResponseErrorEvent
            if number:
                self._sequence_number = number
        self._last = ResponseSnapshot(draft, event, is_final=is_final)
        return self._last

    @property
    def snapshot(self) -> ResponseSnapshot | None:
        """The last snapshot, or ``None`` before the first event."""
        return self._last

    def final(self) -> Response:
        """Return the complete response.

        Raises:
            SnapshotError: the stream has not ended. :attr:`snapshot` has the part that arrived.
        """
        if self._last is None:
            raise SnapshotError("no event came", event_type="stream", sequence_number=None)
        if not self._last.is_final:
            raise _misfit(self._last.event, "the stream ended here, before the response did")
        return self._last.response


def snapshots(events: Iterable[ResponseStreamEvent]) -> Iterator[ResponseSnapshot]:
    """Yield a snapshot after each of *events*.

    Raises:
        SnapshotError: an event does not fit, or the stream ends before the response does.
    """
    accumulator = ResponseAccumulator()
    for event in events:
        yield accumulator.add(event)
    accumulator.final()


def _misfit(event: ResponseStreamEvent, problem: str) -> SnapshotError:
    return SnapshotError(problem, event_type=str(event.type)[:80], sequence_number=event.sequence_number)


# ---------------------------------------------------------------------------------- how each event is folded

_Fold: TypeAlias = Callable[[Draft, Any], None]


def _response(draft: Draft, event: ev.ResponseEvent) -> None:
    draft.put_response(event.response, final=type(event) in ENDS)


def _error(draft: Draft, event: ev.ResponseErrorEvent) -> None:
    inside = event.error
    if isinstance(inside, ErrorDetail):
        error = ResponseError(
            code=inside.code, message=inside.message or "", param=inside.param, type=inside.type
        )
    else:
        error = ResponseError(code=event.code, message=inside or event.message or "", param=event.param)
    draft.put_response(draft.at(draft.version).replace(status=ResponseStatus.FAILED, error=error), final=True)


def _item(draft: Draft, event: ev.ResponseOutputItemAddedEvent | ev.ResponseOutputItemDoneEvent) -> None:
    draft.find(event.output_index, event.item.id).put_item(draft.version, event.item)


def _of(draft: Draft, event: Any, kind: type[Item]) -> DraftItem:
    """Return the item of *event*, which must be of this *kind*, or unknown."""
    result = draft.find(event.output_index, getattr(event, "item_id", None))
    if result.kind is not None and not issubclass(result.kind, (kind, Unknown)):
        raise _misfit(event, f"is about a {result.kind.__name__}")
    if result.kind is None and kind is not Item:
        result.open_as(draft.version, kind)
    return result


def _annotation(draft: Draft, event: ev.ResponseOutputTextAnnotationAddedEvent) -> None:
    if event.annotation is not None:
        _of(draft, event, ResponseOutputMessage).annotate(
            draft.version, event.content_index or 0, event.annotation
        )


def _part(known: WireEvent) -> _Fold:
    location, index = known.of, LISTS[known.of]
    holder = ResponseReasoningItem if location == "summary" else Item

    def fold(draft: Draft, event: Any) -> None:
        part = PARTS.get(event.part.type)
        if part is not None and part.list != location:
            raise _misfit(event, f"has {event.part.type} in the {location}")
        kind = holder if part is None else ITEM_CLASSES[part.item]
        _of(draft, event, kind).put_part(draft.version, location, getattr(event, index) or 0, event.part)

    return fold


def _text(known: WireEvent) -> _Fold:
    type, leaf, whole = known.of, known.leaf, known.word != "delta"
    kind, location = ITEM_CLASSES[PARTS[type].item], PARTS[type].list
    index = LISTS[location]

    def fold(draft: Draft, event: Any) -> None:
        item, number = _of(draft, event, kind), getattr(event, index) or 0
        item.write_part(draft.version, location, number, type, getattr(event, leaf), whole=whole)
        if not whole and getattr(event, "logprobs", None):
            item.add_logprobs(draft.version, number, event.logprobs)

    return fold


def _field(known: WireEvent) -> _Fold:
    kind, leaf, whole = ITEM_CLASSES[known.of], known.leaf, known.word != "delta"
    name = _NAMES.get(known.of) or ("field", ITEMS[known.of].fields[0])

    def fold(draft: Draft, event: Any) -> None:
        item, value = _of(draft, event, kind), getattr(event, leaf)
        index = (event.command_index or 0,) if hasattr(event, "command_index") else ()
        if isinstance(value, ev.ShellOutputDelta):
            for stream in ("stdout", "stderr"):
                if piece := getattr(value, stream):
                    item.log(stream, *index).add(draft.version, piece)
        elif whole:
            item.log(*name, *index).put(draft.version, value)
        else:
            item.log(*name, *index).add(draft.version, value)

    return fold


_NAMES: Final = {"shell_call": ("command",), "shell_call_output": ("output",), "apply_patch_call": ("diff",)}
"""Changes that belong to a value inside a field of the item."""


def _status(known: WireEvent) -> _Fold | None:
    kind, word = ITEM_CLASSES[known.of], known.word
    if not hasattr(kind, "status"):
        return None
    return lambda draft, event: _of(draft, event, kind).log("status").put(draft.version, word)


_FOLDS_OF: Final[dict[EventRole, Callable[[WireEvent], _Fold | None]]] = {
    EventRole.RESPONSE: lambda _: _response,
    EventRole.ERROR: lambda _: _error,
    EventRole.ITEM: lambda _: _item,
    EventRole.PART: _part,
    EventRole.TEXT: _text,
    EventRole.ANNOTATION: lambda _: _annotation,
    EventRole.FIELD: _field,
    EventRole.STATUS: _status,
}
"""The function for events of each role. Events of other roles leave the response unchanged."""

_FOLDS: Final[dict[tuple[type[Any], str], _Fold]] = {
    (EVENT_CLASSES[type], type): fold
    for type, known in EVENTS.items()
    if known.role in _FOLDS_OF and (fold := _FOLDS_OF[known.role](known)) is not None
}
