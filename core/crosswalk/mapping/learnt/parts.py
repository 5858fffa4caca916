"""A part of an event that says the same things each time: its counts, or the log probabilities of its text.

What its hook makes of it is found out with marks (see :mod:`.marks`), once for all answers of a provider,
and proven with other values: those that it had, odd ones, and the least.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.mapping.learnt.holes import with_totals
from crosswalk.mapping.learnt.marks import MARK, Code, Gap, addends_of, between, cuts, has, spans_of, value_in
from crosswalk.types.json import load_json
from crosswalk.types.told import told
from crosswalk.types.usage import UsageInfo

__all__ = ["Make", "Part", "Parts"]

Make: TypeAlias = Callable[[Any, str], tuple[Any, Any, bool]]
"""What a hook makes of the value of such a part, beside a text; what it leaves of it; and whether it remembers any of it."""

_MOST_GAPS: Final = 100
_MOST_NUMBERS: Final = 18
"""The mark of one more would be too large a count."""
_MOST_PARTS: Final = 64


@attrs.frozen(eq=False)
class Part:
    """One kind of part.

    Attributes:
        make: what the hook makes of what stands in its gaps; ``None``, or an exception, where the hook is to be asked.
        left: what the hook leaves.
        is_remembered: whether the hook may make something else of others later: it is to be told of the last one.
        probe: another such part, and what the hook makes of it.
    """

    make: Callable[..., Any]
    left: Any
    is_remembered: bool
    probe: tuple[Any, Any]


class Parts:
    """What was learnt of the parts of a provider's events."""

    def __init__(self) -> None:
        self._known: dict[Any, Part | list[int] | None] = {}
        # The one that fitted last, and its gaps and literals, by key.
        self._recent: dict[object, tuple[Part, list[Gap], tuple[bytes, ...]]] = {}

    def of(
        self, data: bytes, key: object, make: Make, numbers: type[int | float]
    ) -> tuple[Part, list[Gap]] | None:
        """How to read parts like *data*, and what may change in them; ``None`` where a hook is to be asked each time.

        Args:
            data: its JSON.
            key: whose part it is: all that *make* depends on.
            make: asks the hook.
            numbers: what its numbers are: counts, or any, which the hook makes a ``float`` of.
        """
        if key in self._recent:
            part, like, literals = self._recent[key]
            if (again := _like(data, like, literals)) is not None:
                return part, again
        gaps = _gaps_in(data, numbers)
        while True:
            literals = between(data, gaps)
            place = key, literals, tuple([gap.kind for gap in gaps])
            known = self._known  # another thread may put a new one in its place
            if place not in known:
                if len(known) >= _MOST_PARTS:
                    self._known, self._recent = {}, {}
                    known = self._known
                try:
                    known[place] = _learnt(data, gaps, make)
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


def _gaps_in(data: bytes, numbers: type[int | float]) -> list[Gap]:
    """The texts, the *numbers* and the lists of bytes in the JSON *data*."""
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
        elif type(value) is int if numbers is int else type(value) in (int, float):
            found.append(Gap(start, end, numbers, path))
    return found


_OF_LISTS: Final = frozenset(b"0123456789, ")


def _learnt(data: bytes, gaps: Sequence[Gap], make: Make) -> Part | list[int] | None:
    """The part *data*; or the numbers of those *gaps* of which the hook takes what stands there, where it leaves others."""
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
    plain, left, is_remembered = asked(values, "crosswalk-a")
    marks = [_mark(number, kind) for number, kind in enumerate(kinds)]
    made, more, _ = asked(marks, "crosswalk-b")
    totals: dict[int, list[int]] = {}
    taken = []
    for number, gap in enumerate(gaps):
        if not has(more, gap.path):
            taken.append(number)
        elif not has(left, gap.path) and type(made) is UsageInfo:
            # It was taken for being the sum of the others, which its mark is not.
            counts = (made.prompt_tokens, made.completion_tokens)
            totals[number] = [addend for count in counts for addend in addends_of(count, marks)]
            taken.append(number)
    if len(taken) < len(gaps):
        return taken  # what the extensions keep is to be the same
    made = asked(with_totals(marks, totals), "crosswalk-c")[0]
    function = _function(made, marks, totals)
    for spelling in (_odd, _least):
        others = with_totals([spelling(number, kind) for number, kind in enumerate(kinds)], totals)
        made = function(*(kind(value) for kind, value in zip(kinds, others, strict=True)))
        if told(asked(others, f"crosswalk-{spelling}")) != told((made, left, is_remembered)):
            return None
        if spelling is _odd:
            probe = part_with(others), made
    return Part(function, left, is_remembered, probe) if told(function(*values)) == told(plain) else None


def _spelt(value: Any) -> bytes:
    """*value* as it stands in its gap."""
    if type(value) is list:
        return b",".join(b"%d" % number for number in value)
    said = json.dumps(value).encode()
    return said[1:-1] if type(value) is str else said


def _mark(number: int, kind: type) -> Any:
    if kind is str:
        return f"crosswalk-mark-{number}-"
    if kind is list:
        return [number, 201, 77]
    return MARK << number if kind is int else number + 0.700001


def _odd(number: int, kind: type) -> Any:
    if kind is str:
        return f' {number} Aß€\U0001f40e</think>{{[<|im_end|>]}} "quoted" \\ \r\n\t\x00\x7f'
    if kind is list:
        return [255, 0, number]
    return 1009 + 31 * number if kind is int else -1.25e-9 * number


def _least(_: int, kind: type) -> Any:
    return "" if kind is str else [0] if kind is list else 0


def _function(made: Any, marks: Sequence[Any], totals: Mapping[int, list[int]]) -> Callable[..., Any]:
    """What makes *made* of *marks*, of other values."""
    code = Code(marks)
    expression = code.of(made) or code.constant(made)
    lines = [
        *(f"if h{number} != {code.sum_of(addends)}: return None" for number, addends in totals.items()),
        *code.before,
        *code.lines,
        f"return {expression}",
    ]
    function: Callable[..., Any] = code.function(
        f"part({', '.join(f'h{number}' for number in range(len(marks)))})", lines
    )
    return function
