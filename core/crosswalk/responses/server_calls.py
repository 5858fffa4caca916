"""Work of the server's own tools: code that it runs, images that it makes, tools of MCP servers that it calls."""

from typing import Any, ClassVar, Literal, TypeAlias

from crosswalk.responses.item import Item
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.vocabulary import CodeInterpreterCallStatus, ImageGenerationCallStatus, McpCallStatus


@record
class CodeInterpreterLogs(Record):
    """The printed output of code."""

    type: Literal["logs"] = "logs"
    logs: str


@record
class CodeInterpreterImage(Record):
    """An image that code drew."""

    type: Literal["image"] = "image"
    url: str


@record
class UnknownCodeInterpreterOutput(Unknown, Record):
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
    status: CodeInterpreterCallStatus | None = None


@record
class ImageModerationDetails(Record):
    """The reason why an image was withheld.

    Attributes:
        categories: the categories of its content.
        moderation_stage: ``input``, ``output`` or ``unknown``.
    """

    categories: tuple[str, ...]
    moderation_stage: str


@record
class ImageGenerationError(Record):
    """Why there is no image.

    Attributes:
        type: the kind of error, free text.
        message: the description.
        code: the error code.
        param: the parameter at fault.
        moderation_details: see its class.
    """

    type: str
    message: str
    code: str | None = None
    param: str | None = None
    moderation_details: ImageModerationDetails | None = None


@record
class SvgUsage(Record):
    """Tokens that a vector graphic took."""

    model: str
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    total_tokens: int


@record
class ImageGenerationCall(Item):
    """An image that the server makes, see :class:`crosswalk.responses.ImageGeneration`.

    Attributes:
        result: the image in base64.
        status: its progress.
        revised_prompt: the prompt of the image model.
        error: why there is none.
        svg_usage: see its class.
    """

    type: Literal["image_generation_call"] = "image_generation_call"
    result: str | None = None
    status: ImageGenerationCallStatus | None = None
    action: str | None = None
    background: str | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = None
    revised_prompt: str | None = None
    error: ImageGenerationError | None = None
    svg_usage: SvgUsage | None = None


@record
class McpTool(Record):
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
class McpProtocolError(Record):
    """The MCP server violated its protocol, or rejected the call."""

    type: Literal["mcp_protocol_error"] = "mcp_protocol_error"
    code: int
    message: str


@record
class McpToolExecutionError(Record):
    """The tool failed with this content, any JSON value."""

    type: Literal["mcp_tool_execution_error"] = "mcp_tool_execution_error"
    content: Any = None


@record
class HTTPError(Record):
    """The MCP server could not be reached, or answered with an HTTP error."""

    type: Literal["http_error"] = "http_error"
    code: int
    message: str


@record
class UnknownMcpCallError(Unknown, Record):
    """An error of an MCP call of an unregistered type."""

    family: ClassVar[str] = "MCP error"
    type: str | None = None


McpCallError: TypeAlias = str | McpProtocolError | McpToolExecutionError | HTTPError | UnknownMcpCallError
"""The error of an MCP call. Older versions of the API sent text."""


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
    error: McpCallError | None = None
    status: McpCallStatus | None = None
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
