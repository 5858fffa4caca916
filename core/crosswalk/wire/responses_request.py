"""The parts of messages and the calls in a request to the Responses API, read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crosswalk.types.message import ContentPart, FilePart, ImagePart, TextPart, ToolCall
from crosswalk.wire.chat_request import read_file, read_image
from crosswalk.wire.fields import Fields, placed


def read_part(part: Fields) -> ContentPart | None:
    """Return *part* as a canonical one, or ``None`` if there is no such part. Then it stays unread."""
    kind = part.need("type", part.text("type"))
    if kind == "input_text":
        with placed(part, "text"):
            return TextPart(part.need("text", part.text("text")))
    if kind == "input_image" and "image_url" in part:
        return read_image(part, "image_url")
    if kind == "input_file" and "file_url" in part:
        return FilePart(url=part.text("file_url"), name=part.text("filename"))
    if kind == "input_file":
        return read_file(part)
    part.leave()
    return None


def input_part(
    part: TextPart | ImagePart | FilePart, url: Callable[[ImagePart | FilePart], str]
) -> dict[str, Any]:
    """Return *part* as the API takes it. *url* returns the address of an image or a file, or its data in one."""
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": url(part), "detail": part.detail or "auto"}
    named = {"filename": part.name} if part.name else {}
    if part.id is not None:
        return {"type": "input_file", "file_id": part.id, **named}
    if part.data is None:
        return {"type": "input_file", "file_url": part.url, **named}
    return {"type": "input_file", "file_data": url(part), "filename": part.name or "file"}


def call_item(call: ToolCall, arguments: str) -> dict[str, Any]:
    """Return *call* as an item, with *arguments* for those of a function."""
    about = {"call_id": call.id, "name": call.name}
    if call.is_custom:
        return {"type": "custom_tool_call", **about, "input": call.arguments}
    return {"type": "function_call", **about, "arguments": arguments}
