"""The chain: the whole text, JSON in the text, repaired JSON, failure with its reason (seed 002, "Response Parser")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs

from crosswalk.structured.decode import NO_JSON, SHALLOW, is_too_deep, loads, may_be_too_deep
from crosswalk.structured.reason import Partial, ReasonCode, Stage, as_partial
from crosswalk.structured.repair import Meter, RepairLimitError, mend
from crosswalk.structured.result import Candidate, ParseResult, Violation
from crosswalk.structured.scan import Region, closed, find_regions
from crosswalk.structured.schema import reason_of

__all__ = ["Read", "candidate_of", "extract_json", "run_chain"]

T = TypeVar("T")

Read: TypeAlias = Callable[[Any], Candidate[T]]
"""Makes a candidate of decoded JSON; never raises."""

_TOO_DEEP: Final = (None, (Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED),), None)


def candidate_of(read: Read[T], text: str, data: Any) -> Candidate[T]:
    """What *read* makes of *data*, the JSON of *text*; never raises."""
    return _TOO_DEEP if may_be_too_deep(text) and is_too_deep(data) else read(data)


def extract_json(text: str) -> str | None:
    """The first object or array in *text* that is whole and valid JSON, else the first that has an end.

    Fenced blocks of any label come before what stands in prose; what stands inside another object, or inside a
    string, is not looked at, nor what would come after a part that never ends.

    Returns:
        The part of the text as it stands; ``None`` where there is none.
    """
    regions = [region.text for region in find_regions(text) if region.is_closed]
    return next(
        (region for region in regions if loads(region) is not NO_JSON), regions[0] if regions else None
    )


def run_chain(
    read: Read[T],
    text: str,
    ended: ReasonCode | None,
    partial: Partial,
    lap: Callable[[str], None] | None = None,
) -> ParseResult[T]:
    """Try one stage after the other.

    Args:
        read: makes a value of decoded JSON.
        text: what the model wrote.
        ended: why the text is not a whole answer; ``None`` where it is, or where nobody knows.
        partial: what to do with an answer that ends in the middle.
        lap: called with ``parse``, ``extract`` and ``repair`` when each has been tried; ``None`` for nobody.

    Raises:
        ConfigurationError: *partial* is none.
    """
    if type(partial) is not Partial:
        partial = as_partial(partial)
    if ended is not None and partial is Partial.REFUSE:
        return ParseResult(None, Stage.FAILURE, ended)
    data = loads(text)
    best = None
    if data is not NO_JSON:
        best = read(data) if len(text) <= SHALLOW else candidate_of(read, text, data)
    if lap is not None:
        lap("parse")
    if best is not None:
        value, _, version = best
        if value is not None and ended is None:  # nearly every answer, which ought to cost nothing more
            return ParseResult(value, Stage.DIRECT, ReasonCode.SUCCESS, (), False, version)
        if value is not None:
            return _given(Stage.DIRECT, best, ended)
        if type(data) is not str:  # valid JSON: nothing to extract, nothing to repair
            return _failed(reason_of(best[1]), ended, best)
        text = data  # JSON in a string of JSON
    return _search(_Search(read, best), text, ended, partial, lap)


def _search(
    search: _Search[T],
    text: str,
    ended: ReasonCode | None,
    partial: Partial,
    lap: Callable[[str], None] | None,
) -> ParseResult[T]:
    """The stages after the first."""
    candidate = search.extract(find_regions(text))
    if lap is not None:
        lap("extract")
    if candidate is not None:
        return _given(Stage.EXTRACT, candidate, ended)
    if not search.malformed and search.cut is None:
        reason = ReasonCode.EXTRACTION_FAILED if search.best is None else reason_of(search.best[1])
        return _failed(reason, ended, search.best)
    ended = ended or (None if search.cut is None else ReasonCode.TRUNCATED)
    candidate = search.repair(partial, Meter.for_text(text))
    if lap is not None:
        lap("repair")
    if candidate is not None:
        return _given(Stage.REPAIR, candidate, ended)
    return _failed(search.reason(), ended, search.best)


def _given(stage: Stage, candidate: Candidate[T], ended: ReasonCode | None) -> ParseResult[T]:
    value, _, version = candidate
    if ended is None:
        return ParseResult(value, stage, ReasonCode.SUCCESS, (), False, version)
    return ParseResult(value, stage, ended, (), True, version)


def _failed(reason: ReasonCode, ended: ReasonCode | None, best: Candidate[T] | None) -> ParseResult[T]:
    if best is None:
        return ParseResult(None, Stage.FAILURE, ended or reason)
    return ParseResult(None, Stage.FAILURE, ended or reason, best[1], False, best[2])


@attrs.define
class _Search(Generic[T]):
    """The candidates of one text.

    Attributes:
        read: makes a value of decoded JSON.
        best: the candidate that came closest so far; ``None`` where nothing was JSON.
        malformed: the regions that have an end and are no JSON as they stand.
        cut: the region that never ends, so that nothing that is repaired can be the whole answer; ``None`` for none.
        is_over_limit: whether a repair was given up.
    """

    read: Read[T]
    best: Candidate[T] | None
    malformed: list[Region] = attrs.field(factory=list)
    cut: Region | None = None
    is_over_limit: bool = False

    def extract(self, regions: list[Region]) -> Candidate[T] | None:
        for region in regions:
            if not region.is_closed:
                self.cut = region
            elif (data := loads(region.text)) is NO_JSON:
                self.malformed.append(region)
            elif self._accepts(region.text, data):
                return self.best
        return None

    def repair(self, partial: Partial, meter: Meter) -> Candidate[T] | None:
        regions = self.malformed
        if self.cut is not None:
            if partial is Partial.REFUSE or (partial is Partial.CLOSE and not self.cut.is_between):
                return None
            regions = [self.cut, *self.malformed]
        for region in regions:
            try:
                for repaired in _repairs(region, meter):
                    data = loads(repaired)
                    if data is not NO_JSON and self._accepts(repaired, data):
                        return self.best
            except RepairLimitError:
                self.is_over_limit = True
        return None

    def reason(self) -> ReasonCode:
        """Why there is no value although there were regions."""
        if self.cut is not None:
            return ReasonCode.TRUNCATED
        if self.best is not None:
            return reason_of(self.best[1])
        return ReasonCode.LIMIT_EXCEEDED if self.is_over_limit else ReasonCode.REPAIR_FAILED

    def _accepts(self, text: str, data: Any) -> bool:
        candidate = candidate_of(self.read, text, data)
        if self.best is None or _closeness(candidate) > _closeness(self.best):
            self.best = candidate
        return candidate[0] is not None


def _repairs(region: Region, meter: Meter) -> Iterator[str]:
    """JSON that *region* may have been meant to be, the surest first."""
    if not region.is_closed:
        for keep_cut_string in (True, False):
            as_far_as_it_goes = closed(region.text, keep_cut_string=keep_cut_string)
            if as_far_as_it_goes is not None:
                yield as_far_as_it_goes
    repaired = None if region.is_unclear else mend(region.text, meter)
    if repaired is not None:
        yield repaired


def _closeness(candidate: Candidate[Any]) -> int:
    """How close *candidate* came: 3 a value, 2 right but for invariants, 1 an object, 0 something else."""
    value, violations, _ = candidate
    if value is not None:
        return 3
    if all(violation.code is ReasonCode.INVARIANT_VIOLATION for violation in violations):
        return 2
    return int(violations[0].path != "$")
