"""Answers made of content blocks: separating their texts, and finding the block of an event.

An empty segment is joined to the preceding text of its type, as for a signature that follows streamed reasoning. An
empty segment without metadata ends that text, so that two blocks of the same type stay separate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import attrs

from crosswalk.plugin.state import MappingState, take_count, take_object, take_string
from crosswalk.types.delta import ResponseDelta, said
from crosswalk.types.json import dump_json
from crosswalk.types.values import Segment, SegmentType, TokenLogprob


class Texts:
    """Yields the texts of an answer, and separates consecutive texts of the same type if they are of different blocks."""

    def __init__(self) -> None:
        self._said: tuple[SegmentType, object] | None = None  # the last text's type and block

    def say(
        self,
        kind: SegmentType,
        block: object,
        text: str | None,
        logprobs: tuple[TokenLogprob, ...] | None = None,
    ) -> Iterable[ResponseDelta]:
        """Return the deltas of *text*, more of *block*: a text, reasoning or a refusal. An empty text counts too."""
        if not text and not logprobs:
            is_empty = text is not None and kind is SegmentType.TEXT
            return (ResponseDelta(content_delta=text),) if is_empty else ()
        last, self._said = self._said, (kind, block)
        # Most of a stream goes on with the block before.
        apart = () if last is None or last[1] is block else _apart(kind, last[0])
        if kind is SegmentType.TEXT:
            return (*apart, ResponseDelta(content_delta=text, logprobs=logprobs) if logprobs else said(text))
        if kind is SegmentType.REASONING:
            return (*apart, said(None, text))
        return (*apart, ResponseDelta(refusal_delta=text))

    def keep(self, block: object, name: str, value: str | None) -> Iterable[ResponseDelta]:
        """The deltas of what is to be sent back byte for byte with the reasoning of *block*, or in its place."""
        if not value:
            return ()
        last, stored = self._said, Segment(SegmentType.REASONING, "", {name: value})
        apart = () if last is None or last[1] is block else _apart(stored.type, last[0])
        return (*apart, self.insert(stored))

    def insert(self, segment: Segment) -> ResponseDelta:
        """The delta of a whole *segment*, which ends the text before it."""
        self.end()
        return ResponseDelta(segment=segment)

    def end(self) -> None:
        """Say that something else comes, such as a call: the text before it is over."""
        self._said = None


def _apart(kind: SegmentType, last: SegmentType) -> tuple[ResponseDelta, ...]:
    """Return the deltas that end the text of another block, of the kind *last*, before one of *kind*."""
    return (ResponseDelta(segment=Segment(kind)),) if last is kind else ()


@attrs.define(eq=False, repr=False)
class Block:
    """A content block while it arrives.

    Attributes:
        index: its position in the answer.
        kind: the provider's word for its kind, or ``""`` if it sends none.
        is_stopped: whether its end has arrived.
        is_whole: whether it is a call with complete arguments from the start, without pieces.
        held: the metadata of its segment, delivered when it is complete, by the provider's name for it.
        pieces: the pieces of the input of a server tool's call.
    """

    index: int
    kind: str = ""
    is_stopped: bool = False
    is_whole: bool = False
    held: dict[str, dict[str, Any]] = attrs.Factory(dict)
    pieces: list[str] = attrs.Factory(list)


class Blocks(Texts):
    """The content blocks of one message, in order of appearance.

    Attributes:
        index_key: the key of an event's block index.
        known: the blocks by index.
        last: the block of pieces without an index, or ``None`` before the first.
    """

    index_key: ClassVar[str] = "index"

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, Block] = {}
        self.last: Block | None = None
        self._waiting: dict[Block, None] = {}  # those that hold something, in order

    def open(self, index: int, kind: str = "") -> Block:
        """A new block, which is the last one now."""
        block = self.last = self.known[index] = Block(index, kind)
        return block

    def take_index(self, event: dict[str, Any]) -> int | None:
        """Take the index of *event*'s block, or ``None`` for the last one.

        Raises:
            WireTypeError: it is not a count.
        """
        return take_count(event, self.index_key)

    def find(self, index: int | None) -> Block | None:
        """Return the block of that *index*, or ``None`` if it has not begun."""
        return self.last if index is None else self.known.get(index)

    def stop(self, event: dict[str, Any]) -> Iterable[ResponseDelta]:
        """Return the deltas of the end of *event*'s block. An index without an open block stays in the event."""
        index = self.take_index(event)
        block = self.find(index)
        if index is not None and (block is None or block.is_stopped):
            event[self.index_key] = index
        if block is None:
            return ()
        block.is_stopped = True
        return self.complete(block)

    def flush(self) -> Iterable[ResponseDelta]:
        """The deltas of what waits for the end of its block: something else came in its place."""
        return [delta for block in [*self._waiting] for delta in self.complete(block)]

    def hold(self, block: Block, name: str, about: dict[str, Any]) -> None:
        """Keep *about* until *block* is complete."""
        block.held[name] = about
        self._waiting[block] = None

    def complete(self, block: Block) -> Iterable[ResponseDelta]:
        """The deltas of what *block*, which is over, has held."""
        if not block.held:
            return ()
        self._waiting.pop(block, None)
        buffered, block.held = block.held, {}
        return [self.insert(self.held_segment(block, name, about)) for name, about in buffered.items()]

    def held_segment(self, block: Block, name: str, about: dict[str, Any]) -> Segment:
        """The segment of what was held under *name*: a call of a server's tool, with its input, in JSON, as the content."""
        given = about.pop("input", None)
        text = "".join(block.pieces) or ("" if given is None else dump_json(given).decode())
        block.pieces.clear()
        return Segment(SegmentType.TOOL_CALL, text, about)

    def call(
        self, block: Block, wire: dict[str, Any], state: MappingState, *, id: str = "id"
    ) -> ResponseDelta:
        """The delta of a call that *wire* begins, under the key *id* its id: with all of its ``input``, or pieces to come.

        Raises:
            WireTypeError: its id, its name or its input has another type.
        """
        given = take_object(wire, "input")
        wire.pop("input", None)
        block.is_whole = bool(given)
        self.end()
        text = dump_json(given).decode() if given else None
        call = state.take_tool_call(wire, index=block.index, id=id, arguments=text, whole=True)
        return ResponseDelta(tool_call_delta=call)

    def argue(
        self, block: Block, wire: dict[str, Any], key: str, state: MappingState
    ) -> Iterable[ResponseDelta]:
        """Return the delta of the text under *key*, more of a call's input. The input of a server's tool waits for its end.

        Raises:
            WireTypeError: it is not a string.
        """
        piece = take_string(wire, key)
        if not piece:
            return ()
        if block.is_whole:
            wire[key] = piece
            return ()
        if block.held:
            block.pieces.append(piece)
            return ()
        self.end()
        return (said(None, None, state.tool_call(index=block.index, arguments=piece)),)
