"""Streams in another wire format, with each event as soon as its delta arrives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from crosswalk.convert.carried import MEMBER, member_of
from crosswalk.convert.conversion import (
    GENEROUS,
    UNLIMITED,
    WRITERS,
    LossPolicy,
    body_in,
    check_losses,
    ending,
    heading_of,
    known_registry,
    original_of,
)
from crosswalk.convert.losses import losses as find_losses
from crosswalk.convert.report import ConversionReport
from crosswalk.errors import ErrorInfo
from crosswalk.formats.writing import ConversionError, Event, Parts, WireForm, Writer
from crosswalk.mapping.normalize import DeltaStream
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.registry import Registry
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT
from crosswalk.types.response import ChatResponse, new_id, now
from crosswalk.types.stream import DeltaAccumulator
from crosswalk.types.values import SegmentType

T = TypeVar("T")
W = TypeVar("W", bound=Writer)


class StreamConverter:
    """Turns deltas into the events of another form, one by one, for programs that drive their stream themselves.

    Args:
        writer: the writer of the form, still empty.
        registry: as for :func:`convert`.
        carry: as for :func:`convert`. The last event has the member.
        losses: as for :func:`convert`. A dangerous loss ends the stream before its last events.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        registry: Registry | None = None,
        carry: bool = False,
        losses: LossPolicy = "refuse",
    ) -> None:
        self._writer = writer
        self._registry = registry
        self._carries = carry
        self._policy = losses
        self._reader = Reader(
            known_registry(registry).mapper(writer.form.provider), ReaderOptions(**GENEROUS, limits=UNLIMITED)
        )
        self._parts = Parts()
        self._report: ConversionReport | None = None

    @classmethod
    def of(
        cls,
        to: WireForm | str,
        partial: Callable[[], ChatResponse],
        *,
        request: Mapping[str, Any] | None = None,
        registry: Registry | None = None,
        carry: bool = False,
        losses: LossPolicy = "refuse",
    ) -> StreamConverter:
        """Return a converter to the form *to*.

        Args:
            to: as for :func:`convert`.
            partial: returns the answer so far, such as ``lambda: stream.partial``. It is called once, with the first event.
            request: as for :func:`convert`.
            registry: as for :func:`convert`.
            carry: as for the class.
            losses: as for the class.

        Raises:
            ConversionError: there is no such form. PluginError: the form's provider is not installed, or broken.
        """
        writer = _writer(WRITERS[WireForm.of(to)], partial, registry, request)
        return cls(writer, registry=registry, carry=carry, losses=losses)

    def feed(self, delta: ResponseDelta) -> Iterator[Event]:
        """Return the events for *delta*."""
        writer = self._writer
        if delta.extensions is not EMPTY_OBJECT:
            writer.learn(delta.extensions)
        if delta.usage is not None:
            writer.usage = delta.usage
        if delta.logprobs:
            writer.tokens(delta.logprobs, delta.choice)
        for piece in self._parts.of(delta):
            if piece.type is not SegmentType.ERROR:
                yield from self._told(writer.piece(piece))
        if delta.finish_reason is not None:
            writer.end(delta.finish_reason, delta.raw_finish_reason, delta.choice)

    def finish(self, response: ChatResponse) -> Iterator[Event]:
        """Return the last events. *response* is the sum of the deltas, with which the report compares.

        Raises:
            DangerousLossError: the form cannot express a fact that matters for acting on the answer.
        """
        writer = self._writer
        last = list(self._told(ending(writer, response)))
        drain(self._reader.finish())
        read = self._reader.response()
        report = ConversionReport.of(writer.form, find_losses(response, read), is_carried=self._carries)
        check_losses(report, self._policy)
        if self._carries:
            original = original_of(response, self._registry)
            member = member_of(original, read, functools.partial(body_in, self._registry))
            writer.top_of(next(event for event in reversed(last) if event))[MEMBER] = member
        self._report = report
        yield from last

    def fail(self, info: ErrorInfo) -> Iterator[Event]:
        """Return the last events of a stream that *info* ends here, without a report."""
        yield from self._writer.fail(info)
        yield from self._writer.close()

    def frame(self, event: Event) -> bytes:
        """Return *event* as it is sent in a stream of the form."""
        return self._writer.frame(event)

    @property
    def report(self) -> ConversionReport:
        """The fields that the form cannot express, once the stream is finished.

        Raises:
            ConversionError: it is not finished.
        """
        if self._report is None:
            raise ConversionError("the stream has not been converted to its end")
        return self._report

    def _told(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            drain(self._reader.read(self._writer.frame(event)))
            yield self._writer.spelled(event)


class Deltas:
    """Deltas of any source, and their sum, with the interface of a ``DeltaStream``.

    Args:
        deltas: the deltas.
        id: the answer's id, or ``None`` to make one.
        model: the model, or ``None`` if unknown.
        created: the time of creation, or ``None`` for the present.
    """

    def __init__(
        self, deltas: Iterable[ResponseDelta], id: str | None, model: str | None, created: datetime | None
    ) -> None:
        made_up, present = new_id(), now()  # the same at each access
        self._deltas = deltas
        self._sum = DeltaAccumulator(
            id=id, model=model, created=created, id_factory=lambda: made_up, clock=lambda: present
        )

    def __iter__(self) -> Iterator[ResponseDelta]:
        for delta in self._deltas:
            self._sum.append(delta)
            yield delta

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the deltas are exhausted."""
        return self._sum.build()

    @property
    def partial(self) -> ChatResponse:
        """The answer so far."""
        return self._sum.build_partial("")


class ConvertedStream(Iterator[T]):
    """A stream in another form, with each event as soon as its delta arrives, and then the report.

    Made by :func:`convert_stream` and :func:`crosswalk.convert.to_events`. An error of the source ends it unchanged, after
    the events before it.
    """

    def __init__(
        self,
        deltas: DeltaStream | Deltas,
        kind: type[Writer],
        given: Callable[[StreamConverter, Event], T],
        registry: Registry | None,
        **options: Any,
    ) -> None:
        writer = _writer(kind, lambda: deltas.partial, registry)
        self._converter = StreamConverter(writer, registry=registry, **options)
        self._events = self._read(deltas, given)

    def _read(
        self, deltas: DeltaStream | Deltas, given: Callable[[StreamConverter, Event], T]
    ) -> Iterator[T]:
        for delta in deltas:
            for event in self._converter.feed(delta):
                yield given(self._converter, event)
        for event in self._converter.finish(deltas.response):
            yield given(self._converter, event)

    def __iter__(self) -> Iterator[T]:
        return self._events

    def __next__(self) -> T:
        return next(self._events)

    @property
    def report(self) -> ConversionReport:
        """The fields that the form cannot express, once the stream is exhausted.

        Raises:
            ConversionError: it is not exhausted.
        """
        return self._converter.report


def convert_stream(
    deltas: Iterable[ResponseDelta],
    to: WireForm | str,
    *,
    id: str | None = None,
    model: str | None = None,
    created: datetime | None = None,
    registry: Registry | None = None,
    carry: bool = False,
    losses: LossPolicy = "refuse",
) -> ConvertedStream[bytes]:
    """Convert *deltas* to the server-sent events of another wire form.

    Args:
        deltas: those of :func:`crosswalk.normalize_stream`, which have the provider, or of any other source.
        to: as for :func:`convert`.
        id: the answer's id, for deltas of another source, or ``None`` to make one.
        model: the model, for deltas of another source, or ``None`` if unknown.
        created: the time of creation, for deltas of another source, or ``None`` for the present.
        registry: as for :func:`convert`.
        carry: as for :class:`StreamConverter`.
        losses: as for :class:`StreamConverter`.

    Raises:
        ConversionError: there is no such form. While iterating, a delta holds text that is not valid JSON.
        PluginError: the form's provider is not installed, or broken.
        CrosswalkError: while iterating, the errors that *deltas* raise.
    """
    source = deltas if isinstance(deltas, DeltaStream) else Deltas(deltas, id, model, created)
    kind = WRITERS[WireForm.of(to)]
    return ConvertedStream(source, kind, StreamConverter.frame, registry, carry=carry, losses=losses)


def _writer(
    kind: type[W],
    partial: Callable[[], ChatResponse],
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> W:
    """Return a writer of a stream. *partial* returns the answer so far."""
    return kind(lambda: heading_of(partial(), kind.form, registry, request))
