"""Reads content blocks and their pieces, whole and streamed (sections 2.1 and 3).

A whole block is a start and a stop without pieces, so that both forms take one path. The extra fields of a call
follow it in an empty segment of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crosswalk.plugins import (
    Block,
    Blocks,
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
    look_at,
    messages as wire,
    require_object,
    take_count,
    take_object,
    take_same,
    take_string,
    take_whole,
    wrong_type,
)

_SOURCES = ("url", "source", "file_id", "document_title", "title")


class ContentBlocks(Blocks):
    """The content blocks of one message, in order of appearance."""

    def __init__(self) -> None:
        super().__init__()
        self._current: Block | None = None  # that the last event was about

    def whole(self, block: dict[str, Any], index: int, state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block that came at once."""
        opened = self.open(index, _kind_of(block))
        yield from self._start(opened, block, state)
        yield from self.complete(opened)
        opened.is_stopped = True

    def start(self, event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block's start, which for many types is all of it."""
        block = require_object(event.get("content_block"), "content_block")
        number, index = len(self.known), self.take_index(event)
        if index not in (None, number):
            event["index"] = index  # what the order does not tell
        self._current = self.open(number if index is None else index, _kind_of(block))
        yield from self._start(self._current, block, state)

    def delta(self, event: dict[str, Any], state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of a piece of a block."""
        delta = require_object(event.get("delta"), "delta")
        index = self.take_index(event)
        block = self._current = self.last if index is None else self.known.get(index)
        if index is not None and (block is None or block is not self.last):
            event["index"] = index
        if block is not None and not wire.is_known_block(block.kind):
            return ()
        kind = take_string(delta, "type") or ""
        if kind not in wire.PIECES:
            raise UnknownEventError(f"a piece of a block of an unknown type ({kind[:60] or 'no type'})")
        if block is None:
            number = len(self.known) if index is None else index
            block = self._current = self.open(number, wire.PIECES[kind].block)
        match kind:
            case "text_delta":
                return self.say(SegmentType.TEXT, block, take_string(delta, "text") or None)
            case "thinking_delta":
                return self.say(SegmentType.REASONING, block, take_string(delta, "thinking"))
            case "signature_delta":
                return self.keep(block, "signature", take_string(delta, "signature"))
            case "citations_delta":
                return self._follow(accept_object(delta, "citation"), block)
            case _:  # input_json_delta
                if not block.held and block.kind != "tool_use":
                    raise WireTypeError(
                        "delta", expected=f"a piece of a block of type {block.kind!r}", got=delta
                    )
                return self.argue(block, delta, "partial_json", state)

    def _follow(self, citation: dict[str, Any] | None, block: Block) -> Iterator[ResponseDelta]:
        """The deltas of a *citation* of *block*, which comes after its text."""
        if citation:
            if self._said == (SegmentType.TEXT, block):  # a whole block has them before its text
                yield self.insert(Segment(SegmentType.TEXT, "", {"citations": "follow"}))
            yield self._cite(citation)

    def place(self, event: dict[str, Any], name: str) -> None:
        """Move what *event* has left under *name* to where the message has it: into ``content``, with the block's index."""
        inner, block = event.get(name), self._current
        if not inner or block is None or "content" in event:
            return
        del event[name]
        if (
            name == "delta"
            and not wire.is_known_block(block.kind)
            and inner.get("type") == f"{block.kind}_delta"
        ):
            del inner["type"]  # it replaces a field of its block, as ``compaction_delta`` does
        elif name == "delta":
            inner = {name: inner}
        if "index" in inner:
            inner = {name: inner}
        take_same(event, "index", block.index)
        inner["index"] = block.index  # the very object: what was noted of it is found by it
        event["content"] = [inner]

    def take_index(self, event: dict[str, Any]) -> int | None:
        """Take the index of *event*'s block, or ``None`` for the last one.

        If no other block is open, an index of a wrong type stays and is noted.
        """
        index = accept_count(event, "index")
        if index is None and "index" in event:
            others = (block for block in self.known.values() if block is not self.last)
            if not all(block.is_stopped for block in others):
                take_count(event, "index")
        return index

    def _start(self, opened: Block, block: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        match opened.kind:
            case "text":
                for citation in accept_objects(block, "citations"):
                    yield self._cite(citation)
                yield from self.say(SegmentType.TEXT, opened, take_string(block, "text") or None)
            case "thinking":
                yield from self.say(SegmentType.REASONING, opened, take_string(block, "thinking"))
                yield from self.keep(opened, "signature", take_string(block, "signature"))
            case "redacted_thinking":
                yield from self.keep(opened, "encrypted", take_string(block, "data"))
            case "tool_use":
                yield self.call(opened, block, state)
                # The next request repeats its extra fields. Its id may be that of another call.
                others = {"id": block.pop("id")} if "id" in block else {}
                about = {name: value for name, value in take_whole(block).items() if value is not None}
                block.update(others)
                if about:
                    yield self.insert(Segment(SegmentType.TOOL_CALL, "", about))
            case kind if not wire.is_known_block(kind):
                block["type"] = kind
                if kind not in wire.STATE_BLOCKS:
                    state.note_unknown_part()
            case kind if wire.is_server_call(kind):
                given = take_object(block, "input")
                self.hold(opened, kind, {**_item(kind, block), "input": given})
            case kind:
                known = wire.BLOCKS.get(kind)
                type = SegmentType.TOOL_CALL if known is None else known.segment
                yield self.insert(Segment(type, "", _item(kind, block)))

    def _cite(self, citation: dict[str, Any]) -> ResponseDelta:
        for name in ("cited_text", *_SOURCES):
            look_at(citation, name, str)
        about = take_whole(citation)
        source = next((about[name] for name in _SOURCES if about.get(name)), None)
        text = about.pop("cited_text", None) or ""
        return self.insert(Segment(SegmentType.CITATION, text, about, (CitationRef(source=source),)))


def _kind_of(block: dict[str, Any]) -> str:
    kind = take_string(block, "type")
    if kind is None:
        raise wrong_type(block, "type", expected="string")
    return kind


def _item(kind: str, block: dict[str, Any]) -> dict[str, Any]:
    """Take all of *block*, an item of a server's tool or a file. Its fields about a call are text."""
    about: dict[str, Any] = {"type": kind}
    about |= {name: take_string(block, name) for name in ("id", "name", "tool_use_id") if name in block}
    return about | take_whole(block)
