"""Conversion of answers between wire forms, whole and streamed, each with a report of what the form cannot express.

What is written is read back, as any client of Crosswalk would, and compared with the original: the report is what the two
readings say differently. So nothing is lost in silence, whatever an answer holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

import attrs

from crosswalk.convert.anthropic import MessagesWriter
from crosswalk.convert.errors import ConversionError
from crosswalk.convert.failure import error_status
from crosswalk.convert.form import WireForm
from crosswalk.convert.losses import losses, losses_beside
from crosswalk.convert.ollama import OllamaChatWriter, OllamaGenerateWriter
from crosswalk.convert.openai_chat import ChatWriter
from crosswalk.convert.openai_completions import CompletionsWriter
from crosswalk.convert.openai_responses import ResponsesWriter
from crosswalk.convert.parts import Parts, pieces_of
from crosswalk.convert.report import ConversionReport
from crosswalk.convert.source import form_of_body, source_form
from crosswalk.convert.writer import Event, Heading, Writer, json_of
from crosswalk.errors import CrosswalkError, ErrorInfo, LimitError, MappingError, PluginError
from crosswalk.mapping.normalize import DeltaStream, normalize
from crosswalk.mapping.options import ReaderOptions
from crosswalk.mapping.reader import Reader, drain
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.types._value import altered
from crosswalk.types.accumulator import DeltaAccumulator
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import Alternative, ChatResponse, new_id, now
from crosswalk.types.segment import SegmentType
from crosswalk.wire.limits import Limits

__all__ = ["Conversion", "ConvertedStream", "StreamConverter", "convert", "convert_stream", "error_body"]

T = TypeVar("T")
W = TypeVar("W", bound=Writer)

_WRITERS: Final[dict[WireForm, type[Writer]]] = {
    WireForm.OPENAI_CHAT: ChatWriter,
    WireForm.OPENAI_RESPONSES: ResponsesWriter,
    WireForm.ANTHROPIC: MessagesWriter,
    WireForm.OLLAMA: OllamaChatWriter,
    WireForm.OLLAMA_GENERATE: OllamaGenerateWriter,
    WireForm.OPENAI_COMPLETIONS: CompletionsWriter,
}
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
# What was written here is no stranger's: what was accepted once is read again, a text up to five times as long.
_UNLIMITED: Final = Limits(line_bytes=1 << 62, depth=1024, events=1 << 62, total_bytes=1 << 62)
_GENEROUS: Final[dict[str, Any]] = {"unknown": "keep", "keep_raw": False}


@attrs.frozen
class Conversion(Generic[T]):
    """An answer in another form.

    Attributes:
        value: the answer: of :func:`convert` the body as JSON text.
        report: what the form cannot express.
        status: the HTTP status to send it with: 200, or that of an error.
    """

    value: T
    report: ConversionReport
    status: int = 200


def convert(
    response: ChatResponse,
    to: WireForm | str,
    *,
    request: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
) -> Conversion[bytes]:
    """*response* as the body of another wire form.

    Args:
        response: the answer of any provider.
        to: the form: ``"openai-chat"``, ``"openai-responses"``, ``"anthropic"``, ``"ollama"``, ``"ollama-generate"`` or
            ``"openai-completions"``.
        request: the body of the request that *response* answers, in the form *to*: Responses repeats its options. ``None``
            writes the API's defaults.
        registry: where the form's own provider is looked up, to read the body back; ``None`` for the installed ones.

    Raises:
        ConversionError: there is no such form, or *response* holds text that is no JSON, or extensions of another shape than
            its own form has.
        PluginError: the form's provider is not installed, or broken.
    """
    form = WireForm.of(to)
    received = as_received(response, form, registry)
    if received is not None:
        return received
    writer = written(response, _WRITERS[form], registry, request)
    body = json_of(writer.body())
    error = response.error_info
    status = error_status(error) if error is not None and writer.is_error_body else 200
    return Conversion(body, read_back(response, writer, body, status, registry), status)


def error_body(info: ErrorInfo, to: WireForm | str) -> Conversion[bytes]:
    """The body of an HTTP error that says *info* in another form, and its status: the provider's own, else the usual one.

    Raises:
        ConversionError: there is no such form.
    """
    form = WireForm.of(to)
    return Conversion(json_of(_WRITERS[form].error_event(info)), ConversionReport(form), error_status(info))


def as_received(
    response: ChatResponse, form: WireForm, registry: Registry | None
) -> Conversion[bytes] | None:
    """The body that *response* was read from, where it has *form* and still says the same; ``None`` where it does not.

    It does not where its bytes were not kept, or came as a stream, or the response was changed since.
    """
    frames = response.raw_events.frames
    if len(frames) != 1 or form_of_body(response.raw_events[0]) is not form:
        return None
    id, created = response.id, response.created
    try:
        again = _read(
            frames[0],
            response.metadata.provider_id,
            registry,
            id_factory=lambda: id,
            clock=lambda: created,
        )
    except CrosswalkError:
        return None
    same = altered(response, attempts=()).same_content(again)
    if not same or (again.id, again.created) != (id, created):
        return None
    return Conversion(frames[0], ConversionReport(form, losses_beside(response, again)))


def read_back(
    response: ChatResponse, writer: Writer, body: bytes, status: int, registry: Registry | None
) -> ConversionReport:
    """What *body*, which is *response* as *writer* writes it, does not say, to who read it there or to anybody else."""
    form, own = writer.form, None if writer.is_error_body else writer.heading.own
    for provider in [*([own.provider] if own is not None else []), form.provider]:
        with suppress(MappingError):
            return ConversionReport(form, losses(response, _read(body, provider, registry, status=status)))
    raise ConversionError(f"what the answer keeps of {form.label} has another shape there")


def _read(body: bytes, provider: str, registry: Registry | None, **options: Any) -> ChatResponse:
    # Within the usual limits first: then a body may be read by its likeness to one before.
    with suppress(LimitError):
        return normalize(body, provider, registry=registry, **options, **_GENEROUS)
    return normalize(body, provider, registry=registry, limits=_UNLIMITED, **options, **_GENEROUS)


def written(
    response: ChatResponse,
    kind: type[W],
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> W:
    """A writer with all of *response* in it, closed."""
    writer = kind(lambda: _heading(response, kind.form, registry, request), whole=True)
    others = {alternative.index: alternative for alternative in reversed(response.alternatives)}
    answers: dict[int, ChatResponse | Alternative] = {**others, 0: response}  # one number, one answer
    for index, answer in sorted(answers.items()):
        if answer.logprobs:
            writer.tokens(answer.logprobs, index)
        for piece in pieces_of(answer.message, answer.segments, choice=index):
            drain(writer.piece(piece))
        writer.end(answer.finish_reason, answer.raw_finish_reason, index)
    drain(_ending(writer, response))
    return writer


def _ending(writer: Writer, response: ChatResponse) -> Iterator[Event]:
    """The events with which *response* ends: what was counted, and the error."""
    if response.metadata.provenance.get("usage") not in (Provenance.ABSENT, Provenance.CUT):
        writer.usage = response.usage
    writer.duration = response.metadata.request_duration
    error = response.error_info
    if error is not None:
        yield from writer.fail(error)
    yield from writer.close()


def _heading(
    response: ChatResponse,
    form: WireForm,
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> Heading:
    """What is said of *response* before its content; in its own form nothing that the provider did not say."""
    metadata = response.metadata
    made_up, own = metadata.provenance, None
    id, created = response.id, response.created
    model = "" if made_up.get("model") is Provenance.ABSENT else response.model
    if source_form(response) is (WireForm.OLLAMA if form is WireForm.OLLAMA_GENERATE else form):
        try:
            own = _known(registry).mapper(metadata.provider_id)
        except PluginError:
            own = _known(registry).mapper(form.provider)
        id = "" if made_up.get("id") is Provenance.SYNTHETIC else id
        created = _EPOCH if made_up.get("created") is Provenance.SYNTHETIC else created
    return Heading(id, model, created, metadata.extensions, own, request or {})


def _writer(
    kind: type[W],
    partial: Callable[[], ChatResponse],
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> W:
    """A writer of a stream, of which *partial* gives what has come."""
    return kind(lambda: _heading(partial(), kind.form, registry, request))


def _known(registry: Registry | None) -> Registry:
    return default_registry if registry is None else registry


class StreamConverter:
    """Turns deltas into the events of another form, one by one, for programs that drive their stream themselves.

    Args:
        writer: the writer of the form, with nothing in it.
        registry: as for :func:`convert`.
    """

    def __init__(self, writer: Writer, *, registry: Registry | None = None) -> None:
        self._writer = writer
        self._reader = Reader(
            _known(registry).mapper(writer.form.provider), ReaderOptions(**_GENEROUS, limits=_UNLIMITED)
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
    ) -> StreamConverter:
        """A converter to the form *to*.

        Args:
            to: as for :func:`convert`.
            partial: gives what has come of the answer, such as ``lambda: stream.partial``; asked once, with the first event.
            request: as for :func:`convert`.
            registry: as for :func:`convert`.

        Raises:
            ConversionError: there is no such form. PluginError: the form's provider is not installed, or broken.
        """
        return cls(_writer(_WRITERS[WireForm.of(to)], partial, registry, request), registry=registry)

    def feed(self, delta: ResponseDelta) -> Iterator[Event]:
        """The events that *delta* makes."""
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
        """The last events; *response* is what the deltas add up to, and what the report compares with."""
        yield from self._told(_ending(self._writer, response))
        drain(self._reader.finish())
        self._report = ConversionReport(self._writer.form, losses(response, self._reader.response()))

    def fail(self, info: ErrorInfo) -> Iterator[Event]:
        """The last events of a stream that *info* ends here: there is no report of it."""
        yield from self._writer.fail(info)
        yield from self._writer.close()

    def frame(self, event: Event) -> bytes:
        """*event* as it stands in a stream of the form."""
        return self._writer.frame(event)

    @property
    def report(self) -> ConversionReport:
        """What the form cannot express, once the stream is finished.

        Raises:
            ConversionError: it is not.
        """
        if self._report is None:
            raise ConversionError("the stream has not been converted to its end")
        return self._report

    def _told(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            drain(self._reader.read(self._writer.frame(event)))
            yield self._writer.spelled(event)


class Deltas:
    """Deltas of any source, and what they add up to, as a ``DeltaStream`` tells it of its own.

    Args:
        deltas: the deltas.
        id: the answer's id; ``None`` to make one.
        model: the model; ``None`` when unknown.
        created: the time of creation; ``None`` for the present.
    """

    def __init__(
        self, deltas: Iterable[ResponseDelta], id: str | None, model: str | None, created: datetime | None
    ) -> None:
        made_up, present = new_id(), now()  # the same whenever they are asked for
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
        """Everything so far."""
        return self._sum.build_partial("")


class ConvertedStream(Iterator[T]):
    """A stream in another form, each event as soon as its delta is there; then the report.

    Made by :func:`convert_stream` and :func:`crosswalk.convert.to_events`. An error of the source ends it as
    it is: what came before has been given.
    """

    def __init__(
        self,
        deltas: DeltaStream | Deltas,
        kind: type[Writer],
        given: Callable[[StreamConverter, Event], T],
        registry: Registry | None,
    ) -> None:
        self._converter = StreamConverter(_writer(kind, lambda: deltas.partial, registry), registry=registry)
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
        """What the form cannot express, once the stream is exhausted.

        Raises:
            ConversionError: it is not.
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
) -> ConvertedStream[bytes]:
    """*deltas* as the server-sent events of another wire form.

    Args:
        deltas: of :func:`crosswalk.normalize_stream`, which know who answers, or of any other source.
        to: as for :func:`convert`.
        id: the answer's id, for deltas of another source; ``None`` to make one.
        model: the model, likewise; ``None`` when unknown.
        created: the time of creation, likewise; ``None`` for the present.
        registry: as for :func:`convert`.

    Raises:
        ConversionError: there is no such form; while iterating, a delta holds text that is no JSON.
        PluginError: the form's provider is not installed, or broken.
        CrosswalkError: while iterating, what *deltas* raise.
    """
    source = deltas if isinstance(deltas, DeltaStream) else Deltas(deltas, id, model, created)
    return ConvertedStream(source, _WRITERS[WireForm.of(to)], StreamConverter.frame, registry)
