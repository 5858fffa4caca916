"""Canonical answers as typed values of the Responses API, and back, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from crosswalk.convert.conversion import Conversion, as_received, convert, read_back, written
from crosswalk.convert.losses import losses as find_losses
from crosswalk.convert.report import ConversionReport
from crosswalk.convert.streams import ConvertedStream, Deltas
from crosswalk.formats.responses import ResponsesWriter, is_item
from crosswalk.formats.writing import Event, WireForm, json_of, named_frame
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.normalize import DeltaStream, normalize, normalize_stream
from crosswalk.plugin.registry import Registry
from crosswalk.responses.reading import parse, parse_event, parse_response, to_dict, to_json
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponsesParseError
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.responses.events import ResponseStreamEvent


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
    """
    received = as_received(response, _FORM, registry)
    if received is not None:
        try:
            return Conversion(parse_response(received.value, unknown="keep"), received.report)
        except ResponsesParseError:
            pass  # its writer writes as much as it can
    writer = written(response, _TypedWriter, registry)
    body = writer.response()
    losses = find_losses(response, read_back(writer, json_of(body), 200, registry))
    return Conversion(parse_response(body, unknown="keep"), ConversionReport.of(_FORM, losses))


def from_response(
    response: Response, *, unknown: Unknown = "raise", registry: Registry | None = None
) -> ChatResponse:
    """Return *response* as a canonical answer.

    Args:
        response: an answer of the Responses API.
        unknown: ``"raise"`` for a status that no mapping knows, or ``"keep"`` it.
        registry: as for :func:`to_response`.

    Raises:
        MappingError: it is not a complete answer: it is queued or in progress.
        PluginError: the provider ``openai_responses`` is not installed, or broken.
    """
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
        MappingError: it is not a complete answer: it is queued or in progress.
        PluginError: a provider that reads either form is not installed, or broken.
    """
    return convert(from_response(response, registry=registry), WireForm.OPENAI_CHAT, registry=registry)
