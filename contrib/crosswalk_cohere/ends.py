"""How an answer ends: finish reasons; errors, ``{"message": …, "id": …}``, perhaps an ``error_type`` (sections 4, 7)."""

from __future__ import annotations

import re
from typing import Any

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    Provenance,
    ResponseDelta,
    UnknownFinishReasonError,
    classify,
    error_delta,
    error_info,
)

__all__ = ["cohere_error", "end_delta", "finish_reason", "is_error"]

_FINISH_REASONS = {
    "COMPLETE": FinishReason.STOP,
    "STOP_SEQUENCE": FinishReason.STOP,
    "TOOL_CALL": FinishReason.TOOL_CALLS,
    "MAX_TOKENS": FinishReason.LENGTH,
    "ERROR_LIMIT": FinishReason.LENGTH,
    "ERROR_TOXIC": FinishReason.CONTENT_FILTER,
    "USER_CANCEL": FinishReason.CANCELLED,
    "ERROR": FinishReason.ERROR,
    "TIMEOUT": FinishReason.ERROR,
}
"""The words of v2 and v1."""
_FAILED = ("ERROR", "TIMEOUT")
_RETRYABLE = (ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER)
_BY_WORDS = (
    (ErrorKind.CONTEXT_OVERFLOW, re.compile(r"too many tokens|TOO_MANY_TOKENS", re.IGNORECASE)),
    (ErrorKind.MODEL_UNAVAILABLE, re.compile(r"model '[^']{1,200}' (was removed|not found)", re.IGNORECASE)),
    (ErrorKind.AUTHENTICATION, re.compile(r"(incorrect|invalid) api (key|token)", re.IGNORECASE)),
)
_BY_STATUS = {
    498: ErrorKind.AUTHENTICATION,  # an invalid token; other servers say with it that they are full
    499: ErrorKind.UNKNOWN,  # the client closed the connection
}


def finish_reason(word: str, state: MappingState) -> FinishReason:
    """What a finish word means; ``""`` is a body of v1 that is whole and has none.

    Raises:
        UnknownFinishReasonError: the word is not known.
    """
    if word == "":
        state.note("finish_reason", Provenance.DERIVED)
        return FinishReason.STOP
    try:
        return _FINISH_REASONS[word]
    except KeyError:
        raise UnknownFinishReasonError(word) from None


def end_delta(word: str, message: str | None) -> ResponseDelta:
    """The end of an answer: its finish *word*; of one that failed also why, where a *message* says so."""
    if not message and word not in _FAILED:
        return ResponseDelta(raw_finish_reason=word)
    kind = ErrorKind.TIMEOUT if word == "TIMEOUT" else classify(None, message or "")
    info = ErrorInfo(
        kind,
        message or f"the answer ended with {word}",
        retryable=kind in _RETRYABLE,
        code=word or None,
        raw={"finish_reason": word or None, "error": message} if message else None,
    )
    return attrs.evolve(error_delta(info), raw_finish_reason=word)


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
