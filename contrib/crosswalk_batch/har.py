"""The answers in a HAR file, which browser tools write. The file is streamed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import ijson

from crosswalk.records import facts_of, layouts
from crosswalk_batch.inputs import LONGEST, MIB, InputError, too_long

_BUFFER: Final = 4 * MIB
"""Bytes to parse at once. A longer text is concatenated again in each step."""
_TYPES: Final = ("json", "event-stream", "eventstream")
"""Parts of the content types of a model's answer. Images and scripts of a page are not records."""


def har_rows(path: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the answers in a HAR file as rows."""
    begin, number = file.tell(), 0
    try:
        for number, entry in enumerate(ijson.items(file, "log.entries.item", buf_size=_BUFFER), 1):
            try:
                content = entry["response"]["content"]
                if any(word in str(content.get("mimeType", "")) for word in _TYPES):
                    yield {"source": path, "number": number, **_row(entry, content)}
            except (KeyError, TypeError, AttributeError):
                yield {"source": path, "number": number, "fault": "no answer: not an entry of a HAR file"}
        file.seek(begin)
        is_har = number > 0 or next(ijson.items(file, "log.entries"), None) == []
    except ijson.JSONError:
        is_har = False
    if not is_har:
        what = f"the file is damaged after entry {number}" if number else "not a HAR file"
        raise InputError(f"{path}: {what}")


def _row(entry: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of an entry, read by the layout ``har``."""
    facts, text = facts_of(entry, layouts()["har"], {}), content.get("text")
    row = {
        "time": facts.created,
        "latency_seconds": None if facts.latency is None else facts.latency.total_seconds(),
        "requested_model": facts.model,
        "status": facts.status,
        "request": facts.request,
    }
    if type(text) is not str:
        return row | {"fault": "no answer: the browser has not kept it"}
    if len(text) > LONGEST:
        return row | {"fault": too_long("answer")}
    if content.get("encoding") != "base64":
        return row | {"body": text.encode(errors="surrogatepass")}
    try:
        return row | {"body": base64.b64decode(text, validate=True)}
    except ValueError:
        return row | {"fault": "no answer: not base64"}
