"""Answers and errors in the client's form: whole, as a stream, with what the form could not say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from crosswalk.convert import Loss, StreamConverter, WireForm, convert
from crosswalk.convert.source import source_form
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service import Incoming, message_of
from crosswalk.types import (
    ChatResponse,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    StreamEvent,
    StreamEventType,
    dump_json,
    load_json,
)
from crosswalk_serve.custom_tools import CustomCalls, with_custom_calls

__all__ = [
    "StreamWriter",
    "Written",
    "addressed",
    "alias_of",
    "rename",
    "whole",
]

_BROKEN: Final = ErrorInfo(ErrorKind.SERVER, "the answer broke off", retryable=True)
_SAY_USAGE_IF_ASKED: Final = (WireForm.OPENAI_CHAT, WireForm.OPENAI_COMPLETIONS)
_SEALED: Final = re.compile(r"segments|segments\[\d+\]\.metadata\.(signature|encrypted)")
"""The losses that a seal makes up for: opaque values, and the order of the parts with the seal among them."""
_SEALED_BEFORE_CALLS: Final = (WireForm.ANTHROPIC, WireForm.GEMINI)
"""The formats whose clients send a seal back if it comes before the calls or with them, and may drop a later one."""


@attrs.frozen
class Written:
    """An answer as it goes to the client.

    Attributes:
        body: the JSON text.
        status: the HTTP status.
        losses: what the form could not say.
    """

    body: bytes
    status: int = 200
    losses: tuple[Loss, ...] = ()


def sealed(response: ChatResponse, seal: Segment) -> ChatResponse:
    """Return *response* with its *seal* after the first reasoning, or before all other parts."""
    segments = list(response.segments)
    reasoning = (number for number, one in enumerate(segments) if one.type is SegmentType.REASONING)
    position = next(reasoning, -1) + 1
    return attrs.evolve(response, segments=(*segments[:position], seal, *segments[position:]))


def _unsealed(losses: Iterable[Loss], position: int) -> tuple[Loss, ...]:
    """Return *losses* without the seal itself, at its *position*, and the opaque values, which it carries."""
    own = f"segments[{position}]"
    return tuple(loss for loss in losses if not (loss.path.startswith(own) or _SEALED.fullmatch(loss.path)))


def whole(incoming: Incoming, response: ChatResponse, seal: Segment | None = None) -> Written:
    """*response* as the body that the client of *incoming* is waiting for; an error response as that of an error.

    Raises:
        ConversionError: it holds what JSON cannot.
    """
    response, options = with_custom_calls(response, incoming.wants.custom_tools), _options(incoming)
    made = convert(response, incoming.form, request=options)
    losses = made.report.losses
    frames = response.raw_events.frames
    is_foreign = len(frames) != 1 or made.value != frames[0]  # the client's form is not the server's
    if seal is not None and is_foreign:
        made = convert(sealed(response, seal), incoming.form, request=options)
        losses = _unsealed(losses, len(response.segments))
    body = made.value
    alias = alias_of(incoming, response.attempts[-1].model if response.attempts else None)
    if made.status == 200 and (incoming.wants.echo or incoming.wants.namespaces or alias):
        raw = load_json(body)
        rename(raw, alias)
        for choice in raw["choices"] if incoming.wants.echo else ():
            choice["text"] = _prompt(incoming) + choice["text"]
        if incoming.wants.namespaces:
            _name_in_namespaces(raw["output"], incoming)
        body = dump_json(raw)
    return Written(body, made.status, losses)


def alias_of(incoming: Incoming, server_model: str | None) -> str | None:
    """Return the client's name for the model, or ``None`` if the server was asked for the same name."""
    name = incoming.request.model
    return name if server_model is not None and name != server_model else None


def rename(event: dict[str, Any], alias: str | None) -> bool:
    """Give the model of *event*, or of a whole answer, the name *alias*. Return whether it had a name."""
    is_changed = False
    for holder in (event, event.get("message"), event.get("response")) if alias is not None else ():
        if type(holder) is dict and type(holder.get("model")) is str:
            holder["model"], is_changed = alias, True
    return is_changed


def _name_in_namespaces(items: Iterable[dict[str, Any]], incoming: Incoming) -> None:
    """Name the tool of each call in *items* as the client has it: in its namespace, with its name there."""
    for item in items:
        namespace, name = incoming.wants.namespaces.get(item.get("name", ""), (None, None))
        if name is not None and "call" in item["type"]:
            item["name"] = name
        if namespace is not None and item["type"] in ("function_call", "custom_tool_call"):
            item.setdefault("namespace", namespace)


def _options(incoming: Incoming) -> dict[str, Any]:
    """The options that the answer repeats; the gateway stores an answer of Responses unless it is told not to."""
    return {**incoming.request.said, "store": incoming.wants.store is not False}


def _prompt(incoming: Incoming) -> str:
    """The text that a completion goes on with."""
    return message_of(incoming.request.asked.messages[-1]).text


