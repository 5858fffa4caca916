"""The code that reads many events of one kind at once: by replacing their literals, see :mod:`.event_code`.

What stands between the last gap of an event and the first one of the next is a literal like any other, and has a mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from crosswalk.mapping.learnt.event_code import (
    MOST,
    SAME_NOTES,
    EventCode,
    Role,
    bare,
    between_gaps,
    function_of,
    indented,
    replacements,
    tried,
)

__all__ = ["RunCode", "run_of"]


@attrs.frozen(cache_hash=True)
class RunCode(EventCode):
    """What the code depends on.

    Events of several choices, or of several calls of one, may come in any order: which it is stands in a gap then.
    """

    @classmethod
    def count(cls, gaps: Sequence[tuple[Any, type]], literals: Sequence[bytes]) -> tuple[int, ...]:
        """See :meth:`EventCode.count`: here all are replaced."""
        return tuple(between_gaps(gaps, literals).values())

    def lines(self) -> list[str]:
        """The function ``read``: the deltas of many events, each of which is told when it is handed out; or ``None``.

        Where nobody asks for them (``shows`` is false), all events are told at once and there are no deltas.
        """
        columns = [f"h{number}" for number in range(len(self.gaps))]
        columns += ["usage"] * self.has_usage + ["logprobs"] * self.has_logprobs
        known = ", ".join(["frames", *columns])
        return [
            "def read(frames, shows):",
            *indented(
                "count = len(frames)",
                *tried([*self._replacing(), *self._checking()]),
                f"return (told if shows else take)({known})",
            ),
            f"def take({known}):",
            *indented(*self._taking(), "return ()"),
            f"def told({known}):",
            *indented(
                f"for {', '.join(['data', *columns])} in zip({known}):",
                *indented(*self._telling(), "yield delta"),
            ),
        ]

    def _replacing(self) -> list[str]:
        count, names = len(self.gaps), [f"h{number}" for number in range(len(self.gaps))]
        lines = [
            "holes = [data[hole] for data in frames]",
            # Each begins and ends as it should if they are what they would be then, which is found out at once.
            "if b'\\n'.join(frames) != around % between_events.join(holes): return None",
        ]
        if count == 1:
            lines += ["h0 = loads(b'[%b]' % b',\\n'.join(holes))", "if len(h0) != count: return None"]
        else:
            lines += [
                "cuts = between_rows.join(holes)",
                *self._replaced(" * count"),
                *self._looking_for_flags(),
                "found = loads(b'[%b]' % cuts)",
                "if found[1::2] != (marks * count)[:-1]: return None",
                *(f"{name} = found[{2 * number}::{2 * count}]" for number, name in enumerate(names)),
            ]
        for name, (role, kind) in zip(names, self.gaps, strict=True):
            if kind is float:
                lines.append(f"if not {{*map(type, {name})}} <= numbers: return None")
                if self.merges:
                    lines.append(f"if min({name}) <= {-MOST} or max({name}) >= {MOST}: return None")
            else:
                lines.append(f"if {{*map(type, {name})}} != {{{kind.__name__}}}: return None")
            if kind is int:
                lines.append(f"if min({name}) < 0 or max({name}) >= {MOST}: return None")
            elif kind is list and role == "stamp":
                lines.append(f"if not all(map(are_counts, {name})): return None")
            elif kind is list:
                lines.append(f"if has_flags and bool in {{*map(type, chain({name}))}}: return None")
                lines.append(f"{name} = [*map(bytes, {name})]")
        return [*lines, f"if not all(h{self._numbers('text')[0]}): return None"]

    def _checking(self) -> list[str]:
        lines = ["if alike.events + count > most: return None"]
        if self.has_left:
            lines.append(f"if any(map(h{self._numbers('text')[0]}.__contains__, left)): return None")
        for number in self._numbers("number"):
            lines.append(f"if h{number} != [*range(alike.number + 1, alike.number + 1 + count)]: return None")
        lines += [f"if not turns.keys() >= {{*h{number}}}: return None" for number in self._turns]
        if self.has_usage:
            lines += [SAME_NOTES, f"usage = {self._mapped('usage')}", "if None in usage: return None"]
        if self.has_logprobs:
            lines.append(f"logprobs = {self._mapped('logprobs')}")
        return lines

    def _mapped(self, role: Role) -> str:
        values = ", ".join(
            f"map(float, h{number})" if self.gaps[number][1] is float else f"h{number}"
            for number in self._given(role)
        )
        return f"[*map({role}_of, {values})]" if values else f"[{role}_of()] * count"

    @property
    def _turns(self) -> list[int]:
        """The gap in which the number of the choice, or of the call, stands."""
        return self._numbers("choice", "call")

    def _telling(self) -> list[str]:
        whose = []
        for number in self._turns:
            role, _ = self.gaps[number]
            whose += [f"{role} = h{number}", f"whose, add = turns[{role}]"]
            if role == "call":
                whose.append("alike.last = whose")
        return [*whose, *super()._telling()]

    def _taking(self) -> list[str]:
        """Add all events to the answer: what telling one after the other would have made of it."""
        (text,) = self._numbers("text")
        lines = ["count = len(frames)", "alike.events += count", "state.delta_count += count"]
        lines += [f"alike.last, _ = turns[h{number}[-1]]" for number in self._numbers("call")]
        if self.keeps_raw:
            lines.append("keep_all(frames)")
        lines += [f"alike.number = h{number}[-1]" for number in self._numbers("number")]
        if self.merges:
            names = ", ".join(f"h{number}" for number in range(len(self.gaps)))
            lines.append(f"for _ in map(merge, {names}): pass")
        else:
            lines += [f"kept[key{number}] = h{number}[-1]" for number in self._numbers("stamp")]
        if self.is_remembered:
            lines.append("alike.last.told = frames[-1]")
        if self.has_duration:
            lines.append("usage, durations = zip(*usage)")
            lines.append("state.request_duration = durations[-1]")
        if self.has_usage:
            lines.append("for one in usage: report(one)")
        if self.has_logprobs:
            lines.append("for one in logprobs: weigh(one)")
        if not self._turns:
            return [*lines, f"add_all(h{text})"]
        (turns,) = self._turns
        return [*lines, f"for turn, text in zip(h{turns}, h{text}): turns[turn][1](text)"]


def run_of(code: RunCode, literals: Sequence[bytes], known: dict[str, Any]) -> Any:
    """Reads many events of one kind, in their order and with nothing between them, see :meth:`RunCode.lines`.

    Args:
        code: what it says.
        literals: the bytes before, between and behind its gaps.
        known: what else the code knows by name.
    """
    first, *_, last = bare(code.gaps, literals)
    around = first.replace(b"%", b"%%") + b"%b" + last.replace(b"%", b"%%")
    known |= replacements(code, literals)
    between_events = ~len(code.literals)
    known["marks"].append(between_events)
    known["between_rows"] = b",\n%d,\n" % between_events
    known["between_events"], known["around"] = last + b"\n" + first, around
    return function_of(code, known)
