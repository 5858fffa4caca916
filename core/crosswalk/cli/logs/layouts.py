"""``--layout`` and ``--field``: the places of facts in the lines of a log."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from crosswalk.cli.terminal import UsageError

if TYPE_CHECKING:
    from crosswalk.records import Layout  # loaded where there is a log


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
        help="where in a line one fact stands, as in response=log.answer or created=ts@ms; may be repeated",
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
