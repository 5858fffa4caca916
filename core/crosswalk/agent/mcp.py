"""Tools of MCP servers, through the official package. Needs ``crosswalk-llm[mcp]``, which is imported on first use."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

from crosswalk.agent.results import ToolError
from crosswalk.agent.tools import Tool
from crosswalk.errors import CrosswalkError
from crosswalk.text import clean_message
from crosswalk.types.json import as_frozen_object, dump_json
from crosswalk.types.message import AudioPart, ContentPart, FilePart, ImagePart

__all__ = ["mcp_tools"]


@asynccontextmanager
async def mcp_tools(
    server: Any, *, prefix: str = "", needs_approval: bool = False, timeout: float | None = None
) -> AsyncIterator[list[Tool]]:
    """Connect to an MCP server and yield its tools, for an agent. The connection lasts as long as the block.

    ``async with mcp_tools(StdioServerParameters(command="uvx", args=["mcp-server-time"])) as tools: Agent(service, tools)``

    The server checks the arguments, and the model gets its error messages. Images, audio and files of a result keep
    their type. The block belongs to one task. The tools may run in other tasks of its event loop.

    Args:
        server: an argument of ``mcp.Client``: ``mcp.StdioServerParameters`` for a command, a URL, a transport, or a server
            in this process.
        prefix: put before each tool's name, to tell servers apart. Characters that a name may not contain become ``_``.
        needs_approval: whether each call must be approved before it runs.
        timeout: how many seconds a call may take, or ``None`` for the runner's limit.

    Raises:
        CrosswalkError: the package ``mcp`` is not installed, or the server cannot be reached. Its cause is the error of
            the package.
        ToolDefinitionError: *timeout* is not a valid time limit.
    """
    try:
        client_of = import_module("mcp").Client
    except ImportError:
        raise CrosswalkError("this needs the package mcp: pip install 'crosswalk-llm[mcp]'") from None
    async with _without_groups(), AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(client_of(server))
        except Exception as error:
            raise CrosswalkError(f"no connection to the MCP server: {_first_cause(error)}") from error
        listed, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        yield [
            Tool(
                name=re.sub(r"[^a-zA-Z0-9_-]", "_", f"{prefix}{listed_tool.name}")[:64],
                description=listed_tool.description or listed_tool.title or "",
                schema=as_frozen_object(listed_tool.input_schema),
                function=_call_function(client, listed_tool.name),
                timeout=timeout,
                needs_approval=needs_approval,
            )
            for listed_tool in listed
        ]


@asynccontextmanager
async def _without_groups() -> AsyncIterator[None]:
    """Re-raise an error of the block without the exception groups of one that the task groups of ``mcp`` put around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error is group:
            raise
        raise error from error.__cause__


def _first_cause(error: BaseException) -> str:
    """Return the message of the first error in nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return clean_message(f"{type(error).__name__}: {error}", 200)


def _call_function(client: Any, name: str) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        result = await client.call_tool(name, arguments)
        content = [_content_of(block) for block in result.content]
        texts = [part for part in content if isinstance(part, str)]
        if result.is_error:
            raise ToolError("\n".join(texts) or "the tool failed")
        if not content and result.structured_content is not None:
            return result.structured_content
        return "\n".join(texts) if len(texts) == len(content) else content

    return call


def _content_of(block: Any) -> str | ContentPart:
    """Return a content block of a result as text or as a part for a model."""
    match block.type:
        case "text":
            return str(block.text)
        case "image":
            return ImagePart(data=block.data, media_type=block.mime_type)
        case "audio":
            return AudioPart(data=block.data, media_type=block.mime_type)
        case "resource" if hasattr(block.resource, "text"):
            return str(block.resource.text)
        case "resource":
            kind = block.resource.mime_type
            return FilePart(data=block.resource.blob, media_type=kind, name=str(block.resource.uri))
        case _:  # a link, or a block of a later version of the protocol
            return dump_json(block.model_dump(mode="json", exclude_none=True)).decode()
