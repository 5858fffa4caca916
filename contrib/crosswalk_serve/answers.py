"""Answers in the client's form, whole and streamed: passed on if client and server speak one format, else written anew."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from crosswalk import ToolCallArgumentsError
from crosswalk.convert import (
    DangerousLossError,
    Loss,
    StreamConverter,
    WireForm,
    convert,
    error_body,
    original_of,
)
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.formats.writing import form_of_body, pieces_of, response_error, source_form
from crosswalk.service import (
    Adaptation,
    AdaptationKind,
    EventStream,
    Incoming,
    Sent,
    adaptations_of,
    message_of,
)
from crosswalk.text import Redact
from crosswalk.types import (
    CallKind,
    ChatResponse,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    StreamEvent,
    StreamEventType,
    ToolCall,
    ToolCallDelta,
    dump_json,
    load_json,
)
from crosswalk.types.json import thaw
from crosswalk.types.values import altered
from crosswalk.wire.responses import OPEN_RESPONSES
from crosswalk_serve.http import dumped, for_client, info_of, loaded, media_type, named, redact_json, worded

# --------------------------------------------------------------------------------- answers
# Whole answers in the client's form, with what the form could not say, and calls of custom tools.


_OPEN_VERSION: Final = "openresponses-version"
"""The header of a client that speaks Open Responses."""
_OPENAI: Final = {theirs: ours for ours, theirs in OPEN_RESPONSES.items()}
_CALL_ITEMS: Final = ("function_call", "custom_tool_call")
"""The items of Responses for a client's calls."""
_SEALED_PATHS: Final = re.compile(
    r"segments|segments\[\d+\]\.metadata\.(signature|encrypted|encrypted_index)"
)
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


def carried(response: ChatResponse) -> ChatResponse:
    """Return the answer that *response* carries, as what its server gave, or *response* itself if it carries none."""
    original = original_of(response)
    return response if original is response else attrs.evolve(original, attempts=response.attempts)


def sealed(response: ChatResponse, seal: Segment) -> ChatResponse:
    """Return *response* with its *seal* after the first reasoning, or before all other parts."""
    segments = list(response.segments)
    reasoning_positions = (number for number, one in enumerate(segments) if one.type is SegmentType.REASONING)
    position = next(reasoning_positions, -1) + 1
    return attrs.evolve(response, segments=(*segments[:position], seal, *segments[position:]))


def unsealed(losses: Iterable[Loss], segments: Sequence[Segment], position: int) -> tuple[Loss, ...]:
    """Return *losses* without what the seal makes up for: itself, at its *position* among *segments*, and opaque values.

    Reasoning that is nothing but an opaque value is one, too: no client can read it.
    """
    mute_paths = {
        f"segments[{number}]"
        for number, one in enumerate(segments)
        if number == position or (one.type is SegmentType.REASONING and not one.content)
    }
    return tuple(
        loss
        for loss in losses
        if not (loss.path.partition(".")[0] in mute_paths or _SEALED_PATHS.fullmatch(loss.path))
    )


