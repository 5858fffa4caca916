"""An answer of the Responses API as items of the next request."""

from __future__ import annotations

from typing import Any

from crosswalk.convert.conversion import written
from crosswalk.convert.openai_responses import ResponsesWriter
from crosswalk.types.response import ChatResponse

__all__ = ["response_items"]


def response_items(answer: ChatResponse) -> list[dict[str, Any]]:
    """Return the output items of *answer*, one of the Responses API, as received: stored data is complete."""
    items: list[dict[str, Any]] = written(answer, ResponsesWriter, None).response()["output"]
    return items
