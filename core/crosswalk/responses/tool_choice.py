"""The tools that the model must, may or must not use."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject


@record
class UnknownToolChoice(Unknown, Record):
    """A tool choice of an unregistered type."""

    family: ClassVar[str] = "tool choice"
    type: str | None = None


@record
class ToolChoiceAllowed(Record):
    """Only some of the tools.

    Attributes:
        mode: ``auto`` or ``required``.
        tools: each as an object that names its type and, for a function, its name.
    """

    type: Literal["allowed_tools"] = "allowed_tools"
    mode: str
    tools: tuple[FrozenObject, ...]


@record
class ToolChoiceTypes(Record):
    """One of the server's own tools, by its type."""

    type: Literal[
        "file_search",
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "computer",
        "computer_use_preview",
        "computer_use",
        "image_generation",
        "code_interpreter",
    ]


@record
class ToolChoiceFunction(Record):
    """This function."""

    type: Literal["function"] = "function"
    name: str


@record
class ToolChoiceCustom(Record):
    """This custom tool."""

    type: Literal["custom"] = "custom"
    name: str


@record
class ToolChoiceMcp(Record):
    """This MCP server, or this tool of it."""

    type: Literal["mcp"] = "mcp"
    server_label: str
    name: str | None = None


@record
class ToolChoiceProgrammatic(Record):
    """A program that calls tools."""

    type: Literal["programmatic_tool_calling"] = "programmatic_tool_calling"


@record
class ToolChoiceApplyPatch(Record):
    """A patch."""

    type: Literal["apply_patch"] = "apply_patch"


@record
class ToolChoiceShell(Record):
    """The shell."""

    type: Literal["shell"] = "shell"


ToolChoice: TypeAlias = (
    str
    | ToolChoiceAllowed
    | ToolChoiceTypes
    | ToolChoiceFunction
    | ToolChoiceCustom
    | ToolChoiceMcp
    | ToolChoiceProgrammatic
    | ToolChoiceApplyPatch
    | ToolChoiceShell
    | UnknownToolChoice
)
"""``none``, ``auto``, ``required``, or one tool or some."""