def whole(
    incoming: Incoming,
    response: ChatResponse,
    token: str = "",
    seal: Callable[[ChatResponse], Segment | None] = lambda response: None,
    *,
    is_mixed: bool = False,
    redact: Redact = str,
) -> Written:
    """Return *response* as a body for the client of *incoming*. A body in the client's format goes out as it came.

    Args:
        incoming: the client's request.
        response: the answer. The body of an error response is that of an error.
        token: as for :func:`addressed`.
        seal: returns the seal of the answer.
        is_mixed: whether other providers may get the answer back, so that one with a seal is written anew with it.
        redact: removes credentials from an error, because servers may repeat them.

    Raises:
        ConversionError: the answer holds text that is not valid JSON, or a dangerous loss would be raised.
    """
    if response.error_info is not None:
        response = _redacted(response, redact)
    shown_response, wants = with_custom_calls(response, incoming.custom_tools), incoming.wants
    model = response.attempts[-1].model if response.attempts else None
    is_marked = is_mixed and seal(response) is not None
    native = native_body(incoming, response) if shown_response is response and not is_marked else None
    if native is not None:
        body = response.raw_events.frames[0]
        if response.error_info is not None:
            body = dumped(redact_json(native, redact))
        written = Written(named(body, native, alias_of(incoming, model)))
    else:
        shown_response = addressed(incoming, shown_response, token, model)
        written = _converted(incoming, shown_response, seal(response))
    if written.status != 200 or not (wants.echo or wants.namespaces or wants.previous_response_id):
        return written
    answer = loaded(written.body)
    name_previous(answer, wants.previous_response_id)
    for choice in answer["choices"] if wants.echo else ():
        choice["text"] = prompt_of(incoming) + (choice.get("text") or "")
    if wants.namespaces:
        name_in_namespaces(answer.get("output") or (), incoming)
    return attrs.evolve(written, body=dumped(answer))


def _redacted(response: ChatResponse, redact: Redact) -> ChatResponse:
    """Return *response* with its errors redacted, whose payload is as its server sent it."""
    segments = [
        attrs.evolve(
            one, metadata={**one.metadata, "raw": redact_json(thaw(one.metadata.get("raw")), redact)}
        )
        if one.type is SegmentType.ERROR
        else one
        for one in response.segments
    ]
    return attrs.evolve(response, segments=segments)


def native_body(incoming: Incoming, response: ChatResponse) -> dict[str, Any] | None:
    """Return the JSON of *response*, or ``None`` if it was a stream, or is not in the client's format and names of tools."""
    if response.attempts and "tool_names" in response.attempts[-1].extra:
        return None
    frames, body = response.raw_events.frames, None
    with suppress(ValueError, RecursionError):
        body = loaded(frames[0]) if len(frames) == 1 else None
    return body if form_of_body(body) is incoming.form else None


def _converted(incoming: Incoming, response: ChatResponse, seal: Segment | None) -> Written:
    """Return *response* in the client's format with its *seal*."""
    options = options_of(incoming, adaptations_of(response))
    conversion = convert(response, incoming.form, request=options)
    if seal is None:
        return Written(conversion.value, conversion.status, conversion.report.losses)
    losses = unsealed(conversion.report.losses, response.segments, len(response.segments))
    body = convert(sealed(response, seal), incoming.form, request=options).value
    return Written(body, conversion.status, losses)


def alias_of(incoming: Incoming, server_model: str | None) -> str | None:
    """Return the client's name for the model, or ``None`` if the server was asked for the same name."""
    name = incoming.request.model
    return name if server_model is not None and name != server_model else None


def rename(event: dict[str, Any], alias: str | None) -> bool:
    """Give the model of *event* the name *alias*. Return whether it had a name."""
    is_changed = False
    for holder in (event, event.get("message"), event.get("response")) if alias is not None else ():
        if type(holder) is dict and type(holder.get("model")) is str:
            holder["model"], is_changed = alias, True
    return is_changed


def name_previous(response: Any, id: str | None) -> bool:
    """Name the answer *id* as the one before *response*, whose server was not told of it. Return whether that is new."""
    is_new = id is not None and type(response) is dict and response.get("previous_response_id") is None
    if is_new:
        response["previous_response_id"] = id
    return is_new


def words_for(headers: Container[str], setting: str) -> Mapping[str, str]:
    """Return the client's words for the events of plain reasoning in Responses, each by the other word.

    They are those of Open Responses if the *headers* of its request have the version of that, or by the *setting*.
    """
    is_open = _OPEN_VERSION in headers or setting == "open-responses"
    return OPEN_RESPONSES if is_open else _OPENAI


