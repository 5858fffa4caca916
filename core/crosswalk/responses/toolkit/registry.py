"""The registry of tools, by their items and by their names in chat."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeVar

from crosswalk.responses.item import Item
from crosswalk.responses.items import register_item
from crosswalk.responses.toolkit.call import ResponseToolCall, ToolCallError
from crosswalk.responses.toolkit.functions import ComputerToolCall, FunctionToolCall
from crosswalk.responses.toolkit.searches import (
    DocumentFinderToolCall,
    FileReaderToolCall,
    FileSearchToolCall,
    WebSearchToolCall,
)
from crosswalk.text import clean_message
from crosswalk.types.message import ToolCall

C = TypeVar("C", bound=type[ResponseToolCall[Any]])
AnyToolCall = ResponseToolCall[Any]


class ToolCallRegistry:
    """The tools by item type and by chat name."""

    def __init__(self) -> None:
        self._by_tool: dict[str, type[AnyToolCall]] = {}
        self._by_chat_name: dict[str, type[AnyToolCall]] = {}
        self._function: type[AnyToolCall] | None = None

    def register(self, cls: C) -> C:
        """Add a tool, and read its items. A tool with the same items is replaced. Usable as a decorator.

        A tool without a ``chat_name`` gets all functions with unregistered names.

        Raises:
            ToolCallError: another tool has its ``chat_name``.
            TypeError: its items have no literal ``type``.
        """
        register_item(cls.item_type)
        tool, name = cls.tool(), cls.chat_name
        other = self._function if name is None else self._by_chat_name.get(name)
        if other is not None and other.tool() != tool:
            raise ToolCallError(f"the chat name {name!r} is that of {other.tool()}", tool=tool)
        before = self._by_tool.get(tool)
        if before is not None and before.chat_name is not None:
            del self._by_chat_name[before.chat_name]
        self._by_tool[tool] = cls
        if name is None:
            self._function = cls
        else:
            self._by_chat_name[name] = cls
        return cls

    def get(self, tool: str | None) -> type[AnyToolCall] | None:
        """Return the tool with items of this ``type``, or ``None`` if none is registered."""
        return self._by_tool.get(tool or "")

    def from_item(self, item: Item, output: Item | None = None) -> AnyToolCall:
        """Return the call of *item*, answered by *output*.

        Raises:
            ToolCallError: no tool with such items is registered, or *output* does not answer it.
        """
        word = getattr(item, "type", None)
        cls = self.get(word)
        if cls is None:
            raise ToolCallError(f"no tool has items of type {clean_message(str(word), 60)!r}")
        return cls(item, output)

    def from_chat_tool_call(self, tool_call: ToolCall) -> AnyToolCall:
        """Return the call of a chat's *tool_call*: of the tool with its name, else of a function.

        Raises:
            ToolCallError: no tool has its name, and there is no tool for other names.
            ToolCallArgumentsError: its arguments do not match the tool.
        """
        cls = self._by_chat_name.get(tool_call.name, self._function)
        if cls is None:
            raise ToolCallError("no tool has such a name in chat", call_id=tool_call.id)
        return cls.from_chat_tool_call(tool_call)

    def tool_calls_of(self, items: Iterable[Item]) -> tuple[AnyToolCall, ...]:
        """Return the calls among *items*, in order, each with the output that answers it.

        Outputs answer the calls with their ``call_id`` in order. Items of unregistered tools,
        and items other than calls, are skipped.

        Raises:
            ToolCallError: an output answers no call.
        """
        items = tuple(items)
        answers: dict[tuple[type[Item], str], deque[Item]] = {}
        kinds = {cls.output_type for cls in self._by_tool.values() if cls.output_type is not None}
        for item in items:
            call_id = getattr(item, "call_id", None)
            if type(item) in kinds and call_id is not None:
                answers.setdefault((type(item), call_id), deque()).append(item)
        calls = []
        for item in items:
            cls = self.get(getattr(item, "type", None))
            if cls is not None and isinstance(item, cls.item_type):
                key = (cls.output_type, getattr(item, "call_id", None))
                waiting = answers.get(key)  # type: ignore[arg-type]  # without an output type there is none
                calls.append(cls(item, waiting.popleft() if waiting else None))
        for waiting in answers.values():
            for item in waiting:
                raise ToolCallError(
                    "answers no call",
                    tool=getattr(item, "type", None),
                    call_id=getattr(item, "call_id", None),
                )
        return tuple(calls)


tool_registry = ToolCallRegistry()
"""The tools that are used where no other registry is named."""


for _tool in (
    FunctionToolCall,
    ComputerToolCall,
    WebSearchToolCall,
    FileSearchToolCall,
    DocumentFinderToolCall,
    FileReaderToolCall,
):
    tool_registry.register(_tool)


def register_tool_call(cls: C) -> C:
    """Add a tool to :data:`tool_registry`, see :meth:`ToolCallRegistry.register`."""
    return tool_registry.register(cls)


def tool_calls_of(items: Iterable[Item]) -> tuple[ResponseToolCall[Any], ...]:
    """Return the calls of tools in :data:`tool_registry`, see :meth:`ToolCallRegistry.tool_calls_of`."""
    return tool_registry.tool_calls_of(items)
