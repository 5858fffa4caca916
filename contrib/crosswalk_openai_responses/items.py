"""The items of an answer and their texts: the state of each so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from crosswalk.plugins import TokenLogprob, logprob_of, responses as wire
from crosswalk_openai_responses.left import Object, drop_known


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

    def drop_carried(self, raw: Object) -> None:
        """Remove from *raw*, this part or a fragment of it, the data that canonical values already carry."""
        known: Object = {"type": self.type, self.known.leaf: "".join(self.pieces)}
        if raw.get("logprobs"):
            known["logprobs"] = [logprob_of(token) for token in self.tokens]
        drop_known(raw, known)
        notes = raw.get("annotations")
        for number, note in enumerate(notes if type(notes) is list else ()):
            if type(note) is dict:
                drop_known(note, self.citations.get(number, {}))
        for name in ("annotations", "logprobs"):
            if name in raw and (raw[name] is None or (type(raw[name]) is list and not any(raw[name]))):
                del raw[name]


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
        payload: the payload, for the server alone, that it began with, or ``None``. The next one replaces it.
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
    payload: str | None = None
    kept: Object = attrs.Factory(dict)
    pieces: dict[tuple[str, int | None], list[Any]] = attrs.Factory(dict)
    is_whole: bool = False
    _numbers: dict[str, set[int]] = attrs.Factory(dict)  # of the parts, by list
    _last: dict[tuple[str, str], int] = attrs.Factory(dict)  # the highest of them, by list and type

    def part(self, place: str, number: int | None, type: str, *, opens: bool = False) -> Part:
        """Return the part of *type* in the list *place*. A missing part is created.

        Without a *number*, which some servers leave out, it is the last part, or a new one if the event *opens* a part.
        """
        if number is None:
            last = self._last.get((place, type))
            number = 0 if last is None else last + opens
        key = (place, number, type)
        result = self.parts.get(key)
        if result is None:
            result = self.parts[key] = Part(place, number, type, wire.PARTS[type])
            self._numbers.setdefault(place, set()).add(number)
            self._last[place, type] = max(number, self._last.get((place, type), number))
        result.is_announced = result.is_announced or opens
        return result

    def repeated(self, place: str, number: int, type: str, text: object) -> Part | None:
        """Return the streamed part that *text*, all of a part, repeats under another *number*.

        There must be exactly one candidate of its type, and *text* must begin with its text. A candidate has no whole text
        yet, or its pieces came under a number that was not announced while *number* was. Return ``None`` otherwise, or if
        the part under *number* has pieces.
        """
        own = self.parts.get((place, number, type))
        if own is not None and own.pieces:
            return None
        others = [
            part
            for part in self._streamed(place, type)
            if not part.is_whole or (own is not None and not part.is_announced)
        ]
        if len(others) != 1 or not isinstance(text, str) or not text.startswith("".join(others[0].pieces)):
            return None
        self.parts[place, number, type] = others[0]
        return others[0]

    def renumber(self, place: str, types: list[str]) -> Iterator[tuple[Part, list[Part]]]:
        """Give the streamed parts of the list *place* the numbers of the whole item, which has parts of these *types*.

        Parts keep their numbers if the whole item has a part of their type under each of them. Otherwise the first part of
        a type that was streamed is the first of that type in the item, and so on.

        Yields:
            The last part of a type, and the parts that were streamed beyond it.
        """
        for type in set(types):
            numbers = [number for number, other in enumerate(types) if other == type]
            streamed = self._streamed(place, type)
            if {part.number for part in streamed} <= {*numbers}:
                continue
            for part, number in zip(streamed, numbers, strict=False):
                part.number = number
                self.parts[place, number, type] = part
            if len(streamed) > len(numbers):
                yield streamed[len(numbers) - 1], streamed[len(numbers) :]

    def _streamed(self, place: str, type: str) -> list[Part]:
        results = {
            part.number: part for part in self.parts.values() if (part.place, part.type) == (place, type)
        }
        return [part for _, part in sorted(results.items()) if part.pieces]

    def expects(self, place: str, number: int, *, opens: bool) -> bool:
        """Return whether a part of that number has begun, or is the one that may begin now."""
        known = self._numbers.get(place, ())
        return number in known or (number == len(known) and (opens or number == 0))

    def entry(self, event: Object) -> Object:
        """Return the single entry for this item's remainder in *event*, under ``output`` as in a body, to be added to."""
        if "output" not in event:
            event["output"] = [{"index": self.number}]
        result: Object = event["output"][0]
        return result
