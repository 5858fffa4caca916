"""Conversion of answers between formats, whole, streamed, or as typed values of the Responses API, with a report."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import attrs
import orjson

from crosswalk.codec.canonical import from_json, to_jsonable
from crosswalk.convert.losses import (
    ConversionReport,
    DangerousLossError,
    losses as find_losses,
)
from crosswalk.errors import CrosswalkError, ErrorInfo, LimitError, MappingError, PluginError
from crosswalk.formats.chat import ChatWriter, CompletionsWriter
from crosswalk.formats.gemini import GeminiWriter
from crosswalk.formats.messages import MessagesWriter
from crosswalk.formats.ollama import OllamaChatWriter, OllamaGenerateWriter
from crosswalk.formats.response_items import is_item
from crosswalk.formats.responses import ResponsesWriter
from crosswalk.formats.writing import (
    ConversionError,
    Event,
    Heading,
    Parts,
    WireForm,
    Writer,
    error_status,
    form_of_body,
    json_of,
    named_frame,
    pieces_of,
    source_form,
)
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.normalize import Body, DeltaStream, normalize, normalize_stream
from crosswalk.mapping.reader import Reader, ReaderOptions, drain, read_body
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.responses.reading import parse, parse_event, parse_response, to_dict, to_json
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponsesParseError
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, copy_json, dump_json, same_json, thaw
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.stream import DeltaAccumulator
from crosswalk.types.usage import Provenance
from crosswalk.types.values import (
    FinishReason,
    IncompleteReason,
    RawEvents,
    Segment,
    SegmentType,
    altered,
    checks_keywords,
    new_id,
    now,
)
from crosswalk.wire.framing import Limits
from crosswalk.words import suggests_names

if TYPE_CHECKING:
    from crosswalk.responses.events import ResponseStreamEvent


# --------------------------------------------------------------------------------- carried
# Carries data that a format cannot hold through it: ``convert(…, carry=True)`` and the way back.
#
# A converted answer gets one more member, ``crosswalk``. It holds the difference between the answer as a reader of that
# format
# sees it and the answer that was converted, and so no text twice. A later conversion reads the answer, applies the
# difference,
# and starts from the original. The member also has a digest of the reader's view. If the answer was changed on its way,
# the
# digest differs, the member is not applied, and the report names it.


MEMBER: Final = "crosswalk"
"""The name of the member, at the top of a body."""
_VERSION: Final = 1

BodyOf: TypeAlias = Callable[[ChatResponse, WireForm], dict[str, Any]]
"""Writes an answer, without regard to its bytes, in a format."""


def member_of(original: ChatResponse, reread_response: ChatResponse, body_of: BodyOf) -> dict[str, Any]:
    """Return the member for an answer that is *original* and that a reader of the format sees as *reread_response*.

    Args:
        original: the answer that was converted. If it has the bytes of one body, they come back as the same JSON value.
        reread_response: the written answer, read back.
        body_of: see :data:`BodyOf`.
    """
    reader_view = _seen(reread_response)
    member = {
        "version": _VERSION,
        "reader": reread_response.metadata.provider_id,
        "digest": _digest(reader_view),
        "response": _difference(reader_view, to_jsonable(original)),
    }
    body = original.raw_events[0] if len(original.raw_events) == 1 else None
    form = form_of_body(body)
    if form is not None:
        member |= {"form": form.value, "body": _difference(body_of(original, form), body)}
    return member


def reader_of(response: ChatResponse) -> str | None:
    """Return the provider of the reader for the member of *response*, or ``None`` if it carries no answer."""
    reader_id = _member(response).get("reader")
    return reader_id if isinstance(reader_id, str) else None


def without_member(response: ChatResponse) -> ChatResponse:
    """Return *response* as if it carried no answer."""
    extensions = {name: value for name, value in response.metadata.extensions.items() if name != MEMBER}
    return attrs.evolve(
        response,
        metadata=attrs.evolve(response.metadata, extensions=extensions),
        segments=tuple(map(_without_member, response.segments)),
        raw_events=(),
    )


def _without_member(segment: Segment) -> Segment:
    """Return *segment*, of an error, without the carried data in the error's payload."""
    error_body = segment.metadata.get("raw") if segment.type is SegmentType.ERROR else None
    if not isinstance(error_body, Mapping) or MEMBER not in error_body:
        return segment
    remaining_fields = {name: value for name, value in error_body.items() if name != MEMBER}
    return attrs.evolve(segment, metadata={**segment.metadata, "raw": remaining_fields})


