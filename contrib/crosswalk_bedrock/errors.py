"""Bedrock's errors: exceptions by name, as HTTP bodies, as events of a stream and in frames (section 7)."""

from __future__ import annotations

import re
from typing import Any

import attrs

from crosswalk.plugins import ErrorInfo, ErrorKind, FramingError, error_info, refined

__all__ = ["EventStreamError", "bedrock_error"]

_KINDS = {
    "validation": (ErrorKind.INVALID_REQUEST, False),
    "accessdenied": (ErrorKind.PERMISSION, False),
    "unrecognizedclient": (ErrorKind.AUTHENTICATION, False),
    "expiredtoken": (ErrorKind.AUTHENTICATION, False),
    "invalidsignature": (ErrorKind.AUTHENTICATION, False),
    "resourcenotfound": (ErrorKind.MODEL_UNAVAILABLE, False),
    "modeltimeout": (ErrorKind.TIMEOUT, True),
    "modelerror": (ErrorKind.SERVER, False),
    "modelstreamerror": (ErrorKind.SERVER, True),
    "modelnotready": (ErrorKind.RATE_LIMIT, True),
    "throttling": (ErrorKind.RATE_LIMIT, True),
    "servicequotaexceeded": (ErrorKind.RATE_LIMIT, False),
    "internalserver": (ErrorKind.SERVER, True),
    "serviceunavailable": (ErrorKind.SERVER, True),
}
"""By the exception's name in small letters, without ``Exception``."""

_TOKEN = re.compile(r"security token included in the request is (expired|invalid)", re.IGNORECASE)
_MODEL = re.compile(
    r"model identifier is invalid|on-demand throughput isn.t supported|end of its life", re.IGNORECASE
)
_TOO_LONG = re.compile(r"input is too long|too many (input )?tokens", re.IGNORECASE)
# What the message tells more exactly than the name: every complaint about a request is a ValidationException.
_BY_WORDS = (
    (ErrorKind.AUTHENTICATION, _TOKEN),
    (ErrorKind.MODEL_UNAVAILABLE, _MODEL),
    (ErrorKind.CONTEXT_OVERFLOW, _TOO_LONG),
)


class EventStreamError(FramingError):
    """Bytes are no ``application/vnd.amazon.eventstream``, or end inside one of its messages."""


def bedrock_error(status: int | None, body: Any, name: str | None = None) -> ErrorInfo:
    """What an error says.

    Args:
        status: the HTTP status; ``None`` for an exception inside a stream.
        body: the exception: ``message``, perhaps ``Message``, perhaps with its name in ``__type`` or ``code``.
        name: the exception's name, where something else than the body tells; over HTTP only the header
            ``x-amzn-ErrorType`` has it, and the status decides.
    """
    said = {**body, "__type": name} if name and isinstance(body, dict) else body
    info = error_info(status, said)
    info = attrs.evolve(info, code=name or info.code, raw=body if body != "" else None)
    for kind, words in _BY_WORDS:
        if words.search(info.message[:2000]):
            return refined(info, kind)
    if info.kind is ErrorKind.CONTEXT_OVERFLOW:
        return info
    known = _KINDS.get(_plain_name(info.code or ""))
    return info if known is None else refined(info, known[0], retryable=known[1])


def _plain_name(code: str) -> str:
    """``com.amazon.coral.service#ThrottlingException:http://…`` as ``throttling``."""
    return code.split(":")[0].rpartition("#")[2].lower().removesuffix("exception")
