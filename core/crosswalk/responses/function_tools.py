"""Tools that the caller's program runs, and the tools that the model must, may or must not use."""

from typing import ClassVar, Literal, TypeAlias

import attrs

from crosswalk.responses.records import ResponsesRecord, Unknown, record
from crosswalk.types.json import FrozenObject

# -------------------------------------------------------------------------- function tools
# Tools that the caller's program runs.


@record
class UnknownTool(Unknown, ResponsesRecord):
    """A tool of an unregistered type."""

    family: ClassVar[str] = "tool"
    type: str | None = None


@record
class FunctionTool(ResponsesRecord):
    """A function of the caller's program.

    Attributes:
        name: its name.
        description: its purpose, for the model.
        parameters: the JSON Schema of its arguments.
        strict: whether arguments must match the schema.
        output_schema: the JSON Schema of its result.
        defer_loading: whether the model learns of it only through a tool search.
        async_: whether its result may come later.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["function"] = "function"
    name: str
    description: str | None = None
    parameters: FrozenObject | None = None
    strict: bool | None = None
    output_schema: FrozenObject | None = None
    defer_loading: bool | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    allowed_callers: tuple[str, ...] | None = None


@record
class CustomTool(ResponsesRecord):
    """A tool of the caller's program that takes text instead of JSON, see :class:`FunctionTool`.

    Attributes:
        format: the format of the text, by default free text.
    """

    type: Literal["custom"] = "custom"
    name: str
    description: str | None = None
    format: FrozenObject | None = None
    defer_loading: bool | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    allowed_callers: tuple[str, ...] | None = None


@record
class NamespaceTool(ResponsesRecord):
    """A named group of tools.

    Attributes:
        name: its name.
        description: their common purpose, for the model.
        tools: functions and custom tools.
    """

    type: Literal["namespace"] = "namespace"
    name: str
    description: str
    tools: tuple[FunctionTool | CustomTool | UnknownTool, ...]


# ----------------------------------------------------------------------------- tool choice
# The tools that the model must, may or must not use.


@record
class UnknownToolChoice(Unknown, ResponsesRecord):
    """A tool choice of an unregistered type."""

    family: ClassVar[str] = "tool choice"
    type: str | None = None


@record
class ToolChoiceAllowed(ResponsesRecord):
    """Only some of the tools.

    Attributes:
        mode: ``auto`` or ``required``.
        tools: each as an object that names its type and, for a function, its name.
    """

    type: Literal["allowed_tools"] = "allowed_tools"
    mode: str
    tools: tuple[FrozenObject, ...]


@record
class ToolChoiceTypes(ResponsesRecord):
    """One tool that has no name, by its type."""

    type: Literal[
        "file_search",
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "computer",
        "computer_use_preview",
        "computer_use",
        "image_generation",
        "code_interpreter",
        "programmatic_tool_calling",
        "apply_patch",
        "shell",
    ]


@record
class ToolChoiceFunction(ResponsesRecord):
    """This function."""

    type: Literal["function"] = "function"
    name: str


@record
class ToolChoiceCustom(ResponsesRecord):
    """This custom tool."""

    type: Literal["custom"] = "custom"
    name: str


@record
class ToolChoiceMcp(ResponsesRecord):
    """This MCP server, or this tool of it."""

    type: Literal["mcp"] = "mcp"
    server_label: str
    name: str | None = None


ToolChoice: TypeAlias = (
    str
    | ToolChoiceAllowed
    | ToolChoiceTypes
    | ToolChoiceFunction
    | ToolChoiceCustom
    | ToolChoiceMcp
    | UnknownToolChoice
)
"""``none``, ``auto``, ``required``, or one tool or some."""
