"""Most events of a stream differ from one before in a few leaves: read those, not the whole event.

A :class:`Template` is learnt from an event that was parsed and mapped: the bytes around its holes. A hole is a whole JSON
value: the text that the delta carries, a stamp that only the extensions keep, the number of the event, its counts, its log
probabilities. A later frame with the same bytes around other values is the same JSON with those values in their places, so
that the mapper would make the same delta with that text: that is the promise of ``ProviderInfo.text_leaves`` and its like.
Anything else is parsed anew, and so is everything where a plugin promises nothing or a hook is wrapped.

Proof that what stands between the literals are whole values: the holes of strings and numbers are parsed together, as the
items of one array, with a comma and a line feed between them. No JSON string holds a line feed, so that each of these commas
is one between items, of this array or of one in it; where there come out as many items as there are holes, and none of them
is an array or an object, these are all the commas there are, and each hole is one item. A hole that may hold an object is
parsed by itself. White space around a value is part of its hole; where lines tell events apart, no line may end in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice, repeat
from operator import eq, length_hint
from typing import Any, Final, Literal, TypeAlias

import attrs
import orjson

from crosswalk.mapping.interpreter import Interpreter, Said, may_be_empty
from crosswalk.plugin.info import LogprobReader, Path
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.state import MappingState
from crosswalk.plugin.take import NOTED, empty_containers, mistyped, note_again, prune
from crosswalk.types.delta import UNNUMBERED, ResponseDelta, text_delta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, adopted, dump_json, load_json
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.merge import copy_json, same_json
from crosswalk.types.segment import SegmentType
from crosswalk.types.tools import arguments_delta
from crosswalk.types.usage import UsageInfo
from crosswalk.wire import Frame, Limits
from crosswalk.wire.framing import CR, LF, PushDecoder

__all__ = ["RUN", "Found", "Template", "Templates", "learn"]

Found: TypeAlias = list[Any]
"""What stands in the holes of a frame, in their order; of log probabilities what was made of them."""
_Role: TypeAlias = Literal["text", "stamp", "number", "usage", "logprobs"]

_PROBES: Final[dict[type, Any]] = {
    str: "crosswalk-probe",
    int: 730517,
    dict: {"crosswalk-probe": 1},
    list: [1],
}
_SCALARS: Final = (str, int)
_KINDS: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.TOOL_CALL)
_MISSES: Final = 16
"""So many templates in a row may go unused before a stream's events are all parsed."""
_MOST: Final = 64
"""So many are tried, one after the other, before an event is parsed: as many as a stream may have choices."""
RUN: Final = 64
"""So many events are read at once: one of another kind among them, and all are read one by one."""
_SHORTEST_RUN: Final = 4
_LONGEST: Final = 65_536
"""From a longer event nothing is learnt: to find its leaves takes time."""


@attrs.frozen
class _Hole:
    """Where in a frame a leaf stands, and what it is.

    Attributes:
        start: the first byte of the value, a string's quote.
        end: the byte behind it.
        path: the keys that lead to the leaf.
        role: what it is.
        kind: the type of the value.
    """

    start: int
    end: int
    path: Path
    role: _Role
    kind: type


