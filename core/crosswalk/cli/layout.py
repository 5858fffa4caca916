"""Tables of text: aligned columns for a file or a pipe, drawn to the width of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from crosswalk.cli.terminal import harmless, write_text

__all__ = ["write_table"]


def write_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write *rows* below *headings* to standard output; the cells are made harmless."""
    safe = [[harmless(cell) for cell in row] for row in (headings, *rows)]
    if sys.stdout.isatty():
        write_text(_drawn(safe))
    else:
        write_text(_aligned(safe))


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0  # nothing follows it
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _drawn(rows: list[list[str]]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in rows[0]:
        table.add_column(Text(heading), overflow="fold")
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    console = Console()
    with console.capture() as captured:
        console.print(table)
    return captured.get()
