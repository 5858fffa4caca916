"""TGI's errors: a text and a word beside it; inside a chat stream the text alone, always with status 422 (section 7)."""

from __future__ import annotations

import re
from typing import Any

import attrs

from crosswalk.plugins import ErrorInfo, ErrorKind, error_info

__all__ = ["tgi_error"]

# By the word, or by how its text begins, where a chat stream leaves the word out.
_KINDS = (
    (ErrorKind.SERVER, r"generation\b|incomplete_generation|stream_serialization_error"),
    (ErrorKind.SERVER, r"request failed during generation|incomplete generation|stream event serialization"),
    (ErrorKind.RATE_LIMIT, r"overloaded|model is overloaded"),
    (
        ErrorKind.INVALID_REQUEST,
        r"validation|template_error|missing_template_variable|tool_error"
        r"|input validation error|template error|missing template va|tool error",
    ),
)
_TOO_LONG = re.compile(r"`inputs` (tokens \+ `max_new_tokens` must be <=|must have less than)")
_RETRYABLE = (ErrorKind.SERVER, ErrorKind.RATE_LIMIT)


def tgi_error(status: int | None, body: Any) -> ErrorInfo:
    """What an error says; *status* is ``None`` inside a stream, which does not say it truly."""
    info = error_info(status, body)
    said = body.get("error_type") if type(body) is dict else None
    word = said if type(said) is str else info.message
    if _TOO_LONG.search(info.message[:2000]):
        return attrs.evolve(info, kind=ErrorKind.CONTEXT_OVERFLOW, status=status, retryable=False)
    for kind, pattern in _KINDS:
        if re.match(pattern, word[:200], re.IGNORECASE):
            return attrs.evolve(info, kind=kind, status=status, retryable=kind in _RETRYABLE)
    return attrs.evolve(info, status=status)
