"""The deltas of a whole item: of a body, of ``response.output_item.done``, and of the response that ends a stream.

Of an item that was streamed only what its pieces did not say. Facts: provider document "OpenAI Responses",
section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from crosswalk import (
    MappingState,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    get_array,
    get_string,
    require_object,
    token_logprobs,
)
from crosswalk_openai_responses.answer import PARTS, Answer, Item, Part
from crosswalk_openai_responses.citations import citation

__all__ = [
    "argument_deltas",
    "call_deltas",
    "item_deltas",
    "opening_deltas",
    "part_deltas",
    "text_deltas",
]

_CALLS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "mcp_approval_request": "arguments",
}
"""Calls that the client answers, with the text of what is called; an approval is answered by the item's own id."""

_ACTIONS: Final = {
    "computer_call": ("action", "actions", "pending_safety_checks"),
    "local_shell_call": ("action",),
    "shell_call": ("action", "environment"),
    "apply_patch_call": ("operation",),
    "tool_search_call": ("arguments",),
}
"""Calls of tools that have no name but their type, with the fields that say what to do."""

_SERVER_CALLS: Final = {
    "web_search_call": "action",
    "x_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "mcp_call": "arguments",
    "mcp_list_tools": "",
    "shell_call": "action",
    "tool_search_call": "arguments",
    "program": "code",
    "function_call_output": "",
    "custom_tool_call_output": "",
    "computer_call_output": "",
    "local_shell_call_output": "",
    "shell_call_output": "",
    "apply_patch_call_output": "",
    "tool_search_output": "",
    "program_output": "",
}
"""What the server's own tools were asked, with the field that says it, and what any tool answered."""


