"""Prepares earlier turns for the next server: ids and names of tool calls, their order, and texts in place of media."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import attrs

from crosswalk.plugin.hooks import CallIds
from crosswalk.request import CacheMark, ChatRequest, Turn, UnsupportedRequestError, in_words
from crosswalk.service.turns import content_parts, message_of, noun_of
from crosswalk.types.message import ChatMessage, ContentPart, Role, TextPart, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import Segment, SegmentType, altered


def with_fitting_ids(turns: Iterable[Turn], rule: CallIds) -> tuple[Turn, ...]:
    """Return *turns* with ids that *rule* allows: the same in a call and its result, different for calls of different turns.

    An id that fits, and that no earlier answer used, stays unchanged.
    """
    spoken = [(turn, _ids_of(turn)) for turn in turns]
    fits = {id: rule.fits(id) for _, ids in spoken for id in ids}
    taken = {id for id in fits if fits[id]}
    used: set[str] = set()  # by an earlier answer
    names: dict[str, str] = {}  # the new id of the last call, or result, by its former id
    results: list[Turn] = []
    for turn, ids in spoken:
        is_result = not isinstance(turn, ChatResponse) and turn.tool_call_id is not None
        fresh = [id for id in dict.fromkeys(ids) if not (is_result and id in names)]
        for id in fresh:
            names[id] = id if fits[id] and id not in used else _fresh(id, rule, taken)
        used.update(fresh)
        results.append(_renamed(turn, {id: names[id] for id in ids if names[id] != id}))
    return tuple(results)


def with_fitting_names(turns: Iterable[Turn], pattern: str) -> tuple[Turn, ...]:
    """Return *turns* with tool names that match *pattern*. Otherwise characters except letters and digits become ``_``."""
    return tuple(_with_names(turn, pattern) for turn in turns)


def _with_names(turn: Turn, pattern: str) -> Turn:
    message = message_of(turn)
    names = {call.name for call in message.tool_calls or ()}
    if message.role is Role.TOOL and message.name:
        names.add(message.name)
    fitting = {name: made for name in names if (made := _fitting_name(name, pattern)) != name}
    if not fitting:
        return turn
    if message.role is Role.TOOL:
        return attrs.evolve(message, name=fitting[message.name or ""])
    calls = [attrs.evolve(call, name=fitting.get(call.name, call.name)) for call in message.tool_calls or ()]
    message = attrs.evolve(message, tool_calls=calls)
    if not isinstance(turn, ChatResponse):
        return message
    segments = [_changed(segment, "name", fitting) for segment in turn.segments]
    return attrs.evolve(turn, message=message, segments=segments)


def _fitting_name(name: str, pattern: str) -> str:
    if re.fullmatch(pattern, name, re.ASCII):
        return name
    made = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:63]
    return made if re.fullmatch(pattern, made) else f"_{made}"


def _ids_of(turn: Turn) -> list[str]:
    message = message_of(turn)
    ids = [call.id for call in message.tool_calls or ()]
    return ids if message.tool_call_id is None else [message.tool_call_id]


def _fresh(id: str, rule: CallIds, taken: set[str]) -> str:
    made = (rule.make(f"{id} {number}" if number else id) for number in count())
    result = next(name for name in made if name not in taken)
    taken.add(result)
    return result


def _renamed(turn: Turn, names: Mapping[str, str]) -> Turn:
    if not names:
        return turn
    if isinstance(turn, ChatResponse):
        segments = [_changed(segment, "id", names) for segment in turn.segments]
        return attrs.evolve(turn, message=_renamed_message(turn.message, names), segments=segments)
    return _renamed_message(turn, names)


def _renamed_message(message: ChatMessage, names: Mapping[str, str]) -> ChatMessage:
    if message.tool_call_id is not None:
        return attrs.evolve(message, tool_call_id=names[message.tool_call_id])
    calls = [attrs.evolve(call, id=names.get(call.id, call.id)) for call in message.tool_calls or ()]
    return attrs.evolve(message, tool_calls=calls)


def _changed(segment: Segment, key: str, names: Mapping[str, str]) -> Segment:
    raw = segment.metadata
    if segment.type is not SegmentType.TOOL_CALL or "type" in raw or raw.get(key) not in names:
        return segment  # a segment with a type is a call that the server itself has answered
    return attrs.evolve(segment, metadata={**raw, key: names[raw[key]]})


_ELSEWHERE = frozenset({"previous_response_id", "conversation"})
"""Options of an API that stores earlier turns: the call of a result may be stored there."""


@attrs.define
class _Round:
    """A turn, and the results of its calls, by the ids of the calls."""

    place: int
    turn: Turn
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, tuple[int, ChatMessage]] = attrs.field(factory=dict)


def with_whole_rounds(request: ChatRequest) -> ChatRequest:
    """Return *request* with each result behind the answer that called for it.

    A call without a result gets one that declares it not run, if the conversation went on.

    Raises:
        UnsupportedRequestError: the conversation is empty, or it is unclear which call a result answers: a result without
            a call, a second result, two calls of one answer with one id. Or it ends with unanswered calls.
    """
    raw = [message_of(turn) for turn in request.messages]
    if all(message.role is not Role.TOOL and not message.tool_calls for message in raw):
        if any(isinstance(turn, ChatResponse) or content_parts(turn) for turn in request.messages):
            return request
        raise _refused("a conversation that says nothing")
    options: Mapping[str, object] = request.provider_options.get(request.provider or "", {})
    rounds = _rounds(request.messages, raw, is_elsewhere=not _ELSEWHERE.isdisjoint(options))
    last = rounds[-1]
    for call in last.calls:
        if call.id not in last.results:
            raise _refused(f"messages[{last.place}] calls {call.name!r:.80}, and has no result of it")
    places: list[int | None] = []
    turns: list[Turn] = []
    for one in rounds:
        places.append(one.place)
        turns.append(one.turn)
        for location, result in one.results.values():
            places.append(location)
            turns.append(result)
        for call in one.calls:
            if call.id not in one.results:
                places.append(None)
                turns.append(_not_run(call))
    if places == list(range(len(raw))):
        return request
    marks = [_moved(mark, places, len(raw)) for mark in request.cache_marks]
    return altered(request, messages=tuple(turns), cache_marks=tuple(marks))


def _rounds(turns: Sequence[Turn], said: Iterable[ChatMessage], *, is_elsewhere: bool) -> list[_Round]:
    rounds: list[_Round] = []
    for position, (turn, message) in enumerate(zip(turns, said, strict=True)):
        if message.role is not Role.TOOL:
            calls = message.tool_calls or ()
            if len({call.id for call in calls}) < len(calls):
                raise _refused(f"messages[{position}] has two calls of one id")
            rounds.append(_Round(position, turn, calls))
            continue
        id = message.tool_call_id or ""
        requested = next(
            (one for one in reversed(rounds) if any(call.id == id for call in one.calls)),
            None,
        )
        if requested is not None and id not in requested.results:
            requested.results[id] = (position, message)
        elif requested is not None:
            raise _refused(f"messages[{position}] is a second result of call {id!r:.80}")
        elif is_elsewhere:
            rounds.append(_Round(position, turn))
        else:
            raise _refused(
                f"messages[{position}] is the result of call {id!r:.80}, which no answer before it made"
            )
    return rounds


def _not_run(call: ToolCall) -> ChatMessage:
    text = "Error: not run: the conversation went on"
    return ChatMessage.tool_result(call.id, text, name=call.name, is_error=True)


def _moved(mark: CacheMark, places: Sequence[int | None], count: int) -> CacheMark:
    """Move *mark* behind the same message at its new position. *places* are the former positions."""
    if not isinstance(mark.after, int):
        return mark
    return attrs.evolve(mark, after=places.index(mark.after % count))


def _refused(what: str) -> UnsupportedRequestError:
    return UnsupportedRequestError(f"no server takes it: {what}", options=["messages"])


def has_media(message: ChatMessage) -> bool:
    """Whether *message* holds more than text."""
    parts = message.content
    return not isinstance(parts, str | None) and not all(isinstance(part, TextPart) for part in parts)


def with_words(message: ChatMessage) -> str:
    """Return the content of *message*, with texts in place of media."""
    parts = message.content
    assert not isinstance(parts, str | None), "the caller has looked"
    return "\n".join(map(_text_of, parts))


def _text_of(part: ContentPart) -> str:
    if isinstance(part, TextPart):
        return part.text
    name = getattr(part, "name", None)
    return in_words(noun_of(part), name, part.media_type, "you cannot be shown it")
