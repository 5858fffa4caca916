"""Streams to clients: passed on if client and server speak one format, and otherwise written anew.

A stream that is passed on goes out event by event, unchanged. The service reads it too, for counts, errors and the store.
Four things change on the way. The model carries the client's name if the configuration gives it another one. Token counts
that the client did not ask for stay out. An error shows what a client may see. And the format's sentinel ends the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from crosswalk.convert import Loss, StreamConverter, WireForm, error_body
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service import EventStream, Incoming, Sent
from crosswalk.types import (
    ChatResponse,
    ResponseDelta,
    Segment,
    StreamEvent,
    StreamEventType,
    dump_json,
    load_json,
)
from crosswalk_serve.answers import (
    CustomCalls,
    addressed,
    alias_of,
    name_in_namespaces,
    options_of,
    own_call_id,
    prompt_of,
    rename,
    unsealed,
    with_custom_calls,
)
from crosswalk_serve.http_errors import for_client
from crosswalk_serve.http_reply import media_type

_NAMED: Final = (WireForm.ANTHROPIC, WireForm.OPENAI_RESPONSES)
"""The formats with names for events. The names are the events' types."""
_USUAL: Final = frozenset(
    ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier")
)
"""The members of a chunk that holds nothing but counts."""
_BROKEN: Final = ErrorInfo(ErrorKind.SERVER, "the answer broke off", retryable=True)
_SAY_USAGE_IF_ASKED: Final = (WireForm.OPENAI_CHAT, WireForm.OPENAI_COMPLETIONS)
_SEALED_BEFORE_CALLS: Final = (WireForm.ANTHROPIC, WireForm.GEMINI)
"""The formats whose clients send a seal back if it comes before the calls or with them, and may drop a later one."""


def is_native(incoming: Incoming, sent: Sent) -> bool:
    """Return whether the stream that answers *sent* is in the format of the client."""
    path = sent.path.partition("?")[0]
    return path.endswith(incoming.form.paths) and sent.content_type == media_type(incoming.form)


class Relay:
    """Passes one stream on.

    Args:
        incoming: the client's request.
        sent: the request that the stream answers.

    Attributes:
        losses: the fields that did not go out. Always empty.
    """

    losses: tuple[Loss, ...] = ()

    def __init__(self, incoming: Incoming, sent: Sent) -> None:
        self._form = form = incoming.form
        self._alias = alias_of(incoming, sent.model)
        self._is_chat = form is WireForm.OPENAI_CHAT
        self._hides_usage = self._is_chat and not incoming.wants.include_usage
        self._errors: list[bytes] = []
        self._has_ended = False
        self._number = -1  # of the last event, in Responses

    def frames(self, events: Iterable[bytes]) -> bytes:
        """Return further *events* for the client, as received. An error waits for :meth:`finish` or :meth:`fail`."""
        return b"".join(map(self._frame, events))

    def finish(self) -> bytes:
        """Return the end of a stream that did not fail."""
        self._has_ended = True
        return b"".join(self._errors) + (b"data: [DONE]\n\n" if self._is_chat else b"")

    def fail(self, error: ErrorInfo) -> bytes:
        """Return the end of the stream with *error*, or nothing if the stream has ended."""
        if self._has_ended:
            return b""
        self._has_ended = True
        return error_frame(self._form, error, self._number + 1)

    def _frame(self, data: bytes) -> bytes:
        counts = self._hides_usage and b'"usage"' in data
        if self._alias is None and not counts and self._form not in _NAMED and b'"error"' not in data:
            return _framed(self._form, {}, data)
        event = load_json(data)
        if type(event) is not dict:
            return _framed(self._form, {}, data)
        if _is_error(event):
            self._errors.append(_framed(self._form, event, data))
            return b""
        number = event.get("sequence_number")
        self._number = number if type(number) is int else self._number
        is_changed = rename(event, self._alias)
        if counts and event.get("usage") is not None:
            if event.get("choices") == [] and event.keys() <= _USUAL:
                return b""
            del event["usage"]
            is_changed = True
        return _framed(self._form, event, dump_json(event) if is_changed else data)


def error_frame(form: WireForm, error: ErrorInfo, number: int = 0) -> bytes:
    """Return the event of a stream in *form* that reports *error*. In Responses, it is the event *number*."""
    event = load_json(error_body(error, form).value)
    if form is WireForm.OPENAI_RESPONSES:
        details = {"code": error.code or error.kind.value, "message": error.message, "param": None}
        event = {"type": "error", **details, "sequence_number": number}
    return _framed(form, event, dump_json(event))


def _framed(form: WireForm, event: dict[str, Any], data: bytes) -> bytes:
    """Return the text *data* of *event* with the framing of *form*."""
    if media_type(form) == "application/x-ndjson":
        return data.replace(b"\n", b" ") + b"\n"
    lines = b"".join(b"data: " + line + b"\n" for line in data.splitlines())
    kind = event.get("type") if form in _NAMED else None
    name = f"event: {kind}\n".encode() if type(kind) is str and kind.isprintable() else b""
    return name + lines + b"\n"