def reword(event: dict[str, Any], words: Mapping[str, str]) -> bool:
    """Give *event* its type in *words*, and return whether it had another one."""
    word = words.get(str(event.get("type")))
    if word is None:
        return False
    event["type"] = word
    return True


def name_in_namespaces(items: Iterable[dict[str, Any]], incoming: Incoming) -> None:
    """Name the tool of each call in *items* as the client has it: in its namespace, with its name there."""
    for item in items:
        namespace, name = incoming.wants.namespaces.get(item.get("name", ""), (None, None))
        kind = item.get("type") or ""
        if name is not None and "call" in kind:
            item["name"] = name
        if namespace is not None and kind in _CALL_ITEMS:
            item.setdefault("namespace", namespace)


def options_of(incoming: Incoming, adaptations: Iterable[Adaptation]) -> dict[str, Any]:
    """The options that the answer repeats; the gateway stores an answer of Responses unless it is told not to.

    Those that the *adaptations* leave out of the request to the server are not among them.
    """
    dropped_names = {one.field for one in adaptations if one.kind is AdaptationKind.DROPPED}
    options = {name: value for name, value in incoming.request.said.items() if name not in dropped_names}
    return {**options, "store": incoming.wants.store is not False}


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
    an answer of another format in Messages has the client's name of the model, as every answer has under an alias, or if its
    server names none.

    Args:
        incoming: what the client has asked.
        response: the answer, or what has come of it.
        token: what no other answer has; without one, the id stays.
        server_model: the server's name for the model.
    """
    form, alias = incoming.form, alias_of(incoming, server_model)
    is_unnamed = response.metadata.provenance.get("model") in (Provenance.ABSENT, Provenance.DERIVED)
    if is_unnamed or (form is WireForm.ANTHROPIC and source_form(response) is not form):
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
    if "model" in metadata.provenance:
        provenance = {path: mark for path, mark in metadata.provenance.items() if path != "model"}
        metadata = attrs.evolve(metadata, provenance=provenance)
    return altered(response, model=model, metadata=metadata)


def own_call_id(id: str, token: str) -> str:
    """Return *id*, which the gateway has made up, with the part of *token* that no other answer has."""
    return f"{id}_{token.replace('-', '')[:12]}"


def _with_own_call_ids(response: ChatResponse, token: str) -> ChatResponse:
    """*response* with new ids for the calls to which its server gave none."""
    provenance = response.metadata.provenance
    new_ids = {
        call.id: own_call_id(call.id, token)
        for number, call in enumerate(response.tool_calls)
        if provenance.get(f"message.tool_calls[{number}].id") is Provenance.SYNTHETIC
    }
    if not new_ids:
        return response
    calls = [attrs.evolve(call, id=new_ids.get(call.id, call.id)) for call in response.tool_calls]
    segments = [
        attrs.evolve(one, metadata={**one.metadata, "id": new_ids[str(one.metadata["id"])]})
        if one.type is SegmentType.TOOL_CALL and one.metadata.get("id") in new_ids
        else one
        for one in response.segments
    ]
    message = attrs.evolve(response.message, tool_calls=calls)
    return attrs.evolve(response, message=message, segments=segments)


def with_told_call_ids(response: ChatResponse, answer: Mapping[str, Any]) -> ChatResponse:
    """Return *response* with the ids that its calls have in *answer*, so that a later result of the client has its call.

    Args:
        response: what the server gave. It stays if *answer* has other calls: a server of Responses made its items.
        answer: the body of Responses that the client has got.
    """
    items = answer.get("output")
    told_ids = [
        id
        for item in (items if isinstance(items, list) else ())  # as the server sent it
        if isinstance(item, dict) and item.get("type") in _CALL_ITEMS
        if isinstance(id := item.get("call_id"), str)
    ]
    pieces = [(one.part, one.call) for one in pieces_of(response.message, response.segments) if one.call]
    if len(pieces) != len(told_ids) or told_ids == [call.id for _, call in pieces]:
        return response
    calls = list(response.tool_calls)
    for (_, call), id in zip(pieces, told_ids, strict=True):
        calls[call.index] = attrs.evolve(calls[call.index], id=id)
    new_ids = {part: id for (part, _), id in zip(pieces, told_ids, strict=True)}
    segments = [
        attrs.evolve(one, metadata={**one.metadata, "id": new_ids[part]}) if part in new_ids else one
        for part, one in enumerate(response.segments)
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
    input_texts = {
        (old.id, old.arguments): new.arguments for old, new in zip(response.tool_calls, calls, strict=True)
    }
    segments = [_with_text(segment, input_texts) for segment in response.segments]
    return attrs.evolve(response, message=attrs.evolve(response.message, tool_calls=calls), segments=segments)


def _with_text(segment: Segment, input_texts: dict[tuple[str, str], str]) -> Segment:
    key = (str(segment.metadata.get("id")), segment.content)
    if segment.type is not SegmentType.TOOL_CALL or key not in input_texts:
        return segment
    return attrs.evolve(segment, content=input_texts[key])


class CustomCalls:
    """Buffers the calls of custom tools in a stream, because their input is known only with the complete arguments.

    Args:
        names: the names of the custom tools.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held_fragments: dict[tuple[int, int], list[ToolCallDelta]] = {}  # by choice and index

    def of(self, delta: ResponseDelta | None) -> Iterator[ResponseDelta]:
        """Return the part of *delta* that may be written now."""
        if delta is None:
            return
        call = delta.tool_call_delta
        if call is not None and self._is_held(delta.choice, call):
            self._held_fragments.setdefault((delta.choice, call.index), []).append(call)
            if not any(getattr(delta, name) for name in _OTHER_FIELDS):
                return
            delta = attrs.evolve(delta, tool_call_delta=None)
        if delta.finish_reason is not None:
            yield from self.rest()
        yield delta

    def _is_held(self, choice: int, call: ToolCallDelta) -> bool:
        return (choice, call.index) in self._held_fragments or (
            call.name in self._names and call.kind is None
        )

    def rest(self) -> Iterator[ResponseDelta]:
        """Return the buffered calls."""
        held_calls, self._held_fragments = self._held_fragments, {}
        for (choice, index), fragments in held_calls.items():
            id = next((one.id for one in fragments if one.id), None)
            name = next((one.name for one in fragments if one.name), None)
            text = "".join(one.arguments_delta or "" for one in fragments)
            call = _as_custom(ToolCall(id or "-", name or "-", text))
            whole_delta = ToolCallDelta(index, id, name, call.arguments, call.kind)
            yield ResponseDelta(tool_call_delta=whole_delta, choice=choice)