class Template:
    """One kind of event: what its delta is, and how to read its holes.

    Attributes:
        kind: what the text is: text, reasoning, or the arguments of a tool call.
        choice: whose text it is.
        call: whose arguments they are; ``None`` for other text.
        name: the SSE name that such a frame must have; ``None`` for none.
        text: which of the holes the text is.
        stamps: those that are stamps, each with the key under which ``extensions`` keeps it.
        number: the one that is the event's number; ``None`` for none.
        usage: the one that is its counts, with their key; ``None`` for none.
        logprobs: the one that is its log probabilities; ``None`` for none.
        is_text: whether the text is text.
        is_simple: whether it has neither counts nor log probabilities.
        read: what is in the holes of a frame; ``None`` where it is another kind of event.
        read_chunk: the same for what came in one read: a frame with all that its framing puts around it; ``None`` while
            that is not known.
        read_run: the same for many frames, hole by hole; ``None`` where it is to be read one by one.
        hot: *read_chunk* taken apart where a text changes, and one stamp at most, a string: what stands before and behind
            both, where they begin and end, what stands between them or ``None``, the stamp's key, whether the text is first.
        frame: where in a read of one event the frame stands.
        follower: which template the next event is likely to be one of.
        pieces: where the answer keeps the text that such events go on with.
        heard: how many of these the plugin's hooks know of.
        kept: the extensions, where it has stamps.
    """

    __slots__ = (
        "_holes", "_literals", "_takes", "call", "choice", "follower", "frame", "heard", "hot", "is_simple", "is_text",
        "kept", "kind", "logprobs", "name", "number", "pieces", "read", "read_chunk", "read_run", "stamps", "text", "usage",
    )  # fmt: skip

    def __init__(
        self,
        delta: ResponseDelta,
        holes: list[_Hole],
        literals: list[bytes],
        name: str | None,
        depth: int,
        take: _Take | None,
    ) -> None:
        said = delta.tool_call_delta
        self.kind = _KINDS[2 if said is not None else 1 if delta.reasoning_delta is not None else 0]
        self.choice = delta.choice
        self.call = None if said is None else said.index
        self.is_text = self.kind is SegmentType.TEXT
        self.name = name
        places = {role: [n for n, hole in enumerate(holes) if hole.role == role] for role in _ROLES}
        (self.text,) = places["text"]
        self.stamps = [(place, str(holes[place].path[0])) for place in places["stamp"]]
        self.number = next(iter(places["number"]), None)
        self.usage = next(((place, str(holes[place].path[0])) for place in places["usage"]), None)
        self.logprobs = next(iter(places["logprobs"]), None)
        self.is_simple = self.usage is None and self.logprobs is None
        self._holes, self._literals, self._takes = holes, literals, (depth, take)
        self.read = _reading(literals, holes, *self._takes)
        self.read_run = _run_reading(literals, holes) if self.is_simple else None
        self.read_chunk: Callable[[bytes], Found | None] | None = None
        self.frame = slice(0, None)
        self.hot: _Hot | None = None
        self.follower = self
        self.pieces: list[str] = []
        self.heard = 0
        self.kept: dict[str, Any] = {}

    def is_akin(self, other: Template) -> bool:
        """Whether they have the same in their holes, so that what is news to one of them is no news to the other."""
        return self._beside() == other._beside()

    def _beside(self) -> tuple[set[str], str | None]:
        return {key for _, key in self.stamps}, self.usage and self.usage[1]

    def frame_stands_in(self, chunk: bytes, frame: bytes) -> None:
        """Say that *chunk* came in one read between two others, and holds *frame*, which was read, and nothing else.

        With the same bytes around it, whatever they are, another frame is framed in the same way.
        """
        before, _, behind = chunk.partition(frame)
        # Else it stands there in several lines, or in a comment as well.
        if chunk.find(frame) == chunk.rfind(frame) >= 0:
            first, *more = self._literals
            first, more[-1] = before + first, more[-1] + behind
            self.read_chunk = _reading([first, *more], self._holes, *self._takes)
            kinds = [hole.kind for hole in self._holes]
            if self.call is None and self.number is None and kinds in ([str], [str, str]):
                middle, key = (None, "") if len(more) == 1 else (more[0], self.stamps[0][1])
                self.hot = first, more[-1], len(first), -len(more[-1]), middle, key, self.text == 0
            self.frame = slice(len(before), -len(behind) or None)

    def counts(self, found: Found) -> dict[str, Any]:
        """The counts that are *found* in a frame, and its stamps, as an event that holds nothing else."""
        if self.usage is None and not self.stamps:
            return {}
        event = {key: found[place] for place, key in self.stamps} if self.stamps else {}
        if self.usage is not None:
            event[self.usage[1]] = found[self.usage[0]]
        return event

    def delta(
        self,
        found: Found,
        index: int = UNNUMBERED,
        extensions: FrozenObject = EMPTY_OBJECT,
        usage: UsageInfo | None = None,
    ) -> ResponseDelta:
        """What is *found* in a frame as a delta."""
        text, logprobs = found[self.text], None if self.logprobs is None else found[self.logprobs]
        content = reasoning = fragment = None
        if self.is_text:
            content = text
        elif self.call is None:
            reasoning = text
        else:
            fragment = arguments_delta(self.call, text)
        return text_delta(index, content, reasoning, fragment, self.choice, extensions, logprobs, usage)


_Hot: TypeAlias = tuple[bytes, bytes, int, int, bytes | None, str, bool]
_ROLES: Final[tuple[_Role, ...]] = ("text", "stamp", "number", "usage", "logprobs")
_Take: TypeAlias = Callable[[Any, str, bytes], tuple[TokenLogprob, ...] | None]
"""What log probabilities are made of a value, with the text beside it and its JSON."""


