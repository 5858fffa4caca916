"""Most bodies of a log differ from one before in a few leaves: read those, not the whole body.

A *shape* is learnt from a body that was read: the bytes around its holes, which are the leaves that the plugin has declared
(``ProviderInfo.body_leaves``). A later body with the same bytes around other values is the same JSON with those values in
their places. Where in the response they belong is found out by a *probe*: the same body with a mark in each hole is read by
the plugin's own hooks, and where a mark comes out, there goes the value of its hole. The response is made by code that is
written for this shape alone, around the constructors, whose checks could only hold.

No shape is used before it is proven: of the body itself, and of others with quite different values in its holes, it must
make what the general way makes, in every field and type. Whatever fits no shape is read in the general way, and so is
everything where a hook was overridden or wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from crosswalk.mapping.learnt.finding import find
from crosswalk.mapping.learnt.holes import (
    body_with,
    holes_in,
    marks_of,
    respelt,
    spellings,
    sums,
    with_totals,
)
from crosswalk.mapping.learnt.marks import (
    EPOCH,
    MADE_ID,
    MADE_TIME,
    TOKEN,
    UnlikeError,
    addends_of,
    has,
    value_at,
)
from crosswalk.mapping.learnt.shape_code import Shape, ShapeCode, weighed
from crosswalk.plugin.info import LogprobReader, Path
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.merge import copy_json
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import SegmentType
from crosswalk.types.told import told

__all__ = ["Read", "Shape", "learn"]

Read: TypeAlias = Callable[[bytes, Callable[[], str], Callable[[], datetime]], ChatResponse]
"""How a body is read in the general way: with what makes its id and tells its time, where it says neither."""

_MOST_SUMS: Final = 16
"""So many sums are tried for a number, each of which takes a reading."""
_SHORT: Final = 4096
"""Log probabilities are shortened in a longer body."""
_MOST_TOKENS: Final = 4096
"""Of more than these nothing is learnt: it would take seconds. What models answer has some hundred, whatever its text."""


def learn(
    data: bytes,
    leaves: Sequence[Path],
    read: Read,
    weigh: Mapping[Path, LogprobReader] = MappingProxyType({}),
) -> Shape | None:
    """The shape of the body *data*, proven; ``None`` where it has none.

    Args:
        data: a body that *read* reads.
        leaves: the leaves that may change.
        read: the general way to read.
        weigh: where it may have log probabilities, of which each body has others, and what reads them.
    """
    try:
        event = load_json(data) if weigh else None
        weigh = {
            path: reader for path, reader in weigh.items() if _is_weighed(value_at(event, path), path, reader)
        }
        short = _shortened(data, event, weigh)
        shape = _learn(short, leaves, read, weigh)
        if shape is None or short == data:
            return shape
        return shape if told(shape(data, *_PROOF, True)) == told(read(data, *_PROOF)) else None
    except Exception:  # a plugin that has promised too much may choke on a mark, an odd value pass a bound
        return None


class _Body:
    """A body with holes, and what the general way makes of it with any values in them.

    Attributes:
        holes: the leaves that may change.
        literals: the bytes before, between and behind them.
        fixed: what is the same in all bodies like it.
    """

    def __init__(
        self, data: bytes, leaves: Sequence[Path], read: Read, weighed: Collection[Path] = ()
    ) -> None:
        self._read = read
        self.holes, self.fixed = holes_in(data, leaves, weighed)
        ends = [0, *(hole.span[1] for hole in self.holes)]
        starts = [*(hole.span[0] for hole in self.holes), len(data)]
        self.literals = [data[end:start] for end, start in zip(ends, starts, strict=True)]

    def marked(self, values: Sequence[Any]) -> ChatResponse:
        """The response with these *values*, and marks for what it makes itself."""
        body = body_with(self.literals, self.holes, values)
        return self._read(body, lambda: MADE_ID, lambda: MADE_TIME)

    def probed(self, values: Sequence[Any]) -> tuple[bytes, ChatResponse]:
        """The body with these *values*, and the response that it is, as :data:`_PROOF` makes it."""
        body = body_with(self.literals, self.holes, values)
        return body, self._read(body, *_PROOF)


_PROOF: Final = (lambda: "crosswalk-proof"), (lambda: EPOCH)


def _is_weighed(value: Any, path: Path, reader: LogprobReader) -> bool:
    """Whether *value*, at *path*, is log probabilities of which *reader* leaves no object."""
    with suppress(Exception):
        return type(value) in (dict, list) and bool(weighed(copy_json(value), path, reader))
    return False


def _shortened(data: bytes, event: Any, paths: Iterable[Path]) -> bytes:
    """*data*, which is *event*, with at most two tokens where log probabilities are: as good, and hundreds take long."""
    for path in paths if len(data) > _SHORT else ():
        value = value_at(event, path)
        gap = find(data, path, value)
        if gap is not None:
            bracket = int(gap.kind is list)
            said = dump_json(respelt(value, most=2))
            data = data[: gap.start - bracket] + said + data[gap.end + bracket :]
    return data


def _learn(
    data: bytes, leaves: Sequence[Path], read: Read, weigh: Mapping[Path, LogprobReader]
) -> Shape | None:
    if any(islice(re.finditer(TOKEN, data), _MOST_TOKENS, None)):
        return None
    body = _Body(data, [*leaves, *weigh], read, weigh)
    holes = body.holes
    plain = read(data, *_PROOF)
    if any(segment.type is SegmentType.CITATION for segment in plain.segments):
        return None  # which words it cites may be counted in the text
    marks = marks_of(holes)
    totals = _totals_in(body, marks, plain)
    code = ShapeCode(holes, marks)
    marked = body.marked(with_totals(marks, totals))
    for number, hole in enumerate(holes):
        if hole.is_weighed:
            code.weigh(number, marks[number], weigh[hole.path], marked)
    expression = code.of(marked)
    for number, hole in enumerate(holes):
        hole.is_text, hole.least = hole.is_text or number in code.texts, int(number in code.positive)
    for hole in holes:
        hole.is_text = holes[hole.first].is_text
    refused = [hole.path for hole in holes if hole.is_number and hole.value < hole.least]
    if refused:  # it is no time, as it is in no body like this one
        return _learn(data, [leaf for leaf in leaves if leaf not in refused], read, weigh)
    if expression is None or not any(hole.is_text and hole.said for hole in holes):
        return None  # it would fit bodies with this very text alone
    behind = len(data) - sum(map(len, plain.raw_events.frames))  # the end of its line is no part of an event
    messages = [plain.message, *(other.message for other in plain.alternatives or ())]
    ids = {call.id for message in messages for call in message.tool_calls or ()}
    ids -= {hole.said for hole in holes if hole.said}  # one that was made up is one that no other call has
    fixed = body.fixed._replace(texts=body.fixed.texts | ids)
    shape = code.shape(body.literals, totals, fixed, expression, behind)
    is_proven = all(
        told(shape(one, *_PROOF, True)) == told(response)
        for one, response in ((data, plain), *_probes(body, totals))
    )
    return shape if is_proven else None


def _totals_in(body: _Body, marks: Sequence[Any], plain: ChatResponse) -> dict[int, Sequence[int]]:
    """Of each hole that holds a sum those that it is the sum of; and which numbers are kept, the holes know.

    A number that is kept only with marks in all holes was taken for what others add up to: for which, is tried.

    Raises:
        UnlikeError: it is not found.
    """
    kept, totals = body.marked(marks), dict[int, Sequence[int]]()
    for number, hole in enumerate(body.holes):
        hole.is_kept = hole.is_number and has(kept.metadata.extensions, hole.path)
        if hole.is_kept and not has(plain.metadata.extensions, hole.path):
            hole.is_kept = False
            counted = [(number, _counted(kept, marks))]
            for total, addends in chain(counted, islice(sums(number, body.holes), _MOST_SUMS)):
                with_this = {**totals, total: addends}
                if not has(body.marked(with_totals(marks, with_this)).metadata.extensions, hole.path):
                    totals = with_this
                    break
            else:
                raise UnlikeError
    return totals


def _counted(response: ChatResponse, marks: Sequence[Any]) -> Sequence[int]:
    """The holes, with these *marks*, that add up to all that *response* counts; none where it counts others, too."""
    usage = response.usage
    try:
        return [*addends_of(usage.prompt_tokens, marks), *addends_of(usage.completion_tokens, marks)]
    except UnlikeError:
        return ()


def _probes(body: _Body, totals: Mapping[int, Sequence[int]]) -> Iterator[tuple[bytes, ChatResponse]]:
    """Bodies with quite different values in the holes, and what the general way makes of them."""
    kept = {number for number, hole in enumerate(body.holes) if hole.is_kept}
    for spelt in spellings(body.holes):
        values = with_totals(spelt, totals)
        probe = body.probed(values)
        yield probe
        if kept:
            # Is one of them taken, too, if it is what another is, or the sum, which here it was not?
            taken = {
                value for number, value in enumerate(values) if type(value) is int and number not in kept
            }
            for other in taken | {probe[1].usage.total_tokens}:
                yield body.probed([other if number in kept else value for number, value in enumerate(values)])