_OTHER_FIELDS: Final = (
    *("content_delta", "finish_reason", "usage", "reasoning_delta", "refusal_delta", "segment"),
    *("raw_finish_reason", "logprobs", "extensions"),
)
"""The other fields of a delta with a fragment of a call."""


# --------------------------------------------------------------------------------- streams
# Streams to clients: passed on if client and server speak one format, and otherwise written anew.
#
# A stream that is passed on goes out event by event, unchanged. The service reads it too, for counts, errors and the
# store.
# Four things change on the way. The model carries the client's name if the configuration gives it another one. Token
# counts
# that the client did not ask for stay out. An error shows what a client may see. And the format's sentinel ends the
# stream.


_FORMS_WITH_EVENT_NAMES: Final = (WireForm.ANTHROPIC, WireForm.OPENAI_RESPONSES)
"""The formats with names for events. The names are the events' types."""
_USUAL_KEYS: Final = frozenset(
    ("id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier")
)
"""The members of a chunk that holds nothing but counts."""
_BROKEN_OFF_ERROR: Final = ErrorInfo(ErrorKind.SERVER, "the answer broke off", retryable=True)
_FAILED: Final = "response.failed"
_ERRORS: Final = ("error", _FAILED)
"""The events that report the end of a stream by an error."""
_ENDS: Final = ("response.completed", "response.incomplete", _FAILED)
"""The events of Responses with the answer as far as it came."""
_USAGE_ON_REQUEST_FORMS: Final = (WireForm.OPENAI_CHAT, WireForm.OPENAI_COMPLETIONS)
_SEAL_FIRST_FORMS: Final = (WireForm.ANTHROPIC, WireForm.GEMINI)
"""The formats whose clients send a seal back if it comes before the calls or with them, and may drop a later one."""


