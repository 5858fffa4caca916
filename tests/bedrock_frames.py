"""The binary framing of Bedrock's streams, as AWS writes it."""

from __future__ import annotations

import binascii
import struct
from typing import Any

import orjson

__all__ = ["binary", "event", "message"]


def message(payload: bytes, *, headers: bytes | None = None, **named: str) -> bytes:
    """A message of an eventstream; *named* are its headers without the colon, ``_`` for ``-``."""
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
