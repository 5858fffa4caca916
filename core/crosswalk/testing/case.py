"""A capture under check: its events, what they are mapped to, and what they are mapped to with something changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import attrs
import orjson

from crosswalk.errors import FramingError, IncompleteStreamError, MappingError
from crosswalk.mapping.options import ReaderOptions
from crosswalk.plugin.mapper import Mapper
from crosswalk.testing.captures import Capture, Write, reframer
from crosswalk.testing.perturbation import (
    Leaf,
    Outcome,
    Path,
    at,
    fixed_clock,
    fixed_id,
    leaves,
    outcome,
    outcomes_at_once,
    replaced,
    show_path,
)
from crosswalk.testing.problems import Problem
from crosswalk.text import counted
from crosswalk.wire.framing import Frame

__all__ = [
    "MARKER",
    "NAME",
    "Case",
    "Place",
    "Tally",
    "answer",
    "marker_for",
    "occurrences",
    "reader_options",
    "strings",
    "typed",
]

_T = TypeVar("_T")

MARKER: Final = (
    " KeLp, which grows in cold water along rocky coasts,"
    " KeLp%20&amp;  \ufb01 e\u0301 \xa0\xad\ufeff\u200b\U0001f71a "
)
"""A text that does not survive stripping, changing case, decoding or normalising, and that JSON holds as it is."""

_FRAMING: Final = (
    "; what is neither server-sent events, lines of JSON objects nor one JSON body needs "
    '"framing" in provider_info'
)
_ARRAYS: Final = (
    '; what begins with "[" is read as one JSON body: lines that are arrays need "framing" in provider_info, '
    "such as NDJSONDecoder of crosswalk.plugins"
)
_ONE_ARRAY: Final = (
    '; the body is an array, and so one event: map_delta reads it as a whole, unless "framing" in provider_info '
    "gives its items one by one"
)

_CUT: Final = '; if the stream was cut on its way, its line in the manifest says "complete": false'

NAME: Final = re.compile(r"[A-Za-z][^\d\s]{0,63}")
"""A word as an event, or a part of one, calls itself."""


@attrs.define
class Tally:
    """How much was tried.

    Attributes:
        captures: captures.
        unstated: captures about which nothing is stated.
        events: their events.
        leaves: the leaves of these.
        mappings: how often something was mapped.
    """

    captures: int = 0
    unstated: int = 0
    events: int = 0
    leaves: int = 0
    mappings: int = 0

    def add(self, other: Tally) -> None:
        """Count *other* in."""
        for field in attrs.fields_dict(Tally):
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def __str__(self) -> str:
        captures, events = counted(self.captures, "capture"), counted(self.events, "event")
        leaves, mappings = counted(self.leaves, "leaf", "leaves"), counted(self.mappings, "mapping")
        tried = f"{captures}, {events}, {leaves}, {mappings}"
        return f"{tried}; {counted(self.unstated, 'capture')} without a statement" if self.unstated else tried


@attrs.frozen
class Place:
    """The leaves of a capture that say one thing: they have one path, in one event or in many, and perhaps one value.

    Attributes:
        leaves: at least one, in order.
    """

    leaves: tuple[Leaf, ...]

    @property
    def path(self) -> Path:
        """The keys that lead there."""
        return self.leaves[0].path

    @property
    def key(self) -> str:
        """The last of them that is a name."""
        return next((key for key in reversed(self.path) if isinstance(key, str)), "")

    @property
    def value(self) -> Any:
        """What the first of them is."""
        return self.leaves[0].value

    def __str__(self) -> str:
        return str(self.leaves[0])

    def put(self, events: list[Any], value: Any) -> list[Any]:
        """*events* with *value* in the place of each leaf."""
        for leaf in self.leaves:
            events = replaced(events, leaf, value)
        return events


@attrs.define(slots=False)
class Case:
    """A capture under check.

    Attributes:
        mapper: the provider.
        capture: the recorded answer.
        sample: how many leaves and cuts to try at most; ``None`` for all.
        tally: counts what was tried.
        write: writes a frame of the provider's own framing; ``None`` to write server-sent events instead.
        frames: the undecoded events; none of an HTTP error, or where the bytes are none.
        events: the decoded events; none where they are no JSON.
        baseline: what they are mapped to unchanged; of bytes that are no events, what reading them gives.
    """

    mapper: Mapper
    capture: Capture
    sample: int | None
    tally: Tally
    write: Write | None = None
    frames: list[Frame] = attrs.field(init=False)
    events: list[Any] = attrs.field(init=False)
    baseline: Outcome = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        capture = self.capture
        # The hooks are checked, so they get every event.
        self._asking = attrs.evolve(self.mapper, is_unmodified=False)
        self._marked: dict[tuple[Leaf, ...], Outcome] = {}
        try:
            self.events = capture.events(self.mapper)
            self.frames = [] if capture.status >= 400 else capture.frames(self.mapper)
        except (MappingError, ValueError):
            self.events, self.frames = [], []
        self.has_own_framing = capture.has_own_framing(self.mapper)
        self._as_bytes = self.reframed(self.frames, self.events)
        self.baseline = Outcome(None)
        if self.events:
            self.baseline = self.map(self.events)
        elif capture.complete and capture.status < 400:
            self.baseline = self.map_bytes(capture.body)
        self.tally.captures += 1
        self.tally.unstated += capture.says is None
        self.tally.events += len(self.events)

    def map(self, events: list[Any]) -> Outcome:
        """What *events* are mapped to, framed as the capture is."""
        self.tally.mappings += 1
        return outcome(self._asking, events, options=reader_options(self.capture), as_bytes=self._as_bytes)

    def map_bytes(self, body: bytes) -> Outcome:
        """What *body* is mapped to."""
        self.tally.mappings += 1
        return outcome(self._asking, [], options=reader_options(self.capture), as_bytes=lambda _: body)

    def map_at_once(self, *answers: list[bytes]) -> list[Outcome]:
        """What *answers* are mapped to that are read at once, a chunk of each in turn."""
        self.tally.mappings += len(answers)
        return outcomes_at_once(self.mapper, answers, reader_options(self.capture))

    @cached_property
    def chunks(self) -> list[bytes]:
        """The bytes of each event of a stream, which may be read in another order, or more or less often."""
        return [self.chunk(number, event) for number, event in enumerate(self.events)]

    def chunk(self, number: int, event: Any) -> bytes:
        """The bytes of *event*, framed as event *number* of a stream."""
        return self.reframed([self.frames[number]], [self.events[number]])([event])

    def reframed(self, frames: Sequence[Frame], events: Sequence[Any]) -> Callable[[Sequence[Any]], bytes]:
        """Return the function that writes other events in the framing of *frames*, whose events are *events*."""
        return reframer(
            self.capture,
            frames,
            events,
            as_sse=self.has_own_framing,
            write=self.write,
            text_events=self.mapper.info.text_events,
        )

    @property
    def refusal(self) -> str | None:
        """Why the provider does not read the capture; ``None`` if it does, or if the capture was cut on its way."""
        cause, capture = self.baseline.cause, self.capture
        is_cut = isinstance(cause, IncompleteStreamError)
        if is_cut and self.events and capture.complete and capture.status < 400 and not self.baseline.untyped:
            return f"refused: {self.baseline.error}{_CUT}"
        is_broken = is_cut or (self.events and isinstance(cause, FramingError))
        if not self.baseline.untyped and (is_broken or not isinstance(cause, MappingError)):
            return None
        return f"refused: {self.baseline.error}{self._hint}"

    @property
    def _hint(self) -> str:
        """What an author may declare whose framing is not the one that the bytes are taken for."""
        if self.mapper.info.framing is not None:
            return ""
        if self.events:
            is_array = len(self.events) == 1 and isinstance(self.events[0], list)
            return _ONE_ARRAY if is_array else ""
        return _ARRAYS if self.capture.body.lstrip().startswith(b"[") else _FRAMING

    @property
    def is_answer(self) -> bool:
        """Whether it is a whole answer, and no error's."""
        baseline = self.baseline
        return (
            bool(self.events)
            and baseline.error is None
            and self.capture.status < 400
            and baseline.response["finish_reason"] not in {"error", "cancelled"}
        )

    @cached_property
    def typed(self) -> dict[str, Any]:
        """What the typed fields of the baseline hold."""
        return typed(self.baseline.response)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """Every leaf of every event, in order."""
        return list(leaves(self.events))

    def sampled(self) -> list[Leaf]:
        """The leaves to try: all, or a sample that is the same every time."""
        found = self.some(self.leaves, self.sample)
        self.tally.leaves += len(found)
        return found

    def unlike(self) -> list[Leaf]:
        """Fewer leaves, for what takes long: all, or a sample of which no two mean alike."""
        if self.sample is None:
            return self.sampled()
        found = self.some(self.alike(self.leaves), max(self.sample // 4, 8))
        self.tally.leaves += len(found)
        return found

    def every_place(self, *types: type, by_value: bool = True) -> list[Place]:
        """Where values of *types* stand.

        Args:
            types: the types of the values; none for any but null.
            by_value: whether one place holds one value, or whatever stands at its path, after the same words of a row.
        """
        found: dict[Any, list[Leaf]] = {}
        for leaf in self.leaves:
            if type(leaf.value) in types or (not types and leaf.value is not None):
                value = (type(leaf.value), leaf.value) if by_value else None
                found.setdefault((leaf.path, value, self.words(leaf)), []).append(leaf)
        return [Place(tuple(group)) for group in found.values()]

    def places(self, *types: type, by_value: bool = True) -> list[Place]:
        """A sample of :meth:`every_place`: of those that mean alike it is one, by chance."""
        if self.sample == 0:
            return []
        places = self.every_place(*types, by_value=by_value)
        if self.sample is None:
            return places
        first = {id(leaf): place for place in places for leaf in place.leaves[:1]}
        return self.some([first[id(leaf)] for leaf in self.alike([p.leaves[0] for p in places])], self.sample)

    def meaning(self, leaf: Leaf) -> tuple[str, Any]:
        """What leaves that mean alike have in common: the path without the numbers of items, and the name of their holder.

        That is the word that comes first in it: the text of ``{"kind": "say", "text": …}`` is not that of a ``think``. In
        ``["tool", 0, "name", …]`` a value means something by its position and by the words before it.
        """
        *parents, key = leaf.path
        words = self.words(leaf)
        if not words and isinstance(key, str):
            first, value = next(iter(at(self.events[leaf.event], tuple(parents)).items()))
            words = () if first == key else _names([value])
        name = self.frames[leaf.event][1] if self.frames else None
        return show_path(leaf.path, items=False), (words, key) if words else name

    def words(self, leaf: Leaf) -> tuple[str, ...]:
        """The words that stand before *leaf*, or before what holds it, in the same array."""
        words: tuple[str, ...] = ()
        node = self.events[leaf.event]
        for key in leaf.path:
            if isinstance(key, int):
                words += _names(node[:key])
            node = at(node, (key,))
        return words

    def alike(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """*leaves*, of those that mean alike one, taken by chance."""
        groups: dict[Any, list[Leaf]] = {}
        for leaf in leaves:
            groups.setdefault(self.meaning(leaf), []).append(leaf)
        rng = random.Random(self.capture.case)
        return [rng.choice(group) for group in groups.values()]

    def some(self, items: list[_T], size: int | None) -> list[_T]:
        """*items*, or a sample of *size* that is the same every time; ``None`` for all."""
        if size is None or len(items) <= size:
            return items
        return random.Random(self.capture.case).sample(items, size)

    def marked(self, place: Place) -> Outcome:
        """What it is mapped to with :data:`MARKER`, a text that stands nowhere else, in *place*."""
        if place.leaves not in self._marked:
            value = marker_for(place.value)
            self._marked[place.leaves] = self.map(place.put(self.events, value))
        return self._marked[place.leaves]

    def problem(self, promise: str, where: object, message: str) -> Problem:
        """That *promise* is broken."""
        path = show_path(where.path, items=False) if isinstance(where, Leaf | Place) else ""
        return Problem(promise, f"{self.capture.case}, {where}", message, path=path, case=self.capture.case)


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str) and NAME.fullmatch(value))


def marker_for(value: Any) -> str:
    """:data:`MARKER`; where *value* is the text of a JSON object, the text of one that holds it."""
    try:
        is_object = isinstance(orjson.loads(value), dict)
    except (orjson.JSONDecodeError, TypeError):
        is_object = False
    return f'{{"{MARKER}":"{MARKER}"}}' if is_object else MARKER


def reader_options(capture: Capture, *, keep_raw: bool = False) -> ReaderOptions:
    """How *capture* is read: always with the same id and clock."""
    return ReaderOptions(
        status=capture.status,
        id_factory=fixed_id,
        clock=fixed_clock,
        keep_raw=keep_raw,
        content_type=capture.content_type,
    )


def typed(response: dict[str, Any]) -> dict[str, Any]:
    """The canonical JSON *response* without the extensions, and without what follows from the rest."""
    usage = {k: v for k, v in response["usage"].items() if k != "total_tokens"}
    metadata = {k: v for k, v in response["metadata"].items() if k not in ("extensions", "provenance")}
    return {**response, "usage": usage, "metadata": metadata}


def answer(response: dict[str, Any]) -> Any:
    """What the canonical JSON *response* answers, in whatever form it says so."""
    keys = ("message", "finish_reason", "refusal", "usage", "alternatives")
    return [response.get(key) for key in keys], [part["content"] for part in response.get("segments", ())]


def occurrences(value: Any, text: str = MARKER) -> int:
    """How often *text* stands in the texts of *value*, a JSON value."""
    return sum(found.count(text) for found in strings(value))


def strings(value: Any) -> Iterator[str]:
    """Every text in *value*, a JSON value; of an object also the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
