"""``crosswalk table``: which wire field of a provider is which canonical field."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from crosswalk.cli.exits import FAILED, OK, UsageError
from crosswalk.cli.layout import write_table
from crosswalk.cli.pages import html_page, markdown_page
from crosswalk.cli.progress import Progress
from crosswalk.cli.sections import Section, endpoint_of, sections
from crosswalk.cli.sources import find_captures, read_capture
from crosswalk.cli.terminal import harmless, write_text
from crosswalk.cli.wording import headings, pieces
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import registry
from crosswalk.testing.captures import Capture

__all__ = ["run"]

_OWN = Path("tests/captures")


def run(arguments: argparse.Namespace) -> int:
    """Write the crosswalk of one provider; a leaf that is lost makes it fail.

    Raises:
        UsageError: there are no captures of it.
        PluginError: the provider cannot be used.
    """
    mapper = registry.mapper(arguments.provider)
    files = find_captures(arguments.paths or [_default_captures(arguments.provider)])
    with Progress("tracing", len(files)) as progress:
        found = sections(mapper, _of_endpoints(mapper, files, progress))
    if not found:
        raise UsageError(f"no captures of {arguments.provider}'s endpoints")
    command = f"crosswalk table {arguments.provider} --format {arguments.format}"
    if arguments.format == "markdown":
        write_text(markdown_page(mapper.info.title, command, found))
    elif arguments.format == "html":
        write_text(html_page(mapper.info.title, command, found))
    else:
        _write(found)
    return FAILED if any(row.is_lost for section in found for row in section.rows) else OK


def _default_captures(provider: str) -> str:
    """The captures that the provider's package ships, else those of the project in the working directory.

    Raises:
        UsageError: there are neither.
    """
    targets = [entry.target for entry in registry.providers() if entry.name == provider]
    for folder in [*_shipped(targets), _OWN / provider]:
        if folder.is_dir():
            return str(folder)
    raise UsageError(f"no captures of {provider} here; name some")


def _shipped(targets: Iterable[str]) -> Iterator[Path]:
    for target in targets:
        spec = find_spec(target.partition(":")[0].partition(".")[0])
        for place in (spec and spec.submodule_search_locations) or ():
            yield Path(place) / "captures"


def _of_endpoints(mapper: Mapper, files: list[Path], progress: Progress) -> Iterator[Capture]:
    skipped: dict[str, None] = {}
    endpoints = mapper.endpoints()
    for file in files:
        capture = read_capture(str(file))
        if capture.path is None or endpoint_of(capture, endpoints) is not None:
            yield capture
        else:
            skipped[str(capture.path)] = None
        progress.advance(1)
    if skipped:
        progress.say(f"left out, for they are no endpoints of the provider: {', '.join(skipped)}")


def _write(found: list[Section]) -> None:
    for number, section in enumerate(found):
        write_text(("\n" if number else "") + harmless(section.title) + "\n\n")
        rows = [[", ".join(map(str, cell)) for cell in pieces(row, section)] for row in section.rows]
        write_table(headings(section), rows)
