"""Chat v2 (``/v2/chat``), whole and streamed (sections 2 and 3), with its log probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import attrs

from crosswalk.plugins import (
    ID,
    REASONING,
    TEXT,
    FieldRow,
    FieldTable,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    Texts,
    TokenLogprob,
    ToolCallDelta,
    UsageInfo,
    accept_object,
    accept_objects,
    is_number,
    leave_mistyped,
    look_at,
    require_object,
    same,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
    unknown_event,
)
from crosswalk_cohere.shared import (
    USAGE,
    FinishWords,
    citation_segment,
    cohere_error,
    end_delta,
    is_error,
    usage_info,
)

PIECES = (
    "message.citations",
    "message.content[].deltas",
    "message.tool_calls[].deltas",
    "logprobs",
)
"""Lists of the extensions that arrive in pieces: equal ones in a row are two."""

_FAMILIES = {"content": "content", "tool-call": "tool_calls", "citation": "citations"}
"""By the beginning of an event's type, the part of the message that it is about."""
_EVENT_TYPES = (
    "message-start",
    "tool-plan-delta",
    "tool-call-delta",
    "content-delta",
    "message-end",
    "debug",
    *(f"{family}-{part}" for family in _FAMILIES for part in ("start", "end")),
)
_TEXT_KINDS = (("text", SegmentType.TEXT), ("thinking", SegmentType.REASONING))
_TEXT_KEYS = [name for name, _ in _TEXT_KINDS]
_EMPTY_DELTAS = {
    SegmentType.TEXT: partial(ResponseDelta, content_delta=""),
    SegmentType.REASONING: partial(ResponseDelta, reasoning_delta=""),
}
_PLAN_BLOCK = object()  # in the place of a block


def stretch_logprobs(event: dict[str, Any], _: str | None = None) -> tuple[TokenLogprob, ...] | None:
    """Take the token of the text in a stream's *event*. Its id stays in a list, as in a body.

    ``None`` if the texts of the tokens are unknown.
    """
    stretch = accept_object(event, "logprobs")
    if stretch is None:
        return ()
    event["logprobs"] = [stretch]
    return _take_logprobs(stretch)


