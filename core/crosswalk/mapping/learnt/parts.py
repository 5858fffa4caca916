"""A part of an event that says the same things each time: its counts, or the log probabilities of its text.

What its hook makes of it is found out with marks (see :mod:`.marks`), once for all answers of a provider,
and proven with other values: those that it had, odd ones, and the least.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.mapping.learnt.holes import with_totals
from crosswalk.mapping.learnt.kept import filled, gaps_of_tree, tree_of
from crosswalk.mapping.learnt.marks import (
    MARK,
    Code,
    Gap,
    addends_of,
    between,
    cuts,
    has,
    mark_of,
    spans_of,
    value_in,
)
from crosswalk.plugin.info import Path
from crosswalk.types.json import load_json
from crosswalk.types.told import told
from crosswalk.types.usage import UsageInfo

__all__ = ["PROBES", "Make", "Part", "Parts"]

Make: TypeAlias = Callable[[Any, str], tuple[Any, Any, bool]]
"""What a hook makes of the value of such a part, beside a text; what it leaves of it; and whether it remembers any of it.

Of counts that is the usage; where they say how long the answer took, the usage and that.
"""

PROBES: Final = 3
_MOST_GAPS: Final = 100
_SIDON: Final = 101
"""A prime: no two pairs of the marks that are made with it have the same sum, after Erdős and Turán."""
_MOST_NUMBERS: Final = 18
"""The mark of one more would be too large a count."""
_MOST_PARTS: Final = 64


@attrs.frozen(eq=False)
class Part:
    """One kind of part.

    Attributes:
        make: what the hook makes of what stands in its gaps; ``None``, or an exception, where the hook is to be asked.
        left: what the hook leaves, as a tree, see :mod:`.kept`.
        kept: the numbers of the gaps that are only left: ``make`` is not given these.
        needs_text: whether ``make`` is also given the text beside it, last.
        is_remembered: whether the hook may make something else of others later: it is to be told of the last one.
        probes: so many other such parts as :data:`PROBES` says, and what the hook makes of them.
    """

    make: Callable[..., Any]
    left: Any
    kept: Collection[int]
    needs_text: bool
    is_remembered: bool
    probes: Sequence[tuple[Any, Any]]

    @property
    def has_duration(self) -> bool:
        """Whether the hook tells how long the answer took, too."""
        return any(type(made) is tuple and type(made[-1]) is timedelta for _, made in self.probes)

    def made_of(self, values: Sequence[Any], text: str) -> Any:
        """What the hook makes of *values* in all of its gaps, beside this *text*."""
        taken = [value for number, value in enumerate(values) if number not in self.kept]
        return self.make(*taken, *[text] * self.needs_text)


class Parts:
    """What was learnt of the parts of a provider's events."""

    def __init__(self) -> None:
        self._known: dict[Any, Part | list[int] | None] = {}
        # The one that fitted last, and its gaps and literals, by key.
        self._recent: dict[object, tuple[Part, list[Gap], tuple[bytes, ...]]] = {}

    def of(
        self, data: bytes, key: object, make: Make, numbers: type[int | float], kept: Collection[Path] = ()
    ) -> tuple[Part, list[Gap]] | None:
        """How to read parts like *data*, and what may change in them; ``None`` where a hook is to be asked each time.

        Args:
            data: its JSON.
            key: whose part it is: all that *make* depends on.
            make: asks the hook.
            numbers: what its numbers are: counts, or any, which the hook makes a ``float`` of.
            kept: where in it that may stand which the hook leaves, and which may change all the same.
        """
        if key in self._recent:
            part, like, literals = self._recent[key]
            if (again := _like(data, like, literals)) is not None:
                return part, again
        gaps = _gaps_in(data, numbers, kept)
        while True:
            literals = between(data, gaps)
            place = key, literals, tuple([gap.kind for gap in gaps])
            known = self._known  # another thread may put a new one in its place
            if place not in known:
                if len(known) >= _MOST_PARTS:
                    self._known, self._recent = {}, {}
                    known = self._known
                try:
                    known[place] = _learnt(data, gaps, make, kept)
                except Exception:  # a hook that has promised too much may well choke on a mark
                    known[place] = None
            found = known[place]
            if found is None:
                return None
            if isinstance(found, Part):
                self._recent[key] = found, gaps, literals
                return found, gaps
            gaps = [gaps[number] for number in found]


def _like(data: bytes, gaps: Sequence[Gap], literals: Sequence[bytes]) -> list[Gap] | None:
    """The gaps of *data*, where it has between these *literals* what may stand in such *gaps*."""
    places = cuts(data, literals) if gaps else None
    if places is None:
        return None
    found = [Gap(*place, gap.kind, gap.path) for place, gap in zip(places, gaps, strict=True)]
    try:
        values = [value_in(data, gap) for gap in found]
    except ValueError:
        return None
    return found if all(type(value) is gap.kind for value, gap in zip(values, found, strict=True)) else None


def _gaps_in(data: bytes, numbers: type[int | float], kept: Collection[Path]) -> list[Gap]:
    """The texts, the *numbers* and the lists of bytes in the JSON *data*; where it may be *kept*, all numbers."""
    found: list[Gap] = []
    for path, (start, end) in spans_of(data).items():
        value = load_json(data[start:end])
        if type(path[-1]) is int and type(value) is int:
            if path[-1] == 0:  # the first of a list
                closing = data.find(b"]", end)
                if data[start - 1 : start] == b"[" and set(data[start:closing]) <= _OF_LISTS:
                    found.append(Gap(start, closing, list, path[:-1]))
        elif type(value) is str:
            found.append(Gap(start + 1, end - 1, str, path))
        elif type(value) is int and value < 0 and (numbers is int or _is_in(path, kept)):
            pass  # no count, so the next such part may well be another
        elif type(value) in (int, float) and _is_in(path, kept):
            found.append(Gap(start, end, type(value), path))
        elif type(value) is int or (type(value) is float and numbers is float):
            found.append(Gap(start, end, numbers, path))
    return found


