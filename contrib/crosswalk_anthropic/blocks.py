"""Content blocks: what they and their deltas stand for, whole and streamed (sections 2.1 and 3).

A whole block is a start and a stop with nothing between, so that both forms take one path. What belongs to text that was
already streamed (a signature) comes in an empty segment of the same type, which the accumulator joins to that text; an
empty segment of no metadata ends the text, so that two blocks of the same type stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from crosswalk import (
    CitationRef,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    UnknownEventError,
    WireTypeError,
    get_array,
    get_object,
    get_string,
    require_object,
)

__all__ = ["Block", "Blocks", "is_server_item"]

_TYPED = ("text", "thinking", "redacted_thinking", "tool_use", "container_upload")
# The kind of block that a delta belongs to: one that was never started is of that kind.
_KIND_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


def is_server_item(kind: str) -> bool:
    """Whether a block of this type tells of a tool that ran on a server: its call or its result."""
    return kind.endswith(("_tool_use", "_tool_result"))


class Block:
    """One content block while it comes in.

    Attributes:
        index: its place in the answer.
        kind: its type.
        header: the block itself, of a server tool's call, which is shown when its input is complete.
        pieces: the input of such a call so far.
        is_whole: a tool call whose arguments came at once: no delta adds to them.
        is_stopped: its end has come.
    """

    __slots__ = ("header", "index", "is_stopped", "is_whole", "kind", "pieces")

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.header: dict[str, Any] | None = None
        self.pieces: list[str] = []
        self.is_whole = False
        self.is_stopped = False

    @property
    def is_opaque(self) -> bool:
        """Whether this type of block means nothing to the typed fields: it is kept as it is, deltas and all."""
        return self.kind not in _TYPED and not is_server_item(self.kind)


class Blocks:
    """The content blocks of one message, in order of appearance.

    Attributes:
        known: the blocks by index.
        last: the block that was started last; ``None`` before the first.
        in_order: whether the index of the last event was the one that the order of events says.
    """

    def __init__(self) -> None:
        self.known: dict[int, Block] = {}
        self.last: Block | None = None
        self.in_order = True
        self._run: tuple[SegmentType, Block] | None = None  # the block whose text was said last

    def whole(
        self, block: dict[str, Any], index: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of a block that came at once."""
        return [*self.start(block, index, place, state), *self.stop(index, state)]

    def start(
        self, block: dict[str, Any], index: int | None, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of a block's start, which for many types is all of it."""
        kind = get_string(block, "type", place)
        if kind is None:
            raise WireTypeError(f"{place}.type", expected="string", got=None)
        number = len(self.known)
        self.in_order = index is None or index == number
        deltas: list[ResponseDelta] = []
        opened = self._open(number if index is None else index, kind)
        match kind:
            case "text":
                for spot, citation in enumerate(get_array(block, "citations", place)):
                    deltas.append(self._cite(citation, f"{place}.citations[{spot}]", state))
                deltas += self._say(SegmentType.TEXT, opened, get_string(block, "text", place), state)
            case "thinking":
                said = get_string(block, "thinking", place)
                deltas += self._say(SegmentType.REASONING, opened, said, state)
                deltas += self._keep(opened, get_string(block, "signature", place), "signature", state)
            case "redacted_thinking":
                deltas += self._keep(opened, get_string(block, "data", place), "encrypted", state)
            case "tool_use":
                deltas.append(self._call(opened, block, place, state))
            case "container_upload":
                deltas.append(self._insert(Segment(SegmentType.MEDIA, "", block), state))
            case _ if kind.endswith("_tool_use"):
                get_object(block, "input", place)
                opened.header = _checked(block, place)
            case _ if kind.endswith("_tool_result"):
                item = _checked(block, place)
                deltas.append(self._insert(Segment(SegmentType.TOOL_CALL, "", item), state))
        return deltas

    def delta(
        self, delta: dict[str, Any], index: int | None, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of a piece of a block."""
        kind = get_string(delta, "type", place) or ""
        block = self.of(index)
        self.in_order = index is None or (block is not None and block is self.last)
        if block is not None and block.is_opaque:
            return []
        if kind not in _KIND_OF_DELTA:
            raise UnknownEventError(f"a piece of a block of an unknown type ({kind[:60] or 'no type'})")
        if block is None:
            block = self._open(len(self.known) if index is None else index, _KIND_OF_DELTA[kind])
        match kind:
            case "text_delta":
                return self._say(SegmentType.TEXT, block, get_string(delta, "text", place), state)
            case "thinking_delta":
                said = get_string(delta, "thinking", place)
                return self._say(SegmentType.REASONING, block, said, state)
            case "signature_delta":
                return self._keep(block, get_string(delta, "signature", place), "signature", state)
            case "citations_delta":
                return [self._cite(delta.get("citation"), f"{place}.citation", state)]
        piece = get_string(delta, "partial_json", place)
        if block.header is not None:
            block.pieces.append(piece or "")
        elif block.kind != "tool_use":
            raise WireTypeError(place, expected=f"a piece of a block of type {block.kind!r}", got=delta)
        elif piece and not block.is_whole:
            self._run = None
            call = state.tool_call(index=block.index, arguments=piece)
            return [ResponseDelta(state.next_index(), tool_call_delta=call)]
        return []

    def stop(self, index: int | None, state: MappingState) -> list[ResponseDelta]:
        """The deltas of a block's end: a server tool's call is complete."""
        block = self.of(index)
        self.in_order = block is not None and not block.is_stopped
        if block is None:
            return []
        block.is_stopped = True
        return list(self._complete(block, state))

    def flush(self, state: MappingState) -> list[ResponseDelta]:
        """The server tools' calls that wait for an end: something else came in its place."""
        return [delta for block in self.known.values() for delta in self._complete(block, state)]

    def of(self, index: int | None) -> Block | None:
        """The block of *index*, the last one where an event has none; ``None`` when it was never started."""
        return self.last if index is None else self.known.get(index)

    def _open(self, index: int, kind: str) -> Block:
        block = self.last = self.known[index] = Block(index, kind)
        return block

    def _complete(self, block: Block, state: MappingState) -> Iterable[ResponseDelta]:
        header, block.header = block.header, None
        if header is not None:
            given = header.get("input")
            text = "".join(block.pieces) or ("" if given is None else orjson.dumps(given).decode())
            said = {name: value for name, value in header.items() if name != "input"}
            yield self._insert(Segment(SegmentType.TOOL_CALL, text, said), state)

    def _say(
        self, kind: SegmentType, block: Block, text: str | None, state: MappingState
    ) -> list[ResponseDelta]:
        if not text:
            return []
        between = self._divide(kind, block, state)
        self._run = (kind, block)
        if kind is SegmentType.TEXT:
            return [*between, ResponseDelta(state.next_index(), text)]
        return [*between, ResponseDelta(state.next_index(), reasoning_delta=text)]

    def _divide(self, kind: SegmentType, block: Block, state: MappingState) -> list[ResponseDelta]:
        """What ends the text of another block, where *block* goes on with the same type."""
        if self._run is None or self._run[0] is not kind or self._run[1] is block:
            return []
        return [self._insert(Segment(kind), state)]

    def _keep(self, block: Block, value: str | None, name: str, state: MappingState) -> list[ResponseDelta]:
        """What is to be sent back byte for byte with the reasoning of *block*, or in its place."""
        if not value:
            return []
        between = self._divide(SegmentType.REASONING, block, state)
        return [*between, self._insert(Segment(SegmentType.REASONING, "", {name: value}), state)]

    def _cite(self, citation: Any, place: str, state: MappingState) -> ResponseDelta:
        citation = require_object(citation, place)
        sources = [
            get_string(citation, name, place)
            for name in ("url", "source", "file_id", "document_title", "title")
        ]
        source = next((source for source in sources if source), None)
        text = get_string(citation, "cited_text", place)
        about = {name: value for name, value in citation.items() if name != "cited_text"}
        cited = Segment(SegmentType.CITATION, text or "", about, (CitationRef(source=source),))
        return self._insert(cited, state)

    def _call(self, block: Block, said: dict[str, Any], place: str, state: MappingState) -> ResponseDelta:
        given = get_object(said, "input", place)
        block.is_whole = bool(given)
        call = state.tool_call(
            index=block.index,
            id=get_string(said, "id", place),
            name=get_string(said, "name", place),
            arguments=orjson.dumps(given).decode() if given else None,
            whole=True,
        )
        self._run = None
        return ResponseDelta(state.next_index(), tool_call_delta=call)

    def _insert(self, segment: Segment, state: MappingState) -> ResponseDelta:
        self._run = None
        return ResponseDelta(state.next_index(), segment=segment)


def _checked(block: dict[str, Any], place: str) -> dict[str, Any]:
    for name in ("id", "name", "tool_use_id"):
        get_string(block, name, place)
    return block
