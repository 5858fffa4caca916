"""What is known of one exchange: the canonical record that sinks are given."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs

from crosswalk.errors import CrosswalkError
from crosswalk.types import ChatResponse
from crosswalk_observe.context import Labels

__all__ = ["ObservedExchange", "ObservedRequest"]


@attrs.frozen(kw_only=True, eq=False)
class ObservedRequest:
    """What was asked; nothing in it is a credential.

    Attributes:
        model: the model that was asked for; ``None`` where the request does not say.
        options: the options of the JSON body that are known, in the words of the wire, such as ``temperature`` or
            ``max_tokens``; nothing that holds content or names a user.
        headers: by their names in lower case; the values of those that hold credentials are ``<secret>``.
        body: the JSON body as it was sent; ``None`` where it was something else, was sent as a stream, or was longer than
            what is kept.
    """

    model: str | None = None
    options: Mapping[str, Any] = attrs.field(
        factory=dict, repr=lambda options: f"{{{', '.join(sorted(options))}}}"
    )
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    body: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True, eq=False)
class ObservedExchange:
    """One exchange with a model's server, as far as it came.

    Attributes:
        id: made up here; the response has it too, where the provider sends none.
        provider: the provider id.
        method: the HTTP method.
        url: where it went, without user, password, fragment and the secrets of its query.
        host: the server's name.
        port: its port.
        request: what was asked.
        status: the HTTP status; ``None`` where no answer began.
        headers: those of the answer, by their names in lower case, without credentials.
        body: the bytes of the answer, unpacked where they came compressed.
        is_cut: whether more came than is kept.
        is_complete: whether the body came to its end, as HTTP or the provider's own words have it, and all of it is kept.
        response: what they say, with the times that were measured and the one attempt; an error response where the server or
            the connection failed, ``cancelled`` where the application left, each with what came. ``None`` where a plugin
            failed at it.
        error: why the answer could not be read to its end; ``None`` where it could, also when it tells an error.
        is_stream: whether a stream was asked for, or came.
        is_cancelled: whether the application left before the answer was at its end.
        resend_count: how many attempts at the same request the SDK says to have made before.
        operation: what was asked for, such as ``chat``, ``text_completion`` or ``embeddings``.
        gives_answer: whether that is a chat answer. Of embeddings, images, rerank and the like there are status, model,
            tokens and errors, but neither bodies nor a response, unless it is an error.
        tokens: those that the body of such an exchange counts, as ``input`` and ``output``.
        labels: what the program says of the request with :func:`~crosswalk_observe.watching`.
        trace_id: the trace of OpenTelemetry that the request belongs to, in hex; ``None`` where there is none.
        span_id: the span that was current while the request was sent, which is that of an ``OpenTelemetrySink``, in hex.
        began: when the request was sent, in UTC.
        duration: from then to the end of the answer.
        time_to_first_chunk: from then to the first bytes of the answer's body; ``None`` where none came.
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
    labels: Labels = attrs.field(factory=Labels)
    trace_id: str | None = None
    span_id: str | None = None
    began: datetime
    duration: timedelta
    time_to_first_chunk: timedelta | None = None