def _member(response: ChatResponse) -> Mapping[str, Any]:
    """Return the member of *response*, which for an error is in its payload, or an empty mapping."""
    error, extensions = response.error_info, response.metadata.extensions
    if error is None and MEMBER not in extensions:
        return {}
    for holder in (None if error is None else error.raw, extensions):
        member = thaw(holder.get(MEMBER)) if isinstance(holder, Mapping) else None
        if isinstance(member, dict):
            return member
    return {}


def carried(response: ChatResponse, body_of: BodyOf) -> ChatResponse | None:
    """Return the answer that *response* carries, or ``None`` if it carries none, or was changed since.

    Args:
        response: an answer that was read.
        body_of: as for :func:`member_of`.
    """
    member = _member(response)
    if member.get("version") != _VERSION:
        return None
    reader_view = _seen(without_member(response))
    if member.get("digest") != _digest(reader_view):
        return None
    try:
        original = from_json(dump_json(_patched(reader_view, member["response"])), ChatResponse)
        if "body" in member:
            body = _patched(body_of(original, WireForm.of(member["form"])), member["body"])
            original = attrs.evolve(original, raw_events=RawEvents([dump_json(body)]))
    except (AttributeError, CrosswalkError, LookupError, TypeError, ValueError):
        return None  # the member was not written by Crosswalk
    return original


_MEASURED_FIELDS: Final = (
    *("request_duration_seconds", "time_to_first_token_seconds", "tokens_per_second"),
    "provider_id",
)
"""Metadata that differ between two readings of the same bytes."""


def _seen(response: ChatResponse) -> dict[str, Any]:
    """Return *response* as plain JSON, without values that differ between two readings of the same bytes."""
    value: dict[str, Any] = to_jsonable(response)
    metadata = value["metadata"]
    provenance = metadata.get("provenance", {})
    for name in ("id", "created"):
        if provenance.get(name) == Provenance.SYNTHETIC:
            value.pop(name, None)
    if provenance.get("model") in (
        Provenance.ABSENT,
        Provenance.DERIVED,
    ):  # of the request, where it is known
        for holder, name in ((value, "model"), (metadata, "model_id"), (provenance, "model")):
            holder.pop(name, None)
    value.pop("attempts", None)
    for name in _MEASURED_FIELDS:
        metadata.pop(name, None)
    for name in ("metadata.request_duration", "metadata.time_to_first_token"):
        provenance.pop(name, None)
    if not provenance:
        metadata.pop("provenance", None)
    return value


