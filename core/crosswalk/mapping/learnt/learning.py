"""How a template is learnt from an event that was parsed and mapped, and what is known of the events of other answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import orjson

from crosswalk.mapping.interpreter import Said
from crosswalk.mapping.learnt.marks import (
    Gap,
    UnlikeError,
    are_counts,
    between,
    strings_in,
    value_at,
    value_in,
)
from crosswalk.mapping.learnt.pattern import Kind, Pattern, Patterns, patterns_of, strings_left
from crosswalk.mapping.learnt.template import Growing, Template, only_text
from crosswalk.plugin.info import LogprobReader, Path, ProviderInfo
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.state import MappingState
from crosswalk.plugin.take import NOTED, empty_containers, prune, unnoted
from crosswalk.types.json import load_json
from crosswalk.types.merge import copy_json, has_pieces, is_indexed, pieces_table, same_json
from crosswalk.types.metadata import Provenance

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.event_code import Role
    from crosswalk.mapping.learnt.parts import Make, Part

__all__ = ["TooDearError", "learn", "learns_all", "name_their_calls"]

_PROBES: Final[dict[type, Any]] = {
    str: "crosswalk-probe",
    int: 730517,
    dict: {"crosswalk-probe": 1},
    list: [1],
}
_SCALARS: Final = (str, int)
_MOST: Final = 64
"""Where a key stands more often than that, nobody looks which of them it is."""
_MOST_KEYS: Final = 24
"""So many keys at the top of an event are tried for what an answer says of itself: each takes a proof."""
_LONGEST: Final = 65_536
"""From a longer event nothing is learnt: to find its leaves takes time."""
_LONGEST_KEPT: Final = 4096
"""Nor is anything kept of a longer one for other answers: a thousand may be kept, and what is long is seldom the same."""
_FITTING: Final = 6
"""To find out that an event is like one of another answer, and to make use of it, takes as long as mapping six."""
_LEARNING: Final = 30
"""To learn from an event anew takes as long as mapping thirty more."""


class TooDearError(Exception):
    """Nothing is to be learnt of an event just now."""


@lru_cache(maxsize=32)
def learns_all(mapper: Mapper) -> Mapper:
    """One like *mapper*, the same each time, who learns whatever can be learnt of events, whether it pays or not."""
    fresh = attrs.evolve(mapper)
    fresh.memory[Patterns] = Patterns(sys.maxsize)
    return fresh


class _Mapped(NamedTuple):
    """An event that was mapped; see :func:`learn`."""

    frame: bytes
    name: str | None
    said: Said
    mapper: Mapper
    dialect: Any
    state: MappingState | None


def learn(
    frame: bytes,
    name: str | None,
    said: Said,
    mapper: Mapper,
    state: MappingState | None = None,
    *,
    unseen: int = 0,
) -> Template | None:
    """A template made from *frame*, which was mapped to what it *said*; ``None`` where none can be.

    Args:
        frame: the event.
        name: its SSE name.
        said: what its hooks have made of it.
        mapper: whose hooks they are, and what their plugin promises.
        state: the state of the answer; ``None`` where its provider has but one dialect, and the hooks remember nothing.
        unseen: how many events were mapped before it of which nothing was to be learnt.

    Raises:
        TooDearError: it would take longer than what was learnt of such events has saved so far.
    """
    deltas, usage, rest, news = said
    text = only_text(deltas[0], news) if len(deltas) == 1 else None
    if not text or len(frame) > _LONGEST:
        return None
    call = deltas[0].tool_call_delta
    dialect = None if state is None else state.dialect
    kind = (
        dialect,
        name,
        deltas[0].choice,
        text is deltas[0].content_delta,
        None if call is None else call.index,
        usage is not None,
        deltas[0].logprobs is not None,
    )
    patterns = patterns_of(mapper)
    budget = patterns.budget(kind)
    budget.earn(1 + unseen)
    if not budget.allows(_FITTING):
        raise TooDearError
    info = mapper.info
    if rest and has_pieces(rest, pieces_table(info.pieces)) and _growing(rest, info) is None:
        return None  # what is left, said again, would be news again
    budget.take(_FITTING)
    try:
        with unnoted():
            template = _found(_Mapped(frame, name, said, mapper, dialect, state), text, kind)
    except Exception:
        # The event has been read: an odd value, or a hook that chokes on a probe, is no reason to fail.
        return None
    if template is not None:
        template.budget = budget
    return template


def _found(mapped: _Mapped, text: str, kind: Kind) -> Template | None:
    """The template of an event that says this *text*: as others are, or anew."""
    frame, patterns, rest = mapped.frame, patterns_of(mapped.mapper), mapped.said[2]
    for like, gaps in patterns.fit(kind, frame, text, rest):
        if _is_plain(gaps):
            return like.again(gaps, between(frame, [gap for _, gap in gaps]), strings_left(rest, gaps))
        template = _template(mapped, gaps)
        if template is not None:
            template.codes = like.codes
            return template
    if not patterns.budget(kind).take(_LEARNING):
        return None
    event = load_json(frame)
    gaps = _gaps(frame, mapped.said, mapped.mapper.info, event, text)
    template = _template(mapped, gaps) if gaps else None
    if template is not None and len(frame) <= _LONGEST_KEPT and patterns.is_open(kind):
        patterns.add(kind, _pattern(frame, template, gaps, event))
    return template


def _is_plain(gaps: Sequence[tuple[Role, Gap]]) -> bool:
    """Whether what stands in these *gaps* is all that is to be known of an event, and nothing is to be made of it."""
    return not any(role in ("usage", "logprobs") or gap.kind is list for role, gap in gaps)


def _pattern(frame: bytes, template: Template, gaps: Sequence[tuple[Role, Gap]], event: Any) -> Pattern:
    """What the *event*, which *frame* is, has in common with those of other answers, as far as that can be proven."""
    whole: list[tuple[Role | None, Gap]] = [*gaps]
    known = {gap.path for _, gap in whole}
    for key, value in islice(event.items(), _MOST_KEYS) if type(event) is dict else ():
        gap = _find(frame, (key,), value) if type(value) in _SCALARS and (key,) not in known else None
        if gap is not None:
            more = sorted([*whole, (None, gap)], key=lambda one: one[1].start)
            if _is_proven(frame, [gap for _, gap in more], event):
                whole = more
    literals = between(frame, [gap for _, gap in whole])
    like = template.again(gaps, (), ())  # without what the answer has of it
    fixed = frozenset(strings_in(_probed(frame, [gap for _, gap in whole])))
    return Pattern(like, [(role, gap.kind, gap.path) for role, gap in whole], literals, fixed)


def _gaps(frame: bytes, said: Said, info: ProviderInfo, event: Any, text: str) -> Sequence[tuple[Role, Gap]]:
    """What may change in *frame*, which is this *event* and says this *text*; nothing where that cannot be told for sure."""
    deltas, usage, rest, _ = said
    leaf = next(
        (leaf for leaf in info.text_leaves if value_at(event, leaf) == text and value_at(rest, leaf) is None),
        None,
    )
    if leaf is None:
        return ()
    leaves: list[tuple[Role, Path]] = [("text", leaf)]
    leaves += [("stamp", path) for path in info.stamp_leaves if type(value_at(event, path)) in _SCALARS]
    leaves += [("number", path) for path in info.number_leaves if type(value_at(event, path)) is int]
    if usage is not None:
        leaves += [("usage", path) for path in _counted(event, info.usage_leaves)]
    tokens = deltas[0].logprobs
    weighed = next(
        (path for path in info.logprob_leaves if type(value_at(event, path)) in (dict, list)), None
    )
    if tokens is not None and weighed is not None:
        leaves.append(("logprobs", weighed))
    roles = [role for role, _ in leaves]
    if (usage is not None) > ("usage" in roles) or (tokens is not None) > ("logprobs" in roles):
        return ()
    if any(len(path) != 1 for role, path in leaves if role in ("stamp", "number", "usage")):
        return ()
    if not all(
        same_json(value_at(rest, path), value_at(event, path)) for role, path in leaves if role == "stamp"
    ):
        return ()
    if (growing := _growing(rest, info)) is not None:
        was_sent = value_at(event, growing.path)
        if "stamp" in roles or not same_json(value_at(rest, growing.path), was_sent):
            return ()  # nobody sends a time as well
        leaves.append(("stamp", growing.path))
    # A number that does not follow the one before says something, and so does what is no number.
    if any(value_at(rest, path) is not None for role, path in leaves if role == "number"):
        return ()
    if any(type(value_at(event, path)) not in (int, NoneType) for path in info.number_leaves):
        return ()
    found = [(role, _find(frame, path, value_at(event, path))) for role, path in leaves]
    whole = sorted(((role, gap) for role, gap in found if gap is not None), key=lambda one: one[1].start)
    if len(whole) < len(leaves) or not _is_proven(frame, [gap for _, gap in whole], event):
        return ()
    return whole


def _template(mapped: _Mapped, whole: Sequence[tuple[Role, Gap]]) -> Template | None:
    """The template of an event in which its values stand in the *whole* gaps, of objects taken apart."""
    from crosswalk.mapping.learnt.parts import Parts

    frame, name, ((delta,), usage, rest, _), mapper, dialect, state = mapped
    growing = _growing(rest, mapper.info)
    lists = [gap.path for role, gap in whole if role == "stamp" and gap.kind is list]
    if lists != ([] if growing is None else [growing.path]):
        return None
    gaps = [(role, gap) for role, gap in whole if role not in ("usage", "logprobs")]
    parts: Parts = mapper.memory.setdefault(Parts, Parts())
    made: dict[Role, Part] = {}
    results: dict[Role, Any] = {"usage": usage, "logprobs": delta.logprobs}
    for role, result in results.items():
        outer = [gap for one, gap in whole if one == role]
        if not outer:
            continue
        paths = tuple([gap.path for gap in outer])
        data, shifts = _object_of(frame, outer)
        make = _counting(mapper, dialect) if role == "usage" else _weighing(mapper, paths[0])
        found = parts.of(data, (paths, dialect), make, int if role == "usage" else float)
        if found is None:
            return None
        made[role], inner = part, _ = found
        if part.make(*[value_in(data, one) for one in inner]) != result:
            return None  # the hook has looked elsewhere, too
        if not all(same_json(part.left.get(path[-1]), value_at(rest, path)) for path in paths):
            return None
        for one in inner:
            shift = shifts[one.path[0]]
            gaps.append((role, Gap(one.start + shift, one.end + shift, one.kind, one.path)))
    gaps.sort(key=lambda one: one[1].start)
    counts, tokens = made.get("usage"), made.get("logprobs")
    if counts is not None and counts.is_remembered and state is not None:
        paths = tuple([gap.path for role, gap in whole if role == "usage"])
        if not _holds_in(state, counts, mapper, frame, paths):
            return None
    call = delta.tool_call_delta
    text = "content_delta" if delta.content_delta is not None else "reasoning_delta"
    return Template(
        delta.choice,
        text if call is None else "tool_call_delta",
        None if call is None else call.index,
        name,
        gaps,
        between(frame, [gap for _, gap in gaps]),
        between(frame, [gap for _, gap in whole]),
        frozenset(str(gap.path[0]) for role, gap in whole if role in ("stamp", "number", "usage")),
        None if counts is None else counts.make,
        None if tokens is None else tokens.make,
        strings_left(rest, gaps),
        growing=growing,
        is_remembered=counts is not None and counts.is_remembered,
    )


def _holds_in(state: MappingState, counts: Part, mapper: Mapper, frame: bytes, paths: Sequence[Path]) -> bool:
    """Whether the hook makes the same of other *counts* also with all that it remembers, and not of these by chance."""
    said, expected = counts.probe
    event = load_json(frame)
    for path in paths:
        _put(event, path, copy_json(said[path[-1]]))
    try:
        return bool(mapper.map_usage(event, state) == expected)
    finally:
        mapper.map_usage(load_json(frame), state)  # a later report replaces an earlier one


def _object_of(frame: bytes, gaps: Sequence[Gap]) -> tuple[bytes, dict[Any, int]]:
    """An object, as JSON, of what stands in *gaps*; and by its keys how much further behind that stands in *frame*."""
    data, shifts = b"", {}
    for gap in gaps:
        data += b"%b%b:" % (b"," if data else b"{", orjson.dumps(gap.path[-1]))
        bracket = int(gap.kind is list)
        shifts[gap.path[-1]] = gap.start - bracket - len(data)
        data += frame[gap.start - bracket : gap.end + bracket]
    return data + b"}", shifts


def _growing(rest: dict[str, Any], info: ProviderInfo) -> Growing | None:
    """The one list of counts in the *rest* of an event that goes on in the extensions; ``None`` where there is none."""
    for path in info.stamp_leaves:
        values = value_at(rest, path)
        if type(values) is not list or not are_counts(values):
            continue
        keys: list[str | int] = []
        found: Any = rest
        for key in path:
            found, inside = found[key], found
            if type(key) is int and not is_indexed(inside):
                return None
            keys.append(key if type(key) is str else found["index"])
        others, pieces = copy_json(rest), pieces_table(info.pieces)
        _put(others, path, [])
        return (
            Growing(path, tuple(keys))
            if has_pieces(rest, pieces) and not has_pieces(others, pieces)
            else None
        )
    return None


def name_their_calls(templates: Sequence[Template], mapper: Mapper, state: MappingState) -> bool:
    """Whether all *templates* are of one choice and say whose arguments theirs are, whichever call is open.

    And whether the hooks remember nothing of which of them came last. So they are asked with each event after another one's,
    in a state that knows the calls of this *state*.
    """
    import pickle  # only where calls take turns

    named, memories = [], set()
    try:
        with unnoted():
            twin = state.with_calls()
            for each in (*templates, templates[0]):
                twin.event_name = each.name
                deltas = [*(mapper.map_delta(load_json(each.frame), twin) or ())]
                places = [delta.tool_call_delta and delta.tool_call_delta.index for delta in deltas]
                named.append(places == [each.call])
                memories.add(pickle.dumps(twin.memory))
    except Exception:  # it remembers what cannot be copied or compared
        return False
    return all(named) and len(memories) == 1 and len({each.choice for each in templates}) == 1


def _counted(event: Any, paths: Sequence[Path]) -> list[Path]:
    """Of these *paths* those where *event* has counts: the first object of such, or numbers."""
    objects = [path for path in paths if type(value_at(event, path)) is dict]
    return objects[:1] or [path for path in paths if type(value_at(event, path)) is int]


def _counting(mapper: Mapper, dialect: Any) -> Make:
    """What ``map_usage`` makes of the counts of an event, with nothing else beside them and in any state."""

    def make(part: Any, _: str) -> tuple[Any, Any, bool]:
        again = copy_json(part)
        state, fresh, noted = mapper.new_state(), mapper.new_state(), len(NOTED.values)
        state.dialect = fresh.dialect = dialect
        kept = empty_containers(part)
        usage = mapper.map_usage(part, state)
        prune(part, kept)
        changed = {name for name, was in vars(fresh).items() if vars(state)[name] != was} - _NEVER_EQUAL
        # A report replaces the one before, whatever is remembered of it.
        is_same = mapper.map_usage(again, state) == usage
        if (
            len(NOTED.values) > noted
            or not is_same
            or changed - _REMEMBERED
            or Provenance.ABSENT in state.provenance.values()
        ):
            raise UnlikeError
        return usage, part, bool(changed)

    return make


_REMEMBERED: Final = {"_own", "data", "provenance"}
_NEVER_EQUAL: Final = {"_places"}


def _weighing(mapper: Mapper, path: Path) -> Make:
    """What the reader of the log probabilities at *path* makes of them."""
    reader: LogprobReader = mapper.info.logprob_leaves[path]

    def make(holder: Any, text: str) -> tuple[Any, Any, bool]:
        noted = len(NOTED.values)
        kept = empty_containers(holder)
        tokens = reader(holder, text)
        prune(holder, kept)
        if len(NOTED.values) > noted:
            raise UnlikeError
        return tokens, holder, False

    return make


def _find(frame: bytes, path: Path, value: Any) -> Gap | None:
    """Where *value* stands in *frame* under its key; ``None`` unless it is one place."""
    found = []
    quote = int(type(value) in (str, list))
    for separator in (b'":', b'": '):
        opening = b'"' + str(path[-1]).encode() + separator
        if frame.count(opening) > _MOST:
            return None
        start = frame.find(opening)
        while start >= 0:
            start += len(opening)
            end = _end_of(frame, start, value)
            if end is not None:
                found.append(Gap(start + quote, end - quote, type(value), path))
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


def _is_proven(frame: bytes, gaps: Sequence[Gap], event: Any) -> bool:
    """Whether with probes in its *gaps* the frame is the same event with probes in those leaves."""
    probed = _probed(frame, gaps)
    others = {*strings_in(probed)}
    for gap in gaps:
        value = value_at(event, gap.path)
        if value_at(probed, gap.path) != _PROBES[gap.kind]:
            return False
        if gap.kind is str:
            if value in others:  # in whatever spelling: it may be there because of this one
                return False
            others.add(value)
        _put(probed, gap.path, value)
    return bool(probed == event)


def _probed(frame: bytes, gaps: Sequence[Gap]) -> Any:
    """The event that *frame* is with probes in its *gaps*."""
    probes = [_PROBES[gap.kind] for gap in gaps]
    said = [
        orjson.dumps(probe)[1:-1] if type(probe) in (str, list) else orjson.dumps(probe) for probe in probes
    ]
    literals = between(frame, gaps)
    return load_json(b"".join(part for pair in zip(literals, (*said, b""), strict=True) for part in pair))


def _put(value: Any, path: Path, leaf: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf
