"""What has been said of an answer so far: a stream says most things two to five times.

Each text comes in pieces, then whole, then again in its part, its item and the response. An :class:`Answer` knows
what canonical values already carry, so that a repetition adds nothing, an addition adds only itself, and a
contradiction stays visible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.plugins import (
    CitationRef,
    MappingState,
    Provenance,
    ResponseDelta,
    Segment,
    SegmentType,
    Texts,
    TokenLogprob,
    accept_logprobs,
    accept_objects,
    dump_json,
    look_at,
    look_at_count,
    responses_wire as wire,
    same_json,
    take_count,
    take_objects,
    take_same,
    take_string,
    take_whole,
)

__all__ = [
    "Answer",
    "Deltas",
    "Item",
    "Object",
    "Part",
    "citation",
    "entry",
    "look_string",
    "number_parts",
    "numbered",
]

Object: TypeAlias = dict[str, Any]
"""A JSON object, to be taken apart."""
Deltas: TypeAlias = Iterable[ResponseDelta]


@attrs.define(eq=False)
class Part:
    """One text of an item.

    Attributes:
        place: the list of its item that it is in: ``content`` or ``summary``.
        number: its place in that list.
        type: the provider's word for what it is.
        known: what is known of that type.
        pieces: the text so far.
        tokens: the log probabilities so far.
        citations: what citations carry of its annotations, by number.
    """

    place: str
    number: int
    type: str
    known: wire.WirePart
    pieces: list[str] = attrs.Factory(list)
    tokens: list[TokenLogprob] = attrs.Factory(list)
    citations: dict[int, Object] = attrs.Factory(dict)

    def drop_carried(self, raw: Object) -> None:
        """Take from *raw*, this part or something of it, what canonical values already carry."""
        known: Object = {"type": self.type, self.known.leaf: "".join(self.pieces)}
        if raw.get("logprobs"):
            known["logprobs"] = [_token(token) for token in self.tokens]
        drop_known(raw, known)
        notes = raw.get("annotations")
        for number, note in enumerate(notes if type(notes) is list else ()):
            if type(note) is dict:
                drop_known(note, self.citations.get(number, {}))
        for name in ("annotations", "logprobs"):
            if name in raw and (raw[name] is None or (type(raw[name]) is list and not any(raw[name]))):
                del raw[name]


def _token(token: TokenLogprob) -> Object:
    """*token* as the provider writes it."""
    return {
        "token": token.token,
        "logprob": token.logprob,
        "bytes": None if token.bytes is None else list(token.bytes),
        "top_logprobs": [_token(other) for other in token.top],
    }


@attrs.define(eq=False)
class Item:
    """One item of the output.

    Attributes:
        number: its place among the items, in order of appearance.
        index: the provider's number for it; ``None`` where it sends none.
        id: the provider's id; ``None`` until one comes.
        type: the provider's word for what it is; ``None`` until one comes.
        parts: its texts, by list (``content`` or ``summary``), number in it, and type.
        call: what the state knows of its tool call; ``None`` where it is none of the client's, or not yet.
        by_server: whether it is a call that the server answers, although its type does not say so.
        payload: the payload, for the server alone, that it began with: the next one replaces it; ``None`` without.
        kept: what segments carry of it, in the provider's structure.
        pieces: what was streamed of a server's tool, by family of events and number of the command.
        is_whole: whether it has come as a whole.
    """

    number: int
    index: int | None = None
    id: str | None = None
    type: str | None = None
    parts: dict[tuple[str, int, str], Part] = attrs.Factory(dict)
    call: Any = None
    by_server: bool = False
    payload: str | None = None
    kept: Object = attrs.Factory(dict)
    pieces: dict[tuple[str, int | None], list[Any]] = attrs.Factory(dict)
    is_whole: bool = False
    _numbers: dict[str, set[int]] = attrs.Factory(dict)  # of the parts, by list
    _last: dict[tuple[str, str], int] = attrs.Factory(dict)  # the highest of them, by list and type

    def part(self, place: str, number: int | None, type: str, *, opens: bool = False) -> Part:
        """The part of *type* in the list *place*; made where there is none.

        Without a *number*, which some servers leave out, it is the last one; a new one where it *opens*.
        """
        if number is None:
            last = self._last.get((place, type))
            number = 0 if last is None else last + opens
        key = (place, number, type)
        found = self.parts.get(key)
        if found is None:
            found = self.parts[key] = Part(place, number, type, wire.PARTS[type])
            self._numbers.setdefault(place, set()).add(number)
            self._last[place, type] = max(number, self._last.get((place, type), number))
        return found

    def expects(self, place: str, number: int, *, opens: bool) -> bool:
        """Whether a part of that number has begun; else whether it is the one that may begin now."""
        known = self._numbers.get(place, ())
        return number in known or (number == len(known) and (opens or number == 0))


class Answer(Texts):
    """What has been said of one answer.

    Attributes:
        items: in order of appearance.
        has_begun: whether the answer has been created.
        has_ended: whether it has come to its end.
        tells_status: whether the extensions tell a status: then they tell the next one, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Item] = []
        self.has_begun = False
        self.has_ended = False
        self.tells_status = False
        # The names of the client's tools; None where nothing tells them all.
        self._declared: set[str] | None = None
        self._sequence: int | None = None
        self._is_numbered = False  # whether the last event had a number
        self._spoken: Part | None = None  # whose text came last; None where it was a call's
        self._last: Item | None = None
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[int, Item] = {}  # of several the last

    def take_sequence_number(self, event: Object) -> None:
        """Take the event's number where it follows the one before: the order of the deltas says the same."""
        number = event.get("sequence_number")
        self._is_numbered = type(number) is int
        if type(number) is int:
            if self._sequence is not None and number == self._sequence + 1:
                del event["sequence_number"]
            self._sequence = number

    def hear(self, unseen: Mapping[int, list[str]]) -> None:
        """Take the pieces that were *unseen*: each of an event like the last one, with the next number."""
        pieces = unseen.get(0, [])
        if self._spoken is not None:
            self._spoken.pieces += pieces
        if self._sequence is not None and self._is_numbered:
            self._sequence += len(pieces)

    # What the client has declared.

    def note_tools(self, tools: Any) -> None:
        """Note which *tools* the response was given; an empty list, which some servers always send, tells nothing."""
        if type(tools) is list and tools:
            found = [*_flat(tools)]
            names = {name for tool in found if type(name := tool.get("name")) is str}
            # Where tools are searched for later, these are not all.
            self._declared = None if any(tool.get("type") == "tool_search" for tool in found) else names

    def may_declare(self, name: Any) -> bool:
        """Whether a custom tool of that *name* may be one of the client's."""
        return self._declared is None or type(name) is not str or name in self._declared

    # Which item an event tells of.

    @property
    def text(self) -> str:
        """The text so far, without reasoning and refusals."""
        return "".join(
            piece
            for item in self.items
            for part in item.parts.values()
            if part.known.segment is SegmentType.TEXT
            for piece in part.pieces
        )

    def item(self, event: Object, raw: Object | None = None, *, opens: bool = False) -> Item:
        """The item that *event* tells of: by id, else by index, else the last one; made where there is none.

        Ollama numbers a text and the call after it alike; other servers change the id in mid-stream, or send no
        number at all. What of the two does not agree with what is known stays in the event.

        Args:
            event: the event.
            raw: the item itself, which then says its id; ``None`` where the event has but something of it.
            opens: whether it begins here: then it is a new one, unless pieces of it came.
        """
        last = self._last
        if raw is None and last is not None and last.id is not None and last.index is not None:
            number = event.get("output_index")
            if type(number) is int and number == last.index and event.get("item_id") == last.id:
                del event["output_index"], event["item_id"]
                return last
        index = take_count(event, "output_index")
        id = (take_string(event, "item_id") if raw is None else look_string(raw, "id")) or None
        found, is_new = self._find(index, id), False
        if found is None or (opens and found.type is not None and (id is None or found.id != id)):
            found, is_new = self._add_item(), True
        if raw is None and is_new:
            entry(event, found)  # the extensions list all items
        if raw is None and id not in (None, found.id):
            entry(event, found)["id" if found.id is None else "item_id"] = id
        if index is not None and index != (found.number if is_new else found.index):
            entry(event, found)["output_index"] = index
        self._identify(found, index, id)
        self._last = found
        return found

    def matched(self, output: list[Object]) -> Iterator[tuple[Item, Object]]:
        """Each item of a response with the one that the stream told of, if it did.

        They are matched by id, else by place, else by type: some servers give other ids in the end, or another order.
        """
        pairs: dict[int, Item] = {}
        _pair(output, "id", self.items, pairs)
        taken = set(pairs.values())
        for number, (item, raw) in enumerate(zip(self.items, output, strict=False)):
            if number not in pairs and item not in taken and item.type in (None, raw.get("type")):
                pairs[number] = item
                taken.add(item)
        _pair(output, "type", [item for item in self.items if item not in taken], pairs)
        for number, raw in enumerate(output):
            item = pairs.get(number) or self._add_item()
            self._identify(item, None, look_string(raw, "id") or None)
            yield item, raw

    def _find(self, index: int | None, id: str | None) -> Item | None:
        found = None if id is None else self._by_id.get(id)
        if found is not None:
            return found
        if index is not None:
            return self._by_index.get(index)
        last = self.items[-1] if self.items else None
        return last if last is not None and (id is None or last.id is None) else None

    def _add_item(self) -> Item:
        item = Item(len(self.items))
        self.items.append(item)
        return item

    def _identify(self, item: Item, index: int | None, id: str | None) -> None:
        """Give *item* the number and the id that it does not have yet."""
        if index is not None and item.index is None:
            item.index = index
            known = self._by_index.setdefault(index, item)
            if known.number < item.number:
                self._by_index[index] = item
        if id is not None and item.id is None:
            item.id = id
            self._by_id.setdefault(id, item)

    # What is said.

    def add(self, part: Part, text: str, tokens: tuple[TokenLogprob, ...] | None = None) -> Deltas:
        """The deltas of *text*, more of *part*."""
        part.pieces.append(text)
        self._spoken = part
        if tokens:
            part.tokens.extend(tokens)
        return self.say(part.known.segment, part, text or None, tokens)

    def insert(self, segment: Segment) -> ResponseDelta:
        """The delta of a whole segment, which ends the text before it; a citation does not."""
        is_beside = segment.type is SegmentType.CITATION
        return ResponseDelta(segment=segment) if is_beside else super().insert(segment)

    # What a whole item adds, and its call.

    def item_deltas(self, raw: Object, item: Item, state: MappingState) -> Deltas:
        """What *raw*, all of *item*, adds to what was said of it; nothing for a type that is not known.

        What canonical values carry of it is taken.

        Raises:
            WireTypeError: a text, or something of a call, has another type than the API promises.
        """
        yield from self.opening_deltas(raw, item, state)
        known = wire.ITEMS.get(item.type or "")
        role = None if known is None else known.role
        take_same(raw, "role", "assistant")
        if role is wire.ItemRole.TEXT:
            yield from self._texts(raw, item, state)
        elif known is not None and role is wire.ItemRole.CALL and not item.by_server:
            yield from self.argument_deltas(raw, known.fields[0], item, state)
        elif known is not None and not item.is_whole:
            if role is wire.ItemRole.ACTION and not item.by_server:
                yield from self._action(raw, known, item, state)
            elif role is not wire.ItemRole.STATE:
                yield from self._whole(raw, known, item)
        item.is_whole = True
        drop_known(raw, {name: value for name, value in item.kept.items() if name not in _ALWAYS_LEFT})
        number_parts(raw)

    def part_deltas(self, raw: Object, part: Part, state: MappingState) -> Deltas:
        """What *raw*, all of *part*, adds to what was said of it."""
        more, tokens = _added(raw, part.known.leaf, part.pieces, _WHERE[part.known.segment], state), None
        if "logprobs" in raw and not part.tokens:
            tokens = accept_logprobs(raw, "logprobs")
        if more or tokens:
            yield from self.add(part, more, tokens)
        for number, note in enumerate(accept_objects(raw, "annotations")):
            if number not in part.citations:
                yield self.insert(citation(note, part, number))
        part.drop_carried(raw)

    def _texts(self, raw: Object, item: Item, state: MappingState) -> Deltas:
        """The parts of a message or of reasoning, which may be nothing but a payload to be sent back, or an id alone."""
        for name in wire.LISTS:
            for number, part in enumerate(take_objects(raw, name)):
                kind = look_string(part, "type") or ""
                if kind in wire.PARTS:
                    yield from self.part_deltas(part, item.part(name, number, kind), state)
        # What is known of the text before: the deltas of a text have no room for it.
        is_message = item.type == "message"
        kind = SegmentType.TEXT if is_message else SegmentType.REASONING
        field, name = ("phase", "phase") if is_message else ("encrypted_content", "encrypted")
        about = {"id": raw["id"]} if raw.get("id") else {}
        value = look_at(raw, field, str) or (None if is_message else item.payload)
        if value and field not in item.kept:
            item.kept[field] = about[name] = value
        elif is_message or item.is_whole or item.kept or any(part.pieces for part in item.parts.values()):
            return
        yield self.insert(Segment(kind, "", about))

    def call_deltas(
        self,
        item: Item,
        state: MappingState,
        *,
        id: str | None = None,
        name: str | None = None,
        arguments: str = "",
    ) -> Deltas:
        """The delta of a call's first or next fragment, as far as it says anything new."""
        known = item.call
        id = id if known is None or known.id is None else None
        name = name if known is None or known.name is None else None
        if known is not None and not (id or name or arguments):
            return
        fragment = state.tool_call(
            index=item.number, id=id, name=name, arguments=arguments, whole=known is None
        )
        self._spoken = None
        if known is None:
            item.call = state.choice(0).calls[fragment.index]
        self.end()
        yield ResponseDelta(tool_call_delta=fragment)

    def argument_deltas(self, raw: Object, leaf: str, item: Item, state: MappingState) -> Deltas:
        """What the text under *leaf*, all arguments of a call, adds to their pieces."""
        where = f"message.tool_calls[{item.call.index}].arguments"
        return self.call_deltas(item, state, arguments=_added(raw, leaf, item.call.arguments, where, state))

    def opening_deltas(self, raw: Object, item: Item, state: MappingState) -> Deltas:
        """The delta of a call's id and name. Its arguments may be there already and come again in pieces: they wait."""
        kind = item.type = look_string(raw, "type") or item.type
        item.by_server = self._is_by_server(raw, item)
        known = wire.ITEMS.get(kind or "")
        if known is None or known.role is not wire.ItemRole.CALL or item.by_server:
            return
        key = "id" if kind == "mcp_approval_request" else "call_id"
        id, name = look_string(raw, key), look_string(raw, "name")
        yield from self.call_deltas(item, state, id=id or None, name=name or None)
        if key != "id":
            take_same(raw, key, item.call.id)
        take_same(raw, "name", item.call.name)

    def _action(self, raw: Object, known: wire.WireItem, item: Item, state: MappingState) -> Deltas:
        """A call of a tool without a name: it is called by its type, and what to do is its arguments."""
        asked = {name: raw[name] for name in known.fields if raw.get(name) is not None}
        arguments: Any = asked
        if item.type == "tool_search_call" and type(asked.get("arguments")) is dict:
            arguments = asked["arguments"]
        id = look_string(raw, "call_id") or None
        text = dump_json(arguments).decode()
        yield from self.call_deltas(item, state, id=id, name=item.type, arguments=text)
        state.note(f"message.tool_calls[{item.call.index}].name", Provenance.DERIVED)
        item.kept = {**asked, "call_id": item.call.id}
        for name in asked:
            del raw[name]

    def _is_by_server(self, raw: Object, item: Item) -> bool:
        """Whether the server itself runs a call that its type leaves to the client.

        A shell in a container of its own; a search for tools of its own; a custom tool that nobody has declared, as xAI's
        search on X is.
        """
        if item.type == "shell_call":
            environment = raw.get("environment")
            return type(environment) is dict and environment.get("type") == "container_reference"
        if item.type == "tool_search_call":
            return raw.get("execution") == "server"
        if item.type == "custom_tool_call":
            return item.call is None and not raw.get("namespace") and not self.may_declare(raw.get("name"))
        return False

    def _whole(self, raw: Object, known: wire.WireItem, item: Item) -> Deltas:
        """All of *raw*: what was asked, or the image that was made, as the content, anything else as metadata."""
        is_image, field, kind = known.role is wire.ItemRole.MEDIA, (known.fields or ("",))[0], known.kind
        if "arguments" in raw and field != "arguments" and not is_image:
            field, kind = "arguments", str  # xAI writes its searches like calls of functions
        asked = look_at(raw, field, kind)
        if is_image and not asked:
            return
        content = asked if asked is None or type(asked) is str else dump_json(asked).decode()
        item.kept = take_whole(raw)
        raw.update({name: value for name, value in item.kept.items() if name in _ALWAYS_LEFT})
        about = {name: value for name, value in item.kept.items() if name != field or value is None}
        if is_image:
            about["encoding"] = "base64"
            format = about.get("output_format")
            if type(format) is str and format:
                about["media_type"] = f"image/{format}"
        yield self.insert(
            Segment(SegmentType.MEDIA if is_image else SegmentType.TOOL_CALL, content or "", about)
        )


