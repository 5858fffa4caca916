"""The arguments that several commands have, and types that check values on a command line."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Final

from crosswalk.cli.terminal import UsageError

if TYPE_CHECKING:
    from crosswalk.records import Layout


# ---------------------------------------------------------------------------------- values
# Types for :mod:`argparse` that check the values on a command line.


def whole_number(text: str) -> int:
    """A whole number above 0.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"not a whole number above 0: {text!r}")
    return int(text)


def http_status(text: str) -> int:
    """An HTTP status.

    Raises:
        ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and 100 <= int(text) <= 999):
        raise argparse.ArgumentTypeError(f"not an HTTP status: {text!r}")
    return int(text)


def zoned_time(text: str) -> datetime:
    """A time in ISO 8601, with its zone.

    Raises:
        ArgumentTypeError: it is something else, or has no zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(f"not an ISO 8601 time with a zone: {text!r}")
    return time


# --------------------------------------------------------------------------------- layouts
# ``--layout`` and ``--field``: the places of facts in the lines of a log.


def add_layout_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a log's layout."""
    parser.add_argument(
        "--layout",
        metavar="NAME",
        help="the layout of the log's lines, or your own in a file that ends in .toml (default: found out)",
    )
    parser.add_argument(
        "--field",
        action="append",
        default=[],
        type=_field,
        metavar="NAME=PATH",
        help="the path of a fact in a line, as in response=log.answer or created=ts@ms; may be repeated",
    )


def layout_from(arguments: argparse.Namespace) -> Layout | None:
    """The layout that *arguments* name, or ``None`` to detect the layout of each line.

    Raises:
        ConfigurationError: it does not exist, or cannot be read.
        UsageError: it names a path twice.
    """
    if arguments.layout is None and not arguments.field:
        return None
    from crosswalk.records import load_layout, with_fields

    layout = None if arguments.layout is None else load_layout(arguments.layout)
    fields = dict(arguments.field)
    if len(fields) < len(arguments.field):
        raise UsageError("--field: the same field twice")
    return with_fields(layout, fields) if fields else layout


def _field(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("a field is a name, = and a path, as in created=ts@ms")
    return name, path


# ------------------------------------------------------------------------------------ reading
# The arguments of the commands that read recorded answers.


CAPTURES_HELP: Final = """\
A capture is CASE.response.json (or .sse, .ndjson, .txt); further facts are read from
MANIFEST.jsonl or CASE.meta.json next to it. Folders are searched; requests and hidden folders are left
out.
"""


def add_reading(
    parser: argparse.ArgumentParser, or_else: str = "the record's provider, or detected from the answer"
) -> None:
    """Add the arguments of every command that reads many answers."""
    add_paths(parser, "files and folders; '-' or nothing for standard input")
    add_provider(parser, or_else=or_else)
    add_status(parser)
    parser.add_argument(
        "--records",
        action=argparse.BooleanOptionalAction,
        help="read JSON Lines of recorded answers (default: where a file's name ends in .jsonl)",
    )
    add_layout_arguments(parser)
    add_jobs(parser)
    parser.add_argument(
        "--unknown",
        choices=("raise", "keep"),
        default="raise",
        help="refuse an event or finish word that no mapping knows, or keep it (default: raise)",
    )


def add_paths(parser: argparse.ArgumentParser, help: str) -> None:
    """Add the paths of captures or logs."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help=help)


def add_provider(parser: argparse.ArgumentParser, *, or_else: str) -> None:
    """Add the provider. *or_else* says which one it is by default."""
    parser.add_argument("--provider", metavar="NAME", help=f"the provider id (default: {or_else})")


def add_status(parser: argparse.ArgumentParser) -> None:
    """Add the HTTP status of the answers."""
    parser.add_argument(
        "--status",
        type=http_status,
        metavar="N",
        help="the HTTP status (default: the status in the manifest or the record, else 200)",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the number of processes."""
    parser.add_argument(
        "--jobs",
        type=whole_number,
        default=1,
        metavar="N",
        help="processes to use; what is written is the same (default: 1)",
    )
