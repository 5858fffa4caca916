"""Ollama's chat and generate: requests read, answers written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, ClassVar, Final

from crosswalk.formats.reading import (
    Incoming,
    Wants,
    answer,
    definition,
    incoming,
    options,
    read_words,
    take_neutral,
    told_result,
)
from crosswalk.formats.tables import OLLAMA
from crosswalk.formats.writing import (
    CallIDs,
    Event,
    Heading,
    Piece,
    WireForm,
    Writer,
    as_input,
    input_of,
    json_of,
    logprobs_of,
    ollama_error,
    put_back,
)
from crosswalk.request import ReasoningEffort, ResponseFormat, ToolDefinition, Turn
from crosswalk.types.json import dump_json
from crosswalk.types.message import CallKind, ChatMessage, ContentPart, ImagePart, Role, TextPart, ToolCall
from crosswalk.types.values import FinishReason, SegmentType, TokenLogprob
from crosswalk.wire import ollama as wire
from crosswalk.wire.options import Fields, placed

# ---------------------------------------------------------------------------------- ollama
# Requests in the forms of Ollama's ``/api/chat`` and ``/api/generate``. Facts: provider document "Ollama".


_DEFAULTS: Final[dict[str, Any]] = {
    "raw": False,
    "suffix": "",
    "template": "",
    "context": [],
    "format": "",
    "images": [],
    "system": "",
}
_EMPTY_MESSAGE: Final = ChatMessage.user("")
_ROLES: Final = {role.value: role for role in Role}


def read_chat(body: Fields, raw_body: dict[str, Any]) -> Incoming:
    """Parse *body*, a request to ``/api/chat``. *raw_body* is the same, unchanged.

    Raises:
        FieldError: it is none.
    """
    conversation = _Conversation()
    for message in body.objects("messages"):
        conversation.add(message)
    if conversation.turns:
        return _incoming(WireForm.OLLAMA, body, raw_body, conversation.turns)
    return _incoming(WireForm.OLLAMA, body, raw_body, [_EMPTY_MESSAGE], load=_loading(body))


def read_generate(body: Fields, raw_body: dict[str, Any]) -> Incoming:
    """Parse *body*, a request to ``/api/generate``. *raw_body* is the same, unchanged.

    Raises:
        FieldError: it is none.
    """
    turns: list[Turn] = []
    with placed(body, "system"):
        if system := body.text("system"):
            turns.append(ChatMessage.system(system))
    with placed(body, "prompt"):
        prompt = body.text("prompt") or ""
        turns.append(ChatMessage.user(_content(prompt, body)))
    return _incoming(WireForm.OLLAMA_GENERATE, body, raw_body, turns, load=None if prompt else _loading(body))


def _loading(body: Fields) -> str:
    """Return the wish of a request without a prompt: to load the model, or to unload it if it is to be kept for no time."""
    duration = body.look("keep_alive")
    if isinstance(duration, str):  # as Go writes durations: 0, 0s, 0m0.0s
        is_zero = "0" in duration and not any(digit in duration for digit in "123456789")
    else:
        is_zero = type(duration) in (int, float) and 0 <= duration < 1
    return "unload" if is_zero else "load"


def _incoming(
    form: WireForm, body: Fields, raw_body: dict[str, Any], turns: list[Turn], load: str | None = None
) -> Incoming:
    logprobs = bool(body.is_flag("logprobs"))
    defaults = take_neutral(body, "ollama", _DEFAULTS)
    stream = body.flag("stream")
    return incoming(
        form,
        body,
        raw_body,
        Wants(include_usage=True, logprobs=logprobs, load=load, defaults=defaults),
        messages=turns,
        **_options(body),
        tools=[*_tools(body)],
        response_format=_format(body),
        reasoning_effort=_effort(body),
        stream=stream is not False,  # it streams unless it is told not to
    )


def _options(body: Fields) -> dict[str, Any]:
    option_fields = body.object("options")
    return {} if option_fields is None else options(option_fields, "ollama", "options.")


# The conversation.


class _Conversation:
    """Convert messages to turns. Calls and results need no ids in this API, so some are made up.

    Attributes:
        turns: the turns.
    """

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._open_calls: list[ToolCall] = []  # calls that have no result yet

    def add(self, message: Fields) -> None:
        """Add *message* as a turn."""
        role = _ROLES.get(message.need("role", message.text("role")))
        if role is None:
            message.refuse(f"must be one of {', '.join(_ROLES)}", "role")
        text = message.text("content") or ""
        if role is Role.ASSISTANT:
            self.turns.append(self._answer(message, text))
        elif role is Role.TOOL:
            self.turns.append(self._result(message, text))
        else:
            with placed(message, "content"):
                self.turns.append(ChatMessage(role, _content(text, message)))

    def _answer(self, message: Fields, text: str) -> Turn:
        thinking = message.text("thinking")
        calls: list[ToolCall] = []
        calls_with_ids: list[dict[str, Any]] = []
        for call in message.objects("tool_calls"):
            if call.look("type") == "function":
                call.take("type")
            function = call.need("function", call.object("function"))
            function.whole("index")
            name = function.need("name", function.text("name"))
            arguments = function.plain("arguments") or {}
            id = call.text("id") or f"call_{len(self.turns)}_{len(calls)}"
            with placed(call):
                calls.append(ToolCall(id, name, dump_json(arguments).decode()))
            calls_with_ids.append(
                {"id": id, "function": {"index": len(calls_with_ids), "name": name, "arguments": arguments}}
            )
        self._open_calls = calls
        if not thinking:
            with placed(message, "content"):
                return ChatMessage(Role.ASSISTANT, _content(text, message), tool_calls=calls or None)
        wire_message: dict[str, Any] = {"role": "assistant", "content": text, "thinking": thinking}
        if calls_with_ids:
            wire_message["tool_calls"] = calls_with_ids
        line = {"model": "-", "message": wire_message, "done": True, "done_reason": "stop"}
        return answer(message, line, WireForm.OLLAMA.provider)

    def _result(self, message: Fields, text: str) -> Turn:
        id, name = message.text("tool_call_id"), message.text("tool_name")
        call = next(
            (call for call in self._open_calls if id == call.id or (not id and name in (None, call.name))),
            None,
        )
        if call is None and not id:
            return told_result(message, name, _content(text, message))
        if call is not None:
            self._open_calls.remove(call)
            name = None if name == call.name else name  # the call says it
        with placed(message):
            return ChatMessage.tool_result(
                id or call.id if call else str(id), _content(text, message), name=name
            )


def _content(text: str, fields: Fields) -> str | list[ContentPart]:
    """Return *text*, with the images of *fields* if there are any."""
    images: list[ContentPart] = []
    for number, image in enumerate(fields.texts("images") or ()):
        with placed(fields, "images", number):
            images.append(ImagePart(data=image))
    return [TextPart(text), *images] if images else text


# Options.


def _tools(body: Fields) -> Iterator[ToolDefinition]:
    for tool in body.objects("tools"):
        if tool.look("type") == "function":
            tool.take("type")
        yield definition(tool.need("function", tool.object("function")), OLLAMA, "tools[][function].function")


def _format(body: Fields) -> ResponseFormat | None:
    format_value = body.look("format")
    if isinstance(format_value, dict):
        with placed(body, "format"):
            return ResponseFormat(body.plain("format"))
    return body.word("format", {"json": ResponseFormat()})


def _effort(body: Fields) -> str | None:
    """Return how much to think. A plain true counts as medium, and the field stays unread."""
    think = body.look("think")
    if think is False:
        body.take("think")
        return ReasoningEffort.NONE
    return (
        ReasoningEffort.MEDIUM
        if think is True
        else body.word("think", read_words("reasoning_effort", "ollama"))
    )


# ---------------------------------------------------------------------------------- ollama
# Ollama's own forms: the body of ``/api/chat`` and of ``/api/generate``, and their lines.
#
# A line is a small whole body: it adds its text and reasoning. A call is written in one line, once it is complete.


_CUT: Final = "length"
_MICROSECOND: Final = timedelta(microseconds=1)


class _Call:
    """A call of the client under construction."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.kind: CallKind | None = None
        self.arguments: list[str] = []


