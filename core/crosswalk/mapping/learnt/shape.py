"""Most bodies of a log differ from one before in a few leaves: read those, not the whole body.

A *shape* is learnt from a body that was read: the bytes around its holes, which are the leaves that the plugin has declared
(``ProviderInfo.body_leaves``). A later body with the same bytes around other values is the same JSON with those values in
their places. Where in the response they belong is found out by a *probe*: the same body with a mark in each hole is read by
the plugin's own hooks, and where a mark comes out, there goes the value of its hole. The response is made by code that is
written for this shape alone, around the constructors, whose checks could only hold.

No shape is used before it is proven: of the body itself, and of others with quite different values in its holes, it must
make what the general way makes, in every field and type. Whatever fits no shape is read in the general way, and so is
everything where a hook was overridden or wrapped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, combinations, islice, permutations
from typing import Any, Final, TypeAlias

import orjson

from crosswalk.mapping.learnt.marks import (
    EPOCH,
    MADE_ID,
    MADE_TIME,
    MARK,
    TOKEN,
    Code,
    UnlikeError,
    addends_of,
    has,
    spans_of,
    strings_in,
    value_at,
)
from crosswalk.mapping.times import time_of
from crosswalk.plugin.info import Path
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import SegmentType
from crosswalk.types.told import told

__all__ = ["OddError", "Read", "Shape", "learn"]

Read: TypeAlias = Callable[[bytes, Callable[[], str], Callable[[], datetime]], ChatResponse]
"""How a body is read in the general way: with what makes its id and tells its time, where it says neither."""

_MOST_HOLES: Final = 40
_MOST_NUMBERS: Final = 18
"""The mark of one more, read as seconds, would be in no calendar."""
_MOST_SUMS: Final = 16
"""So many sums are tried for a number, each of which takes a reading."""
_MOST_BRACKETS: Final = 100
"""With fewer an object is within any limit of depth."""
_MOST_TOKENS: Final = 4096
"""Of more than these nothing is learnt: it would take seconds. What models answer has some hundred, whatever its text."""

Shape: TypeAlias = Callable[[bytes, Callable[[], str], Callable[[], datetime], bool], ChatResponse | None]
"""Reads bodies of one kind: the response of one, with a factory of ids, a clock, and whether to keep its bytes; ``None`` or
an exception for a body of another kind, and for a value that only the general way can make something of."""


# ------------------------------------------------------------------------------------------------- learning


class _Hole:
    """A leaf whose value may be any other of its kind.

    Attributes:
        path: where in the JSON it is.
        span: where in the bytes it stands, its quotes included.
        value: what it is in the body that the shape is learnt from.
        is_text: whether it is a piece of the answer, which may be long and have escapes. An object always is: arguments,
            of which the answer has the JSON.
        first: the number of the first hole that holds the same text: mostly its own.
        least: the least number that it may hold.
        bit: which of the numbers it is.
        is_kept: whether its number stands in the extensions.
    """

    def __init__(self, path: Path, span: tuple[int, int], value: Any) -> None:
        self.path = path
        self.span = span
        self.value = value
        self.is_text = type(value) is dict
        self.first = 0
        self.least = 0
        self.bit = 0
        self.is_kept = False

    @property
    def is_number(self) -> bool:
        return type(self.value) is int

    @property
    def said(self) -> str | None:
        """The text that it holds, or whose JSON it holds; ``None`` for a number."""
        return _text_of(self.value)


def _text_of(value: Any) -> str | None:
    """A text is itself, and an object its JSON."""
    return dump_json(value).decode() if type(value) is dict else value if type(value) is str else None


def learn(data: bytes, leaves: Sequence[Path], read: Read) -> Shape | None:
    """The shape of the body *data*, proven; ``None`` where it has none.

    Args:
        data: a body that *read* reads.
        leaves: the leaves that may change.
        read: the general way to read.
    """
    try:
        return _learn(data, leaves, read)
    except Exception:  # a plugin that has promised too much may choke on a mark, an odd value pass a bound
        return None


def _learn(data: bytes, leaves: Sequence[Path], read: Read) -> Shape | None:
    if any(islice(re.finditer(TOKEN, data), _MOST_TOKENS, None)):
        return None
    holes, texts = _holes_in(data, leaves)
    ends = [0, *(hole.span[1] for hole in holes)]
    literals = [
        data[end:start] for end, start in zip(ends, [*(h.span[0] for h in holes), len(data)], strict=True)
    ]

    def read_with(values: Sequence[Any]) -> tuple[bytes, ChatResponse]:
        body = _body(literals, holes, values)
        return body, read(body, lambda: made_id, lambda: made_time)

    made_id, made_time = "crosswalk-proof", EPOCH
    plain = read(data, lambda: made_id, lambda: made_time)
    if any(segment.type is SegmentType.CITATION for segment in plain.segments):
        return None  # which words it cites may be counted in the text
    made_id, made_time = MADE_ID, MADE_TIME
    values = _values(holes, _mark)
    kept = read_with(values)[1]
    totals: dict[int, Sequence[int]] = {}
    for number, hole in enumerate(holes):
        hole.is_kept = hole.is_number and has(kept.metadata.extensions, hole.path)
        if hole.is_kept and not has(plain.metadata.extensions, hole.path):
            # That only now it is kept tells that it was taken for what others add up to: for which, is tried.
            hole.is_kept = False
            all_counts = [(number, _counted(kept, values))]
            for total, addends in chain(all_counts, islice(_sums(number, holes), _MOST_SUMS)):
                with_this = {**totals, total: addends}
                made = read_with(_with_totals(values, with_this))[1]
                if not has(made.metadata.extensions, hole.path):
                    totals = with_this
                    break
            else:
                return None
    marked = read_with(_with_totals(values, totals))[1]
    code = _Code(holes, values)
    expression = code.of(marked)
    for number, hole in enumerate(holes):
        hole.is_text, hole.least = hole.is_text or number in code.texts, int(number in code.positive)
    for hole in holes:
        hole.is_text = holes[hole.first].is_text
    refused = [hole.path for hole in holes if hole.is_number and hole.value < hole.least]
    if refused:  # it is no time, as it is in no body like this one
        return _learn(data, [leaf for leaf in leaves if leaf not in refused], read)
    if expression is None or not any(hole.is_text for hole in holes):
        return None  # it would fit bodies with this very text alone
    behind = len(data) - sum(map(len, plain.raw_events.frames))  # the end of its line is no part of an event
    shape = code.shape(literals, totals, texts, expression, behind)
    bodies = [(data, plain)]
    made_id, made_time = "crosswalk-proof", EPOCH
    for spelling in (_odd, _one, _least, _timely):
        values = _with_totals(_values(holes, spelling), totals)
        bodies.append(read_with(values))
        # Is one of the numbers that are kept taken, too, if it is what another is, or the sum, which here it was not?
        others = {
            value for hole, value in zip(holes, values, strict=True) if hole.is_number and not hole.is_kept
        }
        for other in (
            {*others, bodies[-1][1].usage.total_tokens} if any(hole.is_kept for hole in holes) else ()
        ):
            same = [other if hole.is_kept else value for hole, value in zip(holes, values, strict=True)]
            bodies.append(read_with(same))
    is_proven = all(
        told(shape(body, lambda: made_id, lambda: made_time, True)) == told(response)
        for body, response in bodies
    )
    return shape if is_proven else None


def _holes_in(data: bytes, leaves: Sequence[Path]) -> tuple[list[_Hole], frozenset[str]]:
    """Those of *leaves* in the body *data* that may change, and the strings that are the same in all bodies like it."""
    event = orjson.loads(data)  # or it is a stream
    spans = spans_of(data, {path for path in leaves if type(value_at(event, path)) is dict})
    found = [
        _Hole(path, spans[path], load_json(data[slice(*spans[path])])) for path in leaves if path in spans
    ]
    found.sort(key=lambda hole: hole.span)
    holes = [
        hole
        for hole in found
        if (type(hole.value) in (str, dict) and hole.value)
        or type(hole.value) is float
        or (hole.is_number and 0 <= hole.value < 10**15)
    ]
    numbers = [hole for hole in holes if hole.is_number][_MOST_NUMBERS:]
    holes = [hole for hole in holes if hole not in numbers][:_MOST_HOLES]
    kept = spans.keys() - {hole.path for hole in holes}
    texts = frozenset(text for path in kept for text in strings_in(value_at(event, path), keys=False))
    # What is said elsewhere, too, stays as it is: it may mean something that it is the same.
    holes = [hole for hole in holes if hole.said not in texts or type(hole.value) is dict]
    for bit, hole in enumerate(hole for hole in holes if hole.is_number):
        hole.bit = bit
    for number, hole in enumerate(holes):
        same = (other for other in range(number) if hole.said is not None and holes[other].said == hole.said)
        hole.first = next(same, number)
    return holes, texts


# Probes. A mark tells where it comes from: a text by its number, and of numbers that were added up each by its bit.


def _mark(number: int, hole: _Hole) -> Any:
    if type(hole.value) is float:
        return (1 << number) + 0.700001
    if hole.is_number:
        return MARK << hole.bit
    mark = f"crosswalk-mark-{number}-"
    return {mark: number} if type(hole.value) is dict else mark if _is_word(hole) else _at(number)


def _odd(number: int, hole: _Hole) -> Any:
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


def _one(number: int, hole: _Hole) -> Any:
    if type(hole.value) is dict:
        return {f"{number}": {}}
    return f"{number}" if _is_word(hole) else hole.value if type(hole.value) is str else 1


def _least(number: int, hole: _Hole) -> Any:
    if type(hole.value) is dict:
        return {"": number}
    return " " * (number + 1) if _is_word(hole) else hole.value if type(hole.value) is str else hole.least


def _timely(number: int, hole: _Hole) -> Any:
    """What is no time may be one in the next body."""
    return _at(number) if _is_word(hole) else hole.value


def _at(number: int) -> str:
    return f"2001-02-03T04:{number:02}:05.67Z"


def _is_word(hole: _Hole) -> bool:
    return type(hole.value) is str and time_of(hole.value) is None


def _values(holes: Sequence[_Hole], spelling: Callable[[int, _Hole], Any]) -> list[Any]:
    """A value for each of *holes*; the same for two that are to say the same."""
    return [spelling(hole.first, hole) for hole in holes]


def _counted(response: ChatResponse, values: Sequence[Any]) -> Sequence[int]:
    """The holes, of these *values*, that add up to all that *response* counts; none where it counts others, too."""
    usage = response.usage
    try:
        return [*addends_of(usage.prompt_tokens, values), *addends_of(usage.completion_tokens, values)]
    except UnlikeError:
        return ()


def _sums(number: int, holes: Sequence[_Hole]) -> Iterator[tuple[int, Sequence[int]]]:
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


def _with_totals(values: Sequence[Any], totals: Mapping[int, Sequence[int]]) -> list[Any]:
    found = [*values]
    for _ in totals:  # one may be part of another
        for total, addends in totals.items():
            found[total] = sum(found[addend] for addend in addends)
    return found


def _body(literals: Sequence[bytes], holes: Sequence[_Hole], values: Sequence[Any]) -> bytes:
    """The body with *values* in its holes; the texts of an answer with all the escapes that there are."""
    said = [
        json.dumps(value, ensure_ascii=hole.is_text).encode()
        for hole, value in zip(holes, values, strict=True)
    ]
    return b"".join(part for pair in zip(literals, (*said, b""), strict=True) for part in pair)


# ------------------------------------------------------------------------------------------- the code of a shape

_COPIED: Final = 8192
"""A longer text is not copied before it is parsed: a view takes its time, too."""
_SHORT: Final = 1024
"""What is longer is no part of a pattern: those take long to be made, and :mod:`re` keeps some hundred of them."""
_PATTERNS: Final = {
    str: rb'("[^"\\\x00-\x1f]+")',
    int: rb"([0-9]{1,15}+)",  # three of them, added up, have less than 63 bits; 0 before others does not parse
    float: rb"(-?[0-9]{1,15}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)",
}


class OddError(Exception):
    """An id or a time was made for a body that only the general way can judge.

    Attributes:
        id_factory: makes the id that was made, and then others.
        clock: tells the time that was told, and then others.
    """

    def __init__(self, id_factory: Callable[[], str], clock: Callable[[], datetime]) -> None:
        self.id_factory = id_factory
        self.clock = clock


def _again(factory: Callable[[], Any], made: Any) -> Callable[[], Any]:
    """A factory of what *factory* has *made*, and then of more."""
    return chain([made], iter(factory, _again)).__next__


def _object_text(data: bytes) -> str | None:
    """The JSON of the object *data*, as hooks write it; ``None`` where it is odd.

    Raises:
        orjson.JSONDecodeError: it is no JSON, or has a key twice, of which the answer says both.
    """
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        return None
    value = load_json(data, unique_keys=True)
    return _text_of(value) if type(value) is dict and value else None


_MAKING_AN_ID: Final = (
    "made_id = new_id()",
    # The constructor will refuse it, or look closer.
    "if type(made_id) is not str or not made_id or not made_id.isascii(): raise Odd(again(new_id, made_id), clock)",
)


class _Code(Code):
    """Writes the function that reads bodies of one shape."""

    def __init__(self, holes: Sequence[_Hole], marks: Sequence[Any]) -> None:
        super().__init__(marks)
        self.holes = holes

    def shape(
        self,
        literals: Sequence[bytes],
        totals: Mapping[int, Sequence[int]],
        texts: frozenset[str],
        made: str,
        behind: int,
    ) -> Shape:
        """The function.

        Args:
            literals: the bytes before, between and behind the holes.
            totals: of each hole that holds a sum the holes that it is the sum of.
            texts: the strings that are the same in all bodies.
            made: the expression for the response, from :meth:`of`.
            behind: how many of its last bytes are not kept.
        """
        self.names |= {"datetime": datetime, "Odd": OddError, "again": _again, "object_text": _object_text}
        ids = _MAKING_AN_ID if MADE_ID in self.made else ()
        again = "again(new_id, made_id)" if ids else "new_id"
        times = (
            "made_time = clock()",
            "if type(made_time) is not datetime or made_time.tzinfo is not UTC:"
            f" raise Odd({again}, again(clock, made_time))",
        )
        lines = [
            *self._finding(literals),
            *self._checks(totals, texts),
            *self.before,
            *ids,
            *(times if MADE_TIME in self.made else ()),
            "raw = NO_RAW_EVENTS",
            "if keep_raw:",
            "    raw = new(RawEvents)",
            f"    raw._frames = (data[:-{behind}],)" if behind else "    raw._frames = (data,)",
            *self.lines,
            f"return {made}",
        ]
        shape: Shape = self.function("shape(data, new_id, clock, keep_raw)", lines)
        return shape

    def _finding(self, literals: Sequence[bytes]) -> list[str]:
        """Find what stands in the holes: the body is then the JSON that the shape was learnt from, but for these values.

        The bytes between the holes are those of the shape. In the holes stand numbers without a fraction, and strings
        without an escape, by their pattern; and texts, each by itself one whole JSON string, or it would not be parsed.
        Texts are long and full of escapes: instead of matching them, what stands behind is looked for.
        """
        short = [f"h{number}" for number, hole in enumerate(self.holes) if not hole.is_text]
        texts = [number for number, hole in enumerate(self.holes) if hole.is_text]
        lines = ["at = 0"]
        groups: list[str] = []
        pattern = self._then(literals[0], b"", groups, lines)
        for number, (hole, literal) in enumerate(zip(self.holes, literals[1:], strict=True)):
            if not hole.is_text:
                pattern = self._then(literal, pattern + _PATTERNS[type(hole.value)], groups, lines)
                continue
            lines += self._match(re.compile(pattern).match, groups)
            is_object = type(hole.value) is dict
            find, end = "rfind" if number == texts[-1] else "find", b"}" if is_object else b'"'
            lines += ["start = found.end()", f"at = data.{find}({self.constant(end + literal)}, start) + 1"]
            if is_object:
                lines.append(f"h{number} = object_text(data[start:at])")
            else:
                part = f"data[start:at] if at - start < {_COPIED} else memoryview(data)[start:at]"
                lines.append(f"h{number} = loads({part})")
            lines.append(f"if not h{number}: return None")
            pattern = self._then(literal, b"", groups, lines)
        lines += self._match(re.compile(pattern).fullmatch, groups)
        if short:
            lines.append(f"{', '.join(short)}, = loads(b'[%b]' % b','.join({' + '.join(groups)}))")
        return lines

    def _then(self, literal: bytes, pattern: bytes, groups: list[str], lines: list[str]) -> bytes:
        """*pattern* with *literal* behind it; a long one is compared in *lines* of its own, and the pattern begins anew."""
        if len(literal) <= _SHORT:
            return pattern + re.escape(literal)
        lines += [
            *self._match(re.compile(pattern).match, groups),
            "at = found.end()",
            f"if not data.startswith({self.constant(literal)}, at): return None",
            f"at += {len(literal)}",
        ]
        return b""

    def _match(self, match: Callable[..., re.Match[bytes] | None], groups: list[str]) -> list[str]:
        groups.append(f"groups{len(groups)}")
        return [
            f"found = {self.constant(match)}(data, at)",
            "if found is None: return None",
            f"{groups[-1]} = found.groups()",
        ]

    def _checks(self, totals: Mapping[int, Sequence[int]], texts: frozenset[str]) -> Iterator[str]:
        """That two texts say the same, or a number is the sum of others, may mean something: so it must be as it was."""
        for number, addends in totals.items():
            yield f"if h{number} != {self.sum_of(addends)}: return None"
        for number, hole in enumerate(self.holes):
            if hole.first != number:
                yield f"if h{number} != h{hole.first}: return None"
            elif hole.said is not None:
                # The hash of a long text takes as long as its parsing.
                is_short = f"len(h{number}) <= {max(map(len, texts), default=0)} and " if hole.is_text else ""
                yield f"if {is_short}h{number} in {self.constant(texts)}: return None"
            for before, other in enumerate(self.holes[:number]):
                if None not in (hole.said, other.said) and hole.first != other.first:
                    yield f"if h{number} == h{before}: return None"
