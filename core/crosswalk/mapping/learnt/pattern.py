"""What the events of several answers have in common, so that a template need not be learnt anew in each.

A :class:`Pattern` is a template with gaps for what an answer says of itself at the top of each event: its id, its time, its
model. An event of another answer that is all its literals, with whole values of the right types between them, is the same
JSON with these values in the same places, see :mod:`.event_code`; so its text is where that of the pattern
was. What the hooks have made of it is looked at all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.mapping.learnt.marks import Gap, cuts, value_at
from crosswalk.plugin.info import Path
from crosswalk.plugin.mapper import Mapper
from crosswalk.shapes import Budget
from crosswalk.types.merge import same_json

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.event_code import Role

__all__ = ["Kind", "Pattern", "Patterns", "patterns_of"]

_MOST_OF_A_KIND: Final = 4
_MOST_KINDS: Final = 256
_MOST_BUDGETS: Final = 32
_FIRST: Final = 300
_MOST_WASTED: Final = 16
"""So many of a kind may be learnt in a row, and none of them fit another answer, before no more are."""


@attrs.frozen(eq=False)
class Pattern:
    """What is the same in events of several answers.

    Attributes:
        codes: what the functions of such templates are made of.
        gaps: what stands in each gap, its type and where it stands; ``None`` is said of the answer itself.
        literals: the bytes before, between and behind these.
        fixed: the strings and keys that stand in them.
    """

    codes: dict[Any, Any]
    gaps: Sequence[tuple[Role | None, type, Path]]
    literals: Sequence[bytes]
    fixed: frozenset[str]

    def fit(self, frame: bytes, text: str, rest: Any) -> Sequence[tuple[Role, Gap]] | None:
        """The gaps of *frame*, but for what is said of the answer itself; ``None`` where that is another kind of event.

        Args:
            frame: an event that was mapped.
            text: what it says.
            rest: what the hooks have left of it.
        """
        places = cuts(frame, self.literals)
        if places is None or text in self.fixed:
            return None  # it may be there because of this one, and mean something else beside the next
        gaps = []
        for (role, kind, path), (start, end) in zip(self.gaps, places, strict=True):
            quote = int(kind in (str, list))
            value = _value(frame[start - quote : end + quote], kind)
            if value is None:
                return None
            if (value == text) != (role == "text"):
                return None  # what stands there twice may be what was said, or not
            if role in ("text", "number") and value_at(rest, path) is not None:
                return None
            if role == "stamp" and not same_json(value_at(rest, path), value):
                return None
            if role is not None:
                gaps.append((role, Gap(start, end, kind, path)))
        return gaps


def _value(data: bytes, kind: type) -> Any:
    """The value of *kind* that *data* is the JSON of; ``None`` where it is that of no such value."""
    try:
        value = orjson.loads(data)
    except ValueError:
        return None
    return value if type(value) is kind else None


Kind: TypeAlias = Hashable


class Patterns:
    """The patterns of a provider's answers, and how much may be learnt of each kind of their events.

    Args:
        first: what may be spent on a kind at first, in what it takes to map one event.
    """

    def __init__(self, first: int = _FIRST) -> None:
        self._first = first
        self._known: dict[Kind, tuple[Pattern, ...]] = {}
        self._wasted: Counter[Kind] = Counter()
        self._budgets: dict[Kind, Budget] = {}

    def budget(self, kind: Kind) -> Budget:
        """How much may be learnt of events of this *kind*; those of very many kinds share one."""
        if kind not in self._budgets:
            kind = kind if len(self._budgets) < _MOST_BUDGETS else None
            return self._budgets.setdefault(kind, Budget(self._first))
        return self._budgets[kind]

    def fit(
        self, kind: Kind, frame: bytes, text: str, rest: Any
    ) -> Iterator[tuple[dict[Any, Any], Sequence[tuple[Role, Gap]]]]:
        """The codes of answers whose events *frame*, of this *kind*, is like, each with its gaps: :meth:`Pattern.fit`."""
        for pattern in self._known.get(kind, ()):
            gaps = pattern.fit(frame, text, rest)
            if gaps is not None:
                self._wasted[kind] = 0
                yield pattern.codes, gaps

    def is_open(self, kind: Kind) -> bool:
        """Whether another one of this *kind* may be of use."""
        return self._wasted[kind] < _MOST_WASTED and (kind in self._known or len(self._known) < _MOST_KINDS)

    def add(self, kind: Kind, pattern: Pattern) -> None:
        """Keep *pattern*, of this *kind*; the oldest is forgotten where there are too many."""
        self._wasted[kind] += 1
        self._known[kind] = (pattern, *self._known.get(kind, ())[: _MOST_OF_A_KIND - 1])


def patterns_of(mapper: Mapper) -> Patterns:
    """What is known of the events of this provider's answers."""
    found: Patterns | None = mapper.memory.get(Patterns)
    return mapper.memory.setdefault(Patterns, Patterns()) if found is None else found
