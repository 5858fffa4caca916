"""Google's errors: ``{"error": {code, message, status, details}}``, perhaps in an array (section 7)."""

from __future__ import annotations

import re
from typing import Any

import attrs

from crosswalk import ErrorInfo, ErrorKind, error_info

__all__ = ["gemini_error"]

_KINDS = {
    "UNAUTHENTICATED": (ErrorKind.AUTHENTICATION, False),
    "PERMISSION_DENIED": (ErrorKind.PERMISSION, False),
    "RESOURCE_EXHAUSTED": (ErrorKind.RATE_LIMIT, True),
    "CANCELLED": (ErrorKind.TIMEOUT, False),
    "DEADLINE_EXCEEDED": (ErrorKind.TIMEOUT, True),
    "INTERNAL": (ErrorKind.SERVER, True),
    "UNAVAILABLE": (ErrorKind.SERVER, True),
}
"""What the general rules could not tell from the words alone; the other status words are left to them."""

_TOO_LONG = re.compile(r"token count .{0,100}(exceeds the maximum|only supports up to)", re.IGNORECASE)


def gemini_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error says; *status* is ``None`` for one inside a stream, where the error has it as its ``code``."""
    info = error_info(status, body)
    if "API_KEY_INVALID" in _reasons(body):  # sent with HTTP 400
        return attrs.evolve(info, kind=ErrorKind.AUTHENTICATION, retryable=False)
    if _TOO_LONG.search(info.message):
        return attrs.evolve(info, kind=ErrorKind.CONTEXT_OVERFLOW, retryable=False)
    known = _KINDS.get(info.code or "")
    return info if known is None else attrs.evolve(info, kind=known[0], retryable=known[1])


def _reasons(body: Any) -> list[str]:
    """The reasons in the details; whatever the body is, this raises nothing."""
    body = body[0] if isinstance(body, list) and body else body
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    items = details if isinstance(details, list) else []
    return [str(item.get("reason")) for item in items if isinstance(item, dict)]
