"""Most events of a stream differ from one before in a few leaves: read those, not the whole event.

A :class:`Template` is learnt from an event that was parsed and mapped: the bytes around its *gaps*. In a gap stands the
text that the delta carries, a *stamp*, which is what only the extensions keep, the number of the event, a count, a token or
how likely it was. A later frame with the same bytes around other values is the same JSON with those values in their places,
so that the mapper would make the same delta with them: that is the promise of ``ProviderInfo.text_leaves`` and its like.
What it would make of counts and of log probabilities is found out once, see :mod:`.parts`. Anything else is parsed anew, and
so is everything where a plugin promises nothing or a hook is wrapped. How frames are compared, and what proves that it is
enough, says :mod:`.event_code`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import attrs

from crosswalk.plugin.info import Path
from crosswalk.shapes import Budget
from crosswalk.types.delta import ResponseDelta

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.event_code import EventCode, Role
    from crosswalk.mapping.learnt.marks import Gap
    from crosswalk.mapping.learnt.merge_code import Merge, Merger
    from crosswalk.mapping.learnt.parts import Part

__all__ = ["Template", "Turn", "turn_of"]

Code = TypeVar("Code", bound="EventCode")


def _nothing(_: bytes) -> None:
    return None


@attrs.define(eq=False, repr=False)
class Template:
    """One kind of event: what its delta is, and how to read its gaps.

    Attributes:
        choice: whose text it is.
        says: the field of the delta that the text is for.
        call: whose arguments it is; ``None`` for other text.
        name: the SSE name that such a frame must have; ``None`` for none.
        gaps: what stands in each of its gaps, and where it stood in the frame that this was learnt from.
        literals: the bytes before, between and behind these.
        outer: its literals where all of its counts, and all of its log probabilities, count as one gap.
        beside: what it has besides its text: the paths of what is kept of it, of its number and of its counts.
        counts: what is made of its counts; ``None`` where it has none.
        said: what was made of those of the event that it was learnt from.
        tokens: what is made of its log probabilities; ``None`` where it has none.
        left: the strings that the hooks have left of it: one that is also its text they might have taken for that.
        kept: what of it may be news to the extensions, as a tree, see :mod:`.kept`.
        merger: makes, of the extensions, what adds that to them; ``None`` where there is none, or but one time.
        merge: what it has made of those of the answer.
        grows: the objects and lists in them that this adds to.
        frame: the event that it was learnt from.
        told: the last frame that it has told since the hooks have heard of it; ``None`` for none.
        read: the delta of a frame, which is then part of the answer; ``None`` where it is another kind of event.
        read_chunk: the same for what came in one read: a frame with all that its framing puts around it.
        is_framed: whether that is known yet.
        run: the deltas of many frames, each part of the answer once it is handed out, or none where they are not to be
            shown and all are part of it at once; ``None`` where they are not all such. Not made before it is needed.
        follower: which template the next event is likely to be one of.
        texts: where the answer keeps the text that such events go on with.
        heard: how many of these the plugin's hooks know of.
        codes: what its functions are made of, in all answers.
        budget: what may be learnt of its kind; it earns what the template saves.
    """

    choice: int
    says: Any
    call: int | None
    name: str | None
    gaps: Sequence[tuple[Role, Gap]]
    literals: Sequence[bytes]
    outer: Sequence[bytes] = ()
    beside: frozenset[tuple[Path, bool]] = frozenset()
    counts: Part | None = None
    said: Any = None
    tokens: Part | None = None
    left: tuple[str, ...] = ()
    kept: dict[str, Any] = attrs.Factory(dict)
    merger: Merger | None = None
    merge: Merge | None = None
    grows: tuple[Any, ...] = ()
    frame: bytes = b""
    told: bytes | None = None
    read: Callable[[bytes], ResponseDelta | None] = _nothing
    read_chunk: Callable[[bytes], ResponseDelta | None] = _nothing
    is_framed: bool = False
    run: Callable[[Sequence[bytes], bool], Iterable[ResponseDelta] | None] | None = None
    follower: Template = attrs.field(default=attrs.Factory(lambda self: self, takes_self=True))
    texts: list[str] = attrs.Factory(list)
    heard: int = 0
    codes: dict[Any, Any] = attrs.Factory(dict)
    budget: Budget | None = None

    @property
    def is_remembered(self) -> bool:
        """Whether the hooks remember something of its counts."""
        return self.counts is not None and self.counts.is_remembered

    def unheard(self) -> list[str]:
        """The texts that the plugin's hooks do not know of; from now on they do."""
        texts = self.texts[self.heard :]
        self.heard += len(texts)
        if texts and self.budget is not None:
            self.budget.earn(0, len(texts))
        return texts

    def release(self, follower: Template) -> None:
        """Let go of the answer: its code and it know each other, and what goes in a circle nobody frees at once.

        Args:
            follower: another one, which does not know it.
        """
        self.unheard()
        self.read = self.read_chunk = _nothing
        self.run, self.merge, self.grows, self.follower, self.texts = None, None, (), follower, []

    def alike(self) -> tuple[object, ...] | None:
        """What it says but for its literals, choice and call; ``None`` where it says more of the choice than a text."""
        if self.tokens is not None or self.merger is not None:
            return None
        gaps = [(role, gap.kind, gap.path) for role, gap in self.gaps]
        return self.says, self.name, gaps, self.counts

    def takes_turns_with(self, other: Template) -> bool:
        """Whether it says pieces of one call, and *other* of another one of the same choice."""
        calls = {self.call, other.call}
        return (
            None not in calls and len(calls) == 2 and (self.choice, self.name) == (other.choice, other.name)
        )

    def reader(self, known: dict[str, Any], before: bytes = b"", behind: bytes = b"") -> Any:
        """What reads such an event, with these bytes *before* and *behind* it; its code knows by name what is *known*."""
        from crosswalk.mapping.learnt.event_code import EventCode, reader_of  # a body alone needs none

        first, *more = self.literals
        more[-1] += behind
        size = len(before) + self.gaps[-1][1].end + len(more[-1])
        ends, is_behind = [], False
        for role, gap in self.gaps[:-1]:
            is_behind = is_behind or role == "text"
            end = len(before) + gap.end
            ends.append(size - end if is_behind else end)
        known["frame"] = slice(len(before), -len(behind) or None)
        code = self._code(EventCode, self.gaps, self.literals, framed=bool(behind), raw="keep" in known)
        # Passed on as it is: a call with so many names takes as long as all the rest.
        return reader_of(code, [before + first, *more], ends, self._names(self.gaps) | known)

    def runner(self, known: dict[str, Any], turn: Turn | None = None) -> Any:
        """What reads many such events at once.

        Args:
            known: what its code knows by name.
            turn: where the number of the choice, or of the call, stands, if that is another one from event to event.
        """
        from crosswalk.mapping.learnt.run_code import RunCode, run_of

        gaps, literals = [*self.gaps], [*self.literals]
        if turn is not None:
            from crosswalk.mapping.learnt.marks import Gap

            role, number, start = turn
            end = start + len(str(self.choice if role == "choice" else self.call))
            gaps.insert(number, (role, Gap(start, end, int, ())))
            literals[number : number + 1] = literals[number][:start], literals[number][end:]
        known["frame"] = slice(None)
        code = self._code(RunCode, gaps, literals, framed=False, raw="keep" in known)
        return run_of(code, literals, self._names(gaps) | known)

    def _code(
        self,
        kind: type[Code],
        gaps: Sequence[tuple[Role, Gap]],
        literals: Sequence[bytes],
        *,
        framed: bool,
        raw: bool,
    ) -> Code:
        kinds = tuple([(role, gap.kind) for role, gap in gaps])
        often = kind.count(kinds, literals)
        key = kind, framed, raw, kinds, often, bool(self.left), self.merger is not None
        if key not in self.codes:
            self.codes[key] = kind(
                kinds,
                self.says,
                framed=framed,
                keeps_raw=raw,
                has_usage=self.counts is not None,
                has_logprobs=self.tokens is not None,
                weighs_text=self.tokens is not None and self.tokens.needs_text,
                is_remembered=self.is_remembered,
                has_left=bool(self.left),
                has_duration=self.counts is not None and self.counts.has_duration,
                merges=self.merger is not None,
                literals=often,
            )
        code: Code = self.codes[key]
        return code

    def _names(self, gaps: Sequence[tuple[Role, Gap]]) -> dict[str, Any]:
        keys = {f"key{number}": gap.path[0] for number, (role, gap) in enumerate(gaps) if role == "stamp"}
        return keys | {
            "usage_of": self.counts and self.counts.make,
            "logprobs_of": self.tokens and self.tokens.make,
            "merge": self.merge,
            "template": self,
            "choice": self.choice,
            "call": self.call,
            "left": self.left,
        }


