"""An answer as pieces of its parts: what the writers of all forms are fed with, whole answers and streams alike."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from crosswalk.types.answer import Choice
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.message import ChatMessage
from crosswalk.types.segment import Annotation, Segment, SegmentType
from crosswalk.types.tools import ToolCall

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
        yield _piece(number, segment, found, choice)
        number += 1
    if message.text and not any(segment.type is SegmentType.TEXT for segment in segments):
        yield Piece(number, SegmentType.TEXT, message.text, choice=choice)
        number += 1
    for call in calls:
        if id(call) in indices:  # no segment shows it
            piece = CallPiece(indices[id(call)], call.id, call.name)
            yield Piece(number, SegmentType.TOOL_CALL, call.arguments, call=piece, choice=choice)
            number += 1


class Parts:
    """Tells of each delta of a stream which part of the answer it adds to."""

    def __init__(self) -> None:
        self._choices: dict[int, Choice] = {}
        self._calls: dict[tuple[int, int], int] = {}

    def of(self, delta: ResponseDelta) -> Iterator[Piece]:
        """The pieces that *delta* brings, in the order in which the answer takes them."""
        number = delta.choice
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = Choice()
        parts = choice.parts
        for kind, text in (
            (SegmentType.REASONING, delta.reasoning_delta),
            (SegmentType.TEXT, delta.content_delta),
            (SegmentType.REFUSAL, delta.refusal_delta),
        ):
            if text is not None:
                choice.write(kind, text)
                if choice.open is kind:
                    yield Piece(len(parts) - 1, kind, text, choice=number)
        call, segment = delta.tool_call_delta, delta.segment
        if call is not None:
            choice.add_call(call)
            part = self._calls.setdefault((number, call.index), len(parts) - 1)
            about = CallPiece(call.index, call.id, call.name)
            yield Piece(part, SegmentType.TOOL_CALL, call.arguments_delta or "", call=about, choice=number)
        if segment is not None:
            choice.insert(segment)
            yield _piece(len(parts) - 1, segment, None, number)


def _piece(part: int, segment: Segment, call: CallPiece | None, choice: int) -> Piece:
    return Piece(part, segment.type, segment.content, segment.metadata, segment.annotations, call, choice)
