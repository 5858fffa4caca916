"""Closed vocabularies: the statuses, and other words that reading depends on.

An unknown word is refused. With ``unknown="keep"`` the field is ``None`` and the word stays in ``extensions``.
All other words of the API (models, service tiers, efforts, error codes …) are plain ``str``, because they change often
and servers add more.
"""

from __future__ import annotations

from enum import StrEnum

from crosswalk.wire.responses import PENDING


class ResponseStatus(StrEnum):
    """The status of a response. The last four are final."""

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
    """The status of a message, a reasoning item, a function call and most other items."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class FileSearchCallStatus(StrEnum):
    """The status of a file search."""

    IN_PROGRESS = "in_progress"
    SEARCHING = "searching"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class WebSearchCallStatus(StrEnum):
    """The status of a web search."""

    IN_PROGRESS = "in_progress"
    SEARCHING = "searching"
    COMPLETED = "completed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


class CodeInterpreterCallStatus(StrEnum):
    """The status of a run of the code interpreter."""

    IN_PROGRESS = "in_progress"
    INTERPRETING = "interpreting"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class ImageGenerationCallStatus(StrEnum):
    """The status of an image."""

    IN_PROGRESS = "in_progress"
    GENERATING = "generating"
    COMPLETED = "completed"
    FAILED = "failed"


class ComputerCallOutputStatus(StrEnum):
    """The status of the answer to a computer call."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class McpCallStatus(StrEnum):
    """The status of a call of an MCP server's tool."""

    IN_PROGRESS = "in_progress"
    CALLING = "calling"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class ApplyPatchCallStatus(StrEnum):
    """The status of a patch."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class ApplyPatchCallOutputStatus(StrEnum):
    """The final status of a patch."""

    COMPLETED = "completed"
    FAILED = "failed"


class ProgramOutputStatus(StrEnum):
    """The final status of a program."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class MessageRole(StrEnum):
    """The author of an input message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
