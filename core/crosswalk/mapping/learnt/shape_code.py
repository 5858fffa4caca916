"""The code of a shape, see :mod:`.shape`: it finds what stands in the holes of a body, and makes the response of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import orjson

from crosswalk.learning import OddError
from crosswalk.mapping.learnt.holes import Fixed, Hole, respelt, text_of
from crosswalk.mapping.learnt.marks import MADE_ID, MADE_TIME, Code, UnlikeError
from crosswalk.plugin.info import LogprobReader, Path
from crosswalk.plugin.take import NOTED, unnoted
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.response import ChatResponse

__all__ = ["Shape", "ShapeCode", "weighed"]

Shape: TypeAlias = Callable[[bytes, Callable[[], str], Callable[[], datetime], bool], ChatResponse | None]
"""Reads bodies of one kind: the response of one, with a factory of ids, a clock, and whether to keep its bytes; ``None`` or
an exception for a body of another kind, and for a value that only the general way can make something of."""


_MOST_BRACKETS: Final = 100
"""With fewer an object is within any limit of depth."""
_COPIED: Final = 8192
"""A longer text is not copied before it is parsed: a view takes its time, too."""
_SHORT: Final = 1024
"""What is longer is no part of a pattern: those take long to be made, and :mod:`re` keeps some hundred of them."""
_PATTERNS: Final = {
    str: rb'("[^"\\\x00-\x1f]+")',
    int: rb"([0-9]{1,15}+)",  # three of them, added up, have less than 63 bits; 0 before others does not parse
    float: rb"(-?[0-9]{1,15}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)",
}


class _Failed:
    """Stands for what a factory would have made, had it not raised *error*."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _again(factory: Callable[[], Any], made: Any) -> Callable[[], Any]:
    """A factory that does again what *factory* has done: it has *made* something, or failed; and then of more."""
    first = [made]

    def make() -> Any:
        if not first:
            return factory()
        made = first.pop()
        if type(made) is _Failed:
            raise made.error
        return made

    return make


def _object_text(data: bytes, fixed: Container[Any]) -> str | None:
    """The JSON of the object *data*, as hooks write it; ``None`` where it is odd, or one of those that are *fixed*.

    Raises:
        orjson.JSONDecodeError: it is no JSON, or has a key twice, of which the answer says both.
    """
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        return None
    value = orjson.loads(data)
    if orjson.dumps(value) == data:  # as much of what servers send: neither a key nor a digit was lost
        return data.decode() if type(value) is dict and value and value not in fixed else None
    value = load_json(data, unique_keys=True)
    return text_of(value) if type(value) is dict and value and value not in fixed else None


def weighed(
    value: Any, path: Path, reader: LogprobReader, text: str = ""
) -> tuple[tuple[TokenLogprob, ...], Any]:
    """The log probabilities that *reader* takes from *value*, which stands at *path*, and what it leaves there.

    Raises:
        UnlikeError: it takes none, leaves objects, notes something, or they may be nested deeper than any limit.
    """
    holder: dict[Any, Any] = {path[-1]: value}
    noted = len(NOTED.values)
    tokens, left = reader(holder, text) or (), holder.get(path[-1])
    inside = [*left.values()] if type(left) is dict else [] if left is None else [left]
    if (
        not tokens
        or len(NOTED.values) > noted
        or {*map(type, inside)} & {dict, list}
        or any(other.top for token in tokens for other in token.top)
    ):
        raise UnlikeError
    return tokens, left or None


_MAKING_AN_ID: Final = (
    "try: made_id = new_id()",
    "except Exception as error: made_id = Failed(error)",
    # The constructor will refuse it, or look closer.
    "if type(made_id) is not str or not made_id or not made_id.isascii(): raise Odd(again(new_id, made_id), clock)",
)


