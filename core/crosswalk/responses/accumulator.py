"""The response so far, after each event of its stream.

A snapshot is the draft and a number: taking one costs the same however long the response is, and it stays what it
was. Only a response that somebody looks at is built, in time proportional to its own size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from crosswalk.responses import events as ev
from crosswalk.responses.classes import ENDS, ITEM_CLASSES
from crosswalk.responses.details import ErrorDetail, ResponseError
from crosswalk.responses.drafts import Draft, DraftItem
from crosswalk.responses.errors import SnapshotError
from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.item import Item
from crosswalk.responses.messages import ResponseOutputMessage
from crosswalk.responses.records import Unknown
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponseStatus
from crosswalk.wire.responses import EVENTS, ITEMS, LISTS, PARTS, EventRole, WireEvent

__all__ = ["ResponseAccumulator", "ResponseSnapshot", "snapshots"]


class ResponseSnapshot:
    """The response as it was after an event; immutable.

    Attributes:
        event: the event.
        number: how many events came before it.
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
        """The response so far, built when it is first looked at.

        What the server has not said is absent: a call whose opening was never sent has no item. The last one of a
        stream is the response of its terminal event, with the items that were streamed where that one has fewer; after
        an ``error`` event it has failed with that error.
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
    """Adds up the events of one response (seed 001; provider document "OpenAI Responses", section 3).

    Items are told apart by ``output_index``, and where a server sends none by ``item_id``. What ends an item, a part
    or a text takes the place of what its deltas said; nothing is lost when there were none. Previews of images and
    audio have no place in a response: they stand in their events alone.
    """

    def __init__(self) -> None:
        self._draft = Draft()
        self._last: ResponseSnapshot | None = None
        self._sequence_number: int | None = None
        self._has_erred = False

    def add(self, event: ResponseStreamEvent) -> ResponseSnapshot:
        """The response after *event*.

        Raises:
            SnapshotError: the response had ended, *event* came before, as its ``sequence_number`` says (a resumed
                stream repeats events), or it changes what its item does not have; the accumulator stays as it was.
        """
        last, before = self._last, self._sequence_number
        number = event.sequence_number
        if not isinstance(event, ev.ResponseKeepAliveEvent):
            # OpenAI lets its failed response follow the error.
            failing = self._has_erred and isinstance(event, ev.ResponseFailedEvent)
            if last is not None and last.is_final and not failing:
                raise _misfit(event, "comes after the end of the response")
            # Servers that do not count send none, or 0 with each.
            if number and before is not None and number <= before:
                raise _misfit(event, f"comes after sequence_number {before}")
        draft = self._draft
        draft.version = 0 if last is None else last.number + 1
        known = None if isinstance(event, Unknown) else EVENTS.get(event.type or "error")
        fold = None if known is None else _FOLDS.get(known.role)
        if known is not None and fold is not None:
            fold(draft, event, known)
        if number and (before is None or number > before):
            self._sequence_number = number
        if not isinstance(event, ev.ResponseKeepAliveEvent):
            self._has_erred = isinstance(event, ev.ResponseErrorEvent)
        is_final = isinstance(event, ENDS) or (last is not None and last.is_final)
        self._last = ResponseSnapshot(draft, event, is_final=is_final)
        return self._last

    @property
    def snapshot(self) -> ResponseSnapshot | None:
        """The last snapshot; ``None`` before the first event."""
        return self._last

    def final(self) -> Response:
        """The whole response.

        Raises:
            SnapshotError: the stream has not come to its end; :attr:`snapshot` has what came.
        """
        if self._last is None:
            raise SnapshotError("no event came", event_type="stream", sequence_number=None)
        if not self._last.is_final:
            raise _misfit(self._last.event, "the stream ended here, before the response did")
        return self._last.response


def snapshots(events: Iterable[ResponseStreamEvent]) -> Iterator[ResponseSnapshot]:
    """A snapshot after each of *events*.

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

_Fold = Callable[[Draft, Any, WireEvent], None]


