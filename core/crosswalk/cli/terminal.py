"""Standard output, standard error, tables, a progress bar, and exit statuses."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Container, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from crosswalk.text import HARMFUL_IN_JSON, escaped, harmless as harmless

if TYPE_CHECKING:
    from rich.progress import Progress as Bar, TaskID

# -------------------------------------------------------------------------------- terminal
# Standard output, standard error and exit statuses. A terminal may be shown a model's text.
#
# A model's text never reaches a terminal raw: escape sequences, other control characters and bidirectional marks are
# shown
# as ``\uXXXX``.


OK: Final = 0
"""All went well."""
FAILED: Final = 1
"""Something was tried and failed. Writing the output counts too."""
USAGE: Final = 2
"""Nothing was tried, or nothing could be. The user has to change the command."""
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141
EXIT_STATUS: Final = "Exit status: 0 all went well, 1 something failed, 2 nothing could be tried."
"""The last sentence of most commands' help."""


class OutputError(Exception):
    """The output cannot be written, as on a full disk."""


class WorkerError(Exception):
    """A worker process died."""


class UsageError(Exception):
    """The user's command cannot be tried."""


def write_json(data: bytes) -> None:
    """Write a JSON text to standard output, in UTF-8 whatever the locale is. Harmful marks are escaped for a terminal."""
    if sys.stdout.isatty():
        data = HARMFUL_IN_JSON.sub(escaped, data.decode()).encode()
    _write(data)


def write_text(text: str) -> None:
    """Write lines to standard output. Their content has to be :func:`harmless` already."""
    _write(text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace"))


before_writing: Callable[[], None] | None = None
"""Called before something is written to a terminal, to remove the progress bar."""


def _write(data: bytes) -> None:
    if before_writing is not None and sys.stdout.isatty():
        before_writing()
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        close_quietly()
        raise OutputError(f"standard output: {error.strerror or type(error).__name__}") from None


def say(text: str) -> None:
    """Write a line to standard error."""
    print(harmless(text), file=sys.stderr, flush=True)


def close_quietly() -> None:
    """Let nothing more reach standard output. Its reader went away, and Python would complain at the end."""
    null_fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_fd, sys.stdout.fileno())
    os.close(null_fd)


# ---------------------------------------------------------------------------------- layout
# Tables of text: aligned columns for a file or a pipe, columns that fit the window for a terminal.
#
# A terminal's cell is folded between words and after the dots of a path, never within a name. If the columns still do
# not
# fit, each row becomes a block of lines.


_MAX_CELL_WIDTH: Final = 120
"""The widest cell, in characters, that widens its column in a file or a pipe. A heading is never wider."""
_GAP_WIDTH: Final = 3
"""Characters between two columns that are drawn."""


def write_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Container[int] = ()
) -> None:
    """Write *rows* below *headings* to standard output, with control characters escaped.

    The columns *numbers*, counted from 0, are aligned to the right.
    """
    safe_rows = [[harmless(cell) for cell in row] for row in (headings, *rows)]
    if sys.stdout.isatty():
        write_text(_drawn(safe_rows, numbers))
    else:
        write_text(_aligned(safe_rows, numbers))


