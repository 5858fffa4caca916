"""Times as servers write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from crosswalk.plugin.take import look_at

__all__ = ["look_at_time", "time_of"]


def look_at_time(container: dict[str, Any], key: str) -> datetime | None:
    """The time under *key*, RFC 3339, which stays there as well; ``None`` where missing, no time or, noted, no string."""
    text = look_at(container, key, str)
    return time_of(text) if text else None


def time_of(text: str) -> datetime | None:
    """The time that *text* says, in UTC; ``None`` where it says none, or not in which zone."""
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is UTC else None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        return None
