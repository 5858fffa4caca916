"""Everything that the author of a command needs, in one module. A command imports nothing from ``crosswalk.cli``.

A command is a module, or any object, registered under the entry-point group ``crosswalk.commands``. The name of the
entry is the name of the command. It has two functions, and its docstring is the text of ``--help``::

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*")

    def run(arguments: argparse.Namespace) -> int:
        return OK

Crosswalk imports it only if it is the command that was typed. ``run`` returns the exit status. :class:`UsageError` is for
arguments that cannot be tried (status 2). Any other exception is reported in one line that names the package.
``arguments.settings`` holds the settings. The names of Crosswalk's own commands are taken.

A package that stores answers in a format of its own can let ``crosswalk diff`` compare them, through the entry-point group
``crosswalk.stored``. The name of the entry is the name of a file or folder in every such folder, and its value is a
:class:`Keeper`.
"""

from __future__ import annotations

import argparse
from typing import Protocol

from crosswalk.cli.answers import (
    Provider as Provider,
    guessed as guessed,
    left_out as left_out,
    processes as processes,
    provider_of as provider_of,
    vendor_of as vendor_of,
)
from crosswalk.cli.arguments import (
    add_layout_arguments as add_layout_arguments,
    http_status as http_status,
    layout_from as layout_from,
    whole_number as whole_number,
    zoned_time as zoned_time,
)
from crosswalk.cli.report_rows import ReportRow as ReportRow, row_of as row_of
from crosswalk.cli.stored import Comparison as Comparison, Failure as Failure, Keeper as Keeper
from crosswalk.cli.terminal import (
    FAILED as FAILED,
    OK as OK,
    USAGE as USAGE,
    Progress as Progress,
    UsageError as UsageError,
    WorkerError as WorkerError,
    say as say,
    write_text as write_text,
)
from crosswalk.drafts import written as written
from crosswalk.text import counted as counted

__all__ = [
    "FAILED",
    "OK",
    "USAGE",
    "Command",
    "Comparison",
    "Failure",
    "Keeper",
    "Progress",
    "Provider",
    "ReportRow",
    "UsageError",
    "WorkerError",
    "add_layout_arguments",
    "counted",
    "guessed",
    "http_status",
    "layout_from",
    "left_out",
    "processes",
    "provider_of",
    "row_of",
    "say",
    "vendor_of",
    "whole_number",
    "write_text",
    "written",
    "zoned_time",
]


class Command(Protocol):
    """The interface of an entry of the group ``crosswalk.commands``."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments. ``paths`` may be given before and after options."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command, and return the exit status: :data:`OK` or :data:`FAILED`."""
