"""The command line, ``crosswalk``: maps recorded answers to canonical ones, and asks servers.

Data goes to standard output, messages to standard error. The exit status is 0 if all went well, 1 if something was tried
and failed (writing the output included), and 2 if nothing was tried: the command line names something that does not
exist, no file can be read, the provider is unknown, or the settings are wrong. It is 130 after Ctrl-C and 141 when the
reader of the output went away.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from crosswalk.cli.parser import parse as parse_arguments  # crosswalk.cli.parse is a command
from crosswalk.cli.terminal import (
    FAILED,
    INTERRUPTED,
    PIPE_CLOSED,
    USAGE,
    OutputError,
    UsageError,
    WorkerError,
    close_quietly,
    say,
)
from crosswalk.config import apply_settings, load_settings
from crosswalk.plain_errors import ConfigurationError, CrosswalkError, PluginError

__all__ = ["main"]

_GC_THRESHOLD = 250_000
"""The number of new objects after which Python looks for garbage. A command makes many objects and hardly any garbage in
cycles. Loading the program makes about 80,000, and all of them stay."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments after the program's name, or ``None`` for the process's own.

    Returns:
        The exit status.
    """
    _open_closed_streams()
    thresholds = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD, *thresholds[1:])
    try:
        return _main(argv)
    finally:
        if argv is None:
            gc.freeze()  # the process ends, so no garbage needs to be found
        gc.set_threshold(*thresholds)


def _open_closed_streams() -> None:
    """Replace a missing standard stream: by an empty input, an output that refuses everything, and discarded messages."""
    # An output that is open for reading only refuses every write, as a closed one does.
    for name, mode, flags in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _main(argv: Sequence[str] | None) -> int:
    name = "crosswalk"
    try:
        try:
            arguments = parse_arguments(argv)
        except SystemExit as done:  # --help, --version, or a wrong command line
            return int(done.code or 0)
        name = f"crosswalk {arguments.command}"
        arguments.settings = load_settings()
        apply_settings(arguments.settings)
        return int(arguments.run(arguments))
    except PluginError as error:
        say(f"{name if ' ' in name else f'crosswalk {error.plugin}'}: {error}")
        return USAGE
    except (UsageError, ConfigurationError) as error:
        say(f"{name}: {error}")
        return USAGE
    except (OutputError, WorkerError) as error:
        say(f"{name}: {error}")
        return FAILED
    except CrosswalkError as error:
        say(f"{name}: {type(error).__name__}: {error}")
        return FAILED
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        close_quietly()
        return PIPE_CLOSED
