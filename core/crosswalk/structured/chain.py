"""The chain: the whole text, JSON in the text, repaired JSON, failure with its reason (seed 002, "Response Parser")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeAlias, TypeVar

import attrs
import orjson

from crosswalk.structured.reason import Partial, ReasonCode, Stage
from crosswalk.structured.repair import RepairLimitError, mend
from crosswalk.structured.result import Candidate, ParseResult
from crosswalk.structured.scan import Region, closed, find_regions
from crosswalk.structured.schema import reason_of

__all__ = ["NO_JSON", "Read", "extract_json", "loads", "run_chain"]

T = TypeVar("T")

Read: TypeAlias = Callable[[Any], Candidate[T]]
"""Makes a candidate of decoded JSON; never raises."""

NO_JSON: Final = object()


def loads(text: str) -> Any:
    """Decoded JSON, or :data:`NO_JSON`. Of a repeated key the last one counts; NaN and infinity are no JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return NO_JSON


def extract_json(text: str) -> str | None:
    """The first object or array in *text* that is whole and valid JSON, else the first that has an end.

    Fenced blocks of any label come before what stands in prose; what stands inside another object, or inside a
    string, is not looked at.

    Returns:
        The part of the text as it stands; ``None`` where there is none.
    """
    regions = [region.text for region in find_regions(text) if region.is_closed]
    return next(
        (region for region in regions if loads(region) is not NO_JSON), regions[0] if regions else None
    )


def run_chain(
    read: Read[T], text: str, ended: ReasonCode | None, partial: Partial, lap: Callable[[str], None]
) -> ParseResult[T]:
    """Try one stage after the other.

    Args:
        read: makes a value of decoded JSON.
        text: what the model wrote.
        ended: why the text is not a whole answer; ``None`` where it is, or where nobody knows.
        partial: what to do with an answer that ends in the middle.
        lap: called with ``parse``, ``extract`` and ``repair`` when each has been tried.
    """
    if ended is not None and partial is Partial.REFUSE:
        return ParseResult(None, Stage.FAILURE, ended)
    best: Candidate[T] | None = None
    data = loads(text)
    if data is not NO_JSON:
        best = read(data)
    lap("parse")
    if best is not None:
        if best[0] is not None:
            return _given(Stage.DIRECT, best, ended)
        if type(data) is not str:
            return _failed(
                reason_of(best[1]), ended, best
            )  # valid JSON: nothing to extract, nothing to repair
        text = data  # JSON in a string of JSON
    search = _Search(read, best)
    candidate = search.extract(find_regions(text))
    lap("extract")
    if candidate is not None:
        return _given(Stage.EXTRACT, candidate, ended)
    if not search.malformed:
        reason = ReasonCode.EXTRACTION_FAILED if search.best is None else reason_of(search.best[1])
        return _failed(reason, ended, search.best)
    candidate = search.repair(partial)
    lap("repair")
    if candidate is not None:
        return _given(Stage.REPAIR, candidate, ended or search.cut)
    return _failed(search.reason(), ended, search.best)


def _given(stage: Stage, candidate: Candidate[T], ended: ReasonCode | None) -> ParseResult[T]:
    value, _, version = candidate
    if ended is None:
        return ParseResult(value, stage, ReasonCode.SUCCESS, (), False, version)
    return ParseResult(value, stage, ended, (), True, version)


def _failed(reason: ReasonCode, ended: ReasonCode | None, best: Candidate[T] | None) -> ParseResult[T]:
    return ParseResult(None, Stage.FAILURE, ended or reason, best[1] if best else ())


@attrs.define
class _Search(Generic[T]):
    """The candidates of one text.

    Attributes:
        read: makes a value of decoded JSON.
        best: the candidate that came closest so far; ``None`` where nothing was JSON.
        malformed: the regions that are no JSON as they stand.
        cut: ``truncated`` once the region at hand is one that never ends.
        is_over_limit: whether a repair was given up.
    """

    read: Read[T]
    best: Candidate[T] | None
    malformed: list[Region] = attrs.field(factory=list)
    cut: ReasonCode | None = None
    is_over_limit: bool = False

    def extract(self, regions: list[Region]) -> Candidate[T] | None:
        for region in regions:
            data = loads(region.text) if region.is_closed else NO_JSON
            if data is NO_JSON:
                self.malformed.append(region)
            elif self._accepts(data):
                return self.best
        return None

    def repair(self, partial: Partial) -> Candidate[T] | None:
        for region in self.malformed:
            self.cut = None if region.is_closed else ReasonCode.TRUNCATED
            if self.cut and (
                partial is Partial.REFUSE or (partial is Partial.CLOSE and not region.is_between)
            ):
                continue
            try:
                for repaired in _repairs(region):
                    data = loads(repaired)
                    if data is not NO_JSON and self._accepts(data):
                        return self.best
            except RepairLimitError:
                self.is_over_limit = True
        return None

    def reason(self) -> ReasonCode:
        """Why there is no value although there were regions."""
        if any(not region.is_closed for region in self.malformed):
            return ReasonCode.TRUNCATED
        if self.best is not None:
            return reason_of(self.best[1])
        return ReasonCode.LIMIT_EXCEEDED if self.is_over_limit else ReasonCode.REPAIR_FAILED

    def _accepts(self, data: Any) -> bool:
        candidate = self.read(data)
        if self.best is None or _closeness(candidate) > _closeness(self.best):
            self.best = candidate
        return candidate[0] is not None


def _repairs(region: Region) -> Iterator[str]:
    """JSON that *region* may have been meant to be, the surest first."""
    if not region.is_closed:
        for keep_cut_string in (True, False):
            as_far_as_it_goes = closed(region.text, keep_cut_string=keep_cut_string)
            if as_far_as_it_goes is not None:
                yield as_far_as_it_goes
    repaired = mend(region.text)
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
