"""Conversations of items folded into chat messages, and unfolded again.

The Responses API has items: a turn of the assistant may be a reasoning, a message and three calls, each a separate item,
and the answers to the calls are items too. Chat APIs have messages: such a turn is one. ``developer`` messages are
``system`` messages here, because the name depends only on the model family.

A message cannot express the order of texts and calls, the beginning of parts of a text, ids and statuses of items, the
phase of a message, the namespace of a call, citations, or probabilities. A call without arguments has ``{}``. A folded turn
therefore stores its items next to the message, and returns them unchanged.

The actions of the server's own tools are stored next to the message too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.formats.writing import FoldingError
from crosswalk.responses.content import (
    ResponseInputText,
    ResponseOutputRefusal,
    ResponseOutputText,
)
from crosswalk.responses.items import ResponseInputItem, ResponseOutputItem
from crosswalk.responses.messages import (
    EasyInputMessage,
    InputMessage,
    ResponseCustomToolCall,
    ResponseCustomToolCallOutputItem,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from crosswalk.responses.reading import parse, parse_input_item, parse_item, to_dict
from crosswalk.responses.vocabulary import MessageRole
from crosswalk.types.message import (
    AudioPart,
    CallKind,
    ChatMessage,
    ContentPart,
    FilePart,
    ImagePart,
    Role,
    ToolCall,
    VideoPart,
)
from crosswalk.wire.options import FieldError, Fields
from crosswalk.wire.responses import ITEMS, ItemRole, call_item, input_part, read_part

ConversationItem: TypeAlias = ResponseInputItem | ResponseOutputItem

_TRACE_TYPES: Final = (
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "program",
    "program_output",
)
"""The traces of the server's tools in a conversation, by type, besides answered calls."""