def item_deltas(
    wire: dict[str, Any], place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """What *wire*, all of *item*, adds to what was said of it; nothing for a type that is not known.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    kind = item.type = get_string(wire, "type", place) or item.type
    if kind == "message":
        yield from _message(wire, place, item, answer, state)
    elif kind == "reasoning":
        yield from _reasoning(wire, place, item, answer, state)
    elif kind in _CALLS:
        yield from _call(wire, place, item, answer, state)
    elif item.is_whole:
        return
    elif kind in _ACTIONS and not _is_of_the_server(kind, wire):
        yield from _action(wire, place, item, answer, state)
    elif kind in _SERVER_CALLS:
        yield answer.insert(_server_call(wire, kind, place), state)
        item.kept = dict(wire)
    elif kind == "image_generation_call":
        image = _image(wire, place)
        if image is not None:
            yield answer.insert(image, state)
            item.kept = dict(wire)
    item.is_whole = True


# Texts.


def part_deltas(
    wire: dict[str, Any], place: str, part: Part, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """What *wire*, all of *part*, adds to what was said of it."""
    leaf = PARTS[part.type][0]
    yield from text_deltas(
        get_string(wire, leaf, place), get_array(wire, "logprobs", place), place, part, answer, state
    )
    for number, annotation in enumerate(get_array(wire, "annotations", place)):
        if number not in part.citations:
            spot = f"{place}.annotations[{number}]"
            part.citations[number] = require_object(annotation, spot)
            yield answer.insert(citation(annotation, spot), state)


def text_deltas(
    text: str | None, logprobs: list[Any], place: str, part: Part, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """What a whole text with its tokens adds to the pieces of *part*.

    What contradicts the pieces cannot take them back: it stays in the extensions, and the provenance says so.
    """
    tokens = token_logprobs(logprobs, f"{place}.logprobs") or None
    if part.logprobs:
        tokens = None
    else:
        part.logprobs = logprobs
    more = part.unsaid(text or "") if text is not None else ""
    if more is None:
        state.note(_WHERE[part.segment], Provenance.DERIVED)
    if more or tokens:
        yield from answer.say(part, more or "", state, tokens)


_WHERE: Final = {
    SegmentType.TEXT: "message.content",
    SegmentType.REFUSAL: "refusal",
    SegmentType.REASONING: "segments",
}


def _parts(
    wire: dict[str, Any], name: str, place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    for number, entry in enumerate(get_array(wire, name, place)):
        spot = f"{place}.{name}[{number}]"
        kind = get_string(require_object(entry, spot), "type", spot)
        if kind in PARTS:
            yield from part_deltas(entry, spot, item.part(name, number, kind), answer, state)


def _message(
    wire: dict[str, Any], place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    yield from _parts(wire, "content", place, item, answer, state)
    phase = get_string(wire, "phase", place)
    if phase and "phase" not in item.kept:
        item.kept["phase"] = phase
        yield answer.insert(_about(SegmentType.TEXT, wire, place, phase=phase), state)


def _reasoning(
    wire: dict[str, Any], place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """Reasoning may be nothing but a payload to be sent back, or nothing but an id."""
    yield from _parts(wire, "content", place, item, answer, state)
    yield from _parts(wire, "summary", place, item, answer, state)
    payload = get_string(wire, "encrypted_content", place) or item.payload
    if payload and "encrypted_content" not in item.kept:
        item.kept["encrypted_content"] = payload
        yield answer.insert(_about(SegmentType.REASONING, wire, place, encrypted=payload), state)
    elif not item.is_whole and not item.kept and not any(part.pieces for part in item.parts.values()):
        yield answer.insert(_about(SegmentType.REASONING, wire, place), state)


def _about(kind: SegmentType, wire: dict[str, Any], place: str, **said: str) -> Segment:
    """What is known of the text before: the deltas of a text have no room for it."""
    id = get_string(wire, "id", place)
    return Segment(kind, "", {"id": id, **said} if id else said)


# Calls that the client answers.


def call_deltas(
    item: Item,
    answer: Answer,
    state: MappingState,
    *,
    id: str | None = None,
    name: str | None = None,
    arguments: str = "",
) -> Iterator[ResponseDelta]:
    """The delta of a call's first or next fragment, as far as it says anything new."""
    known = item.call
    id = id if known is None or known.id is None else None
    name = name if known is None or known.name is None else None
    if known is not None and not (id or name or arguments):
        return
    fragment = state.tool_call(index=item.number, id=id, name=name, arguments=arguments, whole=known is None)
    item.call = state.tool_calls()[fragment.index]
    item.arguments.append(arguments)
    answer.end_run()
    yield ResponseDelta(state.next_index(), tool_call_delta=fragment)


def argument_deltas(
    text: str | None, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """What *text*, all arguments of a call, adds to their pieces; a contradiction is noted as for a text."""
    said = "".join(item.arguments)
    if text and text.startswith(said):
        yield from call_deltas(item, answer, state, arguments=text[len(said) :])
    elif text is not None and text != said:
        state.note(f"message.tool_calls[{item.call.index}].arguments", Provenance.DERIVED)


def _call(
    wire: dict[str, Any], place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    yield from opening_deltas(wire, place, item, answer, state)
    text = get_string(wire, _CALLS[str(item.type)], place)
    yield from argument_deltas(text, item, answer, state)


def opening_deltas(
    wire: dict[str, Any], place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """The delta of a call's id and name. Its arguments may be there already and come again in pieces: they wait."""
    kind = item.type = get_string(wire, "type", place) or item.type
    if kind not in _CALLS:
        return
    item.leaf = _CALLS[kind]
    id = get_string(wire, "id" if kind == "mcp_approval_request" else "call_id", place)
    name = get_string(wire, "name", place)
    yield from call_deltas(item, answer, state, id=id or None, name=name or None)


def _action(
    wire: dict[str, Any], place: str, item: Item, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """A call of a tool without a name: it is called by its type, and what to do is its arguments."""
    kind = str(item.type)
    said = {name: wire[name] for name in _ACTIONS[kind] if wire.get(name) is not None}
    if kind == "tool_search_call" and type(said.get("arguments")) is dict:
        said = said["arguments"]
        item.kept["arguments"] = wire["arguments"]
    else:
        item.kept.update(said)
    id = get_string(wire, "call_id", place) or None
    yield from call_deltas(item, answer, state, id=id, name=kind, arguments=orjson.dumps(said).decode())
    state.note(f"message.tool_calls[{item.call.index}].name", Provenance.DERIVED)
    item.leaf = ""


# What the server did by itself.


def _is_of_the_server(kind: str, wire: dict[str, Any]) -> bool:
    """Whether the server itself runs the call: a shell in a container of its own, a search of its own."""
    if kind == "shell_call":
        environment = wire.get("environment")
        return type(environment) is dict and environment.get("type") == "container_reference"
    return kind == "tool_search_call" and wire.get("execution") == "server"


def _server_call(wire: dict[str, Any], kind: str, place: str) -> Segment:
    """All of *wire*: what was asked as the content, anything else as metadata."""
    field = _SERVER_CALLS[kind]
    if "arguments" in wire:
        field = "arguments"  # xAI's searches are written like calls of functions
    asked = wire.get(field)
    content = asked if type(asked) is str else "" if asked is None else orjson.dumps(asked).decode()
    said = {name: value for name, value in wire.items() if name != field or asked is None}
    return Segment(SegmentType.TOOL_CALL, content, said)


def _image(wire: dict[str, Any], place: str) -> Segment | None:
    """The image; ``None`` while there is none."""
    image = get_string(wire, "result", place)
    if not image:
        return None
    said: dict[str, Any] = {name: value for name, value in wire.items() if name != "result"}
    said["encoding"] = "base64"
    format = get_string(wire, "output_format", place)
    if format:
        said["media_type"] = f"image/{format}"
    return Segment(SegmentType.MEDIA, image, said)
