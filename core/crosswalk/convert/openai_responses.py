"""Responses: the response object of ``/v1/responses``, and its events (provider document "OpenAI Responses").

A text, with its citations, is a part of a message; a run of texts and refusals is one message. Reasoning is an item of its
own, and so is each call.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final

from crosswalk.convert.arguments import CallIDs
from crosswalk.convert.failure import openai_error, response_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.convert.response_items import HeldCall, OpenItem, OpenPart
from crosswalk.convert.response_values import annotation_of, logprob_of, server_item, usage_of
from crosswalk.convert.writer import Heading, Writer, named_frame
from crosswalk.errors import ErrorInfo
from crosswalk.responses.content import (
    Logprob,
    ReasoningText,
    ResponseOutputRefusal,
)
from crosswalk.responses.details import IncompleteDetails
from crosswalk.responses.events import (
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFailedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseIncompleteEvent,
    ResponseInProgressEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputTextAnnotationAddedEvent,
    ResponseReasoningTextDeltaEvent,
    ResponseReasoningTextDoneEvent,
    ResponseRefusalDeltaEvent,
    ResponseRefusalDoneEvent,
    ResponseStreamEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from crosswalk.responses.function_calls import ResponseFunctionToolCall
from crosswalk.responses.ids import IdKind, make_id
from crosswalk.responses.items import ResponseOutputItem
from crosswalk.responses.messages import ResponseReasoningItem
from crosswalk.responses.reading import to_dict
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import IncompleteReason, ItemStatus, ResponseStatus
from crosswalk.types.finish import FinishReason
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.segment import SegmentType

__all__ = ["ResponsesWriter"]

_STATUS: Final = {
    FinishReason.STOP: ResponseStatus.COMPLETED,
    FinishReason.TOOL_CALLS: ResponseStatus.COMPLETED,
    FinishReason.LENGTH: ResponseStatus.INCOMPLETE,
    FinishReason.CONTENT_FILTER: ResponseStatus.INCOMPLETE,
    FinishReason.CANCELLED: ResponseStatus.CANCELLED,
    FinishReason.ERROR: ResponseStatus.FAILED,
}
_DETAILS: Final = {
    FinishReason.LENGTH: IncompleteReason.MAX_OUTPUT_TOKENS,
    FinishReason.CONTENT_FILTER: IncompleteReason.CONTENT_FILTER,
}
_TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")


class ResponsesWriter(Writer[ResponseStreamEvent]):
    """Writes Responses; of several answers the first."""

    form = WireForm.OPENAI_RESPONSES

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._items: list[OpenItem] = []
        self._open: OpenItem | None = None  # the message or the reasoning that may go on
        self._reasoning_part = -1
        self._call_ids = CallIDs()
        self._calls: dict[int, OpenItem] = {}  # the calls that have begun, by part
        self._unfinished: dict[int, OpenItem] = {}  # those of them whose arguments may go on, by number
        self._held: dict[int, HeldCall] = {}  # the calls that have not, by part
        self._named: dict[int, str] = {}  # those of them whose name is known
        self._complete: list[OpenItem] = []  # calls whose arguments have come to their end
        self._done: dict[int, ResponseOutputItem] = {}
        self._tokens: list[Logprob] = []
        self._length = 0
        self._sequence = 0
        self._status = ResponseStatus.IN_PROGRESS
        self._detail: IncompleteReason | None = None
        self._has_begun = False

    # What comes in.

    def piece(self, piece: Piece) -> Iterator[ResponseStreamEvent]:
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

    def _message(self, piece: Piece) -> Iterator[ResponseStreamEvent]:
        annotation = None
        if piece.type is SegmentType.CITATION:
            annotation = annotation_of(piece, self._length)
            if annotation is None:
                return
        phase = piece.metadata.get("phase")
        part = self._part_of(piece)
        if part is None and not (piece.text or annotation or isinstance(phase, str)):
            return
        if part is None:
            is_new = self._open is None or self._open.kind != "message" or self._open.phase is not None
            if is_new:
                yield from self._settle(piece.part)
                yield from self._add(OpenItem(len(self._items), self._id("message", piece), "message"))
            kind = SegmentType.REFUSAL if piece.type is SegmentType.REFUSAL else SegmentType.TEXT
            part = yield from self._add_part(kind, piece.part)
        item = self._the_open()
        if piece.text and annotation is None:
            yield from self._say(item, part, piece.text)
        if annotation is not None:
            part.annotations.append(annotation)
            yield ResponseOutputTextAnnotationAddedEvent(
                **self._place(item, part),
                annotation=annotation,
                annotation_index=len(part.annotations) - 1,
            )
        if isinstance(phase, str) and phase:
            item.phase = phase

    def _part_of(self, piece: Piece) -> OpenPart | None:
        """The part that *piece* goes on with; ``None`` where it begins one."""
        item = self._open
        if item is None or not item.parts:
            return None
        last = item.parts[-1]
        if piece.type is SegmentType.CITATION:
            return last if item.kind == "message" and last.type is SegmentType.TEXT else None
        return last if last.part == piece.part and last.type is piece.type else None

    def _reasoning(self, piece: Piece) -> Iterator[ResponseStreamEvent]:
        encrypted = piece.metadata.get("encrypted")
        known = self._open is not None and self._open.kind == "reasoning" and self._is_of(piece)
        if not known:
            if not (piece.text or isinstance(encrypted, str) or "id" in piece.metadata):
                return
            yield from self._settle(piece.part)
            item = OpenItem(len(self._items), self._id("reasoning", piece), "reasoning")
            item.encrypted = encrypted if isinstance(encrypted, str) else None
            self._reasoning_part = piece.part
            yield from self._add(item)
        item = self._the_open()
        if isinstance(encrypted, str):
            item.encrypted = encrypted
        if piece.text:
            part = item.parts[-1] if item.parts else None
            if part is None:
                part = yield from self._add_part(SegmentType.REASONING, piece.part)
            yield from self._say(item, part, piece.text)

    def _is_of(self, piece: Piece) -> bool:
        return self._reasoning_part == piece.part

    def _call(self, piece: Piece) -> Iterator[ResponseStreamEvent]:
        about = piece.call
        assert about is not None, "the caller has looked"
        item = self._calls.get(piece.part)
        if item is not None:
            yield from self._argue(item, piece.text)
            return
        if piece.part not in self._held:
            yield from self._settle(piece.part)  # what is held has ended, with or without an id
            self._held[piece.part] = HeldCall(about.index)
        held = self._held[piece.part]
        held.id = held.id or about.id
        held.name = held.name or about.name
        held.texts.append(piece.text)
        if held.name:
            self._named[piece.part] = held.name
        if held.id and held.name:
            yield from self._open_held(piece.part)

    def _open_held(self, part: int) -> Iterator[ResponseStreamEvent]:
        """Begin the call of *part*, if its name is known; an id that has not come yet is the one that the answer gets."""
        if part not in self._named:
            return
        name, held = self._named.pop(part), self._held.pop(part)
        yield from self._settle(part)
        item = OpenItem(len(self._items), self._id("function_call", None), "function_call")
        item.call_id, item.name = self._call_ids.take(held.id, held.index), name
        self._calls[part] = self._unfinished[item.index] = item
        yield from self._added(item)
        for text in held.texts:
            yield from self._argue(item, text)

    def _argue(self, item: OpenItem, text: str) -> Iterator[ResponseStreamEvent]:
        if item.index in self._done or not text:
            return
        item.arguments.append(text)
        was_complete = item.syntax.is_complete
        item.syntax.add(text)
        if item.syntax.is_complete and not was_complete:
            self._complete.append(item)
        yield ResponseFunctionCallArgumentsDeltaEvent(
            sequence_number=self._next(), item_id=item.id, output_index=item.index, delta=text
        )

    def _server_item(self, piece: Piece) -> Iterator[ResponseStreamEvent]:
        value = server_item(piece, lambda kind: self._id(kind, None))
        if value is None:
            return
        yield from self._settle(piece.part)
        item = OpenItem(len(self._items), value.id or "", "server")
        item.whole = value
        yield from self._added(item)
        yield from self._finish(item, ItemStatus.COMPLETED)

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> Iterable[ResponseStreamEvent]:
        """See :meth:`Writer.tokens`."""
        if not choice:
            self._tokens += [
                logprob_of(token, token.logprob) for token in tokens if token.logprob is not None
            ]
        return ()

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> Iterable[ResponseStreamEvent]:
        """See :meth:`Writer.end`."""
        if choice:
            return ()
        self._status = _STATUS[reason]
        self._detail = _DETAILS.get(reason)
        if reason is FinishReason.LENGTH and raw == "incomplete:max_messages":
            self._detail = IncompleteReason.MAX_MESSAGES
        return ()

    def fail(self, info: ErrorInfo) -> Iterable[ResponseStreamEvent]:
        """See :meth:`Writer.fail`: the event that says so comes with the end, with what was counted."""
        self.error = info
        self._status, self._detail = ResponseStatus.FAILED, None
        return ()

    def close(self) -> Iterator[ResponseStreamEvent]:
        """See :meth:`Writer.close`."""
        yield from self._begin()
        for part in list(self._held):
            yield from self._open_held(part)
        left = [*self._unfinished.values(), *([self._open] if self._open is not None else [])]
        cut = self._status is not ResponseStatus.COMPLETED
        for item in sorted(left, key=lambda item: item.index):
            is_last = cut and item.index == len(self._items) - 1
            yield from self._finish(item, ItemStatus.INCOMPLETE if is_last else ItemStatus.COMPLETED)
        self._unfinished.clear()
        self._open = None
        event: Any = ResponseIncompleteEvent
        if self._status is ResponseStatus.COMPLETED:
            event = ResponseCompletedEvent
        elif self._status is ResponseStatus.FAILED:
            event = ResponseFailedEvent
        yield event(sequence_number=self._next(), response=self.response())

    def frame(self, event: ResponseStreamEvent) -> bytes:
        """See :meth:`Writer.frame`."""
        return named_frame(to_dict(event))

    @property
    def is_error_body(self) -> bool:
        """See :meth:`Writer.is_error_body`: an answer that failed is a response; an HTTP error without one is none."""
        return self.error is not None and self.error.status is not None and not self._items

    def body(self) -> dict[str, Any]:
        """See :meth:`Writer.body`."""
        if self.error is not None and self.is_error_body:
            return openai_error(self.error)
        return to_dict(self.response())

    def response(self) -> Response:
        """The response, as far as it goes."""
        said = self.heading.extensions
        parallel, before, tier = (
            said.get(name) for name in ("parallel_tool_calls", "previous_response_id", "service_tier")
        )
        return Response(
            id=self.heading.id,
            created_at=self.heading.created.timestamp(),
            status=self._status,
            model=self.heading.model,
            output=tuple(self._done[index] for index in sorted(self._done)),
            usage=None if self.usage is None else usage_of(self.usage),
            error=None if self.error is None else response_error(self.error),
            incomplete_details=None if self._detail is None else IncompleteDetails(reason=self._detail),
            parallel_tool_calls=parallel if isinstance(parallel, bool) else True,
            previous_response_id=before if isinstance(before, str) else None,
            service_tier=tier if tier in _TIERS else None,
            tool_choice="auto",
            presence=frozenset({"error", "incomplete_details"}),
        )

    # How items and parts begin and end.

    def _begin(self) -> Iterator[ResponseStreamEvent]:
        if self._has_begun:
            return
        self._has_begun = True
        status, error = self._status, self.error
        self._status, self.error = ResponseStatus.IN_PROGRESS, None
        yield ResponseCreatedEvent(sequence_number=self._next(), response=self.response())
        yield ResponseInProgressEvent(sequence_number=self._next(), response=self.response())
        self._status, self.error = status, error

    def _settle(self, part: int) -> Iterator[ResponseStreamEvent]:
        """End what must have ended when *part* begins; a call may still wait for the rest of its arguments."""
        for other in sorted(other for other in self._named if other < part):
            yield from self._open_held(other)
        if self._open is not None:
            yield from self._finish(self._open, ItemStatus.COMPLETED)
            self._open = None
        for item in self._complete:
            yield from self._finish(item, ItemStatus.COMPLETED)
            self._unfinished.pop(item.index, None)
        self._complete.clear()

    def _add(self, item: OpenItem) -> Iterator[ResponseStreamEvent]:
        self._open = item
        yield from self._added(item)

    def _added(self, item: OpenItem) -> Iterator[ResponseStreamEvent]:
        self._items.append(item)
        value = item.value(ItemStatus.IN_PROGRESS)
        if isinstance(value, ResponseReasoningItem):
            value = value.replace(encrypted_content=None)
        yield ResponseOutputItemAddedEvent(sequence_number=self._next(), output_index=item.index, item=value)

    def _add_part(self, type: SegmentType, number: int) -> Generator[ResponseStreamEvent, None, OpenPart]:
        item = self._the_open()
        yield from self._end_part(item)
        part = OpenPart(type, len(item.parts), number)
        item.parts.append(part)
        yield ResponseContentPartAddedEvent(**self._place(item, part), part=part.value())
        return part

    def _say(self, item: OpenItem, part: OpenPart, text: str) -> Iterator[ResponseStreamEvent]:
        part.texts.append(text)
        place = self._place(item, part)
        if part.type is SegmentType.REFUSAL:
            yield ResponseRefusalDeltaEvent(**place, delta=text)
        elif part.type is SegmentType.REASONING:
            yield ResponseReasoningTextDeltaEvent(**place, delta=text)
        else:
            self._length += len(text)
            tokens, self._tokens = tuple(self._tokens), []
            part.logprobs += tokens
            yield ResponseTextDeltaEvent(**place, delta=text, logprobs=tokens)

    def _end_part(self, item: OpenItem) -> Iterator[ResponseStreamEvent]:
        if not item.parts:
            return
        part = item.parts[-1]
        value = part.value()
        if isinstance(value, ResponseOutputRefusal):
            yield ResponseRefusalDoneEvent(**self._place(item, part), refusal=value.refusal)
        elif isinstance(value, ReasoningText):
            yield ResponseReasoningTextDoneEvent(**self._place(item, part), text=value.text)
        else:
            yield ResponseTextDoneEvent(
                **self._place(item, part), text=value.text, logprobs=value.logprobs or ()
            )
        yield ResponseContentPartDoneEvent(**self._place(item, part), part=value)

    def _finish(self, item: OpenItem, status: ItemStatus) -> Iterator[ResponseStreamEvent]:
        yield from self._end_part(item)
        value = self._done[item.index] = item.value(status)
        if isinstance(value, ResponseFunctionToolCall):
            yield ResponseFunctionCallArgumentsDoneEvent(
                sequence_number=self._next(),
                item_id=item.id,
                output_index=item.index,
                arguments=value.arguments,
                name=value.name,
            )
        yield ResponseOutputItemDoneEvent(sequence_number=self._next(), output_index=item.index, item=value)

    def _the_open(self) -> OpenItem:
        assert self._open is not None, "an item has been opened"
        return self._open

    def _place(self, item: OpenItem, part: OpenPart) -> dict[str, Any]:
        return {
            "sequence_number": self._next(),
            "item_id": item.id,
            "output_index": item.index,
            "content_index": part.index,
        }

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _id(self, kind: str, piece: Piece | None) -> str:
        """The item's own id, where it is known in time, or one made from the response's: the same each time."""
        own = None if piece is None else piece.metadata.get("id")
        if isinstance(own, str) and own:
            return own
        token = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.heading.id}/{len(self._items)}").hex
        return make_id(IdKind(kind), token=lambda: token)  # type: ignore[call-arg]  # a word finds its member
