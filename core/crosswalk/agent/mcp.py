"""Tools of MCP servers, through the official package. Needs ``crosswalk-llm[mcp]``, which is imported on first use."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, Final

from crosswalk.agent.results import ToolError
from crosswalk.agent.tools import Tool
from crosswalk.errors import CrosswalkError
from crosswalk.text import clean_message
from crosswalk.types.json import as_frozen_object, dump_json
from crosswalk.types.message import AudioPart, ContentPart, FilePart, ImagePart
from crosswalk.types.values import checks_keywords


@asynccontextmanager
@checks_keywords()
async def mcp_tools(
    server: Any, *, prefix: str = "", needs_approval: bool = False, timeout: float | None = None
) -> AsyncIterator[list[Tool]]:
    """Connect to an MCP server and yield its tools, for an agent. The connection lasts as long as the block.

    ``async with mcp_tools(StdioServerParameters(command="uvx", args=["mcp-server-time"])) as tools: Agent(service, tools)``

    The server checks the arguments, and the model gets its error messages. Images, audio and files of a result keep
    their type. The tools may run in any task of this event loop, and fail at once in another one, such as that of a
    :class:`SyncAgent`. If the server ends, running calls fail, and the next one
    connects again: a command is started anew.

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
    connection = _Connection(lambda: client_of(server))
    try:
        listed_tools, cursor = [], None
        while True:
            page = await connection.request("list_tools", cursor=cursor)
            listed_tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        yield [
            Tool(
                name=re.sub(r"[^a-zA-Z0-9_-]", "_", f"{prefix}{listed_tool.name}")[:64],
                description=listed_tool.description or listed_tool.title or "",
                schema=as_frozen_object(listed_tool.input_schema),
                function=_call_function(connection, listed_tool.name),
                timeout=timeout,
                needs_approval=needs_approval,
            )
            for listed_tool in listed_tools
        ]
    finally:
        await connection.close()


_LOST_CODES: Final = (-32000, -32600)
"""The codes of errors after which a connection is of no use: it was closed, or its session is over at the server."""


class _Connection:
    """A connection to an MCP server. After it was lost, the next request opens it again.

    It is opened and closed in a task of its own, as ``mcp`` wants, so an error that ends it does not end the caller.

    Args:
        client_of: makes a client.
    """

    def __init__(self, client_of: Callable[[], Any]) -> None:
        self._client_of = client_of
        self._event_loop = asyncio.get_running_loop()
        self._holder_tasks: list[asyncio.Task[None]] = []
        self._end_event = asyncio.Event()  # of the present one: it is lost, or to be closed
        self._end_event.set()
        self._is_closed = False

    async def request(self, method: str, *arguments: Any, **keyword_arguments: Any) -> Any:
        """Return the result of the client's *method*.

        Raises:
            ToolError: the connection was lost meanwhile. CrosswalkError: there is none in this event loop.
        """
        if asyncio.get_running_loop() is not self._event_loop:
            raise CrosswalkError(
                "the connection to the MCP server belongs to another event loop: use its tools there, with Agent"
            )
        if self._is_closed:
            raise CrosswalkError("the connection to the MCP server is closed: use its tools inside the block")
        if self._end_event.is_set() or self._holder_tasks[-1].done():
            self._open()
        holder_task, client_future, end_event = self._holder_tasks[-1], self._opened, self._end_event
        await asyncio.wait({holder_task, client_future}, return_when=asyncio.FIRST_COMPLETED)
        if not client_future.done():
            [error] = await asyncio.gather(holder_task, return_exceptions=True)
            raise CrosswalkError(f"no connection to the MCP server: {_first_cause(error)}") from error
        request_task = asyncio.ensure_future(
            getattr(client_future.result(), method)(*arguments, **keyword_arguments)
        )
        try:
            await asyncio.wait({holder_task, request_task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            request_task.cancel()  # does nothing if it is done
        if request_task.done() and getattr(request_task.exception(), "code", None) not in _LOST_CODES:
            return request_task.result()
        end_event.set()
        raise ToolError(
            "the connection to the MCP server was lost; the call may have taken effect, and the next one connects again"
        )

    async def close(self) -> None:
        """Close the connection, or give up opening it."""
        self._is_closed = True
        self._end_event.set()
        if not self._opened.done():
            self._holder_tasks[-1].cancel()
        await asyncio.gather(*self._holder_tasks, return_exceptions=True)

    def _open(self) -> None:
        self._opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._end_event = asyncio.Event()
        self._holder_tasks.append(asyncio.create_task(self._hold(self._opened, self._end_event)))

    async def _hold(self, client_future: asyncio.Future[Any], end_event: asyncio.Event) -> None:
        async with self._client_of() as client:
            client_future.set_result(client)
            await end_event.wait()


def _first_cause(error: BaseException | None) -> str:
    """Return the message of the first error in nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return clean_message(f"{type(error).__name__}: {error}", 200)


def _call_function(connection: _Connection, name: str) -> Callable[..., Any]:
    async def call(**arguments: Any) -> Any:
        result = await connection.request("call_tool", name, arguments)
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
            media_type = block.resource.mime_type
            return FilePart(data=block.resource.blob, media_type=media_type, name=str(block.resource.uri))
        case _:  # a link, or a block of a later version of the protocol
            return dump_json(block.model_dump(mode="json", exclude_none=True)).decode()
