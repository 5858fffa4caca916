"""An MCP server over standard input and output, started by the tests of ``crosswalk.agent.mcp``."""

from __future__ import annotations

import os
import signal
from typing import Any

from mcp import types
from mcp.server import MCPServer

server = MCPServer("test", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="draw.everything", structured_output=False)
def draw() -> list[Any]:
    """Draw."""
    text = types.TextResourceContents(uri="file:///a.txt", text="inside", mime_type="text/plain")
    blob = types.BlobResourceContents(uri="file:///a.pdf", blob="aGk=", mime_type="application/pdf")
    return [
        types.TextContent(type="text", text="Here it is:"),
        types.ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png"),
        types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"),
        types.EmbeddedResource(type="resource", resource=text),
        types.EmbeddedResource(type="resource", resource=blob),
        types.ResourceLink(type="resource_link", name="a", uri="https://x/a"),
    ]


@server.tool()
def kill() -> None:
    """End this process, as from outside."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    server.run("stdio")