def _is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* reports the end of a stream by an error."""
    return bool(event.get("error")) or event.get("type") in ("error", "response.failed")


class StreamWriter:
    """Writes one streamed answer in the client's form. Pass it each event of the service's stream, and send the result.

    Args:
        incoming: what the client has asked.
        partial: gives what has come so far, such as ``lambda: stream.partial``; asked once, with the first event.
        token: as for :func:`addressed`.
        server_model: the server's name for the model.
        seal: gives the seal of the complete answer.

    Attributes:
        losses: what the form could not say, once the stream has ended.
    """

    def __init__(
        self,
        incoming: Incoming,
        partial: Callable[[], ChatResponse],
        token: str = "",
        server_model: str | None = None,
        seal: Callable[[ChatResponse], Segment | None] = lambda response: None,
    ) -> None:
        self._incoming, self._token, self._seal, self._model = incoming, token, seal, server_model
        is_chat = (
            incoming.form is WireForm.OPENAI_CHAT
        )  # its clients cannot add up the pieces of a custom call
        self._names = frozenset[str]() if is_chat else incoming.custom_tools
        self._custom = CustomCalls(self._names)
        self._converter = StreamConverter.of(
            incoming.form,
            lambda: addressed(incoming, partial(), token, server_model),
            request=options_of(incoming),
        )
        self._shows_usage = incoming.wants.include_usage or incoming.form not in _SAY_USAGE_IF_ASKED
        self._prompt = prompt_of(incoming) if incoming.wants.echo else ""
        self._completes = bool(self._prompt or incoming.wants.namespaces)
        self._echoed: set[int] = set()
        self._begun: set[int] = set()  # calls, by index
        self._held: list[ResponseDelta] = []
        self._may_hold = incoming.form in _SEALED_BEFORE_CALLS
        self._is_opaque = False
        self._has_ended = False
        self.losses: tuple[Loss, ...] = ()

    def feed(self, event: StreamEvent) -> bytes:
        """Return the bytes for *event*. The last event ends the stream, and an error does so as the form defines."""
        if self._has_ended:
            return b""
        if event.event_type is StreamEventType.RETRIED:  # what was said is void, and no client can be told
            return self.fail(_BROKEN)
        raw = b"".join(map(self._fed, self._ready(self._custom.of(event.delta))))
        if event.response is not None:
            response = with_custom_calls(event.response, self._names)
            raw += b"".join(map(self._fed, self._ready(self._custom.rest())))
            seal = self._seal(event.response)
            if seal is not None:
                raw += self._fed(ResponseDelta(segment=seal))
                response = attrs.evolve(response, segments=(*response.segments, seal))
            raw += b"".join(map(self._fed, self._held))
            response = addressed(self._incoming, response, self._token, self._model)
            raw += self._frames(self._converter.finish(response))
            losses = self._converter.report.losses
            self.losses = losses if seal is None else unsealed(losses, len(response.segments) - 1)
            self._has_ended = True
        return raw

    def _ready(self, deltas: Iterable[ResponseDelta]) -> Iterator[ResponseDelta]:
        """Return those of *deltas* that may be written now. From the first call on, they wait for the seal.

        There will be a seal if the answer has reasoning or another part with metadata: a signature follows its call.
        """
        for delta in deltas:
            self._is_opaque = self._is_opaque or bool(delta.reasoning_delta or delta.segment)
            if self._held and not self._is_opaque:
                yield from self._held
                self._held, self._may_hold = [], False
            if self._may_hold and (self._held or delta.tool_call_delta is not None):
                self._held.append(delta)
            else:
                yield delta

    def fail(self, error: ErrorInfo) -> bytes:
        """Return the end of the stream with *error*, or nothing if the stream has ended."""
        if self._has_ended:
            return b""
        self._has_ended = True
        return self._frames(self._converter.fail(error))

    def _fed(self, delta: ResponseDelta) -> bytes:
        return self._frames(self._converter.feed(self._with_own_call_id(delta)))

    def _with_own_call_id(self, delta: ResponseDelta) -> ResponseDelta:
        """*delta* with the id that :func:`addressed` gives its call."""
        call = delta.tool_call_delta
        if call is None or not self._token or delta.choice or call.index in self._begun:
            return delta
        self._begun.add(call.index)
        id = call.id or own_call_id(f"call_{call.index}", self._token)
        return attrs.evolve(delta, tool_call_delta=attrs.evolve(call, id=id))

    def _frames(self, events: Iterable[dict[str, Any]]) -> bytes:
        """Return *events* for the client. One that did not ask for counts fails at an event without a choice."""
        frames = []
        for event in events:
            if self._shows_usage or event.get("choices") != [] or "usage" not in event:
                if self._completes:
                    self._complete(event)
                frames.append(self._converter.frame(event))
        return b"".join(frames)

    def _complete(self, event: dict[str, Any]) -> None:
        """Add the parts of the request that no server repeats to *event*: a prompt, namespaces."""
        if self._incoming.wants.namespaces:
            items = [event["item"]] if "item" in event else event.get("response", {}).get("output", ())
            name_in_namespaces([event, *items], self._incoming)
        for choice in event.get("choices", ()) if self._prompt else ():
            if choice["index"] not in self._echoed:
                self._echoed.add(choice["index"])
                choice["text"] = self._prompt + choice["text"]


def written(writer: StreamWriter, events: EventStream) -> bytes:
    """Return the ready *events* in the client's format. An error shows only what a client may see."""
    return b"".join(_frames(writer, event) for event in events.ready)


def _frames(writer: StreamWriter, event: StreamEvent) -> bytes:
    error = None if event.response is None else event.response.error_info
    shown = None if error is None else for_client(error)
    return writer.feed(event) if shown is None or shown is error else writer.fail(shown)


def relayed(writer: Relay, events: EventStream) -> bytes:
    """Return the server's events since the last call, and the end of the stream if it has come."""
    response = events.response if events.has_ended else None
    error = None if response is None else response.error_info
    frames = writer.frames(events.take_frames())
    if error is not None:
        return frames + writer.fail(for_client(error))
    return frames if response is None else frames + writer.finish()
