"""Chat v2 (``/v2/chat``), whole and streamed (sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crosswalk import (
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    SegmentType,
    UnknownEventError,
    UsageInfo,
    error_delta,
    event_type,
    get_array,
    get_count,
    get_object,
    get_string,
    require_object,
)
from crosswalk_cohere.citations import citation_segment
from crosswalk_cohere.consumed import leftovers
from crosswalk_cohere.errors import cohere_error, is_error
from crosswalk_cohere.finish import end_deltas, finish_reason
from crosswalk_cohere.logprobs import token_logprobs
from crosswalk_cohere.progress import Progress, progress
from crosswalk_cohere.usage import usage_info

__all__ = ["ChatDialect"]

_FAMILIES = ("content", "tool-call", "citation")
_EVENTS = (
    "message-start",
    "tool-plan-delta",
    "tool-call-delta",
    "content-delta",
    "message-end",
    "debug",
    *(f"{family}-{part}" for family in _FAMILIES for part in ("start", "end")),
)
_KINDS = (("text", SegmentType.TEXT), ("thinking", SegmentType.REASONING))


class ChatDialect:
    """The mapping hooks for chat v2: a body is the message that a stream's events build up."""

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is one of v2, by the names of its events and by what it charges."""
        if not isinstance(event, dict):
            return Recognition.NO
        kind = event.get("type")
        if isinstance(kind, str) and kind in _EVENTS:
            return Recognition.POSSIBLE if kind == "debug" else Recognition.CERTAIN
        usage = event.get("usage")
        if isinstance(event.get("message"), dict):
            if isinstance(usage, dict) and "billed_units" in usage:
                return Recognition.CERTAIN
            return Recognition.POSSIBLE if "finish_reason" in event else Recognition.NO
        alone = {"message", "id", "error_type"}
        return Recognition.POSSIBLE if is_error(event) and event.keys() <= alone else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of *event*."""
        event = require_object(event, "the event")
        kind = get_string(event, "type")
        seen = progress(state)
        if kind is None and is_error(event):
            return [error_delta(cohere_error(None, event), state)]
        if kind is None and ("message" in event or "finish_reason" in event):
            return self._body(event, seen, state)
        if kind == "debug":
            return []
        if kind not in _EVENTS:
            word = event_type(event)
            raise UnknownEventError(f"an event of an unknown type ({word or 'no type'})", event_type=word)
        place = "delta"
        delta = get_object(event, "delta") or {}
        if kind == "message-start":
            return self._start(event, delta, seen, state)
        if kind == "message-end":
            return [*seen.finish_plan(state), *self._end(delta, place, seen, state)]
        return self._piece(kind, event, get_object(delta, "message", place) or {}, seen, state)

    def _body(self, body: dict[str, Any], seen: Progress, state: MappingState) -> Iterator[ResponseDelta]:
        self._begin(body, seen, state)
        yield from _message(get_object(body, "message") or {}, "message", seen, state)
        found = token_logprobs(get_array(body, "logprobs"), "logprobs", state)
        if found:
            yield ResponseDelta(state.next_index(), logprobs=found)
        yield from self._end(body, "", seen, state)

    def _start(
        self, event: dict[str, Any], delta: dict[str, Any], seen: Progress, state: MappingState
    ) -> Iterator[ResponseDelta]:
        self._begin(event, seen, state)
        yield from _message(get_object(delta, "message", "delta") or {}, "delta.message", seen, state)

    def _begin(self, event: dict[str, Any], seen: Progress, state: MappingState) -> None:
        if seen.has_begun:
            raise UnknownEventError("a second message in one stream", event_type=event_type(event))
        seen.has_begun = True
        state.identify(id=get_string(event, "id"))

    def _end(
        self, part: dict[str, Any], place: str, seen: Progress, state: MappingState
    ) -> Iterator[ResponseDelta]:
        """Why it ended; of several ends the first. The id may come as late as this."""
        word, message = get_string(part, "finish_reason", place), get_string(part, "error", place)
        yield from seen.close(state)
        if (word is not None or message) and seen.finish_word is None:
            seen.finish_word, seen.error = word or "", message
            yield from end_deltas(seen.finish_word, message, state)

    def _piece(
        self, kind: str, event: dict[str, Any], message: dict[str, Any], seen: Progress, state: MappingState
    ) -> Iterator[ResponseDelta]:
        index = get_count(event, "index")
        place = "delta.message"
        if kind == "tool-plan-delta":
            yield from seen.plan(get_string(message, "tool_plan", place), state)
            return
        yield from seen.finish_plan(state)
        match kind:
            case "content-delta" | "content-start":
                content = get_object(message, "content", place) or {}
                if kind == "content-start":
                    seen.start_block(index)
                else:
                    seen.in_order = index is None or index == seen.block
                found = _logprobs(event, state)
                yield from _content(content, f"{place}.content", seen, state)
                if found:
                    yield ResponseDelta(state.next_index(), logprobs=found)
            case "content-end":
                seen.in_order = index is None or index == seen.block
                yield from seen.close(state)
            case "tool-call-start" | "tool-call-delta":
                call = get_object(message, "tool_calls", place) or {}
                whole = kind == "tool-call-start"
                yield _tool_call(call, index, f"{place}.tool_calls", seen, state, whole=whole)
            case "citation-start":
                citation = message.get("citations")
                if citation is not None:
                    seen.in_order = index is None or index == seen.citations
                    yield from seen.cite(citation_segment(citation, f"{place}.citations"), state)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """What ``finish_reason`` means."""
        return finish_reason(reason, state)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts of a body or of ``message-end``."""
        is_end = event.get("type") == "message-end"
        part, place = (event.get("delta") or {}, "delta") if is_end else (event, "")
        usage = get_object(part, "usage", place)
        return usage_info(usage, f"{place}.usage" if place else "usage", state) if usage else None

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What no typed field takes of *event*; an error's segment keeps its event whole."""
        return {} if is_error(event) else leftovers(event, state)


