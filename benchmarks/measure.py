"""Medians and ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Above", "medians", "print_above", "print_table"]


class Above(NamedTuple):
    """A row that costs more than it may.

    Attributes:
        row: which.
        times: how many times the floor it costs.
        bar: how many it may.
        least: how many it costs to do the least, measured in the same run; ``None`` where nobody has written that.
        why: what stands in the way.
    """

    row: str
    times: float
    bar: float
    least: float | None
    why: str


def medians(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """CPU seconds of each function: the median over *rounds* in which all take their turns, after one to warm up."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            before = time.process_time()
            function()
            spent = time.process_time() - before
            if number:
                times[name].append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}


def print_table(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print *rows* in columns, the first to the left, the others to the right."""
    print(f"\n{title}")
    widths = [max(len(row[n]) for row in (header, *rows)) for n in range(len(header))]
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells))


def print_above(rows: Sequence[tuple[str, Above]]) -> None:
    """Print which rows of which part are above their bar, and what stands in the way of each."""
    reasons = list(dict.fromkeys(one.why for _, one in rows))
    cells = []
    for part, one in rows:
        least = "" if one.least is None else f"{one.least:.2f}"
        why = f"({reasons.index(one.why) + 1})"
        cells.append((f"{part}: {one.row}", f"{one.times:.2f}", f"{one.bar:g}", least, why))
    header = ("", "measured", "bar", "least", "why")
    print_table("rows above their bar", header, cells or [("none", "", "", "", "")])
    for number, why in enumerate(reasons, start=1):
        print(f"\n({number}) {why}.")
