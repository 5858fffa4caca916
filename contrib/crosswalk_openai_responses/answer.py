"""What has been said of an answer so far: a stream says most things two to five times.

Each text comes in pieces, then whole, then again in its part, its item and the response. An :class:`Answer` knows
what canonical values already carry, so that a repetition adds nothing, an addition adds only itself, and a
contradiction stays visible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from crosswalk import MappingState, ResponseDelta, Segment, SegmentType, TokenLogprob, get_count, get_string

__all__ = ["PARTS", "Answer", "Item", "Part", "answer_of"]

PARTS: Final = {
    "output_text": ("text", SegmentType.TEXT),
    "refusal": ("refusal", SegmentType.REFUSAL),
    "reasoning_text": ("text", SegmentType.REASONING),
    "summary_text": ("text", SegmentType.REASONING),
}
"""The types of parts that are text: the leaf that holds it, and what it is."""


class Part:
    """One text of an item.

    Attributes:
        place: the list of its item that it is in: ``content`` or ``summary``.
        number: its place in that list.
        type: the provider's word for what it is, a key of :data:`PARTS`.
        segment: what it is.
        pieces: the text so far.
        logprobs: the tokens so far, as the provider wrote them.
        citations: the annotations so far, by number.
    """

    __slots__ = ("citations", "logprobs", "number", "pieces", "place", "segment", "type")

    def __init__(self, place: str, number: int, type: str) -> None:
        self.place = place
        self.number = number
        self.type = type
        self.segment = PARTS[type][1]
        self.pieces: list[str] = []
        self.logprobs: list[Any] = []
        self.citations: dict[int, Any] = {}

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)

    def unsaid(self, text: str) -> str | None:
        """What *text*, all of this part, adds to its pieces; ``None`` where it contradicts them."""
        said = self.text
        return text[len(said) :] if text.startswith(said) else None

    def carried(self) -> dict[str, Any]:
        """What canonical values carry of it, in the shape in which the provider writes it."""
        known = [self.citations.get(number) for number in range(max(self.citations, default=-1) + 1)]
        return {
            "type": self.type,
            PARTS[self.type][0]: self.text,
            "annotations": known,
            "logprobs": self.logprobs,
        }


class Item:
    """One item of the output.

    Attributes:
        number: its place among the items, in order of appearance.
        index: the provider's number for it; ``None`` where it sends none.
        id: the provider's id; ``None`` until one comes.
        type: the provider's word for what it is; ``None`` until one comes.
        parts: its texts, by list (``content`` or ``summary``), number in it, and type.
        call: what the state knows of its tool call; ``None`` where it is none, or not yet.
        payload: the payload, for the server alone, that it began with: the next one replaces it; ``None`` without.
        leaf: the field in which the provider writes the arguments of the call; ``""`` for several.
        arguments: the argument text so far.
        kept: what segments carry of it, in the provider's structure.
        pieces: what was streamed of a server's tool, by family of events.
        is_whole: whether it has come as a whole.
        is_new: whether no event has told of it yet but the present one.
    """

    __slots__ = (
        "_last", "_numbers", "arguments", "call", "id", "index", "is_new", "is_whole", "kept", "leaf", "number", "parts",
        "payload", "pieces", "type",
    )  # fmt: skip

    def __init__(self, number: int, index: int | None, id: str | None) -> None:
        self.number = number
        self.index = index
        self.id = id
        self.type: str | None = None
        self.parts: dict[tuple[str, int, str], Part] = {}
        self.call: Any = None
        self.payload: str | None = None
        self.leaf = ""
        self.arguments: list[str] = []
        self.kept: dict[str, Any] = {}
        self.pieces: dict[Any, list[Any]] = {}
        self.is_whole = False
        self.is_new = True
        self._numbers: dict[str, set[int]] = {}  # of the parts, by list
        self._last: dict[tuple[str, str], int] = {}  # the highest of them, by list and type

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
            found = self.parts[key] = Part(place, number, type)
            self._numbers.setdefault(place, set()).add(number)
            self._last[place, type] = max(number, self._last.get((place, type), number))
        return found

    def carried(self) -> dict[str, Any]:
        """What canonical values carry of it, in the shape in which the provider writes it; parts and id apart."""
        picture = {"role": "assistant", **self.kept}
        if self.call is not None:
            picture["call_id"] = self.call.id
            if self.leaf:
                picture["name"] = self.call.name
                picture[self.leaf] = "".join(self.arguments)
        return picture

    def expects(self, place: str, number: int, *, opens: bool) -> bool:
        """Whether a part of that number has begun; else whether it is the one that may begin now."""
        known = self._numbers.get(place, ())
        return number in known or (number == len(known) and (opens or number == 0))

    def begin_call(self, type: str, leaf: str) -> None:
        """Note that it is a call, if nobody has said what it is; its arguments stand under *leaf*."""
        self.type = self.type or type
        self.leaf = self.leaf or leaf


class Answer:
    """What has been said of one answer.

    Attributes:
        items: in order of appearance.
        response: the response object of the present event; ``None`` where it has none.
        left: of the present event, what no typed field took of the items; by number of the item.
        used: the keys of the present event that were understood.
        sequence: the last sequence number; ``None`` before the first.
        has_shown_status: whether the extensions tell a status: then they tell the next one, too.
        finish: the finish word of the present event; ``None`` where it has none.
        status: what its status must be to be no news.
        is_error: whether the present event is nothing but an error.
        has_begun: whether the answer has been created.
        has_ended: whether the answer has come to its end.
    """

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.response: dict[str, Any] | None = None
        self.left: dict[int, dict[str, Any]] = {}
        self.used: frozenset[str] = frozenset()
        self.sequence: int | None = None
        self.has_shown_status = False
        self.finish: str | None = None
        self.status: str | None = None
        self.is_error = False
        self.has_begun = False
        self.has_ended = False
        self._run: Part | None = None
        self._last: Item | None = None
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[int, Item] = {}  # of several the last

    def start(self) -> None:
        """Forget the event before."""
        self.response = None
        self.left = {}
        self.used = frozenset()
        self.finish = None
        self.status = None
        self.is_error = False

    @property
    def text(self) -> str:
        """The text so far, without reasoning and refusals."""
        return "".join(
            part.text
            for item in self.items
            for part in item.parts.values()
            if part.segment is SegmentType.TEXT
        )

    def add_item(self, index: int | None, id: str | None) -> Item:
        """A new item."""
        item = Item(len(self.items), None, None)
        self.items.append(item)
        self._identify(item, index, id)
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

    def item(self, event: dict[str, Any]) -> Item:
        """The item that *event* tells of: by id, else by index, else the last one; made where there is none.

        Ollama numbers a text and the call after it alike; other servers change the id in mid-stream, or send no
        number at all. What of the two does not agree with what is known stays in the extensions.
        """
        index, id = event.get("output_index"), event.get("item_id")
        last = self._last
        if (
            last is not None
            and id is not None
            and id == last.id
            and type(index) is int
            and index == last.index
        ):
            return last
        index = get_count(event, "output_index")
        id = get_string(event, "item_id") or None
        found = self._find(index, id)
        if found is None:
            found = self.add_item(index, id)
        self.name(found, index, id, "item_id")
        self._last = found
        return found

    def open_item(self, event: dict[str, Any], wire: dict[str, Any]) -> Item:
        """The item that *event* opens with *wire*: a new one, unless pieces of it came before."""
        return self._whole_item(event, wire, opens=True)

    def close_item(self, event: dict[str, Any], wire: dict[str, Any]) -> Item:
        """The item that *event* completes with *wire*."""
        return self._whole_item(event, wire, opens=False)

    def _whole_item(self, event: dict[str, Any], wire: dict[str, Any], *, opens: bool) -> Item:
        index, id = get_count(event, "output_index"), get_string(wire, "id", "item") or None
        known = self._find(index, id)
        if known is None or (opens and known.type is not None and (id is None or known.id != id)):
            known = self.add_item(index, id)
        self._identify(known, None, id)
        self.name(known, index, None, "")
        return known

    def _find(self, index: int | None, id: str | None) -> Item | None:
        found = None if id is None else self._by_id.get(id)
        if found is not None:
            return found
        if index is not None:
            return self._by_index.get(index)
        last = self.items[-1] if self.items else None
        return last if last is not None and (id is None or last.id is None) else None

    def name(self, item: Item, index: int | None, id: str | None, key: str) -> None:
        """Note the number and the id that an event gives *item*; what says something else than is known is left."""
        left = self.rest_of(item)
        if item.is_new:
            item.is_new = False
            if id is not None:
                left["id"] = id
            if index is not None and index != item.number:
                left["output_index"] = index
        elif id is not None and item.id is None:
            left["id"] = id
            self._identify(item, None, id)
        elif id is not None and id != item.id:
            left[key] = id
        if index is not None and index != item.index:
            left["output_index"] = index
            self._identify(item, index, None)

    def rest_of(self, item: Item) -> dict[str, Any]:
        """What the present event leaves of *item*, to be added to."""
        return self.left.setdefault(item.number, {})

    def matched(self, output: list[dict[str, Any]]) -> Iterator[tuple[Item, dict[str, Any]]]:
        """Each item of a response with the one that the stream told of, if it did.

        They are matched by id, else by place, else by type: some servers give other ids in the end, or another order.
        """
        pairs: dict[int, Item] = {}
        by_id: dict[Any, deque[Item]] = {}
        for item in self.items:
            by_id.setdefault(item.id, deque()).append(item)
        _pair(output, "id", by_id, pairs)
        taken = set(pairs.values())
        for number, (item, wire) in enumerate(zip(self.items, output, strict=False)):
            if number not in pairs and item not in taken and item.type in (None, wire.get("type")):
                pairs[number] = item
                taken.add(item)
        by_type: dict[Any, deque[Item]] = {}
        for item in self.items:
            if item not in taken:
                by_type.setdefault(item.type, deque()).append(item)
        _pair(output, "type", by_type, pairs)
        for number, wire in enumerate(output):
            yield pairs.get(number) or self.add_item(None, get_string(wire, "id", "output") or None), wire

    def say(
        self, part: Part, text: str, state: MappingState, logprobs: tuple[TokenLogprob, ...] | None = None
    ) -> list[ResponseDelta]:
        """The delta of *text*, more of *part*; before it, where another part of its kind was being said, a break.

        A break is an empty segment: two summaries, or two messages, are not one.
        """
        deltas = []
        run, self._run = self._run, part
        kind = part.segment
        if run is not part and run is not None and run.segment is kind:
            deltas.append(ResponseDelta(state.next_index(), segment=Segment(kind)))
        part.pieces.append(text)
        index = state.next_index()
        if kind is SegmentType.TEXT:
            deltas.append(ResponseDelta(index, text or None, logprobs=logprobs))
        elif kind is SegmentType.REASONING:
            deltas.append(ResponseDelta(index, reasoning_delta=text))
        else:
            deltas.append(ResponseDelta(index, refusal_delta=text))
        return deltas

    def insert(self, segment: Segment, state: MappingState) -> ResponseDelta:
        """The delta of a whole segment, which ends the run of text before it; a citation does not."""
        if segment.type is not SegmentType.CITATION:
            self._run = None
        return ResponseDelta(state.next_index(), segment=segment)

    def end_run(self) -> None:
        """Note that something else than text came."""
        self._run = None


def _pair(
    output: list[dict[str, Any]], name: str, items: dict[Any, deque[Item]], pairs: dict[int, Item]
) -> None:
    """Add to *pairs*, for each of *output* that is in none, the first of *items* with what *name* says of it."""
    for number, wire in enumerate(output):
        said = wire.get(name)
        found = items.get(said) if number not in pairs and type(said) is str else None
        if found:
            pairs[number] = found.popleft()


def answer_of(state: MappingState) -> Answer:
    """The answer that *state* is about."""
    found = state.data.get("responses")
    if found is None:
        found = state.data["responses"] = Answer()
    return found
