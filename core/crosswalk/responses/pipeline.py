"""From bytes to a display: the events of a stream through processors."""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from crosswalk.errors import FramingError, InvalidJSONError
from crosswalk.responses.accumulator import ResponseAccumulator, ResponseSnapshot
from crosswalk.responses.answer_events import Event
from crosswalk.responses.display import DisplayStrategy, Update
from crosswalk.responses.events import ResponseStreamEvent
from crosswalk.responses.processors import (
    EventHandler,
    EventKey,
    EventRouter,
    PipelineError,
    ProcessorRegistry,
    ProgressWatch,
    StageFailure,
    StageKind,
    StreamStage,
    check_events,
    default_processors,
)
from crosswalk.responses.reading import OnUnknown, load_json, parse_event
from crosswalk.responses.response import Response
from crosswalk.responses.toolkit import StatusProgressionError, ToolCallRegistry, tool_registry
from crosswalk.responses.vocabulary import NotAStreamError, ResponsesValueError, SnapshotError
from crosswalk.text import clean_message
from crosswalk.wire.framing import Frame, Limits, SSEDecoder, is_done

# ---------------------------------------------------------------------------------- source
# Parses the bytes of a stream into events. It does no I/O: you pass the bytes.


def read_events(
    chunks: Iterable[bytes], *, unknown: OnUnknown = "raise", limits: Limits | None = None
) -> Iterator[ResponseStreamEvent]:
    """Yield the events of a stream of server-sent events, each as soon as it is complete. *chunks* may end anywhere.

    Args:
        chunks: the bytes.
        unknown: how to treat an unknown type or word, see :func:`crosswalk.responses.parse`.
        limits: the limits of reading, or ``None`` for the usual ones.

    Raises:
        UnknownTypeError: an event, or something in it, has an unregistered type.
        ResponsesParseError: a frame is not an event.
        NotAStreamError: an error body, a whole response, HTML … came instead.
        SnapshotError: the stream ends inside an event.
        FramingError: something is not JSON, or passes a limit.
    """
    reader = _Reader(unknown, limits or Limits())
    for chunk in chunks:
        yield from reader.take(chunk)
    yield from reader.end()


async def aread_events(
    chunks: AsyncIterable[bytes], *, unknown: OnUnknown = "raise", limits: Limits | None = None
) -> AsyncIterator[ResponseStreamEvent]:
    """The same for an asynchronous stream, see :func:`read_events`."""
    reader = _Reader(unknown, limits or Limits())
    async for chunk in chunks:
        for event in reader.take(chunk):
            yield event
    for event in reader.end():
        yield event


class _Reader:
    """Parses bytes into events. It buffers the bytes until the first event, to describe other content in errors."""

    def __init__(self, unknown: OnUnknown, limits: Limits) -> None:
        self._unknown = unknown
        self._decoder = SSEDecoder(limits)
        self._head = bytearray()
        self._head_size = limits.line_bytes
        self._has_begun = False

    def take(self, chunk: bytes) -> Iterator[ResponseStreamEvent]:
        frames = self._decoder.decode(chunk)
        if frames:
            self._has_begun = True
            self._head.clear()
        elif not self._has_begun:
            self._head += chunk[: self._head_size - len(self._head)]
        return self._events(frames)

    def end(self) -> Iterator[ResponseStreamEvent]:
        frames = [frame for frame in self._decoder.flush() if not b"[DONE]".startswith(frame[0])]
        if not self._has_begun and not frames:
            _check_head(bytes(self._head))
        try:
            yield from self._events(frames)
            return
        except InvalidJSONError:
            pass
        # Raised out here, the error does not carry along its context.
        raise SnapshotError(
            "the stream ended inside an event, before the response did",
            event_type="stream",
            sequence_number=None,
        )

    def _events(self, frames: Iterable[Frame]) -> Iterator[ResponseStreamEvent]:
        # OpenAI sends no [DONE] here, but compatible servers do. An empty frame keeps the connection alive.
        return (parse_event(data, unknown=self._unknown) for data, _ in frames if data and not is_done(data))


_SSE_FIELD_NAMES: Final = (b"data", b"event", b"id", b"retry")


def _check_head(head: bytes) -> None:
    """Refuse content that is not a stream. An empty stream, comments and a truncated first event pass.

    Raises:
        NotAStreamError: the content is not a stream.
    """
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    name, colon, _ = head.partition(b"\n")[0].rstrip().partition(b":")
    if any(name == field if colon else field.startswith(name) for field in (b"", *_SSE_FIELD_NAMES)):
        return
    if head.startswith((b"{", b"[")):
        raise _json_problem(head)
    excerpt = clean_message(head[:400].decode(errors="replace"), 80)
    raise NotAStreamError("html" if head.startswith(b"<") else "text", excerpt)