def _reading(
    literals: list[bytes], holes: list[_Hole], depth: int, take: _Take | None
) -> Callable[[bytes], Found | None]:
    """How to read the *holes* between *literals*; see the module for the proof."""
    begin, *between, end = literals
    start, stop = len(begin), -len(end)
    kinds = [hole.kind for hole in holes if hole.kind in _SCALARS]
    scalars = [place for place, hole in enumerate(holes) if hole.kind in _SCALARS]
    values = [(place, hole) for place, hole in enumerate(holes) if hole.kind not in _SCALARS]
    (text,) = [n for n, place in enumerate(scalars) if holes[place].role == "text"]

    def read_one(frame: bytes) -> Found | None:
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None
        hole = frame[start:stop]
        if LF in hole or CR in hole:
            return None
        try:
            found = orjson.loads(hole)
        except ValueError:  # no UTF-8, no such escape, a second string: whoever parses the frame will say so
            return None
        return [found] if found and type(found) is str else None

    def cut(frame: bytes) -> list[bytes] | None:
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None
        rest, cuts = frame[start:stop], []
        if LF in rest or CR in rest:
            return None
        for literal in between:
            hole, has_found, rest = rest.partition(literal)
            if not has_found:
                return None
            cuts.append(hole)
        cuts.append(rest)
        return cuts

    def parsed(cuts: list[bytes]) -> Found | None:
        try:
            found: Found = orjson.loads(b"[%b]" % b",\n".join(cuts))
        except ValueError:
            return None
        return found if [*map(type, found)] == kinds and found[text] else None

    def read_more(frame: bytes) -> Found | None:
        cuts = cut(frame)
        return None if cuts is None else parsed(cuts)

    def read_values(frame: bytes) -> Found | None:
        cuts = cut(frame)
        found = None if cuts is None else parsed([cuts[place] for place in scalars])
        if cuts is None or found is None:
            return None
        said = found[text]
        for place, hole in values:
            data = cuts[place]
            # Each level takes a bracket: what has few of them is not too deep.
            if data.count(b"{") + data.count(b"[") + len(hole.path) > depth:
                return None
            try:
                value = load_json(data)
            except ValueError:
                return None
            if type(value) is not hole.kind:
                return None
            if hole.role == "logprobs" and take is not None:
                value = take(value, said, data)
                if value is None:
                    return None
            found.insert(place, value)
        return found

    def read_two(frame: bytes) -> Found | None:  # as read_more: most that has a text and a stamp is this
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None
        rest = frame[start:stop]
        if LF in rest or CR in rest:
            return None
        first, _, last = rest.partition(middle)  # without it the last is empty, and no value
        try:
            found = [orjson.loads(first), orjson.loads(last)]  # each by itself: one value
        except ValueError:
            return None
        is_as_learnt = type(found[0]) is one and type(found[1]) is other and found[text]
        return found if is_as_learnt else None

    def read_valued(frame: bytes) -> Found | None:  # as read_values: most that has counts or tokens is this
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None
        rest = frame[start:stop]
        if LF in rest or CR in rest:
            return None
        first, _, last = rest.partition(middle)
        said_in, data = (last, first) if is_first else (first, last)
        if len(data) > shallow and data.count(b"{") + data.count(b"[") + len(hole.path) > depth:
            return None  # pragma: no cover
        try:
            said, value = orjson.loads(said_in), load_json(data)
        except ValueError:
            return None
        if type(said) is not str or not said or type(value) is not hole.kind:
            return None
        if take is not None:
            value = take(value, said, data)
            if value is None:
                return None
        return [value, said] if is_first else [said, value]

    middle = between[0] if between else b""
    one, other = kinds[0], kinds[-1]
    if values and len(holes) == 2:
        ((place, hole),) = values
        is_first, shallow = place == 0, 2 * (depth - len(hole.path))
        return read_valued
    if values:
        return read_values
    return (read_one, read_two)[len(between)] if len(between) < 2 else read_more


