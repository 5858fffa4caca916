"""The code that reads one kind of event: written once for all that have the same kinds of gaps in the same order.

An event is its literals with values between them. A literal is looked for where it stood in the event before, counted
from the front or, behind the text, from the end; then at the first place that it can stand at; then anywhere. Wherever it is
found, an event that is all literals and whole values of the right types is the JSON that was learnt, with these values.

Proof that what stands in the gaps are whole values of their types:

- A string stands between quotes that belong to the literals. Parsed by itself, with them, it is one string or an error.
- A number of digits alone is that number.
- Where there are many gaps, all are parsed as one array, with a comma and a line feed between them. No JSON string holds a
  line feed, so each of these commas is one between items, of this array or of one in it. A list of bytes is digits between
  brackets. Should one gap open a bracket that another one closes, there would be one list or object more than there are
  lists of bytes; or one of them would stand in it, and then it is no list of bytes. Where there come out as many items as
  there are gaps, of their types, each gap is one.
- Outside of strings no gap holds a line end, which might tell events apart: digits, and what was counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import attrs
import orjson

from crosswalk.types._value import mutable_twin
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.tools import arguments_delta

__all__ = ["EventCode", "Role", "reader_of"]

Role: TypeAlias = Literal["text", "stamp", "number", "usage", "logprobs"]

_FEW: Final = 3
"""So many values are parsed one by one: an array would cost more."""
_DIGITS: Final = 15


@attrs.frozen
class EventCode:
    """What the code depends on.

    Attributes:
        gaps: what stands in each gap, and its type.
        says: the field of the delta that the text is for.
        framed: whether an event comes with what its framing puts around it, in one read.
        keeps_raw: whether its bytes are kept.
        is_counted: whether it says counts, or log probabilities, whether or not anything of these changes.
        is_remembered: whether the hooks are to be told of the last such event.
    """

    gaps: tuple[tuple[Role, type], ...]
    says: Literal["content_delta", "reasoning_delta", "tool_call_delta"]
    framed: bool
    keeps_raw: bool
    is_counted: tuple[bool, bool]
    is_remembered: bool

    def lines(self) -> list[str]:
        """The function ``read``: the delta of one event, which is then told; ``None`` for another kind of event."""
        return [
            "def read(data):",
            *self._known_places(),
            *_indented(
                "if data[tail] != end or data[head] != begin: return None",
                *self._finding(),
                *self._parsing(),
                *self._checking(),
                *self._telling(),
                "return delta",
            ),
        ]

    def run_lines(self) -> list[str]:
        """The function ``run``: the deltas of many events, each of which is told when it is handed out; or ``None``.

        Where nobody asks for them (``shows`` is false), all events are told at once and there are no deltas.
        """
        columns = [f"h{number}" for number in range(len(self.gaps))]
        has_usage, has_logprobs = self.is_counted
        beside = ["usage"] * has_usage + ["logprobs"] * has_logprobs
        each = ", ".join(["data", *columns, *beside])
        return [
            "def run(frames, shows):",
            *self._known_places(),
            *_indented(
                *(f"{name} = []" for name in columns),
                "for data in frames:",
                *_indented(
                    "if data[tail] != end or data[head] != begin: return None",
                    *self._finding(),
                    *self._cutting("{0}.append({1})"),
                ),
                *_tried(self._parsing_columns()),
                *self._checking_columns(),
                f"return (told if shows else take)(frames, {', '.join([*columns, *beside])})",
            ),
            f"def take(frames, {', '.join([*columns, *beside])}):",
            *_indented(*self._taking(), "return ()"),
            f"def told(frames, {', '.join([*columns, *beside])}):",
            *_indented(
                f"for {each} in zip(frames, {', '.join([*columns, *beside])}):",
                *_indented(*self._telling(again=True), "yield delta"),
            ),
        ]

    def _known_places(self) -> list[str]:
        was = [f"was{number}" for number in range(1, len(self.gaps))]
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
            if self.gaps[number - 1][0] == "logprobs":  # tokens are of all lengths
                lines += [
                    f"{end} = data.find(literal{number}, {start})",
                    f"if {end} < 0: return None",
                    f"s{number} = {end} + size{number}",
                ]
                start = f"s{number}"
                continue
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

    def _cutting(self, line: str) -> list[str]:
        """A *line* for each gap, of its name and what stands in it, with its quotes or brackets."""
        count = len(self.gaps)
        starts = ["first", *(f"s{number}" for number in range(1, count))]
        ends = [*(f"e{number}" for number in range(count - 1)), "stop"]
        lines = ["stop = size - len_end"] if count > 1 else []
        for number, (_, kind) in enumerate(self.gaps):
            start, end, name = starts[number], ends[number], f"h{number}"
            cut = f"data[{start} - 1:{end} + 1]" if kind in (str, list) else f"data[{start}:{end}]"
            if count == 1:
                cut = "data[hole]"
            if kind in (int, list):
                lines.append(f"cut = {cut}")
                cut = "cut"
            if kind is int:
                lines.append(f"if not cut.isdigit() or len(cut) > {_DIGITS}: return None")
            elif kind is list:
                lines.append("if cut.translate(None, in_lists) != b'[]': return None")
            lines.append(line.format(name, cut))
        return lines

    def _parsing(self) -> list[str]:
        """Parse what stands in the gaps: ``h2`` is then the value of gap 2."""
        kinds = [kind for _, kind in self.gaps]
        names = [f"h{number}" for number in range(len(kinds))]
        if len(kinds) <= _FEW and not {float, list} & {*kinds}:
            lines = self._cutting("{0} = loads({1})")
        else:
            lines = self._cutting("{0} = {1}")
            lines.append(f"cuts = b',\\n'.join(({', '.join(names)}))")
            if float in kinds:
                lines.append(f"if 13 in cuts or cuts.count(b'\\n') > {len(kinds) - 1}: return None")
            lines.append(f"{', '.join(names)} = loads(b'[%b]' % cuts)")
            checks = [
                f"type({name}) not in numbers" if kind is float else f"type({name}) is not {kind.__name__}"
                for name, kind in zip(names, kinds, strict=True)
            ]
            lines.append(f"if {' or '.join(checks)}: return None")
            lines += [
                f"{name} = float({name})" for name, kind in zip(names, kinds, strict=True) if kind is float
            ]
            lines += [
                f"{name} = bytes({name})" for name, kind in zip(names, kinds, strict=True) if kind is list
            ]
        return [*_tried(lines), f"if not h{self._numbers('text')[0]}: return None"]

    def _parsing_columns(self) -> list[str]:
        """Parse what stands in the gaps of all events, gap by gap, as one array."""
        kinds = [kind for _, kind in self.gaps]
        names = [f"h{number}" for number in range(len(kinds))]
        lines = ["count = len(frames)", f"cuts = b',\\n'.join({' + '.join(names)})"]
        if float in kinds:
            lines.append(f"if 13 in cuts or cuts.count(b'\\n') > {len(kinds)} * count - 1: return None")
        lines += ["found = loads(b'[%b]' % cuts)", f"if len(found) != {len(kinds)} * count: return None"]
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            if len(kinds) > 1:
                lines.append(f"{name} = found[{number} * count:{number + 1} * count]")
            else:
                lines.append(f"{name} = found")
            if kind is float:
                lines.append(f"if not {{*map(type, {name})}} <= numbers: return None")
            else:
                lines.append(f"if {{*map(type, {name})}} != {{{kind.__name__}}}: return None")
            if kind in (float, list):
                lines.append(f"{name} = [*map({'float' if kind is float else 'bytes'}, {name})]")
        return [*lines, f"if not all(h{self._numbers('text')[0]}): return None"]

    def _checking_columns(self) -> list[str]:
        """Whether all events can be told."""
        lines = ["if alike.events + count > most: return None"]
        for number in self._numbers("number"):
            lines.append(f"if h{number} != [*range(alike.number + 1, alike.number + 1 + count)]: return None")
        has_usage, has_logprobs = self.is_counted
        asked = []
        if has_usage:
            lines.append(_NOT_ABSENT)
            asked += [f"usage = {self._mapped('usage')}", "if None in usage: return None"]
        if has_logprobs:
            asked.append(f"logprobs = {self._mapped('logprobs')}")
        return lines + _tried(asked)

    def _mapped(self, role: Role) -> str:
        values = self._values(role)
        return f"[*map({role}_of, {values})]" if values else f"[{role}_of()] * count"

    def _checking(self) -> list[str]:
        """Whether the event can be told: nothing has changed until here."""
        lines = ["if alike.events >= most: return None"]
        if self.framed:
            lines += [
                "live = alike.live",
                "if live is None or size > live.room or size > longest: return None",
            ]
        lines += [f"if h{number} != alike.number + 1: return None" for number in self._numbers("number")]
        has_usage, has_logprobs = self.is_counted
        asked = []
        if has_usage:
            lines.append(
                "if 'usage.prompt_tokens' in provenance or 'usage.completion_tokens' in provenance: return None"
            )
            asked += [f"usage = usage_of({self._values('usage')})", "if usage is None: return None"]
        if has_logprobs:
            asked.append(f"logprobs = logprobs_of({self._values('logprobs')})")
        return lines + _tried(asked)

    def _values(self, role: Role) -> str:
        return ", ".join(f"h{number}" for number in self._numbers(role))

    def _telling(self, *, again: bool = False) -> list[str]:
        """Add the event to the answer, as the choice would that gets its delta; *again*, right after one like it."""
        (text,) = self._numbers("text")
        has_usage, has_logprobs = self.is_counted
        lines = ["alike.events += 1"]
        if self.framed:
            lines.append("live.room -= size")
        if self.keeps_raw:
            lines.append("keep(data[frame])" if self.framed else "keep(data)")
        lines += [f"alike.number = h{number}" for number in self._numbers("number")]
        if not again:
            lines += ["last = alike.last", "if last is not template: last.follower = alike.last = template"]
        if self.is_remembered:
            lines.append("template.told = data[frame]")
        lines += self._stamping()
        if has_usage:
            lines.append("usage = report(usage)")
        if has_logprobs:
            lines.append("weigh(logprobs)")
        said = {
            "index": "index",
            "content_delta": "None",
            "reasoning_delta": "None",
            "tool_call_delta": "None",
            "finish_reason": "None",
            "usage": "usage" if has_usage else "None",
            "refusal_delta": "None",
            "segment": "None",
            "raw_finish_reason": "None",
            "logprobs": "logprobs" if has_logprobs else "None",
            "choice": "choice",
            "extensions": "extensions" if self._numbers("stamp") else "EMPTY_OBJECT",
            self.says: f"arguments_delta(call, h{text})" if self.says == "tool_call_delta" else f"h{text}",
        }
        return [
            *lines,
            f"add(h{text})",
            "index = state.delta_count",
            "state.delta_count = index + 1",
            "delta = Mutable()",
            *(f"delta.{field} = {value}" for field, value in said.items()),
            "delta.__class__ = ResponseDelta",
        ]

    def _taking(self) -> list[str]:
        """Add all events to the answer: what telling one after the other would have made of it."""
        (text,) = self._numbers("text")
        lines = ["count = len(frames)", "alike.events += count", "state.delta_count += count"]
        if self.keeps_raw:
            lines.append("keep_all(frames)")
        lines += [f"alike.number = h{number}[-1]" for number in self._numbers("number")]
        lines += [f"kept[key{number}] = h{number}[-1]" for number in self._numbers("stamp")]
        if self.is_remembered:
            lines.append("template.told = frames[-1]")
        has_usage, has_logprobs = self.is_counted
        if has_usage:
            lines.append("for one in usage: report(one)")
        if has_logprobs:
            lines.append("for one in logprobs: weigh(one)")
        return [*lines, f"add_all(h{text})"]

    def _stamping(self) -> list[str]:
        """What of the stamps is new to the extensions, which hold it then."""
        stamps = self._numbers("stamp")
        if not stamps:
            return []
        if [self.gaps[number][1] for number in stamps] == [str]:  # as most have it: a time
            (number,) = stamps
            return [
                f"if kept.get(key{number}) == h{number}: extensions = EMPTY_OBJECT",
                "else:",
                *_indented(
                    f"kept[key{number}] = h{number}",
                    "extensions = new(FrozenObject)",
                    f"extensions._data = {{key{number}: h{number}}}",
                ),
            ]
        lines = ["news = {}"]
        for number in stamps:
            is_news = f"kept.get(key{number}) != h{number}"
            if self.gaps[number][1] is int:  # true is 1, too
                is_news += f" or type(kept[key{number}]) is not int"
            lines.append(f"if {is_news}: kept[key{number}] = news[key{number}] = h{number}")
        return [
            *lines,
            "if news:",
            "    extensions = new(FrozenObject)",
            "    extensions._data = news",
            "else:",
            "    extensions = EMPTY_OBJECT",
        ]


_NOT_ABSENT: Final = (
    "if 'usage.prompt_tokens' in provenance or 'usage.completion_tokens' in provenance: return None"
)
"""What was noted as absent, the hooks take back."""


def _indented(*lines: str) -> list[str]:
    return [f"    {line}" for line in lines]


def _tried(lines: Sequence[str]) -> list[str]:
    """*lines*, of which one may find out that this is another kind of event."""
    if not lines:
        return []
    return ["try:", *(f"    {line}" for line in lines), "except (ValueError, TypeError):", "    return None"]


_KNOWN: Final[dict[str, Any]] = {
    "loads": orjson.loads,
    "Mutable": mutable_twin(ResponseDelta),
    "ResponseDelta": ResponseDelta,
    "EMPTY_OBJECT": EMPTY_OBJECT,
    "FrozenObject": FrozenObject,
    "new": object.__new__,
    "arguments_delta": arguments_delta,
    "in_lists": b"0123456789, ",
    "numbers": frozenset({int, float}),
}


@functools.cache
def _factory(code: EventCode, names: tuple[str, ...], *, many: bool) -> Callable[..., Any]:
    """Makes a function ``read``, or ``run``, that knows values by *names*."""
    lines = [*(code.run_lines() if many else code.lines()), f"return {'run' if many else 'read'}"]
    known = dict(_KNOWN)
    exec("\n".join([f"def made({', '.join(names)}):", *_indented(*lines)]), known)
    factory: Callable[..., Any] = known["made"]
    return factory


def reader_of(
    code: EventCode, literals: Sequence[bytes], ends: Sequence[int], *, many: bool = False, **known: Any
) -> Any:
    """Reads events of one kind: the delta of one, which is then part of the answer; ``None`` for any other event.

    Args:
        code: what it says.
        literals: the bytes before, between and behind its gaps.
        ends: where each gap but the last ends in the event before: behind the text as counted from its end.
        many: whether it is to read many frames; it gives their deltas then, each of which is told when it is handed out.
        known: what else the code knows by name.
    """
    begin, *between, end = literals
    first, last = len(begin), len(end)
    known |= {
        "begin": begin,
        "end": end,
        "first": first,
        "len_end": last,
        "head": slice(first),
        "tail": slice(-last, None),
        "hole": slice(first - 1, 1 - last or None),
    }
    for number, (literal, place) in enumerate(zip(between, ends, strict=True), start=1):
        known |= {
            f"literal{number}": literal,
            f"size{number}": len(literal),
            f"sign{number}": literal[:1],
            f"was{number}": place,
        }
    return _factory(code, tuple(known), many=many)(**known)
