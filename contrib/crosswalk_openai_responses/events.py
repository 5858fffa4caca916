"""The deltas of each type of stream event (provider document "OpenAI Responses", section 3).

Each handler says which keys of its event it understood (``answer.used``) and what it left of the item that the
event tells of (``answer.left``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from crosswalk import (
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    WireTypeError,
    get_array,
    get_count,
    get_string,
    require_object,
    token_logprobs,
)
from crosswalk_openai_responses.answer import PARTS, Answer, Item, Part
from crosswalk_openai_responses.citations import citation
from crosswalk_openai_responses.consumed import left_of, left_of_item, numbered
from crosswalk_openai_responses.items import (
    argument_deltas,
    call_deltas,
    item_deltas,
    opening_deltas,
    part_deltas,
    text_deltas,
)

__all__ = ["ENDS", "HANDLERS", "PIECES", "STARTS"]

Handler: TypeAlias = Callable[[dict[str, Any], Answer, MappingState], Iterable[ResponseDelta]]

STARTS: Final = {
    "response.created": "in_progress",
    "response.queued": "queued",
    "response.in_progress": "in_progress",
}
"""Events that tell of a response in the making, with the status that says no more than their name."""

ENDS: Final = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""Events that end a stream, with the status that goes without saying."""

_OF_AN_ITEM: Final = frozenset({"type", "item_id", "output_index"})


_TO_COME: Final = frozenset(
    {"arguments", "code", "error", "input", "output", "outputs", "queries", "result", "results", "tools"}
)
"""What an item has nothing of when it begins; left in the extensions, the nothing would outlive what comes."""


class _Where(NamedTuple):
    """Which part of an item an event tells of.

    Attributes:
        place: the list that it is in.
        number: the key under which the event says its place in that list.
        type: the type of the part; ``""`` where the event brings it.
        used: the keys of the event that are understood.
    """

    place: str
    number: str
    type: str = ""
    used: frozenset[str] = frozenset()


# Texts and their parts.


def _text_delta(
    event: dict[str, Any], answer: Answer, state: MappingState, *, where: _Where
) -> Iterable[ResponseDelta]:
    # Most of a stream is this: no generator, and no tokens where there are none.
    answer.used = where.used
    part = _part(event, answer, answer.item(event), where, where.type)
    text = get_string(event, "delta")
    logprobs = get_array(event, "logprobs")
    tokens = None
    if logprobs:
        tokens = token_logprobs(logprobs, "logprobs")
        part.logprobs += logprobs
    return answer.say(part, text or "", state, tokens) if text or tokens else ()


def _text_done(
    event: dict[str, Any], answer: Answer, state: MappingState, *, where: _Where
) -> Iterator[ResponseDelta]:
    leaf = PARTS[where.type][0]
    answer.used = where.used
    item = answer.item(event)
    part = _part(event, answer, item, where, where.type)
    text, logprobs = get_string(event, leaf), get_array(event, "logprobs")
    yield from text_deltas(text, logprobs, "", part, answer, state)
    said = {name: event[name] for name in (leaf, "logprobs") if name in event}
    _leave_of_part(answer, item, part, left_of(said, part.carried()))


def _part_event(
    event: dict[str, Any], answer: Answer, state: MappingState, *, where: _Where, done: bool
) -> Iterator[ResponseDelta]:
    answer.used = where.used
    item = answer.item(event)
    wire = require_object(event.get("part"), "part")
    type = get_string(wire, "type", "part")
    if type not in PARTS:
        index = get_count(event, where.number) or 0
        answer.rest_of(item)[where.place] = [numbered(index, wire)]
        return
    part = _part(event, answer, item, where, type, opens=not done)
    if done:
        yield from part_deltas(wire, "part", part, answer, state)
    _leave_of_part(answer, item, part, left_of(wire, part.carried()))


def _part(
    event: dict[str, Any], answer: Answer, item: Item, where: _Where, type: str, *, opens: bool = False
) -> Part:
    """The part that *event* tells of; one that nobody has announced, out of turn, is news."""
    index = get_count(event, where.number)
    if index is not None:
        known = item.parts.get((where.place, index, type))
        if known is not None:
            return known
        if not item.expects(where.place, index, opens=opens):
            answer.rest_of(item)[where.place] = [{"index": index}]
    return item.part(where.place, index, type, opens=opens)


