"""The templates of one answer while it is read: which of them knows the next event, what is learnt, and what is forgotten.

What a template is, and how it is learnt from an event, says :mod:`.template`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
from operator import is_
from typing import TYPE_CHECKING, Any, Final, cast

from crosswalk.learning import learning
from crosswalk.mapping.interpreter import Interpreter, Said
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, load_json
from crosswalk.wire.framing import Frame, PushDecoder
from crosswalk.wire.limits import Limits

if TYPE_CHECKING:
    from crosswalk.mapping.learnt.template import Template, Turn  # what is read alone needs none

__all__ = ["Templates", "only_text"]

_MOST: Final = 16
"""So many are tried, one after the other, before an event is parsed: as many as choices or calls may take turns."""
_RUN: Final = 64
"""So many events are read at once, at most."""
_SHORTEST_RUN: Final = 4
_VAIN: Final = 8
"""So many events at the beginning of an answer, or between its texts, may well say something else."""
_LONGEST_REST: Final = 64
_NONE: Final[tuple[int, Iterable[ResponseDelta]]] = 0, ()


class _NoTemplate:
    """Stands where no template is known, and reads nothing."""

    choice = 0
    name = call = told = None
    is_framed = True

    @property
    def follower(self) -> Template:
        return NO_TEMPLATE

    def read(self, _: bytes) -> None:
        return None

    read_chunk = read


NO_TEMPLATE: Final = cast("Template", _NoTemplate())


class Templates:
    """The templates of one answer: what is read by them goes straight into the answer's state.

    Args:
        mapper: the provider.
        state: the state of the answer.
        raw: where frames are kept; ``None`` where they are not.
        limits: how many events may come, how long they may be, and how deep.

    Attributes:
        events: how many events have come.
        learns: whether anything is learnt just now: where the plugin's promises hold, this process learns, and it was not in
            vain lately.
        wakes: the number of the event from which on it is tried again.
        live: the framing, where it stands between two events; it counts what comes.
        last: the template that has read last, or was learnt since.
        number: of the event that had one last.
    """

    def __init__(self, mapper: Mapper, state: MappingState, raw: list[bytes] | None, limits: Limits) -> None:
        self._state = state
        self._limits = limits
        self._raw = raw
        self.events = 0
        info = mapper.info
        self.learns = mapper.is_plain and learning.is_on and bool(info.text_leaves or info.speaks)
        self.wakes = 0
        self.live: PushDecoder | None = None
        self.last = NO_TEMPLATE
        self.number = 0
        self._known: list[Template] = []
        self._seen = NO_TEMPLATE  # the one whose like the hooks have seen last
        self._turn: Turn | None = None  # in which those that are known differ, once it was looked for
        self._is_looked_for = False
        self._mapped = 0  # the number of the event that was mapped last
        self._vain = 0  # so many events in a row have taught nothing
        self._rested = 0  # of so many before nothing was to be learnt

    # What is like something before.

    def read_chunk(self, chunk: bytes) -> ResponseDelta | None:
        """The delta of *chunk*, which came in one read between two events; ``None`` where it is like nothing before."""
        for template in self._known:
            if (delta := template.read_chunk(chunk)) is not None:
                return delta
        return None

    def read(self, frame: bytes, name: str | None) -> ResponseDelta | None:
        """The delta of *frame*, of SSE name *name*; ``None`` where it is like nothing before."""
        template = self.last.follower
        if template.name == name and (delta := template.read(frame)) is not None:
            return delta
        for template in self._known:
            if template.name == name and (delta := template.read(frame)) is not None:
                return delta
        return None

    def _read_first(self, template: Template, frame: bytes) -> ResponseDelta | None:
        """Read with *template* for the first time: what comes event by event, or many at once, never does."""
        begin, *_, end = template.literals
        if not (frame.startswith(begin) and frame.endswith(end)):
            return None  # one of another choice, perhaps
        template.read = template.reader(self._around(template))
        return template.read(frame)

    @property
    def has_one(self) -> bool:
        """Whether all events that are known are of one kind."""
        return len(self._known) == 1

    def read_run(self, frames: list[Frame], *, shows: bool) -> tuple[int, Iterable[ResponseDelta]]:
        """How many of the next *frames* are all like the one before, and their deltas.

        Where nobody asks for them (*shows* is false), the answer has them at once, and there are none.
        """
        template = self.last
        if len(frames) < _SHORTEST_RUN or template is NO_TEMPLATE:
            return _NONE
        if not self._is_looked_for:
            from crosswalk.mapping.learnt.template import turn_of

            self._turn, self._is_looked_for = turn_of(self._known), True
        if self._turn is None and template.follower is not template:
            return _NONE
        datas, names = zip(*frames[:_RUN], strict=True)
        if names.count(template.name) < len(names):
            datas = datas[: next(number for number, name in enumerate(names) if name != template.name)]
        if template.run is None:
            by_call = self._turn is not None and self._turn.role == "call"
            turns = {each.call if by_call else each.choice: (each, each.texts.append) for each in self._known}
            template.run = template.runner({"turns": turns, **self._around(template)}, self._turn)
        deltas = template.run(datas, shows)
        if deltas is None:  # another kind of event is among them, as at the end of an answer
            datas = datas[: self._count_alike(datas, template)]
            deltas = template.run(datas, shows)
        return _NONE if deltas is None else (len(datas), deltas)

    def _count_alike(self, datas: Sequence[bytes], template: Template) -> int:
        """How many of *datas* begin and end as they should, before one does not; 0 where it is not that."""
        begin, end = template.literals[0], template.literals[-1]
        if self._turn is not None:  # it may be in either
            _, number, start = self._turn
            begin = begin[:start] if number == 0 else begin
            end = b"" if number == len(template.literals) - 1 else end
        unlike = (
            number for number, data in enumerate(datas) if not (data.startswith(begin) and data.endswith(end))
        )
        return next(unlike, 0)

    def stands_in(self, chunk: bytes, frame: bytes) -> None:
        """Say that *chunk* came in one read between two others, and holds *frame*, which came last, and nothing else.

        With the same bytes around it, whatever they are, another frame is framed in the same way.
        """
        template = self.last
        # Else it stands there in several lines, or in a comment as well.
        if not template.is_framed and chunk.find(frame) == chunk.rfind(frame) >= 0:
            before, _, behind = chunk.partition(frame)
            template.is_framed = True
            template.read_chunk = template.reader(self._around(template), before, behind)

    def _around(self, template: Template) -> dict[str, Any]:
        """What the code of *template* knows by name."""
        state = self._state
        choice = state.choices[template.choice]
        known: dict[str, Any] = {
            "alike": self,
            "state": state,
            "add": template.texts.append,
            "add_all": template.texts.extend,
            "kept": state.extensions,
            "provenance": state.provenance,
            "prompt_is": state.provenance.get("usage.prompt_tokens"),
            "completion_is": state.provenance.get("usage.completion_tokens"),
            "report": state.report_shown,
            "weigh": choice.weigh,
            "most": self._limits.events,
            "longest": self._limits.line_bytes,
        }
        if self._raw is not None:
            known |= {"keep": self._raw.append, "keep_all": self._raw.extend}
        return known

    # What is learnt.

    def forget(self) -> None:
        """Forget all that was learnt."""
        for template in self._known:
            template.release(NO_TEMPLATE)
        self._known, self.last, self._seen, self._is_looked_for = [], NO_TEMPLATE, NO_TEMPLATE, False

    def take_over(self, interpreter: Interpreter) -> list[Template]:
        """Those that are known, which are forgotten: an event comes that *interpreter* maps.

        Its hooks are told what was read without them since the event before.
        """
        known, last = self._known, self.last
        self._known, self.last, self._is_looked_for = [], NO_TEMPLATE, False
        have_told = self.events > self._mapped + 1  # others came between this and the one before
        self._mapped = self.events
        unseen: dict[int, list[str]] = {}
        if have_told:
            interpreter.forget_rest()
            heard = set[int]()  # those that differ in their counts alone add to the same text
            for template in known:
                if id(template.texts) not in heard:
                    heard.add(id(template.texts))
                    unseen.setdefault(template.choice, []).extend(template.unheard())
            unseen = {choice: pieces for choice, pieces in unseen.items() if pieces}
            if last.told is not None:  # which replaces what all others have told
                interpreter.remember(load_json(last.told), last.name)
            for template in known:
                template.told = None
            if last.call is not None and last.takes_turns_with(self._seen):
                self._state.reopen(last.choice, last.call)
        self._state.unseen = unseen
        return known

    def learn(
        self,
        before: list[Template],
        source: Any,
        name: str | None,
        said: Said,
        interpreter: Interpreter,
    ) -> None:
        """Learn how to read events like the one that was just mapped, and keep of those *before* what is still right.

        Args:
            before: the templates that were known when it came.
            source: what it was made of; nothing is learnt from any but bytes.
            name: its SSE name.
            said: what it said.
            interpreter: who has mapped it.
        """
        mapper = interpreter.mapper
        rested, self._rested = self._rested, 0
        may_learn = type(source) is bytes and mapper.is_plain and not interpreter.notes_move
        text = only_text(said) if may_learn else None
        made = self._made_of(source, text, name, said, mapper, rested) if text else None
        if made is None and self.learns:
            self._vain += 1
            if self._vain >= _VAIN:
                self._rest(min(2 ** (self._vain - _VAIN + 2), _LONGEST_REST))
        if made is not None and made.choice not in self._state.ends and self._goes_on(made, source):
            others = self._beside(made, before, said, mapper)
            for other in others:
                if (other.choice, other.call) == (made.choice, made.call):
                    other.heard = made.heard
                if other.follower not in others:
                    other.follower = made
                other.run = None
            self._known, self.last, self._seen = [*others, made], made, made
            self._is_looked_for, self._vain = False, 0
        if before:
            for each in {*before} - {*self._known}:
                each.release(NO_TEMPLATE)

    def _made_of(
        self, frame: bytes, text: str, name: str | None, said: Said, mapper: Mapper, rested: int
    ) -> Template | None:
        """The template of *frame*, which says this *text*; ``None`` where there is none."""
        from crosswalk.mapping.learnt.asking import replace_each_other  # what is read alone needs none
        from crosswalk.mapping.learnt.learning import TooDearError, learn

        try:
            made = learn(frame, text, name, said, mapper, self._state.dialect, unseen=rested)
        except TooDearError:
            self._rest(_LONGEST_REST)
            return None
        if made is None:
            return None
        made.frame = frame
        if made.counts is not None:
            if self._state.request_duration is not None and not made.counts.has_duration:
                return None  # something else in it may tell that
            if made.is_remembered and not replace_each_other([made], mapper, self._state):
                return None
        return made

    def _beside(self, made: Template, before: list[Template], said: Said, mapper: Mapper) -> list[Template]:
        """Those of the templates *before* that are still right beside *made*, whose event has *said* so.

        Where nothing is new but what is kept of each, what the others have left in the extensions is still there. Of a
        choice there is one, but for what counts otherwise, and for calls that take turns: which block goes on is then what
        the hooks have seen last.
        """
        from crosswalk.mapping.learnt.kept import is_within

        if not before or len(before) >= _MOST or not is_within(said[3], made.kept):
            return []
        others = [
            each
            for each in before
            if each.beside == made.beside
            and self._adds_to_the_same(each)
            and (each.counts is made.counts or not (each.is_remembered or made.is_remembered))
            and (
                each.choice != made.choice
                or (each.outer, each.name) == (made.outer, made.name)
                or each.takes_turns_with(made)
            )
        ]
        return others if others and self._hold([*others, made], mapper) else []

    def _adds_to_the_same(self, template: Template) -> bool:
        """Whether the extensions still have the objects and lists that *template* adds to."""
        if template.merger is None:
            return True
        found = self._state.merging(template.merger)
        return found is not None and all(map(is_, found[1], template.grows))

    def _hold(self, templates: Sequence[Template], mapper: Mapper) -> bool:
        """Whether what these *templates* promise holds also where their events take turns."""
        from crosswalk.mapping.learnt.asking import name_their_calls, replace_each_other

        if _take_turns(templates) and not name_their_calls(templates, mapper, self._state):
            return False
        return not templates[-1].is_remembered or replace_each_other(templates, mapper, self._state)

    def _rest(self, events: int) -> None:
        """Learn nothing of so many *events*, which then cost no more than without learning."""
        self.learns, self.live, self._state.unseen = False, None, {}
        self._rested, self.wakes = events, self.events + events + 1

    def _goes_on(self, made: Template, frame: bytes) -> bool:
        """Let *made*, which was learnt from *frame*, add to the answer where that event has added to it, if that is known.

        Args:
            made: the template.
            frame: the event.
        """
        if made.merger is not None:
            found = self._state.merging(made.merger)
            if found is None:
                return False
            made.merge, made.grows = found
        choice = self._state.choices[made.choice]
        if made.call is not None:
            call = choice.calls[made.call]
            if call.id is call.name is None and len(call.arguments) == 1:
                return False  # it was opened just now, as the next such event may open another one
        made.texts = choice.text if made.call is None else choice.calls[made.call].arguments
        made.heard = len(made.texts)
        made.read = partial(self._read_first, made)
        for role, gap in made.gaps:
            if role == "number":
                self.number = int(frame[gap.start : gap.end])
        return True


def _take_turns(templates: Sequence[Template]) -> bool:
    return any(one.takes_turns_with(other) for one, other in combinations(templates, 2))


def only_text(said: Said) -> str | None:
    """The text, reasoning, or arguments of a known call that an event has *said*, if that is all but log probabilities."""
    deltas, _, _, news = said
    if len(deltas) != 1:
        return None
    (delta,) = deltas
    call = delta.tool_call_delta
    if call is not None and (call.id is not None or call.name is not None):
        return None
    arguments = None if call is None else call.arguments_delta
    texts = [text for text in (delta.content_delta, delta.reasoning_delta, arguments) if text is not None]
    is_alone = (
        len(texts) == 1
        and delta.finish_reason is None
        and delta.usage is None
        and delta.refusal_delta is None
        and delta.segment is None
        and delta.raw_finish_reason is None
        and (delta.logprobs is None or delta.content_delta is not None)
        # Its own are none; what is new was added when it was shown.
        and (delta.extensions is EMPTY_OBJECT or delta.extensions._data is news)
    )
    return texts[0] if is_alone else None
