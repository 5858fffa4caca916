"""Items of a Responses answer under construction, with those of the answer that was read, and the items of clients."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import orjson

from crosswalk.formats.chat import mcp_server, vendor_tool
from crosswalk.formats.reading import (
    Wants,
    answer,
    custom_definition,
    definition,
    take_neutral,
    told_if_unknown,
    told_part,
    tool_choice,
)
from crosswalk.formats.responses_table import RESPONSES
from crosswalk.formats.writing import (
    Event,
    JSONObjectText,
    Piece,
    put_back,
    ref_of,
    url_citation,
    without_place,
)
from crosswalk.request import HostedTool, NamedTool, ToolDefinition, Turn
from crosswalk.responses.vocabulary import ResponsesError
from crosswalk.types.json import copy_json, load_json
from crosswalk.types.message import ChatMessage, ContentPart, ToolCall
from crosswalk.types.usage import UsageInfo, counts_at
from crosswalk.types.values import SegmentType
from crosswalk.wire.options import Fields, placed
from crosswalk.wire.responses import (
    ANNOTATIONS,
    COUNTS,
    DETAILS,
    ENCRYPTED,
    FAMILIES,
    ITEMS,
    LISTS,
    PARTS,
    REPEATED,
    REQUIRED,
    SIGNED,
    STATUSES,
    EventRole,
    ItemRole,
    WireItem,
    read_part,
)

if TYPE_CHECKING:
    from crosswalk.responses.reading import OnUnknown

# ------------------------------------------------------------------------- response values
# Canonical values as those of the Responses API: citations, counts, and actions of a server's own tools.


def server_item(piece: Piece, new_id: Callable[[str], str]) -> Event | None:
    """Return *piece* as its original item, or as a generated image, or ``None`` if it is neither.

    Args:
        piece: the input or output of a server's tool, or a medium.
        new_id: makes the id of an item of the given kind.
    """
    item: Event = piece.metadata.thawed()
    kind, media_type = item.get("type"), str(item.get("media_type"))
    wire_item = ITEMS.get(kind) if isinstance(kind, str) else None
    if piece.type is SegmentType.MEDIA:
        if wire_item is None:
            if not media_type.startswith("image/") or ":" in piece.text:
                return None
            kind = "image_generation_call"
            wire_item = ITEMS[kind]
            format = media_type.removeprefix("image/")
            item = {"id": new_id(kind), "type": kind, "status": "completed", "output_format": format}
        item = {key: value for key, value in item.items() if key not in ("encoding", "media_type")}
    return None if wire_item is None else _with_asked(item, piece.text, wire_item)


def _with_asked(item: Event, text: str, wire_item: WireItem) -> Event | None:
    """Return *item* with the input or output, or ``None`` if *text* is invalid for the item."""
    if not wire_item.fields:
        return None if text else item
    field, field_value = wire_item.fields[0], _json(text) if wire_item.kind is not str and text else text
    if field_value is None:
        return None
    is_search = wire_item.role is ItemRole.SERVER and wire_item.kind is dict
    if text and (
        field in item or (is_search and not (isinstance(field_value, dict) and "type" in field_value))
    ):
        item["arguments"] = text  # xAI writes its searches like calls of functions
    elif text or (wire_item.kind is str and field not in item):
        item[field] = field_value
    return item


def is_item(value: Event, unknown: OnUnknown) -> bool:
    """Whether the types of the API can hold *value* as an item of an output. *unknown* as for :func:`parse_item`."""
    from crosswalk.responses.reading import (
        parse_item,
    )  # only for actions of the server alone: it loads all types

    try:
        parse_item(value, unknown=unknown)
    except ResponsesError:
        return False
    return True


def action_item(type: str, arguments: str) -> Event | None:
    """Return the action of an item of *type*, a call of a tool without a name, or ``None`` if it is not an object."""
    action, fields = _json(arguments), ITEMS[type].fields
    if not isinstance(action, dict):
        return None
    return action if action and action.keys() <= set(fields) else {fields[0]: action}


def _json(text: str) -> Any:
    """Return *text* decoded, or ``None`` if it is not JSON."""
    try:
        return load_json(text)
    except orjson.JSONDecodeError:
        return None


def annotation_of(piece: Piece, span: tuple[int, int], *, is_own: bool) -> Event | None:
    """Return *piece*, a citation, as its original annotation, or as that of a page, or ``None`` for other sources.

    Args:
        piece: the citation.
        span: the characters of the answer's text that its part has. A citation of others is not one of the part.
        is_own: whether it was an annotation of a response.
    """
    ref = ref_of(piece)
    start, end = ref.span or (None, None)
    metadata: Event = piece.metadata.thawed()
    kind = metadata.get("type")
    field_types = ANNOTATIONS.get(kind, {}) if isinstance(kind, str) else {}
    title_key = "title" if "title" in field_types else "filename"
    fields: Event = {title_key: piece.text or (None if is_own else ""), "url": ref.source, "file_id": ref.id}
    fields |= {"start_index": start, "end_index": end}
    known_fields = metadata | {name: value for name, value in fields.items() if value is not None}
    if is_own and isinstance(kind, str):
        return known_fields
    if field_types and all(
        type(known_fields.get(name)) is field_type for name, field_type in field_types.items()
    ):
        return {"type": kind, **{name: known_fields[name] for name in field_types}}
    start, end = span if ref.span is None else ref.span
    citation = url_citation(piece, (start - span[0], end - span[0])) if start >= span[0] else None
    return None if citation is None else {"type": "url_citation", **citation}


def tool_usage_of(searches: int) -> Event:
    """Return the usage of a server's tools that has searched the web so many times: a tool without usage has zeros."""
    counts = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 0)
    details = {"input_tokens_details": {"image_tokens": 0, "text_tokens": 0}}
    return {"image_gen": {**counts, **details}, "web_search": {"num_requests": searches}}


