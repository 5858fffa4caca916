"""Content blocks: what they and their pieces stand for, whole and streamed (sections 2 and 3).

A whole block and the pieces of a streamed one go through the same functions. What belongs to reasoning that was already
streamed (a signature) comes in an empty segment of the same type, which the accumulator joins to it; an empty segment
of no metadata ends the text, so that two blocks of the same type stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from crosswalk import (
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    get_array,
    get_object,
    get_string,
    require_object,
)
from crosswalk_bedrock.citations import citation_segment
from crosswalk_bedrock.media import MEDIA, media_segment

__all__ = ["Block", "Blocks", "is_server_tool"]


def is_server_tool(use: Any) -> bool:
    """Whether a ``toolUse`` tells of a tool that ran on a server: it is no call of the client's."""
    kind = use.get("type") if type(use) is dict else None
    return isinstance(kind, str) and kind.endswith("server_tool_use")


class Block:
    """One content block while it comes in.

    Attributes:
        index: its place in the answer.
        use: a server tool's call, which is shown when its input is complete; ``None`` for other blocks.
        pieces: the input of such a call so far.
        result: what a server tool gave, which is shown when it is complete; ``None`` for other blocks.
        given: the pieces of its content so far.
        is_stopped: its end has come.
        media: what the start of a file said; ``None`` for other blocks, and when the file has come.
    """

    __slots__ = ("given", "index", "is_stopped", "media", "pieces", "result", "use")

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_stopped = False
        self.use: dict[str, Any] | None = None
        self.pieces: list[str] = []
        self.result: dict[str, Any] | None = None
        self.given: list[Any] = []
        self.media: tuple[str, dict[str, Any]] | None = None


