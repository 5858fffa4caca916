"""OpenAI's Responses API: ``/v1/responses``, whole and streamed.

Facts: provider document "OpenAI Responses". vLLM, Ollama, llama.cpp, SGLang, xAI, OpenRouter and others answer in this
dialect too. :class:`ResponsesDialect` reads them under their own provider ids, in a ``DialectFamily`` or subclassed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from crosswalk.plugins import (
    CREATED,
    ID,
    MODEL,
    REASONING,
    REFUSAL,
    TEXT,
    Access,
    BatchFile,
    CallIds,
    CallKind,
    CitationRef,
    Correction,
    CountPaths,
    FieldRow,
    FinishReason,
    MappingState,
    Names,
    OpenAIChatDialect,
    Provenance,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    TrailingContentError,
    UsageInfo,
    WayBack,
    accept_count,
    accept_logprobs,
    accept_object,
    accept_objects,
    accept_string,
    count,
    counted,
    dump_json,
    error_delta,
    error_info,
    hookimpl,
    leave_mistyped,
    look_at,
    look_at_cost,
    look_at_count,
    requests_of,
    require_object,
    responses as wire,
    same,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
    take_whole,
    unknown_event,
)
from crosswalk_openai_responses.answer import (
    Answer,
    Deltas,
    Item,
    Object,
    Part,
    drop_known,
    look_string,
    number_parts,
    numbered,
)

__all__ = ["ResponsesDialect", "plugin"]

# ----------------------------------------------------------------------------------- whole
# The deltas of a whole item: of a body, of ``response.output_item.done``, and of the response that ends a stream.
#
# A streamed item adds only the data that its pieces did not carry (section 2.1).


_ALWAYS_LEFT_FIELDS: Final = {"id", "type", "status"}
"""The fields that the extensions always hold of an item, so that they list every item in all cases."""


def item_deltas(answer: Answer, raw_item: Object, item: Item, state: MappingState) -> Deltas:
    """Yield the deltas that *raw_item*, all of *item*, adds to the earlier ones. An unknown type adds nothing.

    The data that canonical values carry is removed from *raw_item*.

    Raises:
        WireTypeError: a text, or a field of a call, has another type than the API promises.
    """
    yield from opening_deltas(answer, raw_item, item, state)
    wire_item = wire.ITEMS.get(item.type or "")
    role = None if wire_item is None else wire_item.role
    if "role" in raw_item:
        take_same(raw_item, "role", "assistant")
    if wire_item is None and ":" not in (
        item.type or ""
    ):  # a vendor's own type may be ignored (Open Responses)
        state.note_unknown_part()
    if role is wire.ItemRole.TEXT:
        yield from _texts(answer, raw_item, item, state)
    elif wire_item is not None and role is wire.ItemRole.CALL and not item.by_server:
        yield from argument_deltas(answer, raw_item, wire_item.fields[0], item, state)
    elif wire_item is not None and not item.is_whole:
        if role is wire.ItemRole.ACTION and not item.by_server:
            yield from _action(answer, raw_item, wire_item, item, state)
        elif role is not wire.ItemRole.STATE:
            yield from _whole(answer, raw_item, wire_item, item)
    item.is_whole = True
    if item.kept:
        drop_known(
            raw_item, {name: value for name, value in item.kept.items() if name not in _ALWAYS_LEFT_FIELDS}
        )
    number_parts(raw_item)


def part_deltas(answer: Answer, raw_part: Object, part: Part, state: MappingState) -> Deltas:
    """Yield the deltas that *raw_part*, all of *part*, adds to the earlier ones, or replaces them by.

    A replaced text stays in *raw_part* as ``streamed_text``, or ``streamed_`` and the name of its field.
    """
    leaf, streamed_text, tokens = part.known.leaf, "".join(part.pieces), None
    text = take_string(raw_part, leaf) or streamed_text
    if raw_part.get("logprobs") not in (None, []) and not part.tokens:
        tokens = accept_logprobs(raw_part, "logprobs")
    if not text.startswith(streamed_text):
        raw_part[f"streamed_{leaf}"] = streamed_text
        state.note(_CANONICAL_PATHS[part.known.segment], Provenance.DERIVED)
    if not (part.pieces or part.runs) or answer.continues(part, text):
        text = text[len(streamed_text) :]
    else:
        yield from answer.correct(part, text)
        text = ""
    if text or tokens:
        yield from answer.add(part, text, tokens)
    if raw_part.get("annotations") not in (None, []):
        for number, annotation in enumerate(accept_objects(raw_part, "annotations")):
            if number not in part.citations:
                yield answer.insert(citation(annotation, part, number))
    part.is_whole = True
    part.drop_carried(raw_part)


def _texts(answer: Answer, raw_item: Object, item: Item, state: MappingState) -> Deltas:
    """Yield the parts of a message or of reasoning, which may be only a payload to be sent back, or only an id."""
    for name in wire.LISTS:
        if name not in raw_item:
            continue
        parts = take_objects(raw_item, name)
        kinds = [look_string(part, "type") or "" for part in parts]
        for last_part, other_parts in item.renumber(name, kinds) if item.parts else ():
            answer.join(last_part, other_parts)
        for number, (kind, part) in enumerate(zip(kinds, parts, strict=True)):
            if kind in wire.PARTS:
                yield from part_deltas(answer, part, item.part(name, number, kind), state)
            else:
                state.note_unknown_part()
    # Details of the text before. The deltas of a text have no room for them.
    is_message = item.type == "message"
    kind = SegmentType.TEXT if is_message else SegmentType.REASONING
    field, name = wire.BESIDE["message" if is_message else "reasoning"]
    metadata = {"id": raw_item["id"]} if raw_item.get("id") else {}
    value = look_at(raw_item, field, str) if field in raw_item else None
    value = value or (None if is_message else item.encrypted_content)
    if value and field not in item.kept:
        item.kept[field] = value
        mark = next(filter(value.startswith, (wire.SIGNED, wire.ENCRYPTED)), "")
        metadata["signature" if mark == wire.SIGNED else name] = value.removeprefix(mark)
        if mark == wire.ENCRYPTED:
            metadata["is_foreign"] = True
    elif is_message or item.is_whole or item.kept or any(part.pieces for part in item.parts.values()):
        return
    yield answer.insert(Segment(kind, "", metadata))


def call_deltas(
    answer: Answer,
    item: Item,
    state: MappingState,
    *,
    id: str | None = None,
    name: str | None = None,
    arguments: str = "",
) -> Deltas:
    """Return the delta of a call's first or next fragment, if it adds anything."""
    call_draft = item.call
    id = id if call_draft is None or call_draft.id is None else None
    name = name if call_draft is None or call_draft.name is None else None
    if call_draft is not None and not (id or name or arguments):
        return ()
    fragment = state.tool_call(
        index=item.number, id=id, name=name, arguments=arguments, whole=call_draft is None
    )
    if call_draft is None:
        item.call = state.choice(0).calls[fragment.index]
    answer.end()
    if call_draft is None and item.type == "custom_tool_call":
        fragment = attrs.evolve(fragment, kind=CallKind.CUSTOM)
    return (ResponseDelta(tool_call_delta=fragment),)