def usage_of(usage: UsageInfo, *, is_own: bool) -> Event:
    """Return *usage*, with 0 for missing counts that the form requires, unless it *is* of the form's *own*."""
    zeros = {} if is_own else {name: 0 for name in COUNTS if getattr(usage, name) is None}
    return counts_at({**COUNTS, **DETAILS}, usage, **zeros)


def repeated(request: Mapping[str, Any]) -> Event:
    """Return the members of *request* that a response repeats, each complete, with the API's defaults."""
    members = {name: request[name] for name in REPEATED if request.get(name) is not None}
    members = {**REPEATED.thawed(), **members}
    members["tools"] = [_complete(tool, tool["type"]) for tool in members["tools"]]
    members["text"] = {**members["text"], "format": _format(members["text"].get("format"))}
    if members["reasoning"] is not None:
        members["reasoning"] = _complete(members["reasoning"], "reasoning")
    return members


def _format(text_format: Event | None) -> Event:
    return {"type": "text"} if text_format is None else _complete(text_format, text_format["type"])


def _complete(fields: Event, kind: str) -> Event:
    """Return *fields* with the fields that its *kind* requires and the request has left out."""
    return {
        **fields,
        **{name: value for name, value in REQUIRED.get(kind, {}).items() if fields.get(name) is None},
    }


# -------------------------------------------------------------------------- response items
# Items of a response's output, and their parts, under construction.


@attrs.define(eq=False)
class OpenPart:
    """A part of an item under construction.

    Attributes:
        type: its type, of :data:`crosswalk.wire.responses.PARTS`.
        index: its position in its list.
        part: the number of its part of the answer.
        start: for a text, the length of the answer's text before it.
        texts: its text so far.
        annotations: for a text, its annotations so far.
        logprobs: for a text, its log probabilities so far.
        citations: for a text, those that came before it. They are annotations at its end.
    """

    type: str
    index: int
    part: int
    start: int = 0
    texts: list[str] = attrs.Factory(list)
    annotations: list[Event] = attrs.Factory(list)
    logprobs: list[Event] = attrs.Factory(list)
    citations: list[Piece] = attrs.Factory(list)

    @property
    def length(self) -> int:
        """The number of characters of its text so far."""
        return sum(map(len, self.texts))

    @property
    def text(self) -> Event:
        """Its text, under its key."""
        return {PARTS[self.type].leaf: "".join(self.texts)}

    def value(self) -> Event:
        """Return it, so far."""
        part: Event = {"type": self.type, **self.text}
        if self.type == "output_text":
            part["annotations"] = list(self.annotations)
            if self.logprobs:
                part["logprobs"] = list(self.logprobs)
        return part


