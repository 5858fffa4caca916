"""Tools as a request defines them and a response repeats them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from crosswalk.responses.containers import CodeInterpreterContainer, ShellEnvironment
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject

__all__ = [
    "ApplyPatchTool",
    "CodeInterpreter",
    "ComparisonFilter",
    "CompoundFilter",
    "ComputerTool",
    "ComputerUsePreviewTool",
    "CustomTool",
    "CustomToolFormat",
    "DocumentFinderTool",
    "FileReaderTool",
    "FileSearchFilter",
    "FileSearchTool",
    "FunctionShellTool",
    "FunctionTool",
    "GrammarFormat",
    "HybridSearch",
    "ImageGeneration",
    "ImageMask",
    "LocalShell",
    "Mcp",
    "McpApprovalFilter",
    "McpToolFilter",
    "NamespaceTool",
    "ProgrammaticToolCalling",
    "RankingOptions",
    "SvgOptions",
    "SvgReasoning",
    "TextFormat",
    "Tool",
    "ToolSearchTool",
    "UnknownFormat",
    "UnknownTool",
    "UserLocation",
    "WebSearchFilters",
    "WebSearchPreviewTool",
    "WebSearchTool",
    "XSearchTool",
]


@record
class UnknownTool(Unknown, Record):
    """A tool of a type that nobody registered."""

    family: ClassVar[str] = "tool"
    type: str | None = None


@record
class FunctionTool(Record):
    """A function of the caller's program.

    Attributes:
        name: its name.
        description: what it does, for the model.
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
    async_: bool | None = None
    allowed_callers: tuple[str, ...] | None = None


@record
class ComparisonFilter(Record):
    """Compares an attribute of a file with a value.

    Attributes:
        type: the comparison.
        key: the attribute.
        value: what it is compared with: a string, number or boolean, or an array of strings and numbers.
    """

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str
    value: Any


@record
class CompoundFilter(Record):
    """Joins filters.

    Attributes:
        type: how.
        filters: what is joined.
    """

    type: Literal["and", "or"]
    filters: tuple[ComparisonFilter | CompoundFilter, ...]


FileSearchFilter: TypeAlias = ComparisonFilter | CompoundFilter
"""Which files a file search may look into."""


@record
class HybridSearch(Record):
    """How a search by meaning and one by words are weighed against each other."""

    embedding_weight: float
    text_weight: float


@record
class RankingOptions(Record):
    """How the results of a file search are ranked.

    Attributes:
        ranker: which ranker, ``auto`` for the server's choice.
        score_threshold: the lowest score of a result, 0 to 1.
        hybrid_search: see there.
    """

    ranker: str | None = None
    score_threshold: float | None = None
    hybrid_search: HybridSearch | None = None


@record
class FileSearchTool(Record):
    """Searches in vector stores.

    Attributes:
        vector_store_ids: the stores.
        filters: which files.
        max_num_results: how many results at most.
        ranking_options: see there.
    """

    type: Literal["file_search"] = "file_search"
    vector_store_ids: tuple[str, ...]
    filters: FileSearchFilter | None = None
    max_num_results: int | None = None
    ranking_options: RankingOptions | None = None


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
class WebSearchFilters(Record):
    """Which pages a web search may use."""

    allowed_domains: tuple[str, ...] | None = None


@record
class UserLocation(Record):
    """Roughly where the user is.

    Attributes:
        type: ``approximate``.
        city: free text.
        region: free text.
        country: two letters, ISO 3166-1.
        timezone: IANA's name.
    """

    type: Literal["approximate"] | None = "approximate"
    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


@record
class WebSearchTool(Record):
    """Searches the web.

    Attributes:
        filters: which pages.
        search_context_size: how much of them is read: ``low``, ``medium``, ``high``.
        user_location: see there.
        external_web_access: whether pages are fetched live.
    """

    type: Literal["web_search", "web_search_2025_08_26"] = "web_search"
    filters: WebSearchFilters | None = None
    search_context_size: str | None = None
    user_location: UserLocation | None = None
    external_web_access: bool | None = None


