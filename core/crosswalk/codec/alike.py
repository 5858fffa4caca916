"""Most documents of a log differ from one before in a few leaves: read those, not the whole document.

A *shape* is learnt from a response that was read in the general way, if its document is what ``to_json`` writes. The
response is written again, piece by piece: what stays the same is a *literal*, a leaf that may change is a *hole*, of a kind
whose every value its field can hold. A later document with the same literals around other values of these kinds is the same
JSON with those values in their places, and all that the general way would check of it holds. The response is made by code
that is written for this shape alone: it fills the classes whose checks could only hold, and calls the constructors of all
others.

What was the same in the first document and in the next stays a literal; what has changed since is a hole from then on.
No shape is used before it is proven: of the document itself, and of others with quite different values in its holes, it must
make what the general way makes, in every field and type. Whatever fits no shape is read in the general way;
``crosswalk.codec.reading.documents`` holds what is known.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

import attrs
import orjson

from crosswalk import shapes
from crosswalk.codec.layout import CANONICAL, RAW, TAGS, Key, layout, union_members
from crosswalk.codec.version import FORMAT_VERSION
from crosswalk.types._value import mutable_twin
from crosswalk.types.json import FrozenObject, mark_as_json
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.message import ChatMessage
from crosswalk.types.metadata import ResponseMetadata
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import Segment
from crosswalk.types.told import told
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import Cost, UsageInfo

__all__ = ["Shape", "learn"]

Read: TypeAlias = Callable[[bytes], ChatResponse]
"""The general way; it may raise anything."""


class Shape(shapes.Shape):
    """What documents of one kind have in common: all that differ only in which leaves may change.

    Attributes:
        leaves: those that may stay the same, as they stood in the document that it was learnt from.
        changing: the numbers of those that are holes.
    """

    __slots__ = ("changing", "leaves")

    def __init__(
        self,
        read: Callable[[bytes], ChatResponse | None],
        kind: object,
        *,
        leaves: tuple[bytes, ...],
        changing: frozenset[int],
    ) -> None:
        super().__init__(read, kind)
        self.leaves = leaves
        self.changing = changing


_MOST_HOLES: Final = 64
_MOST_LEAVES: Final = 256
_MOST_PARTS: Final = 4096
"""To write more takes seconds."""


class _UnlikeError(Exception):
    """No shape can be learnt from this document."""


def learn(data: bytes, response: ChatResponse, known: Collection[Shape], read: Read) -> Shape | None:
    """The shape of a document, proven; ``None`` where it has none.

    Args:
        data: the document.
        response: what the general way has made of it.
        known: the shapes that have not fitted: if one differs in values alone, those may change from now on.
        read: the general way.
    """
    try:
        code = _Code(frozenset())
        code.instance(response)
        if code.document() != data:
            return None  # not as it is written: a key twice, another order, space
        skeleton, leaves = tuple(code.skeleton), tuple(code.leaves)
        for shape in known:
            if shape.kind == skeleton:
                pairs = enumerate(zip(leaves, shape.leaves, strict=True))
                changing = shape.changing | {number for number, (now, then) in pairs if now != then}
                code = _Code(changing)
                code.instance(response)
        shape = Shape(code.function(), skeleton, leaves=leaves, changing=code.changing)
        for document in (data, *(code.document(number) for number in range(_PROBES))):
            if told(shape.read(document)) != told(read(document)):
                return None
    except Exception:  # whoever refuses a probe; or it is nested deeper than Python's own expressions
        return None
    return shape


# ------------------------------------------------------------------------------------------- what may change


class _Kind(NamedTuple):
    """What a hole may hold: only what its field can hold, whatever it is.

    Attributes:
        pattern: what it looks like in JSON; empty for a text, which is long and full of escapes, so what stands behind it
            is looked for instead.
        probes: some.
        is_read: whether the value is needed.
    """

    pattern: bytes
    probes: tuple[bytes, ...]
    is_read: bool = True


_PROBES: Final = 2
# The parser tells whether a value that is read is JSON. No number has more digits than a float or 64 bits can hold.
_STRING: Final = rb'[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"'
_INTEGER: Final = rb"[0-9]{1,15}+"
_FRACTION: Final = rb"(?:\.[0-9]{1,30}+)?"
_TEXT: Final = _Kind(b"", (rb'"\u0022quoted\" \\ A\u00df\n\t\u0000 {\"a\":[1]}"', b'""'))
_WORD: Final = _Kind(rb'"(?!")' + _STRING, ('"a \\" \U0001f40e"'.encode(), b'" "'))
_ANY_WORD: Final = _Kind(b'"' + _STRING, ('"\\\\ß\\u0001"'.encode(), b'""'))
_TIME: Final = _Kind(_WORD.pattern, (b'"1999-12-31T23:59:58.123456Z"', b'"0001-01-01T00:00:00+00:00"'))
_DECIMAL: Final = _Kind(rb'"[0-9]{1,40}(?:\.[0-9]{1,40})?"', (b'"12.50"', b'"0"'))
_COUNT: Final = _Kind(_INTEGER, (b"999999999999999", b"0"))
_SECONDS: Final = _Kind(rb"[0-9]{1,10}+" + _FRACTION, (b"9999999999.123456789", b"0.0"))
_NUMBER: Final = _Kind(rb"-?" + _INTEGER + rb"(?:[.eE][-+.0-9eE]{1,30}+)?", (b"-1.25e-9", b"-0"))
_COMPUTED: Final = _Kind(rb"(?!0[0-9])" + _INTEGER + _FRACTION, (b"12.5", b"0"), is_read=False)


class _Hole(NamedTuple):
    """A leaf that may change.

    Attributes:
        number: its own.
        kind: what it may hold.
        held: what it holds in the document that is learnt from, as JSON.
        same: the number of the hole before it that holds the same text; ``None`` for most.
    """

    number: int
    kind: _Kind
    held: bytes
    same: int | None

    @property
    def name(self) -> str:
        """What the function calls its value."""
        return f"h{self.number if self.same is None else self.same}"


class _Run(NamedTuple):
    """What stands between two texts: literals, and other holes between them.

    Attributes:
        literals: the bytes before, between and behind the holes.
        holes: the holes.
    """

    literals: list[bytes]
    holes: list[_Hole]

    def pattern(self) -> bytes:
        """What matches it, with a group for each hole that is read."""
        holes = [b"(%b%b)" % (b"" if one.kind.is_read else b"?:", one.kind.pattern) for one in self.holes]
        pairs = zip(map(re.escape, self.literals), [*holes, b""], strict=True)
        return b"".join(part for pair in pairs for part in pair)


_FILLED: Final = (ChatMessage, ChatResponse, ResponseMetadata, Segment, ToolCall, UsageInfo)
"""The classes whose checks hold for whatever their holes can hold, if they have held for one."""
_TEXTS: Final = ((ChatMessage, "content"), (Segment, "content"), (ToolCall, "arguments"))
_ALWAYS: Final = (
    (ChatResponse, "id"),
    (ChatResponse, "created"),
    (UsageInfo, "prompt_tokens"),
    (UsageInfo, "completion_tokens"),
)
"""What is another in each document, beside the texts: nobody need wait for it to change."""
_NEVER: Final = (Cost, "currency")
"""What few words may stand in, and is the same in all documents."""
_BY_TYPE: Final[dict[Any, tuple[_Kind, str]]] = {
    str: (_WORD, "{}"),
    int: (_COUNT, "{}"),
    float: (_SECONDS, "float({})"),
    timedelta: (_SECONDS, "(timedelta(0, {0}) if {0} else NO_TIME)"),
    Decimal: (_DECIMAL, "Decimal({})"),
}
"""Of the fields of each type what a hole may hold, and the expression for what the field then holds."""
_COPIED: Final = 16384
"""A longer text is not copied for being parsed with the rest."""
_SHORT: Final = 1024
"""What is longer is no part of a pattern: those take long to be made, and :mod:`re` keeps some hundred of them."""


# --------------------------------------------------------------------------------------------- the code of a shape


class _Code:
    """Writes a response as JSON with holes, and the function that reads documents with other values in them.

    Nothing that a document says gets into its source: what is the same in all goes by a name of ours, what stands in hole 3
    is called ``h3``.

    Args:
        changing: which of the leaves that may stay the same are holes.
    """

    def __init__(self, changing: frozenset[int]) -> None:
        self.changing = changing
        self.skeleton: list[bytes] = []
        self.leaves: list[bytes] = []
        self._parts: list[bytes | _Hole] = []
        self._holes: list[_Hole] = []
        self._unsaid: dict[bytes, int] = {}  # of messages' texts that no segment has said again, the holes
        self._before: list[str] = []
        self._lines: list[str] = []
        self._made = "None"
        self._counted: str | None = None
        self._names: dict[str, Any] = {
            "new": object.__new__, "loads": orjson.loads, "time_of": datetime.fromisoformat, "UTC": UTC, "Decimal": Decimal,
            "timedelta": timedelta, "FrozenObject": FrozenObject,
            "NO_TIME": attrs.fields(ResponseMetadata).request_duration.default,
        }  # fmt: skip

    def document(self, probe: int | None = None) -> bytes:
        """The document; with other values in its holes, those of the number *probe*, where one is given."""
        return b"".join(
            part if type(part) is bytes else part.held if probe is None else part.kind.probes[probe]  # type: ignore[union-attr]
            for part in self._parts
        )

    # ----------------------------------------------------------------------------------- literals and holes

    def _say(self, literal: bytes) -> None:
        if len(self._parts) > _MOST_PARTS:
            raise _UnlikeError
        self._parts.append(literal)
        self.skeleton.append(literal)

    def _text(self, cls: type, text: str) -> str | None:
        """A piece of the answer: what a message says, a segment says again."""
        held = orjson.dumps(text)
        if cls is Segment:
            return self._leaf(held, _TEXT, changes=True, same=held if held in self._unsaid else None)
        self._unsaid[held] = len(self._holes)
        return self._leaf(held, _TEXT, changes=True)

    def _leaf(self, held: bytes, kind: _Kind, changes: bool = False, same: bytes | None = None) -> str | None:
        """The name of what stands here; ``None`` where that is always the same."""
        self.skeleton.append(kind.pattern)
        if not changes:
            changes = len(self.leaves) in self.changing
            self.leaves.append(held)
        if not changes or (kind.pattern and not re.fullmatch(kind.pattern, held)):
            self._parts.append(held)
            return None
        hole = _Hole(len(self._holes), kind, held, None if same is None else self._unsaid.pop(same))
        self._parts.append(hole)
        self._holes.append(hole)
        if len(self._holes) > _MOST_HOLES or len(self.leaves) > _MOST_LEAVES:
            raise _UnlikeError
        return hole.name

    # -------------------------------------------------------------------------------------- values

    def instance(self, value: Any) -> str | None:
        """The expression for a *value* of a canonical type; ``None`` where it is always the same."""
        cls: Any = type(value)
        if cls is TokenLogprob:
            raise _UnlikeError  # in each answer there are others, and so many of them
        found: dict[str, str] = {}
        comma = b"{"
        if cls in TAGS:
            self._say(b'{"type":"%b"' % TAGS[cls].encode())
            comma = b","
        for key in layout(cls):
            held = getattr(value, key.attribute)
            if key.name in RAW or (not held if key.omit_empty else held is None):
                continue
            self._say(b'%b"%b":' % (comma, key.name.encode()))
            comma = b","
            if key.computed:
                self._leaf(orjson.dumps(held), _COMPUTED, changes=True)
                continue
            expression = self._field(cls, key, held)
            if expression is not None:
                found[key.attribute] = expression
        if cls is UsageInfo:
            self._counted = found.get("completion_tokens")
        if cls is ResponseMetadata and value.completion_tokens is not None and self._counted is not None:
            found["completion_tokens"] = self._counted
        if cls is not ChatResponse:
            self._say(b"}" if comma == b"," else b"{}")
            return self._instance(cls, value, found) if found else None
        self._say(b',"format_version":"%b"}' % FORMAT_VERSION.encode())
        self._made = self._instance(cls, value, found)
        return self._made

    def _instance(self, cls: Any, value: Any, found: Mapping[str, str]) -> str:
        name = f"v{len(self._lines)}"
        fields = {
            field.name: found.get(field.name) or self._constant(getattr(value, field.name))
            for field in attrs.fields(cls)
        }
        own = self._constant(cls)
        if cls not in _FILLED:
            given = ", ".join(f"{field}={said}" for field, said in fields.items())
            self._lines.append(f"{name} = {own}({given})")
            return name
        self._lines.append(f"{name} = {self._constant(mutable_twin(cls))}()")
        self._lines += [f"{name}.{field} = {said}" for field, said in fields.items()]
        self._lines.append(f"{name}.__class__ = {own}")
        return name

    def _field(self, cls: type, key: Key, held: Any) -> str | None:
        kind = key.type
        changes = (cls, key.attribute) in _ALWAYS
        if (cls, key.attribute) in _TEXTS and type(held) is str:
            return self._text(cls, held)
        if (cls, key.attribute) == _NEVER:
            self._say(orjson.dumps(held))
            return None
        if kind is datetime:
            name = self._leaf(orjson.dumps(held, option=orjson.OPT_UTC_Z), _TIME, changes)
            assert name is not None  # when an answer was made is another time in each
            self._before += [f"at_{name} = time_of({name})", f"if at_{name}.tzinfo is not UTC: return None"]
            return f"at_{name}"
        return self._value(kind, held, changes)

    def _value(self, kind: Any, held: Any, changes: bool = False) -> str | None:
        if kind in _BY_TYPE:
            hole, expression = _BY_TYPE[kind]
            said = (
                held.total_seconds() if kind is timedelta else format(held, "f") if kind is Decimal else held
            )
            name = self._leaf(orjson.dumps(said), hole, changes)
            return None if name is None else expression.format(name)
        if kind is FrozenObject:
            said = self._json(held._data)
            if said is None:
                return None
            name = f"v{len(self._lines)}"
            self._lines += [
                f"{name} = new(FrozenObject)",
                f"{name}._data = {said}",
                f"{name}._is_json = True",
            ]
            return name
        if kind in CANONICAL or (union_members(kind) and type(held) in CANONICAL):
            return self.instance(held)
        if typing.get_origin(kind) is tuple:  # its items are all of one type
            return self._array(held, lambda item: self._value(typing.get_args(kind)[0], item), "({})")
        if kind is bool or isinstance(held, Enum | Mapping):
            self._say(orjson.dumps(dict(held) if isinstance(held, Mapping) else held))
            return None
        raise _UnlikeError

    def _json(self, value: Any) -> str | None:
        """The expression for decoded JSON, of any structure; ``None`` where it is always the same."""
        if type(value) is dict:
            found = []
            comma = b"{"
            for key, item in value.items():
                self._say(b"%b%b:" % (comma, orjson.dumps(key)))
                found.append(self._json(item))
                comma = b","
            self._say(b"}" if value else b"{}")
            if not any(found):
                return None
            items = [
                f"{self._constant(key)}: {said or self._constant(item)}"
                for (key, item), said in zip(value.items(), found, strict=True)
            ]
            return f"{{{', '.join(items)}}}"
        if type(value) is list:
            return self._array(value, self._json, "[{}]")
        if type(value) is str:
            return self._leaf(orjson.dumps(value), _ANY_WORD)
        if type(value) in (int, float):
            return self._leaf(orjson.dumps(value), _NUMBER)
        self._say(orjson.dumps(value))
        return None

    def _array(self, items: Sequence[Any], say: Callable[[Any], str | None], written: str) -> str | None:
        found = []
        for number, item in enumerate(items):
            self._say(b"," if number else b"[")
            found.append(say(item))
        self._say(b"]" if items else b"[]")
        if not any(found):
            return None
        each = "".join(f"{said or self._constant(item)}, " for said, item in zip(found, items, strict=True))
        return written.format(each)

    def _constant(self, value: Any) -> str:
        """The name by which the function knows *value*."""
        if value is None:
            return "None"
        mark_as_json(value)
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    # ----------------------------------------------------------------------------------- the function

    def function(self) -> Callable[[bytes], ChatResponse | None]:
        """The function that reads documents like this one; ``None`` or an exception for all others."""
        lines = [*self._finding(), *self._before, *self._lines, f"return {self._made}"]
        source = "def read(data):\n" + "".join(f"    {line}\n" for line in lines)
        exec(source, self._names)  # it holds names of our own types and their fields, and nothing else
        read: Callable[[bytes], ChatResponse | None] = self._names["read"]
        return read

    def _finding(self) -> Iterator[str]:
        """Find what stands in the holes: the document is then the JSON that was learnt from, but for these values.

        The bytes between the holes are those of the shape. Most holes are told by their pattern; a text by what stands
        behind it, and it is by itself one JSON value, a string, or it would not be parsed. The last text mostly says the
        first once more, and has nothing but a literal behind it: then it starts half of what is between them behind the
        middle, and of a long text nothing need be looked at but to compare it.
        """
        texts, runs = self._runs()
        groups: list[str] = []
        yield "at, limit = 0, len(data)"
        if len(texts) > 1 and texts[-1].same == texts[0].number and not runs[-1].holes:
            tail, said = runs.pop().literals[0], f"text{texts[0].number}"
            near = runs[-1].literals[-1]
            yield f"if not data.endswith({self._constant(tail)}): return None"
            yield from self._run(runs.pop(0), groups)
            yield f"end = limit - {len(tail)}"
            yield f"limit = data.find({self._constant(near)}, (at + end) // 2) + {len(near)}"
            yield f"{said} = data[limit:end]"
            yield from _skip(said)
            yield from self._all(texts[1:-1], runs, groups)
        else:
            yield from self._all(texts, runs, groups)
        yield from self._parsing([text for text in texts if text.same is None], groups)

    def _runs(self) -> tuple[list[_Hole], list[_Run]]:
        """The texts, and what is before, between and behind them."""
        texts: list[_Hole] = []
        runs = [_Run([b""], [])]
        for part in self._parts:
            if not isinstance(part, _Hole):
                runs[-1].literals[-1] += part
            elif part.kind is _TEXT:
                texts.append(part)
                runs.append(_Run([b""], []))
            else:
                runs[-1].holes.append(part)
                runs[-1].literals.append(b"")
        return texts, runs

    def _all(self, texts: Sequence[_Hole], runs: Sequence[_Run], groups: list[str]) -> Iterator[str]:
        """From ``at`` up to ``limit``: *runs*, and between them *texts*."""
        for number, run in enumerate(runs):
            is_last = number == len(runs) - 1
            if number:
                text = texts[number - 1]
                if text.same is not None:
                    yield from _skip(f"text{text.same}")
                else:
                    behind = run.literals[0]
                    yield "start = at"
                    if is_last and not run.holes:
                        yield f"at = limit - {len(behind)}"
                    else:
                        quoted = self._constant(b'"' + behind)
                        yield f"at = data.find({quoted}, start) + 1"
                    yield f"text{text.number} = data[start:at]"
            yield from self._run(run, groups, is_last=is_last)

    def _run(self, run: _Run, groups: list[str], is_last: bool = False) -> Iterator[str]:
        """A *run* at ``at``, up to ``limit`` if it is the last; its holes that are read become a group."""
        for place, literal in enumerate(run.literals if run.holes else ()):
            if len(literal) > _SHORT:
                yield from self._run(_Run([*run.literals[:place], b""], run.holes[:place]), groups)
                yield from self._run(_Run([literal], []), groups)
                run = _Run([b"", *run.literals[place + 1 :]], run.holes[place:])
                yield from self._run(run, groups, is_last)
                return
        if run.holes:
            pattern = re.compile(run.pattern(), re.DOTALL)
            yield f"found = {self._constant(pattern.fullmatch if is_last else pattern.match)}(data, at, limit)"
            yield "if found is None: return None"
            groups.append(f"groups{len(groups)}")
            yield f"{groups[-1]} = found.groups()"
            if not is_last:
                yield "at = found.end()"
        elif is_last:
            yield f"if data[at:limit] != {self._constant(run.literals[0])}: return None"
        else:
            yield f"if not data.startswith({self._constant(run.literals[0])}, at): return None"
            yield f"at += {len(run.literals[0])}"

    def _parsing(self, texts: Sequence[_Hole], groups: Sequence[str]) -> Iterator[str]:
        """Parse all at once, but long texts and all but one: of two together one could end where the other starts."""
        names = [hole.name for hole in self._holes if hole.kind is not _TEXT and hole.kind.is_read]
        alone = f"{', '.join(names)}, = loads(b'[%b]' % b','.join({' + '.join(groups)}))" if names else "pass"
        for number, text in enumerate(texts):
            parsed = f"{text.name} = loads(text{text.number})"
            if number or not names:
                yield parsed
            else:
                together = f"b'[%b,%b]' % (b','.join({' + '.join(groups)}), text{text.number})"
                yield f"if len(text{text.number}) > {_COPIED}:"
                yield f"    {alone}"
                yield f"    {parsed}"
                yield f"else: {', '.join(names)}, {text.name} = loads({together})"
            yield f"if type({text.name}) is not str: return None"
        if not texts:
            yield alone


def _skip(said: str) -> Iterator[str]:
    """The text *said* stands here, too."""
    yield f"if not data.startswith({said}, at): return None"
    yield f"at += len({said})"
