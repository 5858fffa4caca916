"""Events of Bedrock's streams, and their binary framing as AWS writes it."""

from __future__ import annotations

import binascii
import struct
from typing import Any

import orjson

from crosswalk import ChatResponse, normalize

__all__ = [
    "BEGIN",
    "END",
    "METADATA",
    "USAGE",
    "binary",
    "event",
    "message",
    "piece",
    "read",
    "start",
    "stop",
]

USAGE = {"inputTokens": 9, "outputTokens": 12, "totalTokens": 21}


def read(*sent: Any, status: int = 200, **options: Any) -> ChatResponse:
    """The result of events: one is a body, several are a stream."""
    body = b"".join(orjson.dumps(event) + b"\n" for event in sent)
    return normalize(body, "bedrock", status=status, **options)


def start(index: int | None, said: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": said}}


def piece(index: int | None, said: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": said}}


def stop(index: int | None) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


BEGIN = {"messageStart": {"role": "assistant"}}
END = {"messageStop": {"stopReason": "end_turn"}}
METADATA = {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 430}}}


def message(payload: bytes, *, headers: bytes | None = None, **named: str) -> bytes:
    """A message of an eventstream. *named* are its headers without the colon, ``_`` for ``-``."""
    if headers is None:
        headers = b""
        for name, value in named.items():
            key, text = f":{name.replace('_', '-')}".encode(), value.encode()
            headers += bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(text)) + text
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    begun = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return begun + struct.pack(">I", binascii.crc32(begun))


def event(name: str, payload: Any) -> bytes:
    """The message of the event *name*, or of the exception."""
    sent = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    if name.endswith("Exception"):
        return message(sent, message_type="exception", exception_type=name)
    return message(sent, message_type="event", event_type=name, content_type="application/json")


def binary(*sent: dict[str, Any]) -> bytes:
    """The messages of events as SDKs give them, wrapped in their names."""
    return b"".join(event(name, payload) for one in sent for name, payload in one.items())