def _run_reading(
    literals: list[bytes], holes: list[_Hole]
) -> Callable[[Sequence[bytes]], list[Sequence[Any]] | None]:
    """How to read the *holes* of many frames at once: the literals are compared in one go, the holes parsed in another."""
    begin, *between, end = literals
    start, stop, joint = len(begin), -len(end), end + b"\n" + begin
    (text,) = [place for place, hole in enumerate(holes) if hole.role == "text"]

    def read_run(frames: Sequence[bytes]) -> list[Sequence[Any]] | None:
        rests: Sequence[bytes] = [frame[start:stop] for frame in frames]
        # Of a frame that is too short more would come out than went in.
        if begin + joint.join(rests) + end != b"\n".join(frames):
            return None
        columns: list[Sequence[bytes]] = []
        for literal in between:
            hole, separators, rests = zip(*[rest.partition(literal) for rest in rests], strict=True)
            if not all(separators):
                return None  # pragma: no cover
            columns.append(hole)
        columns.append(rests)
        try:
            found = orjson.loads(b"[%b]" % b",\n".join(chain(*columns)))
        except ValueError:  # pragma: no cover
            return None
        each = len(frames)
        values = [found[n : n + each] for n in range(0, len(found), each)]
        is_as_learnt = len(found) == each * len(holes) and all(
            {*map(type, column)} == {hole.kind} for column, hole in zip(values, holes, strict=True)
        )
        return values if is_as_learnt and all(values[text]) else None

    return read_run


# Learning.


def learn(
    frame: bytes,
    name: str | None,
    deltas: Sequence[ResponseDelta],
    usage: UsageInfo | None,
    rest: dict[str, Any],
    mapper: Mapper,
    depth: int = 200,
    dialect: Any = None,
    news: dict[str, Any] | None = None,
) -> Template | None:
    """A template made from *frame*, which was mapped to *deltas* and *usage* and left *rest*; ``None`` where none can be.

    Args:
        frame: the event.
        name: its SSE name.
        deltas: what its hooks made of it.
        usage: its counts; ``None`` without any.
        rest: what they left.
        mapper: whose hooks they are, and what their plugin promises.
        depth: how deep an event may be nested.
        dialect: which of the provider's dialects the answer is in; ``None`` where it has but one.
        news: what of *rest* is new, which the delta has got when it was shown; ``None`` where it was not shown yet.
    """
    text = _only_text(deltas[0], news) if len(deltas) == 1 else None
    if not text or len(frame) > _LONGEST:
        return None
    event = load_json(frame)  # again: the hooks have taken it apart
    info = mapper.info
    leaf = next(
        (leaf for leaf in info.text_leaves if _at(event, leaf) == text and _at(rest, leaf) is None), None
    )
    if leaf is None:
        return None
    leaves: list[tuple[Path, _Role]] = [(leaf, "text")]
    leaves += [(path, "stamp") for path in info.stamp_leaves if type(_at(event, path)) in _SCALARS]
    leaves += [(path, "number") for path in info.number_leaves if type(_at(event, path)) is int]
    counted: list[Path] = []
    if usage is not None:
        alone = (
            path for path in info.usage_leaves if _reads_alone(mapper, dialect, path, event, usage, rest)
        )
        counted = [*islice(alone, 1)]
        leaves += [(path, "usage") for path in counted]
    take: _Take | None = None
    tokens = deltas[0].logprobs
    for path, reader in info.logprob_leaves.items() if tokens is not None else ():
        if type(_at(event, path)) in (dict, list) and take is None:
            take = _taking(path, reader, rest)
            if take(copy_json(_at(event, path)), text, dump_json(_at(event, path))) != tokens:
                return None
            leaves.append((path, "logprobs"))
    if (
        (usage is not None and not counted)
        or (tokens is not None and take is None)
        or any(len(path) != 1 for path, role in leaves if role in ("stamp", "number", "usage"))
        # A number that does not follow the one before says something.
        or any(_at(rest, path) is not None for path, role in leaves if role == "number")
    ):
        return None
    holes = [_find(frame, path, role, _at(event, path)) for path, role in leaves]
    found = sorted((hole for hole in holes if hole is not None), key=lambda hole: hole.start)
    literals = _between(frame, found)
    if len(found) < len(leaves) or not _is_proven(frame, literals, found, event):
        return None
    return Template(deltas[0], found, literals, name, depth, take)


