"""The holes of a body: which leaves they are, and what is put into them to find out what hooks make of them.

A *mark* tells where it comes from: a text by its number, and of numbers that were added up each by its bit. The other
spellings are quite different values, with which what was found is proven.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, Final, NamedTuple

from crosswalk.mapping.learnt.marks import MARK, UnlikeError, mark_of, spans_of, strings_in, value_at
from crosswalk.mapping.times import time_of
from crosswalk.plugin.info import Path
from crosswalk.types.json import dump_json, load_json

__all__ = [
    "Fixed",
    "Hole",
    "body_with",
    "holes_in",
    "marks_of",
    "respelt",
    "spellings",
    "sums",
    "text_of",
    "with_totals",
]

_MOST_HOLES: Final = 40
_MOST_NUMBERS: Final = 18
"""The mark of one more, read as seconds, would be in no calendar."""


class Hole:
    """A leaf whose value may be any other of its kind.

    Attributes:
        path: where in the JSON it is.
        span: where in the bytes it stands, its quotes included.
        value: what it is in the body that the shape is learnt from.
        is_text: whether it is a piece of the answer, which may be long and have escapes. An object always is: arguments,
            of which the answer has the JSON, or log probabilities.
        is_weighed: whether it is log probabilities, which the hook is asked to read each time.
        first: the number of the first hole that holds the same text: mostly its own.
        least: the least number that it may hold.
        bit: which of the numbers it is.
        is_kept: whether its number stands in the extensions.
    """

    def __init__(self, path: Path, span: tuple[int, int], value: Any, *, is_weighed: bool = False) -> None:
        self.path = path
        self.span = span
        self.value = value
        self.is_weighed = is_weighed
        self.is_text = type(value) is dict or is_weighed
        self.first = 0
        self.least = 0
        self.bit = 0
        self.is_kept = False

    @property
    def is_number(self) -> bool:
        """Whether it holds an integer."""
        return type(self.value) is int

    @property
    def said(self) -> str | None:
        """The text that it holds, or whose JSON it holds; ``None`` for a number, and for log probabilities."""
        return None if self.is_weighed else text_of(self.value)


def text_of(value: Any) -> str | None:
    """A text is itself, and an object its JSON."""
    return dump_json(value).decode() if type(value) is dict else value if type(value) is str else None


class Fixed(NamedTuple):
    """What is the same in all bodies of a kind, and so may mean something where a hole holds it, too.

    Attributes:
        texts: the strings.
        numbers: the integers, but for 0 and 1, which the proof puts into every hole.
        objects: the objects.
    """

    texts: frozenset[str]
    numbers: frozenset[int]
    objects: list[Any]


def holes_in(data: bytes, leaves: Sequence[Path], weighed: Collection[Path] = ()) -> tuple[list[Hole], Fixed]:
    """Those of *leaves* in the body *data* that may change, and what is fixed; log probabilities are *weighed*.

    Raises:
        ValueError: it is a stream, or has a key twice.
        UnlikeError: a count is too large to be added up.
    """
    event = load_json(data, unique_keys=True)
    whole = {path for path in leaves if type(value_at(event, path)) is dict}
    spans = spans_of(data, whole | {path for path in weighed if type(value_at(event, path)) is list})
    found = [
        Hole(path, spans[path], load_json(data[slice(*spans[path])]), is_weighed=path in weighed)
        for path in leaves
        if path in spans
    ]
    found.sort(key=lambda hole: hole.span)
    holes = [
        hole
        for hole in found
        if ((type(hole.value) in (str, dict) or hole.is_weighed) and hole.value)
        or type(hole.value) is float
        or (hole.is_number and 0 <= hole.value < 10**15)
    ]
    if any(hole.is_number and hole.value >= 10**15 for hole in found):
        raise UnlikeError  # it may be the sum of others
    numbers = [hole for hole in holes if hole.is_number][_MOST_NUMBERS:]
    holes = [hole for hole in holes if hole not in numbers][:_MOST_HOLES]
    kept = spans.keys() - {hole.path for hole in holes}
    values = [value_at(event, path) for path in kept]
    texts = frozenset(text for value in values for text in strings_in(value, keys=False))
    counts = frozenset(value for value in values if type(value) is int and value > 1)
    # What is said elsewhere, too, stays as it is: it may mean something that it is the same.
    holes = [hole for hole in holes if hole.said not in texts or type(hole.value) is dict]
    for bit, hole in enumerate(hole for hole in holes if hole.is_number):
        hole.bit = bit
    for number, hole in enumerate(holes):
        same = (other for other in range(number) if hole.said is not None and holes[other].said == hole.said)
        hole.first = next(same, number)
    inside = {hole.path[:depth] for hole in holes for depth in range(len(hole.path) + 1)}
    for hole in holes:
        if hole.is_weighed:
            value_at(event, hole.path[:-1])[hole.path[-1]] = (
                None  # it is all taken, or what is left is compared
            )
    return holes, Fixed(texts, counts, [*_objects_in(event, (), inside)])


def _objects_in(value: Any, path: Path, inside: Container[Path]) -> Iterator[Any]:
    """The objects in *value*, which stands at *path*, that are not empty and have none of the paths *inside* in them."""
    if type(value) is dict and value and path not in inside:
        yield value
    if type(value) is dict or type(value) is list:
        for key, item in value.items() if type(value) is dict else enumerate(value):
            yield from _objects_in(item, (*path, key), inside)


# What is put into them: the same into two that are to say the same.


def respelt(value: Any, spell: Callable[[str], str] = str, most: int | None = None, times: int = 1) -> Any:
    """*value* with its strings in another spelling, and at most so many of the items of each list, so many times each."""
    if type(value) is dict:
        return {key: respelt(item, spell, most, times) for key, item in value.items()}
    if type(value) is list:
        return [respelt(item, spell, most, times) for item in value[:most]] * times
    return spell(value) if type(value) is str else value


def _marked(number: int, hole: Hole) -> Any:
    if hole.is_weighed:
        return respelt(hole.value, lambda _: mark_of(number))
    if type(hole.value) is float:
        return (1 << number) + 0.700001
    if hole.is_number:
        return MARK << hole.bit
    mark = mark_of(number)
    return {mark: number} if type(hole.value) is dict else mark if _is_word(hole) else _at(number)


def _odd(number: int, hole: Hole) -> Any:
    if hole.is_weighed:
        return respelt(hole.value, lambda text: f'{number} Aß€\U0001f40e"\\\n{text}', times=2)
    if type(hole.value) is float:
        return 1.25e-9 * number
    if hole.is_number:
        return 1009 + 31 * number
    if type(hole.value) is dict:
        return {f"{number} ß\n": [1.5, None, True, "\\", {}, []], "": {"a": 2**70, "b": -0.0}}
    if time_of(hole.value):
        return f"1999-12-31T23:{number:02}:58.123456789+01:30"
    return f" {number} Aß€\U0001f40e</think>{{[<|im_end|>]}} " + (
        '"quoted" \\ \r\n\t\x00\x7f' if hole.is_text else ""
    )


def _one(number: int, hole: Hole) -> Any:
    if hole.is_weighed:
        return respelt(hole.value, most=1)
    if type(hole.value) is dict:
        return {f"{number}": {}}
    return f"{number}" if _is_word(hole) else hole.value if type(hole.value) is str else 1


def _least(number: int, hole: Hole) -> Any:
    if hole.is_weighed:
        return respelt(hole.value, lambda _: "")
    if type(hole.value) is dict:
        return {"": number}
    return " " * (number + 1) if _is_word(hole) else hole.value if type(hole.value) is str else hole.least


def _timely(number: int, hole: Hole) -> Any:
    """What is no time may be one in the next body."""
    return _at(number) if _is_word(hole) else hole.value


def _at(number: int) -> str:
    return f"2001-02-03T04:{number:02}:05.67Z"


def _is_word(hole: Hole) -> bool:
    return type(hole.value) is str and time_of(hole.value) is None


def marks_of(holes: Sequence[Hole]) -> list[Any]:
    """A mark for each of *holes*."""
    return [_marked(hole.first, hole) for hole in holes]


def spellings(holes: Sequence[Hole]) -> Iterator[list[Any]]:
    """Values for *holes*: odd ones, short ones, the least ones, and times where there are none."""
    for spelling in (_odd, _one, _least, _timely):
        yield [spelling(hole.first, hole) for hole in holes]


def sums(number: int, holes: Sequence[Hole]) -> Iterator[tuple[int, Sequence[int]]]:
    """Which holes may hold a total, with those that it is the sum of, hole *number* the one or among the others."""
    counts = {other: hole.value for other, hole in enumerate(holes) if hole.is_number and other != number}
    value = holes[number].value
    for size in (1, 2, 3):
        for some in combinations(counts, size):
            if sum(counts[one] for one in some) == value:
                yield number, some
    for total, other in permutations(counts, 2):
        if counts[total] == counts[other] + value:
            yield total, (number, other)


def with_totals(values: Sequence[Any], totals: Mapping[int, Sequence[int]]) -> list[Any]:
    """*values*, with that of each of *totals* the sum of those that it is the total of."""
    found = [*values]
    for _ in totals:  # one may be part of another
        for total, addends in totals.items():
            found[total] = sum(found[addend] for addend in addends)
    return found


def body_with(literals: Sequence[bytes], holes: Sequence[Hole], values: Sequence[Any]) -> bytes:
    """The body with *values* in its holes; the texts of an answer with all the escapes that there are."""
    said = [
        json.dumps(value, ensure_ascii=hole.is_text).encode()
        for hole, value in zip(holes, values, strict=True)
    ]
    return b"".join(part for pair in zip(literals, (*said, b""), strict=True) for part in pair)
