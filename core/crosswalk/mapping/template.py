"""Most events of a stream differ from one before in a few leaves: read those, not the whole event.

A :class:`Template` is learnt from an event that was parsed and mapped: the bytes around its *gaps*. In a gap stands the
text that the delta carries, a stamp that only the extensions keep, the number of the event, a count, a token or how likely
it was. A later frame with the same bytes around other values is the same JSON with those values in their places, so that the
mapper would make the same delta with them: that is the promise of ``ProviderInfo.text_leaves`` and its like. What it would
make of counts and of log probabilities is found out once, see :mod:`crosswalk.mapping.parts`. Anything else is parsed anew,
and so is everything where a plugin promises nothing or a hook is wrapped. How frames are compared, and what proves that it
is enough, says :mod:`crosswalk.mapping.event_code`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import orjson

from crosswalk.mapping.interpreter import Said
from crosswalk.mapping.marks import Gap, UnlikeError, between, value_in
from crosswalk.plugin.info import LogprobReader, Path
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.take import NOTED, empty_containers, mistyped, note_again, prune
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import EMPTY_OBJECT, load_json
from crosswalk.types.merge import copy_json, same_json
from crosswalk.types.metadata import Provenance

if TYPE_CHECKING:
    from crosswalk.mapping.event_code import EventCode, Role
    from crosswalk.mapping.parts import Make

__all__ = ["NO_TEMPLATE", "Template", "learn", "only_text", "place_of_choice"]

Code = TypeVar("Code", bound="EventCode")

_PROBES: Final[dict[type, Any]] = {
    str: "crosswalk-probe",
    int: 730517,
    dict: {"crosswalk-probe": 1},
    list: [1],
}
_SCALARS: Final = (str, int)
_MOST: Final = 64
"""Where a key stands more often than that, nobody looks which of them it is."""
_LONGEST: Final = 65_536
"""From a longer event nothing is learnt: to find its leaves takes time."""


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
        beside: what it has besides its text: the keys of its stamps, of its number and of its counts.
        usage_of: makes the counts; ``None`` where it has none.
        logprobs_of: makes the log probabilities; ``None`` where it has none.
        remembered: the key of the counts of which the hooks remember something; ``None`` for none.
        told: the last frame that it has told since the hooks have heard of it; ``None`` for none.
        read: the delta of a frame, which is then part of the answer; ``None`` where it is another kind of event.
        read_chunk: the same for what came in one read: a frame with all that its framing puts around it.
        is_framed: whether that is known yet.
        run: the deltas of many frames, each part of the answer once it is handed out, or none where they are not to be
            shown and all are part of it at once; ``None`` where they are not all such. Not made before it is needed.
        follower: which template the next event is likely to be one of.
        pieces: where the answer keeps the text that such events go on with.
        heard: how many of these the plugin's hooks know of.
    """

    choice: int
    says: Any
    call: int | None
    name: str | None
    gaps: Sequence[tuple[Role, Gap]]
    literals: Sequence[bytes]
    outer: Sequence[bytes] = ()
    beside: frozenset[str] = frozenset()
    usage_of: Callable[..., Any] | None = None
    logprobs_of: Callable[..., Any] | None = None
    remembered: str | None = None
    told: bytes | None = None
    read: Callable[[bytes], ResponseDelta | None] = _nothing
    read_chunk: Callable[[bytes], ResponseDelta | None] = _nothing
    is_framed: bool = False
    run: Callable[[Sequence[bytes], bool], Iterable[ResponseDelta] | None] | None = None
    follower: Template = attrs.field(default=attrs.Factory(lambda self: self, takes_self=True))
    pieces: list[str] = attrs.Factory(list)
    heard: int = 0

    def release(self) -> None:
        """Let go of the answer: its code and it know each other, and what goes in a circle nobody frees at once."""
        self.read = self.read_chunk = _nothing
        self.run, self.follower, self.pieces = None, NO_TEMPLATE, []

    def alike(self) -> tuple[object, ...] | None:
        """What it says but for its literals and its choice; ``None`` where it says something of the choice besides text."""
        if self.logprobs_of is not None or self.remembered is not None:
            return None
        gaps = [(role, gap.kind, gap.path) for role, gap in self.gaps]
        return self.says, self.call, self.name, gaps, self.usage_of

    def stamps(self) -> list[str]:
        """The keys of its stamps."""
        return [str(gap.path[0]) for role, gap in self.gaps if role == "stamp"]

    def reader(self, before: bytes = b"", behind: bytes = b"", **known: Any) -> Any:
        """What reads such an event, with these bytes *before* and *behind* it."""
        from crosswalk.mapping.event_code import EventCode, reader_of  # a body alone needs none

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
        return reader_of(code, [before + first, *more], ends, **self._names(self.gaps), **known)

    def runner(self, place: tuple[int, int] | None = None, **known: Any) -> Any:
        """What reads many such events at once.

        Args:
            place: in which literal the number of the choice stands, and behind how many bytes, where it is another one of
                :attr:`choice` from event to event; ``None`` where all are of this choice.
            known: what its code knows by name.
        """
        from crosswalk.mapping.run_code import RunCode, run_of

        gaps, literals = [*self.gaps], [*self.literals]
        if place is not None:
            number, start = place
            end = start + len(str(self.choice))
            gaps.insert(number, ("choice", Gap(start, end, int, ())))
            literals[number : number + 1] = literals[number][:start], literals[number][end:]
        known["frame"] = slice(None)
        code = self._code(RunCode, gaps, literals, framed=False, raw="keep" in known)
        return run_of(code, literals, **self._names(gaps), **known)

    def _code(
        self,
        kind: type[Code],
        gaps: Sequence[tuple[Role, Gap]],
        literals: Sequence[bytes],
        *,
        framed: bool,
        raw: bool,
    ) -> Code:
        from crosswalk.mapping.event_code import bare

        kinds = tuple([(role, gap.kind) for role, gap in gaps])
        return kind(
            kinds,
            self.says,
            framed=framed,
            keeps_raw=raw,
            is_counted=(self.usage_of is not None, self.logprobs_of is not None),
            is_remembered=self.remembered is not None,
            literals=len({*bare(kinds, literals)[1:-1]}),
        )

    def _names(self, gaps: Sequence[tuple[Role, Gap]]) -> dict[str, Any]:
        keys = {f"key{number}": gap.path[0] for number, (role, gap) in enumerate(gaps) if role == "stamp"}
        return keys | {
            "usage_of": self.usage_of,
            "logprobs_of": self.logprobs_of,
            "template": self,
            "choice": self.choice,
            "call": self.call,
        }