def argument_deltas(answer: Answer, raw_item: Object, leaf: str, item: Item, state: MappingState) -> Deltas:
    """Return the deltas that the text under *leaf*, all arguments of a call, adds to their pieces, or replaces them by."""
    text, streamed_text, index = (
        take_string(raw_item, leaf) or "",
        "".join(item.call.arguments),
        item.call.index,
    )
    if not text or text.startswith(streamed_text):
        return call_deltas(answer, item, state, arguments=text[len(streamed_text) :])
    raw_item[f"streamed_{leaf}"] = streamed_text
    state.note(f"message.tool_calls[{index}].arguments", Provenance.DERIVED)
    return (ResponseDelta(correction=Correction(SegmentType.TOOL_CALL, text, 0, len(streamed_text), index)),)


def opening_deltas(answer: Answer, raw_item: Object, item: Item, state: MappingState) -> Deltas:
    """Return the delta of a call's id and name. Arguments that are already there may come again in pieces, so they wait."""
    kind = item.type = look_string(raw_item, "type") or item.type
    item.by_server = kind in _MAYBE_BY_SERVER and _is_by_server(answer, raw_item, item)
    wire_item = wire.ITEMS.get(kind or "")
    if wire_item is None or wire_item.role is not wire.ItemRole.CALL or item.by_server:
        return ()
    id, name = look_string(raw_item, wire_item.id), look_string(raw_item, "name")
    deltas = call_deltas(answer, item, state, id=id or None, name=name or None)
    if wire_item.id != "id":
        take_same(raw_item, wire_item.id, item.call.id)
    take_same(raw_item, "name", item.call.name)
    return deltas


