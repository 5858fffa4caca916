"""Why an answer ended (section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from crosswalk import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ResponseDelta,
    UnknownFinishReasonError,
    error_delta,
    get_string,
)
from crosswalk_gemini.answer import Answer
from crosswalk_gemini.calls import call_end

__all__ = ["end_deltas", "enum_word", "finish_reason", "is_filtered"]

_STOP = "STOP", "1"
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
_VAGUE = ("OTHER", "5", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED", "0")
"""They say nothing about whether the answer is whole: it is none if nothing was produced."""
_FAILED = {
    "MALFORMED_FUNCTION_CALL": ErrorKind.TOOL_CALL_VALIDATION,
    "UNEXPECTED_TOOL_CALL": ErrorKind.TOOL_CALL_VALIDATION,
    "TOO_MANY_TOOL_CALLS": ErrorKind.TOOL_CALL_VALIDATION,
    "MISSING_THOUGHT_SIGNATURE": ErrorKind.INVALID_REQUEST,
    "MALFORMED_RESPONSE": ErrorKind.SERVER,
    "PUP_LIMITED_DISABLED": ErrorKind.UNKNOWN,
    **dict.fromkeys(_VAGUE, ErrorKind.UNKNOWN),
}
# Asked for numbers, both APIs write these; above 8 theirs differ. All of 3, 4, 6, 7 and 8 are filters.
_REASONS = {
    **dict.fromkeys(_STOP, FinishReason.STOP),
    **dict.fromkeys(("MAX_TOKENS", "2", "CONTINUATION"), FinishReason.LENGTH),
    **dict.fromkeys((*_FILTERED, "3", "4", "6", "7", "8"), FinishReason.CONTENT_FILTER),
    **dict.fromkeys(_FAILED, FinishReason.ERROR),
}


def finish_reason(word: str) -> FinishReason:
    """What ``finishReason`` means; vague words are errors here, :func:`end_deltas` looks at what was produced.

    Raises:
        UnknownFinishReasonError: the word is not known.
    """
    try:
        return _REASONS[word]
    except KeyError:
        raise UnknownFinishReasonError(word) from None


def is_filtered(word: Any) -> bool:
    """Whether *word* says that moderation ended the answer."""
    return isinstance(word, str) and _REASONS.get(word) is FinishReason.CONTENT_FILTER


def enum_word(container: dict[str, Any], key: str, place: str) -> str | None:
    """The word of an enum, or its number as a word; ``None`` where it is missing.

    Raises:
        WireTypeError: it is neither.
    """
    value = container.get(key)
    return str(value) if type(value) is int and value >= 0 else get_string(container, key, place)


def end_deltas(
    candidate: dict[str, Any], word: str, place: str, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """The end of an answer that says *word*: its detail, then the word.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    choice = answer.choice
    message = get_string(candidate, "finishMessage", place)
    if word in _STOP:
        # Some streams leave out the end of the arguments. With any other word they are cut, and stay so.
        for end in call_end(answer, state):
            yield ResponseDelta(state.next_index(), tool_call_delta=end, choice=choice)
    if message and is_filtered(word):
        yield ResponseDelta(state.next_index(), refusal_delta=message, choice=choice)
    if word in _VAGUE and answer.produced:
        stop = FinishReason.STOP
        yield ResponseDelta(state.next_index(), finish_reason=stop, raw_finish_reason=word, choice=choice)
    elif word in _FAILED:
        said = message or f"the answer ended with {word}"
        retryable = word == "MALFORMED_RESPONSE"
        delta = error_delta(ErrorInfo(_FAILED[word], said, retryable, code=word), state)
        if choice:
            # An error with a finish reason would be one of the whole response.
            yield attrs.evolve(delta, finish_reason=None, raw_finish_reason=word, choice=choice)
        else:
            yield attrs.evolve(delta, raw_finish_reason=word)
    else:
        yield ResponseDelta(state.next_index(), raw_finish_reason=word, choice=choice)