class Blocks:
    """The content blocks of one message, in order of appearance.

    Attributes:
        known: the blocks by index; the text and reasoning of a stream have no start, a piece opens them.
        last: the block that the last event was about; ``None`` before the first.
        in_order: whether the index of the last event was the one that the order of events says.
    """

    def __init__(self) -> None:
        self.known: dict[int, Block] = {}
        self.last: Block | None = None
        self.in_order = True
        self._run: tuple[SegmentType, Block] | None = None  # the block whose text was said last
        self._waiting: dict[int, Block] = {}  # those of which something is shown when they are complete

    def at(self, index: int | None) -> Block:
        """The block of *index*, a new one where it has not been seen; without an index the last one."""
        if index is None:
            self.in_order = True
            return self.last or self._open(0)
        known = self.known.get(index)
        if known is None:
            has_ended = self.last is None or self.last.is_stopped
            self.in_order = has_ended and index == len(self.known)
            return self._open(index)
        self.in_order = known is self.last
        self.last = known
        return known

    def _open(self, index: int) -> Block:
        block = self.last = self.known[index] = Block(index)
        return block

    def whole(
        self, item: dict[str, Any], number: int, place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """The deltas of a block that came at once."""
        block = self.at(number)
        block.is_stopped = True
        use = get_object(item, "toolUse", place)
        if use is not None:
            yield from self._use(block, use, f"{place}.toolUse", state)
        block.result = get_object(item, "toolResult", place)
        for kind in MEDIA:
            file = get_object(item, kind, place)
            if file is not None:
                yield self._insert(media_segment(kind, file, f"{place}.{kind}"), state)
        reasoning = get_object(item, "reasoningContent", place)
        if reasoning is not None:
            where = f"{place}.reasoningContent"
            said = get_object(reasoning, "reasoningText", where) or {}
            yield from self._reason(block, said, f"{where}.reasoningText", state)
            yield from self._keep(block, get_string(reasoning, "redactedContent", where), "encrypted", state)
        cited = get_object(item, "citationsContent", place)
        if cited is not None:
            yield from self._cited(block, cited, f"{place}.citationsContent", state)
        yield from self._say(SegmentType.TEXT, block, get_string(item, "text", place), state)
        yield from self._complete(block, state)

    def start(
        self, block: Block, start: dict[str, Any], place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """The deltas of a block's start: a tool's, its result's or a file's."""
        use = get_object(start, "toolUse", place)
        if use is not None:
            yield from self._use(block, use, f"{place}.toolUse", state)
        block.result = get_object(start, "toolResult", place)
        image = get_object(start, "image", place)
        block.media = None if image is None else ("image", image)
        self._waiting[block.index] = block

    def delta(
        self, block: Block, delta: dict[str, Any], place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """The deltas of a piece of *block*."""
        if delta.get("citation") is not None:
            yield self._insert(citation_segment(delta["citation"], f"{place}.citation"), state)
        yield from self._say(SegmentType.TEXT, block, get_string(delta, "text", place), state)
        reasoning = get_object(delta, "reasoningContent", place)
        if reasoning is not None:
            where = f"{place}.reasoningContent"
            yield from self._reason(block, reasoning, where, state)
            yield from self._keep(block, get_string(reasoning, "redactedContent", where), "encrypted", state)
        use = get_object(delta, "toolUse", place)
        piece = get_string(use, "input", f"{place}.toolUse") if use else None
        if piece and block.use is not None:
            block.pieces.append(piece)
        elif piece:
            self._run = None
            call = state.tool_call(index=block.index, arguments=piece)
            yield ResponseDelta(state.next_index(), tool_call_delta=call)
        given = get_array(delta, "toolResult", place)
        if given:
            block.given += given
            block.result = block.result or {}
            self._waiting[block.index] = block
        image = get_object(delta, "image", place)
        if image is not None:
            about = block.media[1] if block.media is not None else {}
            block.media = None
            yield self._insert(media_segment("image", {**about, **image}, f"{place}.image"), state)

    def stop(self, index: int | None, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of the end of the block of *index*, without one of the last block."""
        block = self.last if index is None else self.known.get(index)
        self.in_order = block is not None and not block.is_stopped
        if block is None:
            return ()
        block.is_stopped = True
        return self._complete(block, state)

    def flush(self, state: MappingState) -> Iterable[ResponseDelta]:
        """What waits for an end of its block that did not come: the message has ended."""
        return [delta for block in list(self._waiting.values()) for delta in self._complete(block, state)]

    def _complete(self, block: Block, state: MappingState) -> Iterator[ResponseDelta]:
        """What a server's tool was called with and what it gave, and a file of which only the start came."""
        self._waiting.pop(block.index, None)
        use, block.use = block.use, None
        if use is not None:
            given = use.get("input")
            text = "".join(block.pieces) or ("" if given is None else orjson.dumps(given).decode())
            yield self._insert(
                Segment(SegmentType.TOOL_CALL, text, _about(use, ("input",), "server_tool_use")), state
            )
        result, block.result = block.result, None
        if result is not None:
            if block.given:
                said = get_array(result, "content", "toolResult")
                result = {**result, "content": [*said, *block.given]}
                block.given = []
            yield self._insert(Segment(SegmentType.TOOL_CALL, "", _about(result, (), "tool_result")), state)
        media, block.media = block.media, None
        if media is not None:
            yield self._insert(media_segment(*media, f"the {media[0]}"), state)

    def _use(
        self, block: Block, use: dict[str, Any], place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        given = get_object(use, "input", place)
        id, name = get_string(use, "toolUseId", place), get_string(use, "name", place)
        if is_server_tool(use):
            block.use = use
            return
        self._run = None
        arguments = orjson.dumps(given).decode() if given else None
        call = state.tool_call(index=block.index, id=id, name=name, arguments=arguments, whole=True)
        yield ResponseDelta(state.next_index(), tool_call_delta=call)

    def _reason(
        self, block: Block, said: dict[str, Any], place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        yield from self._say(SegmentType.REASONING, block, get_string(said, "text", place), state)
        yield from self._keep(block, get_string(said, "signature", place), "signature", state)

    def _cited(
        self, block: Block, cited: dict[str, Any], place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """A citation comes before the words that rest on it, as in a stream."""
        for number, citation in enumerate(get_array(cited, "citations", place)):
            yield self._insert(citation_segment(citation, f"{place}.citations[{number}]"), state)
        for number, item in enumerate(get_array(cited, "content", place)):
            spot = f"{place}.content[{number}]"
            text = get_string(require_object(item, spot), "text", spot)
            yield from self._say(SegmentType.TEXT, block, text, state)

    def _say(
        self, kind: SegmentType, block: Block, text: str | None, state: MappingState
    ) -> Iterator[ResponseDelta]:
        if text is None or (text == "" and kind is SegmentType.REASONING):
            return
        if text:
            yield from self._divide(kind, block, state)
            self._run = (kind, block)
        if kind is SegmentType.TEXT:
            yield ResponseDelta(state.next_index(), text)
        else:
            yield ResponseDelta(state.next_index(), reasoning_delta=text)

    def _divide(self, kind: SegmentType, block: Block, state: MappingState) -> Iterator[ResponseDelta]:
        """What ends the text of another block, where *block* goes on with the same type."""
        if self._run is not None and self._run[0] is kind and self._run[1] is not block:
            yield self._insert(Segment(kind), state)

    def _keep(
        self, block: Block, value: str | None, name: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """What is to be sent back byte for byte with the reasoning of *block*, or in its place."""
        if value:
            yield from self._divide(SegmentType.REASONING, block, state)
            yield self._insert(Segment(SegmentType.REASONING, "", {name: value}), state)

    def _insert(self, segment: Segment, state: MappingState) -> ResponseDelta:
        self._run = None
        return ResponseDelta(state.next_index(), segment=segment)


def _about(item: dict[str, Any], taken: tuple[str, ...], kind: str) -> dict[str, Any]:
    """What a segment says of a server tool's call or result: *item* less what is *taken*, with its id as ``id``."""
    about = {name: value for name, value in item.items() if name not in taken}
    about.setdefault("type", kind)
    if "toolUseId" in about and "id" not in about:
        about["id"] = about.pop("toolUseId")
    return about