def _action(
    answer: Answer, raw_item: Object, wire_item: wire.WireItem, item: Item, state: MappingState
) -> Deltas:
    """Yield a call of a tool without a name. It is named by its type, and its action is its arguments."""
    requested = {name: raw_item[name] for name in wire_item.fields if raw_item.get(name) is not None}
    main = wire_item.fields[0]
    if main in requested and type(requested[main]) is not wire_item.kind:
        del requested[main]
        leave_mistyped(raw_item, main)
    arguments: Any = requested
    if item.type == "tool_search_call" and type(requested.get("arguments")) is dict:
        arguments = requested["arguments"]
    id = look_string(raw_item, "call_id") or None
    text = dump_json(arguments).decode()
    yield from call_deltas(answer, item, state, id=id, name=item.type, arguments=text)
    state.note(f"message.tool_calls[{item.call.index}].name", Provenance.DERIVED)
    item.kept = {**requested, "call_id": item.call.id}
    for name in requested:
        del raw_item[name]


_MAYBE_BY_SERVER: Final = frozenset({"shell_call", "tool_search_call", "custom_tool_call"})


def _is_by_server(answer: Answer, raw_item: Object, item: Item) -> bool:
    """Return whether the server itself runs a call that its type, one of these, leaves to the client.

    That is a shell in the server's container, the server's search for tools, or an undeclared custom tool, such as xAI's
    search on X.
    """
    if item.type == "shell_call":
        environment = raw_item.get("environment")
        return type(environment) is dict and environment.get("type") == "container_reference"
    if item.type == "tool_search_call":
        return raw_item.get("execution") == "server"
    return (
        item.call is None and not raw_item.get("namespace") and not answer.may_declare(raw_item.get("name"))
    )


def _whole(answer: Answer, raw_item: Object, wire_item: wire.WireItem, item: Item) -> Deltas:
    """Yield all of *raw_item*: the call's input, or the image that was made, as the content, anything else as metadata."""
    is_image, field, kind = (
        wire_item.role is wire.ItemRole.MEDIA,
        (wire_item.fields or ("",))[0],
        wire_item.kind,
    )
    if "arguments" in raw_item and field != "arguments" and not is_image:
        field, kind = "arguments", str  # xAI writes its searches like calls of functions
    requested = look_at(raw_item, field, kind)
    if is_image and not requested:
        return
    content = requested if requested is None or type(requested) is str else dump_json(requested).decode()
    item.kept = take_whole(raw_item)
    raw_item.update({name: value for name, value in item.kept.items() if name in _ALWAYS_LEFT_FIELDS})
    metadata = {name: value for name, value in item.kept.items() if name != field or value is None}
    if is_image:
        metadata["encoding"] = "base64"
        format = metadata.get("output_format")
        if type(format) is str and format:
            metadata["media_type"] = f"image/{format}"
    yield answer.insert(
        Segment(SegmentType.MEDIA if is_image else SegmentType.TOOL_CALL, content or "", metadata)
    )


_CANONICAL_PATHS: Final = {
    SegmentType.TEXT: "message.content",
    SegmentType.REFUSAL: "refusal",
    SegmentType.REASONING: "segments",
}


def citation(annotation: Object, part: Part, number: int) -> Segment:
    """Return *annotation*, annotation *number* of *part*, as a segment, which takes all of it (section 2.2).

    The cited text is the content, the source is the reference, and the rest is metadata. Values of another type are left.
    """
    title = "filename" if annotation.get("title") is None else "title"
    content, url, file_id = (look_at(annotation, name, str) for name in (title, "url", "file_id"))
    start, end = look_at_count(annotation, "start_index"), look_at_count(annotation, "end_index")
    span = None if start is None or end is None else (start, end)
    metadata = part.citations[number] = take_whole(annotation)
    carried_names = {title, "url", "file_id"}
    carried_names |= {name for name in ("start_index", "end_index") if span or metadata.get(name) is None}
    metadata = {name: value for name, value in metadata.items() if name not in carried_names}
    return Segment(
        SegmentType.CITATION, content or "", metadata, (CitationRef(file_id or None, url or None, span),)
    )


