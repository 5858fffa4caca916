"""How many values a property is tried with: as many as the run's profile says, see ``conftest``."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["tries"]

_USUAL = 100
_LEAST = 10


def tries(count: int) -> int:
    """*count*, if others are tried with a hundred values. As many times fewer, or more, as they are."""
    return max(min(count, _LEAST), count * settings().max_examples // _USUAL)
