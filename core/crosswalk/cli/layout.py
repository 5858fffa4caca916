"""Tables of text: aligned columns for a file or a pipe; on a terminal drawn to its width, or row by row where it is narrow.

No word is ever broken in the middle: a path that stands in two halves can be neither read nor copied.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Final

from crosswalk.cli.terminal import harmless, write_text

__all__ = ["write_table"]

_WIDEST: Final = 120
"""Columns for a file or a pipe are aligned by cells that have so many characters at most; a heading never has more."""
_GAP: Final = 3
"""Characters between two columns that are drawn."""


def write_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write *rows* below *headings* to standard output; the cells are made harmless."""
    safe = [[harmless(cell) for cell in row] for row in (headings, *rows)]
    if sys.stdout.isatty():
        write_text(_drawn(safe))
    else:
        write_text(_aligned(safe))


def _aligned(rows: list[list[str]]) -> str:
    # A cell that is much longer than the others moves what follows it in its own row, and not in all of them.
    widths = [
        max(width for cell in column if (width := len(cell)) <= _WIDEST) for column in zip(*rows, strict=True)
    ]
    widths[-1] = 0  # nothing follows it
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _drawn(rows: list[list[str]]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    widths = [max(map(_longest_word, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + _GAP * (len(widths) - 1) > console.width:
        return _row_by_row(rows, console.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading, width in zip(rows[0], widths, strict=True):
        table.add_column(Text(heading), min_width=width)
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _row_by_row(rows: list[list[str]], width: int) -> str:
    """Each row as lines of its own, a heading and what stands below it; empty cells are left out."""
    headings = rows[0]
    indent = max(map(len, headings)) + 2
    blocks = []
    for row in rows[1:]:
        lines = []
        for heading, cell in zip(headings, row, strict=True):
            if cell:
                wrapped = wrap(cell, max(width - indent, 1), break_long_words=False, break_on_hyphens=False)
                lines += [f"{heading:<{indent}}{wrapped[0]}", *(" " * indent + more for more in wrapped[1:])]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)