# ---------------------------------------------------------------------------------- events
# The deltas of each role of stream events (provider document "OpenAI Responses", section 3).
#
# Each handler takes from its event the data that it understands. The remainder of an item is listed under ``output``,
# by
# number, so that the fields that several events carry of one item come together as in a body.


def is_error(event: dict[str, Any]) -> bool:
    """Return whether *event* is only an error: flat, nested, or bare."""
    if event.get("type") == "error" or event.get("object") == "error":
        return True
    return bool(event.get("error")) and event.get("object") != "response"


Handler: TypeAlias = Callable[[Object, wire.WireEvent, Answer, MappingState], Deltas]

RESERVED_FIELDS: Final = frozenset(
    {
        "created_at", "error", "id", "incomplete_details", "model", "object", "output", "output_text", "status", "usage",
    }
)  # fmt: skip
"""The fields of a response that typed fields take. The extensions must hold nothing else under these names."""

_LATER_FIELDS: Final = frozenset(
    {"arguments", "code", "error", "input", "output", "outputs", "queries", "result", "results", "tools"}
)
"""The empty values of an item that begins. Left in the extensions, they would outlive the later values."""


def response_deltas(
    event: Object, wire_event: wire.WireEvent | None, answer: Answer, state: MappingState
) -> Deltas:
    """Yield the deltas that the response in *event* adds: everything in a body, little or nothing at the end of a stream.

    The response is the event itself, or a field of it. Its remainder is moved into the event, with the event's other fields.

    Raises:
        WireTypeError: a field that decides the answer has another type than the API promises.
        TrailingContentError: it is another answer: it begins again, or comes after the end.
    """
    response = event if wire_event is None else require_object(event.get("response"), "response")
    word = None if wire_event is None else wire_event.of
    is_created = wire_event is not None and wire_event.word == "created"
    if answer.has_ended or (answer.has_begun and is_created):
        raise TrailingContentError("a second answer has begun")
    answer.has_begun = answer.has_begun or is_created
    state.take_identity(response, created="created_at")
    take_same(response, "object", "response")
    details = take_object(response, "incomplete_details") or {}
    if response.get("tools"):
        answer.note_tools(response["tools"])
    output = take_objects(response, "output")
    if word in wire.PENDING:
        for number, begun_item in enumerate(output):
            numbered(begun_item, number)
    else:
        for item, raw_item in answer.matched(output):
            yield from item_deltas(answer, raw_item, item, state)
            numbered(raw_item, item.number)
    finish_word = _take_finish(response, details, word, answer)
    answer.has_ended = finish_word is not None
    if "output_text" in response:
        take_same(response, "output_text", answer.text)
    if not take_same(response, "error", None) and response["error"]:
        failure = error_delta(error_info(None, response.pop("error")))
        yield attrs.evolve(failure, raw_finish_reason=finish_word)
    elif finish_word is not None:
        yield ResponseDelta(raw_finish_reason=finish_word)
    if wire_event is not None:
        del event["response"]
        set_aside(event, response)
        event.update(response)


def set_aside(event: Object, names: Container[str]) -> None:
    """Rename the fields of *event* that have one of *names*, which are a response's."""
    for name in [name for name in event if name in names]:
        event[f"event_{name}"] = event.pop(name)


def _take_finish(response: Object, details: Object, word: str | None, answer: Answer) -> str | None:
    """Take from *response* the reason why it ended, or return ``None`` while it is still being made.

    The API has no finish word. The status and the reason of an incomplete response make one.

    Args:
        response: the response object.
        details: why it is incomplete.
        word: the status that the type of its event implies, or ``None`` for a body.
        answer: the answer.
    """
    status: str | None = None
    if word not in wire.PENDING:
        status = response.get("status")
        status = status if type(status) is str else look_string(response, "status")
        if status is None or (status in wire.PENDING and word is not None):
            status = word  # in a body it is the state of an answer that the server is still making
    # Extensions that contain a status must also take the next one.
    if not answer.tells_status and not take_same(response, "status", status or word):
        answer.tells_status = True
    detail: Any = None
    if status == "incomplete":
        detail = take_string(details, "reason")
    elif status == "failed" and type(response.get("error")) is dict:
        detail = response["error"].get("code")
    elif status == "completed" and _has_cut_message(response.get("output")):
        return "incomplete"  # the message itself has this status
    if status is not None and details:
        take_same(details, "reason", None)
    return f"{status}:{detail}" if detail and type(detail) is str else status


