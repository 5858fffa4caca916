"""How many cells may still be wrong. The numbers may only fall."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .judge import FORMATS, OWN, WRONG, Finding, arrived_in_place, sampled

__all__ = ["ALLOWED", "KINDS", "ONE_OF", "failures", "faults", "limits_of", "lower"]

ALLOWED: Final = Path(__file__).parent / "allowed.json"
"""The limits: by kind of fault and by format, for all rows and for the sample."""
ONE_OF: Final = 20
"""The sample has one of so many rows."""

Limits = dict[str, dict[str, dict[str, int]]]
"""By extent (``all`` or ``sample``), then by fault, then by the client's format. What is not there is 0."""


def faults(found: Iterable[Finding]) -> Iterator[tuple[str, Finding]]:
    """Yield each wrong cell with its fault. A cell that is not where the target has a place for it is one of its own."""
    for one in found:
        if one.verdict in WRONG:
            yield str(one.verdict), one
        if OWN[one.row.format] != one.target:
            if one.place is not None and not arrived_in_place(one):
                yield NOT_IN_PLACE, one
            if one.refuses and one.is_hint:
                yield HINT_REFUSED, one


NOT_IN_PLACE: Final = "not in its place"
HINT_REFUSED: Final = "hint is an error"
KINDS: Final = (*map(str, WRONG), NOT_IN_PLACE, HINT_REFUSED)
"""All faults: what is right has no limit."""


def limits_of(found: Iterable[Finding]) -> Limits:
    """Return the limits that *found*, the findings on all rows, would just hold."""
    every = list(found)
    names = {id(row) for row in sampled((one.row for one in every), ONE_OF)}
    extents = {"all": every, "sample": [one for one in every if id(one.row) in names]}
    limits: Limits = {}
    for extent, some in extents.items():
        counts = Counter((fault, one.row.format) for fault, one in faults(some))
        limits[extent] = {
            kind: {format: counts[kind, format] for format in FORMATS if counts[kind, format]}
            for kind in KINDS
        }
    return limits


def lower(one: Limits, other: Limits) -> Limits:
    """Return the lower of both limits for each fault and format."""

    def both(extent: str, kind: str) -> dict[str, int]:
        old, new = (limits[extent].get(kind, {}) for limits in (one, other))
        return {format: least for format in FORMATS if (least := min(old.get(format, 0), new.get(format, 0)))}

    return {extent: {kind: both(extent, kind) for kind in KINDS} for extent in one}


def failures(found: Iterable[Finding], extent: str) -> list[str]:
    """Return where *found* has more wrong cells than are allowed, with some of them."""
    allowed: Limits = json.loads(ALLOWED.read_text(encoding="utf-8"))
    cells: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for fault, one in faults(found):
        cells[fault, one.row.format].append(one)
    lines = []
    for (fault, format), wrong in cells.items():
        most = allowed[extent].get(fault, {}).get(format, 0)
        if len(wrong) > most:
            some = "; ".join(f"{one.row.name} to {one.target} ({one.note})" for one in wrong[:5])
            lines.append(f"{format}: {fault} {len(wrong)} times, and {most} are allowed, as {some}")
    return lines
