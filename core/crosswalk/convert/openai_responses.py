"""Responses: the response object of ``/v1/responses``, and its events (provider document "OpenAI Responses").

A text, with its citations, is a part of a message. A run of texts and refusals is one message. Reasoning is a separate
item, and so is each call. An answer that was read as a response is restored: its items in their order, with their types,
ids and stored fields.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from crosswalk.convert.arguments import CallIDs
from crosswalk.convert.failure import openai_error, response_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.kept_items import KeptItems
from crosswalk.convert.parts import Piece
from crosswalk.convert.response_items import HeldCall, OpenItem, OpenPart
from crosswalk.convert.response_values import action_item, annotation_of, repeated, server_item, usage_of
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import TIERS, Event, Heading, Writer, logprobs_of
from crosswalk.errors import ErrorInfo
from crosswalk.responses.vocabulary import IdKind, ResponsesError, make_id
from crosswalk.types.json import copy_json
from crosswalk.types.values import PAUSES, FinishReason, SegmentType, TokenLogprob
from crosswalk.wire.responses import (
    BESIDE,
    FAMILIES,
    FINISH_REASONS,
    ITEMS,
    LISTS,
    PARTS,
    EventRole,
    ItemRole,
)

if TYPE_CHECKING:
    from crosswalk.responses.reading import OnUnknown


_NEWS: Final = ("output", "type", "sequence_number", "obfuscation")
"""Stored data that are not fields of the response: its items, and the further fields of events."""


class ResponsesWriter(Writer):
    """Writes Responses, the first of several answers."""

    form = WireForm.OPENAI_RESPONSES

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._items: list[OpenItem] = []
        self._passed: dict[int | None, int] = {}  # items without pieces, by their positions
        self._kept = KeptItems(lambda: self.left.get("output") if self.is_own else None)
        self._open: OpenItem | None = None  # the message or the reasoning that may continue
        self._reasoning_part = -1
        self._call_ids = CallIDs()
        self._calls: dict[int, OpenItem] = {}  # the calls that have begun, by part
        self._unfinished: dict[int, OpenItem] = {}  # those of them whose arguments may continue, by number
        self._held: dict[int, HeldCall] = {}  # the calls that have not, by part
        self._named: dict[int, str] = {}  # those of them whose name is known
        self._complete: list[OpenItem] = []  # calls whose arguments are complete
        self._done: dict[int, Event] = {}
        self._tokens: list[Event] = []
        self._length = 0
        self._sequence = 0
        self._status = ""
        self._detail = ""
        self._has_begun = False

    # The input.

    def piece(self, piece: Piece) -> Iterator[Event]:
        """See :meth:`Writer.piece`."""
        if piece.choice or piece.type in (SegmentType.SAFETY, SegmentType.ERROR):
            return
        yield from self._begin()
        match piece.type:
            case SegmentType.TEXT | SegmentType.REFUSAL | SegmentType.CITATION:
                yield from self._message(piece)
            case SegmentType.REASONING:
                yield from self._reasoning(piece)
            case SegmentType.TOOL_CALL if piece.call is not None:
                yield from self._call(piece)
            case _:
                yield from self._server_item(piece)

    def _message(self, piece: Piece) -> Iterator[Event]:
        annotation = None
        if piece.type is SegmentType.CITATION:
            annotation = annotation_of(piece, self._length, is_own=self.is_own)
            if annotation is None:
                return
        (key, name), part, item = BESIDE["message"], self._part_of(piece), self._opened("message")
        phase = piece.metadata.get(name)
        about = {key: phase} if isinstance(phase, str) else {}
        if part is None and not (piece.text or annotation):
            if item is not None:
                item.about |= about
            if item is not None or not about:
                return
        if part is None:
            if item is None or key in item.about or self._kept.next_is("message"):
                item = yield from self._new_open("message", piece)
            kind = "refusal" if piece.type is SegmentType.REFUSAL else "output_text"
            part = yield from self._add_part(item, kind, piece.part)
        assert item is not None, "a part is one of the open item"
        if annotation is not None:
            part.annotations.append(annotation)
            number, family = len(part.annotations) - 1, FAMILIES[EventRole.ANNOTATION, part.type]
            location = self._place(item, part)
            yield self._event(f"{family}.added", **location, annotation=annotation, annotation_index=number)
        elif piece.text:
            yield from self._say(item, part, piece.text)
        if phase:
            item.about |= about

    def _opened(self, type: str) -> OpenItem | None:
        """Return the item that may continue, if it is of that type."""
        return self._open if self._open is not None and self._open.type == type else None

    def _part_of(self, piece: Piece) -> OpenPart | None:
        """Return the part that *piece* continues, or ``None`` if it begins one."""
        if self._open is None or not self._open.parts:
            return None
        last = self._open.parts[-1]
        if piece.type is SegmentType.CITATION:
            return last if last.type == "output_text" else None
        return last if last.part == piece.part and PARTS[last.type].segment is piece.type else None

    def _reasoning(self, piece: Piece) -> Iterator[Event]:
        (key, name), item = BESIDE["reasoning"], self._opened("reasoning")
        hidden = piece.metadata.get(name)
        if item is None or not self._goes_on(piece, item):
            if not (piece.text or isinstance(hidden, str) or "id" in piece.metadata):
                return
            item = yield from self._new_open("reasoning", piece)
        self._reasoning_part = piece.part
        if isinstance(hidden, str):
            item.about[key] = hidden
        if piece.text:
            part = self._part_of(piece)
            if part is None:
                remaining = self._left_of(item, "")
                # A summary, or the reasoning itself: servers that show it encrypt nothing, and mark it so.
                is_summary = remaining is not None and (key not in remaining or remaining[key])
                part = yield from self._add_part(
                    item, "summary_text" if is_summary else "reasoning_text", piece.part
                )
            yield from self._say(item, part, piece.text)

    def _goes_on(self, piece: Piece, item: OpenItem) -> bool:
        """Whether *piece* belongs to *item*, the reasoning that is open."""
        if piece.part == self._reasoning_part or item.id == piece.metadata.get("id"):
            return True
        return item.place is not None and not self._kept.next_is("reasoning")

    def _call(self, piece: Piece) -> Iterator[Event]:
        about = piece.call
        assert about is not None, "the caller has looked"
        item = self._calls.get(piece.part)
        if item is not None:
            yield from self._argue(item, piece.text)
            return
        if piece.part not in self._held:
            yield from self._settle(piece.part)  # the buffered call has ended, with or without an id
            self._held[piece.part] = HeldCall(about.index)
        buffered = self._held[piece.part]
        buffered.id = buffered.id or about.id
        buffered.name = buffered.name or about.name
        buffered.type = buffered.type if about.kind is None else "custom_tool_call"
        buffered.texts.append(piece.text)
        if buffered.name:
            self._named[piece.part] = buffered.name
            if buffered.id:
                yield from self._open_held(piece.part)

    def _open_held(self, part: int) -> Iterator[Event]:
        """Begin the call of *part*, if its name is known. A missing id is replaced by the one that the answer makes."""
        if part not in self._named:
            return
        name, buffered = self._named.pop(part), self._held.pop(part)
        yield from self._settle(part)
        item = yield from self._new_item(buffered.type, None, called=name)
        if item.role is ItemRole.ACTION:  # its action is written at once
            requested = action_item(item.type, "".join(buffered.texts))
            if requested is None:  # and is not an action
                item = OpenItem(item.index, item.id, "function_call")
            else:
                item.about |= requested
                self._complete.append(item)
        id = self._call_ids.take(buffered.id, buffered.index)
        if ITEMS[item.type].id != "id":
            item.about[ITEMS[item.type].id] = id
        if item.role is ItemRole.CALL:
            item.about["name"] = name
        self._calls[part] = self._unfinished[item.index] = item
        yield from self._added(item)
        for text in buffered.texts if item.role is ItemRole.CALL else ():
            yield from self._argue(item, text)

    def _argue(self, item: OpenItem, text: str) -> Iterator[Event]:
        if item.index in self._done or not text:
            return
        item.arguments.append(text)
        was_complete = item.syntax.is_complete
        item.syntax.add(text)
        if item.syntax.is_complete and not was_complete:
            self._complete.append(item)
        yield from self._argued(item, "delta", {"delta": text})

    def _argued(self, item: OpenItem, word: str, said: Event) -> Iterator[Event]:
        """Return the event for the arguments of *item*, if its type has one."""
        family = FAMILIES.get((EventRole.FIELD, item.type))
        if family is not None and item.role is ItemRole.CALL:
            yield self._event(f"{family}.{word}", item_id=item.id, output_index=item.index, **said)

    def _server_item(self, piece: Piece) -> Iterator[Event]:
        value = server_item(piece, lambda kind: self._id(kind, None))
        if value is not None and self._is_item(value):
            yield from self._settle(piece.part)
            # A stream cannot take back what it passed over, should it arrive later.
            yield from self._pass_over(str(value["type"]), id=value.get("id") if self.whole else None)
            yield from self._write_whole(value)

    def _write_whole(self, value: Event) -> Iterator[Event]:
        item = OpenItem(len(self._items), str(value.get("id") or ""), "server", whole=value)
        yield from self._added(item)
        yield from self._finish(item, "completed")

    def _is_item(self, value: Event) -> bool:
        """Whether *value* can be in the output: any value that was read from there can."""
        if self.is_own:
            return True
        needs = ITEMS[value["type"]].needs
        return bool(needs) and all(value.get(name) is not None for name in needs) and is_item(value, "raise")

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        if not choice:
            self._tokens += logprobs_of(tokens, with_bytes=True)

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        if not choice:
            word = self.word_for(reason, raw, FINISH_REASONS)
            is_missing = reason is FinishReason.TOOL_CALLS and not (self._calls or self._held)
            if not self.is_own and (is_missing or (reason is FinishReason.STOP and raw in PAUSES)):
                word = "incomplete"
            self._status, _, self._detail = word.partition(":")

    def fail(self, info: ErrorInfo) -> Iterable[Event]:
        """See :meth:`Writer.fail`. The error event comes with the end, with the token counts."""
        self.error = info
        self._status = "failed"
        return ()

    error_event = staticmethod(openai_error)

    def close(self) -> Iterator[Event]:
        """See :meth:`Writer.close`. A failed answer has all of its items, too."""
        yield from self._pending()
        yield from self._last()

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`."""
        yield from self._begin()
        for part in list(self._held):
            yield from self._open_held(part)
        remaining = [*self._unfinished.values(), *([self._open] if self._open is not None else [])]
        for item in sorted(remaining, key=lambda item: item.index):
            is_cut = self._status != "completed" and item.index == len(self._items) - 1
            yield from self._finish(item, "incomplete" if is_cut else "completed")
        self._unfinished.clear()
        self._open = None
        yield from self._pass_over(None)

    def _last(self) -> Iterator[Event]:
        """See :meth:`Writer._last`."""
        last = self._status if self._status in ("completed", "failed") else "incomplete"
        yield self._event(last, response=self.response())

    def top_of(self, event: Event) -> Event:
        """See :meth:`Writer.top_of`."""
        top: Event = event.get("response", event)
        return top

    @property
    def is_error_body(self) -> bool:
        """See :meth:`Writer.is_error_body`. A failed answer is a response, an HTTP error without one is not."""
        return self.error is not None and self.error.status is not None and not self._items

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        return self.response()

    def response(self, *, begins: bool = False) -> Event:
        """Return the response so far. If it *begins*, it has no end yet."""
        # Some servers send the model's name at the end.
        late = self._ask() if self.is_own and not self.whole else self.heading
        created, error, is_cut = (
            late.created.timestamp(),
            self.error,
            self._status == "incomplete" and self._detail,
        )
        payload: Event = {
            "id": self.heading.id,
            "object": "response",
            "created_at": int(created) if created.is_integer() else created,
            "status": "in_progress" if begins else self._status,
            "error": None if begins or error is None else response_error(error, is_own=self.is_own),
            "incomplete_details": {"reason": self._detail} if is_cut and not begins else None,
            "model": late.model,
            "output": [self._done[index] for index in sorted(self._done)],
        }
        if self.usage is not None:
            payload["usage"] = usage_of(self.usage, is_own=self.is_own)
        if self.is_own:
            stored = {name: value for name, value in self.left.items() if self._is_kept(name, value)}
            put_back(payload, stored if self.whole else copy_json(stored))
            return payload
        took = None if begins or self._status != "completed" else self.duration
        payload |= {
            "created_at": int(created),
            "completed_at": int(created + took.total_seconds()) if took else None,
            "usage": payload.get("usage"),
            **repeated(self.heading.request),
        }
        names = ("parallel_tool_calls", "previous_response_id", "service_tier")
        parallel, before, tier = map(self.heading.extensions.get, names)
        if isinstance(parallel, bool):
            payload["parallel_tool_calls"] = parallel
        if isinstance(before, str):
            payload["previous_response_id"] = before
        if tier in (*TIERS, "ultrafast"):
            payload["service_tier"] = tier
        return payload

    def _is_kept(self, name: str, value: Any) -> bool:
        """Whether the stored value under *name* goes back into the response."""
        if name == "usage" and self.usage is None and not self.whole:
            return False  # it begins
        return name not in _NEWS and not name.startswith("event_")

    # The beginning and end of items and parts.

    def _new_item(
        self, type: str, piece: Piece | None, called: str | None = None
    ) -> Generator[Event, None, OpenItem]:
        """Return the item that begins now, like the original one if there is one."""
        location = yield from self._pass_over(type, called)
        remaining = self._kept.entry(location)
        id = remaining.get("id")
        if type != "custom_tool_call":  # which a call may have become since
            type = str(remaining.get("type", type))
        known = id if isinstance(id, str) and id else self._id(type, piece)
        return OpenItem(len(self._items), known, type, location)

    def _pass_over(
        self, type: str | None, called: str | None = None, id: Any = None
    ) -> Generator[Event, None, int | None]:
        """Return its position among the original items. Those before it are written from storage."""
        location, passed = self._kept.pass_over(type, called, id)
        for number, value in passed.items():
            if self._is_item(value):
                self._passed[number] = len(self._items)
                yield from self._write_whole(value)
        if location in self._passed and self.whole:  # a stream cannot take it back
            del self._done[self._passed.pop(location)]
        return location

    def _left_of(self, item: OpenItem, status: str) -> Event | None:
        return self._kept.left_of(item, status, is_late=not self.whole)

    def _begin(self) -> Iterator[Event]:
        if not self._has_begun:
            self._has_begun = True
            for word in ("created", "in_progress"):
                yield self._event(word, response=self.response(begins=True))

    def _settle(self, part: int) -> Iterator[Event]:
        """End the items that must end when *part* begins. A call may still wait for the rest of its arguments."""
        for other in sorted(other for other in self._named if other < part):
            yield from self._open_held(other)
        if self._open is not None:
            item, self._open = self._open, None
            yield from self._finish(item, "completed")
        complete, self._complete = self._complete, []
        for item in complete:
            yield from self._finish(item, "completed")
            self._unfinished.pop(item.index, None)

    def _new_open(self, type: str, piece: Piece) -> Generator[Event, None, OpenItem]:
        """Return a new item of texts that *piece* begins, which may continue."""
        yield from self._settle(piece.part)
        item = self._open = yield from self._new_item(type, piece)
        yield from self._added(item)
        return item

    def _added(self, item: OpenItem) -> Iterator[Event]:
        self._items.append(item)
        value = item.value("in_progress", self._left_of(item, "in_progress"))
        begun = self._kept.entry(item.place).get("added")
        if isinstance(begun, dict):  # its type changes in the end
            value.update(begun)
        yield self._event("output_item.added", output_index=item.index, item=value)

    def _add_part(self, item: OpenItem, type: str, number: int) -> Generator[Event, None, OpenPart]:
        yield from self._end_part(item)
        location = PARTS[type].list
        part = OpenPart(type, sum(PARTS[other.type].list == location for other in item.parts), number)
        item.parts.append(part)
        yield self._event(
            f"{FAMILIES[EventRole.PART, location]}.added", **self._place(item, part), part=part.value()
        )
        return part

    def _say(self, item: OpenItem, part: OpenPart, text: str) -> Iterator[Event]:
        part.texts.append(text)
        more: Event = {}
        if part.type == "output_text":
            self._length += len(text)
            more["logprobs"], self._tokens = self._tokens, []
            part.logprobs += more["logprobs"]
        family = FAMILIES[EventRole.TEXT, part.type]
        yield self._event(f"{family}.delta", **self._place(item, part), delta=text, **more)

    def _end_part(self, item: OpenItem) -> Iterator[Event]:
        if item.parts:
            part = item.parts[-1]
            location, text, family = (
                self._place(item, part),
                part.text,
                FAMILIES[EventRole.PART, PARTS[part.type].list],
            )
            if part.type == "output_text":
                text["logprobs"] = list(part.logprobs)
            yield self._event(f"{FAMILIES[EventRole.TEXT, part.type]}.done", **location, **text)
            yield self._event(f"{family}.done", **location, part=part.value())

    def _finish(self, item: OpenItem, status: str) -> Iterator[Event]:
        yield from self._end_part(item)
        value = self._done[item.index] = item.value(status, self._left_of(item, status))
        if item.role is ItemRole.CALL:
            names = (ITEMS[item.type].fields[0], "name")
            yield from self._argued(item, "done", {name: value[name] for name in names})
        yield self._event("output_item.done", output_index=item.index, item=value)

    @staticmethod
    def _place(item: OpenItem, part: OpenPart) -> Event:
        return {"item_id": item.id, "output_index": item.index, LISTS[PARTS[part.type].list]: part.index}

    def _event(self, family: str, **said: Any) -> Event:
        self._sequence += 1
        return {"type": f"response.{family}", "sequence_number": self._sequence - 1, **said}

    def _id(self, kind: str, piece: Piece | None) -> str:
        """Return the item's own id if it is known in time, or one made from the response's: the same each time."""
        own = None if piece is None else piece.metadata.get("id")
        if isinstance(own, str) and own:
            return own
        token = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.heading.id}/{len(self._items)}").hex
        return make_id(IdKind(kind), token=lambda: token)  # type: ignore[call-arg]  # a word finds its member


def is_item(value: Event, unknown: OnUnknown) -> bool:
    """Whether the types of the API can hold *value* as an item of an output. *unknown* as for :func:`parse_item`."""
    from crosswalk.responses.reading import (
        parse_item,
    )  # only for actions of the server alone: it loads all types

    try:
        parse_item(value, unknown=unknown)
    except ResponsesError:
        return False
    return True
