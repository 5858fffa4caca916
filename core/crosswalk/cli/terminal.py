"""Standard output and standard error, which may show a model's text on a terminal.

A model's text never reaches a terminal raw: escape sequences, other control characters and bidirectional marks are shown
as ``\\uXXXX``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from crosswalk.cli.exits import OutputError
from crosswalk.text import HARMFUL_IN_JSON, escaped, harmless

__all__ = ["close_quietly", "harmless", "say", "write_json", "write_text"]


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
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
