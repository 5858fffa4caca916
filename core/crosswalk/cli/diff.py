"""``crosswalk diff``: maps stored answers again, and shows the differences."""

from __future__ import annotations

import argparse
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.cli.answers import Failed, MappingTally, failed, total_size
from crosswalk.cli.arguments import CAPTURES_HELP, add_reading
from crosswalk.cli.inputs import (
    InputFault,
    InputItem,
    InputSource,
    RecordedAnswer,
    find_sources,
    records_of,
)
from crosswalk.cli.parser import Parser
from crosswalk.cli.stored import (
    Comparison,
    Failure,
    Outcome,
    between,
    keeper_of,
    outcome_of,
    provider_of_both,
    read_accepted,
    read_stored,
    stored_path,
    write_accepted,
)
from crosswalk.cli.terminal import FAILED, OK, Progress, UsageError, harmless, write_json, write_text
from crosswalk.codec import Difference
from crosswalk.drafts import written
from crosswalk.errors import CanonicalJSONError
from crosswalk.plugin.registry import registry
from crosswalk.testing.changes import ChangeKind, shown
from crosswalk.text import counted
from crosswalk.types.json import load_json

# ------------------------------------------------------------------------------- diff page
# The findings of ``crosswalk diff`` as an HTML page that is complete in itself.


