"""What is to pass unwatched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["is_unwatched", "unwatched"]

_passed: Final[ContextVar[bool]] = ContextVar("crosswalk.observe.passed", default=False)


@contextmanager
def unwatched() -> Iterator[None]:
    """Let nothing be watched meanwhile: somebody watches already what passes here, or it is a sink's own."""
    before = _passed.set(True)
    try:
        yield
    finally:
        _passed.reset(before)


def is_unwatched() -> bool:
    """Whether nothing is to be watched now, in this context."""
    return _passed.get()
