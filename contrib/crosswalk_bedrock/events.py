"""The kinds of events: wrapped, framed, or a whole body. Also the paths of their residue (sections 1 to 3)."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.plugins import (
    Block,
    ErrorInfo,
    ErrorKind,
    error_info,
    event_type,
    refined,
    require_object,
    unknown_event,
)
from crosswalk_bedrock.blocks import INDEX

MARKS = {
    "messageStart": ("role",),
    "contentBlockStart": (INDEX, "start"),
    "contentBlockDelta": (INDEX, "delta"),
    "contentBlockStop": (INDEX,),
    "messageStop": ("stopReason",),
    "metadata": ("usage", "metrics"),
}
"""The keys of every event of the kind, under its name and in a frame."""
_PARTS = {"contentBlockStart": "start", "contentBlockDelta": "delta", "contentBlockStop": ""}
"""The key of the block's index."""


@attrs.frozen(eq=False, repr=False)
class Event:
    """An event without its wrapping.

    Attributes:
        kind: the name of its type, or ``body``, or ``error``.
        payload: its content, or the exception of an error.
        wrapper: the key of the payload, or ``None`` for framed events and bodies.
        name: the exception's name, or ``None`` if only its payload has it, and for other events.
    """

    kind: str
    payload: Any
    wrapper: str | None = None
    name: str | None = None

    @classmethod
    def of(cls, event: dict[str, Any], frame: str | None) -> Event:
        """Return the kind of *event*. SDKs give ``{"messageStop": {…}}``, and a *frame* has the name separately.

        Raises:
            WireTypeError: the value under its name is not an object.
            UnknownEventError: its type is unknown.
        """
        for name in MARKS:
            if event.get(name) is not None:
                return cls(name, require_object(event[name], name), name)
        for name in event:
            if name.endswith("Exception") and event[name] is not None:
                return cls("error", event[name], name, name)
        if event.get("error") is not None:
            return cls("error", event["error"], "error")
        frame = frame or ""
        if frame in MARKS:
            return cls(frame, event)
        if frame.endswith("Exception"):
            return cls("error", event, None, frame)
        if "output" in event or "stopReason" in event:
            return cls("body", event)
        if isinstance(event.get("message"), str) and len(event) <= 2:
            return cls("error", event)  # an HTTP error without its status
        word = event_type(event) or frame or next(iter(event), "")[:60]
        raise unknown_event({"type": word or None})


def at_home(event: dict[str, Any], read: Event, last: Block | None) -> dict[str, Any]:
    """Return the residue of *event* at the path of a body.

    For ``messageStart`` that is ``output.message``, for an event of a content block ``output.message.content`` under the
    block's index, and for the others, and padding, the top. It never replaces another value, and then keeps its path.

    Args:
        event: the residue of the event.
        read: the kind of the event.
        last: the block of the latest event, or ``None`` before the first.
    """
    if read.kind in ("body", "error"):
        return event
    payload = event if read.wrapper is None else event.pop(read.wrapper, {})
    if payload and "output" not in payload:
        moved = _moved(payload, read.kind, last)
        if moved:
            payload["output"] = {"message": moved}
    if read.wrapper is None:
        return payload
    return {read.wrapper: payload, **event} if payload.keys() & event.keys() else {**payload, **event}


def _moved(payload: dict[str, Any], kind: str, last: Block | None) -> dict[str, Any]:
    """Take the residue of the message out of *payload*."""
    if kind == "messageStart":
        return {name: payload.pop(name) for name in [*payload] if name != "p"}
    if kind not in _PARTS:
        return {}
    part = _PARTS[kind]
    index, raw = payload.pop(INDEX, None), payload.pop(part, None) if part else None
    if index is None and raw is None:
        return {}
    item = {"index": last.index if index is None and last is not None else index}
    if raw is not None:
        item["deltas" if part == "delta" else part] = [raw] if part == "delta" else raw
    return {"content": [item]}


# Errors: exceptions by name, as HTTP bodies, as events of a stream and in frames (section 7).


_KINDS = {
    "validation": (ErrorKind.INVALID_REQUEST, False),
    "resourcenotfound": (ErrorKind.MODEL_UNAVAILABLE, False),
    "modelerror": (ErrorKind.SERVER, False),
    "modelstreamerror": (ErrorKind.SERVER, True),
    "modelnotready": (ErrorKind.RATE_LIMIT, True),
    "servicequotaexceeded": (ErrorKind.RATE_LIMIT, False),
}
"""By the exception's name in lower case, without ``Exception``. The general rules cover the other names."""

_BY_WORDS = (ErrorKind.AUTHENTICATION, ErrorKind.MODEL_UNAVAILABLE, ErrorKind.CONTEXT_OVERFLOW)
"""Messages that are more exact than the name, because every complaint about a request is a ``ValidationException``."""


def bedrock_error(status: int | None, body: Any, name: str | None = None) -> ErrorInfo:
    """Read an error.

    Args:
        status: the HTTP status, or ``None`` for an exception inside a stream.
        body: the exception: ``message``, perhaps ``Message``, perhaps with its name in ``__type`` or ``code``.
        name: the exception's name, if it is not in the body. Over HTTP only the header ``x-amzn-ErrorType``
            has it, and the status decides.
    """
    raw = {**body, "__type": name} if name and isinstance(body, dict) else body
    info = error_info(status, raw)
    info = attrs.evolve(info, code=name or info.code, raw=body if body != "" else None)
    known = None if info.kind in _BY_WORDS else _KINDS.get(_plain_name(info.code or ""))
    return info if known is None else refined(info, known[0], retryable=known[1])


def _plain_name(code: str) -> str:
    """``com.amazon.coral.service#ThrottlingException:http://…`` as ``throttling``."""
    return code.split(":")[0].rpartition("#")[2].lower().removesuffix("exception")
