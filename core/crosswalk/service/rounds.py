"""Orders calls and results in a conversation as every server requires: each call answered once, right behind its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from crosswalk.service.errors import UnsupportedRequestError
from crosswalk.service.request import CacheMark, ChatRequest, Turn
from crosswalk.service.turns import content_parts, message_of
from crosswalk.types._value import altered
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.tools import ToolCall

__all__ = ["with_whole_rounds"]

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
    said = [message_of(turn) for turn in request.messages]
    if all(message.role is not Role.TOOL and not message.tool_calls for message in said):
        if any(isinstance(turn, ChatResponse) or content_parts(turn) for turn in request.messages):
            return request
        raise _refused("a conversation that says nothing")
    options: Mapping[str, object] = request.provider_options.get(request.provider or "", {})
    rounds = _rounds(request.messages, said, is_elsewhere=not _ELSEWHERE.isdisjoint(options))
    last = rounds[-1]
    for call in last.calls:
        if call.id not in last.results:
            raise _refused(f"messages[{last.place}] calls {call.name!r:.80}, and has no result of it")
    places: list[int | None] = []
    turns: list[Turn] = []
    for one in rounds:
        places.append(one.place)
        turns.append(one.turn)
        for place, result in one.results.values():
            places.append(place)
            turns.append(result)
        for call in one.calls:
            if call.id not in one.results:
                places.append(None)
                turns.append(_not_run(call))
    if places == list(range(len(said))):
        return request
    marks = [_moved(mark, places, len(said)) for mark in request.cache_marks]
    return altered(request, messages=tuple(turns), cache_marks=tuple(marks))


def _rounds(turns: Sequence[Turn], said: Iterable[ChatMessage], *, is_elsewhere: bool) -> list[_Round]:
    rounds: list[_Round] = []
    for place, (turn, message) in enumerate(zip(turns, said, strict=True)):
        if message.role is not Role.TOOL:
            calls = message.tool_calls or ()
            if len({call.id for call in calls}) < len(calls):
                raise _refused(f"messages[{place}] has two calls of one id")
            rounds.append(_Round(place, turn, calls))
            continue
        id = message.tool_call_id or ""
        asked = next(
            (one for one in reversed(rounds) if any(call.id == id for call in one.calls)),
            None,
        )
        if asked is not None and id not in asked.results:
            asked.results[id] = (place, message)
        elif asked is not None:
            raise _refused(f"messages[{place}] is a second result of call {id!r:.80}")
        elif is_elsewhere:
            rounds.append(_Round(place, turn))
        else:
            raise _refused(
                f"messages[{place}] is the result of call {id!r:.80}, which no answer before it made"
            )
    return rounds


def _not_run(call: ToolCall) -> ChatMessage:
    return ChatMessage.tool_result(call.id, "Error: not run: the conversation went on", name=call.name)


def _moved(mark: CacheMark, places: Sequence[int | None], count: int) -> CacheMark:
    """Move *mark* behind the same message at its new position. *places* are the former positions."""
    if not isinstance(mark.after, int):
        return mark
    return attrs.evolve(mark, after=places.index(mark.after % count))


def _refused(what: str) -> UnsupportedRequestError:
    return UnsupportedRequestError(f"no server takes it: {what}", options=["messages"])