@attrs.frozen
class FoldedMessage:
    """One turn of a conversation: the assistant's message with the answers to its calls, or a user's message.

    Attributes:
        message: the message, with the calls.
        reasoning: the model's reasoning before it, as the items that the Responses API wants back.
        refusal: why the model declined, or ``None`` if it did not.
        results: the results of the tools, each a tool message that answers one of the calls.
        server_calls: the actions of the server's own tools that no message shows, as the items that the Responses API wants
            back.
        items: the source items, in their original order. A result that came after another turn began
            is among its items. Empty if the turn was made of a message, or changed since.
    """

    message: ChatMessage
    reasoning: tuple[ResponseReasoningItem, ...] = ()
    refusal: str | None = None
    results: tuple[ChatMessage, ...] = ()
    server_calls: tuple[ConversationItem, ...] = ()
    # The turn as it was made, and its items: after a change, the items do not match.
    _origin: tuple[FoldedMessage, tuple[ConversationItem, ...]] | None = attrs.field(
        default=None, eq=False, repr=False
    )

    @property
    def items(self) -> tuple[ConversationItem, ...]:
        """See above."""
        return self._origin[1] if self._origin is not None and self._origin[0] == self else ()

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The turn as the messages that a chat API takes."""
        return (self.message, *self.results)


class _Turn:
    """A turn under construction: of the assistant, or one message of another role."""

    def __init__(self, message: ChatMessage | None = None) -> None:
        self.message = message
        self.items: list[ConversationItem] = []
        self.texts: list[str] = []
        self.reasoning: list[ResponseReasoningItem] = []
        self.refusals: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: dict[str, ChatMessage] = {}
        self.server_calls: list[ConversationItem] = []

    def folded(self) -> FoldedMessage:
        text = "".join(self.texts) if self.texts else None
        turn = FoldedMessage(
            self.message or ChatMessage.assistant(text, tool_calls=self.calls),
            tuple(self.reasoning),
            "".join(self.refusals) if self.refusals else None,
            tuple(self.results.values()),
            tuple(self.server_calls),
        )
        return attrs.evolve(turn, origin=(turn, tuple(self.items)))


def fold(items: Iterable[ConversationItem]) -> tuple[FoldedMessage, ...]:
    """Return *items* as turns: an assistant's turn is one message, and a tool's result belongs to its call.

    Content that no message can express is left out of :attr:`FoldedMessage.messages`. The items are stored with it, for
    :func:`unfold`.

    Raises:
        FoldingError: a chat cannot hold an item: a call for the client that is neither a function nor a custom tool, an
            image that only has an id, a result without its call, a second result of one call, a second call of one id.
    """
    return tuple(_Folder().fold(items))


class _Folder:
    def __init__(self) -> None:
        self._hosted_call_ids: set[str | None] = set()
        self._turn: _Turn | None = None
        self._turns_by_call: dict[str, _Turn] = {}
        self._place = ""
        self._type = ""

    def fold(self, items: Iterable[ConversationItem]) -> Iterator[FoldedMessage]:
        turns: list[_Turn] = []
        for number, item in enumerate(items):
            self._place, self._type = f"items[{number}]", str(getattr(item, "type", None))
            message = self._take(item)
            if message is not None:
                self._turn = None
                turns.append(_Turn(message))
            elif self._turn is not None and (not turns or turns[-1] is not self._turn):
                turns.append(self._turn)
            turns[-1].items.append(item)
        for turn in turns:
            yield turn.folded()

    def _take(self, item: ConversationItem) -> ChatMessage | None:
        """Add *item* to the assistant's turn. A message of another role is a separate turn."""
        match item:
            case ResponseReasoningItem():
                self._speaking().reasoning.append(item)
            case ResponseOutputMessage():
                self._say(item)
            case EasyInputMessage(role="assistant"):
                self._speaking().texts.append(self._text(item.content))
            case EasyInputMessage() | InputMessage():
                role = Role.USER if item.role == "user" else Role.SYSTEM
                return ChatMessage(role, self._content(item.content))
            case ResponseFunctionToolCall():
                self._call(item.call_id, item.name, item.arguments or "{}")
            case ResponseCustomToolCall():
                self._call(item.call_id, item.name, item.input, CallKind.CUSTOM)
            case ResponseFunctionToolCallOutputItem() | ResponseCustomToolCallOutputItem():
                self._answer(item.call_id, item.output)
            case _ if _is_answered(self._type) or self._type in _TRACE_TYPES or self._is_hosted(item):
                self._speaking().server_calls.append(item)
            case _:
                raise self._error("an item without a counterpart in a chat")
        return None

    def _is_hosted(self, item: Any) -> bool:
        """Whether *item* is of a tool that the client may run, but the server ran."""
        match self._type:
            case "tool_search_call" | "tool_search_output":
                return bool(item.execution == "server")
            case "shell_call" if (item.environment or {}).get("type") == "container_reference":
                self._hosted_call_ids.add(item.call_id)
        return self._type in ("shell_call", "shell_call_output") and item.call_id in self._hosted_call_ids

    def _speaking(self) -> _Turn:
        """Return the assistant's turn. After an answer of a tool, it is a new one."""
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

    def _call(self, id: str, name: str, arguments: str, kind: CallKind | None = None) -> None:
        if id in self._turns_by_call:
            raise self._error("a second call of one id")
        if not id or not name:
            raise self._error("a call without an id or a name")
        turn = self._speaking()
        turn.calls.append(ToolCall(id, name, arguments, kind))
        self._turns_by_call[id] = turn

    def _answer(self, call_id: str | None, output: str | tuple[Any, ...]) -> None:
        turn = self._turns_by_call.get(call_id or "")
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
                raise self._error("an assistant's part that is not text")
            texts.append(part.text)
        return "".join(texts)

    def _content(self, content: str | tuple[Any, ...]) -> str | tuple[ContentPart, ...]:
        return content if isinstance(content, str) else tuple(self._part(part) for part in content)

    def _part(self, part: Any) -> ContentPart:
        with suppress(FieldError):
            converted_part = read_part(Fields(to_dict(part)))
            if converted_part is not None:
                return converted_part
        raise self._error("a part without a counterpart in a chat")

    def _error(self, problem: str) -> FoldingError:
        return FoldingError(problem, place=self._place, item_type=self._type)