_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 80rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8884; }
th { position: sticky; top: 0; background: Canvas; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
del { color: #b3261e; text-decoration: none; } ins { color: #1b7f3b; text-decoration: none; }
tr.accepted { opacity: .55; }
small { display: block; }
@media (prefers-color-scheme: dark) { del { color: #ff8a80; } ins { color: #7fdc9b; } }
@media (max-width: 40rem) { thead { display: none; } td { display: block; border: 0; } }
"""


def write_page(path: str, counts: Mapping[str, int], kinds: Sequence[ChangeKind]) -> None:
    """Write the page to the file *path*, replacing an earlier one.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        with written(Path(path), replace=True) as out:
            out.write(diff_page(counts, kinds).encode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or type(error).__name__}") from None


def diff_page(counts: Mapping[str, int], kinds: Sequence[ChangeKind]) -> str:
    """The page.

    Args:
        counts: the number of answers compared, and of each result by its name.
        kinds: every kind of change, in the order in which they are shown.
    """
    tally = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items())
    heads = "".join(f"<th>{head}</th>" for head in ("answers", "provider", "field", "change", "for example"))
    rows = "\n".join(map(_row, kinds)) or '<tr><td colspan="5">Nothing differs.</td></tr>'
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What changed</title>
<style>{_STYLE}</style></head>
<body>
<h1>What changed</h1>
<p>Answers: {_text(tally)}.</p>
<table><thead><tr>{heads}</tr></thead><tbody>
{rows}
</tbody></table>
</body>
</html>
"""


def _row(kind: ChangeKind) -> str:
    another_prefix = "another " if kind.before == kind.after else ""
    change = f"<del>{_text(kind.before)}</del> → <ins>{_text(another_prefix + kind.after)}</ins>"
    accepted_note = "<small>accepted</small>" if kind.is_accepted else ""
    examples = "".join(f"<small><code>{_text(example)}</code></small>" for example in kind.examples)
    return (
        f'<tr class="{"accepted" if kind.is_accepted else "new"}"><td class="n">{kind.captures}</td>'
        f"<td>{_text(kind.provider)}</td><td><code>{_text(kind.path)}</code></td>"
        f"<td>{change}{accepted_note}</td><td>{examples}</td></tr>"
    )


def _text(text: str) -> str:
    return html.escape(harmless(text))


# ------------------------------------------------------------------------------------ diff
# ``crosswalk diff``: maps stored answers again, and shows the differences.


_MAX_SHOWN_DIFFERENCES: Final = 20
"""The most differences of one capture that are shown; all of them are counted."""


def add_arguments(parser: Parser) -> None:
    """Describe the command and add its arguments."""
    parser.describe(
        description=f"""Map recorded answers again and show, field by field, what differs from the canonical JSON
            that was stored: what an upgrade changes on your own log. {CAPTURES_HELP}
            A record is a line of JSON Lines with its stored "response" in it. Ids and times that were made up are
            no difference. Values are shortened.""",
        epilog="Exit status: 0 nothing differs but what is accepted, 1 something does or could not be compared, 2 "
        "nothing could be compared.",
        examples=(
            "crosswalk normalize log/ --output stored/",
            "crosswalk diff log/ --stored stored/",
        ),
    )
    add_reading(parser, or_else="the record's provider, or the one that mapped the stored answer")
    parser.add_argument(
        "--stored",
        metavar="DIR",
        help="the folder that crosswalk normalize --output wrote for the same paths, or crosswalk batch (then without "
        "PATH, or with the folder of another batch), or one of snapshots",
    )
    parser.add_argument("--summary", action="store_true", help="leave out the lines for each capture")
    parser.add_argument(
        "--accept", metavar="FILE", help="changes that count as none, as --write-accepted writes them"
    )
    parser.add_argument(
        "--write-accepted",
        metavar="FILE",
        help="accept every change: write them there, for --accept; differences then do not make it fail",
    )
    parser.add_argument("--html", metavar="FILE", help="write the changes there too, as a page")
    parser.add_argument(
        "--json",
        action="store_true",
        help="write JSON Lines: one for each capture that differs, then the summary",
    )


def run(arguments: argparse.Namespace) -> int:
    """Map every answer again and write its differences from the stored one. Any difference makes the command fail.

    Raises:
        UsageError: a file is missing, or nothing can be compared.
        PluginError: the named provider cannot be used.
    """
    if arguments.provider is not None:
        registry.mapper(arguments.provider)
    if arguments.stored is None and (folder := _kept_earlier(arguments.paths)) is not None:
        arguments.stored, arguments.paths = folder, arguments.paths[1:]
    stored_folder = None if arguments.stored is None else Path(arguments.stored)
    if stored_folder is not None:
        _look_into(stored_folder)
    comparison = Comparison(frozenset() if arguments.accept is None else read_accepted(arguments.accept))
    keeper = None if stored_folder is None else keeper_of(stored_folder)
    files = _kept_in_both(arguments.paths) if stored_folder is None else []
    if files:
        uncompared_count = _compare_files(arguments, files, comparison)
    elif keeper is not None and stored_folder is not None:
        uncompared_count = keeper.compare(stored_folder, arguments, comparison)
    else:
        uncompared_count = _compare_all(arguments, stored_folder, comparison)
    if not comparison.compared:
        raise UsageError("nothing could be compared")
    _write_summary(arguments, comparison, uncompared_count)
    if arguments.write_accepted is not None:
        return FAILED if uncompared_count else OK
    return FAILED if comparison.different or uncompared_count else OK


def _kept_earlier(paths: Sequence[str]) -> str | None:
    """The first of two *paths* if both are folders that a batch wrote, which are compared with each other."""
    kept_flags = [os.path.isdir(path) and keeper_of(Path(path)) is not None for path in paths]
    return paths[0] if kept_flags == [True, True] else None


_Pair: TypeAlias = tuple[Path | None, Path | None]


def _kept_in_both(paths: Sequence[str]) -> list[_Pair]:
    """The files of two folders that ``normalize --output`` wrote, in pairs: those with the same name, or the only ones.

    Returns no pair for anything else.
    """
    if len(paths) != 2 or not all(map(os.path.isdir, paths)):
        return []
    first_files, second_files = (
        {file.relative_to(folder): file for file in Path(folder).rglob("*.json*") if file.is_file()}
        for folder in paths
    )
    if not all(
        next(_stored_in(file), None) is not None for file in [*first_files.values(), *second_files.values()]
    ):
        return []
    if len(first_files) == len(second_files) == 1:
        return [*zip(first_files.values(), second_files.values(), strict=True)]
    if first_files.keys().isdisjoint(second_files):
        return []
    return [(first_files.get(name), second_files.get(name)) for name in sorted({*first_files, *second_files})]


def _stored_in(file: Path | None) -> Iterator[Outcome | None]:
    """Yield the stored answers in *file*, a log with a line each or one answer. ``None`` is one that cannot be read."""
    if file is None:
        return
    with file.open("rb") as stream:
        for json_text in [stream.read()] if file.suffix == ".json" else stream:
            try:
                yield read_stored(load_json(json_text))
            except (orjson.JSONDecodeError, CanonicalJSONError):
                yield None


def _compare_files(arguments: argparse.Namespace, files: Sequence[_Pair], comparison: Comparison) -> int:
    """Compare the answers of two folders by their order in each file; return the number that could not be compared."""
    uncompared_count = 0
    for first_file, second_file in files:
        for number, (before, after) in enumerate(
            zip_longest(_stored_in(first_file), _stored_in(second_file)), 1
        ):
            if before is None or after is None:
                uncompared_count += 1
                continue
            place = str(second_file) if str(second_file).endswith(".json") else f"{second_file}:{number}"
            differences = between(before, after)
            comparison.count(place, provider_of_both(before, after), differences)
            if differences and not arguments.summary:
                _write(place, differences, as_json=arguments.json)
    return uncompared_count


def _look_into(folder: Path) -> None:
    try:
        os.scandir(folder).close()
        os.stat(folder / ".")
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"no such folder: {folder}") from None
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or type(error).__name__}") from None


def _compare_all(arguments: argparse.Namespace, stored_folder: Path | None, comparison: Comparison) -> int:
    """Compare every answer that *arguments* name; return the number that could not be compared."""
    sources, faults = find_sources(arguments.paths, records=records_of(arguments), without=stored_folder)
    sources = [_with_stored(source, stored_folder) for source in sources]
    with Progress("comparing", total_size(sources)) as progress:
        tally = MappingTally(progress, "compared")
        work = partial(_compared, arguments, stored_folder)
        for place, provider, differences in tally.results(sources, faults, arguments, work):
            comparison.count(place, provider, differences)
            if differences and not arguments.summary:
                _write(place, differences, as_json=arguments.json)
    return tally.failed


def _with_stored(source: InputSource, stored_folder: Path | None) -> InputSource:
    """*source*, or the log that was made of it and has the stored answers."""
    if (
        stored_folder is not None
        and source.records
        and (file := stored_folder / stored_path(source)).is_file()
    ):
        return InputSource(str(file), source.records)
    return source


class _Unstored(Exception):
    """An answer has no stored form, or it cannot be read."""


def _compared(
    arguments: argparse.Namespace,
    stored_folder: Path | None,
    item: InputItem,
    answer: RecordedAnswer | InputFault,
) -> Iterator[tuple[str, str, list[Difference]] | Failed]:
    """The place of *answer*, its provider and its differences from the stored form; or why it cannot be compared."""
    if isinstance(answer, InputFault):
        yield failed(answer)
        return
    try:
        before = _before(answer, None if stored_folder is None else stored_folder / stored_path(item.source))
    except _Unstored as error:
        yield Failed(answer.label, str(error), "not compared")
        return
    stored_response = before.partial if isinstance(before, Failure) else before
    if answer.provider is None and stored_response is not None:
        # Map it as it was mapped then. Without a stored provider, detect it again.
        metadata = stored_response.metadata
        answer.provider = metadata.provider_id
        answer.is_guess = "metadata.provider_id" in metadata.provenance
    after = outcome_of(answer, arguments)
    yield answer.label, provider_of_both(before, after), between(before, after)


def _write(place: str, differences: list[Difference], *, as_json: bool) -> None:
    if as_json:
        _write_line(
            {"place": harmless(place), "differences": [_plain(difference) for difference in differences]}
        )
        return
    for difference in differences[:_MAX_SHOWN_DIFFERENCES]:
        before, after = shown(difference)
        write_text(harmless(f"{place}: {difference.place}: {before} -> {after}") + "\n")
    if len(differences) > _MAX_SHOWN_DIFFERENCES:
        more_text = counted(len(differences) - _MAX_SHOWN_DIFFERENCES, "more difference")
        write_text(harmless(f"{place}: and {more_text}") + "\n")


def _write_summary(arguments: argparse.Namespace, comparison: Comparison, uncompared_count: int) -> None:
    """Write the number of answers that differ, and every kind of change with its captures."""
    kinds = comparison.summary.kinds()
    counts = {
        "compared": comparison.compared,
        "different": comparison.different,
        "accepted": comparison.accepted,
        "same": comparison.compared - comparison.different - comparison.accepted,
        "not_compared": uncompared_count,
    }
    if arguments.write_accepted is not None:
        write_accepted(arguments.write_accepted, kinds)
    if arguments.html is not None:
        write_page(arguments.html, counts, kinds)
    if arguments.json:
        _write_line({**counts, "changes": [attrs.asdict(kind) for kind in kinds]})
        return
    if kinds and not arguments.summary:
        write_text("\n")
    for kind in kinds:
        write_text(harmless(str(kind)) + "\n")
    accepted_text = f"{counts['accepted']} as accepted, " if comparison.accepted else ""
    uncompared_text = f"; {uncompared_count} could not be compared" if uncompared_count else ""
    write_text(
        f"{counts['compared']} compared: {counts['different']} different, {accepted_text}"
        f"{counts['same']} the same{uncompared_text}\n"
    )


def _before(answer: RecordedAnswer, file: Path | None) -> Outcome:
    """The stored form of *answer*: in its record, or in *file*.

    Raises:
        _Unstored: it is missing, or it cannot be read.
    """
    try:
        if answer.record is not None:
            stored_answer = answer.record.stored
            if stored_answer is None:
                raise _Unstored('no stored answer: no "response" in the record')
            return read_stored(load_json(stored_answer) if isinstance(stored_answer, str) else stored_answer)
        if file is None:
            raise _Unstored("no stored answer: --stored names the folder of them")
        return read_stored(load_json(file.read_bytes()))
    except FileNotFoundError:
        raise _Unstored(f"no stored answer: no {file}") from None
    except OSError as error:
        raise _Unstored(f"the stored answer: {file}: {error.strerror or type(error).__name__}") from None
    except orjson.JSONDecodeError as error:
        raise _Unstored(f"the stored answer: not JSON: {error.msg}") from None
    except CanonicalJSONError as error:
        raise _Unstored(f"the stored answer: {error}") from None


def _plain(difference: Difference) -> dict[str, str]:
    before, after = shown(difference)
    return {"path": difference.place, "before": before, "after": after}


def _write_line(value: dict[str, Any]) -> None:
    write_json(orjson.dumps(value) + b"\n")