def _take_logprobs(item: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Take the token of *item*, a text with the log probabilities of its tokens. Their ids stay.

    The texts of several tokens are unknown, so such an item stays complete, and the result is ``None``.
    """
    text, values = look_at(item, "text", str), look_at(item, "logprobs", list)
    look_at(item, "token_ids", list)
    if not values:
        return ()
    for value in values:
        if not is_number(value):
            leave_mistyped(item, "logprobs")
            return ()
    if text is None or len(values) > 1:
        return None
    del item["text"], item["logprobs"]
    return (TokenLogprob(text, float(values[0])),)


def _logprobs(event: dict[str, Any], state: MappingState, *, whole: bool) -> tuple[TokenLogprob, ...] | None:
    """Take the tokens of *event*, a *whole* body or one of a stream, and note missing ones. ``None`` without any."""
    stretches = accept_objects(event, "logprobs") if whole else ()
    token_lists = [*map(_take_logprobs, stretches)] if whole else [stretch_logprobs(event)]
    if None in token_lists:
        state.note("logprobs", Provenance.UNMAPPED)
    return tuple(token for tokens in token_lists if tokens for token in tokens) or None


def _weighed(
    deltas: Iterable[ResponseDelta], logprobs: tuple[TokenLogprob, ...] | None
) -> Iterator[ResponseDelta]:
    """Return *deltas* with *logprobs* on the first one with text, or on an additional one."""
    for delta in deltas:
        if logprobs and delta.content_delta is not None:
            delta, logprobs = attrs.evolve(delta, logprobs=logprobs), None
        yield delta
    if logprobs:
        yield ResponseDelta(logprobs=logprobs)


class _Progress(Texts):
    """The progress of a message.

    Attributes:
        kind: the type of the present event, or ``None`` for a body.
        index: the index in that event, or 0 without any.
        has_begun: whether the message's start has arrived.
        error: the provider's error, or ``None`` for an answer that did not fail.
        block: the index of the latest content block, or ``None`` before the first.
        calls: the number of tool calls so far.
        citations: the number of citations so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kind: str | None = None
        self.index = 0
        self.has_begun = False
        self.error: str | None = None
        self.block: int | None = None
        self.calls = 0
        self.citations = 0
        self._block_count = 0
        # The block that was started last, as what tells its texts from those of others.
        self._last: object = None
        self._is_open = False
        self._held_segments: list[Segment] = []
        self._is_planning = False

    def begin(self, event: dict[str, Any], state: MappingState) -> None:
        """A message begins."""
        if self.has_begun:
            raise unknown_event({"type": self.kind}, "a second message in one stream")
        self.has_begun = True
        state.take_identity(event)

    def start_block(self, index: int | None) -> int:
        """Begin the content block *index*."""
        expected_index = self._block_count
        self.block = expected_index if index is None else index
        self._block_count += 1
        self._last = object()
        self._is_open = True
        return expected_index

    def content(
        self, content: dict[str, Any], state: MappingState, *, begins: bool = False
    ) -> Iterator[ResponseDelta]:
        """Return the text or the thinking of the last block, or of a piece of it. Other types have none."""
        if content and content.keys().isdisjoint(_TEXT_KEYS) and content.get("type") not in _TEXT_KEYS:
            state.note_unknown_part()
        for name, kind in _TEXT_KINDS:
            text = take_string(content, name) if name in content else None
            if text is not None:
                take_same(content, "type", name)
                if begins and text:
                    # Blocks of the API begin empty. An event with two deltas is not a repetition of the last one.
                    yield _EMPTY_DELTAS[kind]()
                yield from self.say(kind, self._last, text)

    def plan(self, text: str | None) -> Iterator[ResponseDelta]:
        """A piece of the tool plan, in which the model announces its tool calls."""
        if text:
            self._is_planning = True
            yield from self.say(SegmentType.REASONING, _PLAN_BLOCK, text)

    def finish_plan(self) -> Iterator[ResponseDelta]:
        """The end of a tool plan, marked as such."""
        if self._is_planning:
            self._is_planning = False
            yield self.insert(Segment(SegmentType.REASONING, "", {"kind": "tool_plan"}))

    def call(
        self, call: dict[str, Any], index: int | None, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        """A tool call, or a piece of one."""
        take_same(call, "type", "function")
        function = take_object(call, "function") or {}
        self.end()
        arguments = take_string(function, "arguments")
        fragment = state.take_tool_call(call, function, arguments=arguments, index=index, whole=whole)
        self.calls = max(self.calls, fragment.index + 1)
        return fragment

    def cite(self, citation: dict[str, Any]) -> Iterator[ResponseDelta]:
        """A citation, at the end of its block: inside it would cut the text in two."""
        self.citations += 1
        segment = citation_segment(citation)
        if self._is_open:
            self._held_segments.append(segment)
        else:
            yield self.insert(segment)

    def close(self) -> Iterator[ResponseDelta]:
        """A content block ends: the citations that came inside."""
        self._is_open = False
        citations, self._held_segments = self._held_segments, []
        for citation in citations:
            yield self.insert(citation)

    def finish(self, part: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """Return why the message ended. The first of several ends counts."""
        if self._is_open:
            yield from self.close()
        if 0 in state.ends:
            take_same(part, "finish_reason", state.ends[0].finish_word)
            take_same(part, "error", self.error)
            return
        word, self.error = take_string(part, "finish_reason"), take_string(part, "error")
        if word is not None or self.error:
            yield end_delta(word or "", self.error)


_KIND_ROWS = {SegmentType.TEXT: TEXT, SegmentType.REASONING: REASONING}
_CALL_ROWS = dict.fromkeys(("id", "function.name", "function.arguments"), FieldRow("tool_calls", None))
_MESSAGE_ROWS = {
    "role": same("assistant"),
    "tool_plan": FieldRow("reasoning", None),
    "citations": FieldRow("segments", None),
}
_END_ROW = FieldRow("finish_reason", None)


class ChatDialect(FinishWords):
    """The mapping hooks for chat v2: a body is the message that a stream's events build up.

    The tables and rows state what code reads: a block's text depends on the events before it.

    Attributes:
        rows: what is no text and no count, in a body and in a stream.
        text_paths: see ``ProviderInfo``.
    """

    event_fields = FieldTable({"id": ID})
    content_fields = FieldTable(
        {key: _KIND_ROWS[kind] for key, kind in _TEXT_KINDS},
        at=("message.content[]", "delta.message.content"),
    )
    usage_fields = FieldTable(USAGE, at=("usage", "delta.usage"))
    rows: ClassVar[Mapping[str, Mapping[str, FieldRow]]] = {
        "body": {
            **{f"message.{path}": row for path, row in _MESSAGE_ROWS.items()},
            **{f"message.tool_calls[].{path}": row for path, row in _CALL_ROWS.items()},
            "finish_reason": _END_ROW,
            "logprobs": FieldRow("logprobs", None),
        },
        "stream": {
            **{f"delta.message.{path}": row for path, row in _MESSAGE_ROWS.items()},
            **{f"delta.message.tool_calls.{path}": row for path, row in _CALL_ROWS.items()},
            "delta.finish_reason": _END_ROW,
        },
    }
    text_paths: ClassVar[tuple[str, ...]] = (
        "delta.message.content.text",
        "delta.message.content.thinking",
        "delta.message.tool_plan",
        "delta.message.tool_calls.function.arguments",
    )

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is one of v2, by the names of its events and by what it charges."""
        match event:
            case {"type": "debug"}:
                return Recognition.POSSIBLE
            case {"type": str(kind)} if kind in _EVENT_TYPES:
                return Recognition.CERTAIN
            case {"message": dict(), "usage": {"billed_units": _}}:
                return Recognition.CERTAIN
            case {"message": dict(), "finish_reason": _}:
                return Recognition.POSSIBLE
            case {"message": str()} if is_error(event) and event.keys() <= {"message", "id", "error_type"}:
                return Recognition.POSSIBLE
        return Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of *event*."""
        event = event if type(event) is dict else require_object(event)
        progress = state.own(_Progress)
        kind = progress.kind = take_string(event, "type")
        if kind in (None, "error") and is_error(event):
            yield take_error(event, cohere_error(None, event))
            return
        is_body = kind is None and ("message" in event or "finish_reason" in event)
        if not is_body and kind not in _EVENT_TYPES:
            raise unknown_event({"type": kind, **event})
        if kind == "debug":
            return
        begins = is_body or kind == "message-start"
        ends = is_body or kind == "message-end"
        if begins:
            progress.begin(event, state)
        logprobs = _logprobs(event, state, whole=is_body) if "logprobs" in event else None
        part = event if is_body else take_object(event, "delta") or {}
        message = take_object(part, "message") or {}
        if begins:
            yield from _message(message, progress, state)
        elif kind == "tool-plan-delta":
            yield from progress.plan(take_string(message, "tool_plan"))
        else:
            yield from progress.finish_plan()
            if not ends:
                yield from _weighed(_piece(event, message, progress, state), logprobs)
                logprobs = None
        if logprobs:
            yield ResponseDelta(logprobs=logprobs)
        if ends:
            if not is_body:
                state.take_identity(event)
            yield from progress.finish(part, state)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts of a body or of ``message-end``."""
        kind = state.own(_Progress).kind
        part = event if kind is None else event.get("delta") if kind == "message-end" else None
        usage = accept_object(part, "usage") if part else None
        return usage_info(usage, state) if usage else None

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Return the residue of a stream's events at the paths of a body.

        They are in ``message``, under the index of a content block or a tool call, and at the top. Nothing is replaced.
        """
        remaining: dict[str, Any] = event
        progress = state.own(_Progress)
        if not remaining or progress.kind is None:
            return remaining
        delta = remaining.get("delta", {})
        if type(delta) is dict and delta.keys().isdisjoint({*remaining, "index"}):
            remaining.pop("delta", None)
            remaining.update(delta)
            if "message" in remaining or "index" in remaining:
                _list_in_message(remaining, progress.kind, progress.index)
        return remaining


def _list_in_message(remainder: dict[str, Any], kind: str, index: int) -> None:
    """Put what is left of an event about a part of the message in an array there, as a body has it."""
    family, _, part = kind.rpartition("-")
    name, message = _FAMILIES.get(family), remainder.get("message", {})
    if name is None or type(message) is not dict:
        return
    nested_object, left_index = message.get(name, {}), remainder.get("index")
    if type(nested_object) is not dict or (not nested_object and left_index is None):
        return
    remainder.pop("index", None)
    if family != "citation":
        item = {
            "index": index,
            **({"deltas": [nested_object]} if nested_object and part == "delta" else nested_object),
        }
    else:
        item = nested_object or {"type": kind}
        if left_index is not None:
            item["index"] = left_index
    message[name] = [item]
    remainder["message"] = message


def _message(message: dict[str, Any], progress: _Progress, state: MappingState) -> Iterator[ResponseDelta]:
    """All of a message, which at a stream's start is empty."""
    take_same(message, "role", "assistant")
    if type(message.get("content")) is str:  # as requests have it, and proxies answer
        message["content"] = [{"type": "text", "text": message["content"]}]
    for number, content in enumerate(take_objects(message, "content") if "content" in message else ()):
        progress.start_block(number)
        yield from progress.content(content, state)
    if "tool_plan" in message:
        yield from progress.plan(take_string(message, "tool_plan"))
        yield from progress.finish_plan()
    for number, call in enumerate(take_objects(message, "tool_calls")):
        yield ResponseDelta(tool_call_delta=progress.call(call, number, state, whole=True))
    yield from progress.close()
    for citation in accept_objects(message, "citations") if "citations" in message else ():
        yield from progress.cite(citation)


def _piece(
    event: dict[str, Any], message: dict[str, Any], progress: _Progress, state: MappingState
) -> Iterator[ResponseDelta]:
    """Return an event's content block, tool call or citation. An index stays if it is not the expected one."""
    index = take_count(event, "index")
    progress.index = index or 0
    family, _, step = (progress.kind or "").rpartition("-")
    if family == "content" and step == "end":
        expected_index = progress.block
        yield from progress.close()
    elif family == "content":
        expected_index = progress.start_block(index) if step == "start" else progress.block
        yield from progress.content(take_object(message, "content") or {}, state, begins=step == "start")
    elif family == "tool-call" and step == "end":
        expected_index = index if progress.index < progress.calls else None
    elif family == "tool-call":
        call = take_object(message, "tool_calls") or {}
        fragment = progress.call(call, index, state, whole=step == "start")
        expected_index = fragment.index
        yield ResponseDelta(tool_call_delta=fragment)
    else:
        expected_index = progress.citations - (step == "end")
        citation = accept_object(message, "citations") if step == "start" else None
        if citation is not None:
            yield from progress.cite(citation)
    if index is not None and index != expected_index:
        event["index"] = index
