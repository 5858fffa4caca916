"""What one message's mapping remembers between its events."""

from __future__ import annotations

from crosswalk import MappingState, UsageInfo
from crosswalk_bedrock.blocks import Blocks

__all__ = ["Progress", "progress"]

_KEY = "bedrock"


class Progress:
    """How far a message has come.

    Attributes:
        blocks: its content blocks.
        stop_reason: why it ended; ``None`` before its end, ``""`` where the provider did not say.
        usage: its tokens; ``None`` before they have come.
        has_begun: whether its start has come.
    """

    __slots__ = ("blocks", "has_begun", "stop_reason", "usage")

    def __init__(self) -> None:
        self.blocks = Blocks()
        self.stop_reason: str | None = None
        self.usage: UsageInfo | None = None
        self.has_begun = False


def progress(state: MappingState) -> Progress:
    """The progress of the stream of *state*."""
    found: Progress | None = state.data.get(_KEY)
    if found is None:
        found = state.data[_KEY] = Progress()
    return found
