"""The state of an answer while it is read. A stream sends most things two to five times."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.plugins import (
    Correction,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    Texts,
    TokenLogprob,
    logprob_of,
    responses as wire,
    same_json,
    take_count,
    take_string,
)

# ------------------------------------------------------------------------------------ left
# The remainder of an event: its place in the extensions, and the removal of data that need not be repeated.


Object: TypeAlias = dict[str, Any]
"""A JSON object, to be taken apart."""


def numbered(leftover: Object, number: int) -> Object:
    """Return *leftover* with the number of its source as ``index``. An existing ``index`` gets another name."""
    remainder = dict(leftover)
    leftover.clear()
    leftover["index"] = number
    if "index" in remainder:
        remainder = {"own_index" if name == "index" else name: value for name, value in remainder.items()}
    leftover.update(remainder)
    return leftover


def drop_known(raw_object: Object, known: Object) -> None:
    """Remove from *raw_object* the data that *known*, of the same structure, also has. Items of lists keep their places."""
    for name in [name for name in raw_object if name in known and _take_known(raw_object[name], known[name])]:
        del raw_object[name]


def _take_known(value: Any, known_value: Any) -> bool:
    """Remove from *value* the data that *known_value* also has, and return whether nothing is left."""
    if type(value) is dict and type(known_value) is dict:
        drop_known(value, known_value)
        return not value
    if type(value) is list and type(known_value) is list and all(type(item) is dict for item in value):
        for item, other in zip(value, known_value, strict=False):
            _take_known(item, other)
        return not any(value)
    return value is None or same_json(value, known_value)


def look_string(raw_object: Object, name: str) -> str | None:
    """Return the string under *name*, without removing it.

    Raises:
        WireTypeError: it is something else.
    """
    value = raw_object.get(name)
    return value if type(value) is str else take_string(raw_object, name)


def number_parts(raw_item: Object) -> None:
    """Number the remaining parts of *raw_item*."""
    for name in wire.LISTS:
        parts = raw_item.get(name)
        if type(parts) is list and {dict}.issuperset(map(type, parts)):
            if any(parts):
                raw_item[name] = [numbered(part, number) for number, part in enumerate(parts) if part]
            else:
                del raw_item[name]


# ----------------------------------------------------------------------------------- items
# The items of an answer and their texts: the state of each so far.


@attrs.define(eq=False, repr=False)
class Part:
    """One text of an item.

    Attributes:
        place: the list of its item that it is in: ``content`` or ``summary``.
        number: its place in that list.
        type: the provider's word for its type.
        known: the entry for that type.
        pieces: the text so far.
        runs: where its text was streamed, between that of other parts.
        tokens: the log probabilities so far.
        citations: the data of its annotations that citations carry, by number.
        is_announced: whether an event announced its beginning.
        is_whole: whether its whole text has come.
    """

    place: str
    number: int
    type: str
    known: wire.WirePart
    pieces: list[str] = attrs.Factory(list)
    runs: list[Run] = attrs.Factory(list)
    tokens: list[TokenLogprob] = attrs.Factory(list)
    citations: dict[int, Object] = attrs.Factory(dict)
    is_announced: bool = False
    is_whole: bool = False

    def drop_carried(self, raw_part: Object) -> None:
        """Remove from *raw_part*, this part or a fragment of it, the data that canonical values already carry."""
        for name, text in (("type", self.type), (self.known.leaf, "".join(self.pieces))):
            if name in raw_part and raw_part[name] in (None, text):
                del raw_part[name]
        if raw_part.get("logprobs"):
            drop_known(raw_part, {"logprobs": [logprob_of(token) for token in self.tokens]})
        annotations = raw_part.get("annotations")
        for number, annotation in enumerate(annotations if type(annotations) is list else ()):
            if type(annotation) is dict:
                drop_known(annotation, self.citations.get(number, {}))
        for name in ("annotations", "logprobs"):
            items = raw_part.get(name)
            if items is None or (
                type(items) is list and (not items or all(one in (None, {}) for one in items))
            ):
                raw_part.pop(name, None)


@attrs.define(eq=False)
class Run:
    """A number of characters that were streamed of one part after the other parts."""

    part: Part
    length: int


@attrs.define(eq=False, repr=False)
class Item:
    """One item of the output.

    Attributes:
        number: its place among the items, in order of appearance.
        index: the provider's number for it, or ``None`` if it sends none.
        id: the provider's id, or ``None`` until one comes.
        type: the provider's word for its type, or ``None`` until one comes.
        parts: its texts, by list (``content`` or ``summary``), number in it, and type.
        call: the state of its tool call, or ``None`` if it is not a call of the client's tools, or not yet.
        by_server: whether it is a call that the server answers, although its type does not imply that.
        encrypted_content: the payload, for the server alone, that it began with, or ``None``. The next one replaces it.
        kept: the data of it that segments carry, in the provider's structure.
        pieces: the streamed output of a server's tool, by family of events and number of the command.
        is_whole: whether it has come as a whole.
    """

    number: int
    index: int | None = None
    id: str | None = None
    type: str | None = None
    parts: dict[tuple[str, int, str], Part] = attrs.Factory(dict)
    call: Any = None
    by_server: bool = False
    encrypted_content: str | None = None
    kept: Object = attrs.Factory(dict)
    pieces: dict[tuple[str, int | None], list[Any]] = attrs.Factory(dict)
    is_whole: bool = False
    _numbers: dict[str, set[int]] = attrs.Factory(dict)  # of the parts, by list
    _last: dict[tuple[str, str], int] = attrs.Factory(dict)  # the highest of them, by list and type

    def is_other(self, has_text: bool | None) -> bool:
        """Whether an event that *has_text*, or is of a call (``None`` if of either), is of another item by its type."""
        return (
            has_text is not None
            and self.type in wire.ITEMS
            and has_text is not (self.type in _TEXT_ITEM_TYPES)
        )

    def part(self, place: str, number: int | None, type: str, *, opens: bool = False) -> Part:
        """Return the part of *type* in the list *place*. A missing part is created.

        Without a *number*, which some servers leave out, it is the last part, or a new one if the event *opens* a part.
        """
        if number is None:
            last_number = self._last.get((place, type))
            number = 0 if last_number is None else last_number + opens
        key = (place, number, type)
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = Part(place, number, type, wire.PARTS[type])
            self._numbers.setdefault(place, set()).add(number)
            self._last[place, type] = max(number, self._last.get((place, type), number))
        part.is_announced = part.is_announced or opens
        return part

    def repeated(self, place: str, number: int, type: str, text: object) -> Part | None:
        """Return the streamed part that *text*, all of a part, repeats under another *number*.

        There must be exactly one candidate of its type, and *text* must begin with its text. A candidate has no whole text
        yet, or its pieces came under a number that was not announced while *number* was. Return ``None`` otherwise, or if
        the part under *number* has pieces.
        """
        own_part = self.parts.get((place, number, type))
        if own_part is not None and own_part.pieces:
            return None
        candidates = [
            part
            for part in self._streamed(place, type)
            if not part.is_whole or (own_part is not None and not part.is_announced)
        ]
        if (
            len(candidates) != 1
            or not isinstance(text, str)
            or not text.startswith("".join(candidates[0].pieces))
        ):
            return None
        self.parts[place, number, type] = candidates[0]
        return candidates[0]

    def renumber(self, place: str, types: list[str]) -> Iterator[tuple[Part, list[Part]]]:
        """Give the streamed parts of the list *place* the numbers of the whole item, which has parts of these *types*.

        Parts keep their numbers if the whole item has a part of their type under each of them. Otherwise the first part of
        a type that was streamed is the first of that type in the item, and so on.

        Yields:
            The last part of a type, and the parts that were streamed beyond it.
        """
        for type in set(types):
            numbers = [number for number, other in enumerate(types) if other == type]
            streamed_parts = self._streamed(place, type)
            if {part.number for part in streamed_parts} <= {*numbers}:
                continue
            for part, number in zip(streamed_parts, numbers, strict=False):
                part.number = number
                self.parts[place, number, type] = part
            if len(streamed_parts) > len(numbers):
                yield streamed_parts[len(numbers) - 1], streamed_parts[len(numbers) :]

    def _streamed(self, place: str, type: str) -> list[Part]:
        parts_by_number = {
            part.number: part for part in self.parts.values() if (part.place, part.type) == (place, type)
        }
        return [part for _, part in sorted(parts_by_number.items()) if part.pieces]

    def expects(self, place: str, number: int, *, opens: bool) -> bool:
        """Return whether a part of that number has begun, or is the one that may begin now."""
        known_numbers = self._numbers.get(place, ())
        return number in known_numbers or (number == len(known_numbers) and (opens or number == 0))

    def entry(self, event: Object) -> Object:
        """Return the single entry for this item's remainder in *event*, under ``output`` as in a body, to be added to."""
        if "output" not in event:
            event["output"] = [{"index": self.number}]
        entry: Object = event["output"][0]
        return entry


