"""What the mapping of one message of chat v2 remembers between its events."""

from __future__ import annotations

from collections.abc import Iterator

from crosswalk import MappingState, ResponseDelta, Segment, SegmentType

__all__ = ["Progress", "progress"]

_KEY = "cohere"
_PLAN = -1  # in the place of a block's index


class Progress:
    """How far a message has come.

    Attributes:
        has_begun: whether its start has come.
        finish_word: why it ended; ``None`` before its end.
        error: what the provider said went wrong; ``None`` for an answer that did not fail.
        block: the index of the content block that was started last; ``None`` before the first.
        citations: how many citations have come.
        in_order: whether the index of the last event was the one that the order of events says.
        run: whose text was said last, by type and block; ``None`` where something else came after it.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self.finish_word: str | None = None
        self.error: str | None = None
        self.block: int | None = None
        self.citations = 0
        self.in_order = True
        self.run: tuple[SegmentType, int] | None = None
        self._blocks = 0
        self._is_open = False
        self._held: list[Segment] = []
        self._is_planning = False

    def start_block(self, index: int | None) -> None:
        """A content block begins."""
        self.in_order = index is None or index == self._blocks
        self.block = self._blocks if index is None else index
        self._blocks += 1
        self._is_open = True

    def say(self, kind: SegmentType, text: str, state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a piece of the text of the last block."""
        yield from self._say(kind, self.block or 0, text, state)

    def plan(self, text: str | None, state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a piece of the tool plan: what the model says it will do before it calls tools."""
        if text:
            self._is_planning = True
            yield from self._say(SegmentType.REASONING, _PLAN, text, state)

    def finish_plan(self, state: MappingState) -> Iterator[ResponseDelta]:
        """The end of a tool plan says that it was one."""
        if self._is_planning:
            self._is_planning = False
            yield self._insert(Segment(SegmentType.REASONING, "", {"kind": "tool_plan"}), state)

    def cite(self, citation: Segment, state: MappingState) -> Iterator[ResponseDelta]:
        """The delta of a citation, at the end of its block: inside it would cut the text in two."""
        self.citations += 1
        if self._is_open:
            self._held.append(citation)
        else:
            yield self._insert(citation, state)

    def close(self, state: MappingState) -> Iterator[ResponseDelta]:
        """A content block ends: the citations that came inside."""
        self._is_open = False
        held, self._held = self._held, []
        for citation in held:
            yield self._insert(citation, state)

    def _say(self, kind: SegmentType, block: int, text: str, state: MappingState) -> Iterator[ResponseDelta]:
        if text:
            if self.run is not None and self.run[0] is kind and self.run[1] != block:
                yield self._insert(Segment(kind), state)  # two blocks of one type stay apart
            self.run = (kind, block)
        if kind is SegmentType.TEXT:
            yield ResponseDelta(state.next_index(), text)
        elif text:
            yield ResponseDelta(state.next_index(), reasoning_delta=text)

    def _insert(self, segment: Segment, state: MappingState) -> ResponseDelta:
        self.run = None
        return ResponseDelta(state.next_index(), segment=segment)


def progress(state: MappingState) -> Progress:
    """The progress of the stream of *state*."""
    found: Progress | None = state.data.get(_KEY)
    if found is None:
        found = state.data[_KEY] = Progress()
    return found
