"""Tools as a request defines them and a response repeats them, and where they run."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from crosswalk.responses.function_tools import CustomTool, FunctionTool, NamespaceTool, UnknownTool
from crosswalk.responses.records import ResponsesRecord, record
from crosswalk.types.json import FrozenObject

# ------------------------------------------------------------------------------ containers
# Where code and commands run: containers, their network, the skills in them.


# ---------------------------------------------------------------------------- search tools
# Tools that search: files, the web, other tools.


@record
class FileSearchTool(ResponsesRecord):
    """Searches in vector stores.

    Attributes:
        vector_store_ids: the stores.
        filters: which files.
        max_num_results: how many results at most.
        ranking_options: how the results are ranked.
    """

    type: Literal["file_search"] = "file_search"
    vector_store_ids: tuple[str, ...]
    filters: FrozenObject | None = None
    max_num_results: int | None = None
    ranking_options: FrozenObject | None = None


@record
class WebSearchTool(ResponsesRecord):
    """Searches the web.

    Attributes:
        filters: which pages.
        search_context_size: how much of them is read: ``low``, ``medium``, ``high``.
        user_location: roughly where the user is.
        external_web_access: whether pages are fetched live.
    """

    type: Literal["web_search", "web_search_2025_08_26"] = "web_search"
    filters: FrozenObject | None = None
    search_context_size: str | None = None
    user_location: FrozenObject | None = None
    external_web_access: bool | None = None


@record
class WebSearchPreviewTool(ResponsesRecord):
    """Searches the web (preview); see :class:`WebSearchTool`."""

    type: Literal["web_search_preview", "web_search_preview_2025_03_11"] = "web_search_preview"
    search_content_types: tuple[str, ...] | None = None
    search_context_size: str | None = None
    user_location: FrozenObject | None = None


@record
class XSearchTool(ResponsesRecord):
    """Searches X, on xAI's server.

    Attributes:
        allowed_x_handles: whose posts alone are looked at, without the ``@``.
        excluded_x_handles: whose posts are not.
        from_date: the first day, such as ``2025-10-01``.
        to_date: the last day.
        enable_image_understanding: whether images are looked at.
        enable_video_understanding: whether videos are.
    """

    type: Literal["x_search"] = "x_search"
    allowed_x_handles: tuple[str, ...] | None = None
    excluded_x_handles: tuple[str, ...] | None = None
    from_date: str | None = None
    to_date: str | None = None
    enable_image_understanding: bool | None = None
    enable_video_understanding: bool | None = None


@record
class DocumentFinderTool(ResponsesRecord):
    """Looks for documents across collections; OpenAI has none.

    Attributes:
        collections: where it may look; ``None`` is everywhere.
        filters: which documents.
        max_num_results: how many results at most.
    """

    type: Literal["document_finder"] = "document_finder"
    collections: tuple[str, ...] | None = None
    filters: FrozenObject | None = None
    max_num_results: int | None = None


@record
class FileReaderTool(ResponsesRecord):
    """Reads files; OpenAI has none.

    Attributes:
        file_ids: which files it may read; ``None`` is any.
    """

    type: Literal["file_reader"] = "file_reader"
    file_ids: tuple[str, ...] | None = None


@record
class ToolSearchTool(ResponsesRecord):
    """Lets the model look for tools whose loading is deferred.

    Attributes:
        execution: who searches: ``server`` or ``client``.
        description: for a search by the client.
        parameters: the JSON Schema of a search by the client.
    """

    type: Literal["tool_search"] = "tool_search"
    execution: str | None = None
    description: str | None = None
    parameters: Any = None


# ----------------------------------------------------------------------------------- tools
# Tools as a request defines them and a response repeats them.


@record
class ComputerTool(ResponsesRecord):
    """Controls a computer."""

    type: Literal["computer"] = "computer"


@record
class ComputerUsePreviewTool(ResponsesRecord):
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
class Mcp(ResponsesRecord):
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
    allowed_tools: tuple[str, ...] | FrozenObject | None = None
    require_approval: str | FrozenObject | None = None
    defer_loading: bool | None = None
    allowed_callers: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Mcp(server_label={self.server_label!r})"  # no token, no header


@record
class CodeInterpreter(ResponsesRecord):
    """Runs Python code.

    Attributes:
        container: the id of a container, or how to make one.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["code_interpreter"] = "code_interpreter"
    container: str | FrozenObject
    allowed_callers: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "CodeInterpreter()"  # a container may have secrets


@record
class ProgrammaticToolCalling(ResponsesRecord):
    """Lets the model call tools from programs that it writes."""

    type: Literal["programmatic_tool_calling"] = "programmatic_tool_calling"


@record
class ImageGeneration(ResponsesRecord):
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
        svg: how vector graphics are made.
    """

    type: Literal["image_generation"] = "image_generation"
    model: str | None = None
    action: str | None = None
    background: str | None = None
    complexity: str | None = None
    frame_count: int | None = None
    frame_duration_ms: int | None = None
    input_fidelity: str | None = None
    input_image_mask: FrozenObject | None = None
    moderation: str | None = None
    output_compression: int | None = None
    output_format: str | None = None
    partial_images: int | None = None
    quality: str | None = None
    size: str | None = None
    svg: FrozenObject | None = None


@record
class LocalShell(ResponsesRecord):
    """Runs shell commands on the caller's machine, one at a time."""

    type: Literal["local_shell"] = "local_shell"


@record
class FunctionShellTool(ResponsesRecord):
    """Runs shell commands, in a container or on the caller's machine.

    Attributes:
        environment: where.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["shell"] = "shell"
    environment: FrozenObject | None = None
    allowed_callers: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return "FunctionShellTool()"  # a container may have secrets


@record
class ApplyPatchTool(ResponsesRecord):
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
