"""Most bodies of a log differ from one before in a few leaves: read those, not the whole body.

A *shape* is learnt from a body that was read: the bytes around its holes, which are the leaves that the plugin has declared
(``ProviderInfo.body_leaves``). A later body with the same bytes around other values is the same JSON with those values in
their places. Where in the response they belong is found out by a *probe*: the same body with a mark in each hole is read by
the plugin's own hooks, and where a mark comes out, there goes the value of its hole. The response is made by code that is
written for this shape alone, around the constructors, whose checks could only hold.

No shape is used before it is proven: of the body itself, and of others with quite different values in its holes, it must
make what the general way makes, in every field and type. Whatever fits no shape is read in the general way, and so is
everything where a hook was overridden or wrapped; ``attrs.evolve(mapper, is_plain=False)`` turns all this off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.errors import CrosswalkError
from crosswalk.mapping.times import time_of
from crosswalk.plugin.info import Path
from crosswalk.types._value import mutable_twin
from crosswalk.types.json import FrozenObject, load_json
from crosswalk.types.raw import NO_RAW_EVENTS, RawEvents
from crosswalk.types.response import ChatResponse, as_utc

__all__ = ["Read", "Shape", "Shapes", "learn"]

Read: TypeAlias = Callable[[bytes, Callable[[], str], Callable[[], datetime]], ChatResponse]
"""How a body is read in the general way: with what makes its id and tells its time, where it says neither."""

_MOST_SHAPES: Final = 8
_MOST_SEEN: Final = 64
_MOST_HOLES: Final = 18
"""The mark of one more, read as seconds, would be in no calendar."""
_LARGEST: Final = 2**20
"""Of a larger body nothing is learnt: to read it costs what its parsing costs, whatever is around its text."""


class _UnlikeError(Exception):
    """No shape can be learnt from this body."""


Shape: TypeAlias = Callable[[bytes, Callable[[], str], Callable[[], datetime], bool], ChatResponse | None]
"""Reads bodies of one kind: the response of one, with a factory of ids, a clock, and whether to keep its bytes; ``None`` or
an exception for a body of another kind, and for a value that only the general way can make something of."""


class Shapes:
    """The shapes that were learnt from the bodies of one provider, the one that fitted last first.

    Args:
        leaves: the leaves that may change from body to body; without any, nothing is learnt.
    """

    __slots__ = ("_known", "_leaves", "_seen")

    def __init__(self, leaves: Sequence[Path]) -> None:
        self._leaves = leaves
        self._known: tuple[
            Shape, ...
        ] = ()  # replaced and never changed: other threads may be reading with it
        self._seen: dict[Any, int] = {}

    def read(
        self, data: bytes, id_factory: Callable[[], str], clock: Callable[[], datetime], keep_raw: bool
    ) -> ChatResponse | None:
        """The response that the body *data* is; ``None`` where no shape fits it."""
        for shape in self._known:
            try:
                response = shape(data, id_factory, clock, keep_raw)
            except Exception:  # no text, no time, no id: the general way says so, or keeps it as it is
                continue
            if response is not None:
                if shape is not self._known[0]:
                    self._known = (shape, *(other for other in self._known if other is not shape))
                return response
        return None

    def note(self, data: bytes, response: ChatResponse, read: Read) -> None:
        """Learn from the body *data*, which no shape has fitted and which is *response*, once its like comes again.

        Args:
            data: the body.
            response: what the general way has made of it.
            read: the general way.
        """
        if not self._leaves or not data.startswith(b"{") or len(data) > _LARGEST:
            return
        metadata = response.metadata
        like = (
            response.model,
            response.raw_finish_reason,
            *(segment.type for segment in response.segments),
            *metadata.extensions,
            *metadata.provenance.items(),
        )
        seen = self._seen.get(like, 0) + 1
        if len(self._seen) >= _MOST_SEEN:
            self._seen = {}
        self._seen[like] = seen
        # To learn takes as long as to read some ten bodies: the second time, and ever more seldom where it is no use.
        if seen > 1 and not seen & (seen - 1):
            shape = learn(data, self._leaves, read)
            if shape is not None:
                self._known = (shape, *self._known[: _MOST_SHAPES - 1])


# ------------------------------------------------------------------------------------------------- learning


class _Hole:
    """A leaf whose value may be any other of its kind.

    Attributes:
        path: where in the JSON it is.
        span: where in the bytes it stands, its quotes included.
        value: what it is in the body that the shape is learnt from.
        is_text: whether it is a piece of the answer, which may be long and have escapes.
        first: the number of the first hole that holds the same text: mostly its own.
        least: the least number that it may hold.
        is_kept: whether its number stands in the extensions.
    """

    def __init__(self, path: Path, span: tuple[int, int], value: Any) -> None:
        self.path = path
        self.span = span
        self.value = value
        self.is_text = False
        self.first = 0
        self.least = 0
        self.is_kept = False

    @property
    def is_number(self) -> bool:
        return type(self.value) is int


def learn(data: bytes, leaves: Sequence[Path], read: Read) -> Shape | None:
    """The shape of the body *data*, proven; ``None`` where it has none.

    Args:
        data: a body that *read* reads.
        leaves: the leaves that may change.
        read: the general way to read.
    """
    try:
        return _learn(data, leaves, read)
    except (
        CrosswalkError,
        _UnlikeError,
        ValueError,
    ):  # a plugin that has promised too much may well choke on a mark
        return None


def _learn(data: bytes, leaves: Sequence[Path], read: Read) -> Shape | None:
    orjson.loads(data)  # or it is a stream
    spans = _spans(data)
    holes = []
    for path, span in sorted(
        ((path, spans[path]) for path in leaves if path in spans), key=lambda one: one[1]
    ):
        value = load_json(data[slice(*span)])
        if (
            (type(value) is str and value)
            or type(value) is float
            or (type(value) is int and 0 <= value < 10**15)
        ):
            holes.append(_Hole(path, span, value))
    del holes[_MOST_HOLES:]
    kept_paths = spans.keys() - {hole.path for hole in holes}
    fixed = {data[slice(*spans[path])] for path in kept_paths}
    for number, hole in enumerate(holes):
        same = (other for other in range(number) if holes[other].value == hole.value)
        hole.first = number if hole.is_number else next(same, number)
    ends = [0, *(hole.span[1] for hole in holes)]
    literals = [
        data[end:start] for end, start in zip(ends, [*(h.span[0] for h in holes), len(data)], strict=True)
    ]

    def read_with(values: Sequence[Any]) -> tuple[bytes, ChatResponse]:
        body = _body(literals, holes, values)
        return body, read(body, lambda: made_id, lambda: made_time)

    made_id, made_time = "crosswalk-proof", _EPOCH
    plain = read(data, lambda: made_id, lambda: made_time)
    made_id, made_time = _MADE_ID, _MADE_TIME
    values = _values(holes, _mark)
    kept = read_with(values)[1]
    # A number that only now is kept was taken for being the sum of the others.
    totals: dict[int, list[int]] = {}
    for number, hole in enumerate(holes):
        hole.is_kept = hole.is_number and _has(kept.metadata.extensions, hole.path)
        if hole.is_kept and not _has(plain.metadata.extensions, hole.path):
            hole.is_kept = False
            counts = (kept.usage.prompt_tokens, kept.usage.completion_tokens)
            totals[number] = [addend for count in counts for addend in _addends(count)]
    marked = read_with(_with_totals(values, totals))[1]
    code = _Code(holes, values)
    expression = code.of(marked)
    for hole in holes:
        hole.is_text = holes[hole.first].is_text
    if expression is None or not any(hole.is_text for hole in holes):
        return None  # it would fit bodies with this very text alone
    texts = frozenset(orjson.loads(text) for text in fixed if text.startswith(b'"'))
    if any(hole.is_text and hole.value in texts for hole in holes):
        return None
    shape = code.shape(literals, totals, texts, expression)
    bodies = [(data, plain)]
    made_id, made_time = "crosswalk-proof", _EPOCH
    for spelling in (_odd, _one, _least):
        values = _with_totals(_values(holes, spelling), totals)
        bodies.append(read_with(values))
        # Is one of the numbers that are kept taken, too, if it is the sum, which here it was not?
        total = bodies[-1][1].usage.total_tokens
        bodies.append(
            read_with([total if hole.is_kept else value for hole, value in zip(holes, values, strict=True)])
        )
    is_proven = all(
        _told(shape(body, lambda: made_id, lambda: made_time, True)) == _told(response)
        for body, response in bodies
    )
    return shape if is_proven else None


_TOKEN: Final = rb'(?s:"(?:[^"\\]++|\\.)*+"|[^\s\[\]{},:"]++|[\[\]{},:])'


def _spans(data: bytes) -> dict[Path, tuple[int, int]]:
    """Where in the JSON *data* each scalar stands, by its path."""
    spans: dict[Path, tuple[int, int]] = {}
    path: list[Any] = []  # of each container that is open the key, ``None`` before it comes, or the number
    for token in re.finditer(_TOKEN, data):
        text = token[0]
        if text in b"[{":
            path.append(0 if text == b"[" else None)
        elif text in b"]}":
            path.pop()
        elif text == b",":
            path[-1] = path[-1] + 1 if type(path[-1]) is int else None
        elif text != b":":
            if path[-1] is None:
                path[-1] = orjson.loads(text)
            else:
                spans[tuple(path)] = token.span()
    return spans


def _has(value: Any, path: Path) -> bool:
    try:
        for key in path:
            value = value[key]
    except (LookupError, TypeError):
        return False
    return True


# Probes. A mark tells where it comes from: a text by its number, and of numbers that were added up each by its bit.

_MARK: Final = 700_001
_MADE_ID: Final = "crosswalk-made-id"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MADE_TIME: Final = datetime(1970, 7, 30, 4, 5, 6, 789, UTC)
_MARKED: Final = r"crosswalk-mark-(\d+)-"


def _mark(number: int, hole: _Hole) -> Any:
    if type(hole.value) is float:
        return number + 0.700001
    if hole.is_number:
        return _MARK << number
    return f"2001-02-03T04:{number:02}:05.67Z" if time_of(hole.value) else f"crosswalk-mark-{number}-"


def _odd(number: int, hole: _Hole) -> Any:
    if type(hole.value) is float:
        return -1.25e-9 * number
    if hole.is_number:
        return 1009 + 31 * number
    if time_of(hole.value):
        return f"1999-12-31T23:{number:02}:58.123456789+01:30"
    return f" {number} Aß€\U0001f40e</think>{{[<|im_end|>]}} " + (
        '"quoted" \\ \r\n\t\x00\x7f' if hole.is_text else ""
    )


def _one(number: int, hole: _Hole) -> Any:
    return f"{number}" if _is_word(hole) else hole.value if type(hole.value) is str else 1


def _least(number: int, hole: _Hole) -> Any:
    return " " * (number + 1) if _is_word(hole) else hole.value if type(hole.value) is str else hole.least


def _is_word(hole: _Hole) -> bool:
    return type(hole.value) is str and time_of(hole.value) is None


def _values(holes: Sequence[_Hole], spelling: Callable[[int, _Hole], Any]) -> list[Any]:
    """A value for each of *holes*; the same for two that are to say the same."""
    return [spelling(hole.first, hole) for hole in holes]


def _with_totals(values: list[Any], totals: Mapping[int, list[int]]) -> list[Any]:
    return [
        sum(values[addend] for addend in totals[number]) if number in totals else value
        for number, value in enumerate(values)
    ]


def _body(literals: Sequence[bytes], holes: Sequence[_Hole], values: Sequence[Any]) -> bytes:
    """The body with *values* in its holes; the texts of an answer with all the escapes that there are."""
    said = [
        json.dumps(value, ensure_ascii=hole.is_text).encode()
        for hole, value in zip(holes, values, strict=True)
    ]
    return b"".join(part for pair in zip(literals, (*said, b""), strict=True) for part in pair)


def _addends(value: int) -> list[int]:
    """The numbers of the holes whose marks add up to *value*."""
    mask, rest = divmod(value, _MARK)
    if rest:
        raise _UnlikeError
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


def _told(value: Any) -> Any:
    """Everything in *value*, with its types and the order of its keys, to be compared."""
    if isinstance(value, RawEvents):
        return value.frames
    if isinstance(value, Mapping):
        return type(value), [(key, _told(item)) for key, item in value.items()]
    if isinstance(value, tuple | list):
        return type(value), [_told(item) for item in value]
    if attrs.has(type(value)):
        return type(value), [_told(getattr(value, field.name)) for field in attrs.fields(type(value))]
    return type(value), value


# ------------------------------------------------------------------------------------------- the code of a shape

_COPIED: Final = 16384
"""A longer text is not copied before it is parsed: a view takes its time, too."""
_PATTERNS: Final = {
    str: rb'("[^"\\\x00-\x1f]+")',
    int: rb"(0|[1-9][0-9]{0,14})",  # three of them, added up, have less than 63 bits
    float: rb"(-?[0-9]{1,15}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)",
}


_SCALARS: Final = (str, float, datetime, timedelta)


class _Code:
    """Writes the function that reads bodies of one shape, as attrs writes a constructor.

    Nothing that a body says gets into its source: what is the same for all bodies goes by a name of ours, what stands in
    hole 3 is called ``h3``.

    Args:
        holes: the holes.
        marks: what was in them where the response was made that the function is to make.
    """

    def __init__(self, holes: Sequence[_Hole], marks: Sequence[Any]) -> None:
        self._holes = holes
        self._names: dict[str, Any] = {
            "new": object.__new__, "loads": orjson.loads, "as_id": _as_id, "as_utc": as_utc, "time": time_of,
            "timedelta": timedelta, "EPOCH": _EPOCH, "RawEvents": RawEvents, "NO_RAW_EVENTS": NO_RAW_EVENTS,
        }  # fmt: skip
        self._before: list[str] = []  # what may fail, and so is done before an id is made
        self._lines: list[str] = []
        self._made: dict[Any, str] = {}
        self._known: dict[Any, str] = {}
        for number, (hole, mark) in enumerate(zip(holes, marks, strict=True)):
            if hole.is_number:
                # Seconds since 1970, nanoseconds, milliseconds.
                self._known[_EPOCH + timedelta(0, mark)] = f"EPOCH + timedelta(0, h{number})"
                self._known[timedelta(0, 0, mark // 1000)] = f"timedelta(0, 0, h{number} // 1000)"
                self._known[timedelta(0, 0, 0, mark)] = f"timedelta(0, 0, 0, h{number})"
            elif type(mark) is float:
                self._known[mark] = f"h{number}"
            elif hole.first == number and (at := time_of(mark)):
                self._known[mark] = f"h{number}"
                self._known[at] = f"time(h{number})"

    def shape(
        self, literals: Sequence[bytes], totals: Mapping[int, list[int]], texts: frozenset[str], made: str
    ) -> Shape:
        """The function.

        Args:
            literals: the bytes before, between and behind the holes.
            totals: of each hole that holds a sum the holes that it is the sum of.
            texts: the strings that are the same in all bodies.
            made: the expression for the response, from :meth:`of`.
        """
        ids = ["made_id = as_id(new_id())"] if _MADE_ID in self._made else []
        times = ["made_time = as_utc(clock())"] if _MADE_TIME in self._made else []
        lines = [
            *self._finding(literals),
            *self._checks(totals, texts),
            *self._before,
            *ids,
            *times,
            "raw = NO_RAW_EVENTS",
            "if keep_raw:",
            "    raw = new(RawEvents)",
            "    raw._frames = (data,)",
            *self._lines,
            f"return {made}",
        ]
        source = "def shape(data, new_id, clock, keep_raw):\n" + "".join(f"    {line}\n" for line in lines)
        exec(source, self._names)  # see above: it is all our own
        shape: Shape = self._names["shape"]
        return shape

    def _finding(self, literals: Sequence[bytes]) -> list[str]:
        """Find what stands in the holes: the body is then the JSON that the shape was learnt from, but for these values.

        The bytes between the holes are those of the shape. In the holes stand numbers without a fraction, and strings
        without an escape, by their pattern; and texts, each by itself one whole JSON string, or it would not be parsed.
        Texts are long and full of escapes: instead of matching them, what stands behind is looked for.
        """
        short = [f"h{number}" for number, hole in enumerate(self._holes) if not hole.is_text]
        texts = [number for number, hole in enumerate(self._holes) if hole.is_text]
        lines = ["at = 0"]
        groups: list[str] = []
        pattern = re.escape(literals[0])
        for number, (hole, literal) in enumerate(zip(self._holes, literals[1:], strict=True)):
            if not hole.is_text:
                pattern += _PATTERNS[type(hole.value)] + re.escape(literal)
                continue
            lines += self._match(re.compile(pattern).match, groups)
            find, behind = "rfind" if number == texts[-1] else "find", self._constant(b'"' + literal)
            lines += [
                "start = found.end()",
                f"at = data.{find}({behind}, start) + 1",
                f"h{number} = loads(data[start:at] if at - start < {_COPIED} else memoryview(data)[start:at])",
                f"if not h{number}: return None",
            ]
            pattern = re.escape(literal)
        lines += self._match(re.compile(pattern).fullmatch, groups)
        if short:
            lines.append(f"{', '.join(short)}, = loads(b'[%b]' % b','.join({' + '.join(groups)}))")
        return lines

    def _match(self, match: Callable[..., re.Match[bytes] | None], groups: list[str]) -> list[str]:
        groups.append(f"groups{len(groups)}")
        return [
            f"found = {self._constant(match)}(data, at)",
            "if found is None: return None",
            f"{groups[-1]} = found.groups()",
        ]

    def _checks(self, totals: Mapping[int, list[int]], texts: frozenset[str]) -> Iterator[str]:
        """That two texts say the same, or a number is the sum of others, may mean something: so it must be as it was."""
        for number, addends in totals.items():
            yield f"if h{number} != {' + '.join(f'h{addend}' for addend in addends) or 0}: return None"
        for number, hole in enumerate(self._holes):
            if hole.first != number:
                yield f"if h{number} != h{hole.first}: return None"
            elif hole.is_text:
                longest = max(
                    map(len, texts), default=0
                )  # the hash of a long text takes as long as its parsing
                yield f"if len(h{number}) <= {longest} and h{number} in {self._constant(texts)}: return None"
            for other in range(number):
                if hole.is_text and self._holes[other].is_text and hole.first != self._holes[other].first:
                    yield f"if h{number} == h{other}: return None"

    def of(self, value: Any) -> str | None:
        """The expression for a *value* that was made of marks; ``None`` where none is in it: it is the same for all."""
        kind = type(value)
        if kind in _SCALARS:
            return self._scalar(value)
        if kind is int:
            return self._number(value)
        if kind is dict:
            return self._object(value)
        if kind is tuple or kind is list:
            items = [self.of(item) for item in value]
            if not any(items):
                return None
            written = "".join(
                f"{item or self._constant(one)}, " for item, one in zip(items, value, strict=True)
            )
            return f"({written})" if kind is tuple else f"[{written}]"
        if kind is FrozenObject or attrs.has(kind):
            return self._instance(value)
        return None

    def _scalar(self, value: str | float | datetime | timedelta) -> str | None:
        if value in (_MADE_ID, _MADE_TIME):
            return self._made.setdefault(value, "made_id" if value == _MADE_ID else "made_time")
        if type(value) in (str, float) and value in self._known:
            return self._known[value]
        if value in self._known and value not in self._made:
            converted, name = self._known[value], f"converted{len(self._before)}"
            if converted.startswith("EPOCH"):  # 0 is no time
                number = int(converted.rpartition("h")[2][:-1])
                self._holes[number].least = 1
                self._before.append(f"if not h{number}: return None")
            self._before.append(f"{name} = {converted}")
            if converted.startswith("time("):
                self._before.append(f"if {name} is None: return None")
            self._made[value] = name
        if value in self._made:
            return self._made[value]
        if type(value) is not str or "crosswalk-ma" not in value:
            return None
        marks = re.findall(_MARKED, value)
        if "".join(f"crosswalk-mark-{mark}-" for mark in marks) != value:
            raise _UnlikeError  # something is said with a text that is not all of it
        return " + ".join(f"h{mark}" for mark in marks)

    def _number(self, value: int) -> str | None:
        if value < _MARK or value % _MARK:
            return None
        numbers = _addends(value)
        if any(number >= len(self._holes) or not self._holes[number].is_number for number in numbers):
            raise _UnlikeError
        return " + ".join(f"h{number}" for number in numbers)

    def _object(self, value: dict[str, Any]) -> str | None:
        found = {key: said for key, item in value.items() if (said := self.of(item)) is not None}
        if not found:
            return None
        name = f"v{len(self._lines)}"
        self._lines.append(f"{name} = {self._constant(value)}.copy()")
        self._lines += [f"{name}[{self._constant(key)}] = {said}" for key, said in found.items()]
        return name

    def _instance(self, value: Any) -> str | None:
        kind: Any = type(value)
        fields = ["_data"] if kind is FrozenObject else [field.name for field in attrs.fields(kind)]
        found = {field: said for field in fields if (said := self.of(getattr(value, field))) is not None}
        for field in found.keys() & {"content", "arguments"}:
            for mark in re.findall(_MARKED, getattr(value, field)):
                self._holes[int(mark)].is_text = True
        if kind is ChatResponse:
            found["raw_events"] = "raw"
        if not found:
            return None
        name, twin, own = f"v{len(self._lines)}", self._constant(mutable_twin(kind)), self._constant(kind)
        self._lines.append(f"{name} = new({own})" if kind is FrozenObject else f"{name} = {twin}()")
        for field in fields:
            self._lines.append(
                f"{name}.{field} = {found.get(field) or self._constant(getattr(value, field))}"
            )
        if kind is not FrozenObject:
            self._lines.append(f"{name}.__class__ = {own}")
        return name

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name


def _as_id(made: str) -> str:
    if type(made) is not str or not made or not made.isascii():
        raise _UnlikeError  # the constructor will refuse it, or look closer
    return made
