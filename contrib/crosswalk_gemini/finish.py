"""Why an answer ended (section 4), or failed (section 7)."""

from __future__ import annotations

import re
from typing import Any

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    error_info,
    take_string,
)

__all__ = ["FAILED", "REASONS", "STOP", "VAGUE", "gemini_error", "number_word", "take_word"]

_NUMBERS = 100

STOP = "STOP", "1"
_FILTERED = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
)
VAGUE = ("OTHER", "5", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED", "0")
"""They say nothing about whether the answer is whole: it is none if nothing was produced."""
FAILED = {
    "MALFORMED_FUNCTION_CALL": ErrorKind.TOOL_CALL_VALIDATION,
    "UNEXPECTED_TOOL_CALL": ErrorKind.TOOL_CALL_VALIDATION,
    "TOO_MANY_TOOL_CALLS": ErrorKind.TOOL_CALL_VALIDATION,
    "MISSING_THOUGHT_SIGNATURE": ErrorKind.INVALID_REQUEST,
    "MALFORMED_RESPONSE": ErrorKind.SERVER,
    "PUP_LIMITED_DISABLED": ErrorKind.UNKNOWN,
    **dict.fromkeys(VAGUE, ErrorKind.UNKNOWN),
}
# Asked for numbers, both APIs write these; above 8 theirs differ. All of 3, 4, 6, 7 and 8 are filters.
REASONS = {
    **dict.fromkeys(STOP, FinishReason.STOP),
    **dict.fromkeys(("MAX_TOKENS", "2", "CONTINUATION"), FinishReason.LENGTH),
    **dict.fromkeys((*_FILTERED, "3", "4", "6", "7", "8"), FinishReason.CONTENT_FILTER),
    **dict.fromkeys(FAILED, FinishReason.ERROR),
}


def take_word(container: dict[str, Any], key: str) -> str | None:
    """Take the word of an enum; ``None`` where it is missing. Its number is the word that it is written as, and stays.

    Raises:
        WireTypeError: it is neither.
    """
    return number_word(container.get(key)) or take_string(container, key)


def number_word(value: Any) -> str | None:
    """The number of an enum as a word; ``None`` for anything else, also a number that no enum of the API has."""
    return str(value) if type(value) is int and 0 <= value < _NUMBERS else None


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
