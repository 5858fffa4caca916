"""The canonical record of an exchange, as sinks receive it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.types import ChatResponse, Cost
from crosswalk_observe.context import Labels


@attrs.frozen(kw_only=True, eq=False)
class ObservedRequest:
    """A request, without credentials.

    Attributes:
        model: the requested model, or ``None`` if the request names none.
        options: the known options of the JSON body, with the provider's names, such as ``temperature`` or ``max_tokens``.
            They contain no content and no user.
        headers: the headers by lower-case name. The values of credentials are ``<secret>``.
        body: the JSON body as it was sent, or ``None`` if it was not JSON, was sent as a stream, or exceeded the limit.
    """

    model: str | None = None
    options: Mapping[str, Any] = attrs.field(
        factory=dict, repr=lambda options: f"{{{', '.join(sorted(options))}}}"
    )
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    body: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True, eq=False)
class ObservedExchange:
    """An exchange with a model's server, complete or as far as it got.

    Attributes:
        id: a generated id. The response has it too if the provider sends none.
        provider: the provider id.
        method: the HTTP method.
        url: the URL, without user, password, fragment and the secrets of its query.
        host: the name of the server.
        port: the port of the server.
        request: the request.
        status: the HTTP status, or ``None`` if no answer began.
        headers: the headers of the answer by lower-case name, without credentials.
        body: the bytes of the answer, decompressed.
        is_cut: whether the answer was longer than the limit, so that the rest is missing.
        is_complete: whether the body reached its end, by HTTP or by the provider's end marker, and is stored completely.
        response: the canonical response, with the measured times and one attempt. It is an error response if the server or
            the connection failed, and ``cancelled`` if the application stopped reading, each with the partial answer.
            ``None`` if a plugin failed.
        error: why the answer could not be read to its end, or ``None``. An answer that reports an error has ``None`` too.
        is_stream: whether a stream was requested or received.
        is_cancelled: whether the application stopped reading before the end of the answer.
        resend_count: the number of earlier attempts at the same request, as the SDK reports it.
        operation: the requested operation, such as ``chat``, ``text_completion`` or ``embeddings``.
        gives_answer: whether the operation returns a chat answer. Embeddings, images, rerank and the like have a status, a
            model, tokens and errors, but neither bodies nor a response, unless it is an error.
        tokens: the ``input`` and ``output`` tokens of such an operation.
        cost: the provider's own cost, or an estimate by list prices, which is ``derived``, or ``None``. See
            :class:`~crosswalk_observe.Watcher`.
        labels: the labels of the request, set with :func:`~crosswalk_observe.watching`.
        trace_id: the OpenTelemetry trace of the request in hex, or ``None``.
        span_id: the span that was current while the request was sent, in hex. With an ``OpenTelemetrySink`` it is its span.
        began: when the request was sent, in UTC.
        duration: the time from then to the end of the answer.
        time_to_first_chunk: the time from then to the first bytes of the body, or ``None`` if none arrived.
        chunk_times: the seconds from then to each piece of the body, as it arrived.
    """

    id: str
    provider: str
    method: str
    url: str
    host: str
    port: int
    request: ObservedRequest
    status: int | None
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    is_cut: bool = False
    is_complete: bool = True
    response: ChatResponse | None = None
    error: CrosswalkError | None = attrs.field(
        default=None, repr=lambda error: error and type(error).__name__
    )
    is_stream: bool = False
    is_cancelled: bool = False
    resend_count: int = 0
    operation: str = "chat"
    gives_answer: bool = True
    tokens: Mapping[str, int] = attrs.field(factory=dict)
    cost: Cost | None = None
    labels: Labels = attrs.field(factory=Labels)
    trace_id: str | None = None
    span_id: str | None = None
    began: datetime
    duration: timedelta
    time_to_first_chunk: timedelta | None = None
    chunk_times: tuple[float, ...] = attrs.field(default=(), repr=False)
