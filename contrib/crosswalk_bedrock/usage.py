"""Token counts (section 5)."""

from __future__ import annotations

from typing import Any

from crosswalk import MappingState, Provenance, UsageInfo, get_count

__all__ = ["usage_info"]


def usage_info(usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
    """The counts of *usage*; ``None`` when it has none.

    ``inputTokens`` is without the tokens that the cache had or got: the three make up the prompt. Amazon's own models
    count the caches under other names when they are not asked through Converse.

    Raises:
        WireTypeError: a count is not a non-negative integer.
    """
    fresh, output = get_count(usage, "inputTokens", place), get_count(usage, "outputTokens", place)
    read = _first(usage, ("cacheReadInputTokens", "cacheReadInputTokenCount"), place)
    written = _first(usage, ("cacheWriteInputTokens", "cacheWriteInputTokenCount"), place)
    get_count(usage, "totalTokens", place)
    if fresh is None and output is None and read is None and written is None:
        return None
    state.note("usage.prompt_tokens", Provenance.ABSENT if fresh is None else None)
    state.note("usage.completion_tokens", Provenance.ABSENT if output is None else None)
    prompt = 0 if fresh is None else fresh + (read or 0) + (written or 0)  # a part is not the count
    return UsageInfo(prompt, output or 0, read, cache_write_tokens=written)


def _first(usage: dict[str, Any], names: tuple[str, str], place: str) -> int | None:
    counts = [get_count(usage, name, place) for name in names]
    return next((count for count in counts if count is not None), None)