@attrs.define(eq=False)
class OpenItem:
    """An item of the output under construction.

    Attributes:
        index: its position in the output.
        id: its id.
        type: its type.
        place: its position in the stored output, or ``None`` if it is not stored.
        whole: all of it, if it is written at once.
        about: its known metadata besides its texts.
        parts: its parts.
        arguments: for a call, its arguments.
        syntax: detects the end of the arguments.
    """

    index: int
    id: str
    type: str
    place: int | None = None
    whole: Event | None = None
    about: Event = attrs.Factory(dict)
    parts: list[OpenPart] = attrs.Factory(list)
    arguments: list[str] = attrs.Factory(list)
    syntax: JSONObjectText = attrs.Factory(JSONObjectText)

    @property
    def role(self) -> ItemRole | None:
        """The role of the item, or ``None`` for an unknown one, which comes whole."""
        return ITEMS[self.type].role if self.type in ITEMS else None

    def value(self, status: str, stored_fields: Event | None = None) -> Event:
        """Return it so far, with the fields *stored_fields* of the original item, which determine the status, too."""
        if self.whole is not None:
            return self.whole
        item: Event = {"id": self.id, "type": self.type, **self.about}
        if stored_fields is None:
            item["status"] = status
        if self.type == "message":
            item |= {"role": "assistant", "content": self._parts("content")}
        elif self.type == "reasoning":
            content = self._parts("content")
            item |= {"summary": self._parts("summary"), **({"content": content} if content else {})}
        elif self.role is ItemRole.CALL:
            text = "".join(self.arguments)
            is_given = bool(text) or stored_fields is not None or status == "in_progress"
            empty_text = "" if self.type == "custom_tool_call" else "{}"
            item[ITEMS[self.type].fields[0]] = text if is_given else empty_text
        if stored_fields is not None:
            put_back(item, stored_fields)
        return item

    def _parts(self, place: str) -> list[Event]:
        return [part.value() for part in self.parts if PARTS[part.type].list == place]


@attrs.define(eq=False)
class HeldCall:
    """A call without its name or id so far."""

    index: int
    id: str | None = None
    name: str | None = None
    type: str = "function_call"
    texts: list[str] = attrs.Factory(list)


# ------------------------------------------------------------------------------ kept items
# The stored items of a response that was read, and the one that is written next.


_EMPTY_ITEMS: Final[Mapping[str, Event]] = {
    "message": {"role": "assistant", "content": []},
    "reasoning": {"summary": []},
    "additional_tools": {"role": "assistant"},
}
"""The key of an item of which only the id is stored."""


