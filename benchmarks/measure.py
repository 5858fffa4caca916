"""Medians and ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

__all__ = ["Above", "is_met", "medians", "print_above", "print_table", "verdict"]


class Above(NamedTuple):
    """A row that costs more than its limit.

    Attributes:
        row: the title of the row.
        times: its ratio to the floor.
        bar: the ratio that is wanted.
    """

    row: str
    times: float
    bar: float


TOLERANCE: Final = 1.25
"""A bar that is missed by less than a quarter is met: ratios move by a fifth from run to run."""


def is_met(times: float, bar: float) -> bool:
    """Whether a ratio of *times* meets its *bar*."""
    return times < TOLERANCE * bar


def verdict(times: float, bar: float | None) -> tuple[str, str]:
    """Return two cells: *bar*, and whether *times* meets it. They are empty if there is no bar."""
    if bar is None:
        return "", ""
    return f"{bar:g}", "met" if is_met(times, bar) else "MISSED"


def medians(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the CPU seconds of each function: the median over *rounds* of all in turn, after a warm-up round."""
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
    """Print the rows of each part that are above their bar."""
    cells = [(f"{part}: {one.row}", f"{one.times:.2f}", f"{one.bar:g}") for part, one in rows]
    print_table("rows above their bar", ("", "measured", "bar"), cells or [("none", "", "")])
