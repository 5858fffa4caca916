"""What one message's mapping remembers between its events."""

from __future__ import annotations

from crosswalk import MappingState
from crosswalk_anthropic.blocks import Blocks

__all__ = ["Progress", "progress"]

_KEY = "anthropic"


class Progress:
    """How far a message has come.

    Attributes:
        blocks: its content blocks.
        counts: its tokens, as last reported, by the provider's names.
        stop_reason: the first that is not null; ``None`` before.
        has_begun: whether its start has come.
    """

    __slots__ = ("blocks", "counts", "has_begun", "stop_reason")

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.counts: dict[str, int] = {}
        self.stop_reason: str | None = None
        self.has_begun = False


def progress(state: MappingState) -> Progress:
    """The progress of the stream of *state*."""
    found: Progress | None = state.data.get(_KEY)
    if found is None:
        found = state.data[_KEY] = Progress()
    return found