def _has_cut_message(output: Any) -> bool:
    """Return whether *output* has a message that is incomplete by its status."""
    for item in output if type(output) is list else ():
        if type(item) is dict and item.get("type") == "message" and item.get("status") == "incomplete":
            return True
    return False


# Texts and their parts.


def take_logprobs(holder: Object, text: str | None = None) -> tuple[TokenLogprob, ...] | None:
    """Return the log probabilities of a piece of text, independently of its *text*."""
    return accept_logprobs(holder, "logprobs")


def _text(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    # Most of a stream is this: no generator, and no tokens if there are none.
    item = answer.item(event, has_text=True)
    whole_text = None if wire_event.word == "delta" else event.get(wire.PARTS[wire_event.of].leaf)
    part = _part_of(event, item, wire.PARTS[wire_event.of].list, wire_event.of, whole=whole_text)
    if wire_event.word != "delta":
        raw_part = {name: event.pop(name) for name in (part.known.leaf, "logprobs") if name in event}
        return _whole_part(event, item, part, raw_part, answer, state)
    text, tokens, logprobs = take_string(event, "delta"), None, event.pop("logprobs", None)
    if logprobs is not None and logprobs != []:
        logprobs_field = {"logprobs": logprobs}
        tokens = take_logprobs(logprobs_field)
        if logprobs_field:
            _leave_part(event, item, part, logprobs_field)
    return answer.add(part, text or "", tokens) if text or tokens else ()


def _part(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    item, raw_part = answer.item(event, has_text=True), require_object(event.get("part"), "part")
    kind = look_string(raw_part, "type") or ""
    if kind not in wire.PARTS:
        state.note_unknown_part()
        item.entry(event)[wire_event.of] = [
            numbered(raw_part, take_count(event, wire.LISTS[wire_event.of]) or 0)
        ]
        del event["part"]
        return ()
    opens = wire_event.word == "added"
    whole_text = None if opens else raw_part.get(wire.PARTS[kind].leaf)
    part = _part_of(event, item, wire_event.of, kind, opens=opens, whole=whole_text)
    del event["part"]
    if not opens:
        return _whole_part(event, item, part, raw_part, answer, state)
    part.drop_carried(raw_part)
    _leave_part(event, item, part, raw_part)
    return ()


def _whole_part(
    event: Object, item: Item, part: Part, raw_part: Object, answer: Answer, state: MappingState
) -> Deltas:
    yield from part_deltas(answer, raw_part, part, state)
    _leave_part(event, item, part, raw_part)


def _part_of(
    event: Object, item: Item, place: str, kind: str, *, opens: bool = False, whole: Any = None
) -> Part:
    """Return the part of *event*, with its *whole* text or a piece. One out of turn is listed in the extensions."""
    number = take_count(event, wire.LISTS[place])
    if number is not None:
        repeated_part = None if whole is None else item.repeated(place, number, kind, whole)
        if repeated_part is not None:
            item.entry(event)[place] = [{"index": number}]
            return repeated_part
        part = item.parts.get((place, number, kind))
        if part is not None:
            return part
        if not item.expects(place, number, opens=opens):
            item.entry(event)[place] = [{"index": number}]
    return item.part(place, number, kind, opens=opens)


def _leave_part(event: Object, item: Item, part: Part, leftover: Object) -> None:
    if leftover:
        entry = item.entry(event)
        number = entry[part.place][0]["index"] if part.place in entry else part.number
        entry[part.place] = [numbered(leftover, number)]


def _annotation(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    item = answer.item(event)
    part = _part_of(event, item, wire.PARTS[wire_event.of].list, wire_event.of)
    number, annotation = accept_count(event, "annotation_index"), accept_object(event, "annotation")
    if not annotation:
        return
    next_number = len(part.citations)
    number = next_number if number is None else number
    if number != next_number:
        _leave_part(event, item, part, {"annotation_index": number, "annotation": dict(annotation)})
    if number not in part.citations:
        yield answer.insert(citation(annotation, part, number))
    else:
        annotation.clear()


# Items.


def _item(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    raw_item, opens = require_object(event.get("item"), "item"), wire_event.word == "added"
    item = answer.item(event, raw_item, opens=opens)
    if opens:
        yield from opening_deltas(answer, raw_item, item, state)
        _take_beginning(raw_item, item)
    else:
        yield from item_deltas(answer, raw_item, item, state)
    del event["item"]
    entry = item.entry(event)
    event["output"] = [numbered(raw_item, item.number)]
    for name, value in entry.items():
        raw_item.setdefault(name, value)


def _take_beginning(raw_item: Object, item: Item) -> None:
    """Take from *raw_item*, which opens *item*, the data that is not there yet, and move the provisional data."""
    for name in _LATER_FIELDS & raw_item.keys():
        if raw_item[name] in (None, "", []):
            del raw_item[name]
    take_same(raw_item, "role", "assistant")
    for list_name in wire.LISTS:
        parts = raw_item.get(list_name)
        for number, part in enumerate(parts if type(parts) is list else ()):
            kind = part.get("type") if type(part) is dict else None
            if type(kind) is str and (list_name, number, kind) in item.parts:
                item.parts[list_name, number, kind].drop_carried(part)
    number_parts(raw_item)
    if item.type == "reasoning":
        # Each event has another payload. The first one, under its usual name, would be taken for the last one.
        encrypted_content = accept_string(raw_item, "encrypted_content")
        if encrypted_content:
            item.encrypted_content = encrypted_content
            raw_item["added"] = {"encrypted_content": encrypted_content}


def _field(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    item = answer.item(event, has_text=False)
    if wire.ITEMS[wire_event.of].role is not wire.ItemRole.CALL or item.by_server:
        _keep_piece(event, wire_event, item)
        return
    item.type = item.type or wire_event.of
    if wire_event.word == "delta":
        yield from call_deltas(answer, item, state, arguments=take_string(event, "delta") or "")
        return
    yield from call_deltas(answer, item, state, name=look_string(event, "name") or None)
    yield from argument_deltas(answer, event, wire_event.leaf, item, state)
    take_same(event, "name", item.call.name)
    for name in (f"streamed_{wire_event.leaf}", "name"):
        if name in event:
            item.entry(event)[name] = event.pop(name)


# Data that no typed field takes in pieces: it stays with its item.


def _keep_piece(event: Object, wire_event: wire.WireEvent, item: Item) -> None:
    """Keep a tool's output, in pieces or whole: a list of pieces, and only the part of the whole that they lack."""
    number, output = accept_count(event, "command_index"), event.get(wire_event.leaf)
    pieces = item.pieces.setdefault((wire_event.family, number), [])
    if wire_event.word == "delta":
        if type(output) not in (str, dict):
            leave_mistyped(event, "delta")
            return
        pieces.append(output)
        output = [output]
    elif all(type(piece) is str for piece in pieces) and output == "".join(pieces):
        output = None
    event.pop(wire_event.leaf, None)
    remainder = {} if output is None else {wire_event.leaf: output}
    if number is not None:
        item.entry(event)[wire_event.family] = [numbered(remainder, number)]
    elif remainder:
        item.entry(event)[wire_event.family] = remainder


def _status(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    answer.item(event).entry(event)["status"] = wire_event.word
    return ()


def _preview(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    """Keep a preview of an image: a separate picture, replaced by the next."""
    entry = answer.item(event).entry(event)
    for name in [name for name in event if name not in ("output", "sequence_number", "obfuscation")]:
        entry[name] = event.pop(name)
    return ()


def _sound(event: Object, wire_event: wire.WireEvent, answer: Answer, state: MappingState) -> Deltas:
    """Keep sound, which belongs to the response, not to an item: separate pieces of base64, and their transcript."""
    delta, is_sound = accept_string(event, "delta"), wire_event.role is wire.EventRole.AUDIO
    if delta:
        metadata: Object = {"encoding": "base64"} if is_sound else {"transcript": delta}
        metadata = {"type": "audio", "is_piece": True, **metadata}
        yield answer.insert(Segment(SegmentType.MEDIA, delta if is_sound else "", metadata))


HANDLERS: Final[dict[wire.EventRole, Handler]] = {
    wire.EventRole.RESPONSE: response_deltas,
    wire.EventRole.ITEM: _item,
    wire.EventRole.PART: _part,
    wire.EventRole.TEXT: _text,
    wire.EventRole.ANNOTATION: _annotation,
    wire.EventRole.FIELD: _field,
    wire.EventRole.STATUS: _status,
    wire.EventRole.PREVIEW: _preview,
    wire.EventRole.AUDIO: _sound,
    wire.EventRole.TRANSCRIPT: _sound,
    wire.EventRole.NOTICE: lambda *_: (),
}
"""The handler for each role of events. An error is read before its role is looked up."""

PIECES: Final = tuple(
    f"output[].{known.family}{'[]' if known.of.startswith('shell') else ''}.delta"
    for known in wire.EVENTS.values()
    if known.role is wire.EventRole.FIELD and known.word == "delta" and known.of != "function_call"
)
"""The paths of lists in the extensions that come in pieces."""


# ----------------------------------------------------------------------------- --before


# ------------------------------------------------------------------------------------ rows
# What has a canonical field, as rows, out of the tables that the code above reads by. It reads without these rows,
# because a stream sends most things several times, and each says only what those before it have not.

_CALL: Final = FieldRow("tool_calls", None)
_SEGMENT: Final = FieldRow("segments", None)
_FINISH: Final = FieldRow("finish_reason", None)
_ROW_BY_ROLE: Final = {
    wire.ItemRole.CALL: _CALL,
    wire.ItemRole.ACTION: _CALL,
    wire.ItemRole.SERVER: _SEGMENT,
    wire.ItemRole.MEDIA: _SEGMENT,
}
_SEGMENT_ROLES: Final = {
    wire.EventRole.ANNOTATION,
    wire.EventRole.AUDIO,
    wire.EventRole.TRANSCRIPT,
}
_ROW_BY_SEGMENT: Final = {
    SegmentType.TEXT: TEXT,
    SegmentType.REFUSAL: REFUSAL,
    SegmentType.REASONING: REASONING,
}
_RESPONSE_ROWS: Final = {
    "id": ID,
    "model": MODEL,
    "created_at": CREATED,
    "object": same("response"),
    "status": _FINISH,
    "incomplete_details.reason": _FINISH,
    **{f"usage.{path}": count(name) for name, path in {**wire.COUNTS, **wire.DETAILS}.items()},
}


def _rows() -> dict[str, Mapping[str, FieldRow]]:
    """Return the rows of each type of part, item and event, by the type and where it is."""
    types: dict[str, dict[str, FieldRow]] = {
        type: {
            f"{part.list}[].type": same(type),
            f"{part.list}[].{part.leaf}": _ROW_BY_SEGMENT[part.segment],
        }
        for type, part in wire.PARTS.items()
    }
    for type, item in wire.ITEMS.items():
        if item.role in _ROW_BY_ROLE:
            names = ("call_id", "name") if item.role is wire.ItemRole.CALL else ()
            types[type] = {
                "type": same(type),
                **dict.fromkeys((*names, *item.fields), _ROW_BY_ROLE[item.role]),
            }
    rows: dict[str, Mapping[str, FieldRow]] = {}
    for at, outer in (("output[].", _RESPONSE_ROWS), ("response.output[].", {}), ("item.", {})):
        for type, inner in types.items():
            rows[at + type] = {**outer, **{at + path: row for path, row in inner.items()}}
    rows["response"] = {f"response.{path}": row for path, row in _RESPONSE_ROWS.items()}
    for type, event in wire.EVENTS.items():
        row = _SEGMENT if event.role in _SEGMENT_ROLES else None
        if event.role is wire.EventRole.TEXT:
            row = _ROW_BY_SEGMENT[wire.PARTS[event.of].segment]
        elif event.role is wire.EventRole.FIELD and wire.ITEMS[event.of].role is wire.ItemRole.CALL:
            row = _CALL
        if row is not None:
            rows[type] = {"type": same(type), event.leaf: row}
    return rows


# ----------------------------------------------------------------------------------- hooks
# The hooks of the provider.

ACCESS = Access.by_name("https://api.openai.com/v1", "OPENAI")


class ResponsesDialect:
    """The hooks for ``/v1/responses``.

    Attributes:
        title: the provider's name for display.
        documentation: the address of the provider's description of the API.
        finish_reasons: the meaning of each final status. The reason of an incomplete response follows a colon.
        rows: the rows of what it reads, by the type of part, item or event.
    """

    title: ClassVar[str] = "OpenAI Responses"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/responses"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = wire.FINISH_REASONS
    rows: ClassVar[Mapping[str, Mapping[str, FieldRow]]] = _rows()

    build_request = staticmethod(requests_of("crosswalk_openai_responses.requests"))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title=self.title,
            model_classes="crosswalk_openai_responses:models.toml",
            names=Names(otel="openai", prices="openai"),
            endpoints=("/v1/responses",),
            is_original=True,
            documentation=self.documentation,
            message_paths=("output[].content[]", "output[].*"),
            text_paths=("delta",),
            timestamp_key="obfuscation",
            number_key="sequence_number",
            logprob_paths={"logprobs": take_logprobs},
            pieces=PIECES,
            access=ACCESS,
            call_ids=CallIds(),
            call_names="[a-zA-Z0-9_-]{1,128}",
            way_back=WayBack(
                takes_custom_calls=True, takes_citations=True, takes_media=("image",), shows_pictures=True
            ),
            hosted_tools=("web_search", "code_execution", "file_search", "image_generation"),
            batch_file=BatchFile(),
        )

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``. Many servers speak this dialect, and none marks it."""
        if not isinstance(event, dict):
            return Recognition.NO
        fits = _known(event) is not None or event.get("object") == "response" or is_error(event)
        return Recognition.POSSIBLE if fits else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. The remainder of an item is listed under ``output``, as in a body."""
        if type(event) is not dict:
            event = require_object(event)
        answer = state.own(Answer)
        if state.repeated_texts:
            answer.add_repeated(state)
        if event.get("type") is None and (
            event.get("object") == "response" or (type(event.get("output")) is list and not is_error(event))
        ):
            return response_deltas(event, None, answer, state)
        if is_error(event):
            return (take_error(event),)
        wire_event = _known(event)
        if wire_event is not None:
            is_beat = event.pop("type") == "keepalive"
            answer.take_sequence_number(event, is_beat=is_beat)
            if not RESERVED_FIELDS.isdisjoint(event):
                set_aside(event, RESERVED_FIELDS - {wire_event.leaf})
            return HANDLERS[wire_event.role](event, wire_event, answer, state)
        if _is_extension(event):
            answer.take_sequence_number(event)
            kind, remainder = event.pop("type"), dict(event)
            event.clear()
            event[kind] = [remainder]
            return ()
        raise unknown_event(event)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``. An aggregator passes on why an answer is incomplete, without the status."""
        reasons = self.finish_reasons
        if reason in wire.PENDING:
            state.note("finish_reason", Provenance.DERIVED)
        return reasons.get("failed" if reason.startswith("failed:") else reason) or reasons.get(
            f"incomplete:{reason}"
        )

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``. The counts are inclusive, as the canonical ones are, and come once, with the end."""
        usage = accept_object(event, "usage") if "usage" in event else None
        if not usage:
            return None
        if "prompt_tokens" in usage and "input_tokens" not in usage:
            return _CHAT_DIALECT.usage_info(usage, state)  # of a proxy that translates Chat Completions
        counts = _COUNT_PATHS.accept(usage)
        if "tool_usage" in event and (searches := _searches(event)) is not None:
            counts["web_search_requests"] = searches
        return counted(counts, state, look_at_cost(usage))


def _searches(event: dict[str, Any]) -> int | None:
    """The number of web searches of the server. It stays with the rest of ``tool_usage``, which is outside the usage."""
    searches = (look_at(event, "tool_usage", dict) or {}).get("web_search")
    return look_at_count(searches, "num_requests") if isinstance(searches, dict) else None


_CHAT_DIALECT: Final = OpenAIChatDialect()
_COUNT_PATHS: Final = CountPaths({**wire.COUNTS, **wire.DETAILS})
_OPEN_RESPONSES_EVENTS = {theirs: wire.EVENTS[ours] for ours, theirs in wire.OPEN_RESPONSES.items()}


def _known(event: dict[str, Any]) -> wire.WireEvent | None:
    kind = event.get("type")
    if type(kind) is not str:
        return None
    return wire.EVENTS.get(kind) or _OPEN_RESPONSES_EVENTS.get(kind)


def _is_extension(event: dict[str, Any]) -> bool:
    """Return whether *event* is a vendor extension, such as ``acme:trace_event``, which clients ignore (Open Responses)."""
    kind = event.get("type")
    return type(kind) is str and kind.partition(":")[1] == ":"


plugin = ResponsesDialect()
