"""OpenAI's Chat Completions and legacy Completions: requests read, answers written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Final

from crosswalk.formats.chat_table import CHAT
from crosswalk.formats.reading import (
    Incoming,
    Wants,
    answer,
    custom_definition,
    definition,
    incoming,
    marks_of,
    option,
    read_words,
    take_neutral,
    told_part,
    told_result,
    tool_choice,
)
from crosswalk.formats.tables import CLIENT_TOOLS
from crosswalk.formats.writing import (
    TIERS,
    CallIDs,
    CitedText,
    Event,
    Heading,
    Piece,
    WireForm,
    Writer,
    first_words,
    logprobs_of,
    openai_error,
    put_back,
    unnamed_frame,
    url_citation,
)
from crosswalk.request import (
    CacheMark,
    HostedTool,
    HostedToolKind,
    NamedTool,
    ResponseFormat,
    ToolDefinition,
    Turn,
)
from crosswalk.types.answer import PIECE
from crosswalk.types.json import copy_json
from crosswalk.types.message import AudioPart, ChatMessage, ContentPart, FilePart, Role, TextPart, ToolCall
from crosswalk.types.values import PAUSES, FinishReason, SegmentType, TokenLogprob
from crosswalk.wire import chat as wire
from crosswalk.wire.chat import (
    read_calls,
    read_content,
    read_message,
    read_role,
    read_source,
    with_parts,
)
from crosswalk.wire.options import Fields, Place, RequestTable, UnnamedCalls, placed, read_details

# ------------------------------------------------------------------------------------ chat
# Requests in the form of OpenAI's Chat Completions: the inverse of :func:`crosswalk.service.build_openai_chat_request`.


_ANSWER_FIELDS: Final = ("refusal", "reasoning_content", "reasoning", "reasoning_details")
"""The fields of a message that only a whole answer can hold."""


def read(body: Fields, raw_body: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *raw_body* is an untouched copy.

    Raises:
        FieldError: it is not a valid request.
    """
    wants = Wants(**_wants(body), defaults=take_neutral(body, "chat"))
    tools = _tools(body)
    turns, marks = _messages(body)
    search_options = body.object("web_search_options")
    hosted_tools = (
        ()
        if search_options is None
        else (hosted_tool(HostedToolKind.WEB_SEARCH, search_options, CHAT, "web_search_options"),)
    )
    return incoming(
        WireForm.OPENAI_CHAT,
        body,
        raw_body,
        wants,
        messages=turns,
        tools=option(body, "tools", "tools", tools),
        hosted_tools=hosted_tools,
        tool_choice=_legacy_choice(body) or tool_choice(body),
        response_format=answer_format(
            body.object("response_format"), CHAT, "response_format[json_schema].json_schema", "json_schema"
        ),
        reasoning_effort=effort(body, "reasoning_effort"),
        cache_marks=marks,
    )


def _wants(body: Fields) -> dict[str, Any]:
    body.object("prompt_cache_options")
    options = body.object("stream_options")
    include_usage = None if options is None else options.flag("include_usage")
    n = body.is_whole("n")
    return {
        "include_usage": bool(include_usage),
        "n": 1 if n is None else n,
        "logprobs": bool(body.is_flag("logprobs")),
        "store": body.is_flag("store"),
        "user": body.is_text("user"),
    }


# The conversation.


def _messages(body: Fields) -> tuple[list[Turn], list[CacheMark]]:
    """Return the conversation, and its cache marks."""
    messages = list(body.objects("messages"))
    if not messages:
        body.refuse("must be a list with at least one message", "messages")
    turns = [_turn(message) for message in _with_calls_of_today(messages)]
    marks = (marks_of(message.opened("content"), number) for number, message in enumerate(messages))
    return turns, [*chain.from_iterable(marks)]