NO_TEMPLATE: Final = Template(0, "content_delta", None, None, (), ())
"""Reads nothing."""


def place_of_choice(templates: Sequence[Template]) -> tuple[int, int] | None:
    """In which literal the number of the choice stands, and behind how many bytes; ``None`` where more differs."""
    first, *others = templates
    same = first.alike()
    is_one_each = len({each.choice for each in templates}) == len(templates)
    if same is None or not is_one_each or any(other.alike() != same for other in others):
        return None
    columns = [*zip(*(each.literals for each in templates), strict=True)]
    differing = [number for number, column in enumerate(columns) if len({*column}) > 1]
    if len(differing) != 1:
        return None
    (number,) = differing
    digits = str(first.choice).encode()
    start = first.literals[number].find(digits)
    while start >= 0:
        before, behind = first.literals[number][:start], first.literals[number][start + len(digits) :]
        if all(each.literals[number] == b"%b%d%b" % (before, each.choice, behind) for each in others):
            return number, start
        start = first.literals[number].find(digits, start + 1)
    return None


# Learning.


def learn(
    frame: bytes,
    name: str | None,
    said: Said,
    mapper: Mapper,
    dialect: Any = None,
    *,
    was_shown: bool = False,
) -> Template | None:
    """A template made from *frame*, which was mapped to what it *said*; ``None`` where none can be.

    Args:
        frame: the event.
        name: its SSE name.
        said: what its hooks have made of it.
        mapper: whose hooks they are, and what their plugin promises.
        dialect: which of the provider's dialects the answer is in; ``None`` where it has but one.
        was_shown: whether its delta has got what is new to the extensions.
    """
    deltas, usage, rest, news = said
    text = only_text(deltas[0], news if was_shown else None) if len(deltas) == 1 else None
    if not text or len(frame) > _LONGEST:
        return None
    event = load_json(frame)  # again: the hooks have taken it apart
    info = mapper.info
    leaf = next(
        (leaf for leaf in info.text_leaves if _at(event, leaf) == text and _at(rest, leaf) is None), None
    )
    if leaf is None:
        return None
    leaves: list[tuple[Role, Path]] = [("text", leaf)]
    leaves += [("stamp", path) for path in info.stamp_leaves if type(_at(event, path)) in _SCALARS]
    leaves += [("number", path) for path in info.number_leaves if type(_at(event, path)) is int]
    counted = next((path for path in info.usage_leaves if type(_at(event, path)) is dict), None)
    if usage is not None and counted is not None:
        leaves.append(("usage", counted))
    tokens = deltas[0].logprobs
    weighed = next((path for path in info.logprob_leaves if type(_at(event, path)) in (dict, list)), None)
    if tokens is not None and weighed is not None:
        leaves.append(("logprobs", weighed))
    roles = [role for role, _ in leaves]
    if (usage is not None) > ("usage" in roles) or (tokens is not None) > ("logprobs" in roles):
        return None
    if any(len(path) != 1 for role, path in leaves if role in ("stamp", "number", "usage")):
        return None
    # A number that does not follow the one before says something.
    if any(_at(rest, path) is not None for role, path in leaves if role == "number"):
        return None
    found = [(role, _find(frame, path, _at(event, path))) for role, path in leaves]
    whole = sorted(((role, gap) for role, gap in found if gap is not None), key=lambda one: one[1].start)
    if len(whole) < len(leaves) or not _is_proven(frame, [gap for _, gap in whole], event):
        return None
    return _template(frame, name, said, mapper, dialect, whole)