def _is_in(path: Path, places: Collection[Path]) -> bool:
    return any(path[: len(place)] == place for place in places)


_OF_LISTS: Final = frozenset(b"0123456789, ")


def _learnt(data: bytes, gaps: Sequence[Gap], make: Make, kept: Collection[Path]) -> Part | list[int] | None:
    """The part *data*; or the numbers of those *gaps* that may change, where the hook leaves what stands in others.

    What it leaves may change where it may be *kept*.
    """
    kinds = [gap.kind for gap in gaps]
    if len(gaps) > _MOST_GAPS or kinds.count(int) > _MOST_NUMBERS:
        return None
    literals = between(data, gaps)

    def part_with(values: Sequence[Any]) -> Any:
        said = [_spelt(value) for value in values]
        return load_json(b"".join(part for pair in zip(literals, (*said, b""), strict=True) for part in pair))

    def asked(values: Sequence[Any], text: str) -> tuple[Any, Any, bool]:
        return make(part_with(values), text)

    values = [value_in(data, gap) for gap in gaps]
    plain, said, is_remembered = asked(values, "crosswalk-a")
    marks = [_mark(number, kind) for number, kind in enumerate(kinds)]
    beside = mark_of(len(gaps))
    made, more, _ = asked(marks, beside)
    left = gaps_of_tree(tree_of(more, marks))
    usage = made[0] if type(made) is tuple and made else made
    totals: dict[int, list[int]] = {}
    changing = []
    for number, gap in enumerate(gaps):
        if number in left and not has(said, gap.path) and type(usage) is UsageInfo:
            # It was taken for being the sum of the others, which its mark is not.
            counts = (usage.prompt_tokens, usage.completion_tokens)
            totals[number] = [addend for count in counts for addend in addends_of(count, marks)]
        if number not in left or number in totals or _is_in(gap.path, kept):
            changing.append(number)
    if len(changing) < len(gaps):
        return changing  # what the extensions keep is to be the same
    made, more, _ = asked(with_totals(marks, totals), beside)
    tree = tree_of(more, marks)
    left -= totals.keys()
    function, used = _function(made, [*marks, beside], totals, left)
    if any(kinds[number] is list for number in left & used):
        return None  # bytes, or whole numbers?
    part = Part(function, tree, left - used, len(gaps) in used, is_remembered, ())
    probes = []
    sign = 1 if type(usage) is UsageInfo else -1  # of a logarithm
    for spelling, text in ((_odd, 'Aß€ "\\'), (_large, "crosswalk " * 1000), (_least, " ")):
        spelt = [
            sign * spelling(number, kind) if kind is float else spelling(number, kind)
            for number, kind in enumerate(kinds)
        ]
        others = with_totals(spelt, totals)
        made = part.made_of([kind(value) for kind, value in zip(kinds, others, strict=True)], text)
        if told(asked(others, text)) != told((made, filled(tree, others), is_remembered)):
            return None
        probes.append((part_with(others), made))
    is_proven = told((part.made_of(values, "crosswalk-a"), filled(tree, values))) == told((plain, said))
    return attrs.evolve(part, probes=probes) if is_proven else None


def _spelt(value: Any) -> bytes:
    """*value* as it stands in its gap."""
    if type(value) is list:
        return b",".join(b"%d" % number for number in value)
    said = json.dumps(value).encode()
    return said[1:-1] if type(value) is str else said


def _mark(number: int, kind: type) -> Any:
    if kind is str:
        return mark_of(number)
    if kind is list:
        return [number, 201, 77]
    return MARK << number if kind is int else _SIDON * 2 * number + number * number % _SIDON + 0.700001


def _odd(number: int, kind: type) -> Any:
    if kind is str:
        return f' {number} Aß€\U0001f40e</think>{{[<|im_end|>]}} "quoted" \\ \r\n\t\x00\x7f'
    if kind is list:
        return [255, 0, number]
    # Each is rounded otherwise than cut off, as seconds, milliseconds or microseconds, and so is a sum of them. They rise
    # in no order, as the greater of two may be all that is told.
    return 1783 + 3000 * number if kind is int else 3 * (37 * number % _SIDON) + 3.0003


def _least(_: int, kind: type) -> Any:
    return "" if kind is str else [0] if kind is list else 0


def _large(number: int, kind: type) -> Any:
    if kind is float:
        return 1.5e6 - 1000.5 * (53 * number % _SIDON)
    return 9_000_641 + 977_000 * number if kind is int else _odd(number, kind)


def _function(
    made: Any, marks: Sequence[Any], totals: Mapping[int, list[int]], left: Collection[int]
) -> tuple[Callable[..., Any], set[int]]:
    """What makes *made* of *marks*, of other values; and the numbers of those that it needs.

    It is not given what it does not need: what the hook has *left*, and the text beside it, which is the last mark.
    """
    code = Code(marks)
    expression = code.of(made) or code.constant(made)
    lines = [
        *(f"if h{number} != {code.sum_of(addends)}: return None" for number, addends in totals.items()),
        *code.before,
        *code.lines,
        f"return {expression}",
    ]
    used = {int(number) for number in re.findall(r"\bh(\d+)", "\n".join(lines))}
    left = {*left, len(marks) - 1}
    names = [f"h{number}" for number in range(len(marks)) if number in used or number not in left]
    function: Callable[..., Any] = code.function(f"part({', '.join(names)})", lines)
    return function, used
