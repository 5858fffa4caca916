"""Why a response ended. The API has no finish word: its status and the detail of an incomplete one make one (section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from crosswalk import FinishReason, get_object, get_string

__all__ = ["FINISH_REASONS", "finish_word"]

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "completed": FinishReason.STOP,
        "incomplete": FinishReason.LENGTH,
        "incomplete:max_output_tokens": FinishReason.LENGTH,
        "incomplete:max_messages": FinishReason.LENGTH,
        "incomplete:content_filter": FinishReason.CONTENT_FILTER,
        "incomplete:steered": FinishReason.CANCELLED,
        "cancelled": FinishReason.CANCELLED,
        "failed": FinishReason.ERROR,
    }
)
"""The reason for each finish word; of ``failed:CODE`` the code does not matter."""

_PENDING: Final = ("queued", "in_progress")


def finish_word(response: dict[str, Any], event: str | None) -> str | None:
    """The finish word of *response*; ``None`` where it is still being made.

    Args:
        response: the response object.
        event: the word that ends the type of its event; ``None`` for a body.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    status = get_string(response, "status", "response")
    if event is not None and (status is None or status in _PENDING):
        status = event
    if status is None or status in _PENDING:
        return None
    detail: str | None = None
    if status == "incomplete":
        detail = get_string(
            get_object(response, "incomplete_details", "response") or {},
            "reason",
            "response.incomplete_details",
        )
    elif status == "failed":
        error = response.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        detail = code if isinstance(code, str) else None
    return f"{status}:{detail}" if detail else status
