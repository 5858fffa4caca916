"""What the server measured of an answer (sections 3, 5 and 6). The object ``timings`` stays in the extensions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from crosswalk.plugins import (
    MappingState,
    Provenance,
    UsageInfo,
    accept_object,
    look_at,
    look_at_count,
)

__all__ = ["Notes", "cached_tokens", "note_duration", "usage_of_timings"]

_TIMES = ("prompt_ms", "predicted_ms")
_LONGEST = 1e15  # milliseconds: what a timedelta still holds


def note_duration(event: dict[str, Any], state: MappingState) -> None:
    """Note how long the prompt and the answer took together; of several answers at once, the longest."""
    timings = _timings(event)
    times = [time for name in _TIMES if (time := look_at(timings, name, float)) is not None]
    is_known = bool(times) and len(times) == sum(timings.get(name) is not None for name in _TIMES)
    if is_known and 0 <= sum(times) < _LONGEST:
        known = state.request_duration or timedelta()
        state.request_duration = max(known, timedelta(milliseconds=sum(times)))
        state.note("metadata.request_duration", Provenance.DERIVED)


def cached_tokens(event: dict[str, Any]) -> int | None:
    """How many tokens of the prompt came from a cache; ``None`` where it is not said, as in older versions."""
    return look_at_count(_timings(event), "cache_n")


def usage_of_timings(event: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """The counts of a stream whose usage was not asked for; ``None`` without timings (section 5).

    ``prompt_n`` counts the tokens that were processed now, those from the cache come on top. A version that does
    not say how many came from there leaves the prompt's count unknown.
    """
    timings = _timings(event)
    fresh, completion = (look_at_count(timings, name) for name in ("prompt_n", "predicted_n"))
    if fresh is None and completion is None:
        return None
    cached = cached_tokens(event)
    prompt = None if fresh is None or cached is None else fresh + cached
    counts = state.usage_info(prompt, completion, cached_tokens=cached)
    if prompt is not None:
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    return counts


def _timings(event: dict[str, Any]) -> dict[str, Any]:
    return accept_object(event, "timings") or {}


class Notes:
    """What is to be remembered of several answers.

    Attributes:
        prompts: with how many prompts the server has begun, as far as it says so.
        choice: in the OpenAI layer, the answer that an event without choices is about.
    """

    prompts = 1
    choice = 0
