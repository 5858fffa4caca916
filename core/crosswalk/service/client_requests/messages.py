"""Requests in the form of Anthropic's Messages. Facts: provider document "Anthropic Messages"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from crosswalk.convert.form import WireForm
from crosswalk.request import (
    CacheMark,
    HostedTool,
    HostedToolKind,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolDefinition,
    Turn,
)
from crosswalk.service.client_requests.chat import definition
from crosswalk.service.client_requests.incoming import Incoming, Wants
from crosswalk.service.client_requests.reading import (
    answer,
    cache_marks,
    incoming,
    read_words,
    take_neutral,
    word,
)
from crosswalk.types.json import dump_json
from crosswalk.types.message import ChatMessage, ContentPart, FilePart, ImagePart, TextPart, ToolCall
from crosswalk.wire import messages as wire_form
from crosswalk.wire.fields import Fields, placed

_HOSTED: Final = {HostedToolKind(kind): wire for kind, wire in wire_form.HOSTED_TOOLS.items()}
_LITTLE, _MUCH = 4096, 16384
"""Budgets in tokens: up to the first, thinking counts as low. Beyond the second, it counts as high."""


def read(body: Fields, said: dict[str, Any]) -> Incoming:
    """Parse the request in *body*. *said* is an untouched copy.

    Raises:
        FieldError: it is not a valid request.
    """
    defaults = take_neutral(body, "messages")
    said, unsigned = _without_unsigned(said)
    conversation = _Conversation(body)
    tools, hosted = conversation.tools(body)
    about = body.object("metadata")
    user = None if about is None else about.is_text("user_id")
    choice, parallel = _choice(body)
    config = body.object("output_config")
    read = incoming(
        WireForm.ANTHROPIC,
        body,
        said,
        Wants(include_usage=True, user=user, defaults=defaults),
        messages=conversation.turns,
        tools=tools,
        hosted_tools=hosted,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=None if config is None else _format(config),
        reasoning_effort=_effort(body, config),
        cache_marks=conversation.marks,
    )
    return attrs.evolve(read, request=attrs.evolve(read.request, unsigned=unsigned)) if unsigned else read


def _without_unsigned(said: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return *said* without thinking that has an empty signature, which Claude refuses, and the places where it was."""
    messages = said.get("messages")
    results: list[str] = []
    stored: list[Any] = []
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and message.get("role") == "assistant":
            places = [position for position, block in enumerate(content) if _is_unsigned(block)]
            if places and len(places) < len(content):
                results += [f"messages[{number}].content[{position}]" for position in places]
                blocks = [block for position, block in enumerate(content) if position not in places]
                message = {**message, "content": blocks}
        stored.append(message)
    return ({**said, "messages": stored}, tuple(results)) if results else (said, ())


