"""Whether an event of unknown origin is one of Bedrock's."""

from __future__ import annotations

from typing import Any

from crosswalk import Recognition

__all__ = ["recognition"]

_MARKS = {
    "messageStart": ("role",),
    "contentBlockStart": ("contentBlockIndex", "start"),
    "contentBlockDelta": ("contentBlockIndex", "delta"),
    "contentBlockStop": ("contentBlockIndex",),
    "messageStop": ("stopReason",),
    "metadata": ("usage", "metrics"),
}
"""What every event of the kind has, under its name and in a frame."""
_EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "validationException",
    "throttlingException",
    "serviceUnavailableException",
)


def recognition(event: Any) -> Recognition:
    """How well *event* fits: certainly by the names of this API's events and fields, possibly as a bare error."""
    if not isinstance(event, dict):
        return Recognition.NO
    for name, marks in _MARKS.items():
        if name in event and all(mark in _object(event[name]) for mark in marks):
            return Recognition.CERTAIN
    message = _object(_object(event.get("output")).get("message"))
    is_body = "content" in message and "stopReason" in event
    is_framed = type(event.get("contentBlockIndex")) is int
    if is_body or is_framed or any(isinstance(event.get(name), dict) for name in _EXCEPTIONS):
        return Recognition.CERTAIN
    is_error = isinstance(event.get("message", event.get("Message")), str) and len(event) == 1
    return Recognition.POSSIBLE if is_error else Recognition.NO


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
