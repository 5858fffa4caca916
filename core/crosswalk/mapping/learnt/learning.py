"""How a template is learnt from an event that was parsed and mapped, and what is known of the events of other answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import orjson

from crosswalk.mapping.interpreter import Said
from crosswalk.mapping.learnt.asking import counting, weighing
from crosswalk.mapping.learnt.finding import SCALARS, find, gaps_of, is_proven, probed
from crosswalk.mapping.learnt.kept import (
    changing,
    filled,
    gaps_of_tree,
    has_copies,
    leaves_of,
    put,
    strings_left,
)
from crosswalk.mapping.learnt.marks import Gap, between, mark_of, strings_in, value_at, value_in
from crosswalk.mapping.learnt.merge_code import merger_of
from crosswalk.mapping.learnt.pattern import Kind, Pattern, Patterns, patterns_of
from crosswalk.mapping.learnt.template import Template
from crosswalk.plugin.info import Path
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.take import unnoted
from crosswalk.types.json import load_json
from crosswalk.types.merge import copy_json, pieces_table, same_json

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.event_code import Role
    from crosswalk.mapping.learnt.parts import Part

__all__ = ["TooDearError", "learn", "learns_all"]

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


_PARTS: Final[set[Role]] = {"usage", "logprobs"}


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


def learn(
    frame: bytes,
    text: str,
    name: str | None,
    said: Said,
    mapper: Mapper,
    dialect: Any = None,
    *,
    unseen: int = 0,
) -> Template | None:
    """A template made from *frame*, which was mapped to what it *said*; ``None`` where none can be.

    Args:
        frame: the event.
        text: what of that is the text, which is nearly all, see :func:`.templates.only_text`.
        name: its SSE name.
        said: what its hooks have made of it.
        mapper: whose hooks they are, and what their plugin promises.
        dialect: ``MappingState.dialect``.
        unseen: how many events were mapped before it of which nothing was to be learnt.

    Raises:
        TooDearError: it would take longer than what was learnt of such events has saved so far.
    """
    if len(frame) > _LONGEST:
        return None
    (delta,), usage, _, _ = said
    call = delta.tool_call_delta
    kind = (
        dialect,
        name,
        delta.choice,
        text is delta.content_delta,
        None if call is None else call.index,
        usage is not None,
        delta.logprobs is not None,
    )
    patterns = patterns_of(mapper)
    budget = patterns.budget(kind)
    budget.earn(1 + unseen)
    if not budget.allows(_FITTING):
        raise TooDearError
    budget.take(_FITTING)
    try:
        with unnoted():
            template = _found(_Mapped(frame, name, said, mapper, dialect), text, kind)
    except Exception:
        # The event has been read: an odd value, or a hook that chokes on a probe, is no reason to fail.
        return None
    if template is not None:
        template.budget = budget
    return template


def _found(mapped: _Mapped, text: str, kind: Kind) -> Template | None:
    """The template of an event that says this *text*: as others are, or anew."""
    frame, patterns = mapped.frame, patterns_of(mapped.mapper)
    for codes, gaps in patterns.fit(kind, frame, text, mapped.said[2]):
        template = _template(mapped, gaps)
        if template is not None:
            template.codes = codes
            return template
    if not patterns.budget(kind).take(_LEARNING):
        return None
    event = load_json(frame)
    gaps = gaps_of(frame, mapped.said, mapped.mapper.info, event, text)
    template = _template(mapped, gaps) if gaps else None
    if template is not None and len(frame) <= _LONGEST_KEPT and patterns.is_open(kind):
        patterns.add(kind, _pattern(frame, template, gaps, event))
    return template


def _pattern(frame: bytes, template: Template, gaps: Sequence[tuple[Role, Gap]], event: Any) -> Pattern:
    """What the *event*, which *frame* is, has in common with those of other answers, as far as that can be proven."""
    whole: list[tuple[Role | None, Gap]] = [*gaps]
    known = {gap.path for _, gap in whole}
    for key, value in islice(event.items(), _MOST_KEYS) if type(event) is dict else ():
        gap = find(frame, (key,), value) if type(value) in SCALARS and (key,) not in known else None
        if gap is not None:
            more = sorted([*whole, (None, gap)], key=lambda one: one[1].start)
            if is_proven(frame, [gap for _, gap in more], event):
                whole = more
    literals = between(frame, [gap for _, gap in whole])
    fixed = frozenset(strings_in(probed(frame, [gap for _, gap in whole])))
    return Pattern(template.codes, [(role, gap.kind, gap.path) for role, gap in whole], literals, fixed)


def _template(mapped: _Mapped, whole: Sequence[tuple[Role, Gap]]) -> Template | None:
    """The template of an event in which its values stand in the *whole* gaps; ``None`` where there is none."""
    apart = _taken_apart(mapped, whole)
    if apart is None:
        return None
    gaps, pieces = apart.gaps, mapped.mapper.info.pieces
    kinds = [gap.kind for _, gap in gaps]
    kept = changing(apart.tree, pieces_table(pieces))
    stamps = [(gap.kind, gap.path) for role, gap in gaps if role == "stamp"]
    is_time = stamps == [(str, (key,)) for key in kept] and len(stamps) == 1
    beside = [*leaves_of(kept, kinds)]
    beside += [(gap.path, False) for role, gap in whole if role in ("number", "usage")]
    (delta,), call = mapped.said[0], mapped.said[0][0].tool_call_delta
    text = "content_delta" if delta.content_delta is not None else "reasoning_delta"
    return Template(
        delta.choice,
        text if call is None else "tool_call_delta",
        None if call is None else call.index,
        mapped.name,
        gaps,
        between(mapped.frame, [gap for _, gap in gaps]),
        between(mapped.frame, [gap for _, gap in whole]),
        frozenset(beside),
        apart.made.get("usage"),
        apart.counted,
        apart.made.get("logprobs"),
        strings_left(apart.tree),
        kept,
        merger_of(kept, kinds, pieces) if kept and not is_time else None,
    )


class _Apart(NamedTuple):
    """An event whose objects of counts and of log probabilities were taken apart.

    Attributes:
        gaps: what may change in it, in order.
        made: what is made of its counts and of its log probabilities.
        counted: what was made of the counts that it has; ``None`` where it has none.
        tree: what the hooks have left of it.
    """

    gaps: list[tuple[Role, Gap]]
    made: dict[Role, Part]
    counted: Any
    tree: dict[str, Any]


def _taken_apart(mapped: _Mapped, whole: Sequence[tuple[Role, Gap]]) -> _Apart | None:
    """The event in which its values stand in the *whole* gaps, taken apart; ``None`` where it cannot be."""
    rest = mapped.said[2]
    if gaps_of_tree(rest):
        return None  # it says what is a mark
    gaps = [(role, gap) for role, gap in whole if role not in _PARTS]
    stamps = [gap for role, gap in gaps if role == "stamp"]
    made: dict[Role, Part] = {}
    left: list[tuple[Path, Any, list[Gap]]] = []
    counted = None
    for role in {role for role, _ in whole} & _PARTS:
        outer = [gap for one, gap in whole if one == role]
        text = next(value_in(mapped.frame, gap) for one, gap in whole if one == "text")
        found = _part(mapped, role, outer, text)
        if found is None:
            return None
        made[role], places, said = found
        counted = said if role == "usage" else counted
        gaps += [("stamp" if number in made[role].kept else role, gap) for number, gap in enumerate(places)]
        holder = outer[0].path[:-1]  # of all
        left += [((*holder, key), subtree, places) for key, subtree in made[role].left.items()]
    gaps.sort(key=lambda one: one[1].start)
    numbers = {gap.start: number for number, (_, gap) in enumerate(gaps)}
    tree = copy_json(rest)
    for gap in stamps:
        put(tree, gap.path, mark_of(numbers[gap.start]))
    for path, subtree, places in left:
        put(tree, path, filled(subtree, [mark_of(numbers[gap.start]) for gap in places]))
    may_copy = mapped.mapper.extensions is not None
    if may_copy and has_copies(tree, [value_at(rest, gap.path) for gap in stamps]):
        return None
    return _Apart(gaps, made, counted, tree)


def _part(mapped: _Mapped, role: Role, outer: Sequence[Gap], text: str) -> tuple[Part, list[Gap], Any] | None:
    """What stands in the *outer* gaps, of this *role*, beside this *text*, what of it may change, and what is made of it.

    ``None`` where that is not known.
    """
    from crosswalk.mapping.learnt.parts import Parts

    frame, _, ((delta,), usage, rest, _), mapper, dialect = mapped
    parts: Parts = mapper.memory.setdefault(Parts, Parts())
    paths = tuple([gap.path for gap in outer])
    data, shifts = _object_of(frame, outer)
    # Where in that object what the extensions keep may stand.
    kept = tuple(
        [
            leaf[len(path) - 1 :]
            for path in paths
            for leaf in mapper.info.stamp_leaves
            if leaf[: len(path)] == path
        ]
    )
    make = counting(mapper, dialect) if role == "usage" else weighing(mapper, paths[0])
    found = parts.of(data, (paths, dialect), make, int if role == "usage" else float, kept)
    if found is None:
        return None
    part, inner = found
    values = [value_in(data, gap) for gap in inner]
    said = part.made_of(values, text)
    if (said[0] if part.has_duration else said) != (usage if role == "usage" else delta.logprobs):
        return None  # the hook has looked elsewhere, too
    left, holder = filled(part.left, values), value_at(rest, paths[0][:-1]) or {}
    if not all(same_json(left.get(key), holder.get(key)) for key in {*left, *(path[-1] for path in paths)}):
        return None
    return part, [gap.moved(shifts[gap.path[0]]) for gap in inner], said


def _object_of(frame: bytes, gaps: Sequence[Gap]) -> tuple[bytes, dict[Any, int]]:
    """An object, as JSON, of what stands in *gaps*; and by its keys how much further behind that stands in *frame*."""
    data, shifts = b"", {}
    for gap in gaps:
        data += b"%b%b:" % (b"," if data else b"{", orjson.dumps(gap.path[-1]))
        bracket = int(gap.kind is list)
        shifts[gap.path[-1]] = gap.start - bracket - len(data)
        data += frame[gap.start - bracket : gap.end + bracket]
    return data + b"}", shifts
