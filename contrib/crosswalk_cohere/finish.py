"""Finish reasons, and what ended with an error (section 4)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from crosswalk import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    Provenance,
    ResponseDelta,
    UnknownFinishReasonError,
    classify,
    error_delta,
)

__all__ = ["FINISH_REASONS", "end_deltas", "finish_reason"]

FINISH_REASONS = {
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


def finish_reason(word: str, state: MappingState) -> FinishReason:
    """What a finish word means; ``""`` is a body of v1 that is whole and has none.

    Raises:
        UnknownFinishReasonError: the word is not known.
    """
    if word == "":
        state.note("finish_reason", Provenance.DERIVED)
        return FinishReason.STOP
    try:
        return FINISH_REASONS[word]
    except KeyError:
        raise UnknownFinishReasonError(word) from None


def end_deltas(word: str, message: str | None, state: MappingState) -> Iterator[ResponseDelta]:
    """The end of an answer: its finish *word*; of one that failed also why, where a *message* says so."""
    if message or word in _FAILED:
        kind = ErrorKind.TIMEOUT if word == "TIMEOUT" else classify(None, message or "")
        info = ErrorInfo(
            kind,
            message or f"the answer ended with {word}",
            retryable=kind in _RETRYABLE,
            code=word or None,
            raw={"finish_reason": word or None, "error": message} if message else None,
        )
        yield attrs.evolve(error_delta(info, state), raw_finish_reason=word)
    else:
        yield ResponseDelta(state.next_index(), raw_finish_reason=word)