def _only_text(delta: ResponseDelta, news: dict[str, Any] | None) -> str | None:
    """The text, reasoning, or arguments of a known call that *delta* carries, if that is all beside log probabilities."""
    call = delta.tool_call_delta
    if call is not None and (call.id is not None or call.name is not None):
        return None
    arguments = None if call is None else call.arguments_delta
    said = (delta.content_delta, delta.reasoning_delta, arguments)
    texts = [text for text in said if text is not None]
    is_alone = (
        len(texts) == 1
        and delta.finish_reason is None
        and delta.usage is None
        and delta.refusal_delta is None
        and delta.segment is None
        and delta.raw_finish_reason is None
        and (delta.logprobs is None or delta.content_delta is not None)
        # Its own are none; what is new was added when it was shown.
        and (delta.extensions is EMPTY_OBJECT or delta.extensions._data is news)
    )
    return texts[0] if is_alone else None


def _reads_alone(
    mapper: Mapper, dialect: Any, path: Path, event: Any, usage: UsageInfo, rest: dict[str, Any]
) -> bool:
    """Whether of the counts at *path* alone ``map_usage`` makes the same, and leaves the same, as of the whole *event*."""
    if len(path) != 1 or type(_at(event, path)) is not dict:
        return False
    key = str(path[0])
    part = {key: copy_json(event[key])}
    kept, noted = empty_containers(part), len(NOTED.values)
    state = mapper.new_state()
    state.dialect = dialect
    try:
        alone = mapper.map_usage(part, state)
    except Exception:  # as a stranger's hook may that needs more of the event
        alone = None
    prune(part, kept)
    return not _unnoted(noted) and alone == usage and same_json(part.get(key), rest.get(key))


def _unnoted(count: int) -> bool:
    """Whether more than *count* values were noted as mistyped, which are forgotten: the event is read anew."""
    has_more = len(NOTED.values) > count
    if has_more:
        note_again(mistyped()[:count])
    return has_more


def _taking(path: Path, reader: LogprobReader, rest: dict[str, Any]) -> _Take:
    """Log probabilities by their *reader*; ``None`` where it leaves anything but what it has left in *rest*."""
    left, key = _at(rest, path), str(path[-1])

    def take(value: Any, text: str, data: bytes) -> tuple[TokenLogprob, ...] | None:
        holder, noted, was_empty = {key: value}, len(NOTED.values), not value
        try:
            tokens = reader(holder, text)
            more = holder.get(key)
            if more == {} and not was_empty:
                del holder[key]
            elif more is not None and (type(more) is not dict or any(map(_is_container, more.values()))):
                kept: dict[int, Any] = {}
                if may_be_empty(data):  # what is empty now may have been before: once more, to tell
                    holder = {key: load_json(data)}
                    kept = empty_containers(holder)
                    tokens = reader(holder, text)
                prune(holder, kept)
        except Exception:  # whoever maps the event will say so
            tokens = None
        is_as_before = not _unnoted(noted) and same_json(holder.get(key), left)
        return tokens if is_as_before else None

    return take


def _is_container(value: Any) -> bool:
    return type(value) is dict or type(value) is list


def _find(frame: bytes, path: Path, role: _Role, value: Any) -> _Hole | None:
    """Where *value* stands in *frame* under its key; ``None`` unless it is one place."""
    found = []
    for separator in (b'":', b'": '):
        opening = b'"' + str(path[-1]).encode() + separator
        if frame.count(opening) > _MOST:
            return None
        start = frame.find(opening)
        while start >= 0:
            start += len(opening)
            end = _end_of(frame, start, value)
            if end is not None:
                found.append(_Hole(start, end, path, role, type(value)))
            start = frame.find(opening, start)
    return found[0] if len(found) == 1 else None


_DECODER: Final = json.JSONDecoder()


def _end_of(frame: bytes, start: int, value: Any) -> int | None:
    """The byte behind the JSON text at *start*, if it is that of *value*."""
    text = frame[start:].decode(errors="replace")
    try:
        found, end = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return start + len(text[:end].encode()) if same_json(found, value) else None