def addressed(incoming: Incoming, response: ChatResponse, token: str) -> ChatResponse:
    """*response* under an id that no other one has, where the client of *incoming* may go on from it by that.

    A server may give an id twice: Ollama's OpenAI layer draws a number below 1,000. That of an answer of Responses stays:
    its server may keep it, too. A call without an id, as Gemini's often are, gets one that no call of another answer has:
    Claude Code takes two calls of one id for one. It also drops the signed thinking of a model that it did not ask for, so
    an answer of another format in Messages has the client's name of the model.

    Args:
        incoming: what the client has asked.
        response: the answer, or what has come of it.
        token: what no other answer has; without one, the id stays.
    """
    form = incoming.form
    if not token:
        return response
    response = _with_own_call_ids(response, token)
    if form is WireForm.ANTHROPIC and source_form(response) is not form:
        return attrs.evolve(response, model=incoming.request.model or response.model)
    if form is not WireForm.OPENAI_RESPONSES or response.metadata.provider_id == form.provider:
        return response
    return attrs.evolve(response, id=f"{response.id}-{token}")


def _own_call_id(id: str, token: str) -> str:
    return f"{id}_{token.replace('-', '')[:12]}"


def _with_own_call_ids(response: ChatResponse, token: str) -> ChatResponse:
    """*response* with new ids for the calls to which its server gave none."""
    origins = response.metadata.provenance
    ids = {
        call.id: _own_call_id(call.id, token)
        for number, call in enumerate(response.tool_calls)
        if origins.get(f"message.tool_calls[{number}].id") is Provenance.SYNTHETIC
    }
    if not ids:
        return response
    calls = [attrs.evolve(call, id=ids.get(call.id, call.id)) for call in response.tool_calls]
    segments = [
        attrs.evolve(one, metadata={**one.metadata, "id": ids[str(one.metadata["id"])]})
        if one.type is SegmentType.TOOL_CALL and one.metadata.get("id") in ids
        else one
        for one in response.segments
    ]
    message = attrs.evolve(response.message, tool_calls=calls)
    return attrs.evolve(response, message=message, segments=segments)


class StreamWriter:
    """Writes one streamed answer in the client's form: give it each event of the service's stream, and send what it gives.

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
        self._incoming, self._token, self._seal = incoming, token, seal
        self._alias = alias_of(incoming, server_model)
        is_chat = (
            incoming.form is WireForm.OPENAI_CHAT
        )  # its clients cannot add up the pieces of a custom call
        self._names = frozenset[str]() if is_chat else incoming.wants.custom_tools
        self._custom = CustomCalls(self._names)
        self._converter = StreamConverter.of(
            incoming.form,
            lambda: addressed(incoming, partial(), token),
            request=_options(incoming),
        )
        self._shows_usage = incoming.wants.include_usage or incoming.form not in _SAY_USAGE_IF_ASKED
        self._prompt = _prompt(incoming) if incoming.wants.echo else ""
        self._echoed: set[int] = set()
        self._begun: set[int] = set()  # calls, by index
        self._held: list[ResponseDelta] = []
        self._may_hold = incoming.form in _SEALED_BEFORE_CALLS
        self._is_opaque = False
        self._has_ended = False
        self.losses: tuple[Loss, ...] = ()

    def feed(self, event: StreamEvent) -> bytes:
        """What *event* makes; the last one ends the stream, an error in the form's own way."""
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
            raw += self._frames(self._converter.finish(addressed(self._incoming, response, self._token)))
            losses = self._converter.report.losses
            self.losses = losses if seal is None else _unsealed(losses, len(response.segments) - 1)
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
        """What ends the stream with *error*; nothing where it has ended."""
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
        id = call.id or _own_call_id(f"call_{call.index}", self._token)
        return attrs.evolve(delta, tool_call_delta=attrs.evolve(call, id=id))

    def _frames(self, events: Iterable[dict[str, Any]]) -> bytes:
        return b"".join(
            self._converter.frame(self._completed(event)) for event in events if self._is_shown(event)
        )

    def _completed(self, event: dict[str, Any]) -> dict[str, Any]:
        """*event* with what the client has said of its request and no server repeats: a prompt, namespaces."""
        rename(event, self._alias)
        if self._incoming.wants.namespaces:
            items = [event["item"]] if "item" in event else event.get("response", {}).get("output", ())
            _name_in_namespaces([event, *items], self._incoming)
        return self._echoing(event)

    def _echoing(self, event: dict[str, Any]) -> dict[str, Any]:
        """*event*, with the prompt before what is the first of an answer."""
        for choice in event.get("choices", ()) if self._prompt else ():
            if choice["index"] not in self._echoed:
                self._echoed.add(choice["index"])
                choice["text"] = self._prompt + choice["text"]
        return event

    def _is_shown(self, event: dict[str, Any]) -> bool:
        """Whether the client gets *event*: the counts alone, with no choice, make clients fail that did not ask for them."""
        return self._shows_usage or event.get("choices") != [] or "usage" not in event