def _is_unsigned(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "thinking" and block.get("signature") == ""


def _effort(body: Fields, config: Fields | None) -> str | None:
    """Return the reasoning effort: the word for it, or else a budget. The exact number of a budget stays unread."""
    thinking = body.object("thinking")
    kind = None if thinking is None else thinking.need("type", thinking.text("type"))
    if kind == "disabled":
        return ReasoningEffort.NONE
    effort = None if config is None else word(config, "effort", read_words("reasoning_effort", "messages"))
    if effort is not None or thinking is None:
        return effort
    if kind == "adaptive":
        return ReasoningEffort.HIGH
    if kind == "enabled":
        budget = thinking.need("budget_tokens", thinking.is_whole("budget_tokens"))
        if budget <= _LITTLE:
            return ReasoningEffort.LOW
        return ReasoningEffort.MEDIUM if budget <= _MUCH else ReasoningEffort.HIGH
    thinking.leave()
    return None


def _format(config: Fields) -> ResponseFormat | None:
    wanted = config.object("format")
    if wanted is None:
        return None
    if wanted.need("type", wanted.text("type")) != "json_schema":
        wanted.leave()
        return None
    with placed(wanted, "schema"):
        return ResponseFormat(wanted.need("schema", wanted.plain("schema")))


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
    """

    def __init__(self, body: Fields) -> None:
        self.turns: list[Turn] = []
        self.marks: list[CacheMark] = []
        self._system(body)
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
                self._say(ChatMessage.system([*_parts(message)]))

    def _say(self, turn: Turn, *blocks: Fields) -> None:
        """Add *turn*, made of *blocks*. The last block may have a mark."""
        self.turns.append(turn)
        if blocks:
            self._mark(blocks[-1], len(self.turns) - 1)

    def _mark(self, block: Fields, after: Any) -> None:
        self.marks += cache_marks(block, after)

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
        of: list[Fields] = []
        count = len(self.turns)
        for block in message.objects("content"):
            kind = block.need("type", block.text("type"))
            if kind == "tool_result":
                if parts:
                    self._say(ChatMessage.user(parts), *of)
                parts, of = [], []
                self._say(_result(block), block)
            elif read := [*_part(block, kind)]:
                parts += read
                of.append(block)
        if parts or len(self.turns) == count:
            self._say(ChatMessage.user(parts), *of)

    def _answer(self, message: Fields) -> None:
        blocks = list(message.objects("content"))
        kinds = [block.need("type", block.text("type")) for block in blocks]
        turn = len(self.turns)
        markable = [b for b, kind in zip(blocks, kinds, strict=True) if kind not in wire_form.UNMARKED]
        if markable:
            self._mark(markable[-1], turn)
        raw = [{"type": kind, **block.rest()} for block, kind in zip(blocks, kinds, strict=True)]
        self.turns.append(_plain(raw, message) or _whole(raw, message))

    # Tools.

    def tools(self, body: Fields) -> tuple[list[ToolDefinition], list[HostedTool]]:
        """Return the tools of *body*: those of the client, and those of the server."""
        own: list[ToolDefinition] = []
        hosted: list[HostedTool] = []
        tools = list(body.objects("tools"))
        for tool in tools:
            kind = tool.look("type")
            known = next((k for k in _HOSTED if isinstance(kind, str) and kind.startswith(f"{k}_2")), None)
            if kind in (None, "custom"):
                tool.take("type")
                own.append(definition(tool, "input_schema"))
            elif known is not None:
                hosted.append(_hosted(tool, known))
            else:
                tool.need("type", tool.text("type"))
                tool.leave()
                continue
            if tool is tools[-1]:
                self._mark(tool, "tools")
        return own, hosted


def _hosted(tool: Fields, kind: HostedToolKind) -> HostedTool:
    if tool.look("type") == _HOSTED[kind]:
        tool.take("type")
    if tool.look("name") == kind.value:
        tool.take("name")
    if kind is HostedToolKind.CODE_EXECUTION:
        return HostedTool(kind)
    allowed, blocked = (tool.texts(f"{which}_domains") or () for which in ("allowed", "blocked"))
    most = tool.whole("max_uses")
    with placed(tool):
        return HostedTool(kind, allowed_domains=allowed, blocked_domains=blocked, max_uses=most)


# Parts of user messages.


_ABOUT: Final = {
    "document": ("title", "context"),
    "search_result": ("title", "source"),
    "tool_reference": ("tool_name",),
}
"""The fields with words about a block that is told as text, by its type. Its own text follows them."""


def _parts(fields: Fields, name: str = "content") -> Iterator[ContentPart]:
    for block in fields.objects(name):
        yield from _part(block, block.need("type", block.text("type")))


def _part(block: Fields, kind: str) -> Iterator[ContentPart]:
    """Return *block* as parts, or none if there is no such part. Then it stays unread."""
    if kind == "text":
        with placed(block, "text"):
            yield TextPart(block.need("text", block.text("text")))
            return
    source, how = block.look("source"), None
    if kind in ("image", "document") and isinstance(source, dict):
        how = source.get("type")
    if how in ("base64", "url"):
        yield _medium(block, kind)
    elif (kind == "document" and how in ("text", "content")) or kind in ("search_result", "tool_reference"):
        yield from _told(block, kind)
    else:
        block.leave()


def _medium(block: Fields, kind: str) -> ContentPart:
    source = block.need("source", block.object("source"))
    field = "data" if source.text("type") == "base64" else "url"
    where = {field: source.need(field, source.text(field)), "media_type": source.text("media_type")}
    with placed(source):
        if kind == "image":
            return ImagePart(**where)
        return FilePart(**where, name=block.text("title"))


def _told(block: Fields, kind: str) -> Iterator[ContentPart]:
    """Return *block*, which is text that only this format has a block for: the words about it, and then its parts."""
    about = "\n".join(filter(None, (block.text(name) for name in _ABOUT[kind])))
    holder, name = block, "content"
    if kind == "document":
        holder = block.need("source", block.object("source"))
        name = "data" if holder.text("type") == "text" else name
        holder.take("media_type")
    is_text = isinstance(holder.look(name), str)
    parts: list[ContentPart] = [TextPart(holder.text(name) or "")] if is_text else [*_parts(holder, name)]
    first = parts[0] if parts else None
    said = first.text if isinstance(first, TextPart) else ""
    if text := "\n\n".join(filter(None, (about, said))):
        yield TextPart(text)
    yield from parts[isinstance(first, TextPart) :]


def _result(block: Fields) -> ChatMessage:
    is_error = block.flag("is_error")
    id = block.need("tool_use_id", block.text("tool_use_id"))
    content: Any = block.look("content")
    content = block.text("content") or "" if isinstance(content, str | None) else [*_parts(block)]
    with placed(block):
        return ChatMessage.tool_result(id, content, is_error=is_error)


# Answers of the model.


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
    ended = {"stop_reason": end, "stop_sequence": None, "usage": {"output_tokens": 0}}
    payload = {"type": "message", "role": "assistant", "content": blocks, **ended}
    return answer(message, payload, WireForm.ANTHROPIC.provider)