class OllamaChatWriter(Writer):
    """Writes Ollama's chats, the first of several answers."""

    form = WireForm.OLLAMA
    text: ClassVar[str] = "content"
    """The field for text."""

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._said: dict[str, list[str]] = {}  # of a whole answer
        self._images: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._ids = CallIDs()
        self._logprobs: list[Event] = []  # of the line to come
        self._reason: str | None = None

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        if piece.choice:
            return
        if piece.call is not None:
            call = self._calls.setdefault(piece.call.index, _Call(piece.call.index))
            call.id = call.id or piece.call.id
            call.name = call.name or piece.call.name or ""
            call.kind = call.kind or piece.call.kind
            call.arguments.append(piece.text)
        elif piece.type is SegmentType.MEDIA and piece.text and self.is_own:
            self._images.append(piece.text)  # the official client reads none: no other answer gets any
        elif (name := self._field(piece.type)) and piece.text:
            self._said.setdefault(name, []).append(piece.text)
            if not self.whole:
                yield self._line(self._message({name: piece.text}))

    def _field(self, kind: SegmentType) -> str | None:
        if kind is SegmentType.REASONING:
            return "thinking"
        # The reason of a refusal has no other field.
        return self.text if kind in (SegmentType.TEXT, SegmentType.REFUSAL) else None

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        if not choice:
            self._logprobs += [_bare(logprob) for logprob in logprobs_of(tokens)]

    def end(self, reason: FinishReason, finish_word: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        if not choice:
            self._reason = self.word_for(reason, finish_word, wire.FINISH_REASONS)

    error_event = staticmethod(ollama_error)

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`. They are calls and images."""
        if self.whole:
            return
        for call in self._tool_calls():
            yield self._line(self._message({"tool_calls": [call]}))
        if self._images:
            yield self._line(self._message({"images": self._images}))

    def _last(self) -> Iterator[Event]:
        """See :meth:`Writer._last`."""
        yield self._line_at_end({})

    @staticmethod
    def frame(event: Event) -> bytes:
        """See :meth:`Writer.frame`: a line."""
        return json_of(event) + b"\n"

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        message: Event = {name: "".join(texts) for name, texts in self._said.items()}
        if self._images:
            message["images"] = self._images
        if calls := [*self._tool_calls()]:
            message["tool_calls"] = calls
        return self._line_at_end(message)

    def _message(self, fields: Event) -> Event:
        """Return the field, or the fields, of a line for *fields*."""
        return {"message": {"role": "assistant", "content": "", **fields}}

    def _line_at_end(self, message_fields: Event) -> Event:
        line = self._line(self._message(message_fields)) | {"done": True, "done_reason": self._reason}
        if self.duration:
            line["total_duration"] = self.duration // _MICROSECOND * 1000
        if self.usage is not None:
            counts = {name: getattr(self.usage, count) for count, name in wire.COUNTS.items()}
            line |= {name: count for name, count in counts.items() if count or not self.is_own}
        if self.is_own:
            if not self._reason:
                del line["done_reason"]
            put_back(line, self.left, over=True)
        return line

    def _line(self, fields: Event) -> Event:
        line = {"model": self.heading.model, "created_at": self.heading.time, **fields, "done": False}
        if self._logprobs:
            line["logprobs"], self._logprobs = self._logprobs, []
        return line

    def _tool_calls(self) -> Iterator[Event]:
        """Return the calls. One that nobody can read is none, if the answer says that it was cut."""
        for position, call in enumerate(self._calls.values()):
            text = "".join(call.arguments)
            if self._reason == _CUT and call.kind is None and as_input(text or "{}") is None:
                continue
            function = {"index": position, "name": call.name, "arguments": input_of(text, call.kind)}
            yield {"id": self._ids.take(call.id, call.index), "function": function}


class OllamaGenerateWriter(OllamaChatWriter):
    """Writes Ollama's generated texts, the first of several answers."""

    form = WireForm.OLLAMA_GENERATE
    text = "response"

    def _message(self, fields: Event) -> Event:
        return {"response": "", **fields}


def _bare(logprob: Event) -> Event:
    """Return probabilities without empty fields, as Ollama leaves them out."""
    nonempty_fields = {name: value for name, value in logprob.items() if value not in (None, [])}
    if "top_logprobs" in nonempty_fields:
        nonempty_fields["top_logprobs"] = [_bare(top) for top in nonempty_fields["top_logprobs"]]
    return nonempty_fields
