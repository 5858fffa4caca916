"""Whole answers in the client's form, with what the form could not say, and calls of custom tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

import attrs

from crosswalk import ToolCallArgumentsError
from crosswalk.convert import Loss, WireForm, convert
from crosswalk.formats.writing import form_of_body, source_form
from crosswalk.service import Incoming, message_of
from crosswalk.types import (
    CallKind,
    ChatResponse,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCall,
    ToolCallDelta,
    dump_json,
    load_json,
)

_SEALED: Final = re.compile(r"segments|segments\[\d+\]\.metadata\.(signature|encrypted)")
"""The losses that a seal makes up for: opaque values, and the order of the parts with the seal among them."""


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


def unsealed(losses: Iterable[Loss], position: int) -> tuple[Loss, ...]:
    """Return *losses* without the seal itself, at its *position*, and the opaque values, which it carries."""
    own = f"segments[{position}]"
    return tuple(loss for loss in losses if not (loss.path.startswith(own) or _SEALED.fullmatch(loss.path)))


def whole(
    incoming: Incoming,
    response: ChatResponse,
    token: str = "",
    seal: Callable[[ChatResponse], Segment | None] = lambda response: None,
    *,
    is_mixed: bool = False,
) -> Written:
    """Return *response* as a body for the client of *incoming*. A body in the client's format goes out as it came.

    Args:
        incoming: the client's request.
        response: the answer. The body of an error response is that of an error.
        token: as for :func:`addressed`.
        seal: returns the seal of the answer.
        is_mixed: whether other providers may get the answer back, so that one with a seal is written anew with it.

    Raises:
        ConversionError: the answer holds text that is not valid JSON.
    """
    shown, wants = with_custom_calls(response, incoming.custom_tools), incoming.wants
    model = response.attempts[-1].model if response.attempts else None
    is_marked = is_mixed and seal(response) is not None
    native = native_body(incoming, response) if shown is response and not is_marked else None
    if native is not None:
        written, is_renamed = (
            Written(response.raw_events.frames[0]),
            rename(native, alias_of(incoming, model)),
        )
    else:
        shown = addressed(incoming, shown, token, model)
        written, is_renamed = _converted(incoming, shown, seal(response)), False
    if written.status != 200 or not (is_renamed or wants.echo or wants.namespaces):
        return written
    raw = native or load_json(written.body)
    for choice in raw["choices"] if wants.echo else ():
        choice["text"] = prompt_of(incoming) + (choice.get("text") or "")
    if wants.namespaces:
        name_in_namespaces(raw.get("output") or (), incoming)
    return attrs.evolve(written, body=dump_json(raw))


def native_body(incoming: Incoming, response: ChatResponse) -> dict[str, Any] | None:
    """Return the JSON of *response*, or ``None`` if it was a stream or is not in the client's format."""
    raw = response.raw_events[0] if len(response.raw_events) == 1 else None
    return raw if form_of_body(raw) is incoming.form else None


def _converted(incoming: Incoming, response: ChatResponse, seal: Segment | None) -> Written:
    """Return *response* in the client's format with its *seal*."""
    options = options_of(incoming)
    made = convert(response, incoming.form, request=options)
    if seal is None:
        return Written(made.value, made.status, made.report.losses)
    losses = unsealed(made.report.losses, len(response.segments))
    body = convert(sealed(response, seal), incoming.form, request=options).value
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


def name_in_namespaces(items: Iterable[dict[str, Any]], incoming: Incoming) -> None:
    """Name the tool of each call in *items* as the client has it: in its namespace, with its name there."""
    for item in items:
        namespace, name = incoming.wants.namespaces.get(item.get("name", ""), (None, None))
        kind = item.get("type") or ""
        if name is not None and "call" in kind:
            item["name"] = name
        if namespace is not None and kind in ("function_call", "custom_tool_call"):
            item.setdefault("namespace", namespace)


def options_of(incoming: Incoming) -> dict[str, Any]:
    """The options that the answer repeats; the gateway stores an answer of Responses unless it is told not to."""
    return {**incoming.request.said, "store": incoming.wants.store is not False}


def prompt_of(incoming: Incoming) -> str:
    """The text that a completion goes on with."""
    return message_of(incoming.request.asked.messages[-1]).text