def _with_calls_of_today(messages: list[Fields]) -> Iterator[Fields]:
    """Return *messages*, with the calls of 2023 as tool calls: ``function_call``, and its result with the role ``function``.

    Such a call has no id. It gets one, and the next result of a function of its name answers it. A tool call without
    an id gets one, too, and the results after it that name no call answer such calls in their order.
    """
    ids: dict[str, str] = {}
    unnamed_calls = UnnamedCalls()
    for number, message in enumerate(messages):
        call = message.look("function_call")
        if isinstance(call, dict):
            message.take("function_call")
            ids[str(call.get("name"))] = id = f"call_{number}"
            message.give("tool_calls", [{"id": id, "type": "function", "function": call}])
        elif message.look("role") == "function" and isinstance(message.look("name"), str):
            name = message.take("name")
            message.give("role", "tool")
            message.give("tool_call_id", ids.pop(name, f"call_{name}"))
            message.give("content", message.look("content") or "")
        elif isinstance(calls := message.look("tool_calls"), list):
            unnamed_calls.forget()
            places = ((*message.place, "tool_calls", call_index) for call_index in range(len(calls)))
            message.give(
                "tool_calls", [_with_id(*each, unnamed_calls) for each in zip(calls, places, strict=True)]
            )
        elif message.look("role") == "tool" and message.look("tool_call_id") in (None, ""):
            answered_id = unnamed_calls.answered(message.look("name") or None)
            message.give("tool_call_id", answered_id or message.look("tool_call_id"))
        yield message


def _with_id(call: Any, place: Place, unnamed_calls: UnnamedCalls) -> Any:
    """Return *call*, with an id if it has none."""
    if not isinstance(call, dict) or call.get("id") not in (None, ""):
        return call
    tool = call.get(str(call.get("type")), call.get("function"))
    return {**call, "id": unnamed_calls.id_of(place, tool.get("name") if isinstance(tool, dict) else None)}


def _turn(message: Fields) -> Turn:
    role = read_role(message)
    if role is Role.TOOL and message.look("tool_call_id") in (None, ""):
        message.take("tool_call_id")
        return told_result(
            message, message.text("name"), message.need("content", read_content(message, _other_part))
        )
    if isinstance(message.look("content"), list):
        message.give("content", [*map(_with_sound_at_url, message.take("content"))])
        if role is Role.ASSISTANT and any(map(_is_of_answer, message.look("content"))):
            return _answer(message, [*_chunks(message)])
    if role is Role.ASSISTANT and any(message.look(name) for name in _ANSWER_FIELDS):
        return _answer(message)
    return read_message(message, role, _other_part)


_ANSWER_CHUNKS: Final = ("thinking", "reference")
"""The parts that only Mistral's answers have."""