def is_native(incoming: Incoming, sent: Sent) -> bool:
    """Return whether the stream that answers *sent* is in the format of the client, and in its names of tools."""
    path = sent.path.partition("?")[0]
    is_of_form = path.endswith(incoming.form.paths) and sent.content_type == media_type(incoming.form)
    return is_of_form and not sent.renames_tools


class Relay:
    """Passes one stream on.

    Args:
        incoming: the client's request.
        sent: the request that the stream answers.
        words: the client's words, see :func:`words_for`.
        large: the length in bytes from which the last event of an answer of Responses waits for :meth:`finish`, because the
            answer may be too large to be kept.
        redact: removes credentials from errors, because servers may repeat them.

    Attributes:
        losses: the fields that did not go out. Always empty.
        original: as for :class:`StreamWriter`. Always ``None``.
        ending: as for :class:`StreamWriter`.
    """

    losses: tuple[Loss, ...] = ()
    original: ChatResponse | None = None
    ending: Ending | None = None

    def __init__(
        self,
        incoming: Incoming,
        sent: Sent,
        words: Mapping[str, str] = _OPENAI,
        large: float = math.inf,
        redact: Redact = str,
    ) -> None:
        self._large = large
        self._redact = redact
        self._waiting = b""
        self._form = form = incoming.form
        self._words = words
        self._alias = alias_of(incoming, sent.model)
        self._is_chat = form is WireForm.OPENAI_CHAT
        self._hides_usage = self._is_chat and not incoming.wants.include_usage
        self._previous_id = incoming.wants.previous_response_id
        # What looks like an error, and what comes after it: only the end of the stream says whether it is one.
        self._error_frame = self._said_with_error = b""
        self._late_events: list[bytes] = []
        self._has_ended = False
        self._event_number = -1  # of the last event, in Responses

    def frames(self, events: Iterable[bytes]) -> bytes:
        """Return further *events* for the client, as received.

        An error and what comes after it, and the end of a large answer of Responses, wait for :meth:`finish` or
        :meth:`fail`.
        """
        return b"".join(map(self._frame, events))

    def finish(self) -> bytes:
        """Return the end of a stream that did not fail."""
        self._has_ended = True
        frames = self._error_frame + b"".join(map(self._frame, self._late_events))
        return frames + self._waiting + (b"data: [DONE]\n\n" if self._is_chat else b"")

    def fail(self, error: ErrorInfo) -> bytes:
        """Return the end of the stream with *error*, or nothing if the stream has ended.

        It is the server's own end if that is a failed response, with what a client may see of its error.
        """
        if self._has_ended:
            return b""
        self._has_ended = True
        if self.ending is None or self.ending.event["type"] != _FAILED:
            error_event = error_frame(self._form, error, self._event_number + 1)
            return self._waiting + self._said_with_error + error_event
        own_error = self.ending.response.get("error")
        if type(own_error) is not dict or own_error.get("message") != error.message:
            self.ending.response["error"] = {"code": "server_error", "message": error.message}
        return self.ending.frame()

    def _frame(self, data: bytes) -> bytes:
        if self._error_frame and not self._has_ended:
            self._late_events.append(data)
            return b""
        may_hold_usage = self._hides_usage and b'"usage"' in data
        if (
            self._alias is None
            and not may_hold_usage
            and self._form not in _FORMS_WITH_EVENT_NAMES
            and b'"error"' not in data
        ):
            return framed(self._form, {}, data)
        event = loaded(data)
        if type(event) is not dict:
            return framed(self._form, {}, data)
        number = event.get("sequence_number")
        self._event_number = number if type(number) is int else self._event_number
        kind = event.get("type")
        is_changed = self._alias is not None and rename(event, self._alias)
        is_changed |= type(kind) is str and kind in self._words and reword(event, self._words)
        is_changed |= name_previous(event.get("response"), self._previous_id)
        if kind in _ENDS and type(event.get("response")) is dict:
            self.ending = Ending(event)
        if event.get("error") or kind in _ERRORS:
            told = dumped(event)
            is_safe = dumped(redact_json(event, self._redact)) == told
            frame = framed(self._form, event, data if is_safe else dumped(event))
            if self._has_ended:
                return frame
            self._error_frame, self._said_with_error = frame, self._without_error(event)
            return b""
        if may_hold_usage and event.get("usage") is not None:
            if event.get("choices") == [] and event.keys() <= _USUAL_KEYS:
                return b""
            del event["usage"]
            is_changed = True
        frame = framed(self._form, event, dumped(event) if is_changed else data)
        if self.ending is None or event is not self.ending.event:
            return frame
        self.ending.sent = frame
        if len(frame) < self._large:
            return frame
        self._waiting = frame
        return b""

    def _without_error(self, event: Mapping[str, Any]) -> bytes:
        """Return *event*, which looks like an error, with the choices that it has as well, or nothing without one."""
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices:
            return b""
        open_choices = [{**one, "finish_reason": None} for one in choices if isinstance(one, dict)]
        hidden_names = ("error", "usage") if self._hides_usage else ("error",)
        said = {name: value for name, value in event.items() if name not in hidden_names}
        said["choices"] = open_choices
        return framed(self._form, said, dumped(said))


