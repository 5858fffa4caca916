"""The deltas of a whole item: of a body, of ``response.output_item.done``, and of the response that ends a stream.

A streamed item adds only the data that its pieces did not carry (section 2.1).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from crosswalk.plugins import (
    CallKind,
    CitationRef,
    Correction,
    MappingState,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    accept_logprobs,
    accept_objects,
    dump_json,
    look_at,
    look_at_count,
    responses as wire,
    take_objects,
    take_same,
    take_string,
    take_whole,
)
from crosswalk_openai_responses.answer import Answer, Deltas
from crosswalk_openai_responses.items import Item, Part
from crosswalk_openai_responses.left import Object, drop_known, look_string, number_parts

_ALWAYS_LEFT: Final = {"id", "type", "status"}
"""The fields that the extensions always hold of an item, so that they list every item in all cases."""


def item_deltas(answer: Answer, raw: Object, item: Item, state: MappingState) -> Deltas:
    """Yield the deltas that *raw*, all of *item*, adds to the earlier ones. An unknown type adds nothing.

    The data that canonical values carry is removed from *raw*.

    Raises:
        WireTypeError: a text, or a field of a call, has another type than the API promises.
    """
    yield from opening_deltas(answer, raw, item, state)
    known = wire.ITEMS.get(item.type or "")
    role = None if known is None else known.role
    take_same(raw, "role", "assistant")
    if known is None and ":" not in (item.type or ""):  # a vendor's own type may be ignored (Open Responses)
        state.note_unknown_part()
    if role is wire.ItemRole.TEXT:
        yield from _texts(answer, raw, item, state)
    elif known is not None and role is wire.ItemRole.CALL and not item.by_server:
        yield from argument_deltas(answer, raw, known.fields[0], item, state)
    elif known is not None and not item.is_whole:
        if role is wire.ItemRole.ACTION and not item.by_server:
            yield from _action(answer, raw, known, item, state)
        elif role is not wire.ItemRole.STATE:
            yield from _whole(answer, raw, known, item)
    item.is_whole = True
    drop_known(raw, {name: value for name, value in item.kept.items() if name not in _ALWAYS_LEFT})
    number_parts(raw)


def part_deltas(answer: Answer, raw: Object, part: Part, state: MappingState) -> Deltas:
    """Yield the deltas that *raw*, all of *part*, adds to the earlier ones, or replaces them by.

    A replaced text stays in *raw* as ``streamed_text``, or ``streamed_`` and the name of its field.
    """
    leaf, before, tokens = part.known.leaf, "".join(part.pieces), None
    text = take_string(raw, leaf) or before
    if "logprobs" in raw and not part.tokens:
        tokens = accept_logprobs(raw, "logprobs")
    if not text.startswith(before):
        raw[f"streamed_{leaf}"] = before
        state.note(_WHERE[part.known.segment], Provenance.DERIVED)
    if answer.continues(part, text):
        text = text[len(before) :]
    else:
        yield from answer.correct(part, text)
        text = ""
    if text or tokens:
        yield from answer.add(part, text, tokens)
    for number, note in enumerate(accept_objects(raw, "annotations")):
        if number not in part.citations:
            yield answer.insert(citation(note, part, number))
    part.is_whole = True
    part.drop_carried(raw)


def _texts(answer: Answer, raw: Object, item: Item, state: MappingState) -> Deltas:
    """Yield the parts of a message or of reasoning, which may be only a payload to be sent back, or only an id."""
    for name in wire.LISTS:
        parts = take_objects(raw, name)
        kinds = [look_string(part, "type") or "" for part in parts]
        for last, others in item.renumber(name, kinds):
            answer.join(last, others)
        for number, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
            if kind in wire.PARTS:
                yield from part_deltas(answer, part, item.part(name, number, kind), state)
            else:
                state.note_unknown_part()
    # Details of the text before. The deltas of a text have no room for them.
    is_message = item.type == "message"
    kind = SegmentType.TEXT if is_message else SegmentType.REASONING
    field, name = wire.BESIDE["message" if is_message else "reasoning"]
    about = {"id": raw["id"]} if raw.get("id") else {}
    value = look_at(raw, field, str) or (None if is_message else item.payload)
    if value and field not in item.kept:
        item.kept[field] = about[name] = value
    elif is_message or item.is_whole or item.kept or any(part.pieces for part in item.parts.values()):
        return
    yield answer.insert(Segment(kind, "", about))


def call_deltas(
    answer: Answer,
    item: Item,
    state: MappingState,
    *,
    id: str | None = None,
    name: str | None = None,
    arguments: str = "",
) -> Deltas:
    """Yield the delta of a call's first or next fragment, if it adds anything."""
    known = item.call
    id = id if known is None or known.id is None else None
    name = name if known is None or known.name is None else None
    if known is not None and not (id or name or arguments):
        return
    fragment = state.tool_call(index=item.number, id=id, name=name, arguments=arguments, whole=known is None)
    if known is None:
        item.call = state.choice(0).calls[fragment.index]
    answer.end()
    if known is None and item.type == "custom_tool_call":
        fragment = attrs.evolve(fragment, kind=CallKind.CUSTOM)
    yield ResponseDelta(tool_call_delta=fragment)