class KeptItems:
    """The stored data of each item, in order, or empty if another form was read.

    Args:
        output: returns the stored data under the name ``output``, so far.
    """

    def __init__(self, output: Callable[[], Any]) -> None:
        self._output = output
        self._at = 0  # the number of items that have been written, or passed over
        self._passed_positions: list[int] = []

    def entry(self, place: int | None) -> Event:
        """Return the stored data of the item at *place*, or empty for ``None``."""
        entry = self._output()[place] if place is not None and place < self._count() else None
        return entry if isinstance(entry, dict) else {}

    def left_of(self, item: OpenItem, status: str, *, is_late: bool) -> Event | None:
        """Return the stored data of *item*, which ends with *status*, without newer facts, or ``None`` for a new item.

        If the answer *is late*, the item's own end has not been read yet.
        """
        if item.place is None:
            return None
        stored_fields: Event = copy_json(without_place(self.entry(item.place)))
        for name in ("added", *item.about):  # its beginning, or newer facts
            stored_fields.pop(name, None)
        if is_late and stored_fields.get("status") == "in_progress":
            stored_fields["status"] = status
        return stored_fields

    def next_is(self, type: str) -> bool:
        """Whether the next item that has pieces is of that *type*."""
        for position in range(self._at, self._count()):
            wire_item = ITEMS.get(self._type(position))
            if wire_item is not None and wire_item.role is not ItemRole.STATE:
                return self._type(position) == type
        return False

    def pass_over(
        self, type: str | None, called: str | None = None, id: Any = None
    ) -> tuple[int | None, dict[int, Event]]:
        """Return the position of the next item of *type* and *id*, or of a call of *called*, or ``None`` if there is none.

        The result includes the items before it, by position, that have had no pieces so far: all remaining items if *type*
        is ``None``. Behind the last one, the first of those is next: the answer has been reordered.
        """
        positions_ahead = range(self._at, self._count())
        position = next((number for number in positions_ahead if self._fits(number, type, called, id)), None)
        if position is None and type is not None:
            passed_position = next(
                (number for number in self._passed_positions if self._fits(number, type, called, id)), None
            )
            if passed_position is not None:
                self._passed_positions.remove(passed_position)
            return passed_position, {}
        passed_positions = range(self._at, self._count() if position is None else position)
        self._at = passed_positions.stop + 1
        self._passed_positions += passed_positions
        return position, {number: self._whole(self.entry(number)) for number in passed_positions}

    def _whole(self, entry: Event) -> Event:
        return {**_EMPTY_ITEMS.get(str(entry.get("type")), {}), **copy_json(without_place(entry))}

    def _count(self) -> int:
        output = self._output()
        return len(output) if isinstance(output, list) else 0

    def _type(self, place: int) -> str:
        return str(self.entry(place).get("type"))

    def _fits(self, place: int, type: str | None, called: str | None, id: Any) -> bool:
        item_type = self._type(place)
        if called is None or item_type not in ITEMS:
            return item_type == type and id in (None, self.entry(place).get("id", id))
        role = ITEMS[item_type].role
        return role is ItemRole.CALL or (role is ItemRole.ACTION and item_type == called)


# -------------------------------------------------------------------------- items of clients
# Items that a client sends: their types, the tools that they bring, and the answers that they were.


_LONGEST: Final = 64
"""The length of a tool's name that every API takes."""
CALLS: Final = {
    kind: item.fields[0]
    for kind, item in ITEMS.items()
    if item.role is ItemRole.CALL and item.id == "call_id"
}
"""The items that call a tool of the client by name, and their field for the arguments."""


CALL_IDS: Final = {
    "mcp_approval_response": ("approval_request_id",),
    "local_shell_call_output": ("call_id", "id"),
}
"""The fields with the id of a call in the items of its result, for those that have other ones than ``call_id``."""


def kind_of(item: Fields) -> str:
    """Return the type of *item*, which a client may leave out of a message or a reference."""
    kind = item.look("type")
    if kind is None and "role" in item:
        return "message"
    if kind is None and {*item} == {"id"}:
        return "item_reference"
    if not isinstance(kind, str):
        item.refuse("must be a string" if "type" in item else "is missing", "type")
    return kind


def answer_of(items: list[Fields]) -> Turn:
    """Return the answer of *items*: a message if they are a text and then calls, or else as its server sent it."""
    text: str | None = None
    calls: list[ToolCall] = []
    for item in items:
        kind, keys = kind_of(item), set(item)
        content = item.look("content")
        if (
            kind == "message"
            and keys <= {"type", "role", "content"}
            and isinstance(content, str)
            and not (text or calls)
        ):
            text = content
        elif kind in CALLS and keys == {"type", "call_id", "name", CALLS[kind]}:
            with placed(item):
                arguments, call_kind = (
                    item.look(CALLS[kind]),
                    "custom" if kind == "custom_tool_call" else None,
                )
                calls.append(ToolCall(item.look("call_id"), item.look("name"), arguments, call_kind))
        else:
            return _whole(items)
    for item in items:
        item.rest()
    with placed(items[0], "content"):
        return ChatMessage.assistant(text, tool_calls=calls or None)


def _whole(items: list[Fields]) -> Turn:
    output = [_spelled_out(item) for item in items]
    return answer(
        items[0], {"object": "response", "status": "completed", "output": output}, "openai_responses"
    )


