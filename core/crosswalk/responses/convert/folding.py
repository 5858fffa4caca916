"""Conversations of items folded into chat messages, and unfolded again.

The Responses API knows items: a turn of the assistant may be a reasoning, a message and three calls, each an item of its
own, and the answers to the calls are items too. Chat APIs know messages: such a turn is one. ``developer`` messages are
``system`` messages here: what one model family calls the one, the next calls the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.responses.content import (
    InputContent,
    ResponseInputFile,
    ResponseInputImage,
    ResponseInputText,
    ResponseOutputRefusal,
    ResponseOutputText,
)
from crosswalk.responses.convert.errors import FoldingError
from crosswalk.responses.function_calls import (
    ResponseCustomToolCall,
    ResponseCustomToolCallOutputItem,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
)
from crosswalk.responses.items import ResponseInputItem, ResponseOutputItem
from crosswalk.responses.messages import (
    EasyInputMessage,
    InputMessage,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from crosswalk.responses.vocabulary import MessageRole
from crosswalk.types.message import ChatMessage, ContentPart, FilePart, ImagePart, Role, TextPart
from crosswalk.types.tools import ToolCall

__all__ = ["FoldedMessage", "fold", "unfold"]

ConversationItem: TypeAlias = ResponseInputItem | ResponseOutputItem


@attrs.frozen
class FoldedMessage:
    """One turn of a conversation: all that an assistant says at once, with the answers to its calls; or a user's message.

    Attributes:
        message: the message, with the calls.
        reasoning: what the model thought before, as the items that the Responses API wants back.
        refusal: why the model declined; ``None`` when it did not.
        results: what the tools gave, each a tool message that answers one of the calls.
        custom: the ids of the calls whose arguments are free text, not JSON.
    """

    message: ChatMessage
    reasoning: tuple[ResponseReasoningItem, ...] = ()
    refusal: str | None = None
    results: tuple[ChatMessage, ...] = ()
    custom: frozenset[str] = frozenset()

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The turn as the messages that a chat API takes."""
        return (self.message, *self.results)


class _Turn:
    """A turn of the assistant while its items come in."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasoning: list[ResponseReasoningItem] = []
        self.refusals: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: dict[str, ChatMessage] = {}
        self.custom: set[str] = set()

    def folded(self) -> FoldedMessage:
        text = "".join(self.texts) if self.texts else None
        return FoldedMessage(
            ChatMessage.assistant(text, tool_calls=self.calls),
            tuple(self.reasoning),
            "".join(self.refusals) if self.refusals else None,
            tuple(self.results.values()),
            frozenset(self.custom),
        )


def fold(items: Iterable[ConversationItem]) -> tuple[FoldedMessage, ...]:
    """*items* as turns: what an assistant says at once is one message, and what a tool gave stands with its call.

    Citations, probabilities and ids of messages, which no model is sent, are left out.

    Raises:
        FoldingError: an item has no place in a chat: a server's tool, a file that only has an id, a result whose call is
            not there, a second result of one call, a second call of one id.
    """
    return tuple(_Folder().fold(items))


class _Folder:
    def __init__(self) -> None:
        self._turn: _Turn | None = None
        self._calls: dict[str, _Turn] = {}
        self._place = ""
        self._type = ""

    def fold(self, items: Iterable[ConversationItem]) -> Iterator[FoldedMessage]:
        done: list[FoldedMessage | _Turn] = []
        for number, item in enumerate(items):
            self._place, self._type = f"items[{number}]", str(getattr(item, "type", None))
            folded = self._take(item)
            if folded is not None:
                self._turn = None
                done.append(folded)
            elif self._turn is not None and (not done or done[-1] is not self._turn):
                done.append(self._turn)
        for turn in done:
            yield turn.folded() if isinstance(turn, _Turn) else turn

    def _take(self, item: ConversationItem) -> FoldedMessage | None:
        """Add *item* to the assistant's turn; a message of somebody else is a turn of its own."""
        match item:
            case ResponseReasoningItem():
                self._speaking().reasoning.append(item)
            case ResponseOutputMessage():
                self._say(item)
            case EasyInputMessage(role="assistant"):
                self._speaking().texts.append(self._text(item.content))
            case EasyInputMessage() | InputMessage():
                role = Role.USER if item.role == "user" else Role.SYSTEM
                return FoldedMessage(ChatMessage(role, self._content(item.content)))
            case ResponseFunctionToolCall():
                self._call(item.call_id, item.name, item.arguments or "{}")
            case ResponseCustomToolCall():
                self._call(item.call_id, item.name, item.input)
                self._speaking().custom.add(item.call_id)
            case ResponseFunctionToolCallOutputItem() | ResponseCustomToolCallOutputItem():
                self._answer(item.call_id, item.output)
            case _:
                raise self._error("an item without a counterpart in a chat")
        return None

    def _speaking(self) -> _Turn:
        """The assistant's turn; when a tool has answered, the next one."""
        if self._turn is None or self._turn.results:
            self._turn = _Turn()
        return self._turn

    def _say(self, item: ResponseOutputMessage) -> None:
        turn = self._speaking()
        for part in item.content:
            if isinstance(part, ResponseOutputText):
                turn.texts.append(part.text)
            elif isinstance(part, ResponseOutputRefusal):
                turn.refusals.append(part.refusal)
            else:
                raise self._error("a part without a counterpart in a chat")

    def _call(self, id: str, name: str, arguments: str) -> None:
        if id in self._calls:
            raise self._error("a second call of one id")
        if not id or not name:
            raise self._error("a call without an id or a name")
        turn = self._speaking()
        turn.calls.append(ToolCall(id, name, arguments))
        self._calls[id] = turn

    def _answer(self, call_id: str | None, output: str | tuple[InputContent, ...]) -> None:
        turn = self._calls.get(call_id or "")
        if turn is None or call_id is None:
            raise self._error("the result of a call that is not there")
        if call_id in turn.results:
            raise self._error("a second result of one call")
        turn.results[call_id] = ChatMessage.tool_result(call_id, self._content(output))

    def _text(self, content: str | tuple[Any, ...]) -> str:
        if isinstance(content, str):
            return content
        texts = []
        for part in content:
            if not isinstance(part, ResponseInputText | ResponseOutputText):
                raise self._error("an assistant's part that is no text")
            texts.append(part.text)
        return "".join(texts)

    def _content(self, content: str | tuple[Any, ...]) -> str | tuple[ContentPart, ...]:
        return content if isinstance(content, str) else tuple(self._part(part) for part in content)

    def _part(self, part: Any) -> ContentPart:
        match part:
            case ResponseInputText() | ResponseOutputText():
                return TextPart(part.text)
            case ResponseInputImage(image_url=str() as url):
                return ImagePart(**_address(url))
            case ResponseInputFile(file_data=str() as data):
                return FilePart(**_address(data), name=part.filename)
            case ResponseInputFile(file_url=str() as url):
                return FilePart(url=url, name=part.filename)
            case ResponseInputImage() | ResponseInputFile():
                raise self._error("a file that only its id names")
        raise self._error("a part without a counterpart in a chat")

    def _error(self, problem: str) -> FoldingError:
        return FoldingError(problem, place=self._place, item_type=self._type)