def _json_problem(body: bytes) -> NotAStreamError:
    try:
        decoded_body = load_json(body)
    except FramingError:
        decoded_body = None
    if not isinstance(decoded_body, dict):
        return NotAStreamError("json")
    error = decoded_body.get("error")
    if error is None and (decoded_body.get("object") == "response" or "output" in decoded_body):
        return NotAStreamError("response")
    message = _message(decoded_body, error)
    return NotAStreamError("json" if error is None and message is None else "error", message)


def _message(decoded_body: dict[str, Any], error: Any) -> str | None:
    nested_message = error.get("message") if isinstance(error, dict) else error
    for message in (nested_message, decoded_body.get("message"), decoded_body.get("detail")):
        if isinstance(message, str):
            return clean_message(message, 200)
    return None


# --------------------------------------------------------------------------------- handler
# Events of one stream through the pipeline.
#
# The work is written once, as generators that yield awaitables. With asyncio, the driver awaits them and sends the
# result back. Without asyncio, an awaitable is an error.


T = TypeVar("T")
Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
OnFailure: TypeAlias = Literal["at_once", "at_end"]
"""When a failure of a handler, processor or display is raised. ``at_once`` ends the stream after the event of the
failure. ``at_end`` goes on without the failed part and raises at the end of the stream. An impossible step of a tool
call's status ends the stream before its event is added, or is raised at the end like the others."""