def argument_deltas(answer: Answer, raw: Object, leaf: str, item: Item, state: MappingState) -> Deltas:
    """Yield the deltas that the text under *leaf*, all arguments of a call, adds to their pieces, or replaces them by."""
    text, before, index = take_string(raw, leaf) or "", "".join(item.call.arguments), item.call.index
    if not text or text.startswith(before):
        yield from call_deltas(answer, item, state, arguments=text[len(before) :])
    else:
        yield ResponseDelta(correction=Correction(SegmentType.TOOL_CALL, text, 0, len(before), index))
        raw[f"streamed_{leaf}"] = before
        state.note(f"message.tool_calls[{index}].arguments", Provenance.DERIVED)


def opening_deltas(answer: Answer, raw: Object, item: Item, state: MappingState) -> Deltas:
    """Yield the delta of a call's id and name. Arguments that are already there may come again in pieces, so they wait."""
    kind = item.type = look_string(raw, "type") or item.type
    item.by_server = _is_by_server(answer, raw, item)
    known = wire.ITEMS.get(kind or "")
    if known is None or known.role is not wire.ItemRole.CALL or item.by_server:
        return
    id, name = look_string(raw, known.id), look_string(raw, "name")
    yield from call_deltas(answer, item, state, id=id or None, name=name or None)
    if known.id != "id":
        take_same(raw, known.id, item.call.id)
    take_same(raw, "name", item.call.name)


def _action(answer: Answer, raw: Object, known: wire.WireItem, item: Item, state: MappingState) -> Deltas:
    """Yield a call of a tool without a name. It is named by its type, and its action is its arguments."""
    requested = {name: raw[name] for name in known.fields if raw.get(name) is not None}
    arguments: Any = requested
    if item.type == "tool_search_call" and type(requested.get("arguments")) is dict:
        arguments = requested["arguments"]
    id = look_string(raw, "call_id") or None
    text = dump_json(arguments).decode()
    yield from call_deltas(answer, item, state, id=id, name=item.type, arguments=text)
    state.note(f"message.tool_calls[{item.call.index}].name", Provenance.DERIVED)
    item.kept = {**requested, "call_id": item.call.id}
    for name in requested:
        del raw[name]


def _is_by_server(answer: Answer, raw: Object, item: Item) -> bool:
    """Return whether the server itself runs a call that its type leaves to the client.

    That is a shell in the server's container, the server's search for tools, or an undeclared custom tool, such as xAI's
    search on X.
    """
    if item.type == "shell_call":
        environment = raw.get("environment")
        return type(environment) is dict and environment.get("type") == "container_reference"
    if item.type == "tool_search_call":
        return raw.get("execution") == "server"
    if item.type == "custom_tool_call":
        return item.call is None and not raw.get("namespace") and not answer.may_declare(raw.get("name"))
    return False


def _whole(answer: Answer, raw: Object, known: wire.WireItem, item: Item) -> Deltas:
    """Yield all of *raw*: the call's input, or the image that was made, as the content, anything else as metadata."""
    is_image, field, kind = known.role is wire.ItemRole.MEDIA, (known.fields or ("",))[0], known.kind
    if "arguments" in raw and field != "arguments" and not is_image:
        field, kind = "arguments", str  # xAI writes its searches like calls of functions
    requested = look_at(raw, field, kind)
    if is_image and not requested:
        return
    content = requested if requested is None or type(requested) is str else dump_json(requested).decode()
    item.kept = take_whole(raw)
    raw.update({name: value for name, value in item.kept.items() if name in _ALWAYS_LEFT})
    about = {name: value for name, value in item.kept.items() if name != field or value is None}
    if is_image:
        about["encoding"] = "base64"
        format = about.get("output_format")
        if type(format) is str and format:
            about["media_type"] = f"image/{format}"
    yield answer.insert(
        Segment(SegmentType.MEDIA if is_image else SegmentType.TOOL_CALL, content or "", about)
    )


_WHERE: Final = {
    SegmentType.TEXT: "message.content",
    SegmentType.REFUSAL: "refusal",
    SegmentType.REASONING: "segments",
}


def citation(note: Object, part: Part, number: int) -> Segment:
    """Return *note*, annotation *number* of *part*, as a segment, which takes all of it (section 2.2).

    The cited text is the content, the source is the reference, and the rest is metadata. Values of another type are left.
    """
    title = "filename" if note.get("title") is None else "title"
    content, url, file_id = (look_at(note, name, str) for name in (title, "url", "file_id"))
    start, end = look_at_count(note, "start_index"), look_at_count(note, "end_index")
    span = None if start is None or end is None else (start, end)
    about = part.citations[number] = take_whole(note)
    carried = {title, "url", "file_id"}
    carried |= {name for name in ("start_index", "end_index") if span or about.get(name) is None}
    about = {name: value for name, value in about.items() if name not in carried}
    return Segment(
        SegmentType.CITATION, content or "", about, (CitationRef(file_id or None, url or None, span),)
    )