def _is_answered(type: str) -> bool:
    """Whether an item of *type* is a call of a server's tool, with its result."""
    role = ITEMS[type].role if type in ITEMS else None
    return role in (ItemRole.SERVER, ItemRole.MEDIA) and type.endswith("_call")


def unfold(turns: Iterable[FoldedMessage | ChatMessage]) -> tuple[ConversationItem, ...]:
    """Return *turns* as the items that the Responses API takes. Plain chat messages are accepted too.

    Turns made by :func:`fold` become the very same items, in their order. For a turn that was changed since, or was made of
    messages, new items are made.

    Raises:
        FoldingError: items cannot express a message: it holds audio, or answers a missing call.
    """
    folded_turns = [turn if isinstance(turn, FoldedMessage) else FoldedMessage(turn) for turn in turns]
    result_ids = {
        item.call_id for turn in folded_turns for item in turn.items if isinstance(item, _RESULT_CLASSES)
    }
    items: list[ConversationItem] = []
    is_custom_by_id: dict[str, bool] = {}
    answered_ids: set[str | None] = set()
    for number, turn in enumerate(folded_turns):
        place = f"messages[{number}]"
        turn_items: list[ConversationItem] = list(turn.items)
        if turn_items:
            # A result may belong to another turn that was removed.
            is_custom_by_id |= {call.id: call.is_custom for call in turn.message.tool_calls or ()}
            messages: tuple[ChatMessage, ...] = tuple(
                result for result in turn.results if result.tool_call_id not in result_ids
            )
        else:
            turn_items += (*turn.reasoning, *turn.server_calls)
            messages = turn.messages
        for message in messages:
            turn_items += _items(message, turn, is_custom_by_id, place)
        for item in turn_items:
            if isinstance(item, _RESULT_CLASSES):
                if item.call_id not in is_custom_by_id:
                    raise FoldingError(
                        "the result of a call that is not there", place=place, item_type="tool"
                    )
                if item.call_id in answered_ids:
                    continue  # its own turn, which was changed, has yielded it
                answered_ids.add(item.call_id)
            items.append(item)
    return tuple(items)


_RESULT_CLASSES: Final = (ResponseFunctionToolCallOutputItem, ResponseCustomToolCallOutputItem)


def _items(
    message: ChatMessage, turn: FoldedMessage, is_custom_by_id: dict[str, bool], place: str
) -> Iterator[ConversationItem]:
    if message.role is Role.TOOL:
        kind = "custom_tool_call" if is_custom_by_id.get(message.tool_call_id or "") else "function_call"
        output = _input(message, place)
        yield parse_input_item({"type": f"{kind}_output", "call_id": message.tool_call_id, "output": output})
        return
    if message.role is not Role.ASSISTANT:
        yield parse(EasyInputMessage, {"role": message.role.value, "content": _input(message, place)})
        return
    if turn.refusal is not None:
        parts: list[Any] = [ResponseOutputText(text=message.text)] if message.content is not None else []
        parts.append(ResponseOutputRefusal(refusal=turn.refusal))
        yield ResponseOutputMessage(content=tuple(parts))
    elif message.content is not None:
        yield EasyInputMessage(role=MessageRole.ASSISTANT, content=message.text)
    for call in message.tool_calls or ():
        is_custom_by_id[call.id] = call.is_custom
        yield parse_item(call_item(call))


def _input(message: ChatMessage, place: str) -> str | list[dict[str, Any]]:
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    if any(isinstance(part, AudioPart | VideoPart) for part in content):
        raise FoldingError(
            "audio or video cannot be part of an item", place=place, item_type=message.role.value
        )
    return [input_part(part, _url) for part in content if not isinstance(part, AudioPart | VideoPart)]


def _url(part: ImagePart | FilePart) -> str:
    return part.url if part.url is not None else f"data:{part.media_type or ''};base64,{part.data}"