@record
class WebSearchPreviewTool(Record):
    """Searches the web (preview); see :class:`WebSearchTool`."""

    type: Literal["web_search_preview", "web_search_preview_2025_03_11"] = "web_search_preview"
    search_content_types: tuple[str, ...] | None = None
    search_context_size: str | None = None
    user_location: UserLocation | None = None


@record
class XSearchTool(Record):
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
class DocumentFinderTool(Record):
    """Looks for documents across collections; OpenAI has none.

    Attributes:
        collections: where it may look; ``None`` is everywhere.
        filters: which documents.
        max_num_results: how many results at most.
    """

    type: Literal["document_finder"] = "document_finder"
    collections: tuple[str, ...] | None = None
    filters: FileSearchFilter | None = None
    max_num_results: int | None = None


@record
class FileReaderTool(Record):
    """Reads files; OpenAI has none.

    Attributes:
        file_ids: which files it may read; ``None`` is any.
    """

    type: Literal["file_reader"] = "file_reader"
    file_ids: tuple[str, ...] | None = None


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
    """Which of an MCP server's tools need an approval always, and which never."""

    always: McpToolFilter | None = None
    never: McpToolFilter | None = None


@record
class Mcp(Record):
    """The tools of an MCP server.

    Attributes:
        server_label: what calls name it by.
        server_url: where it is.
        server_description: what it does, for the model.
        connector_id: a connector of OpenAI's instead of a URL.
        tunnel_id: a tunnel instead of a URL.
        authorization: an OAuth token for it; a secret.
        headers: HTTP headers for it; may hold secrets.
        allowed_tools: which of its tools, all by default.
        require_approval: which calls need an approval: ``always``, ``never`` or a filter.
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
    """Which part of an image may change, by URL or as an uploaded file."""

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
        model: which model.
        action: ``generate``, ``edit`` or ``auto``.
        background: ``transparent``, ``opaque`` or ``auto``.
        complexity: ``low``, ``medium`` or ``high``.
        frame_count: how many frames of an animation.
        frame_duration_ms: how long each is shown, in milliseconds.
        input_fidelity: how closely to keep to the input: ``low`` or ``high``.
        input_image_mask: which part may change.
        moderation: ``auto`` or ``low``.
        output_compression: 0 to 100.
        output_format: ``png``, ``webp``, ``jpeg``, ``gif`` or ``svg``.
        partial_images: how many previews a stream sends, 0 to 3.
        quality: ``low`` to ``max``, or ``auto``.
        size: such as ``1024x1024``, or ``auto``.
        svg: see there.
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
class TextFormat(Record):
    """Free text as a custom tool's input."""

    type: Literal["text"] = "text"


@record
class GrammarFormat(Record):
    """Text that follows a grammar as a custom tool's input.

    Attributes:
        syntax: ``lark`` or ``regex``.
        definition: the grammar.
    """

    type: Literal["grammar"] = "grammar"
    syntax: str
    definition: str


@record
class UnknownFormat(Unknown, Record):
    """A format of a custom tool's input that nobody registered."""

    family: ClassVar[str] = "input format"
    type: str | None = None


CustomToolFormat: TypeAlias = TextFormat | GrammarFormat | UnknownFormat
"""What a custom tool's input looks like."""


@record
class CustomTool(Record):
    """A tool of the caller's program that takes text and no JSON; see :class:`FunctionTool`.

    Attributes:
        format: what the text looks like; free by default.
    """

    type: Literal["custom"] = "custom"
    name: str
    description: str | None = None
    format: CustomToolFormat | None = None
    defer_loading: bool | None = None
    async_: bool | None = None
    allowed_callers: tuple[str, ...] | None = None


@record
class NamespaceTool(Record):
    """A named group of tools.

    Attributes:
        name: its name.
        description: what the tools have in common, for the model.
        tools: functions and custom tools.
    """

    type: Literal["namespace"] = "namespace"
    name: str
    description: str
    tools: tuple[FunctionTool | CustomTool | UnknownTool, ...]


@record
class ToolSearchTool(Record):
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
