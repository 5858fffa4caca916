"""Images, audio, video and documents in an answer (section 2)."""

from __future__ import annotations

from typing import Any

from crosswalk import Segment, SegmentType, get_object, get_string

__all__ = ["MEDIA", "media_segment"]

MEDIA = ("image", "audio", "video", "document")
"""The kinds of content block that hold a file."""

_DOCUMENTS = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}


def media_segment(kind: str, item: dict[str, Any], place: str) -> Segment:
    """The segment of a file: its bytes in base64 or its address as content, the rest of *item* as metadata.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    word = get_string(item, "format", place)
    source = get_object(item, "source", place) or {}
    where = f"{place}.source"
    data = get_string(source, "bytes", where)
    stored = get_object(source, "s3Location", where) or {}
    address = get_string(stored, "uri", f"{where}.s3Location")
    about: dict[str, Any] = {"kind": kind}
    if word:
        about["media_type"] = _DOCUMENTS.get(word, "application/octet-stream")
        if kind != "document":
            about["media_type"] = f"{kind}/{word}"
    if data is not None or address is not None:
        about["encoding"] = "url" if data is None else "base64"
    rest = {name: value for name, value in item.items() if name != "source"}
    left = _without_content(source, data, address)
    if left:
        rest["source"] = left
    if rest:
        about[kind] = rest
    return Segment(SegmentType.MEDIA, (data if data is not None else address) or "", about)


def _without_content(source: dict[str, Any], data: str | None, address: str | None) -> dict[str, Any]:
    """*source* less what the segment has as its content."""
    if data is not None:
        return {name: value for name, value in source.items() if name != "bytes"}
    if address is None:
        return source
    stored = {name: value for name, value in source["s3Location"].items() if name != "uri"}
    rest = {name: value for name, value in source.items() if name != "s3Location"}
    return {**rest, "s3Location": stored} if stored else rest
