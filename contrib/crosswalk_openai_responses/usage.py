"""Tokens: inclusive, as the canonical ones are; they come once, with the end (section 5)."""

from __future__ import annotations

from typing import Any

from crosswalk import MappingState, Provenance, UsageInfo, get_count, get_object

__all__ = ["usage_info"]


def usage_info(response: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """The counts of a response object; ``None`` when it has none.

    Raises:
        WireTypeError: a count is not a non-negative integer.
    """
    usage = get_object(response, "usage")
    if not usage:
        return None
    prompt = get_count(usage, "input_tokens", "usage")
    completion = get_count(usage, "output_tokens", "usage")
    inputs = get_object(usage, "input_tokens_details", "usage") or {}
    outputs = get_object(usage, "output_tokens_details", "usage") or {}
    cached = get_count(inputs, "cached_tokens", "usage.input_tokens_details")
    written = get_count(inputs, "cache_write_tokens", "usage.input_tokens_details")
    reasoning = get_count(outputs, "reasoning_tokens", "usage.output_tokens_details")
    if all(count is None for count in (prompt, completion, cached, reasoning, written)):
        return None
    state.note("usage.prompt_tokens", Provenance.ABSENT if prompt is None else None)
    state.note("usage.completion_tokens", Provenance.ABSENT if completion is None else None)
    return UsageInfo(prompt or 0, completion or 0, cached, reasoning, written)
