"""Makes ids and names of tool calls that the next server accepts, whatever their origin.

Servers refuse ids that do not look like their own (:class:`~crosswalk.plugins.CallIds`), and some refuse a conversation in
which two answers use the same one, as the ids that mapping makes up are. The same conversation always gets the same
ids, even when it has grown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count

import attrs

from crosswalk.plugin.call_ids import CallIds
from crosswalk.service.request import Turn
from crosswalk.service.turns import message_of
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import Segment, SegmentType

__all__ = ["with_fitting_ids", "with_fitting_names"]


def with_fitting_ids(turns: Iterable[Turn], rule: CallIds) -> tuple[Turn, ...]:
    """Return *turns* with ids that *rule* allows: the same in a call and its result, different for calls of different turns.

    An id that fits, and that no earlier answer used, stays unchanged.
    """
    spoken = [(turn, _ids_of(turn)) for turn in turns]
    fits = {id: rule.fits(id) for _, ids in spoken for id in ids}
    taken = {id for id in fits if fits[id]}
    used: set[str] = set()  # by an earlier answer
    names: dict[str, str] = {}  # the new id of the last call, or result, by its former id
    found: list[Turn] = []
    for turn, ids in spoken:
        is_result = not isinstance(turn, ChatResponse) and turn.tool_call_id is not None
        fresh = [id for id in dict.fromkeys(ids) if not (is_result and id in names)]
        for id in fresh:
            names[id] = id if fits[id] and id not in used else _fresh(id, rule, taken)
        used.update(fresh)
        found.append(_renamed(turn, {id: names[id] for id in ids if names[id] != id}))
    return tuple(found)


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
    found = next(name for name in made if name not in taken)
    taken.add(found)
    return found


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
    said = segment.metadata
    if segment.type is not SegmentType.TOOL_CALL or "type" in said or said.get(key) not in names:
        return segment  # a segment with a type is a call that the server itself has answered
    return attrs.evolve(segment, metadata={**said, key: names[said[key]]})
