"""Calls of the caller's functions and custom tools, and what they gave."""

from typing import Literal, TypeAlias

import attrs

from crosswalk.responses.content import InputContent
from crosswalk.responses.item import Caller, Item
from crosswalk.responses.records import record
from crosswalk.responses.vocabulary import ItemStatus

ToolOutput: TypeAlias = str | tuple[InputContent, ...]
"""The output of a tool for the model: text, or parts."""


@record
class ResponseFunctionToolCall(Item):
    """A call of a function, for the caller to answer.

    Attributes:
        call_id: the id that the answer names, different from ``id``.
        name: the function.
        arguments: the arguments as JSON text, exactly as the model wrote it.
        status: its progress: ``incomplete`` means that the arguments are cut off.
        namespace: the group of tools that the function is in.
        async_: whether the answer may come later.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: str = ""
    status: ItemStatus | None = None
    namespace: str | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    caller: Caller | None = None
    created_by: str | None = None


@record
class ResponseFunctionToolCallOutputItem(Item):
    """The answer to a call of a function.

    Attributes:
        call_id: the call.
        output: the output of the function.
        status: its progress, sent only by the server.
        name: the function.
        namespace: the group of tools that it is in.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["function_call_output"] = "function_call_output"
    call_id: str | None = None
    output: ToolOutput
    status: ItemStatus | None = None
    name: str | None = None
    namespace: str | None = None
    caller: Caller | None = None
    created_by: str | None = None


@record
class ResponseCustomToolCall(Item):
    """A call of a custom tool, for the caller to answer, see :class:`ResponseFunctionToolCall`.

    Attributes:
        input: the input of the tool, which is text and not JSON.
    """

    type: Literal["custom_tool_call"] = "custom_tool_call"
    call_id: str
    name: str
    input: str = ""
    status: ItemStatus | None = None
    namespace: str | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    caller: Caller | None = None
    created_by: str | None = None


@record
class ResponseCustomToolCallOutputItem(Item):
    """The answer to a call of a custom tool, see :class:`ResponseFunctionToolCallOutputItem`."""

    type: Literal["custom_tool_call_output"] = "custom_tool_call_output"
    call_id: str
    output: ToolOutput
    status: ItemStatus | None = None
    caller: Caller | None = None
    created_by: str | None = None


FunctionItem: TypeAlias = (
    ResponseFunctionToolCall
    | ResponseFunctionToolCallOutputItem
    | ResponseCustomToolCall
    | ResponseCustomToolCallOutputItem
)
"""A call that the client answers, or its answer."""