class Ending:
    """The last event of a stream of Responses.

    Args:
        event: the event.

    Attributes:
        event: the event.
        response: the answer as far as it came.
        sent: the event as it is sent, or empty if that is what :meth:`frame` returns.
    """

    def __init__(self, event: dict[str, Any]) -> None:
        self.event = event
        self.response: dict[str, Any] = event["response"]
        self.sent = b""

    def frame(self) -> bytes:
        """Return the event with what :attr:`response` says now."""
        return framed(WireForm.OPENAI_RESPONSES, self.event, dumped(self.event))

    def without_store(self, frames: bytes) -> bytes:
        """Return *frames*, which end with it, so that it says that the answer is not kept."""
        sent = self.sent or self.frame()
        self.response["store"] = False
        return frames.replace(sent, self.frame())


def error_frame(form: WireForm, error: ErrorInfo, number: int = 0) -> bytes:
    """Return the event of a stream in *form* that reports *error*. In Responses, it is the event *number*.

    Its code there is one of the API's. Only the server's own code stays as it is.
    """
    error = worded(form, error)
    event = load_json(error_body(error, form).value)
    if form is WireForm.OPENAI_RESPONSES:
        own_code = None if error.raw is None else error.code
        details = response_error(error, is_own=False)
        details["code"] = own_code or details["code"]
        event = {"type": "error", **details, "param": None, "sequence_number": number}
    return framed(form, event, dump_json(event))


def framed(form: WireForm, event: dict[str, Any], data: bytes) -> bytes:
    """Return the text *data* of *event* with the framing of *form*."""
    if media_type(form) == "application/x-ndjson":
        return data.replace(b"\n", b" ") + b"\n"
    lines = b"data: %b\n" % data
    if b"\n" in data or b"\r" in data:
        lines = b"".join(b"data: %b\n" % line for line in data.splitlines())
    kind = event.get("type") if form in _FORMS_WITH_EVENT_NAMES else None
    name = f"event: {kind}\n".encode() if type(kind) is str and kind.isprintable() else b""
    return name + lines + b"\n"