def _aligned(rows: list[list[str]], numbers: Container[int]) -> str:
    # A cell that is much longer than the others moves the rest of its own row, and no other row.
    widths = [
        max(width for cell in column if (width := len(cell)) <= _MAX_CELL_WIDTH)
        for column in zip(*rows, strict=True)
    ]
    number_flags = [column in numbers for column in range(len(widths))]
    if not number_flags[-1]:
        widths[-1] = 0  # nothing follows it
    lines = (
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, number_flags, strict=True)
        )
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _drawn(rows: list[list[str]], numbers: Container[int]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    columns = [[_pieces(cell) for cell in column] for column in zip(*rows, strict=True)]
    widths = _widths(columns, console.width)
    if widths is None:
        return _row_by_row(rows, console.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, (heading, width) in enumerate(zip(rows[0], widths, strict=True)):
        table.add_column(Text(heading), min_width=width, justify="right" if index in numbers else "left")
    folded_rows = zip(
        *(
            [_folded(cell, width) for cell in column[1:]]
            for column, width in zip(columns, widths, strict=True)
        ),
        strict=True,
    )
    for row in folded_rows:
        table.add_row(*(Text("\n".join(lines)) for lines in row))
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def _widths(columns: list[list[list[str]]], room: int) -> list[int] | None:
    """The width of each column: its longest cell if there is *room*, or ``None`` if no columns fit."""
    least_widths = [max(len(piece.rstrip()) for cell in column for piece in cell) for column in columns]
    wanted_widths = [max(len("".join(cell)) for cell in column) for column in columns]
    spare_width = room - _GAP_WIDTH * (len(columns) - 1) - sum(least_widths)
    if spare_width < 0:
        return None
    widths = list(least_widths)
    # The columns that want little more get it first.
    for columns_left, index in zip(
        range(len(columns), 0, -1),
        sorted(range(len(columns)), key=lambda position: wanted_widths[position] - least_widths[position]),
        strict=True,
    ):
        extra_width = min(wanted_widths[index] - least_widths[index], spare_width // columns_left)
        widths[index] += extra_width
        spare_width -= extra_width
    return widths


def _pieces(cell: str) -> list[str]:
    """*cell* in pieces that stay whole: it may be folded after a space, dot, slash or hyphen, and before a bracket."""
    return re.split(r"(?<=[ ./-])|(?=\[)", cell)


def _folded(pieces: list[str], width: int) -> list[str]:
    """The lines of a cell. Only a line of one piece can be wider than *width*."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
    return lines


def _row_by_row(rows: list[list[str]], width: int) -> str:
    """Each row as a block of lines, with the heading before each cell. Empty cells are left out."""
    headings = rows[0]
    indent = max(map(len, headings)) + 2
    blocks = []
    for row in rows[1:]:
        lines = []
        for heading, cell in zip(headings, row, strict=True):
            if cell:
                first_line, *other_lines = _folded(_pieces(cell), width - indent)
                lines += [f"{heading:<{indent}}{first_line}", *(" " * indent + line for line in other_lines)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


# -------------------------------------------------------------------------------- progress
# A progress bar for long work, shown on a terminal.


_LONG: Final = 1.0
"""The seconds of work after which the bar appears."""


class Progress:
    """Progress of the work: a bar on standard error after a while, nothing if that is not a terminal.

    It disappears while something else is written to the same terminal, and comes back later.

    Args:
        what: the work, in a word.
        total: its size, or ``None`` if unknown.
        in_bytes: whether the size is in bytes, so that the rate is shown, too.
    """

    def __init__(self, description: str, total: int | None, *, in_bytes: bool = False) -> None:
        self._description = description
        self._total = total
        self._counts_bytes = in_bytes
        self._done_size = 0
        self._is_visible = sys.stderr.isatty()
        self._start_time = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        global before_writing
        before_writing = self._hide
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global before_writing
        before_writing = None
        self._hide()

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._start_time = time.monotonic()

    def advance(self, size: int) -> None:
        """Count *size* more as done."""
        self._done_size += size
        if not self._is_visible:
            return
        if self._bar is None and time.monotonic() - self._start_time >= _LONG:
            self._bar = self._begin()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done_size)

    def say(self, text: str) -> None:
        """Write a line to standard error, above the bar if there is one."""
        if self._bar is None:
            say(text)
        else:
            self._bar.console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)

    def _begin(self) -> Bar:
        from rich.console import Console
        from rich.progress import Progress as Bar, TransferSpeedColumn

        rate_columns = [TransferSpeedColumn()] if self._counts_bytes else []
        bar = Bar(*Bar.get_default_columns(), *rate_columns, console=Console(stderr=True), transient=True)
        self._task = bar.add_task(self._description, total=self._total, completed=self._done_size)
        bar.start()
        return bar