def _leave_of_part(answer: Answer, item: Item, part: Part, left: dict[str, Any]) -> None:
    if left:
        answer.rest_of(item)[part.place] = [numbered(part.number, left)]


def _annotation(event: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    answer.used = _OF_AN_ITEM | {"content_index", "annotation_index", "annotation"}
    item = answer.item(event)
    part = _part(event, answer, item, _Where("content", "content_index"), "output_text")
    number = get_count(event, "annotation_index")
    said = event.get("annotation")
    if said is None:
        return
    wire = require_object(said, "annotation")
    if number is None:
        number = len(part.citations)
    if number != len(part.citations):
        _leave_of_part(answer, item, part, {"annotation_index": number, "annotation": wire})
    if number not in part.citations:
        part.citations[number] = wire
        yield answer.insert(citation(wire, "annotation"), state)


# Items.


def _item_added(event: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    answer.used = _OF_AN_ITEM | {"item"}
    wire = require_object(event.get("item"), "item")
    item = answer.open_item(event, wire)
    item.type = get_string(wire, "type", "item") or item.type
    yield from opening_deltas(wire, "item", item, answer, state)
    left = left_of_item(wire, item)
    if item.type == "reasoning":
        # Each event has another payload: that of the beginning, under its own name, would be taken for the last one.
        item.payload = get_string(wire, "encrypted_content", "item")
        if left.pop("encrypted_content", None):
            left["added"] = {"encrypted_content": item.payload}
    answer.rest_of(item).update(
        {name: value for name, value in left.items() if name not in _TO_COME or value not in (None, "", [])}
    )


def _item_done(event: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    answer.used = _OF_AN_ITEM | {"item"}
    wire = require_object(event.get("item"), "item")
    item = answer.close_item(event, wire)
    yield from item_deltas(wire, "item", item, answer, state)
    answer.rest_of(item).update(left_of_item(wire, item))


def _arguments_delta(
    event: dict[str, Any], answer: Answer, state: MappingState, *, type: str, leaf: str
) -> Iterator[ResponseDelta]:
    answer.used = _OF_AN_ITEM | {"delta"}
    item = answer.item(event)
    item.begin_call(type, leaf)
    yield from call_deltas(item, answer, state, arguments=get_string(event, "delta") or "")


def _arguments_done(
    event: dict[str, Any], answer: Answer, state: MappingState, *, type: str, leaf: str
) -> Iterator[ResponseDelta]:
    answer.used = _OF_AN_ITEM | {leaf, "name"}
    item = answer.item(event)
    item.begin_call(type, leaf)
    name = get_string(event, "name") or None
    yield from call_deltas(item, answer, state, name=name)
    yield from argument_deltas(get_string(event, leaf), item, answer, state)
    said = {key: event[key] for key in (leaf, "name") if key in event}
    answer.rest_of(item).update(left_of(said, item.carried()))


# What no typed field takes in pieces: it stays with its item.


def _progress(event: dict[str, Any], answer: Answer, _: MappingState) -> Iterator[ResponseDelta]:
    """A server's tool gets on: the last word of the event's type is the status of the item."""
    answer.used = _OF_AN_ITEM
    item = answer.item(event)
    answer.rest_of(item)["status"] = str(event["type"]).rpartition(".")[2]
    yield from ()


def _preview(event: dict[str, Any], answer: Answer, _: MappingState) -> Iterator[ResponseDelta]:
    """A preview of an image: a picture of its own, replaced by the next."""
    answer.used = frozenset(event) - {"sequence_number", "obfuscation"}
    item = answer.item(event)
    shown = {name: value for name, value in event.items() if name in answer.used - _OF_AN_ITEM}
    answer.rest_of(item).update(shown)
    yield from ()


def _piece(
    event: dict[str, Any], answer: Answer, _: MappingState, *, family: str, leaf: str
) -> Iterator[ResponseDelta]:
    """A piece, or all, of what a server's tool does: a list of pieces, and only what they did not say of the whole."""
    answer.used = _OF_AN_ITEM | {"command_index", leaf}
    item = answer.item(event)
    number = get_count(event, "command_index")
    pieces = item.pieces.setdefault((family, number), [])
    said = event.get(leaf)
    if leaf == "delta":
        if type(said) is not str and type(said) is not dict:
            raise WireTypeError("delta", expected="string", got=said)
        pieces.append(said)
        left: dict[str, Any] = {"delta": [said]}
    else:
        is_said = (
            type(said) is str and all(type(piece) is str for piece in pieces) and said == "".join(pieces)
        )
        left = {} if is_said else {leaf: said}
    if left or number is not None:
        about = [numbered(number, left)] if number is not None else left
        answer.rest_of(item)[family] = about
    yield from ()


def _audio(event: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    """Audio is of the response, not of an item; each piece is base64 of its own."""
    answer.used = frozenset({"type", "delta"})
    data = get_string(event, "delta")
    if data:
        about = {"type": "audio", "encoding": "base64"}
        yield answer.insert(Segment(SegmentType.MEDIA, data, about), state)


def _transcript(event: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    answer.used = frozenset({"type", "delta"})
    words = get_string(event, "delta")
    if words:
        about = {"type": "audio", "transcript": words}
        yield answer.insert(Segment(SegmentType.MEDIA, "", about), state)


def _nothing(_: dict[str, Any], answer: Answer, __: MappingState) -> Iterator[ResponseDelta]:
    answer.used = frozenset({"type"})
    yield from ()


_TEXTS: Final = {
    "output_text": ("content", "content_index", "output_text"),
    "refusal": ("content", "content_index", "refusal"),
    "reasoning_text": ("content", "content_index", "reasoning_text"),
    "reasoning_summary_text": ("summary", "summary_index", "summary_text"),
}
_LISTS: Final = {
    "content_part": ("content", "content_index"),
    "reasoning_summary_part": ("summary", "summary_index"),
}
_ARGUMENTS: Final = {
    "function_call_arguments": ("function_call", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "input"),
}
_FAMILIES: Final = {
    "mcp_call_arguments": "arguments",
    "code_interpreter_call_code": "code",
    "shell_call_command": "command",
    "shell_call_output_content": "output",
}
"""What the tools of a server stream, with the key under which the whole of it comes in the end."""

_PROGRESS: Final = {
    "web_search_call": ("in_progress", "searching", "completed", "failed"),
    "x_search_call": ("in_progress", "searching", "completed", "failed"),
    "file_search_call": ("in_progress", "searching", "completed", "failed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed", "failed"),
    "image_generation_call": ("in_progress", "generating", "completed", "failed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "compaction": ("compacting",),
}

PIECES: Final = tuple(
    f"output[].{family}{'[]' if family.startswith('shell') else ''}.delta" for family in _FAMILIES
)
"""Where the extensions hold lists that come in pieces."""


def _handlers() -> Iterator[tuple[str, Handler]]:
    for name, (place, number, type) in _TEXTS.items():
        for last, leaf in (("delta", "delta"), ("done", PARTS[type][0])):
            where = _Where(place, number, type, _OF_AN_ITEM | {number, leaf, "logprobs"})
            handler = _text_delta if last == "delta" else _text_done
            yield f"{name}.{last}", partial(handler, where=where)
    for name, (place, number) in _LISTS.items():
        for last in ("added", "done"):
            where = _Where(place, number, "", _OF_AN_ITEM | {number, "part"})
            yield f"{name}.{last}", partial(_part_event, where=where, done=last == "done")
    for name, (type, leaf) in _ARGUMENTS.items():
        yield f"{name}.delta", partial(_arguments_delta, type=type, leaf=leaf)
        yield f"{name}.done", partial(_arguments_done, type=type, leaf=leaf)
    for name, leaf in _FAMILIES.items():
        yield f"{name}.delta", partial(_piece, family=name, leaf="delta")
        yield f"{name}.done", partial(_piece, family=name, leaf=leaf)
    yield "shell_call_command.added", partial(_piece, family="shell_call_command", leaf="command")
    for name, words in _PROGRESS.items():
        for word in words:
            yield f"{name}.{word}", _progress
    yield "image_generation_call.partial_image", _preview
    yield "output_item.added", _item_added
    yield "output_item.done", _item_done
    yield "output_text.annotation.added", _annotation
    yield "audio.delta", _audio
    yield "audio.done", _nothing
    yield "audio.transcript.delta", _transcript
    yield "audio.transcript.done", _nothing


HANDLERS: Final = {f"response.{name}": handler for name, handler in _handlers()}
"""What each type of event makes; those that carry the response itself apart (:data:`STARTS`, :data:`ENDS`)."""
