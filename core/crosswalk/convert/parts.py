"""An answer as pieces of its parts: what the writers of all forms are fed with, whole answers and streams alike."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.message import ChatMessage
from crosswalk.types.segment import Annotation, Segment, SegmentType
from crosswalk.types.tools import ToolCall, ToolCallDelta

__all__ = ["CallPiece", "Parts", "Piece", "pieces_of"]


@attrs.frozen
class CallPiece:
    """That a piece is of a call that the client is to make.

    Attributes:
        index: the call's place among the calls of its choice.
        id: its id, on the piece that brings it.
        name: its name, on the piece that brings it.
    """

    index: int
    id: str | None = None
    name: str | None = None


@attrs.frozen
class Piece:
    """A piece of a part of an answer, or all of it.

    Attributes:
        part: the number of the part in its choice, from 0.
        type: what the part is.
        text: text to append: of a call its arguments.
        metadata: what is known of the part, or what is new.
        annotations: citations and verdicts.
        call: the client's call that it is of; ``None`` for everything else, calls of the server's tools too.
        choice: which of several answers it belongs to.
    """

    part: int
    type: SegmentType
    text: str = ""
    metadata: FrozenObject = EMPTY_OBJECT
    annotations: tuple[Annotation, ...] = ()
    call: CallPiece | None = None
    choice: int = 0


def pieces_of(message: ChatMessage, segments: tuple[Segment, ...], *, choice: int = 0) -> Iterator[Piece]:
    """The parts of a whole answer, each in one piece.

    The message says which calls are the client's and, where the segments do not show it all, what was said.
    """
    calls = list(message.tool_calls or ())
    indices = {id(call): number for number, call in enumerate(calls)}
    open_calls: dict[tuple[str, str], list[ToolCall]] = {}
    for call in reversed(calls):
        open_calls.setdefault((call.id, call.arguments), []).append(call)
    number = 0
    for segment in segments:
        found = None
        if segment.type is SegmentType.TOOL_CALL:
            key = (str(segment.metadata.get("id")), segment.content)
            if open_calls.get(key):
                made = open_calls[key].pop()
                found = CallPiece(indices.pop(id(made)), made.id, made.name)
        yield Piece(
            number, segment.type, segment.content, segment.metadata, segment.annotations, found, choice
        )
        number += 1
    if message.text and not any(segment.type is SegmentType.TEXT for segment in segments):
        yield Piece(number, SegmentType.TEXT, message.text, choice=choice)
        number += 1
    for call in calls:
        if id(call) in indices:  # no segment shows it
            piece = CallPiece(indices[id(call)], call.id, call.name)
            yield Piece(number, SegmentType.TOOL_CALL, call.arguments, call=piece, choice=choice)
            number += 1


class _Choice:
    """Where one answer of a stream stands: the rules by which ``DeltaAccumulator`` makes its segments."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0
        self.open: SegmentType | None = None
        self.last_is_call = False
        self.has_more = False
        self.calls: dict[int, int] = {}

    def text(self, type: SegmentType, text: str | None) -> Iterator[Piece]:
        if text is None or (self.open is not type and not text):
            return
        if self.open is not type:
            self._begin()
            self.open = type
        yield Piece(self.count - 1, type, text, choice=self.number)

    def call(self, fragment: ToolCallDelta) -> Piece:
        part = self.calls.get(fragment.index)
        if part is None:
            self._begin()
            self.last_is_call = True
            part = self.calls[fragment.index] = self.count - 1
        about = CallPiece(fragment.index, fragment.id, fragment.name)
        text = fragment.arguments_delta or ""
        return Piece(part, SegmentType.TOOL_CALL, text, call=about, choice=self.number)

    def segment(self, segment: Segment) -> Piece:
        if self._completes(segment):
            self.has_more = self.has_more or bool(segment.metadata or segment.annotations)
            self.open = None
        else:
            self._begin()
        return Piece(
            self.count - 1,
            segment.type,
            segment.content,
            segment.metadata,
            segment.annotations,
            choice=self.number,
        )

    def _completes(self, segment: Segment) -> bool:
        if segment.content or not self.count or self.has_more:
            return False
        if self.last_is_call:
            named = segment.metadata.keys() & {"id", "name", "type"}
            return segment.type is SegmentType.TOOL_CALL and bool(segment.metadata) and not named
        return segment.type is self.open

    def _begin(self) -> None:
        self.count += 1
        self.open = None
        self.last_is_call = self.has_more = False


class Parts:
    """Tells of each delta of a stream which part of the answer it adds to."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}

    def of(self, delta: ResponseDelta) -> Iterator[Piece]:
        """The pieces that *delta* brings, in the order in which the answer takes them."""
        choice = self._choices.get(delta.choice)
        if choice is None:
            choice = self._choices[delta.choice] = _Choice(delta.choice)
        yield from choice.text(SegmentType.REASONING, delta.reasoning_delta)
        yield from choice.text(SegmentType.TEXT, delta.content_delta)
        yield from choice.text(SegmentType.REFUSAL, delta.refusal_delta)
        if delta.tool_call_delta is not None:
            yield choice.call(delta.tool_call_delta)
        if delta.segment is not None:
            yield choice.segment(delta.segment)