def _spelled_out(item: Fields) -> dict[str, Any]:
    """Return *item* as a server sends it: a message that is only a text becomes parts."""
    kind = kind_of(item)
    if (text := told_if_unknown(item, RESPONSES, f"input[][{kind}]")) is not None:
        return {"type": "message", "role": "assistant", "content": [_output_text(text)]}
    if kind == "message" and isinstance(item.look("content"), list):
        parts = [_known_part(part) for part in item.objects("content")]
        return {**item.rest(), "content": parts, "type": kind}
    members = item.rest()
    if kind == "message" and isinstance(members.get("content"), str):
        members["content"] = [_output_text(members["content"])]
    return {**members, "type": kind}


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _known_part(part: Fields) -> dict[str, Any]:
    """Return *part* of an answer as its server sent it, or as a text if no part of its type is known."""
    text = told_if_unknown(part, RESPONSES, f"input[][message].content[][{part.look('type')}]")
    return part.rest() if text is None else _output_text(text)


def is_search_of_client(tool: Mapping[str, Any]) -> bool:
    """Whether *tool* is a search for tools that the client runs."""
    return tool.get("type") == "tool_search" and tool.get("execution") == "client"


def is_found_by_client(item: Mapping[str, Any]) -> bool:
    """Whether *item* brings the tools that a search of the client has found."""
    return item.get("type") == "tool_search_output" and item.get("execution") == "client"


def content_of(item: Fields, name: str) -> str | list[ContentPart] | None:
    """Return the content *name* of *item*: a text, or parts."""
    if isinstance(item.look(name), str | None):
        return item.text(name)
    at = f"input[][{item.given.get('type', 'message')}].{name}[]"
    read = (
        read_part(part) or told_part(part, RESPONSES, f"{at}[{part.given['type']}]")
        for part in item.objects(name)
    )
    return [part for part in read if part is not None]


def wants_of(body: Fields) -> Wants:
    """Return what the request in *body* asks of the gateway.

    Raises:
        FieldError: it continues two conversations.
    """
    RESPONSES.check_types(body)
    store, background = body.is_flag("store"), body.is_flag("background")
    previous, user = body.is_text("previous_response_id"), body.is_text("user")
    if previous is not None and body.look("conversation") is not None:
        body.refuse("cannot be used in conjunction with `conversation`", "previous_response_id")
    return Wants(
        include_usage=True,
        store=store,
        previous_response_id=previous,
        background=bool(background),
        user=user,
        defaults=take_neutral(body, "responses", {"store": True, "include": []}),
    )


