"""Token counts (section 5)."""

from __future__ import annotations

from typing import Any

from crosswalk import MappingState, Provenance, UsageInfo, get_count, get_object

__all__ = ["is_the_sum", "usage_info"]

_PROMPT = ("promptTokenCount", "toolUsePromptTokenCount")
_COMPLETION = ("candidatesTokenCount", "thoughtsTokenCount")
_TOTAL = "totalTokenCount"
_COUNTS = (*_PROMPT, *_COMPLETION, "cachedContentTokenCount")


def usage_info(chunk: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
    """The counts so far: of each the last one sent, because they are cumulative and zeros are left out.

    Tool results that were fed back count as prompt and thoughts as completion, which the API counts apart.
    """
    usage = get_object(chunk, "usageMetadata", place)
    where = f"{place}.usageMetadata" if place else "usageMetadata"
    if usage is None:
        return None
    sent = {name: get_count(usage, name, where) for name in (*_COUNTS, _TOTAL)}
    if all(sent[name] is None for name in _COUNTS):
        return None
    counts: dict[str, int] = state.data.setdefault("counts", {})
    counts.pop(_TOTAL, None)  # it goes with the counts beside it alone
    counts.update({name: count for name, count in sent.items() if count is not None})
    prompt = _sum(counts, _PROMPT, "usage.prompt_tokens", state)
    parts = ("candidatesTokenCount",) if _are_thoughts_counted_twice(counts) else _COMPLETION
    completion = _sum(counts, parts, "usage.completion_tokens", state)
    cached, reasoning = counts.get("cachedContentTokenCount"), counts.get("thoughtsTokenCount")
    return UsageInfo(prompt, completion, cached, reasoning)


def is_the_sum(total: Any, usage: dict[str, Any], state: MappingState) -> bool:
    """Whether ``totalTokenCount`` says no more than the counts beside it.

    Once it has said more it is always kept, or an old one would stay for the last one.
    """
    if total is None:
        return True
    counts = [usage.get(name) or 0 for name in (*_PROMPT, *_COMPLETION)]
    if "total_is_kept" not in state.data and type(total) is int and total == sum(counts):
        return True
    state.data["total_is_kept"] = True
    return False


def _sum(counts: dict[str, int], names: tuple[str, ...], path: str, state: MappingState) -> int:
    found = [counts[name] for name in names if name in counts]
    state.note(path, None if len(found) == 1 else Provenance.DERIVED if found else Provenance.ABSENT)
    return sum(found)


def _are_thoughts_counted_twice(counts: dict[str, int]) -> bool:
    """Whether a gateway has the thoughts in ``candidatesTokenCount`` too: then the total is reached without them."""
    if not counts.get("thoughtsTokenCount") or not counts.get("candidatesTokenCount"):
        return False
    others = sum(counts.get(name, 0) for name in (*_PROMPT, "candidatesTokenCount"))
    return counts.get(_TOTAL) == others
