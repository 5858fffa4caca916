"""``crosswalk table``: the canonical field of each wire field, for one provider or several side by side."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from crosswalk.cli.arguments import CAPTURES_HELP, add_paths
from crosswalk.cli.crosswalk_page import html_page
from crosswalk.cli.crosswalks import (
    FIELD_HEADINGS,
    Crosswalk,
    FieldRows,
    endpoint_of,
    headings,
    markdown_page,
    pieces,
    sections,
)
from crosswalk.cli.inputs import find_captures, read_capture
from crosswalk.cli.parser import Parser
from crosswalk.cli.terminal import (
    EXIT_STATUS,
    FAILED,
    OK,
    Progress,
    UsageError,
    harmless,
    say,
    write_table,
    write_text,
)
from crosswalk.errors import ConfigurationError, PluginError
from crosswalk.plugin.registry import Mapper, registry
from crosswalk.testing.captures import Capture
from crosswalk.testing.corpus import Corpus

_PROJECT_CAPTURES = Path("tests/captures")


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Write which path of the providers' answers lands in which canonical paths, found out by
            changing every leaf of captures and mapping again. {CAPTURES_HELP}""",
        epilog=f"""Without PATH the captures that the provider's package ships in a folder 'captures' are
            taken, else those in tests/captures/PROVIDER below the working directory, else those that come with Crosswalk.
            With several providers, PATH is a folder that has one for each, by its name. {EXIT_STATUS}""",
        examples=("crosswalk table --html > crosswalk.html",),
    )
    parser.add_argument(
        "provider",
        nargs="?",
        metavar="PROVIDER",
        help="the provider id, or several with commas between them (default: all that are installed)",
    )
    add_paths(parser, "captures, or folders of them")
    parser.add_argument(
        "--format", choices=("text", "markdown", "html"), default="text", help="(default: text)"
    )
    parser.add_argument(
        "--html",
        dest="format",
        action="store_const",
        const="html",
        help="the same as --format html: one page that needs no other file",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the crosswalks of the named providers, or of all. A lost leaf makes the command fail.

    Raises:
        UsageError: there are no captures of a named provider, or of any.
        PluginError: a named provider cannot be used.
    """
    provider_names = arguments.provider and list(dict.fromkeys(arguments.provider.split(",")))
    crosswalks: list[Crosswalk] = []
    has_failed = False
    for name in provider_names or registry.names():
        try:
            crosswalks.append(
                _crosswalk(name, _places(name, arguments.paths, is_alone=provider_names == [name]))
            )
        except (UsageError, PluginError) as error:
            if provider_names:
                raise
            say(f"left out: {error}")
            has_failed |= isinstance(error, PluginError)
    if not crosswalks:
        raise UsageError("no captures of any provider here; name a provider and its captures")
    command = " ".join(
        ["crosswalk table", *([arguments.provider] if provider_names else []), "--format", arguments.format]
    )
    if arguments.format == "markdown":
        write_text("\n".join(markdown_page(each, command) for each in crosswalks))
    elif arguments.format == "html":
        write_text(html_page(command, crosswalks))
    else:
        _write(crosswalks)
    rows = (row for each in crosswalks for section in each.sections for row in section.rows)
    return FAILED if has_failed or any(row.is_lost for row in rows) else OK


def _crosswalk(provider: str, places: list[str]) -> Crosswalk:
    mapper = registry.mapper(provider)
    files = find_captures(places or [_default_captures(provider)])
    field_rows = FieldRows(mapper)
    with Progress(f"tracing {provider}", len(files)) as progress:
        crosswalk_sections = sections(mapper, field_rows.counted(_of_endpoints(mapper, files, progress)))
    if not crosswalk_sections:
        raise UsageError(f"no captures of {provider}'s endpoints")
    return Crosswalk(provider, mapper.info.title, crosswalk_sections, field_rows.tables)


def _places(provider: str, paths: list[str], *, is_alone: bool) -> list[str]:
    """The folders with captures of *provider*: *paths*, or, with several providers, folders of its name in them."""
    return paths if is_alone else [str(Path(path, provider)) for path in paths]


def _default_captures(provider: str) -> str:
    """The captures that the provider's package ships, else those of the project in the working directory, else Crosswalk's.

    Raises:
        UsageError: there are none.
    """
    targets = [entry.target for entry in registry.providers() if entry.name == provider]
    folders = [*_shipped(targets), _PROJECT_CAPTURES / provider]
    with suppress(ConfigurationError):
        folders.append(Corpus.installed().captures / provider)
    for folder in folders:
        if folder.is_dir():
            return str(folder)
    raise UsageError(f"no captures of {provider} here; name some")


def _shipped(targets: Iterable[str]) -> Iterator[Path]:
    for target in targets:
        spec = find_spec(target.partition(":")[0].partition(".")[0])
        for folder in (spec and spec.submodule_search_locations) or ():
            yield Path(folder) / "captures"


def _of_endpoints(mapper: Mapper, files: list[Path], progress: Progress) -> Iterator[Capture]:
    skipped_paths: dict[str, None] = {}
    endpoints = mapper.endpoints()
    for file in files:
        capture = read_capture(str(file))
        if capture.path is None or endpoint_of(capture, endpoints) is not None:
            yield capture
        else:
            skipped_paths[str(capture.path)] = None
        progress.advance(1)
    if skipped_paths:
        progress.say(f"left out, not endpoints of the provider: {', '.join(skipped_paths)}")


def _write(crosswalks: list[Crosswalk]) -> None:
    tables: list[tuple[str, Sequence[str], list[list[str]]]] = []
    for each in crosswalks:
        provider = "" if len(crosswalks) == 1 else f"{each.name}: "
        for section in each.sections:
            rows = [[", ".join(map(str, cell)) for cell in pieces(row, section)] for row in section.rows]
            tables.append((provider + section.title, headings(section), rows))
        for title, fields in each.fields.items():
            shown_fields = [[field.path, field.place, str(field.captures)] for field in fields]
            tables.append((provider + title, FIELD_HEADINGS, shown_fields))
    for number, (title, heads, rows) in enumerate(tables):
        write_text(("\n" if number else "") + harmless(title) + "\n\n")
        write_table(heads, rows)