def _template(
    frame: bytes, name: str | None, said: Said, mapper: Mapper, dialect: Any, whole: list[tuple[Role, Gap]]
) -> Template | None:
    """The template of *frame*, in which its values stand in the *whole* gaps, of objects taken apart."""
    from crosswalk.mapping.parts import Parts

    (delta,), usage, rest, _ = said
    gaps: list[tuple[Role, Gap]] = []
    parts: Parts = mapper.memory.setdefault(Parts, Parts())
    made, remembered = {}, None
    for role, gap in whole:
        if role not in ("usage", "logprobs"):
            gaps.append((role, gap))
            continue
        data = frame[gap.start : gap.end]
        make = (
            _counting(mapper, dialect, str(gap.path[0])) if role == "usage" else _weighing(mapper, gap.path)
        )
        found = parts.of(data, (gap.path, dialect), make, int if role == "usage" else float)
        if found is None:
            return None
        part, inner = found
        made[role] = part.make
        remembered = str(gap.path[0]) if part.is_remembered else remembered
        if part.make(*[value_in(data, one) for one in inner]) != (
            usage if role == "usage" else delta.logprobs
        ):
            return None  # the hook has looked elsewhere, too
        if not same_json(part.left, _at(rest, gap.path)):
            return None
        gaps += [(role, Gap(gap.start + one.start, gap.start + one.end, one.kind, one.path)) for one in inner]
    call = delta.tool_call_delta
    text = "content_delta" if delta.content_delta is not None else "reasoning_delta"
    return Template(
        delta.choice,
        text if call is None else "tool_call_delta",
        None if call is None else call.index,
        name,
        gaps,
        between(frame, [gap for _, gap in gaps]),
        between(frame, [gap for _, gap in whole]),
        frozenset(str(gap.path[0]) for role, gap in whole if role in ("stamp", "number", "usage")),
        made.get("usage"),
        made.get("logprobs"),
        remembered,
    )


def only_text(delta: ResponseDelta, news: dict[str, Any] | None) -> str | None:
    """The text, reasoning, or arguments of a known call that *delta* carries, if that is all beside log probabilities."""
    call = delta.tool_call_delta
    if call is not None and (call.id is not None or call.name is not None):
        return None
    arguments = None if call is None else call.arguments_delta
    said = (delta.content_delta, delta.reasoning_delta, arguments)
    texts = [text for text in said if text is not None]
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


