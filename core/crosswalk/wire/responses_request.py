"""Reads the parts of messages in the form of the Responses API, for clients' requests and for conversations of items."""

from __future__ import annotations

from crosswalk.types.message import ContentPart, FilePart, TextPart
from crosswalk.wire.chat_request import read_file, read_image
from crosswalk.wire.fields import Fields, placed

__all__ = ["read_part"]


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
