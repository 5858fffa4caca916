"""Token counts: in parts, and cumulative (section 5)."""

from __future__ import annotations

from typing import Any

from crosswalk import MappingState, Provenance, UsageInfo, get_count, get_object

__all__ = ["usage_info"]

_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def usage_info(
    usage: dict[str, Any], place: str, known: dict[str, int], state: MappingState
) -> UsageInfo | None:
    """The counts so far, with those of *usage*; ``None`` when it has none.

    ``input_tokens`` is without the tokens that the cache had or got: the three make up the prompt.

    Args:
        usage: a usage object.
        place: where it stands in the event.
        known: the counts of this message so far; a part that a later report leaves out stays as it was.
        state: the stream's scratch pad.

    Raises:
        WireTypeError: a count is not a non-negative integer.
    """
    found = {name: get_count(usage, name, place) for name in _COUNTS}
    details = get_object(usage, "output_tokens_details", place) or {}
    found["thinking_tokens"] = get_count(details, "thinking_tokens", f"{place}.output_tokens_details")
    new = {name: count for name, count in found.items() if count is not None}
    if not new:
        return None
    known.update(new)
    fresh, output = known.get("input_tokens"), known.get("output_tokens")
    read, written = known.get("cache_read_input_tokens"), known.get("cache_creation_input_tokens")
    state.note("usage.prompt_tokens", Provenance.ABSENT if fresh is None else None)
    state.note("usage.completion_tokens", Provenance.ABSENT if output is None else None)
    prompt = 0 if fresh is None else fresh + (read or 0) + (written or 0)  # a part is not the count
    return UsageInfo(prompt, output or 0, read, known.get("thinking_tokens"), written)
