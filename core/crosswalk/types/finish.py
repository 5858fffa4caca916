"""Why a generation ended, and why its answer is not whole."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class FinishReason(StrEnum):
    """The reason why the model stopped. It is read case-insensitively and written as these words."""

    STOP = "stop"
    """The model finished by itself."""
    LENGTH = "length"
    """A limit of tokens was reached, or the answer was cut for another reason: it is incomplete."""
    TOOL_CALLS = "tool_calls"
    """The model asks the client to run tools."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    ERROR = "error"
    """The generation failed."""
    CANCELLED = "cancelled"
    """The client, or the server's operator, stopped it."""

    @classmethod
    def _missing_(cls, value: object) -> FinishReason | None:
        return _BY_WORD.get(value.lower()) if isinstance(value, str) else None


class IncompleteReason(StrEnum):
    """Why an answer is not whole: a closed set, in order of precedence."""

    ERROR = "error"
    """The generation failed."""
    CANCELLED = "cancelled"
    """The client, or the server's operator, stopped it."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped it."""
    LENGTH = "length"
    """A limit cut it."""
    UNKNOWN_FINISH_REASON = "unknown_finish_reason"
    """It ended with a word that no mapping knows, or its log states no reason."""
    UNKNOWN_EVENT = "unknown_event"
    """It holds an event, or a part of its content, that no mapping knows."""
    REFUSAL = "refusal"
    """The model declined."""
    MISSING_CALL = "missing_call"
    """The server reports that the model calls tools, and no call came."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The arguments of a function call are not a JSON object."""
    UNREAD = "unread"
    """Tokens were counted and no content was found, but its message holds text that no mapping has read."""
    PAUSED = "paused"
    """The model continues when the answer is sent back unchanged."""


PAUSES: Final = frozenset({"pause_turn", "compaction"})
"""The providers' words for an answer that only pauses. They are read as ``stop``."""

_BY_WORD = {reason.value: reason for reason in FinishReason}
