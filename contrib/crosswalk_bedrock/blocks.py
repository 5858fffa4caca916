"""Reads content blocks and their pieces, whole and streamed (sections 2 and 3).

A whole block and the pieces of a streamed one go through the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.plugins import (
    Block,
    Blocks,
    CitationRef,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    accept_array,
    accept_object,
    accept_objects,
    look_at,
    take_object,
    take_objects,
    take_string,
    take_whole,
)

INDEX = "contentBlockIndex"
_FILES = ("image", "audio", "video", "document")
_KNOWN = {"text", "reasoningContent", "citationsContent", "citation", "toolUse", "toolResult", *_FILES}
"""What a block, or a piece of one, may hold; one that holds nothing of it is new."""
DOCUMENTS = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}


class ContentBlocks(Blocks):
    """The content blocks of one message, in order of appearance. The last one belongs to the latest event."""

    index_key = INDEX

    def at(self, payload: dict[str, Any]) -> Block:
        """Return the block of *payload*, a new one if needed. Without an index it is the last one.

        The index is taken if it follows from the order of events.
        """
        index, last = self.take_index(payload), self.last
        block = self.find(index)
        if block is None:  # text and reasoning of a stream have no start, a piece opens them
            is_next = index == len(self.known) and (last is None or last.is_stopped)
            block = self.open(index or 0)
        else:
            is_next = block is last
        if index is not None and not is_next:
            payload[INDEX] = index
        self.last = block
        return block

    def whole(self, number: int, item: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block that came at once."""
        block = self.open(number)
        _note_unknown(item, state)
        yield from self._speak(block, item)
        if not item:
            return
        cited = take_object(item, "citationsContent")
        if cited is not None:
            # A citation comes before the words that rest on it, as in a stream.
            for citation in accept_objects(cited, "citations"):
                yield self.insert(_citation(citation))
            for part in take_objects(cited, "content"):
                yield from self.say(SegmentType.TEXT, block, take_string(part, "text"))
        yield from self._start(block, item, state)
        yield from self.complete(block)

    def start(self, block: Block, start: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a block's start: a tool's, its result's or a file's."""
        _note_unknown(start, state)
        return self._start(block, start, state)

    def _start(self, block: Block, start: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        use = take_object(start, "toolUse")
        if use is not None:
            kind = take_string(use, "type")  # the owner of the call
            if kind is not None and kind.endswith("server_tool_use"):
                self.hold(block, "toolUse", _about(use, kind))
            else:
                if kind not in (None, "tool_use"):
                    use["type"] = kind
                yield self.call(block, use, state, id="toolUseId")
        result = accept_object(start, "toolResult")
        if result is not None:
            look_at(result, "content", list)
            self.hold(block, "toolResult", _about(result, "tool_result"))
        for name in _FILES:
            file = accept_object(start, name)
            if file is not None:
                self.hold(block, name, _file(file))

    def delta(self, block: Block, delta: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of a piece of *block*."""
        _note_unknown(delta, state)
        yield from self._speak(block, delta)
        if not delta:
            return
        citation = accept_object(delta, "citation")
        if citation is not None:
            yield self.insert(_citation(citation))
        yield from self.argue(block, take_object(delta, "toolUse") or {}, "input", state)
        given = accept_array(delta, "toolResult")
        if given:
            delta.pop("toolResult", None)
            result = block.held.get("toolResult", {"type": "tool_result"})
            result["content"] = result.get("content") or []
            result["content"].extend(given)
            self.hold(block, "toolResult", result)
        image = accept_object(delta, "image")
        if image is not None:
            yield self.insert(_media("image", {**block.held.pop("image", {}), **_file(image)}))

    def held_segment(self, block: Block, name: str, about: dict[str, Any]) -> Segment:
        """Return the segment of a server's tool, of its result, or of a file with only its start."""
        return _media(name, about) if name in _FILES else super().held_segment(block, name, about)

    def _speak(self, block: Block, said: dict[str, Any]) -> Iterator[ResponseDelta]:
        """Text and reasoning of a block, or of a piece of it."""
        if "text" in said:
            yield from self.say(SegmentType.TEXT, block, take_string(said, "text"))
        if "reasoningContent" in said:
            reasoning = take_object(said, "reasoningContent") or {}
            inner = take_object(reasoning, "reasoningText") or reasoning  # a piece has it at once
            yield from self.say(SegmentType.REASONING, block, take_string(inner, "text"))
            yield from self.keep(block, "signature", take_string(inner, "signature"))
            yield from self.keep(block, "encrypted", take_string(reasoning, "redactedContent"))


def _note_unknown(block: dict[str, Any], state: MappingState) -> None:
    if block and block.keys().isdisjoint(_KNOWN):
        state.note_unknown_part()


def _about(item: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the metadata of a server tool's call or result: all of *item*, with its id as ``id``."""
    for name in ("toolUseId", "name", "type", "status"):
        look_at(item, name, str)
    about = take_whole(item)
    about.setdefault("type", kind)
    if "toolUseId" in about and "id" not in about:
        about["id"] = about.pop("toolUseId")
    return about


def _citation(citation: dict[str, Any]) -> Segment:
    """Return the segment of one citation: the cited words as content, all of its fields as metadata."""
    words = [look_at(part, "text", str) or "" for part in accept_objects(citation, "sourceContent")]
    web = look_at(look_at(citation, "location", dict) or {}, "web", dict) or {}
    names = (look_at(web, "url", str), look_at(citation, "source", str), look_at(citation, "title", str))
    source = next((name for name in names if name), None)
    about = take_whole(citation)
    return Segment(SegmentType.CITATION, "".join(words), about, (CitationRef(source=source),))


def _file(item: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of *item*, a file, except those of a wrong type."""
    look_at(item, "format", str)
    source = look_at(item, "source", dict) or {}
    look_at(source, "bytes", str)
    look_at(look_at(source, "s3Location", dict) or {}, "uri", str)
    return take_whole(item)


def _media(kind: str, file: dict[str, Any]) -> Segment:
    """The segment of a *file*: its bytes in base64 or its address as content, the rest as metadata."""
    source = file.get("source") or {}
    stored = source.get("s3Location") or {}
    data = source.pop("bytes", None)
    content = stored.pop("uri", None) if data is None else data
    if not stored:
        source.pop("s3Location", None)
    if not source:
        file.pop("source", None)
    about: dict[str, Any] = {"kind": kind}
    word = file.get("format")
    if word and kind == "document":
        about["media_type"] = DOCUMENTS.get(word, "application/octet-stream")
    elif word:
        about["media_type"] = f"{kind}/{word}"
    if content is not None:
        about["encoding"] = "url" if data is None else "base64"
    if file:
        about[kind] = file
    return Segment(SegmentType.MEDIA, content or "", about)