def _message(
    message: dict[str, Any], place: str, seen: Progress, state: MappingState
) -> Iterator[ResponseDelta]:
    """All of a message, which at a stream's start is empty."""
    get_string(message, "role", place)
    for number, item in enumerate(get_array(message, "content", place)):
        spot = f"{place}.content[{number}]"
        seen.start_block(number)
        yield from _content(require_object(item, spot), spot, seen, state)
    yield from seen.plan(get_string(message, "tool_plan", place), state)
    yield from seen.finish_plan(state)
    for number, item in enumerate(get_array(message, "tool_calls", place)):
        spot = f"{place}.tool_calls[{number}]"
        yield _tool_call(require_object(item, spot), number, spot, seen, state, whole=True)
    yield from seen.close(state)
    for number, item in enumerate(get_array(message, "citations", place)):
        yield from seen.cite(citation_segment(item, f"{place}.citations[{number}]"), state)


def _content(
    content: dict[str, Any], place: str, seen: Progress, state: MappingState
) -> Iterator[ResponseDelta]:
    """The text or the thinking of a block, or of a piece of it; blocks of other types say nothing here."""
    get_string(content, "type", place)
    for name, kind in _KINDS:
        text = get_string(content, name, place)
        if text is not None:
            yield from seen.say(kind, text, state)


def _tool_call(
    call: dict[str, Any],
    index: int | None,
    place: str,
    seen: Progress,
    state: MappingState,
    *,
    whole: bool,
) -> ResponseDelta:
    get_string(call, "type", place)
    function, where = get_object(call, "function", place) or {}, f"{place}.function"
    seen.run = None
    fragment = state.tool_call(
        index=index,
        id=get_string(call, "id", place),
        name=get_string(function, "name", where),
        arguments=get_string(function, "arguments", where),
        whole=whole,
    )
    return ResponseDelta(state.next_index(), tool_call_delta=fragment)


def _logprobs(event: dict[str, Any], state: MappingState) -> Any:
    item = get_object(event, "logprobs")
    return token_logprobs([item], "logprobs", state) if item else ()
