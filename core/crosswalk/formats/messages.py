"""Anthropic's Messages: requests read, answers written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import ResponseValidationError
from crosswalk.formats.chat import mcp_server, vendor_tool
from crosswalk.formats.messages_table import MESSAGES, says_toolset, without_unsigned
from crosswalk.formats.reading import (
    Incoming,
    Wants,
    answer,
    cache_marks,
    definition,
    effort_of,
    incoming,
    marks_of,
    read_words,
    take_neutral,
    told_if_unknown,
    told_part,
    told_result,
)
from crosswalk.formats.writing import (
    CallIDs,
    Event,
    Heading,
    JSONObjectText,
    Piece,
    WireForm,
    Writer,
    anthropic_error,
    as_input,
    hidden_of,
    input_of,
    is_cut_input,
    is_of_block,
    json_of,
    put_back,
    search_pieces,
    url_citation,
    without_place,
)
from crosswalk.mapping.reader import drain
from crosswalk.request import (
    CacheMark,
    HostedTool,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    Turn,
)
from crosswalk.types.json import copy_json, dump_json
from crosswalk.types.message import (
    CallKind,
    ChatMessage,
    ContentPart,
    DocumentPart,
    FilePart,
    ImagePart,
    Role,
    SearchResultPart,
    TextPart,
    ToolCall,
)
from crosswalk.types.usage import UsageInfo, counts_at
from crosswalk.types.values import FinishReason, SegmentType, altered
from crosswalk.wire import messages as wire, messages as wire_form
from crosswalk.wire.options import VERSION, Fields, UnnamedCalls, path_of, placed, read_details

# -------------------------------------------------------------------------------- messages
# Requests in the form of Anthropic's Messages. Facts: provider document "Anthropic Messages".


def read(body: Fields, raw_body: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *raw_body* is an untouched copy.

    Raises:
        FieldError: it is not a valid request.
    """
    defaults = take_neutral(body, "messages")
    raw_body, unsigned = without_unsigned(raw_body)
    conversation = _Conversation(body)
    tools, hosted = conversation.tools(body)
    metadata = body.object("metadata")
    user = None if metadata is None else metadata.is_text("user_id")
    choice, parallel = _choice(body)
    config = body.object("output_config")
    servers = [*_servers(body)]
    toolsets = [*_toolsets(body, servers)]
    read = incoming(
        WireForm.ANTHROPIC,
        body,
        raw_body,
        Wants(include_usage=True, user=user, defaults=defaults),
        messages=conversation.turns,
        places=conversation.places,
        tools=tools,
        hosted_tools=hosted,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=None if config is None else _format(config),
        reasoning_effort=_effort(body, config),
        cache_marks=conversation.marks,
        extra_options={"mcp_servers": servers} if servers else None,
    )
    instead = {**dict.fromkeys(toolsets, ()), **conversation.instead({tool.name for tool in tools})}
    more: dict[str, Any] = {"unsigned": unsigned, "details": conversation.details, "instead": instead}
    return altered(read, request=altered(read.request, **more)) if any(more.values()) else read


def _effort(body: Fields, config: Fields | None) -> str | None:
    """Return the reasoning effort: the word for it, or else a budget. The exact number of a budget stays unread."""
    thinking = body.object("thinking")
    kind = None if thinking is None else thinking.need("type", thinking.text("type"))
    if kind == "disabled":
        return ReasoningEffort.NONE
    effort = None if config is None else config.word("effort", read_words("reasoning_effort", "messages"))
    if effort is not None or thinking is None:
        return effort
    if kind == "adaptive":
        return ReasoningEffort.HIGH
    if kind == "enabled":
        return effort_of(thinking.need("budget_tokens", thinking.is_whole("budget_tokens")))
    thinking.leave()
    return None


def _format(config: Fields) -> ResponseFormat | None:
    wanted = config.object("format")
    if wanted is None:
        return None
    if wanted.need("type", wanted.text("type")) != "json_schema":
        wanted.leave()
        return None
    fields = read_details(MESSAGES, "output_config.format[json_schema]", "format", wanted)
    with placed(wanted, "schema"):
        return ResponseFormat(wanted.need("schema", fields.get("schema")))