def _is_of_answer(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _ANSWER_CHUNKS


def _chunks(message: Fields) -> Iterator[dict[str, Any]]:
    """Return the content of *message*, an answer of Mistral, as its server sent it. Parts that it has not become text."""
    for part in message.each("content"):
        if part.look("type") in ("text", *_ANSWER_CHUNKS):
            yield part.rest()
        elif (told := _told(part)) is not None:
            yield {"type": "text", "text": _text(told)}


def _with_sound_at_url(part: Any) -> Any:
    """Return *part*, with Mistral's sound, which is only a text, in the form in which vLLM has the URL of one."""
    sound = (
        part.get(part.get("type")) if isinstance(part, dict) and part.get("type") == "input_audio" else None
    )
    return {"type": "audio_url", "audio_url": {"url": sound}} if isinstance(sound, str) else part


def _other_part(part: Fields) -> ContentPart | None:
    """Return *part*, which another server than OpenAI's has, or tell it."""
    about = read_details(CHAT, f"messages[].content[][{part.given['type']}]", "part", part)
    kind = next((kind for kind in ("audio", "file", "file_id") if isinstance(about.get(kind), str)), None)
    if kind is None:
        return _told(part)
    part.leave("")
    part.take("type")
    if kind == "file_id":
        return FilePart(id=about["file_id"])
    if kind == "file":
        return FilePart(**read_source(about[kind]), name=about.get("name"))
    return AudioPart(**(read_source(about[kind]) if ":" in about[kind] else {"data": about[kind]}))


def _told(part: Fields) -> ContentPart | None:
    """Return *part*, a part or a call of a type that only its own server knows, as JSON."""
    return told_part(part, CHAT, f"messages[].{part.place[-2]}[][{part.given['type']}]")


def _answer(message: Fields, chunks: list[dict[str, Any]] | None = None) -> Turn:
    """Return an answer with more than text and calls, as its server sent it: Mistral in *chunks*."""
    calls, told_calls = read_calls(message, _told)
    content: Any = chunks and [*chunks, *({"type": "text", "text": _text(call)} for call in told_calls)]
    if chunks is None:
        content = with_parts(read_content(message, _other_part), told_calls)
        content = content if isinstance(content, str | None) else "".join(map(_text, content))
    message_body: dict[str, Any] = {"role": "assistant", "content": content}
    for name in _ANSWER_FIELDS:
        read_field = message.items if name == "reasoning_details" else message.text
        if (value := read_field(name)) is not None:
            message_body[name] = value
    if calls:
        message_body["tool_calls"] = [*map(_call, calls)]
    choice = {"index": 0, "message": message_body, "finish_reason": "tool_calls" if calls else "stop"}
    provider = "openai" if chunks is None else "mistral"
    return answer(message, {"object": "chat.completion", "choices": [choice]}, provider)


def _call(call: ToolCall) -> dict[str, Any]:
    kind, arguments_key = ("custom", "input") if call.is_custom else ("function", "arguments")
    return {"id": call.id, "type": kind, kind: {"name": call.name, arguments_key: call.arguments}}


def _text(part: ContentPart) -> str:
    return part.text if isinstance(part, TextPart) else ""


# Options.


def _tools(body: Fields) -> list[ToolDefinition]:
    """Return the client's tools, including legacy ``functions``."""
    tools: list[ToolDefinition] = []
    for tool in body.objects("tools"):
        kind = tool.need("type", tool.text("type"))
        if kind == "function":
            tools.append(
                definition(tool.need("function", tool.object("function")), CHAT, f"{_FUNCTION_PATH}.function")
            )
        elif kind == "custom":
            tools.append(custom_definition(tool.need("custom", tool.object("custom"))))
        else:
            tool.leave()
    return [*tools, *(definition(tool, CHAT, "functions[]") for tool in body.objects("functions"))]


_FUNCTION_PATH: Final = "tools[][function]"


def vendor_tool(tool: Fields, table: RequestTable, kind: str) -> ToolDefinition | HostedTool | None:
    """Return *tool*, which a vendor has defined, or ``None`` if *table* has no canonical kind for its type *kind*.

    For a tool that the client runs, it is the function that stands for it.
    """
    at = f"tools[][{kind}]"
    row = table.row_at(at)
    if row is None or row.path != at:
        return None
    if (known := CLIENT_TOOLS[table.key].get(kind)) is not None:
        name = known.call or tool.need("name", tool.text("name"))
        tool.take("type")
        fields = {**read_details(table, at, "tool", tool), "name": name, "description": known.description}
        with placed(tool):
            return ToolDefinition(**fields, parameters=known.parameters, client_tool=kind)
    if row.place not in [*HostedToolKind]:
        return None
    for name, values in row.beside.items():
        if tool.look(name) in values:
            tool.take(name)
    return hosted_tool(HostedToolKind(row.place), tool, table, at)


def hosted_tool(kind: HostedToolKind, tool: Fields, table: RequestTable, path: str) -> HostedTool:
    """Return the tool of a server that *tool* asks for, an object that *table* has at the path *path*."""
    fields = read_details(table, path, "hosted", tool)
    with placed(tool):
        return HostedTool(kind, **fields)


def mcp_server(server: Fields, table: RequestTable, path: str, **other_fields: Any) -> dict[str, Any]:
    """Return the item of the option ``mcp_servers`` that *server* is, an object that *table* has at the path *path*."""
    return {**other_fields, **read_details(table, path, "mcp", server)}


def _legacy_choice(body: Fields) -> str | NamedTool | None:
    """Return the choice among the legacy ``functions``."""
    if not isinstance(body.look("function_call"), dict):
        return body.word("function_call", {"auto": "auto", "none": "none"})
    choice_object = body.object("function_call")
    assert choice_object is not None, "it is an object"
    with placed(choice_object, "name"):
        return NamedTool(choice_object.need("name", choice_object.text("name")))


def answer_format(
    format_fields: Fields | None, table: RequestTable, path: str, nested_name: str = ""
) -> ResponseFormat | None:
    """Return the required format of the answer from *format_fields*, or ``None`` for free text and for unknown kinds.

    Args:
        format_fields: the format.
        table: the table of the client's format.
        path: the path at which it has the description of a schema.
        nested_name: the field with the description of a schema, or ``""`` if *format_fields* itself is it.
    """
    kind = None if format_fields is None else format_fields.need("type", format_fields.text("type"))
    if format_fields is None or kind == "text":
        return None
    if kind == "json_object":
        return ResponseFormat(strict=False)
    if kind != "json_schema":
        format_fields.leave()
        return None
    schema_fields = (
        format_fields.need(nested_name, format_fields.object(nested_name)) if nested_name else format_fields
    )
    fields = read_details(table, path, "format", schema_fields)
    schema_fields.need("schema", fields.get("schema"))
    with placed(format_fields):
        return ResponseFormat(**{"strict": False, **fields})


def effort(fields: Fields, name: str) -> str | None:
    """Return the reasoning effort from the field *name*."""
    return fields.word(name, read_words("reasoning_effort", "chat"))


# ----------------------------------------------------------------------------- completions
# Requests in the form of OpenAI's legacy Completions: a text to continue, which becomes the user's message.


def read_completions(body: Fields, raw_body: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *raw_body* is an untouched copy.

    Raises:
        FieldError: it is not a valid request, or asks to continue several texts, or tokens.
    """
    echo, user, n = body.flag("echo"), body.is_text("user"), body.is_whole("n")
    logprobs = body.is_whole("logprobs")
    stream_options = body.object("stream_options")
    include_usage = None if stream_options is None else stream_options.flag("include_usage")
    defaults = take_neutral(body, "completions", {"suffix": ""})
    prompt = _prompt(body)
    with placed(body, "prompt"):
        messages = [ChatMessage.user(prompt)]
    return incoming(
        WireForm.OPENAI_COMPLETIONS,
        body,
        raw_body,
        Wants(
            include_usage=bool(include_usage),
            n=1 if n is None else n,
            echo=bool(echo),
            logprobs=logprobs is not None,
            user=user,
            defaults=defaults,
        ),
        messages=messages,
    )


def _prompt(body: Fields) -> str:
    """Return the text to continue.

    Each of several texts would be a separate conversation: a call that may fail by itself, and that no limit of the client's
    accounts for. A client with several texts sends a request for each.
    """
    prompt = body.need("prompt", body.take("prompt"))
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt
    items = prompt if isinstance(prompt, list) else []
    if items and all(isinstance(item, str) for item in items):
        body.refuse(f"holds {len(items)} texts: send a request for each", "prompt")
    if any(isinstance(item, int | list) for item in items):
        body.refuse("must be a text, not numbers of tokens: these are of one model", "prompt")
    body.refuse("must be one text", "prompt")


# ----------------------------------------------------------------------------- openai chat
# Chat Completions: the body of ``/v1/chat/completions``, and its chunks.
#
# A body is the sum of the deltas of its chunks. Reasoning is written to ``reasoning_content``, where servers that show
# any put it (provider document "OpenAI Chat Completions", section 9). OpenAI's own endpoint has no field for it.


_FIELD_BY_TYPE: Final = first_words(wire.FIELDS)
_TEXT_TYPES: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.REFUSAL)


class WrittenChoice:
    """One answer under construction."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.length = 0  # of a completion, in characters
        self.ids = CallIDs(number)
        self.calls: dict[int, Event] = {}  # their fields that were sent
        self.cited = CitedText()
        self.details: list[Event] = []  # the known details of its reasoning, in its own form
        self.tokens: list[TokenLogprob] = []  # of the chunk to come
        self.finish: str | None = None
        self.has_begun = False
        self.has_audio = False
        self.held: list[
            Event
        ] = []  # deltas that wait for the choices before it; all of them for a whole answer

    def message(self) -> Event:
        """Return all buffered deltas as a message."""
        message: Event = {"role": "assistant", "content": None, "refusal": None}
        texts: dict[str, list[str]] = {}
        calls: dict[int, Event] = {}
        for name, piece in (item for delta in self.held for item in delta.items()):
            if isinstance(piece, str):
                texts.setdefault(name, []).append(piece)
            elif name == "tool_calls":
                call = {key: value for key, value in piece[0].items() if key != "index"}
                calls[piece[0]["index"]] = call
                if "function" in call:
                    call["function"]["arguments"] = call["function"]["arguments"] or "{}"
            else:
                message[name] = piece
        message |= {name: "".join(piece) for name, piece in texts.items()}
        if calls:
            message["tool_calls"] = [calls[self.calls[index]["index"]] for index in sorted(self.calls)]
        return message


class ChatWriter(Writer):
    """Writes Chat Completions."""

    form = WireForm.OPENAI_CHAT
    objects: ClassVar[tuple[str, str]] = (wire.BODY, wire.CHUNK)
    """The ``object`` of a body, and of a chunk."""

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._choices: dict[int, WrittenChoice] = {0: WrittenChoice(0)}
        self._next = 0  # the choice to begin next: clients take them in the order of their numbers only

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        choice = self._choice(piece.choice)
        choice.cited.add(piece)
        delta = self._delta(piece, choice)
        detail = _detail_of(piece, is_own=self.is_own)
        if detail is not None:
            choice.details.append(detail)  # it is restored with the reasoning
            if not self.whole:
                delta["reasoning_details"] = [choice.details[-1]]
        if delta:
            choice.held.append(delta)
            if not self.whole:
                yield from self._advance(choice)

    def _advance(self, choice: WrittenChoice) -> Iterator[Event]:
        """Write the waiting deltas of *choice* if the choices before it have begun, then those that waited for it."""
        if choice.number and not self._next:
            yield self._chunk(self._choices[0], {})  # there always is one
            self._next = 1
        ready_choice: WrittenChoice | None = choice
        while ready_choice is not None and ready_choice.held and ready_choice.number <= self._next:
            yield from self._written(ready_choice)
            if ready_choice.number < self._next:
                return
            self._next += 1
            ready_choice = self._choices.get(self._next)

    def _written(self, choice: WrittenChoice) -> Iterator[Event]:
        deltas, choice.held = choice.held, []
        for delta in deltas:
            yield self._chunk(choice, delta)

    def _delta(self, piece: Piece, choice: WrittenChoice) -> Event:
        if piece.call is not None:
            return {"tool_calls": [self._call(piece, choice)]}
        name = _FIELD_BY_TYPE.get(piece.type, "")
        if piece.type in _TEXT_TYPES:
            return {name: piece.text} if piece.text else {}
        if piece.type is SegmentType.MEDIA and not choice.has_audio:
            audio = {**piece.metadata.thawed(), "data": piece.text}
            if audio.get("type") == name and PIECE in audio and not self.whole:
                return {name: {key: audio[key] for key in wire.AUDIO if audio.get(key)}}
            is_whole = all(type(audio.get(key)) is kind for key, kind in wire.AUDIO.items())
            if is_whole and piece.text and audio.get("type") == name:
                choice.has_audio = True
                return {name: {key: audio[key] for key in wire.AUDIO}}
        return {}

    def _call(self, piece: Piece, choice: WrittenChoice) -> Event:
        call_piece = piece.call
        assert call_piece is not None, "the caller has looked"
        sent_fields = choice.calls.get(call_piece.index, {})
        # OpenAI's client cannot add up the pieces of a custom call.
        kind = "custom" if self.whole and call_piece.kind is not None else "function"
        tool_fields = {"arguments" if kind == "function" else "input": piece.text}
        call: Event = {"index": sent_fields.get("index", len(choice.calls)), kind: tool_fields}
        if not sent_fields:
            # In the order in which they begin, as in the other forms: clients take no later number first.
            sent_fields = choice.calls[call_piece.index] = {"index": call["index"], "id": None, "name": None}
            call["type"] = kind
        if call_piece.id and sent_fields["id"] is None:
            sent_fields["id"] = call["id"] = choice.ids.take(call_piece.id, call_piece.index)
        if call_piece.name and sent_fields["name"] is None:
            sent_fields["name"] = tool_fields["name"] = call_piece.name
        return call

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        self._choice(choice).tokens += tokens

    def end(self, reason: FinishReason, finish_word: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        own_word = finish_word if (self.whole and self.is_own) or finish_word in PAUSES else None
        self._choice(choice).finish = self.word_for(reason, own_word, wire.WRITTEN)

    error_event = staticmethod(openai_error)
    frame = staticmethod(unnamed_frame)

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`. Citations, and ids of calls that got none, are known only at the end."""
        for _, choice in sorted(self._choices.items()):
            whole = 0, choice.cited.length
            citations = [url_citation(piece, span or whole) for piece, span in choice.cited.citations()]
            annotations = [{"type": "url_citation", "url_citation": one} for one in citations if one]
            if annotations:  # clients take one list of them only
                choice.held.append({_FIELD_BY_TYPE[SegmentType.CITATION]: annotations})
            for index, call in sorted(choice.calls.items()):
                if call["id"] is None and call["name"] is not None:
                    identity = {"index": call["index"], "id": choice.ids.take(None, index)}
                    choice.held.append({"tool_calls": [{**identity, "function": {"arguments": ""}}]})
            if not self.whole:
                yield from self._written(choice)

    def _last(self) -> Iterable[Event]:
        """See :meth:`Writer._last`."""
        chunks = [self._chunk(choice, {}, choice.finish) for _, choice in sorted(self._choices.items())]
        choices = [chunk["choices"][0] for chunk in chunks]
        if self.usage is not None:
            chunks.append({**self._top, "choices": [], "usage": self.usage.to_openai()})
        if self.is_own:
            self._put_back(chunks[-1], choices)
        yield from chunks
        yield {}  # the end marker

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        choices = [self._entry(choice) for _, choice in sorted(self._choices.items())]
        body = {**self._top, "choices": choices}
        if self.usage is not None:
            body["usage"] = self.usage.to_openai()
        if self.is_own:
            self._put_back(body, choices)
        for choice_object in choices:
            if details := self._choices[choice_object["index"]].details:
                _add_details(choice_object["message"], details)
        return self.spelled(body)

    def _entry(self, choice: WrittenChoice) -> Event:
        """Return *choice* in a body."""
        leading_fields = {"index": choice.number, "message": choice.message()}
        return {**leading_fields, "logprobs": _logprobs(choice), "finish_reason": choice.finish}

    def _put_back(self, top: Event, choices: list[Event]) -> None:
        """Put the stored fields of the answer back into its *choices*, and the others into *top*."""
        stored_fields, written_key = self.left, "message" if self.whole else "delta"
        stored_key = "delta" if stored_fields.pop("object", None) == wire.CHUNK else "message"
        choices_by_index = {choice["index"]: choice for choice in choices}
        left_choices = stored_fields.pop("choices", ())
        for position, entry in enumerate(left_choices if isinstance(left_choices, list) else ()):
            if not isinstance(entry, dict) or type(entry.get("index", position)) is not int:
                continue
            if stored_key in entry:
                entry[written_key] = entry.pop(stored_key)
            if not self.whole:
                entry.pop("logprobs", None)  # they were written, piece by piece
                if isinstance(entry.get(written_key), dict):
                    entry[written_key] = {
                        key: value for key, value in entry[written_key].items() if key not in _SPEECH_FIELDS
                    }
            choice = choices_by_index.get(entry.pop("index", position))
            if choice is not None:
                put_back(choice, entry, over=self.whole)
        if self.usage is None and not self.whole:
            stored_fields.pop("usage", None)
        put_back(top, stored_fields)

    def spelled(self, event: Event) -> Event:
        """See :meth:`Writer.spelled`."""
        spell = None if self.heading.own is None else self.heading.own.info.spell
        if spell is None or self.error is not None:
            return event
        spelled_event: Event = copy_json(event)
        try:
            spell(spelled_event)
        except Exception:
            return event  # the stored fields have another shape than that server's answers
        return spelled_event

    def _choice(self, number: int) -> WrittenChoice:
        if number not in self._choices:
            self._choices[number] = WrittenChoice(number)
        return self._choices[number]

    def _chunk(self, choice: WrittenChoice, delta: Event, finish: str | None = None) -> Event:
        if not choice.has_begun:
            choice.has_begun = True
            delta = {"role": "assistant", **delta}
        choice_object: Event = {"index": choice.number, "delta": delta, "finish_reason": finish}
        if logprobs := _logprobs(choice):
            choice_object["logprobs"] = logprobs
        return {**self._top, "choices": [choice_object]}

    @cached_property
    def _top(self) -> Event:
        heading = self.heading
        created, object = int(heading.created.timestamp()), self.objects[not self.whole]
        top: Event = {"id": heading.id, "object": object, "created": created, "model": heading.model}
        fingerprint = heading.extensions.get("system_fingerprint")
        if (tier := heading.tier()) in TIERS:
            top["service_tier"] = tier
        if isinstance(fingerprint, str):
            top["system_fingerprint"] = fingerprint
        return top


_SPEECH_FIELDS: Final = ("role", _FIELD_BY_TYPE[SegmentType.TEXT], _FIELD_BY_TYPE[SegmentType.TOOL_CALL])
"""The fields that the deltas of a stream have sent, regardless of the stored ones."""


def _logprobs(choice: WrittenChoice) -> Event | None:
    """Return the log probabilities of *choice* that have not been written, or ``None`` without any."""
    if not choice.tokens:
        return None
    tokens, choice.tokens = logprobs_of(tuple(choice.tokens)), []
    return {"content": tokens, "refusal": None} if tokens else None


def _detail_of(piece: Piece, *, is_own: bool) -> Event | None:
    """Return the detail of reasoning in *piece*: as its server has sent it, or a gateway's seal, or ``None`` for another."""
    metadata = piece.metadata
    if piece.type is not SegmentType.REASONING or "type" not in metadata:
        return None
    if is_own:
        return metadata.thawed()
    is_seal = metadata.get("format") == "crosswalk"
    return (
        {"type": metadata["type"], "format": metadata["format"], "data": metadata["encrypted"]}
        if is_seal
        else None
    )


def _add_details(message: Event, details: list[Event]) -> None:
    """Put the *details* of its reasoning into *message*, each into its stored entry, or behind those of text alone."""
    existing_details = message.setdefault("reasoning_details", [])
    if not (
        isinstance(existing_details, list) and all(isinstance(detail, dict) for detail in existing_details)
    ):
        return
    details_by_key = {
        (str(detail.get("type")), str(detail.get("index"))): detail for detail in existing_details
    }
    for detail in details:
        existing_detail = details_by_key.get((str(detail["type"]), str(detail.get("index"))))
        if existing_detail is None:
            existing_details.append(detail)
        else:
            existing_detail.update(detail)


# ---------------------------------------------------------------------- openai completions
# Legacy Completions: the body of ``/v1/completions``, and its chunks. They hold only text.


_FINISH_WORDS: Final = {
    word: meaning for word, meaning in wire.WRITTEN.items() if meaning is not FinishReason.TOOL_CALLS
}


class CompletionsWriter(ChatWriter):
    """Writes legacy Completions: Chat Completions with a text in place of the message."""

    form = WireForm.OPENAI_COMPLETIONS
    objects = (wire.TEXT, wire.TEXT)

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        # The reason of a refusal has no other field.
        if piece.call is None and piece.type in (SegmentType.TEXT, SegmentType.REFUSAL) and piece.text:
            choice = self._choice(piece.choice)
            if self.whole:
                choice.held.append({"text": piece.text})
            else:
                yield self._chunk(choice, {"text": piece.text})

    def end(self, reason: FinishReason, finish_word: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        self._choice(choice).finish = self.word_for(reason, finish_word, _FINISH_WORDS)

    def spelled(self, event: Event) -> Event:
        """See :meth:`Writer.spelled`."""
        return event

    def _entry(self, choice: WrittenChoice) -> Event:
        return self._said(choice, "".join(delta["text"] for delta in choice.held), choice.finish)

    def _chunk(self, choice: WrittenChoice, delta: Event, finish: str | None = None) -> Event:
        return {**self._top, "choices": [self._said(choice, delta.get("text", ""), finish)]}

    def _said(self, choice: WrittenChoice, text: str, finish: str | None) -> Event:
        tokens, choice.tokens = choice.tokens, []
        logprobs = _logprob_lists(tokens, choice.length) if tokens else None
        choice.length += len(text)
        return {"text": text, "index": choice.number, "logprobs": logprobs, "finish_reason": finish}

    def _put_back(self, top: Event, choices: list[Event]) -> None:
        stored_fields = self.left
        left_choices = stored_fields.pop("choices", ())
        for entry in left_choices if isinstance(left_choices, list) else ():
            if isinstance(entry, dict):  # some servers use this name for the answers of a chat, too
                entry.pop("message", None)
                entry.pop("delta", None)
        put_back({"choices": choices}, {"choices": left_choices})
        put_back(top, stored_fields)


def _logprob_lists(tokens: Iterable[TokenLogprob], start: int) -> Event:
    """Return *tokens* in the lists of the legacy form. *start* is the position of the first one in the text."""
    lists: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": [],
    }
    for token in tokens:
        lists["tokens"].append(token.token)
        lists["token_logprobs"].append(token.logprob)
        lists["top_logprobs"].append({other.token: other.logprob for other in token.top} or None)
        lists["text_offset"].append(start)
        start += len(token.token)
    return lists
