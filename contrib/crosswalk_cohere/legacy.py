"""Chat v1 (``/v1/chat``), whole and streamed (sections 3 and 4).

The last event of a stream repeats all of the answer. What it repeats is compared with what came before and taken where
it is the same; where nothing came before, it is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from crosswalk import (
    TAKEN,
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    UnknownEventError,
    UsageInfo,
    error_delta,
    event_type,
    get_array,
    get_boolean,
    get_object,
    get_string,
    require_object,
    residue,
    taken_if,
)
from crosswalk_cohere.answer import Answer, answer_of
from crosswalk_cohere.citations import citation_segment
from crosswalk_cohere.consumed import USAGE
from crosswalk_cohere.errors import cohere_error, is_error
from crosswalk_cohere.finish import end_deltas, finish_reason
from crosswalk_cohere.usage import get_whole, usage_info

__all__ = ["LegacyChatDialect"]

_EVENTS = (
    "stream-start",
    "search-queries-generation",
    "search-results",
    "text-generation",
    "citation-generation",
    "tool-calls-chunk",
    "tool-calls-generation",
    "stream-end",
    "debug",
)


def _said(name: str) -> Any:
    """Whether the field *name* is in the answer, said now for the first time or before."""
    return taken_if(lambda value, _, state: name in answer_of(state).repeated)


_WORD = taken_if(lambda value, _, state: value is None or value == answer_of(state).finish_word)
_ERROR = taken_if(lambda value, _, state: value is None or value == answer_of(state).error)

BODY: dict[str, Any] = {
    "response_id": taken_if(lambda value, _, state: value is None or value == state.response_id),
    "generation_id": taken_if(lambda value, _, state: value is None or value == state.response_id),
    "text": _said("text"),
    "tool_calls": _said("tool_calls"),
    "citations": _said("citations"),
    "finish_reason": _WORD,
    "error": _ERROR,
    "meta": USAGE,
}
"""A body, and what the last event of a stream repeats of it; documents, searches and the history stay."""

EVENTS: dict[str, dict[str, Any]] = {
    "text-generation": {"text": TAKEN},
    "tool-calls-chunk": {
        "text": TAKEN,
        "tool_call_delta": {
            "name": taken_if(lambda value, _, state: state.carries_name(value)),
            "index": taken_if(lambda value, _, state: value is None or state.carries_index(int(value))),
            "parameters": TAKEN,
            "text": TAKEN,
        },
    },
    "tool-calls-generation": {"text": _said("text"), "tool_calls": _said("tool_calls")},
    "stream-end": {"finish_reason": _WORD, "error": _ERROR, "response": BODY},
}
"""By type; the others are left, which is all of what they say that is not typed."""


class LegacyChatDialect:
    """The mapping hooks for chat v1: a body is the last event of a stream."""

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is one of v1, by the names of its events and of its ids."""
        if not isinstance(event, dict):
            return Recognition.NO
        kind = event.get("event_type")
        if isinstance(kind, str) and kind in _EVENTS:
            return Recognition.CERTAIN
        ids = "response_id" in event or "generation_id" in event
        return Recognition.CERTAIN if ids and isinstance(event.get("text"), str) else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of *event*."""
        event = require_object(event, "the event")
        kind = get_string(event, "event_type")
        get_boolean(event, "is_finished")
        answer = answer_of(state)
        answer.repeated = set()
        match kind:
            case "text-generation":
                return _text(get_string(event, "text"), answer, state)
            case "citation-generation":
                _note_citations(event, "", answer)
                return []
            case "tool-calls-chunk":
                return _chunk(event, answer, state)
            case "tool-calls-generation":
                return [*_whole_text(event, "", answer, state), *_whole_calls(event, "", answer, state)]
            case "stream-end" if not answer.has_begun:
                response = get_object(event, "response") or {}
                return [*_body(response, "response", answer, state), *_end(event, response, answer, state)]
            case "stream-start" | "search-queries-generation" | "search-results" | "debug":
                return []
        if kind is None and is_error(event):
            return [error_delta(cohere_error(None, event), state)]
        if kind is None and "text" in event and not answer.has_begun:
            return [*_body(event, "", answer, state), *_end(event, event, answer, state)]
        word = event_type(event)
        raise UnknownEventError(f"an event of an unknown type ({word or 'no type'})", event_type=word)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """What ``finish_reason`` means."""
        return finish_reason(reason, state)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts in ``meta``; the first version of the API had ``token_count`` beside it."""
        body, place = event, ""
        if event.get("event_type") == "stream-end":
            body, place = event.get("response") or {}, "response."
        meta, counted = get_object(body, "meta", place), get_object(body, "token_count", place)
        usage = {**({"token_count": counted} if counted else {}), **(meta or {})}
        return usage_info(usage, f"{place}meta", state) if usage else None

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """What no typed field takes of *event*, where a body has it; an error's segment keeps its event whole."""
        if is_error(event):
            return {}
        kind = event.get("event_type")
        if kind is None:
            return residue(event, {**BODY, "citations": {}}, state)
        finished = taken_if(lambda value, *_: value in (None, kind == "stream-end"))
        table = {"event_type": TAKEN, "is_finished": finished, **EVENTS.get(kind, {})}
        rest = residue(event, table, state)
        inner = rest.get("response")
        if inner is None or (rest.keys() - {"response"}) & inner.keys():
            return rest
        return {**{name: value for name, value in rest.items() if name != "response"}, **inner}


