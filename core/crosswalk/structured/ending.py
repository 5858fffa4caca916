"""The finish reason of an answer, which decides before any JSON is read."""

from __future__ import annotations

from typing import Final

from crosswalk.structured.reason import ReasonCode
from crosswalk.types.finish import FinishReason, IncompleteReason
from crosswalk.types.response import ChatResponse

__all__ = ["reason_for_ending", "reason_for_response"]

_BY_REASON: Final[dict[IncompleteReason | None, ReasonCode]] = {
    **dict.fromkeys(IncompleteReason, ReasonCode.TRUNCATED),
    IncompleteReason.CANCELLED: ReasonCode.CANCELLED,
    IncompleteReason.CONTENT_FILTER: ReasonCode.CONTENT_FILTER,
    IncompleteReason.ERROR: ReasonCode.ANSWER_ERROR,
    IncompleteReason.REFUSAL: ReasonCode.REFUSAL,
}
_BY_FINISH: Final = {
    FinishReason.LENGTH: ReasonCode.TRUNCATED,
    FinishReason.CANCELLED: ReasonCode.CANCELLED,
    FinishReason.CONTENT_FILTER: ReasonCode.CONTENT_FILTER,
    FinishReason.ERROR: ReasonCode.ANSWER_ERROR,
}


def reason_for_ending(finish_reason: FinishReason | None) -> ReasonCode | None:
    """Return why an answer that ended so is not whole, or ``None`` if it is, or if that is unknown."""
    return None if finish_reason is None else _BY_FINISH.get(finish_reason)


def reason_for_response(response: ChatResponse) -> ReasonCode | None:
    """Return why *response* is not a whole answer, or ``None`` if it is.

    A response that pauses, or has a part that cannot be read, is taken for one that was cut.
    """
    return _BY_REASON.get(response.incomplete_reason)
