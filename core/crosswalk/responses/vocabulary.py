"""Closed vocabularies: the statuses, and the words on which a reading depends.

An unknown one is refused; with ``unknown="keep"`` the field is ``None`` and the word stays in ``extensions``.
All other words of the API (models, service tiers, efforts, error codes …) are plain ``str``: they change often
and servers add their own.
"""

from __future__ import annotations

from enum import StrEnum

from crosswalk.wire.responses import PENDING

__all__ = [
    "ApplyPatchCallOutputStatus",
    "ApplyPatchCallStatus",
    "CodeInterpreterCallStatus",
    "ComputerCallOutputStatus",
    "FileSearchCallStatus",
    "ImageGenerationCallStatus",
    "IncompleteReason",
    "ItemStatus",
    "McpCallStatus",
    "MessageRole",
    "ProgramOutputStatus",
    "ResponseStatus",
    "WebSearchCallStatus",
]


class ResponseStatus(StrEnum):
    """How far a response has come; the last four are final."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing will follow."""
        return self.value not in PENDING


class IncompleteReason(StrEnum):
    """Why a response is incomplete."""

    MAX_OUTPUT_TOKENS = "max_output_tokens"
    MAX_MESSAGES = "max_messages"
    CONTENT_FILTER = "content_filter"
    STEERED = "steered"


class ItemStatus(StrEnum):
    """How far a message, a reasoning, a function call or most other items have come."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class FileSearchCallStatus(StrEnum):
    """How far a file search has come."""

    IN_PROGRESS = "in_progress"
    SEARCHING = "searching"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class WebSearchCallStatus(StrEnum):
    """How far a web search has come."""

    IN_PROGRESS = "in_progress"
    SEARCHING = "searching"
    COMPLETED = "completed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


class CodeInterpreterCallStatus(StrEnum):
    """How far a run of the code interpreter has come."""

    IN_PROGRESS = "in_progress"
    INTERPRETING = "interpreting"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class ImageGenerationCallStatus(StrEnum):
    """How far an image has come."""

    IN_PROGRESS = "in_progress"
    GENERATING = "generating"
    COMPLETED = "completed"
    FAILED = "failed"


class ComputerCallOutputStatus(StrEnum):
    """How far the answer to a computer call has come."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class McpCallStatus(StrEnum):
    """How far a call of an MCP server's tool has come."""

    IN_PROGRESS = "in_progress"
    CALLING = "calling"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class ApplyPatchCallStatus(StrEnum):
    """How far a patch has come."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class ApplyPatchCallOutputStatus(StrEnum):
    """How a patch ended."""

    COMPLETED = "completed"
    FAILED = "failed"


class ProgramOutputStatus(StrEnum):
    """How a program ended."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class MessageRole(StrEnum):
    """Who speaks in an input message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
