"""An answer as pieces of its parts: the input of the writers of all forms, for whole answers and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import attrs

from crosswalk.types.answer import Choice
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.message import CallKind, ChatMessage, ToolCall
from crosswalk.types.values import Annotation, Segment, SegmentType


@attrs.frozen
class CallPiece:
    """Marks a piece of a call that the client is to make.

    Attributes:
        index: the call's position among the calls of its choice.
        id: its id, on the piece that brings it.
        name: its name, on the piece that brings it.
        kind: ``custom`` if its arguments are free text.
    """

    index: int
    id: str | None = None
    name: str | None = None
    kind: CallKind | None = None


@attrs.frozen
class Piece:
    """A piece of a part of an answer, or all of it.

    Attributes:
        part: the number of the part in its choice, from 0.
        type: the type of the part.
        text: text to append: for a call its arguments.
        metadata: the known facts about the part, or the new ones.
        annotations: citations and verdicts.
        call: the client's call of the piece, or ``None`` for everything else, including calls of the server's tools.
        choice: the number of the answer, if there are several.
    """

    part: int
    type: SegmentType
    text: str = ""
    metadata: FrozenObject = EMPTY_OBJECT
    annotations: tuple[Annotation, ...] = ()
    call: CallPiece | None = None
    choice: int = 0


def pieces_of(message: ChatMessage, segments: tuple[Segment, ...], *, choice: int = 0) -> Iterator[Piece]:
    """Yield the parts of a whole answer, each in one piece.

    The message determines the client's calls and, if the segments do not show all of it, the text.
    """
    calls = message.tool_calls or ()
    unseen: dict[tuple[str, str], list[int]] = {}
    for index in reversed(range(len(calls))):
        unseen.setdefault((calls[index].id, calls[index].arguments), []).append(index)
    for number, segment in enumerate(segments):
        indices = None
        if segment.type is SegmentType.TOOL_CALL:
            indices = unseen.get((str(segment.metadata.get("id")), segment.content))
        yield _piece(number, segment, _about(calls, indices.pop()) if indices else None, choice)
    number = len(segments)
    if message.text and not any(segment.type is SegmentType.TEXT for segment in segments):
        yield Piece(number, SegmentType.TEXT, message.text, choice=choice)
    for index in sorted(chain.from_iterable(unseen.values())):  # no segment shows it
        number += 1
        about = _about(calls, index)
        yield Piece(number, SegmentType.TOOL_CALL, calls[index].arguments, call=about, choice=choice)


def _about(calls: Sequence[ToolCall], index: int) -> CallPiece:
    return CallPiece(index, calls[index].id, calls[index].name, calls[index].kind)


class Parts:
    """Determines for each delta of a stream the part of the answer that it adds to."""

    def __init__(self) -> None:
        self._choices: dict[int, Choice] = {}
        self._calls: dict[tuple[int, int], int] = {}

    def of(self, delta: ResponseDelta) -> Iterator[Piece]:
        """Return the pieces of *delta*, in the order in which the answer takes them."""
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
            about = CallPiece(call.index, call.id, call.name, call.kind)
            yield Piece(part, SegmentType.TOOL_CALL, call.arguments_delta or "", call=about, choice=number)
        if segment is not None:
            choice.insert(segment)
            yield _piece(len(parts) - 1, segment, None, number)


def _piece(part: int, segment: Segment, call: CallPiece | None, choice: int) -> Piece:
    return Piece(part, segment.type, segment.content, segment.metadata, segment.annotations, call, choice)