def without_signatures(said: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the body *said* without reasoning that is marked as another API's, and what is left out, by its place."""
    items = said.get("input")
    results: dict[str, str] = {}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and str(item.get("encrypted_content")).startswith((SIGNED, ENCRYPTED)):
            results[f"input[{number}]"] = "reasoning of another provider"
    if not isinstance(items, list) or not results:
        return said, {}
    remaining = [item for number, item in enumerate(items) if f"input[{number}]" not in results]
    return {**said, "input": remaining}, results


def choice_of(
    body: Fields, tools: Collection[str], namespaces: Mapping[str, tuple[str, str]]
) -> str | NamedTool | None:
    """Return the choice of *body* among *tools*. Tools of *namespaces* that it names get the names that they have here."""

    def renamed(one: dict[str, Any]) -> dict[str, Any]:
        if isinstance(some := one.get("tools"), list):
            return {**one, "tools": [renamed(tool) if isinstance(tool, dict) else tool for tool in some]}
        space, inner = one.get("namespace"), one.get("name")
        for name, qualified_name in namespaces.items():
            if qualified_name == (space, inner):
                return {**{key: one[key] for key in one if key != "namespace"}, "name": name}
        if any(inner == other for _, other in namespaces.values()) and inner not in tools:
            body.refuse(f"{inner!r:.80} is a tool of several namespaces: add the `namespace`", "tool_choice")
        return one

    if isinstance(body.look("tool_choice"), dict):
        body.give("tool_choice", renamed(body.look("tool_choice")))
    return tool_choice(body, is_nested=False)


def tools_of(
    body: Fields,
) -> tuple[list[ToolDefinition], list[HostedTool], list[dict[str, Any]], dict[str, tuple[str, str]]]:
    """Return the client's tools, the server's tools, the MCP servers, and the namespaces by tool.

    The tools of a namespace are listed singly, because no other API has namespaces. If two tools have one name, those in a
    namespace get its name before theirs: ``sea__look``.
    """
    own: list[ToolDefinition] = []
    hosted: list[HostedTool] = []
    servers: list[dict[str, Any]] = []
    namespaces: dict[str, tuple[str, str]] = {}
    waiting: list[tuple[Fields, str | None]] = [(tool, None) for tool in body.objects("tools")]
    results: list[tuple[Fields, str | None]] = []
    while waiting:
        tool, namespace = waiting.pop(0)
        if tool.look("type") == "namespace" and isinstance(tool.look("tools"), list):
            tool.take("type")
            name = tool.need("name", tool.text("name"))
            about = ": ".join(filter(None, (name, tool.text("description"))))  # it says when to use them
            inside = [*tool.objects("tools")]
            for inner in inside:
                if inner.look("type") in ("function", "custom"):
                    inner.give("description", "\n\n".join(filter(None, (about, inner.text("description")))))
            waiting[:0] = [(inner, name) for inner in inside]
        else:
            results.append((tool, namespace))
    names = Counter(str(tool.look("name")) for tool, _ in results if "name" in tool)
    for tool, namespace in results:
        kind = tool.need("type", tool.is_text("type"))
        if kind in ("function", "custom"):
            tool.take("type")
            inner = tool.need("name", tool.text("name"))
            tool.give("name", inner)
            if namespace is not None:
                name = f"{namespace}__{inner}" if names[inner] > 1 else inner
                if name != inner and (len(name) > _LONGEST or name in names or name in namespaces):
                    tool.refuse(f"is the name of two tools, and cannot be {name!r} instead", "name")
                tool.give("name", name)
                namespaces[name] = (namespace, inner)
            own.append(
                definition(tool, RESPONSES, "tools[][function]")
                if kind == "function"
                else custom_definition(tool)
            )
        elif kind == "mcp" and isinstance(tool.look("server_url"), str):
            tool.take("type")
            servers.append(mcp_server(tool, RESPONSES, "tools[][mcp]"))
        elif kind == "file_search" or tool.look("container") not in (None, {"type": "auto"}):
            tool.leave()
        else:
            known = vendor_tool(tool, RESPONSES, kind)
            if isinstance(known, HostedTool) and not any(one.kind is known.kind for one in hosted):
                hosted.append(known)
            elif isinstance(known, ToolDefinition) and not any(one.name == known.name for one in own):
                own.append(known)
            else:
                tool.leave()
    return own, hosted, servers, namespaces


# ---------------------------------------------------------------------------- told again
# The events of a stream that tells a complete response once more.


_BEGUN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("usage", "completed_at", "incomplete_details", "error")),
    "status": "in_progress",
    "output": [],
}
"""The fields of a response of which nothing has come that differ from those of the complete one."""
_END_STATUSES: Final = ("completed", "incomplete", "failed")
"""The statuses of responses with which a stream may end."""