class ShapeCode(Code):
    """Writes the function that reads bodies of one shape."""

    def __init__(self, holes: Sequence[Hole], marks: Sequence[Any]) -> None:
        super().__init__(["" if hole.is_weighed else mark for hole, mark in zip(holes, marks, strict=True)])
        self.holes = holes
        self._weighed: dict[tuple[TokenLogprob, ...], str] = {}

    def weigh(self, number: int, mark: Any, reader: LogprobReader, response: ChatResponse) -> None:
        """Let *reader* take the log probabilities in hole *number*: its *mark* is those of this *response*.

        Raises:
            UnlikeError: they are another choice's, beside another text.
        """
        path, name = self.holes[number].path, f"tokens{number}"
        tokens, left = weighed(respelt(mark), path, reader, response.text)
        if tokens != response.logprobs:
            raise UnlikeError
        kept = dump_json(left)

        def weigh(data: bytes, text: str) -> tuple[TokenLogprob, ...]:
            with unnoted():
                tokens, rest = weighed(load_json(data), path, reader, text)
            # Keys in another order are the same object, and -0.0 is 0.0, but neither is the same JSON.
            if dump_json(rest) != kept:
                raise UnlikeError
            return tokens

        self._weighed[tokens] = name
        said = self.of(response.text) or self.constant(response.text)
        self.before.append(f"{name} = {self.constant(weigh)}(h{number}, {said})")

    def of(self, value: Any) -> str | None:
        """See :meth:`Code.of`; log probabilities are what a hook has made of those in a hole."""
        if type(value) is tuple and value and type(value[0]) is TokenLogprob:
            return self._weighed.get(value)
        return super().of(value)

    def shape(
        self,
        literals: Sequence[bytes],
        totals: Mapping[int, Sequence[int]],
        fixed: Fixed,
        made: str,
        behind: int,
    ) -> Shape:
        """The function.

        Args:
            literals: the bytes before, between and behind the holes.
            totals: of each hole that holds a sum the holes that it is the sum of.
            fixed: what is the same in all bodies.
            made: the expression for the response, from :meth:`of`.
            behind: how many of its last bytes are not kept.
        """
        self.names |= {
            "datetime": datetime,
            "Odd": OddError,
            "again": _again,
            "Failed": _Failed,
            "object_text": _object_text,
        }
        ids = _MAKING_AN_ID if MADE_ID in self.made else ()
        again = "again(new_id, made_id)" if ids else "new_id"
        times = (
            "try: made_time = clock()",
            "except Exception as error: made_time = Failed(error)",
            "if type(made_time) is not datetime or made_time.tzinfo is not UTC:"
            f" raise Odd({again}, again(clock, made_time))",
        )
        self.names["objects"] = fixed.objects
        # Before the end of the body the general way takes such a byte for the end of an event.
        ends = f"if data.find(b'\\n', 0, -{behind}) >= 0 or data.find(b'\\r', 0, -{behind}) >= 0: return None"
        lines = [
            *([ends] if behind else []),
            *self._finding(literals),
            *self._checks(totals, fixed),
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
            end = b"}" if is_object else b"]" if hole.is_weighed else b'"'
            find = "rfind" if number == texts[-1] else "find"
            lines += ["start = found.end()", f"at = data.{find}({self.constant(end + literal)}, start) + 1"]
            if hole.is_weighed:
                lines.append(f"h{number} = data[start:at]")
            elif is_object:
                lines.append(f"h{number} = object_text(data[start:at], objects)")
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

    def _checks(self, totals: Mapping[int, Sequence[int]], fixed: Fixed) -> Iterator[str]:
        """That two texts say the same, or a number is the sum of others, may mean something: so it must be as it was.

        So may a text that is put together of others: one that begins and ends with fixed ones, or a fixed one that begins
        and ends with such.
        """
        texts, words = fixed.texts, tuple(filter(None, fixed.texts))
        self.names |= {"words": words, "numbers": fixed.numbers}
        texts_said = [f"h{number}" for number, hole in enumerate(self.holes) if hole.is_text and hole.said]
        if words and len(texts_said) > 1:
            yield f"said = ({', '.join(texts_said)})"
            yield "if [word for word in words if word.startswith(said) and word.endswith(said)]: return None"
        for number, addends in totals.items():
            yield f"if h{number} != {self.sum_of(addends)}: return None"
        for number, hole in enumerate(self.holes):
            if hole.is_number and fixed.numbers:
                yield f"if h{number} in numbers: return None"
            if words and hole.said is not None and (hole.is_text or len(hole.path) > 1):
                yield f"if h{number}.startswith(words) and h{number}.endswith(words): return None"
            if hole.first != number:
                yield f"if h{number} != h{hole.first}: return None"
            elif hole.said is not None:
                # The hash of a long text takes as long as its parsing.
                is_short = f"len(h{number}) <= {max(map(len, texts), default=0)} and " if hole.is_text else ""
                yield f"if {is_short}h{number} in {self.constant(texts)}: return None"
            for before, other in enumerate(self.holes[:number]):
                if None not in (hole.said, other.said) and hole.first != other.first:
                    yield f"if h{number} == h{before}: return None"
