"""The object ``timings``: what the server measured of one answer (section 6). It stays in the extensions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from crosswalk import MappingState, Provenance, UsageInfo, get_count, get_number, get_object

__all__ = ["cached_tokens", "note_duration", "usage_of_timings"]

_PLACE = "timings"
_LONGEST = 1e15  # milliseconds: what a timedelta still holds


def note_duration(event: dict[str, Any], state: MappingState) -> None:
    """Note how long the prompt and the answer took together; of several answers at once, the longest.

    Raises:
        WireTypeError: ``timings`` is no object, or a time is no number.
    """
    timings = get_object(event, "timings") or {}
    times = [get_number(timings, name, _PLACE) for name in ("prompt_ms", "predicted_ms")]
    total = sum(time for time in times if time is not None)
    if any(time is not None for time in times) and 0 <= total < _LONGEST:
        known = state.request_duration or timedelta()
        state.request_duration = max(known, timedelta(milliseconds=total))
        state.note("metadata.request_duration", Provenance.DERIVED)


def cached_tokens(event: dict[str, Any]) -> int | None:
    """How many tokens of the prompt came from a cache; ``None`` where it is not said, as in older versions.

    Raises:
        WireTypeError: the count is none.
    """
    return get_count(get_object(event, "timings") or {}, "cache_n", _PLACE)


def usage_of_timings(event: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """The counts of a stream whose usage was not asked for; ``None`` without timings (section 5).

    ``prompt_n`` counts the tokens that were processed now, those from the cache come on top. A version that does
    not say how many came from there leaves the prompt's count unknown.

    Raises:
        WireTypeError: a count is none.
    """
    timings = get_object(event, "timings") or {}
    fresh = get_count(timings, "prompt_n", _PLACE)
    completion = get_count(timings, "predicted_n", _PLACE)
    cached = cached_tokens(event)
    if fresh is None and completion is None:
        return None
    prompt = None if fresh is None or cached is None else fresh + cached
    state.note("usage.prompt_tokens", Provenance.ABSENT if prompt is None else Provenance.DERIVED)
    state.note("usage.completion_tokens", Provenance.ABSENT if completion is None else None)
    return UsageInfo(prompt or 0, completion or 0, cached)