def _flat(tools: list[Any]) -> Iterator[Object]:
    """The *tools*, with those inside others."""
    for tool in tools:
        if type(tool) is dict:
            yield tool
            inner = tool.get("tools")
            yield from _flat(inner) if type(inner) is list else ()


def _pair(output: list[Object], name: str, items: list[Item], pairs: dict[int, Item]) -> None:
    """Add to *pairs*, for each of *output* that is in none, the first of *items* of the same *name*: ``id`` or ``type``."""
    waiting: dict[Any, deque[Item]] = {}
    for item in items:
        waiting.setdefault(getattr(item, name), deque()).append(item)
    for number, raw in enumerate(output):
        word = raw.get(name)
        found = waiting.get(word) if number not in pairs and type(word) is str else None
        if found:
            pairs[number] = found.popleft()


# What is left of an event.


def entry(event: Object, item: Item) -> Object:
    """What is left of *event* about *item*, its one item, listed under ``output`` as in a body; to be added to."""
    if "output" not in event:
        event["output"] = [{"index": item.number}]
    found: Object = event["output"][0]
    return found


def numbered(left: Object, number: int) -> Object:
    """*left* with the number of what it is left of as ``index``; an ``index`` of its own gets another name."""
    rest = {"own_index" if name == "index" else name: value for name, value in left.items()}
    left.clear()
    left.update({"index": number, **rest})
    return left