def told_again(told: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of a stream that says a response once more, each text in one piece.

    Its items, parts and annotations are those of the response, unchanged.
    """
    begun = {name: _BEGUN.get(name, value) for name, value in told.items()}
    status = told.get("status")
    end = status if status in _END_STATUSES else "incomplete"
    events = [
        *({"type": f"response.{word}", "response": begun} for word in ("created", "in_progress")),
        *(
            event
            for number, item in enumerate(told.get("output") or ())
            for event in _item_told(item, number)
        ),
        {"type": f"response.{end}", "response": told},
    ]
    for number, event in enumerate(events):
        yield {"type": event["type"], "sequence_number": number, **event}


def _item_told(item: Event, number: int) -> Iterator[Event]:
    kind, begun = str(item.get("type")), {**item, **({"status": "in_progress"} if "status" in item else {})}
    wire_item, field = ITEMS.get(kind), FAMILIES.get((EventRole.FIELD, kind))
    steps: list[Event] = [{"type": f"response.{kind}.{word}"} for word in status_words(item)]
    if wire_item is not None and wire_item.role is ItemRole.TEXT:
        lists = {name: item[name] for name in LISTS if isinstance(item.get(name), list)}
        begun |= {name: [] for name in lists}
        for name, parts in lists.items():
            for index, part in enumerate(parts):
                steps += ({**step, LISTS[name]: index} for step in _part_told(part, name))
    elif wire_item is not None and wire_item.role is ItemRole.CALL and field is not None:
        name, text = wire_item.fields[0], item.get(wire_item.fields[0])
        if isinstance(text, str):
            begun[name] = ""
            said = {name: text, "name": item.get("name")}
            steps += (
                {"type": f"response.{field}.delta", "delta": text},
                {"type": f"response.{field}.done", **said},
            )
    yield {"type": "response.output_item.added", "output_index": number, "item": begun}
    yield from ({**step, "item_id": item.get("id"), "output_index": number} for step in steps)
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


def status_words(item: Mapping[str, Any]) -> list[str]:
    """Return the words of the events by which the complete *item* of a server's tool has come to its status."""
    kind, end = str(item.get("type")), item.get("status")
    words = STATUSES.get(kind, ())
    ends = {"completed", "failed"} - {end if end == "completed" or kind.startswith("mcp_") else None}
    return [word for word in words if word not in ends] if "completed" in words else []


def _part_told(part: Event, list_name: str) -> Iterator[Event]:
    wire_part = PARTS.get(str(part.get("type")))
    text = None if wire_part is None else part.get(wire_part.leaf)
    if wire_part is None or wire_part.list != list_name or not isinstance(text, str):
        return
    kind, annotations = part["type"], part.get("annotations")
    empty: Event = {name: [] for name in ("annotations", "logprobs") if name in part}
    logprobs = {"logprobs": part.get("logprobs") or []} if kind == "output_text" else {}
    family = f"response.{FAMILIES[EventRole.PART, list_name]}"
    text_family = f"response.{FAMILIES[EventRole.TEXT, kind]}"
    yield {"type": f"{family}.added", "part": {**part, wire_part.leaf: "", **empty}}
    yield {"type": f"{text_family}.delta", "delta": text, **logprobs}
    for number, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
        about = {"annotation": annotation, "annotation_index": number}
        yield {"type": "response.output_text.annotation.added", **about}
    yield {"type": f"{text_family}.done", wire_part.leaf: text, **logprobs}
    yield {"type": f"{family}.done", "part": part}


# ---------------------------------------------------------------------------- names of kept things
# What an item of a client names, without saying it: something that a server keeps.


_APPROVAL: Final = "mcp_approval_request"
MADE_UP_ID: Final = re.compile(r"[a-z]+_[0-9a-f]{12}5[0-9a-f]{3}[89ab][0-9a-f]{15}")
"""The id of an item that Crosswalk has made up: see :class:`crosswalk.formats.responses.ResponsesWriter`."""
_LABELS: Final = frozenset(("type", "id", "status"))
"""The fields of an item that says nothing itself: it names one that the server keeps, such as an image."""
_UNNAMED_TYPES: Final = (None, "item_reference", "reasoning", "compaction")
"""The types of items that name nothing by their ids, or that servers get only from their own answers."""
_NAME_PLACES: Final = (("container_id",), ("environment", "container_id"), ("approval_request_id",))
"""The places in an input item that name what the server keeps."""


def names_in(given: Any) -> Iterator[tuple[str, str]]:
    """Return the path and the id of what the items of the input *given* name, apart from references to other items.

    A request for an approval that the same input holds is not kept elsewhere.
    """
    items = given if isinstance(given, list) else ()
    own_ids = {item.get("id") for item in items if item.get("type") == _APPROVAL}
    for number, item in enumerate(items):
        path, id = f"input[{number}]", item.get("id")
        is_name = "type" in item and {key for key in item if item[key] not in (None, "", [])} <= _LABELS
        if is_name and item["type"] not in _UNNAMED_TYPES and isinstance(id, str):
            yield path, id
        for steps in _NAME_PLACES:
            named: Any = item
            for step in steps:
                named = named.get(step) if isinstance(named, dict) else None
            if isinstance(named, str) and named not in own_ids:
                yield ".".join((path, *steps)), named


def approval_ids(output: Any) -> Iterator[str]:
    """Return the ids of the calls in the stored data *output* of a response for which its server waits for an approval."""
    for item in output if isinstance(output, tuple) else ():
        if (
            isinstance(item, Mapping)
            and item.get("type") == _APPROVAL
            and isinstance(id := item.get("id"), str)
        ):
            yield id
