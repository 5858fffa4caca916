"""What changes from one JSON text to the next, and code that makes of it what the hooks make of it.

A leaf that may change is a *hole*. A *mark* is put into each, one that tells it from all others, and hooks read the whole:
where a mark comes out, there goes the value of its hole. :class:`Code` writes a function that puts it there, around the
constructors, whose checks could only hold. Whoever uses it proves it with other values first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs
import orjson

from crosswalk.mapping.times import time_of
from crosswalk.plugin.info import Path
from crosswalk.types.json import FrozenObject, dump_json
from crosswalk.types.raw import NO_RAW_EVENTS, RawEvents
from crosswalk.types.response import ChatResponse

__all__ = [
    "EPOCH",
    "MADE_ID",
    "MADE_TIME",
    "MARK",
    "TOKEN",
    "Code",
    "Gap",
    "UnlikeError",
    "addends_of",
    "are_counts",
    "between",
    "cuts",
    "has",
    "is_mark",
    "mark_of",
    "number_of",
    "spans_of",
    "strings_in",
    "value_at",
    "value_in",
]


class UnlikeError(ValueError):
    """Nothing can be learnt from this, or it is not like what was learnt."""


@attrs.frozen(eq=False)
class Gap:
    """What may change in a text of JSON.

    Attributes:
        start: the first byte, behind a string's quote or a list's bracket.
        end: the byte behind the last, which is the other quote or bracket.
        kind: the type of the value; a list is one of bytes.
        path: the keys that lead there.
    """

    start: int
    end: int
    kind: type
    path: Path

    def moved(self, distance: int) -> Gap:
        """The same so many bytes further behind."""
        return Gap(self.start + distance, self.end + distance, self.kind, self.path)


def between(data: bytes, gaps: Sequence[Gap]) -> tuple[bytes, ...]:
    """The bytes of *data* before, between and behind *gaps*."""
    begins = [0, *(gap.end for gap in gaps)]
    ends = [*(gap.start for gap in gaps), len(data)]
    return tuple([data[begin:end] for begin, end in zip(begins, ends, strict=True)])


def cuts(data: bytes, literals: Sequence[bytes]) -> list[tuple[int, int]] | None:
    """What stands between these *literals* in *data*, each behind the one before; ``None`` where one is not there."""
    first, *more = literals
    if not (data.startswith(first) and data.endswith(more[-1])):
        return None
    start, found = len(first), []
    for number, literal in enumerate(more, start=1):
        end = data.find(literal, start) if number < len(more) else len(data) - len(literal)
        if end < start:
            return None
        found.append((start, end))
        start = end + len(literal)
    return found


def value_in(data: bytes, gap: Gap) -> Any:
    """What stands in *gap* of *data*."""
    quote = int(gap.kind in (str, list))
    value = orjson.loads(data[gap.start - quote : gap.end + quote])
    return float(value) if gap.kind is float else value


TOKEN: Final = rb'(?s:"(?:[^"\\]++|\\.)*+"|[^\s\[\]{},:"]++|[\[\]{},:])'
"""A piece of JSON: a scalar, a key, or what stands between them."""


def spans_of(data: bytes, objects: Container[Path] = ()) -> dict[Path, tuple[int, int]]:
    """Where in the JSON *data* each scalar stands, by its path.

    Args:
        data: the JSON.
        objects: the paths of objects and arrays that count as a whole; what is in them does not.
    """
    spans: dict[Path, tuple[int, int]] = {}
    path: list[Any] = []  # of each container that is open the key, ``None`` before it comes, or the number
    begun: list[tuple[Path, int]] = []  # of the containers that are open, where they begin
    whole = 0  # how many of them are in one that counts as a whole, and that one
    for token in re.finditer(TOKEN, data):
        text = token[0]
        if text in b"[{":
            begun.append(((*path,), token.start()))
            whole += whole > 0 or begun[-1][0] in objects
            path.append(0 if text == b"[" else None)
        elif text in b"]}":
            path.pop()
            place, start = begun.pop()
            if whole == 1:
                spans[place] = start, token.end()
            whole -= whole > 0
        elif text == b",":
            path[-1] = path[-1] + 1 if type(path[-1]) is int else None
        elif text != b":":
            if path[-1] is None:
                path[-1] = orjson.loads(text)
            elif not whole:
                spans[tuple(path)] = token.span()
    return spans


def has(value: Any, path: Path) -> bool:
    """Whether there is anything at *path* in *value*."""
    try:
        for key in path:
            value = value[key]
    except (LookupError, TypeError):
        return False
    return True


def value_at(value: Any, path: Path) -> Any:
    """What stands at *path* in *value*; ``None`` where nothing does."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def are_counts(values: list[Any]) -> bool:
    """Whether *values* are whole numbers from 0, at least one."""
    return {*map(type, values)} == {int} and min(values) >= 0