def drop_known(raw: Object, known: Object) -> None:
    """Take from *raw* what *known*, of the same structure, has too; items of lists keep their places."""
    for name in [name for name in raw if name in known and _take_known(raw[name], known[name])]:
        del raw[name]


def _take_known(value: Any, known: Any) -> bool:
    """Take from *value* what *known* has too; whether nothing is left."""
    if type(value) is dict and type(known) is dict:
        drop_known(value, known)
        return not value
    if type(value) is list and type(known) is list and all(type(item) is dict for item in value):
        for item, other in zip(value, known, strict=False):
            _take_known(item, other)
        return not any(value)
    return value is None or same_json(value, known)


def look_string(raw: Object, name: str) -> str | None:
    """The string under *name*, which is left where it is.

    Raises:
        WireTypeError: it is something else.
    """
    found = raw.get(name)
    return found if type(found) is str else take_string(raw, name)


# The deltas of a whole item: of a body, of ``response.output_item.done``, and of the response that ends a stream (section
# 2.1). Of an item that was streamed only what its pieces did not say.

_ALWAYS_LEFT: Final = {"id", "type", "status"}
"""What the extensions always tell of an item, so that they list all items, whatever became of each."""


def number_parts(raw: Object) -> None:
    """Number what is left of the parts of *raw*."""
    for name in wire.LISTS:
        parts = raw.get(name)
        if type(parts) is list and all(type(part) is dict for part in parts):
            raw[name] = [numbered(part, number) for number, part in enumerate(parts) if part]
            if not raw[name]:
                del raw[name]


# Texts.


_WHERE: Final = {
    SegmentType.TEXT: "message.content",
    SegmentType.REFUSAL: "refusal",
    SegmentType.REASONING: "segments",
}


def _added(raw: Object, leaf: str, pieces: list[str], where: str, state: MappingState) -> str:
    """What the text under *leaf*, all of it, adds to its *pieces*.

    One that contradicts them cannot take them back: it stays, and the provenance of *where* says so.
    """
    text, before = take_string(raw, leaf), "".join(pieces)
    if text is None or text.startswith(before):
        return (text or "")[len(before) :]
    raw[leaf] = text
    state.note(where, Provenance.DERIVED)
    return ""


def citation(note: Object, part: Part, number: int) -> Segment:
    """*note*, annotation *number* of *part*, as a segment, which takes all of it (section 2.2).

    What is cited is the content, where it is the reference, the rest metadata; what has another type is left.
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


# Calls that the client answers.


# What the server did by itself.
