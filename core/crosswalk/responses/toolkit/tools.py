"""The tools that there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from crosswalk.responses.item import Item
from crosswalk.responses.toolkit.call import ResponseToolCall
from crosswalk.responses.toolkit.functions import ComputerToolCall, FunctionToolCall
from crosswalk.responses.toolkit.registry import ToolCallRegistry
from crosswalk.responses.toolkit.searches import (
    DocumentFinderToolCall,
    FileReaderToolCall,
    FileSearchToolCall,
)
from crosswalk.responses.toolkit.web import WebSearchToolCall

__all__ = ["register_tool_call", "tool_calls_of", "tool_registry"]

C = TypeVar("C", bound=type[ResponseToolCall[Any]])

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
