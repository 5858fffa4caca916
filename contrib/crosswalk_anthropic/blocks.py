"""Content blocks: what they and their pieces stand for, whole and streamed (sections 2.1 and 3).

A whole block is a start and a stop with nothing between, so that both forms take one path. What belongs to text that was
already streamed (a signature) comes in an empty segment of the same type, which is joined to that text, and what a call
has beside its arguments in one of the call's; an empty segment of no metadata ends the text, so that two blocks of the
same type stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from crosswalk.plugins import (
    CitationRef,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    UnknownEventError,
    WireTypeError,
    accept_count,
    accept_object,
    accept_objects,
    leave_mistyped,
    require_object,
    take_count,
    take_object,
    take_same,
    take_string,
    wrong_type,
)

__all__ = ["Blocks", "take_whole"]

_TYPED = ("text", "thinking", "redacted_thinking", "tool_use", "container_upload")
# The kind of block that a delta belongs to: one that was never started is of that kind.
_KIND_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
_SOURCES = ("url", "source", "file_id", "document_title", "title")


def take_whole(item: dict[str, Any], *words: str) -> dict[str, Any]:
    """Take all of *item*, but for those of *words* that are no text: they stay, and are noted."""
    wrong = [word for word in words if not isinstance(item.get(word), str | None)]
    for word in wrong:
        leave_mistyped(item, word)
    return {name: item.pop(name) for name in [*item] if name not in wrong}


class _Block:
    """One content block while it comes in.

    Attributes:
        index: its place in the answer.
        kind: its type.
        is_opaque: whether its type means nothing to the typed fields: it is kept as it is, pieces and all.
        header: the block itself, of a server tool's call, which is shown when its input is complete.
        input: what such a call had for input at its start; ``None`` for none.
        pieces: its input since then.
        is_whole: a tool call whose arguments came at once: no piece adds to them.
        is_stopped: its end has come.
    """

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.is_opaque = kind not in _TYPED and not kind.endswith(("_tool_use", "_tool_result"))
        self.header: dict[str, Any] | None = None
        self.input: dict[str, Any] | None = None
        self.pieces: list[str] = []
        self.is_whole = False
        self.is_stopped = False


class Blocks:
    """The content blocks of one message, in order of appearance."""

    def __init__(self) -> None:
        self._known: dict[int, _Block] = {}
        self._last: _Block | None = None  # that was started last
        self._current: _Block | None = None  # that the last event was about
        self._run: tuple[SegmentType, _Block] | None = None  # the block whose text was said last

    def whole(self, block: dict[str, Any], index: int, state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block that came at once."""
        opened = self._open(index, block)
        yield from self._start(opened, block, state)
        yield from self._complete(opened)
        opened.is_stopped = True

    def start(self, event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block's start, which for many types is all of it."""
        block = require_object(event.get("content_block"), "content_block")
        number, index = len(self._known), self._take_index(event)
        if index not in (None, number):
            event["index"] = index  # what the order does not tell
        yield from self._start(self._open(number if index is None else index, block), block, state)

    def delta(self, event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a piece of a block."""
        delta = require_object(event.get("delta"), "delta")
        index = self._take_index(event)
        block = self._last if index is None else self._known.get(index)
        if index is not None and (block is None or block is not self._last):
            event["index"] = index
        self._current = block
        if block is not None and block.is_opaque:
            return
        kind = take_string(delta, "type") or ""
        if kind not in _KIND_OF_DELTA:
            raise UnknownEventError(f"a piece of a block of an unknown type ({kind[:60] or 'no type'})")
        if block is None:
            block = self._add(len(self._known) if index is None else index, _KIND_OF_DELTA[kind])
        match kind:
            case "text_delta":
                yield from self._say(SegmentType.TEXT, block, take_string(delta, "text"))
            case "thinking_delta":
                yield from self._say(SegmentType.REASONING, block, take_string(delta, "thinking"))
            case "signature_delta":
                yield from self._keep(block, take_string(delta, "signature"), "signature")
            case "citations_delta":
                if citation := accept_object(delta, "citation"):
                    yield self._cite(citation)
            case _:
                yield from self._argue(block, delta, state)

    def stop(self, event: dict[str, Any]) -> Iterator[ResponseDelta]:
        """The deltas of a block's end: a server tool's call is complete."""
        index = self._take_index(event)
        block = self._last if index is None else self._known.get(index)
        if index is not None and (block is None or block.is_stopped):
            event["index"] = index
        if block is not None:
            block.is_stopped = True
            yield from self._complete(block)

    def flush(self) -> Iterator[ResponseDelta]:
        """The server tools' calls that wait for an end: something else came in its place."""
        for block in self._known.values():
            yield from self._complete(block)

    def place(self, event: dict[str, Any], name: str) -> None:
        """Move what *event* has left under *name* to where the message has it: into ``content``, with the block's index."""
        inner, block = event.get(name), self._current
        if not inner or block is None or "content" in event:
            return
        del event[name]
        if name == "delta" and block.is_opaque and inner.get("type") == f"{block.kind}_delta":
            del inner["type"]  # it replaces a field of its block, as ``compaction_delta`` does
        elif name == "delta":
            inner = {name: inner}
        if "index" in inner:
            inner = {name: inner}
        take_same(event, "index", block.index)
        inner["index"] = block.index
        event["content"] = [inner]

    def _take_index(self, event: dict[str, Any]) -> int | None:
        """The index of *event*'s block; ``None`` for the last one.

        Where no other is open that is a mere place: of a wrong type it stays, and is noted.
        """
        index = accept_count(event, "index")
        if index is None and "index" in event:
            others = (block for block in self._known.values() if block is not self._last)
            if not all(block.is_stopped for block in others):
                take_count(event, "index")
        return index

    def _open(self, index: int, block: dict[str, Any]) -> _Block:
        kind = take_string(block, "type")
        if kind is None:
            raise wrong_type(block, "type", expected="string")
        return self._add(index, kind)

    def _add(self, index: int, kind: str) -> _Block:
        block = self._known[index] = self._last = self._current = _Block(index, kind)
        return block

    def _start(self, opened: _Block, block: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        match opened.kind:
            case "text":
                if "citations" in block:
                    for citation in accept_objects(block, "citations"):
                        yield self._cite(citation)
                yield from self._say(SegmentType.TEXT, opened, take_string(block, "text"))
            case "thinking":
                yield from self._say(SegmentType.REASONING, opened, take_string(block, "thinking"))
                yield from self._keep(opened, take_string(block, "signature"), "signature")
            case "redacted_thinking":
                yield from self._keep(opened, take_string(block, "data"), "encrypted")
            case "tool_use":
                yield from self._call(opened, block, state)
            case "container_upload":
                yield self._insert(Segment(SegmentType.MEDIA, "", _item(opened, block)))
            case _ if opened.is_opaque:
                block["type"] = opened.kind
            case _ if opened.kind.endswith("_tool_use"):
                opened.input = take_object(block, "input")
                opened.header = _item(opened, block)
                opened.header.pop("input", None)
            case _:
                yield self._insert(Segment(SegmentType.TOOL_CALL, "", _item(opened, block)))

    def _call(self, opened: _Block, block: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """A call, and what it has beside its arguments, which the next request is to say again."""
        given = take_object(block, "input")
        id, name = take_string(block, "id"), take_string(block, "name")
        opened.is_whole = bool(given)
        arguments = orjson.dumps(block.pop("input")).decode() if given else None
        call = state.tool_call(index=opened.index, id=id, name=name, arguments=arguments, whole=True)
        self._run = None
        yield ResponseDelta(tool_call_delta=call)
        said = take_whole(block)
        if id and call.id is None:
            block["id"] = id  # another call has it
        about = {name: value for name, value in said.items() if value is not None}
        if about:
            yield self._insert(Segment(SegmentType.TOOL_CALL, "", about))

    def _argue(self, block: _Block, delta: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        piece = take_string(delta, "partial_json") or ""
        if block.header is not None:
            block.pieces.append(piece)
        elif block.kind != "tool_use":
            raise WireTypeError("delta", expected=f"a piece of a block of type {block.kind!r}", got=delta)
        elif piece and block.is_whole:
            delta["partial_json"] = piece
        elif piece:
            self._run = None
            yield ResponseDelta(tool_call_delta=state.tool_call(index=block.index, arguments=piece))

    def _complete(self, block: _Block) -> Iterable[ResponseDelta]:
        header, block.header = block.header, None
        if header is None:
            return ()
        text = "".join(block.pieces) or ("" if block.input is None else orjson.dumps(block.input).decode())
        return (self._insert(Segment(SegmentType.TOOL_CALL, text, header)),)

    def _say(self, kind: SegmentType, block: _Block, text: str | None) -> Iterable[ResponseDelta]:
        if not text:
            return ()
        between = self._divide(kind, block)
        self._run = (kind, block)
        if kind is SegmentType.TEXT:
            return (*between, ResponseDelta(content_delta=text))
        return (*between, ResponseDelta(reasoning_delta=text))

    def _divide(self, kind: SegmentType, block: _Block) -> Iterable[ResponseDelta]:
        """What ends the text of another block, where *block* goes on with the same type."""
        if self._run is None or self._run[0] is not kind or self._run[1] is block:
            return ()
        return (self._insert(Segment(kind)),)

    def _keep(self, block: _Block, value: str | None, name: str) -> Iterable[ResponseDelta]:
        """What is to be sent back byte for byte with the reasoning of *block*, or in its place."""
        if not value:
            return ()
        between = self._divide(SegmentType.REASONING, block)
        return (*between, self._insert(Segment(SegmentType.REASONING, "", {name: value})))

    def _cite(self, citation: dict[str, Any]) -> ResponseDelta:
        about = take_whole(citation, "cited_text", *_SOURCES)
        source = next((about[name] for name in _SOURCES if about.get(name)), None)
        text = about.pop("cited_text", None) or ""
        return self._insert(Segment(SegmentType.CITATION, text, about, (CitationRef(source=source),)))

    def _insert(self, segment: Segment) -> ResponseDelta:
        self._run = None
        return ResponseDelta(segment=segment)


def _item(opened: _Block, block: dict[str, Any]) -> dict[str, Any]:
    """Take all of *block*, an item of a server's tool or a file; what it says of a call is text."""
    named: dict[str, Any] = {
        name: take_string(block, name) for name in ("id", "name", "tool_use_id") if name in block
    }
    return {"type": opened.kind, **named, **take_whole(block)}