class StreamHandler:
    """Passes the events of one stream to handlers, processors and displays.

    Handlers and processors get the response so far after each event, in order. All displays get the updates of the
    processors. If one of them fails, the others still get the event.

    Args:
        displays: the displays of the stream.
        processors: the sources of updates, or ``None`` for those of :func:`default_processors`.
        on_failure: when failures are raised.
        tools: the tools whose status progressions are enforced.

    Raises:
        ResponsesValueError: unknown *on_failure*.
    """

    def __init__(
        self,
        *displays: DisplayStrategy,
        processors: ProcessorRegistry | None = None,
        on_failure: OnFailure = "at_once",
        tools: ToolCallRegistry = tool_registry,
    ) -> None:
        if on_failure not in get_args(OnFailure):
            raise ResponsesValueError("expected 'at_once' or 'at_end'", path="StreamHandler.on_failure")
        self._displays = list(displays)
        self._active_displays = list(displays)
        self._router = EventRouter((processors or default_processors()).stages())
        self._on_failure = on_failure
        self._watch = ProgressWatch(tools)
        self._accumulator = ResponseAccumulator()
        self._failures: list[StageFailure] = []

    def subscribe(self, handler: EventHandler, *events: EventKey, name: str | None = None) -> None:
        """Call *handler* with the snapshot after each of *events*, or after every event if *events* is empty.

        Raises:
            ResponsesValueError: *handler* cannot be called, or *events* contains something other than an event class
                or a ``type``. An unregistered ``type`` is allowed, for events read with ``unknown="keep"``.
        """
        if not callable(handler):
            raise ResponsesValueError(f"cannot be called: {type(handler).__name__}", path="handler")
        check_events(events)
        handler_name = name or str(getattr(handler, "__qualname__", type(handler).__qualname__))
        self._router.add(StreamStage(kind="handler", name=handler_name, call=handler, events=events))

    @property
    def snapshot(self) -> ResponseSnapshot | None:
        """The response after the last event, or ``None`` before the first."""
        return self._accumulator.snapshot

    @property
    def failures(self) -> tuple[StageFailure, ...]:
        """The failures so far."""
        return tuple(self._failures)

    def handle(self, events: Iterable[ResponseStreamEvent]) -> Iterator[ResponseSnapshot]:
        """Pass *events* through the pipeline, and yield the snapshot after each.

        Displays are closed when the iterator is exhausted, fails or is closed.

        Raises:
            PipelineError: something failed, see its ``failures``.
            StatusProgressionError: a tool call takes an impossible step, unless failures are raised at the end.
            SnapshotError: an event does not fit the response, or the stream ends before the response does.
            ResponsesValueError: *events* contains something other than events.
        """
        try:
            _drive(self._open())
            for event in events:
                yield _drive(self._step(event))
            self._accumulator.final()
        except BaseException as error:
            _drive(self._close(error))
            raise
        _drive(self._close(None))

    async def ahandle(self, events: AsyncIterable[ResponseStreamEvent]) -> AsyncIterator[ResponseSnapshot]:
        """Like :meth:`handle` for an asynchronous stream. Handlers, processors and displays may be asynchronous."""
        try:
            await _adrive(self._open())
            async for event in events:
                yield await _adrive(self._step(event))
            self._accumulator.final()
        except BaseException as error:
            await _adrive(self._close(error))
            raise
        await _adrive(self._close(None))

    def run(self, events: Iterable[ResponseStreamEvent]) -> Response:
        """Pass *events* through the pipeline, and return the whole response. Raises the errors of :meth:`handle`."""
        for _ in self.handle(events):
            pass
        return self._accumulator.final()

    async def arun(self, events: AsyncIterable[ResponseStreamEvent]) -> Response:
        """The same for an asynchronous stream, see :meth:`ahandle`."""
        async for _ in self.ahandle(events):
            pass
        return self._accumulator.final()

    def _open(self) -> Steps[None]:
        for display in self._displays:
            yield from self._call_display(display, display.open)
        self._report()

    def _step(self, event: ResponseStreamEvent) -> Steps[ResponseSnapshot]:
        if not isinstance(event, Event):
            type_name = type(event).__name__
            raise ResponsesValueError(
                f"expected an event, as parse_event gives, got {type_name}", path="events"
            )
        self._check_status(event)
        snapshot = self._accumulator.add(event)
        for stage in self._router.route(event):
            updates = yield from self._call_stage(stage, snapshot)
            for update in updates:
                for display in tuple(self._active_displays):
                    yield from self._call_display(display, display.show, update)
        self._report()
        return snapshot

    def _check_status(self, event: ResponseStreamEvent) -> None:
        try:
            self._watch.check(event)
        except StatusProgressionError as error:
            if self._on_failure == "at_once":
                raise
            self._fail("status", error.tool, error, event)

    def _close(self, error: BaseException | None) -> Steps[None]:
        reported_count = len(self._failures)
        for display in self._displays:
            yield from self._call_display(display, display.close)
        if error is None:
            if self._failures:
                raise PipelineError(self._failures, snapshot=self.snapshot)
        elif isinstance(error, PipelineError) or self._on_failure == "at_once":
            _note(error, self._failures[reported_count:])
        else:
            _note(error, self._failures)

    def _report(self) -> None:
        if self._failures and self._on_failure == "at_once":
            raise PipelineError(self._failures, snapshot=self.snapshot)

    def _call_stage(self, stage: StreamStage, snapshot: ResponseSnapshot) -> Steps[tuple[Update, ...]]:
        try:
            stage_result = stage.call(snapshot)
            if inspect.isawaitable(stage_result):
                stage_result = yield stage_result
            if stage.kind == "handler":
                return ()
            updates = tuple(stage_result or ())
            for update in updates:
                if not isinstance(update, Update):
                    raise TypeError(f"a processor gives updates, not {type(update).__name__}")
        except Exception as error:
            self._router.remove(stage)
            self._fail(stage.kind, stage.name, error, snapshot.event)
            return ()
        return updates

    def _call_display(
        self, display: DisplayStrategy, call: Callable[..., Awaitable[None] | None], *updates: Update
    ) -> Steps[None]:
        try:
            call_result = call(*updates)
            if inspect.isawaitable(call_result):
                yield call_result
        except Exception as error:
            self._active_displays = [other for other in self._active_displays if other is not display]
            event = self.snapshot.event if self.snapshot is not None and updates else None
            self._fail("display", type(display).__name__, error, event)

    def _fail(self, kind: StageKind, name: str, error: Exception, event: ResponseStreamEvent | None) -> None:
        failure = StageFailure(
            stage=kind,
            name=name,
            event_type=None if event is None else event.type,
            sequence_number=None if event is None else event.sequence_number,
            error=error,
        )
        self._failures.append(failure)


def _note(error: BaseException, failures: Iterable[StageFailure]) -> None:
    """Have *error*, which ends the stream, tell of *failures*, too."""
    for failure in failures:
        error.add_note(str(failure))


def _drive(steps: Steps[T]) -> T:
    """Run *steps* without asyncio. An awaitable is an error."""
    try:
        awaitable = next(steps)
        while True:
            if inspect.iscoroutine(awaitable):
                awaitable.close()  # avoids the warning "never awaited"
            awaitable = steps.throw(TypeError("it is asynchronous: use ahandle or arun"))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def _adrive(steps: Steps[T]) -> T:
    """Do *steps*, awaiting what has to be."""
    try:
        awaitable = next(steps)
        while True:
            try:
                result = await awaitable
            except BaseException as error:
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(result)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
