"""Standard output, standard error and exit statuses. A terminal may be shown a model's text.

A model's text never reaches a terminal raw: escape sequences, other control characters and bidirectional marks are shown
as ``\\uXXXX``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

from crosswalk.text import HARMFUL_IN_JSON, escaped, harmless as harmless

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
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