def _text(text: str | None, answer: Answer, state: MappingState) -> list[ResponseDelta]:
    if text is None:
        return []
    answer.texts.append(text)
    answer.length += len(text)
    return [ResponseDelta(state.next_index(), text)]


def _chunk(event: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    """A piece of what the model says before it calls tools, or of a call."""
    yield from _text(get_string(event, "text"), answer, state)
    place = "tool_call_delta"
    piece = get_object(event, place)
    if piece is None:
        return
    yield from _text(get_string(piece, "text", place), answer, state)
    index, name = get_whole(piece, "index", place), get_string(piece, "name", place)
    parameters = get_string(piece, "parameters", place)
    if name is None and parameters is None:
        return
    fragment = state.tool_call(index=index, name=name, arguments=parameters)
    if fragment.index == len(answer.calls):
        answer.calls.append((fragment.name, []))
    answer.calls[fragment.index][1].append(parameters or "")
    yield ResponseDelta(state.next_index(), tool_call_delta=fragment)


def _body(body: dict[str, Any], place: str, answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    answer.has_begun = True
    for name in ("response_id", "generation_id"):
        state.identify(id=get_string(body, name, place))
    yield from _whole_text(body, place, answer, state)
    yield from _whole_calls(body, place, answer, state)
    given = get_array(body, "citations", place)
    if not answer.citations:
        _note_citations(body, place, answer)
    elif _written(given) == _written(answer.citations):
        answer.repeated.add("citations")
    for citation in answer.held:
        yield ResponseDelta(state.next_index(), segment=citation)
    answer.held = []


def _end(
    event: dict[str, Any], body: dict[str, Any], answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    words = [get_string(part, "finish_reason") for part in (event, body)]
    causes = [get_string(part, "error") for part in (event, body)]
    answer.finish_word = next((word for word in words if word), "")
    answer.error = next((cause for cause in causes if cause), None)
    yield from end_deltas(answer.finish_word, answer.error, state)


def _whole_text(part: dict[str, Any], place: str, answer: Answer, state: MappingState) -> list[ResponseDelta]:
    text = get_string(part, "text", place)
    if not answer.texts:
        answer.repeated.add("text")
        return _text(text, answer, state)
    # The lengths first: a stream may repeat itself more than once, and must not make that costly.
    if text is not None and len(text) == answer.length and text == "".join(answer.texts):
        answer.repeated.add("text")
    return []


def _whole_calls(
    part: dict[str, Any], place: str, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """The calls, whose parameters are objects, unless they have been streamed."""
    given = []
    for number, item in enumerate(get_array(part, "tool_calls", place)):
        spot = f"{place}.tool_calls[{number}]" if place else f"tool_calls[{number}]"
        call = require_object(item, spot)
        parameters = get_object(call, "parameters", spot)
        given.append((get_string(call, "name", spot), parameters, call.keys() <= {"name", "parameters"}))
    if not answer.calls:
        for name, parameters, _ in given:
            arguments = None if parameters is None else orjson.dumps(parameters).decode()
            answer.calls.append((name, [arguments or "{}"]))
            call_delta = state.tool_call(name=name, arguments=arguments, whole=True)
            yield ResponseDelta(state.next_index(), tool_call_delta=call_delta)
    answer.comparisons += 1
    if answer.comparisons > 2:  # once where they are complete, once at the end: more would be costly
        return
    known = [(name, "".join(pieces)) for name, pieces in answer.calls]
    if len(known) == len(given) and all(
        bare and name == known_name and _written(parameters or {}) == _rewritten(text)
        for (name, parameters, bare), (known_name, text) in zip(given, known, strict=True)
    ):
        answer.repeated.add("tool_calls")


def _note_citations(part: dict[str, Any], place: str, answer: Answer) -> None:
    for number, item in enumerate(get_array(part, "citations", place)):
        spot = f"{place}.citations[{number}]" if place else f"citations[{number}]"
        answer.held.append(citation_segment(item, spot))
        answer.citations.append(item)


def _written(value: Any) -> bytes:
    """JSON in one spelling, to compare by: in Python ``true`` equals 1."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _rewritten(text: str) -> bytes | None:
    try:
        return _written(orjson.loads(text or "{}"))
    except orjson.JSONDecodeError:
        return None
