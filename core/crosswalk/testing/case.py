"""A capture under check: its events, their mapping, and their mapping with something changed."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

import attrs

from crosswalk.errors import CrosswalkError, FramingError, IncompleteStreamError, MappingError
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import Capture, Write, json_object, reframer
from crosswalk.testing.perturbation import (
    MISSING,
    Leaf,
    Outcome,
    Path,
    at,
    changed_paths,
    changes,
    fixed_clock,
    fixed_id,
    leaves,
    nodes,
    outcome,
    outcomes_at_once,
    replaced,
    scalars,
    show_path,
)
from crosswalk.testing.problems import Problem
from crosswalk.text import counted
from crosswalk.wire.framing import Frame

_T = TypeVar("_T")

MARKER: Final = (
    " KeLp, which grows in cold water along rocky coasts,"
    " KeLp%20&amp;  \ufb01 e\u0301 \xa0\xad\ufeff\u200b\U0001f71a "
)
"""A text that stripping, changing case, decoding or normalising would change, and that JSON holds unchanged."""

_FRAMING_HINT: Final = (
    "; what is neither server-sent events, lines of JSON objects nor one JSON body needs "
    '"framing" in provider_info'
)
_ARRAYS_HINT: Final = (
    '; what begins with "[" is read as one JSON body: lines that are arrays need "framing" in provider_info, '
    "such as NDJSONDecoder of crosswalk.plugins"
)
_ONE_ARRAY_HINT: Final = (
    '; the body is an array, and so one event: map_delta reads it as a whole, unless "framing" in provider_info '
    "gives its items one by one"
)

_END_HINT: Final = (
    "; no word ended it: give the field with the reason the row FINISH, or yield it as raw_finish_reason"
)
_CUT_HINT: Final = '; if the stream was cut on its way, its line in the manifest says "complete": false'

_PLACE: Final = re.compile(r"event \d+[^:]*")
"""The number of an event in an error, and the path in it."""
_HALF_RUN: Final = 32
"""The number of events at the beginning, and at the end, of a long run of events of one form."""
_TEXTS: Final = re.compile(r"message\.content$|reasoning$|segments\[\d+\]\.content$|logprobs\b")
_MAX_COMPARED_CAPTURES: Final = 64
"""The number of other captures with which one is compared."""

NAME: Final = re.compile(r"[A-Za-z][^\d\s]{0,63}")
"""A word that may be the name of an event or of a part."""


@attrs.define
class Tally:
    """The amount of checking.

    Attributes:
        captures: the number of captures.
        unstated: the number of captures without a statement.
        events: the number of their events.
        leaves: the number of leaves of these.
        mappings: the number of mappings.
    """

    captures: int = 0
    unstated: int = 0
    events: int = 0
    leaves: int = 0
    mappings: int = 0

    def add(self, other: Tally) -> None:
        """Add the numbers of *other*."""
        for field in attrs.fields_dict(Tally):
            setattr(self, field, getattr(self, field) + getattr(other, field))

    def __str__(self) -> str:
        captures, events = counted(self.captures, "capture"), counted(self.events, "event")
        leaves, mappings = counted(self.leaves, "leaf", "leaves"), counted(self.mappings, "mapping")
        unstated = f"; {counted(self.unstated, 'capture')} without a statement" if self.unstated else ""
        return f"{captures}, {events}, {leaves}, {mappings}{unstated}"


@lru_cache(maxsize=256)
def decoded(mapper: Mapper, capture: Capture) -> tuple[list[Frame], list[Any]]:
    """Return the frames of *capture*, none for an HTTP error, and its events, none if the bytes are not JSON."""
    try:
        events = capture.events(mapper)
        return [] if capture.status >= 400 else capture.frames(mapper), events
    except (CrosswalkError, ValueError):
        return [], []


@attrs.frozen
class Place:
    """The leaves of a capture that mean one thing: they have one path, in one event or in many, and perhaps one value.

    Attributes:
        leaves: at least one, in order.
    """

    leaves: tuple[Leaf, ...]

    @property
    def path(self) -> Path:
        """The keys that lead to the leaves."""
        return self.leaves[0].path

    @property
    def key(self) -> str:
        """The last key that is a name."""
        return next((key for key in reversed(self.path) if isinstance(key, str)), "")

    @property
    def value(self) -> Any:
        """The value of the first leaf."""
        return self.leaves[0].value

    def __str__(self) -> str:
        return str(self.leaves[0])

    def put(self, events: list[Any], value: Any) -> list[Any]:
        """Return *events* with *value* in place of each leaf."""
        for leaf in self.leaves:
            events = replaced(events, leaf, value)
        return events


@attrs.define(slots=False)
class Case:
    """A capture under check.

    Attributes:
        mapper: the provider.
        capture: the recorded answer.
        sample: the largest number of leaves and cuts to try; ``None`` for all.
        tally: counts the attempts.
        write: writes a frame of the provider's own framing; ``None`` to write server-sent events instead.
        others: the captures of the provider, for checks that compare. This one may be among them.
        frames: the undecoded events. Empty for an HTTP error, and if the bytes are not frames.
        events: the decoded events. Empty if they are not JSON.
        failures: the failures of the plugin's own code so far, each once, whatever event it failed on.
        baseline: the result of mapping them unchanged, or of reading the bytes if they are not events.
    """

    mapper: Mapper
    capture: Capture
    sample: int | None
    tally: Tally
    write: Write | None = None
    others: Sequence[Capture] = ()
    frames: list[Frame] = attrs.field(init=False)
    events: list[Any] = attrs.field(init=False)
    failures: dict[str, str] = attrs.field(init=False)
    baseline: Outcome = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        capture = self.capture
        # The hooks are checked, so they get every event.
        self._checked_mapper = attrs.evolve(self.mapper, is_unmodified=False)
        self._marked_outcomes: dict[tuple[Leaf, ...], Outcome] = {}
        self._fields: dict[tuple[int, Path], tuple[str, ...]] = {}
        self.failures: dict[str, str] = {}
        self.frames, self.events = decoded(self.mapper, capture)
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

    def of(self, body: bytes) -> Case:
        """Return the case of the same capture with another *body*, with a tally of its own."""
        return attrs.evolve(self, capture=attrs.evolve(self.capture, body=body), tally=Tally())

    def shortened(self) -> Case:
        """Return the case of the same stream without the middle of each long run of events of one form.

        It is this case if there is none, if all leaves are to be tried, or if more than texts were missing.
        """
        if self.sample is None or self.has_own_framing or not self.is_answer:
            return self
        forms = [
            (name, {(show_path(path, items=False), type(value)) for path, value in scalars(event)})
            for (_, name), event in zip(self.frames, self.events, strict=True)
        ]
        numbers: list[int] = []
        for _, group in itertools.groupby(range(len(forms)), key=forms.__getitem__):
            run = [*group]
            numbers += run[:_HALF_RUN] + run[max(_HALF_RUN, len(run) - _HALF_RUN) :]
        if len(numbers) == len(forms):
            return self
        frames, events = [self.frames[one] for one in numbers], [self.events[one] for one in numbers]
        case = self.of(self.reframed(frames, events)(events))
        case.tally = self.tally
        paths = changed_paths(self.typed, case.typed) if case.is_answer else [("",)]
        return case if all(_TEXTS.match(show_path(path)) for path in paths) else self

    def map(self, events: list[Any]) -> Outcome:
        """Map *events*, framed like the capture."""
        return self._mapped(events, self._as_bytes, self.capture)

    def map_bytes(self, body: bytes, *, status: int | None = None) -> Outcome:
        """Map *body*, of an answer with another HTTP *status* if there is one."""
        capture = self.capture if status is None else attrs.evolve(self.capture, status=status)
        return self._mapped([], lambda _: body, capture)

    def _mapped(
        self, events: list[Any], as_bytes: Callable[[Sequence[Any]], bytes], capture: Capture
    ) -> Outcome:
        self.tally.mappings += 1
        mapped = outcome(self._checked_mapper, events, options=reader_options(capture), as_bytes=as_bytes)
        if mapped.untyped:
            error = str(mapped.error)
            self.failures.setdefault(_PLACE.sub("", error), error)
        return mapped

    def map_at_once(self, *answers: list[bytes]) -> list[Outcome]:
        """Map *answers*, which are read at once, a chunk of each in turn."""
        self.tally.mappings += len(answers)
        return outcomes_at_once(self.mapper, answers, reader_options(self.capture))

    @cached_property
    def chunks(self) -> list[bytes]:
        """The bytes of each event of a stream, which may be read in another order, or more or less often."""
        return [self.chunk(number, event) for number, event in enumerate(self.events)]

    def chunk(self, number: int, event: Any) -> bytes:
        """Return the bytes of *event*, framed as event *number* of a stream."""
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
        """The reason why the provider refuses the capture, or ``None`` if it does not, or if the capture was cut."""
        cause, capture = self.baseline.cause, self.capture
        is_cut = isinstance(cause, IncompleteStreamError)
        if is_cut and self.events and capture.complete and capture.status < 400 and not self.baseline.untyped:
            return f"refused: {self.baseline.error}{_END_HINT}{_CUT_HINT if capture.stream else ''}"
        is_broken = is_cut or (self.events and isinstance(cause, FramingError))
        if not self.baseline.untyped and (is_broken or not isinstance(cause, MappingError)):
            return None
        return f"refused: {self.baseline.error}{self._hint}"

    @property
    def _hint(self) -> str:
        """A hint about declarations for an author if the bytes were taken for the wrong framing."""
        if self.mapper.info.framing is not None:
            return ""
        if self.events:
            is_array = len(self.events) == 1 and isinstance(self.events[0], list)
            return _ONE_ARRAY_HINT if is_array else ""
        return _ARRAYS_HINT if self.capture.body.lstrip().startswith(b"[") else _FRAMING_HINT

    @property
    def is_answer(self) -> bool:
        """Whether it is a whole answer, and not an error."""
        baseline = self.baseline
        return (
            bool(self.events)
            and baseline.error is None
            and self.capture.status < 400
            and baseline.response["finish_reason"] not in {"error", "cancelled"}
        )

    @cached_property
    def typed(self) -> dict[str, Any]:
        """The values of the typed fields of the baseline."""
        return typed(self.baseline.response)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The leaves of all events, in order."""
        return list(leaves(self.events))

    def sampled(self) -> list[Leaf]:
        """Return the leaves to try: all, or a sample that is the same every time."""
        sampled_leaves = self.some(self.leaves, self.sample)
        self.tally.leaves += len(sampled_leaves)
        return sampled_leaves

    def unlike(self) -> list[Leaf]:
        """Return fewer leaves, for slow checks: all, or a sample without two leaves of the same meaning."""
        if self.sample is None:
            return self.sampled()
        sampled_leaves = self.some(self.alike(self.leaves), max(self.sample // 4, 8))
        self.tally.leaves += len(sampled_leaves)
        return sampled_leaves

    def few(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """Return some of *leaves*, each of another meaning: all, or a small sample."""
        return self.some(self.alike(leaves), None if self.sample is None else max(self.sample // 4, 2))

    def nodes(self, *, kind: type = object) -> Iterator[Leaf]:
        """Yield every value of *kind* in the events as if it were a leaf, but no empty container."""
        for number, event in enumerate(self.events):
            for path, value in nodes(event, kind=kind):
                yield Leaf(number, path, value)

    def every_place(self, *types: type, by_value: bool = True) -> list[Place]:
        """Return the places with values of *types*.

        Args:
            types: the types of the values. If there are none, all values but null.
            by_value: whether a place holds one value only, or all values at its path, after the same words of a row.
        """
        leaf_groups: dict[Any, list[Leaf]] = {}
        for leaf in self.leaves:
            if type(leaf.value) in types or (not types and leaf.value is not None):
                value_key = (type(leaf.value), leaf.value) if by_value else None
                leaf_groups.setdefault((leaf.path, value_key, self.words(leaf)), []).append(leaf)
        return [Place(tuple(group)) for group in leaf_groups.values()]

    def places(self, *types: type, by_value: bool = True) -> list[Place]:
        """Return a sample of :meth:`every_place`: one of each meaning, by chance."""
        if self.sample == 0:
            return []
        places = self.every_place(*types, by_value=by_value)
        if self.sample is None:
            return places
        place_by_leaf = {place.leaves[0]: place for place in places}
        return self.some([place_by_leaf[leaf] for leaf in self.alike(place_by_leaf)], self.sample)

    def meaning(self, leaf: Leaf) -> tuple[str, Any]:
        """Return a key of all leaves of the same meaning: the path without item numbers, and their holder's name.

        The name is the first word in the holder: the text of ``{"kind": "say", "text": …}`` is not that of a ``think``.
        In ``["tool", 0, "name", …]`` a value has a meaning by its position and by the words before it.
        """
        *parents, key = leaf.path
        words = self.words(leaf)
        if not words and isinstance(key, str):
            first_key, first_value = next(iter(at(self.events[leaf.event], tuple(parents)).items()))
            words = () if first_key == key else _names([first_value])
        event_name = self.frames[leaf.event][1] if self.frames else None
        return show_path(leaf.path, items=False), (words, key) if words else event_name

    def words(self, leaf: Leaf) -> tuple[str, ...]:
        """Return the words before *leaf*, or before its holder, in the same array."""
        words: tuple[str, ...] = ()
        node = self.events[leaf.event]
        for key in leaf.path:
            if isinstance(key, int):
                words += _names(node[:key])
            node = at(node, (key,))
        return words

    def alike(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """Return one of *leaves* for each meaning, taken by chance."""
        groups: dict[Any, list[Leaf]] = {}
        for leaf in leaves:
            groups.setdefault(self.meaning(leaf), []).append(leaf)
        rng = random.Random(self.capture.case)
        return [rng.choice(group) for group in groups.values()]

    def of_this_form(self) -> Iterator[tuple[list[Frame], list[Any]]]:
        """Yield the frames and the events of this capture, and of a sample of the others that are streams like it."""
        yield self.frames, self.events
        for other in self.some([one for one in self.others if one != self.capture], _MAX_COMPARED_CAPTURES):
            if other.stream == self.capture.stream:
                yield decoded(self.mapper, other)

    def renamed(self, name: str, new_name: str) -> bytes:
        """Return the bytes of the capture with another name for its events of *name*."""
        frames = [(data, new_name if event_name == name else event_name) for data, event_name in self.frames]
        return self.reframed(frames, self.events)(self.events)

    def some(self, items: list[_T], size: int | None) -> list[_T]:
        """Return *items*, or a sample of *size* that is the same every time. ``None`` means all."""
        if size is None or len(items) <= size:
            return items
        return random.Random(self.capture.case).sample(items, size)

    def marked(self, place: Place) -> Outcome:
        """Map the capture with :data:`MARKER`, a text that occurs nowhere else, in *place*."""
        if place.leaves not in self._marked_outcomes:
            value = marker_for(place.value)
            self._marked_outcomes[place.leaves] = self.map(place.put(self.events, value))
        return self._marked_outcomes[place.leaves]

    def problem(
        self, promise: str, where: Leaf | Place | str, message: str, *, about: str = "", kind: str = ""
    ) -> Problem:
        """Return the problem of a broken *promise*.

        Args:
            promise: the promise.
            where: the leaves, or another position, such as a canonical field.
            message: a description of the problem.
            about: the canonical field, if it is neither *where* nor one that changes with these leaves.
            kind: the kind of mistake, such as ``reasoning became text``, if this is certain.
        """
        case, path = self.capture.case, ""
        fields: tuple[str, ...] = (about or ("framing" if promise == "P3" else str(where)),)
        if not isinstance(where, str):
            path = show_path(where.path, items=False)
            if not about:
                fields = self.fields_at(where if isinstance(where, Leaf) else where.leaves[0])
        return Problem(promise, f"{case}, {where}", message, path=path, case=case, fields=fields, kind=kind)

    def fields_at(self, leaf: Leaf) -> tuple[str, ...]:
        """Return the canonical fields that change with *leaf*; a part of the answer by its type."""
        if leaf not in self.leaves or self.baseline.error is not None:
            return ()
        key = (leaf.event, leaf.path)
        if key not in self._fields:
            changed_outcome = self.map(next(changes(self.events, leaf))[1])
            new = typed(changed_outcome.response) if changed_outcome.error is None else self.typed
            fields = []
            for path in changed_paths(self.typed, new):
                sides = (self.typed, new) if path[0] == "segments" else ()
                kinds = [at(side, (*path[:2], "type")) for side in sides]
                fields += [kind for kind in kinds if kind is not MISSING] or [show_path(path)]
            self._fields[key] = tuple(dict.fromkeys(fields))
        return self._fields[key]


def _names(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str) and NAME.fullmatch(value))


def marker_for(value: Any) -> str:
    """Return :data:`MARKER`. If *value* is the text of a JSON object, return the text of one that holds the marker."""
    return MARKER if json_object(value) is None else f'{{"{MARKER}":"{MARKER}"}}'


def reader_options(capture: Capture, *, keep_raw: bool = False) -> ReaderOptions:
    """Return the options for reading *capture*, always with the same id and clock."""
    return ReaderOptions(
        status=capture.status,
        id_factory=fixed_id,
        clock=fixed_clock,
        keep_raw=keep_raw,
        content_type=capture.content_type,
    )


def typed(response: dict[str, Any]) -> dict[str, Any]:
    """Return the canonical JSON *response* without the extensions, and without all values that follow from the rest."""
    usage = {k: v for k, v in response["usage"].items() if k != "total_tokens"}
    metadata = {k: v for k, v in response["metadata"].items() if k not in ("extensions", "provenance")}
    return {**response, "usage": usage, "metadata": metadata}


def answer(response: dict[str, Any]) -> Any:
    """Return the answer in the canonical JSON *response*, regardless of its form."""
    keys = ("message", "finish_reason", "refusal", "usage", "alternatives")
    return [response.get(key) for key in keys], [part["content"] for part in response.get("segments", ())]


def occurrences(value: Any, text: str = MARKER) -> int:
    """Count the occurrences of *text* in the texts of *value*, a JSON value."""
    return sum(string.count(text) for string in strings(value))


def strings(value: Any) -> Iterator[str]:
    """Yield every text in *value*, a JSON value, including the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