class Turn(NamedTuple):
    """Where that stands which differs in events that take turns.

    Attributes:
        role: whether it is the number of the choice, or of one of its calls.
        literal: in which literal.
        start: behind how many bytes.
    """

    role: Literal["choice", "call"]
    literal: int
    start: int


def turn_of(templates: Sequence[Template]) -> Turn | None:
    """Where the only thing stands in which the events of *templates* differ; ``None`` where more differs.

    It is a number by itself: what stands in a gap is a whole value, or it might be another with spaces in it.
    """
    from crosswalk.mapping.learnt.marks import TOKEN

    first, *others = templates
    same = first.alike()
    if same is None or any(other.alike() != same for other in others):
        return None
    numbers: dict[Literal["choice", "call"], list[Any]] = {
        "choice": [each.choice for each in templates],
        "call": [each.call for each in templates],
    }
    differing = [role for role, all_of in numbers.items() if len({*all_of}) > 1]
    columns = [*zip(*(each.literals for each in templates), strict=True)]
    places = [number for number, column in enumerate(columns) if len({*column}) > 1]
    if len(differing) != 1 or len(places) != 1:
        return None
    (role,), (place,) = differing, places
    digits = str(numbers[role][0]).encode()
    offset = first.gaps[place - 1][1].end if place else 0
    whole = {span.start() - offset for span in re.finditer(TOKEN, first.frame) if span[0] == digits}
    for start in sorted(start for start in whole if 0 <= start < len(columns[place][0])):
        before, behind = columns[place][0][:start], columns[place][0][start + len(digits) :]
        if all(
            column == b"%b%d%b" % (before, number, behind)
            for column, number in zip(columns[place], numbers[role], strict=True)
        ):
            return Turn(role, place, start)
    return None