def strings_in(value: Any, *, keys: bool = True) -> Iterator[str]:
    """Each string in *value*, and each of its *keys* where they are asked for."""
    if isinstance(value, dict):
        if keys:
            yield from value
        value = [*value.values()]
    if isinstance(value, list):
        for item in value:
            yield from strings_in(item, keys=keys)
    elif isinstance(value, str):
        yield value


MARK: Final = 700_001
MADE_ID: Final = "crosswalk-made-id"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MADE_TIME: Final = datetime(1970, 7, 30, 4, 5, 6, 789, UTC)
_PREFIX: Final = "crosswalk-mark-"
MARKED: Final = _PREFIX + r"(\d+)-"


def mark_of(number: int) -> str:
    """A text that stands for the value of hole or gap *number*."""
    return f"{_PREFIX}{number}-"


def is_mark(value: Any) -> bool:
    """Whether *value* is such a text."""
    return type(value) is str and value.startswith(_PREFIX)


def number_of(mark: str) -> int:
    """The number of the hole or gap that *mark* stands for."""
    return int(mark.removeprefix(_PREFIX)[:-1])


def addends_of(value: int, marks: Sequence[Any]) -> list[int]:
    """The numbers of the *marks* that add up to *value*.

    Raises:
        UnlikeError: none do.
    """
    found = [
        number for number, mark in enumerate(marks) if type(mark) is int and value // MARK & mark // MARK
    ]
    if sum(marks[number] for number in found) != value:
        raise UnlikeError
    return found


_SCALARS: Final = (str, float, datetime, timedelta)


_LONGEST: Final = 1e12
"""Milliseconds; a hook may see more in what is longer."""


def _duration(first: float, second: float) -> timedelta:
    """So many milliseconds; an error where they are odd."""
    if not (0 <= first < _LONGEST and 0 <= second < _LONGEST):
        raise UnlikeError
    return timedelta(0, 0, 0, first + second)


