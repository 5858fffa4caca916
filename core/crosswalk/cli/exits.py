"""Exit statuses, and the exceptions that lead to them."""

from __future__ import annotations

from typing import Final

__all__ = [
    "EXIT_STATUS",
    "FAILED",
    "INTERRUPTED",
    "OK",
    "PIPE_CLOSED",
    "USAGE",
    "OutputError",
    "UsageError",
    "WorkerError",
]

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
