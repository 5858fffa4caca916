"""Medians and ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

__all__ = ["medians", "print_table"]


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
