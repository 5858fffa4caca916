"""Token counts (section 5)."""

from __future__ import annotations

from typing import Any

import attrs

from crosswalk.plugins import MappingState, Provenance, UsageInfo, accept_count, accept_object

__all__ = ["usage_info"]

_TOOL_USE = "toolUsePromptTokenCount"
_PROMPT = ("promptTokenCount", _TOOL_USE)
_COMPLETION = ("candidatesTokenCount", "thoughtsTokenCount")
_COUNTS = (*_PROMPT, *_COMPLETION, "cachedContentTokenCount")
_TOTAL = "totalTokenCount"


@attrs.define
class _Counts:
    """What was counted so far.

    Attributes:
        last: of each count the last one sent: they are cumulative, and zeros are left out.
        total_is_kept: whether a total said more than the counts beside it: from then on every one stays, or an old one
            would pass for the last.
    """

    last: dict[str, int] = attrs.Factory(dict)
    total_is_kept: bool = False


def usage_info(chunk: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """The counts so far; ``None`` where *chunk* has none.

    Tool results that were fed back count as prompt and thoughts as completion, which the API counts apart; the former
    stay in the extensions, where nothing else shows them.
    """
    usage = accept_object(chunk, "usageMetadata")
    if not usage:
        return None
    counts = state.own(_Counts)
    sent = {name: count for name in _COUNTS if (count := accept_count(usage, name)) is not None}
    mistyped = usage.keys() & _COUNTS
    if _TOOL_USE in sent:
        usage[_TOOL_USE] = sent[_TOOL_USE]
    total = accept_count(usage, _TOTAL)
    if total is not None and (
        counts.total_is_kept or total != sum(sent.get(name, 0) for name in (*_PROMPT, *_COMPLETION))
    ):
        counts.total_is_kept = True
        usage[_TOTAL] = total
    if not sent:
        return None
    last = counts.last
    last.update(sent)
    prompt = _addends(last, _PROMPT, mistyped)
    completion = _addends(
        last, _COMPLETION[:1] if _are_thoughts_counted_twice(last, total) else _COMPLETION, mistyped
    )
    info = state.usage_info(
        sum(prompt) if prompt else None,
        sum(completion) if completion else None,
        cached_tokens=last.get("cachedContentTokenCount"),
        reasoning_tokens=last.get("thoughtsTokenCount"),
    )
    for path, addends in (("usage.prompt_tokens", prompt), ("usage.completion_tokens", completion)):
        if len(addends) > 1:
            state.note(path, Provenance.DERIVED)
    return info


def _addends(last: dict[str, int], names: tuple[str, ...], mistyped: set[str]) -> list[int]:
    """The counts that one of ours is made of; empty where they are not all known."""
    return [last[name] for name in names if name in last] if mistyped.isdisjoint(names) else []


def _are_thoughts_counted_twice(last: dict[str, int], total: int | None) -> bool:
    """Whether a gateway has the thoughts in ``candidatesTokenCount`` too: then the total is reached without them."""
    if not last.get("thoughtsTokenCount") or not last.get("candidatesTokenCount"):
        return False
    return total == sum(last.get(name, 0) for name in (*_PROMPT, "candidatesTokenCount"))
