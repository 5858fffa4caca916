"""Responses as a table of pandas, which the caller has installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    import pandas


def to_pandas(responses: Iterable[ChatResponse]) -> pandas.DataFrame:
    """A table with a row for each response: provider, model, text, finish reason, tokens, cost and time.

    Raises:
        ImportError: pandas is not installed.
    """
    import pandas

    return pandas.DataFrame([_row(response) for response in responses])


def _row(response: ChatResponse) -> dict[str, Any]:
    usage, error = response.usage, response.error_info
    return {
        "id": response.id,
        "created": response.created,
        "provider": response.metadata.provider_id,
        "model": response.model,
        "text": response.text,
        "reasoning": response.reasoning,
        "tool_calls": len(response.tool_calls),
        "finish_reason": response.finish_reason.value,
        "is_complete": response.is_complete,
        "error": None if error is None else error.kind.value,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": None if usage.cost is None else float(usage.cost.amount),
        "seconds": response.metadata.request_duration.total_seconds(),
    }
