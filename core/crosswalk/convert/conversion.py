"""Conversion of whole answers between wire forms, each with a report of the fields that the form cannot express.

The written answer is read back, as any client of Crosswalk would, and compared with the original. The report lists the
differences between the two readings. So every loss is reported, whatever an answer holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import attrs

from crosswalk.convert.carried import MEMBER, carried, member_of, reader_of
from crosswalk.convert.losses import losses as find_losses, losses_beside
from crosswalk.convert.report import ConversionReport, DangerousLossError
from crosswalk.errors import CrosswalkError, ErrorInfo, LimitError, MappingError, PluginError
from crosswalk.formats.chat import ChatWriter, CompletionsWriter
from crosswalk.formats.gemini import GeminiWriter
from crosswalk.formats.messages import MessagesWriter
from crosswalk.formats.ollama import OllamaChatWriter, OllamaGenerateWriter
from crosswalk.formats.responses import ResponsesWriter
from crosswalk.formats.writing import (
    ConversionError,
    Event,
    Heading,
    WireForm,
    Writer,
    error_status,
    form_of_body,
    json_of,
    pieces_of,
    source_form,
)
from crosswalk.mapping.normalize import normalize
from crosswalk.mapping.reader import drain
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import altered
from crosswalk.wire.framing import Limits

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


def convert(
    response: ChatResponse,
    to: WireForm | str,
    *,
    request: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    carry: bool = False,
    losses: LossPolicy = "refuse",
) -> Conversion[bytes]:
    """Return *response* as the body of another wire form. If it carries another answer, that one is converted.

    Args:
        response: the answer of any provider.
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
        ConversionError: there is no such form, or *response* holds text that is not valid JSON, or extensions of another
            shape than its own form has.
        PluginError: the form's provider is not installed, or broken.
    """
    form = WireForm.of(to)
    response = original_of(response, registry)
    received = as_received(response, form, registry)
    if received is not None:
        return received
    writer = written(response, WRITERS[form], registry, request)
    body = writer.body()
    error = response.error_info
    status = error_status(error) if error is not None and writer.is_error_body else 200
    read = read_back(writer, json_of(body), status, registry)
    report = ConversionReport.of(form, find_losses(response, read), is_carried=carry)
    check_losses(report, losses)
    if carry:
        body[MEMBER] = member_of(response, read, partial(body_in, registry))
    return Conversion(json_of(body), report, status)


LossPolicy: TypeAlias = Literal["refuse", "report"]
"""How a conversion treats dangerous losses."""


def check_losses(report: ConversionReport, policy: LossPolicy) -> None:
    """Raise for the dangerous losses of *report*, unless they are carried or the *policy* allows them.

    Raises:
        DangerousLossError: there are some. ConversionError: there is no such policy.
    """
    if policy not in get_args(LossPolicy):
        raise ConversionError(f"losses: one of {', '.join(get_args(LossPolicy))}")
    if policy == "refuse" and report.dangerous and not report.is_carried:
        raise DangerousLossError(report.form.label, report.dangerous)


def original_of(response: ChatResponse, registry: Registry | None) -> ChatResponse:
    """Return the answer that *response* carries, or *response* itself if it carries none or was changed since."""
    reader = reader_of(response)
    if reader is None:
        return response
    read, frames = response, response.raw_events.frames
    if reader != response.metadata.provider_id and len(frames) == 1:
        try:
            read = _read(frames[0], reader, registry)
        except CrosswalkError:
            return response
    return carried(read, partial(body_in, registry)) or response


def body_in(registry: Registry | None, response: ChatResponse, form: WireForm) -> Event:
    """Return *response* as a body of *form*, written without regard to its bytes."""
    return written(response, WRITERS[form], registry).body()


def error_body(info: ErrorInfo, to: WireForm | str) -> Conversion[bytes]:
    """Return the body of an HTTP error with *info* in another form, and its status: the provider's own, else the usual one.

    Raises:
        ConversionError: there is no such form.
    """
    form = WireForm.of(to)
    return Conversion(json_of(WRITERS[form].error_event(info)), ConversionReport(form), error_status(info))


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
    return Conversion(frames[0], ConversionReport.of(form, losses_beside(response, again)))


def read_back(writer: Writer, body: bytes, status: int, registry: Registry | None) -> ChatResponse:
    """Read *body*, which *writer* has written, with the form's own reader, or else with any reader."""
    form, own = writer.form, None if writer.is_error_body else writer.heading.own
    for provider in [*([own.provider] if own is not None else []), form.provider]:
        with suppress(MappingError):
            return _read(body, provider, registry, status=status)
    raise ConversionError(f"what the answer keeps of {form.label} has another shape there")


def _read(body: bytes, provider: str, registry: Registry | None, **options: Any) -> ChatResponse:
    # Within the usual limits first: then a body may be read by its likeness to an earlier one.
    with suppress(LimitError):
        return normalize(body, provider, registry=registry, **options, **GENEROUS)
    return normalize(body, provider, registry=registry, limits=UNLIMITED, **options, **GENEROUS)


def written(
    response: ChatResponse,
    kind: type[W],
    registry: Registry | None,
    request: Mapping[str, Any] | None = None,
) -> W:
    """Return a closed writer with all of *response* in it."""
    writer = kind(lambda: heading_of(response, kind.form, registry, request), whole=True)
    others = {alternative.index: alternative for alternative in reversed(response.alternatives)}
    answers: dict[int, ChatResponse | Alternative] = {**others, 0: response}  # one number, one answer
    for index, answer in sorted(answers.items()):
        if answer.logprobs:
            writer.tokens(answer.logprobs, index)
        for piece in pieces_of(answer.message, answer.segments, choice=index):
            drain(writer.piece(piece))
        writer.end(answer.finish_reason, answer.raw_finish_reason, index)
    drain(ending(writer, response))
    return writer


def ending(writer: Writer, response: ChatResponse) -> Iterator[Event]:
    """Yield the events with which *response* ends, after setting its token counts and duration."""
    if response.metadata.provenance.get("usage") not in (Provenance.ABSENT, Provenance.CUT):
        writer.usage = response.usage
    writer.duration = response.metadata.request_duration
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
    made_up, own = metadata.provenance, None
    id, created = response.id, response.created
    model = "" if made_up.get("model") is Provenance.ABSENT else response.model
    if source_form(response) is (WireForm.OLLAMA if form is WireForm.OLLAMA_GENERATE else form):
        try:
            own = known_registry(registry).mapper(metadata.provider_id)
        except PluginError:
            own = known_registry(registry).mapper(form.provider)
        id = "" if made_up.get("id") is Provenance.SYNTHETIC else id
        created = _EPOCH if made_up.get("created") is Provenance.SYNTHETIC else created
    return Heading(id, model, created, metadata.extensions, own, request or {})


def known_registry(registry: Registry | None) -> Registry:
    """*registry*, or the one of this process for ``None``."""
    return default_registry if registry is None else registry