def _response(draft: Draft, event: ev.ResponseEvent, known: WireEvent) -> None:
    draft.put_response(event.response, final=isinstance(event, ENDS))


def _error(draft: Draft, event: ev.ResponseErrorEvent, known: WireEvent) -> None:
    inside = event.error
    if isinstance(inside, ErrorDetail):
        error = ResponseError(
            code=inside.code, message=inside.message or "", param=inside.param, type=inside.type
        )
    else:
        error = ResponseError(code=event.code, message=inside or event.message or "", param=event.param)
    draft.put_response(draft.at(draft.version).replace(status=ResponseStatus.FAILED, error=error), final=True)


def _item(
    draft: Draft, event: ev.ResponseOutputItemAddedEvent | ev.ResponseOutputItemDoneEvent, known: WireEvent
) -> None:
    draft.find(event.output_index, event.item.id).put_item(draft.version, event.item)


def _of(draft: Draft, event: Any, kind: type[Item]) -> DraftItem:
    """The item that *event* is about, which must be of this *kind*, or unknown."""
    found = draft.find(event.output_index, getattr(event, "item_id", None))
    if found.kind is not None and not issubclass(found.kind, (kind, Unknown)):
        raise _misfit(event, f"is about a {found.kind.__name__}")
    if found.kind is None and kind is not Item:
        found.open_as(draft.version, kind)
    return found


def _part(draft: Draft, event: Any, known: WireEvent) -> None:
    part = PARTS.get(event.part.type)
    if part is not None and part.list != known.of:
        raise _misfit(event, f"has {event.part.type} in the {known.of}")
    kind = Item
    if part is not None or known.of == "summary":
        kind = ITEM_CLASSES[part.item if part is not None else "reasoning"]
    index = getattr(event, LISTS[known.of]) or 0
    _of(draft, event, kind).put_part(draft.version, known.of, index, event.part)


def _text(draft: Draft, event: Any, known: WireEvent) -> None:
    part, is_piece = PARTS[known.of], known.word == "delta"
    item, index = _of(draft, event, ITEM_CLASSES[part.item]), getattr(event, LISTS[part.list]) or 0
    item.write_part(draft.version, index, known.of, getattr(event, known.leaf), whole=not is_piece)
    if is_piece and getattr(event, "logprobs", None):
        item.add_logprobs(draft.version, index, event.logprobs)


def _annotation(draft: Draft, event: ev.ResponseOutputTextAnnotationAddedEvent, known: WireEvent) -> None:
    if event.annotation is not None:
        _of(draft, event, ResponseOutputMessage).annotate(
            draft.version, event.content_index or 0, event.annotation
        )


def _field(draft: Draft, event: Any, known: WireEvent) -> None:
    item, said = _of(draft, event, ITEM_CLASSES[known.of]), getattr(event, known.leaf)
    index = getattr(event, "command_index", None) or 0
    if isinstance(said, ev.ShellOutputDelta):
        for stream in ("stdout", "stderr"):
            if piece := getattr(said, stream):
                item.log(stream, index).add(draft.version, piece)
        return
    own: dict[str, tuple[Any, ...]] = {
        "shell_call": ("command", index),
        "shell_call_output": ("output", index),
        "apply_patch_call": ("diff",),
    }
    log = item.log(*(own.get(known.of) or ("field", ITEMS[known.of].fields[0])))
    if known.word == "delta":
        log.add(draft.version, said)
    else:
        log.put(draft.version, said)


def _status(draft: Draft, event: Any, known: WireEvent) -> None:
    kind = ITEM_CLASSES[known.of]
    if hasattr(kind, "status"):
        _of(draft, event, kind).log("status").put(draft.version, known.word)


_FOLDS: Final[dict[EventRole, _Fold]] = {
    EventRole.RESPONSE: _response,
    EventRole.ERROR: _error,
    EventRole.ITEM: _item,
    EventRole.PART: _part,
    EventRole.TEXT: _text,
    EventRole.ANNOTATION: _annotation,
    EventRole.FIELD: _field,
    EventRole.STATUS: _status,
}
"""An event of another role changes nothing in the response."""
