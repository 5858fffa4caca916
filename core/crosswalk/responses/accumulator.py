"""The response so far, after each event of its stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from crosswalk.responses import answer_events as ev
from crosswalk.responses.answer_events import Event
from crosswalk.responses.content import ErrorDetail, ResponseError, StreamedPart
from crosswalk.responses.events import KnownStreamEvent, ResponseStreamEvent
from crosswalk.responses.items import KnownOutputItem, ResponseOutputItem
from crosswalk.responses.messages import Item, ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.reading import parse, parse_item, to_dict
from crosswalk.responses.records import Unknown, classes_of
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponseStatus, SnapshotError
from crosswalk.wire.responses import EVENTS, ITEMS, LISTS, PARTS, PENDING, EventRole, WireEvent

# ---------------------------------------------------------------------------------- drafts
# The JSON of a response that grows with the events of its stream, and the class of each event, item and part.


EVENT_CLASSES: Final[dict[str, type[Any]]] = classes_of(KnownStreamEvent)
"""The classes of events, by type."""
ITEM_CLASSES: Final[dict[str, type[Any]]] = classes_of(KnownOutputItem)
"""The classes of items, by type."""
PART_CLASSES: Final[dict[str, type[Any]]] = classes_of(StreamedPart)
"""The classes of parts, by type."""

END_EVENTS: Final[tuple[type[Event], ...]] = tuple(
    EVENT_CLASSES[type]
    for type, event in EVENTS.items()
    if event.role is EventRole.ERROR or (event.role is EventRole.RESPONSE and event.of not in PENDING)
)
"""The events with which a response ends."""


def misfit(event: ResponseStreamEvent, problem: str) -> SnapshotError:
    """Return the error for *event*, which has *problem*."""
    return SnapshotError(problem, event_type=str(event.type)[:80], sequence_number=event.sequence_number)


class _DraftItem:
    """An item of the draft: as it was last sent, and its JSON once an event has changed a part of it.

    Attributes:
        order: its position in the output as far as the server gave one, or ``None`` for the order of arrival.
        id: its id. If the item was never opened, the id in its events.
        kind: the kind of the item, as far as it is known.
    """

    def __init__(self, order: int | None, id: str | None) -> None:
        self.order = order
        self.id = id
        self.kind: type[Any] | None = None
        self._item: ResponseOutputItem | None = None
        self._data: dict[str, Any] | None = None
        self._texts: dict[tuple[int, Any], tuple[Any, Any, list[str]]] = {}
        self._lists: dict[tuple[str, ...], dict[int, Any]] = {}

    def put(self, item: ResponseOutputItem) -> None:
        """Replace everything with *item*."""
        self.kind, self._item, self._data = type(item), item, None
        self._texts, self._lists = {}, {}

    @property
    def data(self) -> dict[str, Any]:
        """The JSON of the item, to be changed, without its lists and texts that arrive in pieces."""
        if self._data is None:
            self._data = {} if self._item is None else to_dict(self._item)
        return self._data

    def numbered(self, *path: str, is_new: bool = False) -> dict[int, Any]:
        """Return the values of the list at *path* by number, to be changed, or none if the list *is_new*."""
        if path not in self._lists:
            existing_values = self._holder(path).get(path[-1]) or ()
            self._lists[path] = {} if is_new else dict(enumerate(existing_values))
        return self._lists[path]

    def part(self, list_name: str, index: int, type: str) -> dict[str, Any]:
        """Return the part of this *type*. It takes the place of one of another type."""
        parts = self.numbered(list_name)
        if parts.get(index, {}).get("type") != type:
            parts[index] = to_dict(PART_CLASSES[type](**{PARTS[type].leaf: ""}))
        part: dict[str, Any] = parts[index]
        return part

    def write(self, holder: Any, key: Any, text: str, *, whole: bool) -> None:
        """Add *text* to those under *key* of *holder*, or replace all with the *whole* text."""
        *_, pieces = self._texts.setdefault((id(holder), key), (holder, key, []))
        if whole:
            pieces.clear()
        pieces.append(text)

    def built(self) -> ResponseOutputItem | None:
        """Return the item, or ``None`` if too little is known to build it."""
        if self._item is not None and (self._data is None or isinstance(self._item, Unknown)):
            return self._item
        base_fields: dict[str, Any] = {}
        if self._item is None:
            if self.kind not in (ResponseOutputMessage, ResponseReasoningItem):
                return None
            base_fields = to_dict(self.kind(id=self.id))
        for holder, key, pieces in self._texts.values():
            pieces[:] = ["".join(pieces)]
            holder[key] = pieces[0]
        for path, values_by_number in self._lists.items():
            values = [values_by_number[index] for index in sorted(values_by_number)]
            if path == ("output",):  # each command of a shell has several
                values = [output for outputs in values for output in outputs]
            self._holder(path)[path[-1]] = values
        return parse_item({**base_fields, **self.data}, unknown="keep")

    def _holder(self, path: tuple[str, ...]) -> dict[str, Any]:
        holder = self.data
        for step in path[:-1]:
            holder = holder.setdefault(step, {})
        return holder


class Draft:
    """The contents of all events of a stream."""

    def __init__(self) -> None:
        self._events: list[ResponseStreamEvent] = []
        self._response: Response | None = None
        self._is_final = False
        self._items: list[_DraftItem] = []
        self._by_index: dict[int, _DraftItem] = {}
        self._by_id: dict[str, _DraftItem] = {}

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: ResponseStreamEvent) -> None:
        """Add the content of *event*.

        Raises:
            SnapshotError: *event* changes a part that its item does not have. The draft is unchanged.
        """
        fold = _FOLDS.get((type(event), event.type or "error"))
        if fold is not None:
            fold(self, event)
        self._events.append(event)

    def at(self, number: int) -> Response:
        """Return the response after event *number*."""
        if number == len(self._events) - 1:
            return self.built()
        earlier_draft = Draft()
        for event in self._events[: number + 1]:
            earlier_draft.add(event)
        return earlier_draft.built()

    def built(self) -> Response:
        """Return the response after the last event."""
        response = self._response or Response()
        ordered_items = sorted(
            enumerate(self._items), key=lambda one: one[0] if one[1].order is None else one[1].order
        )
        output = [built_item for _, item in ordered_items if (built_item := item.built()) is not None]
        # Some servers end a stream with an empty or shorter output than they sent.
        if len(output) > len(response.output) or (output and not self._is_final):
            return response.replace(output=output)
        return response

    def put_response(self, response: Response, *, is_final: bool) -> None:
        """Record the fields of the response as a whole. The final response is used unchanged."""
        if self._response is not None and not is_final:
            response = parse(Response, {**to_dict(self._response), **to_dict(response)}, unknown="keep")
        self._response, self._is_final = response, is_final

    def item(self, event: Any, kind: type[Item]) -> _DraftItem:
        """Return the item of *event*, which must be of this *kind*, or unknown.

        Raises:
            SnapshotError: it is of another kind.
        """
        draft_item = self.find(event.output_index, getattr(event, "item_id", None))
        if draft_item.kind is not None and not issubclass(draft_item.kind, (kind, Unknown)):
            raise misfit(event, f"is about a {draft_item.kind.__name__}")
        if kind is not Item:
            draft_item.kind = draft_item.kind or kind
        return draft_item

    def find(self, index: int | None, id: str | None) -> _DraftItem:
        """Return the item at *index*, or the one with this *id* if the server gives no index. Create it if needed."""
        item_by_id = self._by_id.get(id or "")
        draft_item = (
            item_by_id
            if index is None or (item_by_id and item_by_id.order is None)
            else self._by_index.get(index)
        )
        if draft_item is None:
            draft_item = _DraftItem(index, id)
            self._items.append(draft_item)
            if index is not None:
                self._by_index[index] = draft_item
        if id is not None:
            self._by_id.setdefault(id, draft_item)
        return draft_item


# How each event is folded.

_Fold: TypeAlias = Callable[[Draft, Any], None]


def _response(draft: Draft, event: ev.ResponseEvent) -> None:
    draft.put_response(event.response, is_final=type(event) in END_EVENTS)


def _error(draft: Draft, event: ev.ResponseErrorEvent) -> None:
    nested_error = event.error
    if isinstance(nested_error, ErrorDetail):
        error = ResponseError(
            code=nested_error.code,
            message=nested_error.message or "",
            param=nested_error.param,
            type=nested_error.type,
        )
    else:
        error = ResponseError(code=event.code, message=nested_error or event.message or "", param=event.param)
    draft.put_response(draft.built().replace(status=ResponseStatus.FAILED, error=error), is_final=True)


def _item(draft: Draft, event: ev.ResponseOutputItemAddedEvent | ev.ResponseOutputItemDoneEvent) -> None:
    draft.find(event.output_index, event.item.id).put(event.item)


def _annotation(draft: Draft, event: ev.ResponseOutputTextAnnotationAddedEvent) -> None:
    if event.annotation is not None:
        item, index = draft.item(event, ResponseOutputMessage), event.content_index or 0
        if item.numbered("content").get(index, {"type": "output_text"}).get("type") == "output_text":
            part = item.part("content", index, "output_text")
            part["annotations"] = [*(part.get("annotations") or ()), to_dict(event.annotation)]


def _part(wire_event: WireEvent) -> _Fold:
    list_name, index_field = wire_event.of, LISTS[wire_event.of]
    item_class = ResponseReasoningItem if list_name == "summary" else Item

    def fold(draft: Draft, event: Any) -> None:
        part = PARTS.get(event.part.type)
        if part is not None and part.list != list_name:
            raise misfit(event, f"has {event.part.type} in the {list_name}")
        item = draft.item(event, item_class if part is None else ITEM_CLASSES[part.item])
        item.numbered(list_name)[getattr(event, index_field) or 0] = to_dict(event.part)

    return fold


def _text(wire_event: WireEvent) -> _Fold:
    type, leaf, is_whole = wire_event.of, wire_event.leaf, wire_event.word != "delta"
    item_class, list_name = ITEM_CLASSES[PARTS[type].item], PARTS[type].list
    index_field = LISTS[list_name]

    def fold(draft: Draft, event: Any) -> None:
        item = draft.item(event, item_class)
        part = item.part(list_name, getattr(event, index_field) or 0, type)
        item.write(part, PARTS[type].leaf, getattr(event, leaf), whole=is_whole)
        if not is_whole and (logprobs := getattr(event, "logprobs", None)):
            part["logprobs"] = part.get("logprobs") or []
            part["logprobs"] += map(to_dict, logprobs)

    return fold


def _field(wire_event: WireEvent) -> _Fold:
    item_class, leaf, is_whole = ITEM_CLASSES[wire_event.of], wire_event.leaf, wire_event.word != "delta"
    field_name = next(iter(ITEMS[wire_event.of].fields), "")

    def fold(draft: Draft, event: Any) -> None:
        item = draft.item(event, item_class)
        item.write(item.data, field_name, getattr(event, leaf), whole=is_whole)

    def fold_command(draft: Draft, event: Any) -> None:
        item = draft.item(event, item_class)
        commands = item.numbered("action", "commands")
        item.write(commands, event.command_index or 0, getattr(event, leaf), whole=is_whole)

    def fold_shell_output(draft: Draft, event: Any) -> None:
        item, index = draft.item(event, item_class), event.command_index or 0
        outputs = item.numbered("output", is_new=True)
        if is_whole:
            outputs[index] = [output.thawed() for output in event.output]
            return
        running_outputs = outputs.setdefault(index, [{"stdout": "", "stderr": ""}])
        for stream_name in running_outputs[0].keys() & ("stdout", "stderr"):
            item.write(running_outputs[0], stream_name, getattr(event.delta, stream_name) or "", whole=False)

    def fold_diff(draft: Draft, event: Any) -> None:
        item = draft.item(event, item_class)
        operation = item.data.get("operation", {})
        if "diff" in operation:
            item.write(operation, "diff", getattr(event, leaf), whole=is_whole)

    special_folds = {
        "shell_call": fold_command,
        "shell_call_output": fold_shell_output,
        "apply_patch_call": fold_diff,
    }
    return special_folds.get(wire_event.of, fold)


def _status(wire_event: WireEvent) -> _Fold | None:
    item_class, status = ITEM_CLASSES[wire_event.of], wire_event.word
    if not hasattr(item_class, "status"):
        return None

    def fold(draft: Draft, event: Any) -> None:
        draft.item(event, item_class).data["status"] = status

    return fold


FOLDS_OF: Final[dict[EventRole, Callable[[WireEvent], _Fold | None]]] = {
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
    if known.role in FOLDS_OF and (fold := FOLDS_OF[known.role](known)) is not None
}


# ---------------------------------------------------------------------------- accumulating
# The response so far, after each event of its stream.
#
# A snapshot consists of the draft and a number. Taking one costs the same for a response of any length, and it never
# changes afterwards. The response is built only when you read it, in time proportional to its size. If later events
# have
# come by then, the events up to the snapshot are added up again.


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
        self.number = len(draft) - 1
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
        event_class, last_snapshot, earlier_number = type(event), self._last, self._sequence_number
        number, is_final = event.sequence_number, event_class in END_EVENTS
        if event_class is ev.ResponseKeepAliveEvent:  # its number does not say where the stream is
            is_final = last_snapshot is not None and last_snapshot.is_final
        else:
            # OpenAI lets its failed response follow the error.
            follows_error = self._has_erred and event_class is ev.ResponseFailedEvent
            if last_snapshot is not None and last_snapshot.is_final and not follows_error:
                raise misfit(event, "comes after the end of the response")
            # Servers that do not count send no number, or 0 with each event.
            if number and earlier_number is not None and number <= earlier_number:
                raise misfit(event, f"comes after sequence_number {earlier_number}")
        self._draft.add(event)
        if event_class is not ev.ResponseKeepAliveEvent:
            self._has_erred = event_class is ev.ResponseErrorEvent
            self._sequence_number = number or earlier_number
        self._last = ResponseSnapshot(self._draft, event, is_final=is_final)
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
            raise misfit(self._last.event, "the stream ended here, before the response did")
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
