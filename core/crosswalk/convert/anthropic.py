"""Messages: the body of ``/v1/messages``, and its events (provider document "Anthropic Messages").

One content block is open at a time. A part that comes while the arguments of a call are still coming waits for their end.
Arguments are sent when they are complete and known to be an object: clients parse each piece, and fail on what is none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from crosswalk.convert.arguments import CallIDs, JSONObjectText, as_input
from crosswalk.convert.failure import anthropic_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.convert.source import put_back, without_place
from crosswalk.convert.writer import Heading, Writer, named_frame, url_citation, word_for
from crosswalk.errors import ErrorInfo
from crosswalk.types.finish import FinishReason
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.merge import copy_json
from crosswalk.types.segment import SegmentType
from crosswalk.types.usage import UsageInfo

__all__ = ["MessagesWriter"]

_WORDS: Final = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.CONTENT_FILTER: "refusal",
    FinishReason.CANCELLED: "max_tokens",  # there is no word for it; this one says that the answer is incomplete
    FinishReason.ERROR: "end_turn",  # never shown: the answer becomes an error
}
_OWN: Final = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "pause_turn": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "refusal": FinishReason.CONTENT_FILTER,
}
_SERVER_TOOLS: Final = frozenset(
    {
        "web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution",
        "tool_search_tool_regex", "tool_search_tool_bm25",
    }
)  # fmt: skip
_SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")
_RESULTS: Final = frozenset(
    {
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
        "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
    }
)  # fmt: skip
_OF_THE_END: Final = ("stop_sequence", "stop_details", "container")
"""What the delta of the message says at its end."""
_LATE: Final = ("content", *_OF_THE_END)
"""What the start of the message does not say."""
_CATEGORIES: Final = ("cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms")

# What a citation of each kind must say to be one, beside the text that it cites.
_LOCATIONS: Final[Mapping[str, tuple[tuple[str, type], ...]]] = {
    "char_location": (("document_index", int), ("start_char_index", int), ("end_char_index", int)),
    "page_location": (("document_index", int), ("start_page_number", int), ("end_page_number", int)),
    "content_block_location": (
        ("document_index", int),
        ("start_block_index", int),
        ("end_block_index", int),
    ),
    "web_search_result_location": (("url", str), ("encrypted_index", str)),
    "search_result_location": (
        ("source", str),
        ("search_result_index", int),
        ("start_block_index", int),
        ("end_block_index", int),
    ),
}


class _Block:
    """A content block that is to be written, with what is known of it."""

    def __init__(self, part: int, type: SegmentType) -> None:
        self.part = part
        self.type = type
        self.waiting: list[Piece] = []
        self.index = -1
        self.wire: dict[str, Any] = {}
        self.texts: list[str] = []
        self.has_text = False
        self.is_cited_behind = False
        self.signature: str | None = None
        self.id: str | None = None
        self.name: str | None = None
        self.arguments = JSONObjectText()
        self.is_closed = False

    @property
    def is_ended(self) -> bool:
        """Whether the next block may begin: nothing more of this one is to come."""
        return self.wire.get("type") != "tool_use" or self.arguments.is_complete


class MessagesWriter(Writer[dict[str, Any]]):
    """Writes Anthropic's Messages; of several answers the first."""

    form = WireForm.ANTHROPIC

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._content: list[dict[str, Any]] = []
        self._calls: dict[int, _Block] = {}  # the client's calls by part
        self._ids = CallIDs()
        self._queue: deque[_Block] = deque()  # the open block, then those that wait for its end
        self._text = 0  # how many characters of text have been written
        self._refusal: list[str] = []
        self._details: dict[str, Any] = {"type": "refusal", "category": None}
        self._is_refused = False
        self._stop_reason: str | None = None
        self._has_begun = False
        self._at = 0  # how many of the blocks that are kept have been looked at
        self._begun: dict[str, Any] = {}  # what is kept and has been said with the start

    def piece(self, piece: Piece) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.piece`."""
        if piece.choice:
            return
        if piece.type in (SegmentType.REFUSAL, SegmentType.SAFETY):
            self._refuse(piece)
            return
        yield from self._begin()
        block = self._calls.get(piece.part)
        if block is None:
            block = self._queue[-1] if self._queue and self._belongs(piece, self._queue[-1]) else None
        if block is None:
            if not self._is_sayable(piece):
                return
            block = _Block(piece.part, piece.type)
            self._queue.append(block)
            if piece.call is not None:
                self._calls[piece.part] = block
        if piece.call is not None:
            block.id = block.id or piece.call.id
            block.name = block.name or piece.call.name
        block.has_text = block.has_text or piece.type is SegmentType.TEXT
        block.is_cited_behind = block.is_cited_behind or piece.metadata.get("citations") == "follow"
        block.part = piece.part
        block.waiting.append(piece)
        yield from self._advance()

    def _belongs(self, piece: Piece, block: _Block) -> bool:
        """Whether *piece* goes on with *block*, the newest one."""
        if piece.part == block.part:
            return block.type is piece.type
        if block.type is not SegmentType.TEXT:
            return False
        if piece.type is SegmentType.CITATION:
            # Anthropic's own bodies list the citations of a block before its text; a stream may say that they follow.
            own = piece.metadata.get("type") in _LOCATIONS and not block.is_cited_behind
            return not (self.whole and block.has_text and own)
        return piece.type is SegmentType.TEXT and not block.has_text

    def _is_sayable(self, piece: Piece) -> bool:
        """Whether *piece*, which begins a part, can begin a block."""
        about = piece.metadata
        if piece.call is not None or piece.type is SegmentType.TEXT:
            return piece.call is not None or bool(piece.text)
        if piece.type is SegmentType.REASONING:
            return bool(piece.text or _text(about, "signature") or _text(about, "encrypted"))
        if piece.type is SegmentType.CITATION:
            return self._citation(piece) is not None
        return self._server_block(piece) is not None

    def _advance(self, *, to_the_end: bool = False) -> Iterable[dict[str, Any]]:
        """Write what may be written now; all of it *to_the_end* of the answer."""
        while self._queue:
            block = self._queue[0]
            if block.index < 0:
                started = self._start(block, force=to_the_end or len(self._queue) > 1)
                if started is None:
                    if not to_the_end:
                        return
                    self._queue.popleft()
                    continue
                yield from started
            for piece in block.waiting:
                yield from self._write(piece, block)
            block.waiting = []
            if not (to_the_end or (len(self._queue) > 1 and block.is_ended)):
                return
            yield from self._stop(block)
            self._queue.popleft()

    def _start(self, block: _Block, *, force: bool) -> Iterable[dict[str, Any]] | None:
        """The start of *block*; ``None`` while too little is known of it."""
        first = block.waiting[0]
        match block.type:
            case SegmentType.TEXT | SegmentType.CITATION:
                block.type = SegmentType.TEXT
                wire: dict[str, Any] = {"type": "text", "text": "", "citations": None}
            case SegmentType.REASONING:
                hidden = _text(first.metadata, "encrypted")
                if hidden and not first.text:
                    wire = {"type": "redacted_thinking", "data": hidden}
                else:
                    wire = {"type": "thinking", "thinking": "", "signature": ""}
            case SegmentType.TOOL_CALL if first.call is not None:
                more: dict[str, Any] = {}
                if self.is_own:  # what the call has beside, such as its caller, comes behind it in a stream
                    for piece in block.waiting:
                        more |= piece.metadata.thawed()
                is_alone = self.is_own and not self.whole and len(block.waiting) == 1
                if block.name is None or (not force and (block.id is None or is_alone)):
                    return None
                id = self._ids.take(block.id, first.call.index)
                wire = {**more, "type": "tool_use", "id": id, "name": block.name, "input": {}}
            case _:
                wire = self._server_block(first) or {}
        events = list(self._unsaid())
        block.wire = wire
        block.index = len(self._content)
        self._content.append(wire)
        shown = {**wire, "input": {}} if wire["type"] in _SERVER_CALLS else dict(wire)
        return [*events, _event("content_block_start", index=block.index, content_block=shown)]

    def _write(self, piece: Piece, block: _Block) -> Iterable[dict[str, Any]]:
        """What *piece* adds to *block*, which is open."""
        kind = block.wire["type"]
        if kind == "tool_use":
            block.arguments.add(piece.text)
            block.texts.append(piece.text)
            return []
        if kind in _SERVER_CALLS:
            return [_delta(block, "input_json_delta", partial_json=piece.text)] if piece.text else []
        if piece.type is SegmentType.CITATION:
            return self._cite(piece, block)
        events = []
        if kind in ("text", "thinking") and piece.text:
            block.texts.append(piece.text)
            self._text += len(piece.text) if kind == "text" else 0
            events.append(_delta(block, f"{kind}_delta", **{kind: piece.text}))
        signature = _text(piece.metadata, "signature")
        if kind == "thinking" and signature:
            block.signature = signature
            events.append(_delta(block, "signature_delta", signature=signature))
        return events

    def _cite(self, piece: Piece, block: _Block) -> Iterable[dict[str, Any]]:
        wire = self._citation(piece)
        if wire is None:
            return []
        block.wire["citations"] = block.wire["citations"] or []
        block.wire["citations"].append(wire)
        return [_delta(block, "citations_delta", citation=wire)]

    def _citation(self, piece: Piece) -> dict[str, Any] | None:
        """*piece* as a citation: Anthropic's own as it was, a page as a result of a search."""
        demanded = _LOCATIONS.get(str(piece.metadata.get("type")))
        if demanded is not None:
            if self.is_own or all(type(piece.metadata.get(name)) is kind for name, kind in demanded):
                return {**piece.metadata.thawed(), "cited_text": piece.text}
            return None
        cited = url_citation(piece, self._text)
        if cited is None:
            return None
        return {
            "type": "web_search_result_location",
            "cited_text": "",
            "url": cited.url,
            "title": cited.title,
            "encrypted_index": "",
        }

    def _server_block(self, piece: Piece) -> dict[str, Any] | None:
        """*piece* as the block of a server's tool or file that it was; ``None`` when it was none that clients know.

        What came from this form can go back to it, whatever it is.
        """
        about: dict[str, Any] = piece.metadata.thawed()
        kind = _text(about, "type")
        if kind in _SERVER_CALLS:
            known = kind == "server_tool_use" and about.get("name") in _SERVER_TOOLS and _text(about, "id")
            asked = as_input(piece.text or "{}") if known or self.is_own else None
            return None if asked is None else {**about, "input": asked}
        if kind is None or piece.text:
            return None
        is_result = kind in _RESULTS and _text(about, "tool_use_id") and "content" in about
        is_file = kind == "container_upload" and _text(about, "file_id")
        return about if self.is_own or is_result or is_file else None

    def _stop(self, block: _Block) -> Iterable[dict[str, Any]]:
        wire = block.wire
        text = "".join(block.texts)
        match wire["type"]:
            case "text" | "thinking" as kind:
                wire[kind] = text
                if block.signature is not None:
                    wire["signature"] = block.signature
            case "tool_use":
                asked = as_input(text or "{}")
                wire["input"] = asked or {}
                if text and asked is not None:
                    yield _delta(block, "input_json_delta", partial_json=text)
        yield _event("content_block_stop", index=block.index)

    def _refuse(self, piece: Piece) -> None:
        """Keep why the model declined for the end, where the form says it."""
        if piece.type is SegmentType.SAFETY and piece.metadata.get("type") != "refusal":
            return
        self._is_refused = True
        self._refusal.append(piece.text)
        if self.is_own:
            self._details |= piece.metadata.thawed()
        elif piece.metadata.get("category") in _CATEGORIES:
            self._details["category"] = piece.metadata["category"]

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.tokens`: the form has no probabilities."""
        return ()

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.end`."""
        if not choice:
            self._stop_reason = word_for(reason, raw, _WORDS, _OWN)
        return ()

    def fail(self, info: ErrorInfo) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.fail`."""
        yield from self._begin()
        yield from self._advance(to_the_end=True)
        self.error = info
        yield anthropic_error(info)

    def close(self) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.close`."""
        if self.error is not None:
            return
        yield from self._begin()
        yield from self._advance(to_the_end=True)
        yield from self._unsaid()
        last = _event("message_delta", delta=self._end(), usage=_usage(self.usage))
        if self.is_own:
            for name, value in self.left.items():
                if name == "usage" or name not in ("content", *self._begun):
                    put_back(last["delta"] if name in _OF_THE_END else last, {name: value})
        yield last
        yield _event("message_stop")

    def frame(self, event: dict[str, Any]) -> bytes:
        """See :meth:`Writer.frame`."""
        return named_frame(event)

    def body(self) -> dict[str, Any]:
        """See :meth:`Writer.body`."""
        if self.error is not None:
            return anthropic_error(self.error)
        body = {**self._message(), "content": self._content, **self._end(), "usage": _usage(self.usage)}
        if self.is_own:
            left = self.left
            blocks = left.pop("content", None)
            if isinstance(blocks, list) and len(blocks) == len(self._content):
                left["content"] = blocks  # else nothing tells which block is which
            put_back(body, left)
        return body

    def _unsaid(self) -> Iterator[dict[str, Any]]:
        """The blocks that come next and no piece tells of: what the answer's own form keeps of them is all of them."""
        blocks = self.left.get("content") if self.is_own else None
        while isinstance(blocks, list) and self._at < len(blocks):
            block = blocks[self._at] if isinstance(blocks[self._at], dict) else {}
            index, number = len(self._content), block.get("index", self._at)
            if type(number) is int and number > index:
                return
            self._at += 1
            if number == index and "type" in block:
                wire = copy_json(without_place(block))
                self._content.append(wire)
                yield _event("content_block_start", index=index, content_block=wire)
                yield _event("content_block_stop", index=index)

    def _begin(self) -> Iterator[dict[str, Any]]:
        if not self._has_begun:
            self._has_begun = True
            message = {**self._message(), "usage": _usage(self.usage)}
            if self.is_own and not self.whole:
                self._begun = copy_json(
                    {name: value for name, value in self.left.items() if name not in _LATE}
                )
                put_back(message, self._begun)
            yield _event("message_start", message=message)

    def _message(self) -> dict[str, Any]:
        return {
            "id": self.heading.id,
            "type": "message",
            "role": "assistant",
            "model": self.heading.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _end(self) -> dict[str, Any]:
        end: dict[str, Any] = {"stop_reason": self._stop_reason, "stop_sequence": None}
        sequence = self.heading.extensions.get("stop_sequence")
        if isinstance(sequence, str) and self._stop_reason == "stop_sequence":
            end["stop_sequence"] = sequence
        if self._is_refused:
            said = "".join(self._refusal) or None
            end["stop_details"] = {**self._details, "explanation": said}
        return end


def _event(type: str, **data: Any) -> dict[str, Any]:
    return {"type": type, **data}


def _delta(block: _Block, type: str, **data: Any) -> dict[str, Any]:
    return _event("content_block_delta", index=block.index, delta={"type": type, **data})


def _text(about: Mapping[str, Any], name: str) -> str | None:
    value = about.get(name)
    return value if isinstance(value, str) and value else None


def _usage(usage: UsageInfo | None) -> dict[str, Any]:
    """Counts in Anthropic's parts: the prompt less what the cache had and got."""
    if usage is None:
        return {"input_tokens": 0, "output_tokens": 0}
    cached = {
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
    fresh = usage.prompt_tokens - sum(count or 0 for count in cached.values())
    if fresh < 0:  # some servers count cached tokens otherwise; the sum is what counts
        cached, fresh = {}, usage.prompt_tokens
    said: dict[str, Any] = {"input_tokens": fresh, "output_tokens": usage.completion_tokens}
    said.update({name: count for name, count in cached.items() if count is not None})
    if usage.reasoning_tokens is not None:
        said["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return said