def _between(frame: bytes, holes: list[_Hole]) -> list[bytes]:
    """The bytes before, between and behind *holes*."""
    begins = [0, *(hole.end for hole in holes)]
    ends = [*(hole.start for hole in holes), len(frame)]
    return [frame[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _is_proven(frame: bytes, literals: list[bytes], holes: list[_Hole], event: Any) -> bool:
    """Whether with probes in its holes the frame is the same event with probes in those leaves."""
    strings = [(frame[hole.start : hole.end], _at(event, hole.path)) for hole in holes if hole.kind is str]
    around = b"\n".join((*literals, *(text for text, _ in strings)))
    for text, value in strings:
        # The same string elsewhere, in whatever spelling, may be there because of this one.
        spellings = {text, orjson.dumps(value), json.dumps(value).encode()}
        if sum(map(around.count, spellings)) != 1:
            return False
    probes = [_PROBES[hole.kind] for hole in holes]
    texts = [orjson.dumps(probe) for probe in probes]
    probed = load_json(b"".join(part for pair in zip(literals, texts) for part in pair) + literals[-1])  # noqa: B905
    for hole, probe in zip(holes, probes, strict=True):
        if _at(probed, hole.path) != probe:
            return False  # pragma: no cover
        _put(probed, hole.path, _at(event, hole.path))
    return bool(probed == event)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _put(value: Any, path: Path, leaf: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf


# Reading an answer.


@attrs.define
class _Run:
    """Events that were read at once: what they say is said as it is handed out.

    Attributes:
        template: what they are alike to.
        frames: the events.
        texts: what each says.
        stamps: what each has beside, with its key.
        number: that of the event before the first.
        left: gives out their deltas.
        told: how many of them are part of the answer.
    """

    template: Template
    frames: Sequence[bytes]
    texts: Sequence[str]
    stamps: list[tuple[str, Sequence[Any]]]
    number: int
    left: Iterator[ResponseDelta]
    told: int = 0


TellParts: TypeAlias = Callable[[Template, Found, bytes], Iterable[ResponseDelta]]
"""The deltas of a frame in whose holes a template has found more than a text."""


class Templates:
    """The templates of one answer, and what was read by them: it goes straight into the answer's state.

    Args:
        state: the state of the answer.
        raw: where frames are kept; ``None`` where they are not.
        limits: how many events may come, how long they may be, and how deep.
        learns: whether anything may be learnt.

    Attributes:
        events: how many events have come.
        learns: whether anything is still learnt.
    """

    def __init__(self, state: MappingState, raw: list[bytes] | None, limits: Limits, *, learns: bool) -> None:
        self._state = state
        self._raw = raw
        self._most, self._longest, self._depth = limits.events, limits.line_bytes, limits.depth
        self.events = 0
        self.learns = learns
        self._known: list[Template] = []
        self._last: Template | None = None  # the one that has read last, or was learnt since
        self._number = 0  # of the event that had one last
        self._run: _Run | None = None
        self._misses = 0
        self._mapped = 0  # the number of the event that was mapped last
        self._have_told = False  # whether others came between that and the one before

    # What is like something before.

    def read_chunk(
        self, chunk: bytes, live: PushDecoder, tell_parts: TellParts
    ) -> Iterable[ResponseDelta] | None:
        """The deltas of *chunk*, which came in one read between two events; ``None`` where it is like nothing before.

        Args:
            chunk: the bytes.
            live: the framing, which counts them.
            tell_parts: tells what is not simple.
        """
        last = self._last
        if last is None or self._run is not None:  # a run that nobody has read to its end
            return None
        template = last.follower
        if template.hot is not None:
            # Spelt out, as readings and :meth:`tell` have it: most of what comes live is a text, alone or with one stamp.
            begin, end, start, stop, middle, key, text_first = template.hot
            if chunk.startswith(begin) and chunk.endswith(end):
                hole, size, live_room = chunk[start:stop], len(chunk), live.room
                if (
                    LF in hole
                    or CR in hole
                    or size > live_room
                    or size > self._longest
                    or self.events >= self._most
                ):
                    return None
                extensions = EMPTY_OBJECT
                try:
                    if middle is None:
                        text = orjson.loads(hole)
                    else:
                        first, _, second = hole.partition(middle)
                        text, stamp = orjson.loads(first), orjson.loads(second)
                        if not text_first:
                            text, stamp = stamp, text
                        if type(stamp) is not str:
                            return None
                except ValueError:
                    return None
                if not text or type(text) is not str:
                    return None
                if middle is not None and template.kept.get(key) != stamp:
                    template.kept[key] = stamp
                    extensions = adopted({key: stamp})
                live.room = live_room - size
                if template is not last:
                    last.follower = self._last = template
                self.events += 1
                if self._raw is not None:
                    self._raw.append(chunk[template.frame])
                template.pieces.append(text)
                state = self._state
                index = state.delta_count
                state.delta_count = index + 1
                if template.is_text:
                    return (text_delta(index, text, None, None, template.choice, extensions),)
                return (text_delta(index, None, text, None, template.choice, extensions),)
        read = template.read_chunk
        found = None if read is None else read(chunk)
        if found is None:
            for template in self._known:
                if template.read_chunk is not None and (found := template.read_chunk(chunk)) is not None:
                    break
            else:
                return None
        if template.number is not None and found[template.number] != self._number + 1:
            return None
        size = len(chunk)
        if self.events >= self._most or size > live.room or size > self._longest:
            return None  # pragma: no cover
        live.room -= size
        if template is not last:
            last.follower = self._last = template
        frame = chunk[template.frame]
        return (
            (self.tell(template, found, frame),) if template.is_simple else tell_parts(template, found, frame)
        )

    def find(self, frame: bytes, name: str | None) -> tuple[Template, Found] | None:
        """What *frame*, of SSE name *name*, is like."""
        last = self._last
        if last is None:
            return None
        template = last.follower
        found = template.read(frame) if template.name == name else None
        if found is None:
            for template in self._known:
                if template.name == name and (found := template.read(frame)) is not None:
                    break
            else:
                return None
        if template.number is not None and found[template.number] != self._number + 1:
            return None
        if template is not last:
            last.follower = self._last = template
        return template, found

    def tell(self, template: Template, found: Found, frame: bytes) -> ResponseDelta:
        """The delta of the event *frame*, in whose holes *template*, a simple one, has *found* what it says."""
        self.events += 1
        if self._raw is not None:
            self._raw.append(frame)
        state, text, extensions = self._state, found[template.text], EMPTY_OBJECT
        if template.stamps:
            known, news = template.kept, {}
            for place, key in template.stamps:
                stamp, old = found[place], known.get(key)
                if stamp != old or type(stamp) is not type(old):
                    known[key] = news[key] = stamp
            if news:
                extensions = adopted(news)
        if template.number is not None:
            self._number += 1
        index = state.delta_count
        state.delta_count = index + 1
        template.pieces.append(text)  # as the choice would, to which the delta is added
        if template.call is None:
            content, reasoning = (text, None) if template.is_text else (None, text)
            return text_delta(index, content, reasoning, None, template.choice, extensions)
        return text_delta(
            index, None, None, arguments_delta(template.call, text), template.choice, extensions
        )

    def show(
        self, template: Template, found: Found, usage: UsageInfo | None, news: dict[str, Any]
    ) -> ResponseDelta:
        """The delta of an event that was counted, in whose holes *template* has *found* what it says.

        Args:
            template: what it is like.
            found: what is in its holes.
            usage: the counts that the hooks have found; ``None`` without any.
            news: what is new to the extensions, which hold it already.
        """
        if template.number is not None:
            self._number += 1
        state, index = self._state, self._state.delta_count
        state.delta_count = index + 1
        if usage is not None:
            usage = state.report_shown(usage)
        delta = template.delta(found, index, adopted(news) if news else EMPTY_OBJECT, usage)
        template.pieces.append(found[template.text])
        if template.logprobs is not None:
            state.choices[template.choice].weigh(found[template.logprobs])
        return delta

    # Many at once.

    def read_run(self, frames: Sequence[Frame]) -> Iterator[ResponseDelta] | None:
        """The deltas of *frames* that are all like the one before; ``None`` where they are not.

        To be read to the end, or to where the reader stops: the answer holds what has been handed out, see :meth:`settle`.
        """
        template = self._last
        if (
            template is None
            or template.follower is not template
            or template.read_run is None
            or len(frames) < _SHORTEST_RUN
            or self.events + len(frames) > self._most
        ):
            return None
        datas, names = zip(*frames, strict=True)
        if names.count(template.name) < len(names):
            return None
        columns = template.read_run(datas)
        if columns is None:
            return None
        if template.number is not None:
            first = self._number + 1
            if columns[template.number] != [*range(first, first + len(frames))]:
                return None
        texts = columns[template.text]
        stamps = [(key, columns[place]) for place, key in template.stamps]
        index, choice, call = self._state.delta_count, template.choice, template.call
        extensions = self._news(template, stamps) if stamps else repeat(EMPTY_OBJECT)
        said = zip(count(index), texts, extensions)  # two of them may be endless
        if call is not None:
            deltas = [
                text_delta(n, None, None, arguments_delta(call, text), choice, more) for n, text, more in said
            ]
        elif template.is_text:
            deltas = [text_delta(n, text, None, None, choice, more) for n, text, more in said]
        else:
            deltas = [text_delta(n, None, text, None, choice, more) for n, text, more in said]
        left = iter(deltas)
        self._run = _Run(template, datas, texts, stamps, self._number, left)
        return left

    def _news(self, template: Template, stamps: list[tuple[str, Sequence[Any]]]) -> list[FrozenObject]:
        """What of *stamps* is new to the extensions, event by event."""
        (key, column), *others = stamps
        before = [template.kept.get(key), *column[:-1]]
        if not others and not any(map(eq, column, before)):  # as a time is, with every event
            return [adopted({key: stamp}) for stamp in column]
        news: list[dict[str, Any]] = [{} for _ in column]
        for key, column in stamps:
            old = template.kept.get(key)
            for new, stamp in zip(news, column, strict=True):
                if stamp != old or type(stamp) is not type(old):
                    new[key] = old = stamp
        return [adopted(new) if new else EMPTY_OBJECT for new in news]

    def settle(self) -> None:
        """Put into the answer what has been handed out of the last run."""
        run = self._run
        if run is None:
            return
        told = len(run.frames) - length_hint(run.left)
        new = slice(run.told, told)
        if told > run.told:
            self.events += told - run.told
            self._state.delta_count += told - run.told
            run.template.pieces.extend(run.texts[new])
            if self._raw is not None:
                self._raw.extend(run.frames[new])
            for key, column in run.stamps:
                run.template.kept[key] = column[told - 1]
            if run.template.number is not None:
                self._number = run.number + told
            run.told = told
        if told == len(run.frames):
            self._run = None

    # What is learnt.

    def forget(self) -> None:
        """Forget all that was learnt."""
        self._known, self._last = [], None

    def take_over(self, interpreter: Interpreter) -> list[Template]:
        """Those that are known, which are forgotten: an event comes that *interpreter* maps.

        Its hooks are told what was read without them since the event before.
        """
        known, self._known, self._last = self._known, [], None
        self._have_told = self.events > self._mapped + 1
        self._mapped = self.events
        unseen: dict[int, list[str]] = {}
        if self._have_told:
            interpreter.forget_rest()
            for template in known:
                if pieces := template.pieces[template.heard :]:
                    unseen[template.choice] = pieces
                    template.heard += len(pieces)
        self._state.unseen = unseen
        return known

    def learn(
        self,
        before: list[Template],
        source: Any,
        name: str | None,
        said: Said,
        interpreter: Interpreter,
    ) -> None:
        """Learn how to read events like the one that was just mapped, and keep of those *before* what is still right.

        Args:
            before: the templates that were known when it came.
            source: what it was made of; nothing is learnt from any but bytes.
            name: its SSE name.
            said: what it said.
            interpreter: who has mapped it.
        """
        deltas, usage, rest, news = said
        mapper, made = interpreter.mapper, None
        if type(source) is bytes and mapper.is_plain and not interpreter.says_more_when_repeated(rest):
            made = learn(source, name, deltas, usage, rest, mapper, self._depth, self._state.dialect, news)
        if made is not None and made.choice not in self._state.ends:
            self._go_on(made)
            # Where nothing is new but the stamps, what the others have left in the extensions is still there. Of a choice
            # there is one: which call is open, or which block goes on, is then what the hooks have seen last.
            goes_on = news.keys() <= {key for _, key in made.stamps} and len(before) < _MOST
            others = [
                each for each in before if goes_on and each.choice != made.choice and each.is_akin(made)
            ]
            for other in others:
                if other.follower not in others:
                    other.follower = made
            self._known, self._last = [*others, made], made
            if made.number is not None:
                self._number = (made.read(source) or ())[made.number]
        is_miss = before and len(self._known) <= len(before) and not self._have_told
        self._misses = self._misses + 1 if is_miss else 0
        if self._misses > _MISSES:  # one after the other is made and never used
            self.learns = False
            self.forget()

    def _go_on(self, made: Template) -> None:
        """Tell *made* where the answer keeps the text that the event which was just mapped has added to."""
        choice = self._state.choices[made.choice]
        made.pieces = choice.text if made.call is None else choice.calls[made.call].arguments
        made.heard = len(made.pieces)
        made.kept = self._state.extensions if made.stamps else {}