def addressed(
    incoming: Incoming, response: ChatResponse, token: str, server_model: str | None
) -> ChatResponse:
    """*response* under an id that no other one has, where the client of *incoming* may go on from it by that.

    A server may give an id twice: Ollama's OpenAI layer draws a number below 1,000. That of an answer of Responses stays:
    its server may keep it, too. A call without an id, as Gemini's often are, gets one that no call of another answer has:
    Claude Code takes two calls of one id for one. It also drops the signed thinking of a model that it did not ask for, so
    an answer of another format in Messages has the client's name of the model, as every answer has under an alias.

    Args:
        incoming: what the client has asked.
        response: the answer, or what has come of it.
        token: what no other answer has; without one, the id stays.
        server_model: the server's name for the model.
    """
    form, alias = incoming.form, alias_of(incoming, server_model)
    if form is WireForm.ANTHROPIC and source_form(response) is not form:
        alias = incoming.request.model
    if alias is not None:
        response = _named(response, alias)
    if not token:
        return response
    response = _with_own_call_ids(response, token)
    if form is not WireForm.OPENAI_RESPONSES or response.metadata.provider_id == form.provider:
        return response
    return attrs.evolve(response, id=f"{response.id}-{token}")


def _named(response: ChatResponse, model: str) -> ChatResponse:
    """Return *response* with the name *model*, whether its server has named the model or not."""
    metadata = response.metadata
    known = {path: mark for path, mark in metadata.provenance.items() if path != "model"}
    return attrs.evolve(response, model=model, metadata=attrs.evolve(metadata, provenance=known))


def own_call_id(id: str, token: str) -> str:
    """Return *id*, which the gateway has made up, with the part of *token* that no other answer has."""
    return f"{id}_{token.replace('-', '')[:12]}"


def _with_own_call_ids(response: ChatResponse, token: str) -> ChatResponse:
    """*response* with new ids for the calls to which its server gave none."""
    origins = response.metadata.provenance
    ids = {
        call.id: own_call_id(call.id, token)
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


# Custom tools: a client's tools that take free text. Most servers need functions with one string instead. The server gets a
# function with one argument, ``input``, and the client gets its call as a custom call.


def _as_custom(call: ToolCall) -> ToolCall:
    """Return *call* of such a function as a custom call, or unchanged if its arguments differ."""
    try:
        arguments = call.parsed()
    except ToolCallArgumentsError:
        return call
    text = arguments.get("input")
    if arguments.keys() != {"input"} or not isinstance(text, str):
        return call
    return attrs.evolve(call, arguments=text, kind=CallKind.CUSTOM)


def with_custom_calls(response: ChatResponse, names: Collection[str]) -> ChatResponse:
    """Return *response* with the calls of the tools *names* as custom calls."""
    calls = [_as_custom(call) if call.name in names else call for call in response.tool_calls]
    if tuple(calls) == response.tool_calls:
        return response
    texts = {
        (old.id, old.arguments): new.arguments for old, new in zip(response.tool_calls, calls, strict=True)
    }
    segments = [_with_text(segment, texts) for segment in response.segments]
    return attrs.evolve(response, message=attrs.evolve(response.message, tool_calls=calls), segments=segments)


def _with_text(segment: Segment, texts: dict[tuple[str, str], str]) -> Segment:
    key = (str(segment.metadata.get("id")), segment.content)
    if segment.type is not SegmentType.TOOL_CALL or key not in texts:
        return segment
    return attrs.evolve(segment, content=texts[key])


class CustomCalls:
    """Buffers the calls of custom tools in a stream, because their input is known only with the complete arguments.

    Args:
        names: the names of the custom tools.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held: dict[tuple[int, int], list[ToolCallDelta]] = {}  # by choice and index

    def of(self, delta: ResponseDelta | None) -> Iterator[ResponseDelta]:
        """Return the part of *delta* that may be written now."""
        if delta is None:
            return
        call = delta.tool_call_delta
        if call is not None and self._is_held(delta.choice, call):
            self._held.setdefault((delta.choice, call.index), []).append(call)
            if not any(getattr(delta, name) for name in _OTHERS):
                return
            delta = attrs.evolve(delta, tool_call_delta=None)
        if delta.finish_reason is not None:
            yield from self.rest()
        yield delta

    def _is_held(self, choice: int, call: ToolCallDelta) -> bool:
        return (choice, call.index) in self._held or (call.name in self._names and call.kind is None)

    def rest(self) -> Iterator[ResponseDelta]:
        """Return the buffered calls."""
        buffered, self._held = self._held, {}
        for (choice, index), fragments in buffered.items():
            id = next((one.id for one in fragments if one.id), None)
            name = next((one.name for one in fragments if one.name), None)
            text = "".join(one.arguments_delta or "" for one in fragments)
            call = _as_custom(ToolCall(id or "-", name or "-", text))
            whole = ToolCallDelta(index, id, name, call.arguments, call.kind)
            yield ResponseDelta(tool_call_delta=whole, choice=choice)


_OTHERS: Final = (
    *("content_delta", "finish_reason", "usage", "reasoning_delta", "refusal_delta", "segment"),
    *("raw_finish_reason", "logprobs", "extensions"),
)
"""The other fields of a delta with a fragment of a call."""