class Code:
    """Writes a function that makes a value of what stands in holes, as attrs writes a constructor.

    Nothing that a body says gets into its source: what is the same for all bodies goes by a name of ours, what stands in
    hole 3 is called ``h3``.

    Args:
        marks: what was in them where the value was made that the function is to make.

    Attributes:
        names: what the function knows by name.
        before: its lines that may fail.
        lines: those that make the value.
        made: the names of what they have made.
        texts: which of the holes a piece of the answer is in, which may be long and have escapes.
        positive: which of them must not hold 0.
    """

    def __init__(self, marks: Sequence[Any]) -> None:
        self._marks = marks
        self.names: dict[str, Any] = {
            "new": object.__new__, "loads": orjson.loads, "UTC": UTC,
            "from_iso": datetime.fromisoformat, "time": time_of, "timedelta": timedelta,
            "MICROSECOND": timedelta.resolution, "duration": _duration, "EPOCH": EPOCH, "RawEvents": RawEvents,
            "NO_RAW_EVENTS": NO_RAW_EVENTS,
        }  # fmt: skip
        self.before: list[str] = []  # what may fail, and so is done before an id is made
        self.lines: list[str] = []
        self.made: dict[Any, str] = {}
        self.texts: set[int] = set()
        self.positive: set[int] = set()
        self._known: dict[Any, str] = {}
        for number, mark in enumerate(marks):
            if type(mark) is int:
                # Seconds since 1970, nanoseconds, milliseconds.
                self._known[EPOCH + timedelta(0, mark)] = f"EPOCH + timedelta(0, h{number})"
                self._known[timedelta(0, 0, mark // 1000)] = f"MICROSECOND * (h{number} // 1000)"
                self._known[timedelta(0, 0, 0, mark)] = f"duration(h{number}, 0)"
            elif type(mark) is float:
                self._known[mark] = f"h{number}"
                # Milliseconds, alone or added up.
                self._known[timedelta(0, 0, 0, mark)] = f"duration(h{number}, 0.0)"
                for other, one in enumerate(marks[:number]):
                    if type(one) is float:
                        self._known[timedelta(0, 0, 0, one + mark)] = f"duration(h{other}, h{number})"
            elif type(mark) is dict:
                self._known[dump_json(mark).decode()] = f"h{number}"
            elif type(mark) is list:
                self._known[tuple(mark)] = f"tuple(h{number})"
            elif mark not in self._known and (at := time_of(mark)):
                self._known[mark] = f"h{number}"
                self._known[at] = f"from_iso(h{number})"

    def function(self, signature: str, lines: Iterable[str]) -> Any:
        """The function of *signature* that *lines* are the body of: all of them are our own, see above."""
        exec(f"def {signature}:\n" + "".join(f"    {line}\n" for line in lines), self.names)
        return self.names[signature.partition("(")[0]]

    def of(self, value: Any) -> str | None:
        """The expression for a *value* that was made of marks; ``None`` where none is in it: it is the same for all."""
        kind = type(value)
        if kind in _SCALARS:
            return self._scalar(value)
        if kind is int:
            return self._number(value)
        if kind is dict:
            return self._object(value)
        if kind is tuple and value and type(value[0]) is int:
            return self._known.get(value)
        if kind is tuple or kind is list:
            items = [self.of(item) for item in value]
            if not any(items):
                return None
            written = "".join(
                f"{item or self.constant(one)}, " for item, one in zip(items, value, strict=True)
            )
            return f"({written})" if kind is tuple else f"[{written}]"
        if kind is FrozenObject or attrs.has(kind):
            return self._instance(value)
        return None

    def _scalar(self, value: str | float | datetime | timedelta) -> str | None:
        if value in (MADE_ID, MADE_TIME):
            return self.made.setdefault(value, "made_id" if value == MADE_ID else "made_time")
        if type(value) in (str, float) and value in self._known:
            return self._known[value]
        if value in self._known and value not in self.made:
            converted, name = self._known[value], f"converted{len(self.before)}"
            if converted.startswith("EPOCH"):  # 0 is no time
                number = int(converted.rpartition("h")[2][:-1])
                self.positive.add(number)
                self.before.append(f"if not h{number}: return None")
            self.before.append(f"{name} = {converted}")
            if converted.startswith("from_iso"):
                time = converted.replace("from_iso", "time")
                self.before.append(f"if {name}.tzinfo is not UTC and ({name} := {time}) is None: return None")
            self.made[value] = name
        if value in self.made:
            return self.made[value]
        if type(value) is not str or "crosswalk-ma" not in value:
            return None
        marks = re.findall(MARKED, value)
        if "".join(map(mark_of, map(int, marks))) != value:
            raise UnlikeError  # something is said with a text that is not all of it
        return " + ".join(f"h{mark}" for mark in marks)

    def _number(self, value: int) -> str | None:
        if value < MARK or value % MARK:
            return None
        return self.sum_of(addends_of(value, self._marks))

    def sum_of(self, numbers: Iterable[int]) -> str:
        """The expression for the sum of what stands in the holes of these *numbers*."""
        return " + ".join(f"h{number}" for number in numbers) or "0"

    def _object(self, value: dict[str, Any]) -> str | None:
        found = {key: said for key, item in value.items() if (said := self.of(item)) is not None}
        if not found:
            return None
        items = ", ".join(
            f"{self.constant(key)}: {found.get(key) or self.constant(item)}" for key, item in value.items()
        )
        return f"{{{items}}}"

    def _instance(self, value: Any) -> str | None:
        kind: Any = type(value)
        fields = ["_data"] if kind is FrozenObject else [field.name for field in attrs.fields(kind)]
        found = {field: said for field in fields if (said := self.of(getattr(value, field))) is not None}
        for field in found.keys() & {"content", "arguments"}:
            for mark in re.findall(MARKED, getattr(value, field)):
                self.texts.add(int(mark))
        if kind is ChatResponse:
            found["raw_events"] = "raw"
        if not found:
            return None
        name, twin, own = f"v{len(self.lines)}", self.constant(mutable_twin(kind)), self.constant(kind)
        self.lines.append(f"{name} = new({own})" if kind is FrozenObject else f"{name} = {twin}()")
        for field in fields:
            self.lines.append(f"{name}.{field} = {found.get(field) or self.constant(getattr(value, field))}")
        if kind is not FrozenObject:
            self.lines.append(f"{name}.__class__ = {own}")
        return name

    def constant(self, value: Any) -> str:
        """The name by which the function knows *value*."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name


@functools.cache
def mutable_twin(cls: type[Any]) -> type[Any]:
    """A class of the same layout as the frozen class *cls*: its instances can be filled, and then take the class *cls*.

    Making one calls no constructor, and checks nothing.
    """
    # All of ``object``'s own that a frozen class replaces: CPython then sets a slot without a call.
    own = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
    return type(f"_{cls.__name__}", (cls,), {"__slots__": (), **own})
