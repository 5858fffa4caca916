"""An answer of the Responses API, as what goes back to it with the next request."""

from __future__ import annotations

from typing import Any

from crosswalk.convert.conversion import written
from crosswalk.convert.openai_responses import ResponsesWriter
from crosswalk.types.response import ChatResponse

__all__ = ["response_items"]


def response_items(answer: ChatResponse) -> list[dict[str, Any]]:
    """The items of the output of *answer*, one of the Responses API, as they came: of what is stored nothing is lost."""
    items: list[dict[str, Any]] = written(answer, ResponsesWriter, None).response()["output"]
    return items