def _choice(body: Fields) -> tuple[str | NamedTool | None, bool | None]:
    choice = body.object("tool_choice")
    if choice is None:
        return None, None
    alone = choice.flag("disable_parallel_tool_use")
    parallel = None if alone is None else not alone
    kind = choice.need("type", choice.text("type"))
    if kind == "tool":
        with placed(choice, "name"):
            return NamedTool(choice.need("name", choice.text("name"))), parallel
    choices = read_words("tool_choice", "messages")
    if kind not in choices:
        choice.leave()
        return None, None
    return choices[kind], parallel


class _Conversation:
    """The conversation of *body* as turns, with its cache marks.

    Attributes:
        turns: the system's messages, then the messages of user and model and the results of tools.
        marks: the marks in places where a mark is possible.
        places: the place of each turn.
        details: what is said of documents, search results and changes of tools, by the ``id()`` of their parts.
    """

    def __init__(self, body: Fields) -> None:
        self.turns: list[Turn] = []
        self.places: list[str] = []
        self.marks: list[CacheMark] = []
        self.details: dict[int, dict[str, Any]] = {}
        self._unnamed_calls = UnnamedCalls()
        self._blocks: list[Fields] = []
        changes: list[Any] = []
        self._system(body)
        self.places += ["system"] * len(self.turns)
        messages = list(body.objects("messages"))
        if not messages:
            body.refuse("must be a list with at least one message", "messages")
        for message in messages:
            role = message.need("role", message.text("role"))
            if role not in ("user", "assistant", "system"):
                message.refuse("must be one of user, assistant", "role")
            if isinstance(message.need("content", message.look("content")), str):
                with placed(message, "content"):
                    self._say(ChatMessage(role, message.text("content")))
            elif role == "user":
                self._user(message)
            elif role == "assistant":
                self._answer(message)
            else:
                self._say(ChatMessage.system([*_parts(message, self.details)]))
                self.marks += marks_of(message.opened("content"), len(self.turns) - 1)
            self.places += [path_of(message.place)] * (len(self.turns) - len(self.places))
            self._blocks += message.opened("content")
            changes += filter(None, map(_tool_change, message.opened("content")))
            if changes and self._change_tools(changes):
                changes = []

    def _change_tools(self, changes: list[Any]) -> bool:
        """Note *changes* of the tools with the last part of what the user said last, or return that there is none."""
        for number, turn in reversed([*enumerate(self.turns)]):
            if isinstance(turn, ChatMessage) and turn.role in (Role.USER, Role.TOOL) and turn.content:
                parts = (TextPart(turn.content),) if isinstance(turn.content, str) else turn.content
                self.turns[number] = attrs.evolve(turn, content=parts)
                about = self.details.setdefault(id(parts[-1]), {})
                about["tool_changes"] = [*about.get("tool_changes", ()), *changes]
                return True
        return False

    def instead(self, names: set[str]) -> dict[str, tuple[ToolDefinition, ...]]:
        """Return the tools that messages add, by the place of the block, without those of the *names* that are declared."""
        instead: dict[str, tuple[ToolDefinition, ...]] = {}
        for block in self._blocks:
            tool = block.given.get("tool") if block.given["type"] == "tool_addition" else None
            if not isinstance(tool, dict) or "cache_control" in block.given:
                continue
            given, place = tool.get("definition"), path_of(block.place)
            if tool.get("type") == "tool_reference" and tool.get("name") in names:
                instead[place] = ()
            if isinstance(given, dict) and given.get("type") in (None, "custom"):
                inner = Fields({**copy_json(given), "type": None}, block.place)
                try:
                    added_tool = definition(inner, MESSAGES, "tools[][custom]")
                except ResponseValidationError:  # the server of this format checks it
                    continue
                if not [*inner.unread()]:
                    instead[place] = () if added_tool.name in names else (added_tool,)
                    names = names | {added_tool.name}
        return instead

    def _say(self, turn: Turn, *blocks: tuple[Fields, int]) -> None:
        """Add *turn*, made of *blocks*, each with the number of its last part. Each may have a mark."""
        self.turns.append(turn)
        for number, (block, part) in enumerate(blocks, 1):
            self._mark(block, len(self.turns) - 1, None if number == len(blocks) else part)

    def _mark(self, block: Fields, after: Any, part: int | None = None) -> None:
        self.marks += cache_marks(block, after, part)

    def _system(self, body: Fields) -> None:
        if isinstance(body.look("system"), str | None):
            if system := body.text("system"):
                self._say(ChatMessage.system(system))
            return
        blocks = list(body.objects("system"))
        for number, block in enumerate(blocks):
            if block.need("type", block.text("type")) != "text":
                block.refuse("must be text", "type")
            with placed(block, "text"):
                self.turns.append(ChatMessage.system(block.need("text", block.text("text"))))
            self._mark(block, "system" if number == len(blocks) - 1 else number)

    def _user(self, message: Fields) -> None:
        parts: list[ContentPart] = []
        of: list[tuple[Fields, int]] = []
        count = len(self.turns)
        for block in message.objects("content"):
            kind = block.need("type", block.text("type"))
            if kind == "tool_result":
                if parts:
                    self._say(ChatMessage.user(parts), *of)
                parts, of = [], []
                result = self._result(block)
                inner = [part for part in block.opened("content") if not part.is_left]
                self._say(result, *((part, number) for number, part in enumerate(inner[:-1])), (block, 0))
            elif read := [*_part(block, kind, self.details)]:
                parts += read
                of.append((block, len(parts) - 1))
        if parts or len(self.turns) == count:
            self._say(ChatMessage.user(parts), *of)

    def _result(self, block: Fields) -> ChatMessage:
        """Return the result of a call. If it names none, it answers the first call without an id, or is told as text."""
        is_error = block.flag("is_error")
        id = block.text("tool_use_id") or self._unnamed_calls.answered()
        content: Any = block.look("content")
        content = (
            block.text("content") or "" if isinstance(content, str | None) else [*_parts(block, self.details)]
        )
        with placed(block):
            if id is None:
                return told_result(block, None, content)
            return ChatMessage.tool_result(id, content, is_error=is_error)

    def _answer(self, message: Fields) -> None:
        blocks = list(message.objects("content"))
        kinds = [block.need("type", block.text("type")) for block in blocks]
        turn = len(self.turns)
        markable = [b for b, kind in zip(blocks, kinds, strict=True) if kind not in wire_form.UNMARKED]
        if markable:
            self._mark(markable[-1], turn)
        self._unnamed_calls.forget()
        server_calls = UnnamedCalls()
        for block, kind in zip(blocks, kinds, strict=True):
            if kind.endswith("tool_use") and not block.look("id"):
                calls = self._unnamed_calls if kind == "tool_use" else server_calls
                block.give("id", calls.id_of(block.place))
            elif (
                kind.endswith("tool_result")
                and not block.look("tool_use_id")
                and (id := server_calls.answered())
            ):
                block.give("tool_use_id", id)
        plain_blocks = [_as_known(block, kind) for block, kind in zip(blocks, kinds, strict=True)]
        self.turns.append(_plain(plain_blocks, message) or _whole(plain_blocks, message))

    # Tools.

    def tools(self, body: Fields) -> tuple[list[ToolDefinition], list[HostedTool]]:
        """Return the tools of *body*: those of the client, and those of the server."""
        own: list[ToolDefinition] = []
        hosted: list[HostedTool] = []
        tools = list(body.objects("tools"))
        for tool in tools:
            kind = tool.is_text("type")
            if kind is None or kind == "custom":
                tool.take("type")
                own.append(definition(tool, MESSAGES, "tools[][custom]"))
            elif (known := vendor_tool(tool, MESSAGES, VERSION.sub("", kind))) is None:
                tool.leave()
                continue
            elif isinstance(known, HostedTool):
                hosted.append(known)
            else:
                own.append(known)
            if tool is tools[-1]:
                self._mark(tool, "tools")
        return own, hosted


