"""The code that reads one kind of event: written once for all that have the same kinds of gaps in the same order.

An event is its literals with values between them; what is all literals and whole values of the right types is the JSON that
was learnt, with these values. Where there are few gaps, a literal is looked for where it stood in the event before, counted
from the front or, behind the text, from the end; then at the first place that it can stand at; then anywhere. A string is
between quotes that belong to the literals: parsed by itself, with them, it is one string or an error. A number of digits
alone is that number.

Where there are many gaps, or many events (see :mod:`.run_code`), each literal is replaced by a mark,
wherever it stands, and what is left is parsed as one array. A mark is a number below 0, which tells which literal it was,
between two commas with a line feed behind each. Proof that the items between the marks are what stood in the gaps:

- Each literal was replaced as often as it is to stand there, so exactly so many marks are ours.
- One inside a string would put a raw line feed there, and one inside an object would be no JSON. One inside a list, of
  bytes or of counts, leaves a number below 0 there, which these are not. So all of ours stand between items of the array.
- Every other item is to be the mark that comes next, and there is one item more than twice the marks: so no comma and no
  mark came from the event itself.
- An item is one value then, with spaces around it at most. In a whole read none may be a line end, which might tell events
  apart.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs
import orjson

from crosswalk.mapping.learnt.marks import are_counts, mutable_twin
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, adopted
from crosswalk.types.tools import ToolCallDelta

__all__ = ["DIGITS", "MOST", "SAME_NOTES", "EventCode", "Role", "bare", "function_of", "reader_of"]

Role: TypeAlias = Literal["text", "stamp", "number", "usage", "logprobs", "choice", "call"]

_FEW: Final = 8
"""So many values are looked for and parsed one by one: to do it at once would cost more."""
_MOST_KINDS: Final = 512
"""So many kinds of code are kept, those that were used last: a server may send ever new kinds of events."""
DIGITS: Final = 15
MOST: Final = 10**DIGITS
"""A count is less."""


@attrs.frozen(cache_hash=True)
class EventCode:
    """What the code depends on.

    Attributes:
        gaps: what stands in each gap, and its type.
        says: the field of the delta that the text is for.
        framed: whether an event comes with what its framing puts around it, in one read.
        keeps_raw: whether its bytes are kept.
        has_usage: whether it says counts, whether or not any of these changes.
        has_logprobs: likewise, log probabilities.
        is_remembered: whether the hooks are to be told of the last such event.
        weighs_text: whether what makes the log probabilities is given the text, too.
        has_left: whether the hooks have left strings of it, which no text may be then.
        has_duration: whether its counts say how long the answer took, too.
        merges: whether what it adds to the extensions is more than one time.
        literals: how often each of the literals between its gaps stands there, see :func:`between_gaps`, if that matters.
    """

    gaps: tuple[tuple[Role, type], ...]
    says: Literal["content_delta", "reasoning_delta", "tool_call_delta"]
    framed: bool
    keeps_raw: bool
    has_usage: bool
    has_logprobs: bool
    weighs_text: bool
    is_remembered: bool
    has_left: bool
    has_duration: bool
    merges: bool
    literals: tuple[int, ...]

    def lines(self) -> list[str]:
        """The function ``read``: the delta of one event, which is then told; ``None`` for another kind of event."""
        return [
            "def read(data):",
            *self._known_places(),
            *indented(
                "if data[tail] != end or data[head] != begin: return None",
                *tried([*self._finding(), *self._parsing()] if self.has_few else self._replacing()),
                f"if not h{self._numbers('text')[0]}: return None",
                *self._checking(),
                "last = alike.last",
                "if last is not template: last.follower = alike.last = template",
                *self._telling(),
                "return delta",
            ),
        ]

    @classmethod
    def count(cls, gaps: Sequence[tuple[Any, type]], literals: Sequence[bytes]) -> tuple[int, ...]:
        """How often each of the *literals* between *gaps* stands there; nothing where that does not matter."""
        return () if _are_few(gaps) else tuple(between_gaps(gaps, literals).values())

    @property
    def _kinds(self) -> list[type]:
        return [kind for _, kind in self.gaps]

    @property
    def has_few(self) -> bool:
        """Whether values are looked for one by one."""
        return _are_few(self.gaps)

    def _known_places(self) -> list[str]:
        was = [f"was{number}" for number in range(1, len(self.gaps))] if self.has_few else []
        return [f"    nonlocal {', '.join(was)}"] if was else []

    def _numbers(self, *roles: Role) -> list[int]:
        return [number for number, (role, _) in enumerate(self.gaps) if role in roles]

    def _finding(self) -> list[str]:
        """Find each literal between two gaps: ``s2`` is then where gap 2 starts, ``e1`` where gap 1 ends."""
        lines = ["size = len(data)"] if len(self.gaps) > 1 or self.framed else []
        (text,) = self._numbers("text")
        start = "first"
        for number in range(1, len(self.gaps)):
            end, was = f"e{number - 1}", f"was{number}"
            if number > text:  # from the end
                lines.append(f"{end} = size - {was}")
                kept = f"{was} = size - {end}"
            else:
                lines.append(f"{end} = {was}")
                kept = f"{was} = {end}"
            lines += [
                f"s{number} = {end} + size{number}",
                f"if {end} < {start} or data[{end}:s{number}] != literal{number}:",
                f"    {end} = data.find(sign{number}, {start})",
                f"    if data[{end}:{end} + size{number}] != literal{number}:",
                f"        {end} = data.find(literal{number}, {start})",
                f"        if {end} < 0: return None",
                f"    s{number} = {end} + size{number}",
                f"    {kept}",
            ]
            start = f"s{number}"
        return lines

    def _parsing(self) -> list[str]:
        """Parse what stands in the few gaps one by one: ``h2`` is then the value of gap 2."""
        count = len(self.gaps)
        starts = ["first", *(f"s{number}" for number in range(1, count))]
        ends = [*(f"e{number}" for number in range(count - 1)), "stop"]
        lines = ["stop = size - len_end"] if count > 1 else []
        for number, (kind, start, end) in enumerate(zip(self._kinds, starts, ends, strict=True)):
            cut = f"data[{start} - 1:{end} + 1]" if kind is str else f"data[{start}:{end}]"
            if count == 1:
                cut = "data[hole]"
            if kind is int:
                lines += [f"cut = {cut}", f"if not cut.isdigit() or len(cut) > {DIGITS}: return None"]
                cut = "cut"
            lines.append(f"h{number} = loads({cut})")
        return lines

    def _replacing(self) -> list[str]:
        """Parse what stands in the gaps at once."""
        names = [f"h{number}" for number in range(len(self.gaps))]
        lines = ["size = len(data)", "cuts = data[hole]"]
        if self.framed:
            lines.append("if 10 in cuts or 13 in cuts: return None")
        lines += [
            *self._replaced(),
            *self._looking_for_flags(),
            "found = loads(b'[%b]' % cuts)",
            "if found[1::2] != marks: return None",
            f"{', '.join(names)} = found[::2]",
        ]
        for name, (role, kind) in zip(names, self.gaps, strict=True):
            if kind is float:
                lines.append(f"if type({name}) not in numbers: return None")
                if self.merges:
                    lines.append(f"if not {-MOST} < {name} < {MOST}: return None")
                continue
            lines.append(f"if type({name}) is not {kind.__name__}: return None")
            if kind is int:
                lines.append(f"if not 0 <= {name} < {MOST}: return None")
            elif kind is list and role == "stamp":
                lines.append(f"if not are_counts({name}): return None")
            elif kind is list:
                lines.append(f"if has_flags and bool in {{*map(type, {name})}}: return None")
                lines.append(f"{name} = bytes({name})")
        return lines

    def _looking_for_flags(self) -> list[str]:
        """Look for what Python takes for a byte, and JSON does not."""
        has_bytes = any(kind is list and role != "stamp" for role, kind in self.gaps)
        return ["has_flags = b'true' in cuts or b'false' in cuts"] if has_bytes else []

    def _replaced(self, times: str = "") -> list[str]:
        """Replace each literal between gaps in ``cuts``, where all of them stand so many *times*."""
        lines = []
        for number, often in enumerate(self.literals):  # to cut and join costs half of replacing
            lines += [
                f"parts = cuts.split(between{number})",
                f"if len(parts) != {often}{times} + 1: return None",
                f"cuts = mark{number}.join(parts)",
            ]
        return lines

    def _checking(self) -> list[str]:
        """Whether the event can be told: nothing has changed until here."""
        lines = ["if alike.events >= most: return None"]
        if self.has_left:
            lines.append(f"if h{self._numbers('text')[0]} in left: return None")
        if self.framed:
            lines += [
                "live = alike.live",
                "if live is None or size > live.room or size > longest: return None",
            ]
        lines += [f"if h{number} != alike.number + 1: return None" for number in self._numbers("number")]
        asked = []
        if self.has_usage:
            lines.append(SAME_NOTES)
            asked += [f"usage = usage_of({self._values('usage')})", "if usage is None: return None"]
        if self.has_logprobs:
            asked.append(f"logprobs = logprobs_of({self._values('logprobs')})")
        return lines + tried(asked)

    def _values(self, role: Role) -> str:
        """What stands in the gaps of this *role*; of a number that need not be whole, as such a one."""
        return ", ".join(
            f"float(h{number})" if self.gaps[number][1] is float else f"h{number}"
            for number in self._given(role)
        )

    def _given(self, role: Role) -> list[int]:
        """The numbers of the gaps of which something is made in this *role*."""
        with_text = role == "logprobs" and self.weighs_text
        return [*self._numbers(role), *(self._numbers("text") if with_text else ())]

    def _telling(self) -> list[str]:
        """Add the event to the answer, as the choice would that gets its delta."""
        (text,) = self._numbers("text")
        lines = ["alike.events += 1"]
        if self.framed:
            lines.append("live.room -= size")
        if self.keeps_raw:
            lines.append("keep(data[frame])" if self.framed else "keep(data)")
        lines += [f"alike.number = h{number}" for number in self._numbers("number")]
        if self.is_remembered:
            lines.append("alike.last.told = data[frame]")
        lines += self._stamping()
        if self.has_duration:
            lines.append("usage, state.request_duration = usage")
        if self.has_usage:
            lines.append("usage = report(usage)")
        if self.has_logprobs:
            lines.append("weigh(logprobs)")
        said = dict.fromkeys((field.name for field in attrs.fields(ResponseDelta)), "None") | {
            "index": "index",
            "choice": "choice",
            "extensions": "extensions" if self.merges or self._numbers("stamp") else "EMPTY_OBJECT",
            **({"usage": "usage"} if self.has_usage else {}),
            **({"logprobs": "logprobs"} if self.has_logprobs else {}),
            self.says: "fragment" if self.says == "tool_call_delta" else f"h{text}",
        }
        if self.says == "tool_call_delta":
            fragment = {"index": "call", "id": "None", "name": "None", "arguments_delta": f"h{text}"}
            lines += _made("fragment", "ToolCallDelta", fragment)
        return [
            *lines,
            f"add(h{text})",
            "index = state.delta_count",
            "state.delta_count = index + 1",
            *_made("delta", "ResponseDelta", said),
        ]

    def _stamping(self) -> list[str]:
        """What of the event is new to the extensions, which hold it then."""
        if self.merges:
            names = ", ".join(f"h{number}" for number in range(len(self.gaps)))
            return [f"news = merge({names})", "extensions = adopted(news) if news else EMPTY_OBJECT"]
        return [
            line
            for number in self._numbers("stamp")  # one at most: a time
            for line in (
                f"if kept.get(key{number}) == h{number}: extensions = EMPTY_OBJECT",
                "else:",
                *indented(
                    f"kept[key{number}] = h{number}",
                    "extensions = new(FrozenObject)",
                    f"extensions._data = {{key{number}: h{number}}}",
                ),
            )
        ]


def _made(name: str, kind: str, fields: dict[str, str]) -> list[str]:
    """Make an object of a frozen class, and go around its constructor: what that checks is known."""
    sets = [f"{name}.{field} = {value}" for field, value in fields.items()]
    return [f"{name} = Mutable{kind}()", *sets, f"{name}.__class__ = {kind}"]


SAME_NOTES: Final = (
    "if provenance.get('usage.prompt_tokens') is not prompt_is "
    "or provenance.get('usage.completion_tokens') is not completion_is: return None"
)
"""What was noted of a count since, the hooks take back."""


def indented(*lines: str) -> list[str]:
    return [f"    {line}" for line in lines]


def tried(lines: Sequence[str]) -> list[str]:
    """*lines*, of which one may find out that this is another kind of event."""
    if not lines:
        return []
    return ["try:", *(f"    {line}" for line in lines), "except (ValueError, TypeError):", "    return None"]


_KNOWN: Final[dict[str, Any]] = {
    "loads": orjson.loads,
    "MutableResponseDelta": mutable_twin(ResponseDelta),
    "ResponseDelta": ResponseDelta,
    "MutableToolCallDelta": mutable_twin(ToolCallDelta),
    "ToolCallDelta": ToolCallDelta,
    "EMPTY_OBJECT": EMPTY_OBJECT,
    "adopted": adopted,
    "are_counts": are_counts,
    "FrozenObject": FrozenObject,
    "new": object.__new__,
    "numbers": frozenset({int, float}),
    "chain": itertools.chain.from_iterable,
}


@functools.lru_cache(maxsize=_MOST_KINDS)
def _factory(code: EventCode, names: tuple[str, ...]) -> Callable[..., Any]:
    """Makes the function of *code*, which knows values by *names*."""
    lines = [*code.lines(), "return read"]
    known = dict(_KNOWN)
    exec("\n".join([f"def made({', '.join(names)}):", *indented(*lines)]), known)
    factory: Callable[..., Any] = known["made"]
    return factory


def _are_few(gaps: Sequence[tuple[Any, type]]) -> bool:
    return len(gaps) <= _FEW and not any(kind is float or kind is list for _, kind in gaps)


def bare(gaps: Iterable[tuple[Any, type]], literals: Sequence[bytes]) -> list[bytes]:
    """*literals* without the quotes and brackets that belong to the values in the *gaps*."""
    quotes = [0, *[kind in (str, list) for _, kind in gaps], 0]
    return [
        literal[before : len(literal) - behind]
        for before, literal, behind in zip(quotes[:-1], literals, quotes[1:], strict=True)
    ]


def between_gaps(gaps: Sequence[tuple[Any, type]], literals: Sequence[bytes]) -> dict[bytes, int]:
    """The different bare literals between *gaps*, and how often each stands there; one may stand in another before it."""
    if len(gaps) == 1:
        return {}
    return dict(
        sorted(Counter(bare(gaps, literals)[1:-1]).items(), key=lambda one: len(one[0]), reverse=True)
    )


def replacements(code: EventCode, literals: Sequence[bytes]) -> dict[str, Any]:
    """What code knows by name that replaces *literals*."""
    first, *between, last = bare(code.gaps, literals)
    known: dict[str, Any] = {"hole": slice(len(first), -len(last) or None)}
    distinct = [*between_gaps(code.gaps, literals)]
    for number, literal in enumerate(distinct):
        known[f"between{number}"] = literal
        known[f"mark{number}"] = b",\n%d,\n" % ~number
    known["marks"] = [~distinct.index(literal) for literal in between]
    return known


def function_of(code: EventCode, known: dict[str, Any]) -> Any:
    """The function of *code*, see :meth:`EventCode.lines`, which knows values by name."""
    return _factory(code, tuple(known))(**known)


def reader_of(code: EventCode, literals: Sequence[bytes], ends: Sequence[int], known: dict[str, Any]) -> Any:
    """Reads events of one kind: the delta of one, which is then part of the answer; ``None`` for any other event.

    Args:
        code: what it says.
        literals: the bytes before, between and behind its gaps.
        ends: where each gap but the last ends in the event before: behind the text as counted from its end.
        known: what else the code knows by name.
    """
    begin, *between, end = literals
    known["begin"], known["end"] = begin, end
    known["head"], known["tail"] = slice(len(begin)), slice(-len(end), None)
    if not code.has_few:
        known |= replacements(code, literals)
    elif not between:
        known["hole"] = slice(len(begin) - 1, 1 - len(end) or None)
    else:
        known["first"], known["len_end"] = len(begin), len(end)
        for number, (literal, place) in enumerate(zip(between, ends, strict=True), start=1):
            known |= {
                f"literal{number}": literal,
                f"size{number}": len(literal),
                f"sign{number}": literal[:1],
                f"was{number}": place,
            }
    return function_of(code, known)
