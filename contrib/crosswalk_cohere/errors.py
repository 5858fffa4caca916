"""Cohere's errors: ``{"message": …, "id": …}``, perhaps with an ``error_type`` (section 7)."""

from __future__ import annotations

import re
from typing import Any

import attrs

from crosswalk import ErrorInfo, ErrorKind, error_info

__all__ = ["cohere_error", "is_error"]

_BY_WORDS = (
    (ErrorKind.CONTEXT_OVERFLOW, re.compile(r"too many tokens|TOO_MANY_TOKENS", re.IGNORECASE)),
    (ErrorKind.MODEL_UNAVAILABLE, re.compile(r"model '[^']{1,200}' (was removed|not found)", re.IGNORECASE)),
    (ErrorKind.AUTHENTICATION, re.compile(r"(incorrect|invalid) api (key|token)", re.IGNORECASE)),
)
_BY_STATUS = {
    498: ErrorKind.AUTHENTICATION,  # an invalid token; other servers say with it that they are full
    499: ErrorKind.UNKNOWN,  # the client closed the connection
}


def is_error(event: dict[str, Any]) -> bool:
    """Whether *event* is an error, although nothing but its text says so."""
    return isinstance(event.get("message"), str) and "finish_reason" not in event and "text" not in event


def cohere_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error body says; *status* is ``None`` for one inside a stream."""
    info = error_info(status, body)
    words = f"{info.code or ''} {info.message}"[:2000]
    for kind, pattern in _BY_WORDS:
        if pattern.search(words):
            return attrs.evolve(info, kind=kind, retryable=False)
    broad = _BY_STATUS.get(status or 0)
    return info if broad is None else attrs.evolve(info, kind=broad, retryable=False)