_DATA_URL: Final = re.compile(r"data:([^;,]*);base64,")


def _address(url: str) -> dict[str, Any]:
    """A URL, or what a data URL holds, as a part of a message has it."""
    found = _DATA_URL.match(url)
    if found is None:
        return {"url": url}
    return {"data": url[found.end() :], "media_type": found[1] or None}


def unfold(turns: Iterable[FoldedMessage | ChatMessage]) -> tuple[ResponseInputItem, ...]:
    """*turns* as the items that the Responses API takes; plain chat messages are taken too.

    Raises:
        FoldingError: a message has no place among items: it holds audio, or answers a call that is not there.
    """
    items: list[ResponseInputItem] = []
    custom: dict[str, bool] = {}
    for number, turn in enumerate(turns):
        folded = turn if isinstance(turn, FoldedMessage) else FoldedMessage(turn)
        place = f"messages[{number}]"
        items += folded.reasoning
        for message in folded.messages:
            items += _items(message, folded, custom, place)
    return tuple(items)


def _items(
    message: ChatMessage, folded: FoldedMessage, custom: dict[str, bool], place: str
) -> Iterator[ResponseInputItem]:
    content = _input(message, place)
    if message.role is Role.TOOL:
        id = message.tool_call_id or ""
        if id not in custom:
            raise FoldingError("the result of a call that is not there", place=place, item_type="tool")
        if custom[id]:
            yield ResponseCustomToolCallOutputItem(call_id=id, output=content)
        else:
            yield ResponseFunctionToolCallOutputItem(call_id=id, output=content)
        return
    if message.role is not Role.ASSISTANT:
        yield EasyInputMessage(role=MessageRole(message.role.value), content=content)
        return
    if folded.refusal is not None:
        parts: list[Any] = [ResponseOutputText(text=message.text)] if message.content is not None else []
        parts.append(ResponseOutputRefusal(refusal=folded.refusal))
        yield ResponseOutputMessage(content=tuple(parts))
    elif message.content is not None:
        yield EasyInputMessage(role=MessageRole.ASSISTANT, content=message.text)
    for call in message.tool_calls or ():
        custom[call.id] = call.id in folded.custom
        if custom[call.id]:
            yield ResponseCustomToolCall(call_id=call.id, name=call.name, input=call.arguments)
        else:
            yield ResponseFunctionToolCall(call_id=call.id, name=call.name, arguments=call.arguments)


def _input(message: ChatMessage, place: str) -> str | tuple[InputContent, ...]:
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    return tuple(_input_part(part, place, message.role) for part in content)


def _input_part(part: ContentPart, place: str, role: Role) -> InputContent:
    match part:
        case TextPart():
            return ResponseInputText(text=part.text)
        case ImagePart():
            return ResponseInputImage(image_url=_url(part), detail="auto")
        case FilePart(url=str() as url):
            return ResponseInputFile(file_url=url, filename=part.name)
        case FilePart():
            return ResponseInputFile(file_data=_url(part), filename=part.name)
    raise FoldingError("audio is no part of an item", place=place, item_type=role.value)


def _url(part: ImagePart | FilePart) -> str:
    return part.url if part.url is not None else f"data:{part.media_type or ''};base64,{part.data}"
