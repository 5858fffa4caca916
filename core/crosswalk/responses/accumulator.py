"""The response so far, after each event of its stream.

A snapshot is the draft and a number: taking one costs the same however long the response is, and it stays what it
was. Only a response that somebody looks at is built, in time proportional to its own size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from crosswalk.responses import events as ev
from crosswalk.responses.content import (
    ReasoningText,
    ResponseOutputRefusal,
    ResponseOutputText,
    SummaryText,
    UnknownPart,
)
from crosswalk.responses.details import ErrorDetail, ResponseError
from crosswalk.responses.drafts import Draft, DraftItem
from crosswalk.responses.errors import SnapshotError
from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.function_calls import ResponseCustomToolCall, ResponseFunctionToolCall
from crosswalk.responses.item import Item
from crosswalk.responses.messages import ResponseOutputMessage, ResponseReasoningItem
from crosswalk.responses.records import Unknown
from crosswalk.responses.response import Response
from crosswalk.responses.search_calls import ResponseFileSearchToolCall, ResponseFunctionWebSearch
from crosswalk.responses.server_calls import ImageGenerationCall, McpCall, ResponseCodeInterpreterToolCall
from crosswalk.responses.shell_calls import (
    ResponseFunctionShellToolCall,
    ResponseFunctionShellToolCallOutput,
)
from crosswalk.responses.vocabulary import ResponseStatus

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

    def add(self, event: ResponseStreamEvent) -> ResponseSnapshot:
        """The response after *event*.

        Raises:
            SnapshotError: the response had ended, *event* came before, as its ``sequence_number`` says (a resumed
                stream repeats events), or it changes what its item does not have; the accumulator stays as it was.
        """
        last = self._last
        # OpenAI lets its failed response follow the error.
        failing = isinstance(event, ev.ResponseFailedEvent) and isinstance(
            last and last.event, ev.ResponseErrorEvent
        )
        if last is not None and last.is_final and not failing:
            raise _misfit(event, "comes after the end of the response")
        # Servers that do not count send none, or 0 with each.
        number, before = event.sequence_number, self._sequence_number
        if number and before is not None and number <= before:
            raise _misfit(event, f"comes after sequence_number {before}")
        draft = self._draft
        draft.version = 0 if last is None else last.number + 1
        fold = _FOLDS.get(type(event))
        if fold is not None:
            fold(draft, event)
        self._sequence_number = number or before
        self._last = ResponseSnapshot(self._draft, event, is_final=isinstance(event, _FINAL))
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

_Fold = Callable[[Draft, Any], None]


def _response(draft: Draft, event: ev.ResponseEvent) -> None:
    draft.put_response(event.response, final=isinstance(event, _FINAL))


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
    """The item that *event* is about, which must be of this *kind*, or unknown."""
    found = draft.find(event.output_index, getattr(event, "item_id", None))
    if found.kind is not None and not issubclass(found.kind, (kind, Unknown)):
        raise _misfit(event, f"is about a {found.kind.__name__}")
    if found.kind is None and kind is not Item:
        found.open_as(draft.version, kind)
    return found


def _part(draft: Draft, event: ev.ResponseContentPartAddedEvent | ev.ResponseContentPartDoneEvent) -> None:
    if isinstance(event.part, SummaryText):
        raise _misfit(event, "a summary is no content")
    item = _of(draft, event, _HOLDERS.get(type(event.part), Item))
    item.put_part(draft.version, "content", event.content_index or 0, event.part)


def _summary_part(
    draft: Draft, event: ev.ResponseReasoningSummaryPartAddedEvent | ev.ResponseReasoningSummaryPartDoneEvent
) -> None:
    if not isinstance(event.part, SummaryText | UnknownPart):
        raise _misfit(event, f"a summary has no {event.part.type}")
    item = _of(draft, event, ResponseReasoningItem)
    item.put_part(draft.version, "summary", event.summary_index or 0, event.part)


def _text(draft: Draft, event: ev.ResponseTextDeltaEvent) -> None:
    item, index = _of(draft, event, ResponseOutputMessage), event.content_index or 0
    item.write_part(draft.version, "content", index, ResponseOutputText, event.delta, whole=False)
    if event.logprobs:
        item.add_logprobs(draft.version, index, event.logprobs)


def _writes(kind: Any, field: str) -> _Fold:
    into: Any = "summary" if kind is SummaryText else "content"

    def fold(draft: Draft, event: Any) -> None:
        index = event.summary_index if into == "summary" else event.content_index
        item = _of(draft, event, _HOLDERS[kind])
        item.write_part(draft.version, into, index or 0, kind, getattr(event, field), whole=field != "delta")

    return fold


def _annotation(draft: Draft, event: ev.ResponseOutputTextAnnotationAddedEvent) -> None:
    if event.annotation is not None:
        _of(draft, event, ResponseOutputMessage).annotate(
            draft.version, event.content_index or 0, event.annotation
        )


def _adds(kind: type[Item], field: str) -> _Fold:
    def fold(draft: Draft, event: Any) -> None:
        _of(draft, event, kind).log("field", field).add(draft.version, event.delta)

    return fold


def _puts(kind: type[Item], field: str) -> _Fold:
    def fold(draft: Draft, event: Any) -> None:
        _of(draft, event, kind).log("field", field).put(draft.version, getattr(event, field))

    return fold


def _status(kind: type[Item], word: str) -> _Fold:
    def fold(draft: Draft, event: Any) -> None:
        _of(draft, event, kind).log("status").put(draft.version, word)

    return fold


def _command(draft: Draft, event: Any) -> None:
    log = _of(draft, event, ResponseFunctionShellToolCall).log("command", event.command_index or 0)
    if isinstance(event, ev.ResponseShellCallCommandDeltaEvent):
        log.add(draft.version, event.delta)
    else:
        log.put(draft.version, event.command)


def _shell_delta(draft: Draft, event: ev.ResponseShellCallOutputContentDeltaEvent) -> None:
    item = _of(draft, event, ResponseFunctionShellToolCallOutput)
    for name in ("stdout", "stderr"):
        if piece := getattr(event.delta, name):
            item.log(name, event.command_index or 0).add(draft.version, piece)


def _shell_done(draft: Draft, event: ev.ResponseShellCallOutputContentDoneEvent) -> None:
    _of(draft, event, ResponseFunctionShellToolCallOutput).log("output", event.command_index or 0).put(
        draft.version, event.output
    )


_HOLDERS: Final[dict[type, type[Item]]] = {
    ResponseOutputText: ResponseOutputMessage,
    ResponseOutputRefusal: ResponseOutputMessage,
    ReasoningText: ResponseReasoningItem,
    SummaryText: ResponseReasoningItem,
}
"""Which item holds which part."""
_FINAL: Final = (
    ev.ResponseCompletedEvent,
    ev.ResponseIncompleteEvent,
    ev.ResponseFailedEvent,
    ev.ResponseErrorEvent,
)

_FOLDS: Final[dict[type, _Fold]] = {
    ev.ResponseCreatedEvent: _response,
    ev.ResponseQueuedEvent: _response,
    ev.ResponseInProgressEvent: _response,
    ev.ResponseCompletedEvent: _response,
    ev.ResponseIncompleteEvent: _response,
    ev.ResponseFailedEvent: _response,
    ev.ResponseErrorEvent: _error,
    ev.ResponseOutputItemAddedEvent: _item,
    ev.ResponseOutputItemDoneEvent: _item,
    ev.ResponseContentPartAddedEvent: _part,
    ev.ResponseContentPartDoneEvent: _part,
    ev.ResponseTextDeltaEvent: _text,
    ev.ResponseTextDoneEvent: _writes(ResponseOutputText, "text"),
    ev.ResponseOutputTextAnnotationAddedEvent: _annotation,
    ev.ResponseRefusalDeltaEvent: _writes(ResponseOutputRefusal, "delta"),
    ev.ResponseRefusalDoneEvent: _writes(ResponseOutputRefusal, "refusal"),
    ev.ResponseReasoningTextDeltaEvent: _writes(ReasoningText, "delta"),
    ev.ResponseReasoningTextDoneEvent: _writes(ReasoningText, "text"),
    ev.ResponseReasoningSummaryPartAddedEvent: _summary_part,
    ev.ResponseReasoningSummaryPartDoneEvent: _summary_part,
    ev.ResponseReasoningSummaryTextDeltaEvent: _writes(SummaryText, "delta"),
    ev.ResponseReasoningSummaryTextDoneEvent: _writes(SummaryText, "text"),
    ev.ResponseFunctionCallArgumentsDeltaEvent: _adds(ResponseFunctionToolCall, "arguments"),
    ev.ResponseFunctionCallArgumentsDoneEvent: _puts(ResponseFunctionToolCall, "arguments"),
    ev.ResponseCustomToolCallInputDeltaEvent: _adds(ResponseCustomToolCall, "input"),
    ev.ResponseCustomToolCallInputDoneEvent: _puts(ResponseCustomToolCall, "input"),
    ev.ResponseMcpCallArgumentsDeltaEvent: _adds(McpCall, "arguments"),
    ev.ResponseMcpCallArgumentsDoneEvent: _puts(McpCall, "arguments"),
    ev.ResponseMcpCallInProgressEvent: _status(McpCall, "in_progress"),
    ev.ResponseMcpCallCompletedEvent: _status(McpCall, "completed"),
    ev.ResponseMcpCallFailedEvent: _status(McpCall, "failed"),
    ev.ResponseWebSearchCallInProgressEvent: _status(ResponseFunctionWebSearch, "in_progress"),
    ev.ResponseWebSearchCallSearchingEvent: _status(ResponseFunctionWebSearch, "searching"),
    ev.ResponseWebSearchCallCompletedEvent: _status(ResponseFunctionWebSearch, "completed"),
    ev.ResponseFileSearchCallInProgressEvent: _status(ResponseFileSearchToolCall, "in_progress"),
    ev.ResponseFileSearchCallSearchingEvent: _status(ResponseFileSearchToolCall, "searching"),
    ev.ResponseFileSearchCallCompletedEvent: _status(ResponseFileSearchToolCall, "completed"),
    ev.ResponseCodeInterpreterCallInProgressEvent: _status(ResponseCodeInterpreterToolCall, "in_progress"),
    ev.ResponseCodeInterpreterCallInterpretingEvent: _status(ResponseCodeInterpreterToolCall, "interpreting"),
    ev.ResponseCodeInterpreterCallCompletedEvent: _status(ResponseCodeInterpreterToolCall, "completed"),
    ev.ResponseCodeInterpreterCallCodeDeltaEvent: _adds(ResponseCodeInterpreterToolCall, "code"),
    ev.ResponseCodeInterpreterCallCodeDoneEvent: _puts(ResponseCodeInterpreterToolCall, "code"),
    ev.ResponseImageGenCallInProgressEvent: _status(ImageGenerationCall, "in_progress"),
    ev.ResponseImageGenCallGeneratingEvent: _status(ImageGenerationCall, "generating"),
    ev.ResponseImageGenCallCompletedEvent: _status(ImageGenerationCall, "completed"),
    ev.ResponseShellCallCommandAddedEvent: _command,
    ev.ResponseShellCallCommandDeltaEvent: _command,
    ev.ResponseShellCallCommandDoneEvent: _command,
    ev.ResponseShellCallOutputContentDeltaEvent: _shell_delta,
    ev.ResponseShellCallOutputContentDoneEvent: _shell_done,
}
"""What does not stand here changes nothing in the response."""
