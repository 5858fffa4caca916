"""Calls of the server's own tools: searches, code, images and MCP."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from crosswalk.responses.messages import Item
from crosswalk.responses.records import ResponsesRecord, Unknown, record
from crosswalk.responses.tools import Tool
from crosswalk.responses.vocabulary import CallStatus, ItemStatus
from crosswalk.types.json import FrozenObject

# ---------------------------------------------------------------------------- search calls
# Searches that the server runs: in files, on the web, for tools. Also the reading of files.


@record
class FileSearchResult(ResponsesRecord):
    """A piece of a file that a search found.

    Attributes:
        file_id: the file.
        filename: its name.
        text: the piece.
        score: its relevance, 0 to 1.
        attributes: the attributes of the file.
    """

    file_id: str | None = None
    filename: str | None = None
    text: str | None = None
    score: float | None = None
    attributes: Mapping[str, str | float | bool] | None = None


@record
class ResponseFileSearchToolCall(Item):
    """A search in vector stores.

    Attributes:
        queries: the queries.
        status: its progress.
        results: the results, if they were requested.
    """

    type: Literal["file_search_call"] = "file_search_call"
    queries: tuple[str, ...] = ()
    status: CallStatus | None = None
    results: tuple[FileSearchResult, ...] | None = None


@record
class WebSearchURL(ResponsesRecord):
    """A page that a search used."""

    type: Literal["url"] = "url"
    url: str


@record
class WebSearchAPI(ResponsesRecord):
    """A data feed that a search used, such as ``oai-weather``. OpenAI sends it, but its SDK lacks it."""

    type: Literal["api"] = "api"
    name: str | None = None


@record
class WebSearchResult(ResponsesRecord):
    """A page that a web search found, with its text. OpenAI's own sources only have a URL.

    Attributes:
        url: the page.
        title: its title.
        text: its text.
    """

    type: Literal["result"] = "result"
    url: str
    title: str | None = None
    text: str | None = None


@record
class UnknownWebSearchSource(Unknown, ResponsesRecord):
    """A source of a web search of an unregistered type."""

    family: ClassVar[str] = "web search source"
    type: str | None = None


WebSearchSource: TypeAlias = WebSearchURL | WebSearchAPI | WebSearchResult | UnknownWebSearchSource
"""A source of a web search."""


@record
class ActionSearch(ResponsesRecord):
    """Looks for pages.

    Attributes:
        query: the query.
        queries: all queries.
        sources: the sources in use, if they were requested.
    """

    type: Literal["search"] = "search"
    query: str | None = None
    queries: tuple[str, ...] | None = None
    sources: tuple[WebSearchSource, ...] | None = None


@record
class ActionOpenPage(ResponsesRecord):
    """Opens a page."""

    type: Literal["open_page"] = "open_page"
    url: str | None = None


@record
class ActionFind(ResponsesRecord):
    """Looks for a pattern in a page."""

    type: Literal["find_in_page"] = "find_in_page"
    url: str | None = None
    pattern: str


@record
class UnknownWebSearchAction(Unknown, ResponsesRecord):
    """An action of a web search of an unregistered type."""

    family: ClassVar[str] = "web search action"
    type: str | None = None


WebSearchAction: TypeAlias = ActionSearch | ActionOpenPage | ActionFind | UnknownWebSearchAction
"""The action of a web search."""


@record
class ResponseFunctionWebSearch(Item):
    """A search on the web.

    Attributes:
        action: its action, or ``None`` if it is not known yet.
        status: its progress.
    """

    type: Literal["web_search_call"] = "web_search_call"
    action: WebSearchAction | None = None
    status: CallStatus | None = None


@record
class ResponseXSearchToolCall(Item):
    """A search on X, by xAI's server.

    Attributes:
        call_id: empty, because there is nothing to answer.
        name: the kind of search, such as ``x_semantic_search``.
        arguments: the arguments as JSON text.
        status: its progress.
    """

    type: Literal["x_search_call"] = "x_search_call"
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: CallStatus | None = None


@record
class ResponseToolSearchCall(Item):
    """A search for tools whose loading is deferred.

    Attributes:
        call_id: the id that the answer names, if the client searches.
        execution: the side that searches: ``server`` or ``client``.
        arguments: the arguments, any JSON value.
        status: its progress.
        created_by: its creator.
    """

    type: Literal["tool_search_call"] = "tool_search_call"
    call_id: str | None = None
    execution: str | None = None
    arguments: Any = None
    status: ItemStatus | None = None
    created_by: str | None = None


@record
class ResponseToolSearchOutputItem(Item):
    """The tools that a search found.

    Attributes:
        call_id: the search, if the client searched.
        execution: the side that searched: ``server`` or ``client``.
        tools: the tools.
        status: its progress.
        created_by: its creator.
    """

    type: Literal["tool_search_output"] = "tool_search_output"
    call_id: str | None = None
    execution: str | None = None
    tools: tuple[Tool, ...] = ()
    status: ItemStatus | None = None
    created_by: str | None = None


@record
class FoundDocument(ResponsesRecord):
    """A document that the document finder found.

    Attributes:
        file_id: the document, as a file.
        filename: the file's name.
        url: the document on the web. If both are present, ``file_id`` takes precedence.
        title: its title.
        text: its summary or an excerpt.
        score: its relevance, 0 to 1.
        attributes: its attributes.
    """

    file_id: str | None = None
    filename: str | None = None
    url: str | None = None
    title: str | None = None
    text: str | None = None
    score: float | None = None
    attributes: Mapping[str, str | float | bool] | None = None


@record
class ResponseDocumentFinderToolCall(Item):
    """A search for documents across collections, not offered by OpenAI.

    Attributes:
        queries: the queries.
        collections: the collections, or ``None`` for all.
        status: its progress.
        results: the results, or ``None`` before the end.
    """

    type: Literal["document_finder_call"] = "document_finder_call"
    queries: tuple[str, ...] = ()
    collections: tuple[str, ...] | None = None
    status: CallStatus | None = None
    results: tuple[FoundDocument, ...] | None = None


@record
class FilePage(ResponsesRecord):
    """A page, or another piece, of a file that was read.

    Attributes:
        text: its text.
        page_number: the page, from 1, or ``None`` in files without pages.
        document_position: the position of the piece in the document, or ``None`` if unknown.
    """

    text: str
    page_number: int | None = None
    document_position: int | None = None


@record
class ResponseFileReaderToolCall(Item):
    """A reading of a file, not offered by OpenAI.

    Attributes:
        file_id: the file.
        filename: its name.
        first_page: the first page to read, or ``None`` for the file's first.
        last_page: the last page that is read; ``None`` is the file's last.
        status: its progress.
        results: what it says; ``None`` before the end.
    """

    type: Literal["file_reader_call"] = "file_reader_call"
    file_id: str
    filename: str | None = None
    first_page: int | None = None
    last_page: int | None = None
    status: ItemStatus | None = None
    results: tuple[FilePage, ...] | None = None


SearchItem: TypeAlias = (
    ResponseFileSearchToolCall
    | ResponseFunctionWebSearch
    | ResponseXSearchToolCall
    | ResponseDocumentFinderToolCall
    | ResponseFileReaderToolCall
    | ResponseToolSearchCall
    | ResponseToolSearchOutputItem
)
"""A search."""


# ---------------------------------------------------------------------------- server calls
# Work of the server's own tools: code that it runs, images that it makes, tools of MCP servers that it calls.


@record
class CodeInterpreterLogs(ResponsesRecord):
    """The printed output of code."""

    type: Literal["logs"] = "logs"
    logs: str


@record
class CodeInterpreterImage(ResponsesRecord):
    """An image that code drew."""

    type: Literal["image"] = "image"
    url: str


@record
class UnknownCodeInterpreterOutput(Unknown, ResponsesRecord):
    """An output of code of an unregistered type."""

    family: ClassVar[str] = "code interpreter output"
    type: str | None = None


CodeInterpreterOutput: TypeAlias = CodeInterpreterLogs | CodeInterpreterImage | UnknownCodeInterpreterOutput
"""An output of code."""


@record
class ResponseCodeInterpreterToolCall(Item):
    """Python code that the server runs.

    Attributes:
        container_id: the container.
        code: the code.
        outputs: its outputs, if they were requested.
        status: its progress.
    """

    type: Literal["code_interpreter_call"] = "code_interpreter_call"
    container_id: str | None = None
    code: str | None = None
    outputs: tuple[CodeInterpreterOutput, ...] | None = None
    status: CallStatus | None = None


@record
class ImageGenerationCall(Item):
    """An image that the server makes, see :class:`crosswalk.responses.ImageGeneration`.

    Attributes:
        result: the image in base64.
        status: its progress.
        revised_prompt: the prompt of the image model.
        error: why there is none.
        svg_usage: the tokens that a vector graphic took.
    """

    type: Literal["image_generation_call"] = "image_generation_call"
    result: str | None = None
    status: CallStatus | None = None
    action: str | None = None
    background: str | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = None
    revised_prompt: str | None = None
    error: FrozenObject | None = None
    svg_usage: FrozenObject | None = None


@record
class McpTool(ResponsesRecord):
    """A tool of an MCP server.

    Attributes:
        name: its name.
        description: its description.
        input_schema: the JSON Schema of its arguments.
        annotations: the server's annotations, any JSON value.
    """

    name: str
    description: str | None = None
    input_schema: Any = None
    annotations: Any = None


@record
class McpListTools(Item):
    """The tools that an MCP server has.

    Attributes:
        server_label: the server.
        tools: the tools.
        error: why they could not be listed.
    """

    type: Literal["mcp_list_tools"] = "mcp_list_tools"
    server_label: str
    tools: tuple[McpTool, ...] = ()
    error: str | None = None


@record
class McpCall(Item):
    """A call of an MCP server's tool, which the server makes itself.

    Attributes:
        server_label: the MCP server.
        name: the tool.
        arguments: the arguments as JSON text.
        output: the output of the tool.
        error: why it failed.
        status: its progress.
        approval_request_id: the approval that it waits for or was given.
    """

    type: Literal["mcp_call"] = "mcp_call"
    server_label: str
    name: str
    arguments: str = ""
    output: str | None = None
    error: str | FrozenObject | None = None
    status: CallStatus | None = None
    approval_request_id: str | None = None


@record
class McpApprovalRequest(Item):
    """Asks whether an MCP server's tool may be called, for the caller to answer.

    Attributes:
        server_label: the MCP server.
        name: the tool.
        arguments: the arguments as JSON text.
    """

    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    server_label: str
    name: str
    arguments: str = ""


@record
class McpApprovalResponse(Item):
    """Says whether an MCP server's tool may be called.

    Attributes:
        approval_request_id: the ``id`` of the request.
        approve: whether it may.
        reason: why.
    """

    type: Literal["mcp_approval_response"] = "mcp_approval_response"
    approval_request_id: str
    approve: bool
    reason: str | None = None


ServerItem: TypeAlias = (
    ResponseCodeInterpreterToolCall
    | ImageGenerationCall
    | McpCall
    | McpListTools
    | McpApprovalRequest
    | McpApprovalResponse
)
"""A call that the server answers, or what it asks before."""