# ---------------------------------------------------------------------------------- answer
# The state of an answer while it is read. A stream sends most things two to five times.
#
# Each text comes in pieces, then whole, then again in its part, its item and the response. An :class:`Answer` records
# which data canonical values already carry, so that a repetition adds nothing, an addition adds only itself, and a
# contradiction stays visible.


Deltas: TypeAlias = Iterable[ResponseDelta]


_TEXT_ITEM_TYPES: Final = ("message", "reasoning")


class Answer(Texts):
    """The state of one answer.

    Attributes:
        items: in order of appearance.
        has_begun: whether the answer has been created.
        has_ended: whether it has come to its end.
        tells_status: whether the extensions contain a status. If so, they also take the next one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Item] = []
        self.has_begun = False
        self.has_ended = False
        self.tells_status = False
        # The names of the client's tools; None if they are not all known.
        self._declared_names: set[str] | None = None
        self._sequence_number: int | None = None
        self._beat_number: int | None = None  # the number of a keep-alive since
        self._start: int | None = None  # the number of the first keep-alive
        self._is_numbered = False  # whether the last event had a number
        self._weighed_count = 0  # the number of tokens of the answer that have their log probabilities
        self._runs: dict[SegmentType, list[Run]] = {}  # the texts in the order in which they were streamed
        self._last: Item | None = None
        self._items_by_id: dict[str, Item] = {}
        self._items_by_index: dict[int, Item] = {}  # the last one if several share an index

    def take_sequence_number(self, event: Object, *, is_beat: bool = False) -> None:
        """Take the event's number if it follows the previous one, because the order of the deltas already expresses it.

        The number of a keep-alive has no meaning unless it runs ahead. The next event may follow it, or the one before it.
        """
        number = event.get("sequence_number")
        if is_beat:
            latest_number = self._sequence_number if self._beat_number is None else self._beat_number
            if type(number) is int and (self._sequence_number is None or number - 1 <= (latest_number or 0)):
                del event["sequence_number"]
                self._beat_number = number
                if self._start is None:
                    self._start = number
            return
        self._is_numbered = type(number) is int
        if type(number) is int:
            if self._sequence_number is not None and number - 1 in (self._sequence_number, self._beat_number):
                del event["sequence_number"]
            elif self._sequence_number is None and number - 1 == self._beat_number:
                event["sequence_number"] = self._start  # the number with which the stream began
            self._sequence_number, self._beat_number = number, None

    def add_repeated(self, state: MappingState) -> None:
        """Take the texts of repeated events, each of which had the next number."""
        pieces = state.repeated_texts.get(0, [])
        part = None if self._said is None else self._said[1]
        if pieces and isinstance(part, Part):  # otherwise the last delta belonged to a call
            part.pieces += pieces
            self._note_run(part, sum(map(len, pieces)))
            tokens = state.choice(0).logprobs or []
            part.tokens += tokens[self._weighed_count :]
            self._weighed_count = len(tokens)
        if self._sequence_number is not None and self._is_numbered:
            self._sequence_number += len(pieces)

    # The client's declarations.

    def note_tools(self, tools: Any) -> None:
        """Record the *tools* that the response was given. An empty list, which some servers always send, has no meaning."""
        if type(tools) is list:
            flat_tools = [*_flat(tools)]
            names = {name for tool in flat_tools if type(name := tool.get("name")) is str}
            # If tools are searched for later, these are not all.
            self._declared_names = (
                None if any(tool.get("type") == "tool_search" for tool in flat_tools) else names
            )

    def may_declare(self, name: Any) -> bool:
        """Return whether a custom tool of that *name* may be one of the client's."""
        return self._declared_names is None or type(name) is not str or name in self._declared_names

    # The item that an event belongs to.

    @property
    def text(self) -> str:
        """The text so far, without reasoning and refusals."""
        return "".join(
            piece
            for item in self.items
            for part in dict.fromkeys(item.parts.values())  # a part may have two numbers
            if part.known.segment is SegmentType.TEXT
            for piece in part.pieces
        )

    def item(
        self,
        event: Object,
        raw_item: Object | None = None,
        *,
        opens: bool = False,
        has_text: bool | None = None,
    ) -> Item:
        """Return the item that *event* belongs to: by id, else by index, else the last one. A missing item is created.

        Ollama gives a text and the call after it the same number. Other servers change the id in mid-stream, or send no
        number at all. An id or index that disagrees with the recorded one stays in the event. A text never belongs to
        a call of another id, nor a call's arguments to a text, even if their number is the same.

        Args:
            event: the event.
            raw_item: the item itself, which then holds its id, or ``None`` if the event has only a fragment of it.
            opens: whether the item begins here. It is then a new one, unless pieces of it came before.
            has_text: whether the event is a piece of a text, or a field of a call, or ``None`` if it may be of any item.
        """
        last_item = self._last
        if (
            raw_item is None
            and last_item is not None
            and last_item.id is not None
            and last_item.index is not None
        ):
            number = event.get("output_index")
            if type(number) is int and number == last_item.index and event.get("item_id") == last_item.id:
                del event["output_index"], event["item_id"]
                return last_item
        index = take_count(event, "output_index")
        id = (take_string(event, "item_id") if raw_item is None else look_string(raw_item, "id")) or None
        item, is_new = self._find(index, id), False
        if item is not None and id not in (None, item.id) and item.is_other(has_text):
            item = None
        if item is None or (opens and item.type is not None and (id is None or item.id != id)):
            item, is_new = self._add_item(), True
        if raw_item is None and is_new:
            item.entry(event)  # the extensions list all items
        if raw_item is None and id not in (None, item.id):
            item.entry(event)["id" if item.id is None else "item_id"] = id
        if index is not None and index != (item.number if is_new else item.index):
            item.entry(event)["output_index"] = index
        self._identify(item, index, id)
        self._last = item
        return item

    def matched(self, output: list[Object]) -> Iterator[tuple[Item, Object]]:
        """Pair each item of a response with the streamed one, if it was streamed.

        They are matched by id, else by place, else by type, because some servers end with other ids or another order.
        """
        pairs: dict[int, Item] = {}
        if self.items:
            _pair(output, "id", self.items, pairs)
            matched_items = set(pairs.values())
            for number, (item, raw_item) in enumerate(zip(self.items, output, strict=False)):
                if (
                    number not in pairs
                    and item not in matched_items
                    and item.type in (None, raw_item.get("type"))
                ):
                    pairs[number] = item
                    matched_items.add(item)
            _pair(output, "type", [item for item in self.items if item not in matched_items], pairs)
        for number, raw_item in enumerate(output):
            item = pairs.get(number) or self._add_item()
            if "id" in raw_item:
                self._identify(item, None, look_string(raw_item, "id") or None)
            yield item, raw_item

    def _find(self, index: int | None, id: str | None) -> Item | None:
        item = None if id is None else self._items_by_id.get(id)
        if item is not None:
            return item
        if index is not None:
            return self._items_by_index.get(index)
        last_item = self.items[-1] if self.items else None
        return last_item if last_item is not None and (id is None or last_item.id is None) else None

    def _add_item(self) -> Item:
        item = Item(len(self.items))
        self.items.append(item)
        return item

    def _identify(self, item: Item, index: int | None, id: str | None) -> None:
        """Give *item* the number and the id that it does not have yet."""
        if index is not None and item.index is None:
            item.index = index
            indexed_item = self._items_by_index.setdefault(index, item)
            if indexed_item.number < item.number:
                self._items_by_index[index] = item
        if id is not None and item.id is None:
            item.id = id
            self._items_by_id.setdefault(id, item)

    # The texts.

    def add(self, part: Part, text: str, tokens: tuple[TokenLogprob, ...] | None = None) -> Deltas:
        """Return the deltas of *text*, more of *part*."""
        part.pieces.append(text)
        self._note_run(part, len(text))
        if tokens:
            part.tokens.extend(tokens)
            self._weighed_count += len(tokens)
        return self.say(part.known.segment, part, text or None, tokens)

    def _note_run(self, part: Part, length: int) -> None:
        runs = self._runs.setdefault(part.known.segment, [])
        if runs and runs[-1].part is part:
            runs[-1].length += length
        else:
            runs.append(Run(part, length))
            part.runs.append(runs[-1])

    def continues(self, part: Part, text: str) -> bool:
        """Return whether *text*, all of *part*, is its streamed text and what may follow it: no other part came between."""
        streamed_text, runs = "".join(part.pieces), part.runs
        is_next = text == streamed_text or not runs or self._runs[part.known.segment][-1] is runs[0]
        return text.startswith(streamed_text) and len(runs) < 2 and is_next

    def join(self, part: Part, others: list[Part]) -> None:
        """Add the text of *others* to *part*: the whole item has no parts for them."""
        for other in others:
            for run in other.runs:
                run.part = part
            part.runs += other.runs
            part.pieces += other.pieces
            other.runs, other.pieces = [], []

    def correct(self, part: Part, text: str) -> Deltas:
        """Yield the deltas that replace the streamed text of *part* by *text*."""
        kind, start = part.known.segment, 0
        part.pieces, new_text = [text], text
        for run in self._runs[kind]:
            if run.part is part:
                yield ResponseDelta(correction=Correction(kind, new_text, start, start + run.length))
                run.length, new_text = len(new_text), ""
            start += run.length
            if not run.length:
                run.part.runs.remove(run)
        self._runs[kind] = [run for run in self._runs[kind] if run.length]

    def insert(self, segment: Segment) -> ResponseDelta:
        """Return the delta of a whole segment. It ends the text before it, unless it is a citation."""
        is_beside = segment.type is SegmentType.CITATION
        return ResponseDelta(segment=segment) if is_beside else super().insert(segment)


def _flat(tools: list[Any]) -> Iterator[Object]:
    """Yield the *tools*, including those inside others."""
    for tool in tools:
        if type(tool) is dict:
            yield tool
            inner_tools = tool.get("tools")
            yield from _flat(inner_tools) if type(inner_tools) is list else ()


def _pair(output: list[Object], name: str, items: list[Item], pairs: dict[int, Item]) -> None:
    """Extend *pairs*: each unmatched item of *output* gets the first of *items* of the same *name*, ``id`` or ``type``."""
    waiting_items: dict[Any, deque[Item]] = {}
    for item in items:
        waiting_items.setdefault(getattr(item, name), deque()).append(item)
    for number, raw_item in enumerate(output):
        word = raw_item.get(name)
        queue = waiting_items.get(word) if number not in pairs and type(word) is str else None
        if queue:
            pairs[number] = queue.popleft()