def _digest(value: Any) -> str:
    return sha256(dump_json(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


# A difference is ``{"value": V}`` for another value, ``{}`` for the same one, ``{"members": …, "removed": …}`` for objects
# and ``{"items": […]}`` for lists. An item is the position of an equal item before, or a difference with the position
# ``at`` of its former item.


def _difference(before: Any, after: Any) -> dict[str, Any]:
    """Return the difference that turns *before* into *after*."""
    if same_json(before, after):
        return {}
    if type(before) is dict and type(after) is dict:
        members = {
            name: _difference(before[name], value) if name in before else {"value": value}
            for name, value in after.items()
            if name not in before or not same_json(before[name], value)
        }
        removed = [name for name in before if name not in after]
        return {"members": members, **({"removed": removed} if removed else {})}
    if type(before) is list and type(after) is list:
        positions = {dump_json(item): position for position, item in reversed([*enumerate(before)])}
        return {"items": [_item(before, positions, position, value) for position, value in enumerate(after)]}
    return {"value": after}


def _item(before: list[Any], positions: dict[bytes, int], position: int, value: Any) -> int | dict[str, Any]:
    """Return the difference that makes *value* from an equal item of *before*, else from the one at its *position*."""
    equal_position = positions.get(dump_json(value))
    if equal_position is not None:
        return equal_position
    return (
        {"at": position, **_difference(before[position], value)}
        if position < len(before)
        else {"value": value}
    )


def _patched(before: Any, difference: dict[str, Any]) -> Any:
    """Apply *difference* to *before*."""
    if "value" in difference:
        return difference["value"]
    if "items" in difference:
        return [
            copy_json(before[item])
            if type(item) is int
            else _patched(before[item["at"]] if "at" in item else None, item)
            for item in difference["items"]
        ]
    if "members" in difference:
        removed = difference.get("removed", ())
        patched_object = {name: value for name, value in before.items() if name not in removed}
        for name, inner in difference["members"].items():
            patched_object[name] = _patched(before.get(name), inner)
        return patched_object
    return copy_json(before)


# ------------------------------------------------------------------------------ conversion
# Conversion of whole answers between wire forms, each with a report of the fields that the form cannot express.
#
# The written answer is read back, as any client of Crosswalk would, and compared with the original. The report lists
# the
# differences between the two readings. So every loss is reported, whatever an answer holds.


T = TypeVar("T")
W = TypeVar("W", bound=Writer)

WRITERS: Final[dict[WireForm, type[Writer]]] = {
    WireForm.OPENAI_CHAT: ChatWriter,
    WireForm.OPENAI_RESPONSES: ResponsesWriter,
    WireForm.ANTHROPIC: MessagesWriter,
    WireForm.OLLAMA: OllamaChatWriter,
    WireForm.OLLAMA_GENERATE: OllamaGenerateWriter,
    WireForm.GEMINI: GeminiWriter,
    WireForm.OPENAI_COMPLETIONS: CompletionsWriter,
}
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
# Output of this module is trusted. An answer that was accepted once is read again, a text up to five times as long.
UNLIMITED: Final = Limits(line_bytes=1 << 62, depth=1024, events=1 << 62, total_bytes=1 << 62)
GENEROUS: Final[dict[str, Any]] = {"unknown": "keep", "keep_raw": False}


@suggests_names
@attrs.frozen
class Conversion(Generic[T]):
    """An answer in another form.

    Attributes:
        value: the answer. For :func:`convert` this is the body as JSON text.
        report: the fields that the form cannot express.
        status: the HTTP status to send it with: 200, or that of an error.
    """

    value: T
    report: ConversionReport
    status: int = 200


@checks_keywords()
def convert(
    response: ChatResponse | Response | Body,
    to: WireForm | str,
    *,
    request: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    carry: bool = False,
    losses: LossPolicy = "refuse",
) -> Conversion[bytes]:
    """Return *response* as the body of another wire form. If it carries another answer, that one is converted.

    Args:
        response: the answer of any provider; or its body, which :func:`crosswalk.normalize` reads first; or an answer of
            the Responses API as :func:`crosswalk.responses.parse_response` gives it.
        to: the form: ``"openai-chat"``, ``"openai-responses"``, ``"anthropic"``, ``"gemini"``, ``"ollama"``,
            ``"ollama-generate"`` or ``"openai-completions"``.
        request: the body of the request that *response* answers, in the form *to*: Responses repeats its options. ``None``
            writes the API's defaults.
        registry: the registry with the form's own provider, to read the body back, or ``None`` for the installed ones.
        carry: whether the body gets a member ``crosswalk`` with the data that the form cannot express. A later conversion,
            to any form, starts from *response* as it was.
        losses: ``"refuse"`` raises for a dangerous loss, such as a tool call in a form without calls. ``"report"`` writes
            the body, and the report names the loss.

    Raises:
        DangerousLossError: see *losses*.
        ConversionError: the form is unknown, or *response* holds text that is not valid JSON, or extensions of another
            shape than its own form has.
        PluginError: the form's provider is not installed, or broken.
        CrosswalkError: the errors of :func:`crosswalk.normalize` for a body.
    """
    form = WireForm.of(to)
    if isinstance(response, Response):
        response = from_response(response, registry=registry)
    elif not isinstance(response, ChatResponse):
        response = normalize(response, registry=registry)
    response = original_of(response, registry)
    received_conversion = as_received(response, form, registry)
    if received_conversion is not None:
        return received_conversion
    writer = written(response, WRITERS[form], registry, request)
    body = writer.body()
    body_bytes = json_of(body)
    error = response.error_info
    status = error_status(error, form) if error is not None and writer.is_error_body else 200
    reread_response = read_back(writer, body_bytes, status, registry)
    report = ConversionReport.of(form, find_losses(response, reread_response), is_carried=carry)
    check_losses(report, losses)
    if carry:
        body[MEMBER] = member_of(response, reread_response, partial(body_in, registry))
        body_bytes = json_of(body)
    return Conversion(body_bytes, report, status)


LossPolicy: TypeAlias = Literal["refuse", "report"]
"""How a conversion treats dangerous losses."""


def check_losses(report: ConversionReport, policy: LossPolicy) -> None:
    """Raise for the dangerous losses of *report*, unless they are carried or the *policy* allows them.

    Raises:
        DangerousLossError: there are some. ConversionError: the policy is unknown.
    """
    if policy not in get_args(LossPolicy):
        raise ConversionError(f"losses: one of {', '.join(get_args(LossPolicy))}")
    if policy == "refuse" and report.dangerous and not report.is_carried:
        raise DangerousLossError(report.form.label, report.dangerous)


def original_of(response: ChatResponse, registry: Registry | None = None) -> ChatResponse:
    """Return the answer that *response* carries, or *response* itself if it carries none or was changed since.

    Args:
        response: an answer that was read, whole or from a stream. See *carry* of :func:`convert`.
        registry: as for :func:`convert`.
    """
    reader_id = reader_of(response)
    if reader_id is None:
        return response
    reread_response, frames = response, response.raw_events.frames
    if reader_id != response.metadata.provider_id and frames:
        try:
            reread_response = _read(_body_of(frames), reader_id, registry)
        except CrosswalkError:
            return response
    return carried(reread_response, partial(body_in, registry)) or response


def _body_of(frames: Sequence[bytes]) -> bytes:
    """Return *frames* as they may have come: one as a body, several as a stream."""
    if len(frames) == 1:
        return frames[0]
    return b"".join(b"data: %b\n\n" % frame for frame in (*frames, b"[DONE]"))


def body_in(registry: Registry | None, response: ChatResponse, form: WireForm) -> Event:
    """Return *response* as a body of *form*, written without regard to its bytes."""
    return written(response, WRITERS[form], registry).body()


def error_body(info: ErrorInfo, to: WireForm | str) -> Conversion[bytes]:
    """Return the body of an HTTP error with *info* in another form, and its status: the provider's own, else the usual one.

    Raises:
        ConversionError: the form is unknown.
    """
    form = WireForm.of(to)
    return Conversion(
        json_of(WRITERS[form].error_event(info)), ConversionReport(form), error_status(info, form)
    )


def as_received(
    response: ChatResponse, form: WireForm, registry: Registry | None
) -> Conversion[bytes] | None:
    """Return the body that *response* was read from if it has *form* and still matches, or ``None``.

    It is ``None`` if its bytes were not kept or came as a stream, or if the response was changed since.
    """
    frames = response.raw_events.frames
    if len(frames) != 1 or form_of_body(response.raw_events[0]) is not form:
        return None
    id, created = response.id, response.created
    try:
        reread_response = _read(
            frames[0],
            response.metadata.provider_id,
            registry,
            id_factory=lambda: id,
            clock=lambda: created,
        )
    except CrosswalkError:
        return None
    is_same = altered(response, attempts=()).same_content(reread_response)
    if not is_same or (reread_response.id, reread_response.created) != (id, created):
        return None
    return Conversion(frames[0], ConversionReport.of(form, find_losses(response, reread_response)))


def read_back(writer: Writer, body: bytes, status: int, registry: Registry | None) -> ChatResponse:
    """Read *body*, which *writer* has written, with the form's own reader, or else with any reader."""
    form, own_mapper = writer.form, None if writer.is_error_body else writer.heading.own
    for provider in [*([own_mapper.provider] if own_mapper is not None else []), form.provider]:
        with suppress(MappingError):
            return _read(body, provider, registry, status=status)
    raise ConversionError(f"what the answer keeps of {form.label} has another shape there")


def _read(body: bytes, provider: str, registry: Registry | None, **options: Any) -> ChatResponse:
    mapper = known_registry(registry).mapper(provider)
    # Within the usual limits first: then a body may be read by its likeness to an earlier one.
    with suppress(LimitError):
        return read_body(mapper, body, ReaderOptions(**options, **GENEROUS))
    return read_body(mapper, body, ReaderOptions(**options, **GENEROUS, limits=UNLIMITED))


def written(
    response: ChatResponse,
    writer_class: type[W],
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> W:
    """Return a closed writer with all of *response* in it."""
    writer = writer_class(lambda: heading_of(response, writer_class.form, registry, request), whole=True)
    drain(_told_by(writer, response))
    return writer


def events_of(response: ChatResponse, to: WireForm | str, *, registry: Registry | None = None) -> list[Event]:
    """Return the events of a stream in another form that says all of *response*, each text in one piece.

    A sentinel at the end, such as ``[DONE]``, is not among them.

    Raises:
        ConversionError: the form is unknown.
        PluginError: the form's provider is not installed, or broken.
    """
    kind = WRITERS[WireForm.of(to)]
    writer = kind(lambda: heading_of(response, kind.form, registry))
    writer.learn(response.metadata.extensions)
    return [writer.spelled(event) for event in _told_by(writer, response) if event]


def _told_by(writer: Writer, response: ChatResponse) -> Iterator[Event]:
    """Yield what *writer* makes of *response*, to its end."""
    others = {alternative.index: alternative for alternative in reversed(response.alternatives)}
    answers: dict[int, ChatResponse | Alternative] = {**others, 0: response}  # one number, one answer
    for index, answer in sorted(answers.items()):
        if answer.logprobs:
            writer.tokens(answer.logprobs, index)
        for piece in pieces_of(answer.message, answer.segments, choice=index):
            yield from writer.piece(piece)
        writer.end(answer.finish_reason, answer.raw_finish_reason, index)
    yield from ending(writer, response)


_PARTIAL_REASONS: Final = (IncompleteReason.UNKNOWN_FINISH_REASON, IncompleteReason.UNKNOWN_EVENT)
"""Why an answer is not whole though no finish word says so. Another form gets its word for an incomplete answer."""


def ending(writer: Writer, response: ChatResponse) -> Iterator[Event]:
    """Yield the events with which *response* ends, after setting its token counts and duration."""
    if response.metadata.provenance.get("usage") not in (Provenance.ABSENT, Provenance.CUT):
        writer.usage = response.usage
    writer.duration = response.metadata.request_duration
    is_partial = response.incomplete_reason in _PARTIAL_REASONS and (response.text or response.has_tool_calls)
    if is_partial and not writer.is_own:  # in its own form it keeps its word
        writer.end(FinishReason.LENGTH, "incomplete", 0)
    error = response.error_info
    if error is not None:
        yield from writer.fail(error)
    yield from writer.close()


def heading_of(
    response: ChatResponse,
    form: WireForm,
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> Heading:
    """Return the heading of *response*. In its own form it has only the provider's own fields."""
    metadata = response.metadata
    provenance, own_mapper = metadata.provenance, None
    id, created = response.id, response.created
    model = "" if provenance.get("model") is Provenance.ABSENT else response.model
    if source_form(response) is (WireForm.OLLAMA if form is WireForm.OLLAMA_GENERATE else form):
        try:
            own_mapper = known_registry(registry).mapper(metadata.provider_id)
        except PluginError:
            own_mapper = known_registry(registry).mapper(form.provider)
        id = "" if provenance.get("id") is Provenance.SYNTHETIC else id
        created = _EPOCH if provenance.get("created") is Provenance.SYNTHETIC else created
    extensions, provider = metadata.extensions, metadata.provider_id
    return Heading(id, model, created, extensions, own_mapper, request or {}, provider)


def known_registry(registry: Registry | None) -> Registry:
    """*registry*, or the one of this process for ``None``."""
    return default_registry if registry is None else registry


# --------------------------------------------------------------------------------- streams
# Streams in another wire format, with each event as soon as its delta arrives.


_UNREAD_BYTES: Final = 1 << 14


class StreamConverter:
    """Turns deltas into the events of another form, one by one, for programs that drive their stream themselves.

    If a stream carries an answer, its first event announces it. The deltas of such a stream wait for its last event, and the
    events are those of the answer that it carries.

    Args:
        to: as for :func:`convert`, or the writer of the form.
        partial: returns the answer so far, such as ``lambda: stream.partial``. It is called once, with the first event.
        request: as for :func:`convert`.
        registry: as for :func:`convert`.
        carry: as for :func:`convert`. The last event has the member, and the first one its version.
        losses: as for :func:`convert`. A dangerous loss ends the stream before its last events.

    Attributes:
        has_told: whether there were events. Those of a stream that carries an answer come at its end.

    Raises:
        ConversionError: the form is unknown. PluginError: the form's provider is not installed, or broken.
    """

    def __init__(
        self,
        to: WireForm | str | type[Writer],
        partial: Callable[[], ChatResponse],
        *,
        request: Mapping[str, Any] | None = None,
        registry: Registry | None = None,
        carry: bool = False,
        losses: LossPolicy = "refuse",
    ) -> None:
        self._writer_class = WRITERS[WireForm.of(to)] if isinstance(to, str) else to
        self._request = request
        self._registry = registry
        self._carries = carry
        self._policy = losses
        self._writer = self._writer_of(partial)
        mapper = known_registry(registry).mapper(self._writer.form.provider)
        self._reader = Reader(mapper, ReaderOptions(**GENEROUS, limits=UNLIMITED))
        self._parts = Parts()
        self._has_begun = self.has_told = False
        self._held_deltas: list[ResponseDelta] | None = None  # of a stream that carries an answer
        self._unread_frames = (
            bytearray()
        )  # what was told and not read back, which is cheaper for many events at once
        self._told_event: Event | None = None  # the last one, and its bytes
        self._told_frame = b""
        self._report: ConversionReport | None = None

    def _writer_of(self, answer: Callable[[], ChatResponse]) -> Writer:
        form = self._writer_class.form
        return self._writer_class(lambda: heading_of(answer(), form, self._registry, self._request))

    def feed(self, delta: ResponseDelta) -> Iterator[Event]:
        """Return the events for *delta*."""
        if not self._has_begun:
            self._has_begun, self._held_deltas = True, [] if MEMBER in delta.extensions else None
        if self._held_deltas is None:
            return self._written(delta)
        self._held_deltas.append(delta)
        return iter(())

    def release(self) -> Iterator[Event]:
        """Return the events for the deltas that have waited for an end that does not come."""
        held_deltas, self._held_deltas = self._held_deltas, None
        for delta in held_deltas or ():
            yield from self._written(delta)

    def _written(self, delta: ResponseDelta) -> Iterator[Event]:
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

    def finish(self, response: ChatResponse, original: ChatResponse | None = None) -> Iterator[Event]:
        """Return the last events.

        Args:
            response: the sum of the deltas, with which the report compares.
            original: what to write in place of the answer that *response* carries, or ``None`` for that itself. See
                :func:`original_of`.

        Raises:
            DangerousLossError: the form cannot express a fact that matters for acting on the answer.
        """
        original = original_of(response, self._registry) if original is None else original
        if original is response or self.has_told:
            yield from self.release()
            last_events = list(self._told(ending(self._writer, response)))
        else:
            self._writer, self._held_deltas, response = self._writer_of(lambda: original), None, original
            self._writer.learn(original.metadata.extensions)
            last_events = list(self._told(_told_by(self._writer, original)))
        writer = self._writer
        self._read_back()
        drain(self._reader.finish())
        reread_response = self._reader.response()
        report = ConversionReport.of(
            writer.form, find_losses(response, reread_response), is_carried=self._carries
        )
        check_losses(report, self._policy)
        if self._carries:
            member = member_of(original, reread_response, functools.partial(body_in, self._registry))
            writer.top_of(next(event for event in reversed(last_events) if event))[MEMBER] = member
            self._told_event = None
        self._report = report
        yield from last_events

    def fail(self, info: ErrorInfo) -> Iterator[Event]:
        """Return the last events of a stream that *info* ends here, without a report."""
        yield from self.release()
        yield from self._writer.fail(info)
        yield from self._writer.close()

    def frame(self, event: Event, *, is_changed: bool = True) -> bytes:
        """Return *event* as sent in a stream of the form.

        Args:
            event: one that :meth:`feed`, :meth:`finish` or :meth:`fail` gave.
            is_changed: whether the caller may have changed it. The last one that was not has its bytes already.
        """
        return self._told_frame if not is_changed and event is self._told_event else self._writer.frame(event)

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
            self._told_frame = self._writer.frame(event)
            self._unread_frames += self._told_frame
            if len(self._unread_frames) > _UNREAD_BYTES:
                self._read_back()
            told_event = self._writer.spelled(event)
            is_marked = self._carries and not self.has_told
            if is_marked:
                self._writer.top_of(told_event)[MEMBER] = {"version": _VERSION}
            self._told_event = None if is_marked or told_event is not event else event
            self.has_told = True
            yield told_event

    def _read_back(self) -> None:
        drain(self._reader.read(bytes(self._unread_frames)))
        self._unread_frames.clear()


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
        default_id, default_time = new_id(), now()  # the same at each access
        self._deltas = deltas
        self._sum = DeltaAccumulator(
            id=id, model=model, created=created, id_factory=lambda: default_id, clock=lambda: default_time
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
        writer_class: type[Writer],
        convert_event: Callable[[StreamConverter, Event], T],
        registry: Registry | None,
        **options: Any,
    ) -> None:
        self._converter = StreamConverter(writer_class, lambda: deltas.partial, registry=registry, **options)
        self._events = self._read(deltas, convert_event)

    def _read(
        self, deltas: DeltaStream | Deltas, convert_event: Callable[[StreamConverter, Event], T]
    ) -> Iterator[T]:
        try:
            for delta in deltas:
                for event in self._converter.feed(delta):
                    yield convert_event(self._converter, event)
        except CrosswalkError:
            for event in self._converter.release():
                yield convert_event(self._converter, event)
            raise
        for event in self._converter.finish(deltas.response):
            yield convert_event(self._converter, event)

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
        ConversionError: the form is unknown. While iterating, a delta holds text that is not valid JSON.
        PluginError: the form's provider is not installed, or broken.
        CrosswalkError: while iterating, the errors that *deltas* raise.
    """
    source = deltas if isinstance(deltas, DeltaStream) else Deltas(deltas, id, model, created)
    writer_class = WRITERS[WireForm.of(to)]
    return ConvertedStream(source, writer_class, _frame, registry, carry=carry, losses=losses)


def _frame(converter: StreamConverter, event: Event) -> bytes:
    return converter.frame(event, is_changed=False)


# ----------------------------------------------------------------------------------- typed
# Canonical answers as typed values of the Responses API, and back, whole and streamed.


_FORM = WireForm.OPENAI_RESPONSES


class _TypedWriter(ResponsesWriter):
    """Writes only what the types of the API can hold. Stored data of other types is left out and reported."""

    def _is_item(self, value: Event) -> bool:
        return super()._is_item(value) and is_item(value, "keep")

    def _is_kept(self, name: str, value: Any) -> bool:
        if not super()._is_kept(name, value):
            return False
        try:
            parse(Response, {name: value}, unknown="keep")
        except ResponsesParseError:
            return False
        return True


def to_response(response: ChatResponse, *, registry: Registry | None = None) -> Conversion[Response]:
    """Return *response* as a :class:`crosswalk.responses.Response`. An error response becomes a failed one.

    Args:
        response: the answer of any provider.
        registry: the registry with the provider ``openai_responses``, to read it back, or ``None`` for the installed ones.

    Raises:
        ConversionError: *response* holds text that is not valid JSON.
        PluginError: the provider is not installed, or broken.
        TypeError: it is an answer of the Responses API.
    """
    _need(ChatResponse, response, "for a Response call from_response(response)")
    received_conversion = as_received(response, _FORM, registry)
    if received_conversion is not None:
        try:
            return Conversion(
                parse_response(received_conversion.value, unknown="keep"), received_conversion.report
            )
        except ResponsesParseError:
            pass  # its writer writes as much as it can
    writer = written(response, _TypedWriter, registry)
    body = writer.response()
    losses = find_losses(response, read_back(writer, json_of(body), 200, registry))
    return Conversion(parse_response(body, unknown="keep"), ConversionReport.of(_FORM, losses))


def _need(kind: type[ChatResponse] | type[Response], response: object, instead: str) -> None:
    if not isinstance(response, kind):
        raise TypeError(f"response must be a {kind.__name__}, not {type(response).__name__}; {instead}")


def from_response(
    response: Response, *, unknown: Unknown = "raise", registry: Registry | None = None
) -> ChatResponse:
    """Return *response* as a canonical answer. One that is queued or in progress is an unfinished answer.

    Args:
        response: an answer of the Responses API.
        unknown: ``"raise"`` for a status that no mapping knows, or ``"keep"`` it.
        registry: as for :func:`to_response`.

    Raises:
        MappingError: no mapping knows one of its items.
        PluginError: the provider ``openai_responses`` is not installed, or broken.
        TypeError: it is a canonical answer.
    """
    _need(Response, response, "for a ChatResponse call convert(response, to=...)")
    return normalize(to_json(response), _FORM.provider, unknown=unknown, registry=registry)


def to_events(
    deltas: Iterable[ResponseDelta],
    *,
    id: str | None = None,
    model: str | None = None,
    created: datetime | None = None,
    registry: Registry | None = None,
) -> ConvertedStream[ResponseStreamEvent]:
    """Return *deltas* as typed events of the Responses API. Arguments and errors are those of :func:`convert_stream`."""
    source = deltas if isinstance(deltas, DeltaStream) else Deltas(deltas, id, model, created)
    return ConvertedStream(
        source, _TypedWriter, lambda _, event: parse_event(event, unknown="keep"), registry
    )


def from_events(
    events: Iterable[ResponseStreamEvent], *, unknown: Unknown = "raise", registry: Registry | None = None
) -> DeltaStream:
    """Return the canonical deltas of *events*, with ``response`` at the end. Arguments as for :func:`from_response`.

    Raises:
        PluginError: the provider ``openai_responses`` is not installed, or broken.
        MappingError: while iterating, the events are not a stream of an answer, or end too early.
    """
    frames = (named_frame(to_dict(event)) for event in events)
    return normalize_stream(frames, _FORM.provider, unknown=unknown, registry=registry)


def to_chat_completion(response: Response, *, registry: Registry | None = None) -> Conversion[bytes]:
    """Return *response* as the body of a chat completion, with a report of the fields that it cannot express.

    Raises:
        MappingError: no mapping knows one of its items.
        PluginError: a provider that reads either form is not installed, or broken.
    """
    return convert(from_response(response, registry=registry), WireForm.OPENAI_CHAT, registry=registry)
