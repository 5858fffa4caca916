"""What the end of an answer says about its text: a finish reason decides before any JSON is read."""

from __future__ import annotations

from typing import Final

from crosswalk.structured.reason import ReasonCode
from crosswalk.types.finish import FinishReason
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import ChatResponse

__all__ = ["reason_for_ending", "reason_for_response"]

_BY_FINISH: Final = {
    FinishReason.LENGTH: ReasonCode.TRUNCATED,
    FinishReason.CANCELLED: ReasonCode.CANCELLED,
    FinishReason.CONTENT_FILTER: ReasonCode.CONTENT_FILTER,
    FinishReason.ERROR: ReasonCode.ANSWER_ERROR,
}


def reason_for_ending(finish_reason: FinishReason | None) -> ReasonCode | None:
    """Why an answer that ended so is not whole; ``None`` where it is, or where nobody knows."""
    return None if finish_reason is None else _BY_FINISH.get(finish_reason)


def reason_for_response(response: ChatResponse) -> ReasonCode | None:
    """Why *response* is not a whole answer; ``None`` where it is.

    One that ended with a word that no mapping knows is taken for one that was cut: nobody can tell.
    """
    reason = reason_for_ending(response.finish_reason)
    if reason is None and response.metadata.provenance.get("finish_reason") is Provenance.UNMAPPED:
        return ReasonCode.TRUNCATED
    if reason is None and response.refusal is not None and not response.text.strip():
        return ReasonCode.REFUSAL
    return reason