def _counting(mapper: Mapper, dialect: Any, key: str) -> Make:
    """What ``map_usage`` makes of the counts under *key*, with nothing else beside them and in any state."""

    def make(value: Any, _: str) -> tuple[Any, Any, bool]:
        part, again = {key: value}, {key: copy_json(value)}
        state, fresh, noted = mapper.new_state(), mapper.new_state(), len(NOTED.values)
        state.dialect = fresh.dialect = dialect
        kept = empty_containers(part)
        usage = mapper.map_usage(part, state)
        prune(part, kept)
        changed = {name for name, was in vars(fresh).items() if vars(state)[name] != was} - _NEVER_EQUAL
        # A report replaces the one before, whatever is remembered of it.
        is_same = mapper.map_usage(again, state) == usage
        if (
            _unnoted(noted)
            or not is_same
            or changed - _REMEMBERED
            or Provenance.ABSENT in state.provenance.values()
        ):
            raise UnlikeError
        return usage, part.get(key), bool(changed)

    return make


_REMEMBERED: Final = {"_own", "data", "provenance"}
_NEVER_EQUAL: Final = {"_places"}


def _weighing(mapper: Mapper, path: Path) -> Make:
    """What the reader of the log probabilities at *path* makes of them."""
    reader: LogprobReader = mapper.info.logprob_leaves[path]
    key = str(path[-1])

    def make(value: Any, text: str) -> tuple[Any, Any, bool]:
        holder, noted = {key: value}, len(NOTED.values)
        kept = empty_containers(holder)
        tokens = reader(holder, text)
        prune(holder, kept)
        if _unnoted(noted):
            raise UnlikeError
        return tokens, holder.get(key), False

    return make


def _unnoted(count: int) -> bool:
    """Whether more than *count* values were noted as mistyped, which are forgotten: the event is read anew."""
    has_more = len(NOTED.values) > count
    if has_more:
        note_again(mistyped()[:count])
    return has_more


def _find(frame: bytes, path: Path, value: Any) -> Gap | None:
    """Where *value* stands in *frame* under its key; ``None`` unless it is one place."""
    found = []
    quote = int(type(value) is str)
    for separator in (b'":', b'": '):
        opening = b'"' + str(path[-1]).encode() + separator
        if frame.count(opening) > _MOST:
            return None
        start = frame.find(opening)
        while start >= 0:
            start += len(opening)
            end = _end_of(frame, start, value)
            if end is not None:
                found.append(Gap(start + quote, end - quote, type(value), path))
            start = frame.find(opening, start)
    return found[0] if len(found) == 1 else None


_DECODER: Final = json.JSONDecoder()


def _end_of(frame: bytes, start: int, value: Any) -> int | None:
    """The byte behind the JSON text at *start*, if it is that of *value*."""
    text = frame[start:].decode(errors="replace")
    try:
        found, end = _DECODER.raw_decode(text)
    except ValueError:
        return None
    return start + len(text[:end].encode()) if same_json(found, value) else None


def _is_proven(frame: bytes, gaps: Sequence[Gap], event: Any) -> bool:
    """Whether with probes in its *gaps* the frame is the same event with probes in those leaves."""
    literals = between(frame, gaps)
    strings = [gap for gap in gaps if gap.kind is str]
    around = b"\n".join((*literals, *(b'"%b"' % frame[gap.start : gap.end] for gap in strings)))
    for gap in strings:
        # The same string elsewhere, in whatever spelling, may be there because of this one.
        value = _at(event, gap.path)
        spellings = {frame[gap.start - 1 : gap.end + 1], orjson.dumps(value), json.dumps(value).encode()}
        if sum(map(around.count, spellings)) != 1 and _occurrences(value, event) != 1:
            return False  # a comma stands in quotes all over an event, and is most often no string
    probes = [_PROBES[gap.kind] for gap in gaps]
    texts = [orjson.dumps(probe)[1:-1] if type(probe) is str else orjson.dumps(probe) for probe in probes]
    probed = load_json(b"".join(part for pair in zip(literals, (*texts, b""), strict=True) for part in pair))
    for gap, probe in zip(gaps, probes, strict=True):
        if _at(probed, gap.path) != probe:
            return False
        _put(probed, gap.path, _at(event, gap.path))
    return bool(probed == event)


def _occurrences(text: str, value: Any) -> int:
    """How often *text* is a string in *value*, or a key."""
    if isinstance(value, dict):
        return sum(_occurrences(text, part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return sum(_occurrences(text, item) for item in value)
    return int(value == text)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _put(value: Any, path: Path, leaf: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = leaf
