"""An id and a time that are always the same, so that the same bytes give the same canonical JSON."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["fixed_clock", "fixed_id"]

_ID = "00000000-0000-4000-8000-000000000000"
# So odd that no server sends it.
_TIME = datetime(2001, 2, 3, 4, 5, 6, 7, tzinfo=UTC)


def fixed_id() -> str:
    """Always the same id."""
    return _ID


def fixed_clock() -> datetime:
    """Always the same time."""
    return _TIME