def _servers(body: Fields) -> Iterator[dict[str, Any]]:
    """Return the MCP servers of *body*, whose tools run without being asked for."""
    for server in body.objects("mcp_servers"):
        server.take("type")
        yield mcp_server(server, MESSAGES, "mcp_servers[]", approval="never")


def _toolsets(body: Fields, servers: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the places of the toolsets that say no more than *servers*, which get the names of the tools that are on."""
    named = {server.get("name"): server for server in servers}
    for tool in body.opened("tools"):
        if tool.given.get("type") == "mcp_toolset":
            name = tool.given.get("mcp_server_name")
            server = named.pop(name, None) if isinstance(name, str) else None
            if server is not None and says_toolset(server, tool.given):
                yield path_of(tool.place)


# Parts of user messages.


def _tool_change(block: Fields) -> dict[str, Any] | None:
    """Return *block* with its cache mark, if it adds or removes a declared tool, or ``None``."""
    raw_block, tool = block.given, block.given.get("tool")
    if raw_block["type"] not in ("tool_addition", "tool_removal") or not isinstance(tool, dict):
        return None
    mark = next(cache_marks(Fields(raw_block, block.place), "system"), None)
    is_known = tool.get("type") == "tool_reference" and isinstance(tool.get("name"), str)
    return {**raw_block, "mark": mark} if is_known and (mark or "cache_control" not in raw_block) else None


_Details: TypeAlias = dict[int, dict[str, Any]]


def _parts(fields: Fields, details: _Details, name: str = "content") -> Iterator[ContentPart]:
    for block in fields.objects(name):
        yield from _part(block, block.need("type", block.text("type")), details)


def _part(block: Fields, kind: str, details: _Details) -> Iterator[ContentPart]:
    """Return *block* as parts, or none if there is no such part. Then it stays unread. Add to *details* what they lack."""
    if kind == "text":
        with placed(block, "text"):
            yield TextPart(block.need("text", block.text("text")))
            return
    source, source_type = block.look("source"), None
    if kind in ("image", "document") and isinstance(source, dict):
        source_type = source.get("type")
    if source_type in ("base64", "url"):
        yield _at_place(block, _medium(block, kind), details)
    elif kind == "search_result":
        yield from _search_result(block, details)
    elif kind == "document" and source_type in ("text", "content"):
        yield from _document(block, details)
    elif kind == "tool_reference":
        block.is_told = True
        yield TextPart(block.text("tool_name") or "")
    elif (part := told_part(block, MESSAGES, f"messages[].content[][{kind}]")) is not None:
        yield part


def _medium(block: Fields, kind: str) -> ContentPart:
    source = block.need("source", block.object("source"))
    field = "data" if source.text("type") == "base64" else "url"
    where = {field: source.need(field, source.text(field)), "media_type": source.text("media_type")}
    with placed(source):
        if kind == "image":
            return ImagePart(**where)
        return FilePart(**where, **_about(block, kind))


def _about(block: Fields, kind: str) -> dict[str, Any]:
    """Return what *block*, of the type *kind*, says of its content, which has been taken."""
    return read_details(MESSAGES, f"messages[].content[][{kind}]", "part", block)


def _at_place(block: Fields, part: ContentPart, details: _Details) -> ContentPart:
    """Return *part*, which *block* is, and note the place of *block* in *details*."""
    details[id(part)] = {"at": path_of(block.place)}
    return part


def _texts(holder: Fields, name: str, details: _Details) -> tuple[list[str], list[ContentPart]]:
    """Return the texts in the field *name* of *holder*, a text or a list of blocks, and what else is in it."""
    if isinstance(holder.look(name), str | None):
        return [holder.text(name) or ""], []
    parts = [*_parts(holder, details, name)]
    texts = [part.text for part in parts if type(part) is TextPart]
    return texts or [""], [part for part in parts if type(part) is not TextPart]


def _search_result(block: Fields, details: _Details) -> Iterator[ContentPart]:
    """Return *block* as the result of a search, and what else than text is in it."""
    texts, others = _texts(block, "content", details)
    title, source = (block.text(name) or "" for name in ("title", "source"))
    found = SearchResultPart(texts, title=title, source=source, **_about(block, "search_result"))
    yield _at_place(block, found, details)
    yield from others


def _document(block: Fields, details: _Details) -> Iterator[ContentPart]:
    """Return *block* as a document of text, and what else than text is in it."""
    source = block.need("source", block.object("source"))
    is_text = source.text("type") == "text"
    source.take("media_type")
    texts, others = _texts(source, "data" if is_text else "content", details)
    about = _about(block, "document")
    yield _at_place(block, DocumentPart(texts, title=about.pop("name", None), **about), details)
    yield from others


# Answers of the model.


def _as_known(block: Fields, kind: str) -> dict[str, Any]:
    """Return *block* as its server sent it, or as a text if no block of its type *kind* is known."""
    text = told_if_unknown(block, MESSAGES, f"messages[].content[][{VERSION.sub('', kind)}]")
    return {"type": kind, **block.rest()} if text is None else {"type": "text", "text": text}


def _plain(blocks: list[dict[str, Any]], message: Fields) -> ChatMessage | None:
    """Return the message of *blocks*: a text, then calls, or ``None`` if they are more than that."""
    text: str | None = None
    calls: list[ToolCall] = []
    for number, block in enumerate(blocks):
        if block.keys() == {"type", "text"} and not number and isinstance(block["text"], str):
            text = block["text"]
        elif block.keys() == {"type", "id", "name", "input"} and isinstance(block["input"], dict):
            with placed(message, "content", number):
                calls.append(ToolCall(block["id"], block["name"], dump_json(block["input"]).decode()))
        else:
            return None
    with placed(message, "content"):
        return ChatMessage.assistant(text, tool_calls=calls or None)


def _whole(blocks: list[dict[str, Any]], message: Fields) -> Turn:
    """Return the answer of *blocks*, as its server sent it."""
    end = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    end_fields = {"stop_reason": end, "stop_sequence": None, "usage": {"output_tokens": 0}}
    body = {"type": "message", "role": "assistant", "content": blocks, **end_fields}
    return answer(message, body, WireForm.ANTHROPIC.provider)


# ------------------------------------------------------------------------------- anthropic
# Messages: the body of ``/v1/messages``, and its events (provider document "Anthropic Messages").
#
# One content block is open at a time. A part that arrives while the arguments of a call are still arriving waits for
# their
# end. Arguments are sent when they are complete and known to be an object, or its beginning if the answer was cut.
# Others are
# sent as a text under ``INVALID_JSON``: clients fail on invalid JSON, and would run a call with an empty input.


_TYPE_OF: Final = {piece.leaf: type for type, piece in wire.PIECES.items()}
"""The type of the piece that brings each leaf."""
_LATE_FIELDS: Final = ("content", *wire.AT_END)
"""The fields that the start of the message lacks."""


class _Block:
    """A content block that is to be written, with its known facts."""

    def __init__(self, part: int, said: Event) -> None:
        self.part = part
        self.said = said
        self.waiting: list[Piece] = []
        self.index = -1
        self.texts: list[str] = []
        self.has_text = False
        self.is_signed = False
        self.is_cited_behind = False
        self.id: str | None = None
        self.name: str | None = None
        self.kind: CallKind | None = None
        self.arguments = JSONObjectText()

    @property
    def is_ended(self) -> bool:
        """Whether the next block may begin, because this one is complete."""
        return self.said["type"] != "tool_use" or self.arguments.is_complete


class MessagesWriter(Writer):
    """Writes Anthropic's Messages, the first of several answers."""

    form = WireForm.ANTHROPIC

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._content: list[Event] = []
        self._calls: dict[int, _Block] = {}  # the client's calls by part
        self._ids = CallIDs()
        self._queue: deque[_Block] = deque()  # the open block, then those that wait for its end
        self._refusal: list[str] = []
        self._refusal_details: Event | None = None  # of a refusal
        self._stop_reason: str | None = None
        self._is_cut = False  # a client of a stream does not run a call of an answer that was cut
        self._has_begun = False
        self._at = 0  # the number of stored blocks that have been examined
        self._start_fields: Event = {}  # the stored fields that were sent with the start

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        if piece.choice:
            return
        if not self.is_own and (search := search_pieces(piece)):
            for one in search:
                yield from self.piece(one)
            return
        if piece.type in (SegmentType.REFUSAL, SegmentType.SAFETY):
            self._refuse(piece)
            if self.is_own or piece.type is SegmentType.SAFETY:
                return
            piece = attrs.evolve(
                piece, type=SegmentType.TEXT
            )  # clients show the text, and it may be sent back
        yield from self._begin()
        block = self._calls.get(piece.part)
        if block is None:
            block = self._queue[-1] if self._queue and self._belongs(piece, self._queue[-1]) else None
        if block is None:
            opening = self._opening(piece)
            if opening is None:
                return
            block = _Block(piece.part, opening)
            self._queue.append(block)
        if piece.call is not None:
            self._calls[piece.part] = block
            block.id = block.id or piece.call.id
            block.name = block.name or piece.call.name
            block.kind = block.kind or piece.call.kind
        block.has_text = block.has_text or piece.type is SegmentType.TEXT
        if piece.metadata:
            block.is_cited_behind = block.is_cited_behind or piece.metadata.get("citations") == "follow"
            block.is_signed = block.is_signed or _text(piece.metadata, "signature") is not None
        block.part = piece.part
        block.waiting.append(piece)
        yield from self._advance()

    def _belongs(self, piece: Piece, block: _Block) -> bool:
        """Whether *piece* continues *block*, the newest one. A signature alone belongs to the thinking before it."""
        if block.said["type"] == "thinking" and piece.type is SegmentType.REASONING and not piece.text:
            is_signature = not block.is_signed and _text(piece.metadata, "signature") is not None
            return is_signature or piece.part == block.part
        if piece.part == block.part or block.said["type"] != "text":
            return piece.part == block.part
        if piece.type is SegmentType.CITATION:
            # Messages and Bedrock have the citations of a block before its text. A stream may send them after it.
            return not (block.has_text and is_of_block(piece)) or block.is_cited_behind
        return piece.type is SegmentType.TEXT and not block.has_text

    def _opening(self, piece: Piece) -> Event | None:
        """Return the block that *piece* begins, as its start shows it, or ``None`` if it begins none."""
        if piece.call is not None:
            return {"type": "tool_use"}
        signature, hidden = (_text(piece.metadata, name) for name in ("signature", "encrypted"))
        match piece.type:
            case SegmentType.TEXT | SegmentType.CITATION:
                is_cited = piece.type is SegmentType.CITATION and self._citation(piece) is not None
                is_said = piece.type is SegmentType.TEXT and piece.text
                if not (is_said or is_cited):
                    return None
                # Required. Null is allowed there, but some clients take a list only, and an empty one is in both.
                return {"type": "text", "text": "", **({} if self.is_own else {"citations": []})}
            case SegmentType.REASONING if hidden and not piece.text:
                is_own = self.is_own or self.heading.provider in wire.SIGNERS
                return {"type": "redacted_thinking", "data": hidden_of(piece, is_own=is_own)}
            case SegmentType.REASONING:
                is_empty = not (piece.text or signature or hidden)
                return None if is_empty else {"type": "thinking", "thinking": "", "signature": ""}
        return self._server_block(piece)

    def _advance(self, *, to_the_end: bool = False) -> Iterator[Event]:
        """Write the blocks that may be written now, or all of them *to_the_end* of the answer."""
        while self._queue:
            block, is_last = self._queue[0], len(self._queue) == 1
            if block.index < 0:
                if not self._complete(block, force=to_the_end or not is_last):
                    if not to_the_end:
                        return
                    self._queue.popleft()
                    continue
                yield from self._start(block)
            for piece in block.waiting:
                yield from self._write(piece, block)
            block.waiting = []
            if not to_the_end and (is_last or not block.is_ended):
                return
            yield from self._stop(block)
            self._queue.popleft()

    def _complete(self, block: _Block, *, force: bool) -> bool:
        """Whether enough of *block* is known to begin it: for a call its name and, unless it cannot wait, its id."""
        if block.said["type"] != "tool_use":
            return True
        is_alone = self.is_own and not self.whole and len(block.waiting) == 1
        if block.name is None or (not force and (block.id is None or is_alone)):
            return False
        about: Event = {}
        if self.is_own:  # further fields of the call, such as its caller, follow it in a stream
            for piece in block.waiting:
                block.said |= piece.metadata.thawed()
        else:
            about["caller"] = dict(wire.CALLER)
        first = block.waiting[0].call
        assert first is not None, "a call begins with one"
        block.said |= {
            "type": "tool_use",
            "id": self._ids.take(block.id, first.index),
            "name": block.name,
            "input": {},
            **about,
        }
        return True

    def _start(self, block: _Block) -> Iterator[Event]:
        yield from self._unsaid()
        block.index = len(self._content)
        self._content.append(block.said)
        shown = {**block.said, "input": {}} if wire.is_server_call(block.said["type"]) else dict(block.said)
        if self.is_own and not self.whole:
            for fields in self._kept_of(block.index):
                put_back(shown, fields)
        yield _event("content_block_start", index=block.index, content_block=shown)

    def _kept_of(self, index: int) -> Iterator[Event]:
        """Return the stored fields of the block *index*, so far."""
        blocks = self.left.get("content")
        for position, entry in enumerate(blocks if isinstance(blocks, list) else ()):
            if isinstance(entry, dict) and entry.get("index", position) == index:
                yield copy_json(without_place(entry))

    def _write(self, piece: Piece, block: _Block) -> Iterator[Event]:
        """Return the events that *piece* adds to *block*, which is open."""
        kind = block.said["type"]
        if kind == "tool_use":
            block.arguments.add(piece.text)
            block.texts.append(piece.text)
        elif wire.is_server_call(kind):
            yield _delta(block, "partial_json", piece.text)
        elif piece.type is SegmentType.CITATION:
            citation = self._citation(piece)
            if citation is not None:
                block.said.setdefault("citations", []).append(citation)
                yield _delta(block, "citation", citation)
        elif kind in ("text", "thinking"):
            if piece.text:
                block.texts.append(piece.text)
                yield _delta(block, kind, piece.text)
            if kind == "thinking" and (signature := _text(piece.metadata, "signature")):
                block.said["signature"] = signature
                yield _delta(block, "signature", signature)

    def _citation(self, piece: Piece) -> Event | None:
        """Return *piece* as a citation: Anthropic's own unchanged, a page as a result of a search."""
        needs = wire.LOCATIONS.get(str(piece.metadata.get("type")))
        if needs is not None:
            is_known = all(type(piece.metadata.get(name)) is kind for name, kind in needs.items())
            return {**piece.metadata.thawed(), "cited_text": piece.text} if self.is_own or is_known else None
        citation = url_citation(piece, (0, 0))
        if citation is None:
            return None
        about = {name: citation[name] for name in ("url", "title")}
        return {"type": "web_search_result_location", "cited_text": "", **about, "encrypted_index": ""}

    def _server_block(self, piece: Piece) -> Event | None:
        """Return *piece* as its original block of a server's tool or file, or ``None`` if clients do not know the type.

        Content that was read from this form can always be written back to it.
        """
        block: Event = piece.metadata.thawed()
        kind = _text(block, "type")
        known = wire.BLOCKS.get(kind or "")
        needs = known.needs.items() if known is not None else ()
        is_known = bool(needs) and all(
            block.get(name) != "" and isinstance(block.get(name), of) for name, of in needs
        )
        if kind is None or not (is_known or self.is_own):
            return None
        if not wire.is_server_call(kind):
            return None if piece.text else block
        call_input = (
            as_input(piece.text or "{}") if self.is_own or block["name"] in wire.SERVER_TOOLS else None
        )
        return None if call_input is None else {**block, "input": call_input}

    def _stop(self, block: _Block) -> Iterator[Event]:
        text, kind = "".join(block.texts), block.said["type"]
        if kind in ("text", "thinking"):
            block.said[kind] = text
        elif kind == "tool_use":
            call_input = None if block.kind else as_input(text or "{}")
            if call_input is None and not (self._is_cut and is_cut_input(text) and not block.kind):
                call_input = input_of(text, block.kind)
                text = json_of(call_input).decode()
            block.said["input"] = call_input or {}
            if text:
                yield _delta(block, "partial_json", text)
        yield _event("content_block_stop", index=block.index)

    def _refuse(self, piece: Piece) -> None:
        """Store the reason of a refusal for the end, if the form has a field for it."""
        if piece.type is SegmentType.SAFETY and piece.metadata.get("type") != "refusal":
            return
        self._refusal.append(piece.text)
        details = self._refusal_details = self._refusal_details or {"type": "refusal", "category": None}
        if self.is_own:
            details |= piece.metadata.thawed()
        elif piece.metadata.get("category") in wire.CATEGORIES:
            details["category"] = piece.metadata["category"]

    def end(self, reason: FinishReason, word: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        if not choice:
            self._is_cut = not self.whole and reason not in (FinishReason.STOP, FinishReason.TOOL_CALLS)
            is_declined = self._refusal and reason is FinishReason.STOP and not self.is_own
            self._stop_reason = "refusal" if is_declined else self.word_for(reason, word, wire.FINISH_REASONS)

    error_event = staticmethod(anthropic_error)

    def _pending(self) -> Iterable[Event]:
        """See :meth:`Writer._pending`."""
        yield from self._begin()
        yield from self._advance(to_the_end=True)

    def _last(self) -> Iterable[Event]:
        """See :meth:`Writer._last`."""
        yield from self._unsaid()
        last = _event("message_delta", delta=self._end(), usage=self._usage())
        if self.is_own:
            for name, value in self.left.items():
                if name == "usage" or name not in ("content", *self._start_fields):
                    put_back(last["delta"] if name in wire.AT_END else last, {name: value})
        yield last
        yield _event("message_stop")

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        drain(self._unsaid())
        body = {**self._message(), "content": self._content, **self._end()}
        if self.is_own:
            stored_fields = self.left
            blocks = stored_fields.pop("content", None)
            if isinstance(blocks, list) and len(blocks) == len(self._content):
                stored_fields["content"] = blocks  # else the blocks cannot be matched
            put_back(body, stored_fields)
        return body

    def _unsaid(self) -> Iterator[Event]:
        """Write the next blocks that have no pieces: their stored fields in the answer's own form are complete."""
        blocks = self.left.get("content") if self.is_own else None
        while isinstance(blocks, list) and self._at < len(blocks):
            block = blocks[self._at] if isinstance(blocks[self._at], dict) else {}
            index, number = len(self._content), block.get("index", self._at)
            if type(number) is int and number > index:
                return
            self._at += 1
            if number == index and "type" in block:
                whole_block = copy_json(without_place(block))
                self._content.append(whole_block)
                yield _event("content_block_start", index=index, content_block=whole_block)
                yield _event("content_block_stop", index=index)

    def _begin(self) -> Iterator[Event]:
        if not (self._has_begun or self.whole):
            self._has_begun = True
            message = self._message()
            if self.is_own:
                self._start_fields = copy_json(
                    {name: value for name, value in self.left.items() if name not in _LATE_FIELDS}
                )
                put_back(message, self._start_fields)
            yield _event("message_start", message=message)

    def _message(self) -> Event:
        heading = {"id": self.heading.id, "type": "message", "role": "assistant", "model": self.heading.model}
        end_fields = {"stop_reason": None, **self._nulls()}
        usage = self._usage(*wire.NULL_AT_START)
        if not self.is_own and (tier := self.heading.tier("standard")) in wire.TIERS:
            usage["service_tier"] = tier
        return {**heading, "content": [], **end_fields, "usage": usage}

    def _nulls(self) -> Event:
        """Return the required members of a message at its end, empty. An answer of this form has its own."""
        if self.is_own:
            return {} if self.whole else {"stop_sequence": None}
        return dict(wire.NULL_AT_END)

    def _usage(self, *more: str) -> Event:
        """Return the counts, and null for required unknown ones. With *more* names for those of a message's start."""
        nulls = {} if self.is_own else dict.fromkeys((*wire.NULL_COUNTS, *more))
        return nulls | _usage(self.usage, is_own=self.is_own)

    def _end(self) -> Event:
        end: Event = {"stop_reason": self._stop_reason, **self._nulls()}
        sequence = self.heading.extensions.get("stop_sequence")
        if isinstance(sequence, str) and self._stop_reason == "stop_sequence":
            end["stop_sequence"] = sequence
        if self._refusal_details is not None:
            end["stop_details"] = {**self._refusal_details, "explanation": "".join(self._refusal) or None}
        return end


def _event(type: str, **data: Any) -> Event:
    return {"type": type, **data}


def _delta(block: _Block, leaf: str, value: Any) -> Event:
    return _event("content_block_delta", index=block.index, delta={"type": _TYPE_OF[leaf], leaf: value})


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    return value if isinstance(value, str) and value else None


def _usage(usage: UsageInfo | None, *, is_own: bool) -> Event:
    """Return the counts in Anthropic's division: the prompt less the tokens that were read from and written to the cache.

    Each group of details is complete, with 0 for missing counts, unless the answer *is* of the form's *own*.
    """
    usage = usage or UsageInfo.EMPTY
    paths = {**wire.COUNTS, **wire.DETAILS}
    cached = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
    if cached > usage.prompt_tokens:  # some servers count cached tokens otherwise; the sum is what counts
        written = counts_at(paths, usage, cached_tokens=None, cache_write_tokens=None)
    else:
        written = counts_at(paths, usage, prompt_tokens=usage.prompt_tokens - cached)
    for path in wire.DETAILS.values():
        group, _, name = path.partition(".")
        if group in written and not is_own:
            written[group].setdefault(name, 0)
    return written
