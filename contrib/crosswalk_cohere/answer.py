"""What the mapping of one answer of chat v1 remembers between its events."""

from __future__ import annotations

from typing import Any

from crosswalk import MappingState, Segment

__all__ = ["Answer", "answer_of"]

_KEY = "cohere.v1"


class Answer:
    """How far an answer has come.

    Attributes:
        has_begun: whether its start or its body has come.
        texts: the pieces of its text.
        length: how many characters they have.
        calls: its tool calls, each with its name and the pieces of its parameters.
        citations: what was cited, as the provider put it.
        held: the segments of the citations, which would cut the text in two.
        finish_word: why it ended; ``None`` before its end.
        error: what the provider said went wrong; ``None`` for an answer that did not fail.
        comparisons: how often its calls have been compared with what the provider gave as a whole.
        repeated: which fields of the event that was just read said again what had come before.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.texts: list[str] = []
        self.length = 0
        self.calls: list[tuple[str | None, list[str]]] = []
        self.citations: list[Any] = []
        self.held: list[Segment] = []
        self.finish_word: str | None = None
        self.error: str | None = None
        self.comparisons = 0
        self.repeated: set[str] = set()


def answer_of(state: MappingState) -> Answer:
    """The answer of the stream of *state*."""
    found: Answer | None = state.data.get(_KEY)
    if found is None:
        found = state.data[_KEY] = Answer()
    return found
