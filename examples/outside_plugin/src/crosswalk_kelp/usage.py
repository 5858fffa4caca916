"""What was counted, as texts in the farewell. ``in`` leaves out what came from the cache."""

from __future__ import annotations

from typing import Any

from crosswalk import UsageInfo, get_object
from crosswalk.plugins import MappingState
from crosswalk_kelp.wire import count

__all__ = ["usage_info"]


def usage_info(event: Any, state: MappingState) -> UsageInfo | None:
    """The counts of *event*; ``None`` when it has none. A count that was not sent is noted as absent."""
    farewell = get_object(event, "bye")
    spent = None if farewell is None else get_object(farewell, "spent", "bye")
    if not spent:
        return None
    fresh, cached, out = (count(spent, key, "bye.spent") for key in ("in", "in_cached", "out"))
    if fresh is None and cached is None and out is None:
        return None
    state.note("usage.prompt_tokens", "absent" if fresh is None else None)
    state.note("usage.completion_tokens", "absent" if out is None else None)
    return UsageInfo((fresh or 0) + (cached or 0), out or 0, cached)
