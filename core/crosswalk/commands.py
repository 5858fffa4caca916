"""Everything that the author of a command needs, in one module; a command imports nothing of ``crosswalk.cli``.

A command is a module, or any object, registered under the entry-point group ``crosswalk.commands``; the entry's name is the
command's. It has two functions, and its docstring is what ``--help`` says::

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*")

    def run(arguments: argparse.Namespace) -> int:
        return OK

It is imported when it is the command that was typed, and not before: import there what takes long. ``run`` gives the exit
status. :class:`UsageError` says in a line what cannot be tried (status 2); any other exception is reported in a line that
names the package. ``arguments.settings`` holds the settings. A name that Crosswalk has itself cannot be taken.

Who stores answers in a way of his own lets ``crosswalk diff`` compare them through the group ``crosswalk.stored``: the
entry's name is that of a file which every such folder has, its value a :class:`Keeper`.
"""

from __future__ import annotations

import argparse
from typing import Protocol

from crosswalk.cli.arguments.values import (
    http_status as http_status,
    whole_number as whole_number,
    zoned_time as zoned_time,
)
from crosswalk.cli.exits import (
    FAILED as FAILED,
    OK as OK,
    USAGE as USAGE,
    UsageError as UsageError,
)
from crosswalk.cli.logs.comparing import Comparison as Comparison
from crosswalk.cli.logs.keepers import Keeper as Keeper
from crosswalk.cli.logs.layouts import (
    add_layout_arguments as add_layout_arguments,
    layout_from as layout_from,
)
from crosswalk.cli.logs.many import guessed as guessed
from crosswalk.cli.logs.reading import (
    Provider as Provider,
    provider_of as provider_of,
)
from crosswalk.cli.logs.report_rows import ReportRow as ReportRow
from crosswalk.cli.logs.stored import Failure as Failure
from crosswalk.cli.progress import Progress as Progress
from crosswalk.cli.terminal import say as say, write_text as write_text
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
    "add_layout_arguments",
    "counted",
    "guessed",
    "http_status",
    "layout_from",
    "provider_of",
    "say",
    "whole_number",
    "write_text",
    "written",
    "zoned_time",
]


class Command(Protocol):
    """What stands behind an entry of the group ``crosswalk.commands``."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say what can be said to it; ``paths`` may stand on both sides of an option."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it, and give the exit status: :data:`OK` or :data:`FAILED`."""
