"""Tools as a request defines them and a response repeats them."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from crosswalk.responses.containers import CodeInterpreterContainer, ShellEnvironment
from crosswalk.responses.function_tools import CustomTool, FunctionTool, NamespaceTool, UnknownTool
from crosswalk.responses.records import Record, record
from crosswalk.responses.search_tools import (
    DocumentFinderTool,
    FileReaderTool,
    FileSearchTool,
    ToolSearchTool,
    WebSearchPreviewTool,
    WebSearchTool,
    XSearchTool,
)


@record
class ComputerTool(Record):
    """Controls a computer."""

    type: Literal["computer"] = "computer"


@record
class ComputerUsePreviewTool(Record):
    """Controls a computer (preview).

    Attributes:
        display_width: pixels.
        display_height: pixels.
        environment: ``windows``, ``mac``, ``linux``, ``ubuntu`` or ``browser``.
    """

    type: Literal["computer_use_preview"] = "computer_use_preview"
    display_width: int
    display_height: int
    environment: str


@record
class McpToolFilter(Record):
    """Some of an MCP server's tools.

    Attributes:
        tool_names: by name.
        read_only: by whether they change anything.
    """

    tool_names: tuple[str, ...] | None = None
    read_only: bool | None = None


@record
class McpApprovalFilter(Record):
    """The tools of an MCP server that always need approval, and those that never do."""

    always: McpToolFilter | None = None
    never: McpToolFilter | None = None


@record
class Mcp(Record):
    """The tools of an MCP server.

    Attributes:
        server_label: its name in calls.
        server_url: its URL.
        server_description: its purpose, for the model.
        connector_id: a connector of OpenAI's instead of a URL.
        tunnel_id: a tunnel instead of a URL.
        authorization: an OAuth token for it, a secret.
        headers: HTTP headers for it, which may contain secrets.
        allowed_tools: the tools to use, all by default.
        require_approval: the calls that need approval: ``always``, ``never`` or a filter.
        defer_loading: whether the model learns of its tools only through a tool search.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["mcp"] = "mcp"
    server_label: str
    server_url: str | None = None
    server_description: str | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None
    authorization: str | None = None
    headers: Mapping[str, str] | None = None
    allowed_tools: tuple[str, ...] | McpToolFilter | None = None
    require_approval: str | McpApprovalFilter | None = None
    defer_loading: bool | None = None
    allowed_callers: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Mcp(server_label={self.server_label!r})"  # no token, no header


@record
class CodeInterpreter(Record):
    """Runs Python code.

    Attributes:
        container: the id of a container, or how to make one.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["code_interpreter"] = "code_interpreter"
    container: str | CodeInterpreterContainer
    allowed_callers: tuple[str, ...] | None = None


@record
class ProgrammaticToolCalling(Record):
    """Lets the model call tools from programs that it writes."""

    type: Literal["programmatic_tool_calling"] = "programmatic_tool_calling"


@record
class ImageMask(Record):
    """The part of an image that may change, by URL or as an uploaded file."""

    image_url: str | None = None
    file_id: str | None = None


@record
class SvgReasoning(Record):
    """How long the model thinks about a vector graphic."""

    effort: str | None = None


@record
class SvgOptions(Record):
    """How vector graphics are made."""

    model: str | None = None
    reasoning: SvgReasoning | None = None


@record
class ImageGeneration(Record):
    """Makes images.

    Attributes:
        model: the model.
        action: ``generate``, ``edit`` or ``auto``.
        background: ``transparent``, ``opaque`` or ``auto``.
        complexity: ``low``, ``medium`` or ``high``.
        frame_count: the number of frames of an animation.
        frame_duration_ms: how long each is shown, in milliseconds.
        input_fidelity: how closely to keep to the input: ``low`` or ``high``.
        input_image_mask: the part that may change.
        moderation: ``auto`` or ``low``.
        output_compression: 0 to 100.
        output_format: ``png``, ``webp``, ``jpeg``, ``gif`` or ``svg``.
        partial_images: the number of previews in a stream, 0 to 3.
        quality: ``low`` to ``max``, or ``auto``.
        size: such as ``1024x1024``, or ``auto``.
        svg: see its class.
    """

    type: Literal["image_generation"] = "image_generation"
    model: str | None = None
    action: str | None = None
    background: str | None = None
    complexity: str | None = None
    frame_count: int | None = None
    frame_duration_ms: int | None = None
    input_fidelity: str | None = None
    input_image_mask: ImageMask | None = None
    moderation: str | None = None
    output_compression: int | None = None
    output_format: str | None = None
    partial_images: int | None = None
    quality: str | None = None
    size: str | None = None
    svg: SvgOptions | None = None


@record
class LocalShell(Record):
    """Runs shell commands on the caller's machine, one at a time."""

    type: Literal["local_shell"] = "local_shell"


@record
class FunctionShellTool(Record):
    """Runs shell commands, in a container or on the caller's machine.

    Attributes:
        environment: where.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["shell"] = "shell"
    environment: ShellEnvironment | None = None
    allowed_callers: tuple[str, ...] | None = None


@record
class ApplyPatchTool(Record):
    """Lets the model change files by patches."""

    type: Literal["apply_patch"] = "apply_patch"
    allowed_callers: tuple[str, ...] | None = None


Tool: TypeAlias = (
    FunctionTool
    | FileSearchTool
    | ComputerTool
    | ComputerUsePreviewTool
    | WebSearchTool
    | WebSearchPreviewTool
    | XSearchTool
    | DocumentFinderTool
    | FileReaderTool
    | Mcp
    | CodeInterpreter
    | ProgrammaticToolCalling
    | ImageGeneration
    | LocalShell
    | FunctionShellTool
    | CustomTool
    | NamespaceTool
    | ToolSearchTool
    | ApplyPatchTool
    | UnknownTool
)
"""A tool that the model may use."""