class StreamWriter:
    """Writes one streamed answer in the client's form. Pass it each event of the service's stream, and send the result.

    Args:
        incoming: what the client has asked.
        head: gives what is known beside the content, such as ``lambda: stream.head``; asked with the first event.
        token: as for :func:`addressed`.
        server_model: the server's name for the model.
        seal: gives the seal of the complete answer.
        words: the client's words, see :func:`words_for`.
        adaptations: those of the request to the server.

    Attributes:
        losses: what the form could not say of the answer, once the stream has ended.
        original: that answer, or ``None`` if it is the server's own.
        ending: for a client of Responses, the event with the answer as far as it came, once the stream has ended.
    """

    def __init__(
        self,
        incoming: Incoming,
        head: Callable[[], ChatResponse],
        token: str = "",
        server_model: str | None = None,
        seal: Callable[[ChatResponse], Segment | None] = lambda response: None,
        words: Mapping[str, str] = _OPENAI,
        adaptations: Iterable[Adaptation] = (),
    ) -> None:
        self._words = words if incoming.form is WireForm.OPENAI_RESPONSES else {}
        self._incoming, self._token, self._seal, self._server_model = incoming, token, seal, server_model
        is_chat = (
            incoming.form is WireForm.OPENAI_CHAT
        )  # its clients cannot add up the pieces of a custom call
        self._names = frozenset[str]() if is_chat else incoming.custom_tools
        self._custom_calls = CustomCalls(self._names)
        self._converter = StreamConverter(
            incoming.form,
            lambda: addressed(incoming, head(), token, server_model),
            request=options_of(incoming, adaptations),
        )
        self._shows_usage = incoming.wants.include_usage or incoming.form not in _USAGE_ON_REQUEST_FORMS
        self._prompt = prompt_of(incoming) if incoming.wants.echo else ""
        self._completes = bool(self._prompt or incoming.wants.namespaces)
        self._echoed_choices: set[int] = set()
        self._begun_calls: set[int] = set()  # calls, by index
        self._held_deltas: list[ResponseDelta] = []
        self._may_hold = incoming.form in _SEAL_FIRST_FORMS
        self._is_opaque = False
        self._has_ended = False
        self.losses: tuple[Loss, ...] = ()
        self.original: ChatResponse | None = None
        self.ending: Ending | None = None

    def feed(self, event: StreamEvent) -> bytes:
        """Return the bytes for *event*. The last event ends the stream, and an error does so as the form defines."""
        if self._has_ended:
            return b""
        if event.event_type is StreamEventType.RETRIED:  # what was said is void, and no client can be told
            return self.fail(_BROKEN_OFF_ERROR)
        deltas = self._custom_calls.of(event.delta) if self._names else filter(None, (event.delta,))
        frames = b"".join(map(self._fed, self._ready(deltas)))
        received = event.response
        if received is not None:
            original = received if self._converter.has_told else carried(received)
            is_carried = original is not received
            response = with_custom_calls(original, self._names)
            frames += b"".join(map(self._fed, self._ready(self._custom_calls.rest())))
            seal = self._seal(original)
            if seal is not None and is_carried:
                response = sealed(response, seal)
            elif seal is not None:
                frames += self._fed(ResponseDelta(segment=seal))
                response = attrs.evolve(response, segments=(*response.segments, seal))
            frames += b"".join(map(self._fed, self._held_deltas))
            response = addressed(self._incoming, response, self._token, self._server_model)
            self.original = response if is_carried else None
            try:
                last = list(self._converter.finish(received if is_carried else response, response))
                frames += self._frames(last)
                self._note_ending(last)
                losses = self._converter.report.losses
            except DangerousLossError as error:
                frames += self.fail(info_of(error))
                losses = error.losses
            if seal is not None:
                losses = unsealed(losses, response.segments, response.segments.index(seal))
            self.losses = losses
            self._has_ended = True
        return frames

    def _ready(self, deltas: Iterable[ResponseDelta]) -> Iterator[ResponseDelta]:
        """Return those of *deltas* that may be written now. From the first call on, they wait for the seal.

        There will be a seal if the answer has reasoning or another part with metadata: a signature follows its call.
        """
        for delta in deltas:
            self._is_opaque = self._is_opaque or bool(delta.reasoning_delta or delta.segment)
            if self._held_deltas and not self._is_opaque:
                yield from self._held_deltas
                self._held_deltas, self._may_hold = [], False
            if self._may_hold and (self._held_deltas or delta.tool_call_delta is not None):
                self._held_deltas.append(delta)
            else:
                yield delta

    def fail(self, error: ErrorInfo) -> bytes:
        """Return the end of the stream with *error*, or nothing if the stream has ended."""
        if self._has_ended:
            return b""
        self._has_ended = True
        last = list(self._converter.fail(error))
        frames = self._frames(last)
        self._note_ending(last)
        return frames

    def _note_ending(self, last: Iterable[dict[str, Any]]) -> None:
        self.ending = next((Ending(event) for event in last if event.get("type") in _ENDS), None)

    def _fed(self, delta: ResponseDelta) -> bytes:
        return self._frames(self._converter.feed(self._with_own_call_id(delta)))

    def _with_own_call_id(self, delta: ResponseDelta) -> ResponseDelta:
        """*delta* with the id that :func:`addressed` gives its call."""
        call = delta.tool_call_delta
        if call is None or not self._token or delta.choice or call.index in self._begun_calls:
            return delta
        self._begun_calls.add(call.index)
        id = call.id or own_call_id(f"call_{call.index}", self._token)
        return attrs.evolve(delta, tool_call_delta=attrs.evolve(call, id=id))

    def _frames(self, events: Iterable[dict[str, Any]]) -> bytes:
        """Return *events* for the client. One that did not ask for counts fails at an event without a choice."""
        frames = []
        for event in events:
            if self._shows_usage or event.get("choices") != [] or "usage" not in event:
                if self._completes:
                    self._complete(event)
                is_changed = self._completes | (bool(self._words) and reword(event, self._words))
                frames.append(self._converter.frame(event, is_changed=is_changed))
        return b"".join(frames)

    def _complete(self, event: dict[str, Any]) -> None:
        """Add the parts of the request that no server repeats to *event*: a prompt, namespaces."""
        if self._incoming.wants.namespaces:
            items = [event["item"]] if "item" in event else event.get("response", {}).get("output", ())
            name_in_namespaces([event, *items], self._incoming)
        for choice in event.get("choices", ()) if self._prompt else ():
            if choice["index"] not in self._echoed_choices:
                self._echoed_choices.add(choice["index"])
                choice["text"] = self._prompt + choice["text"]


def written(writer: StreamWriter, events: EventStream, redact: Redact) -> bytes:
    """Return the ready *events* in the client's format. An error is for a client, see :func:`for_client`."""
    return b"".join(_frames(writer, event, redact) for event in events.ready)


def _frames(writer: StreamWriter, event: StreamEvent, redact: Redact) -> bytes:
    error = None if event.response is None else event.response.error_info
    shown_error = None if error is None else for_client(error, redact)
    return writer.feed(event) if shown_error is None or shown_error == error else writer.fail(shown_error)


def relayed(relay: Relay, events: EventStream, redact: Redact) -> bytes:
    """Return the server's events since the last call, and the end of the stream if it has come.

    Its error is for a client, see :func:`for_client`.
    """
    response = events.response if events.has_ended else None
    error = None if response is None else response.error_info
    frames = relay.frames(events.take_frames())
    if error is not None:
        return frames + relay.fail(for_client(error, redact))
    return frames if response is None else frames + relay.finish()
