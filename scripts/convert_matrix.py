"""Writes the tables of ``docs/convert-matrix.md``: ``python scripts/convert_matrix.py``.

Every recorded answer in ``tests/captures`` is converted to every format, as a body and as a stream. The tables list the
rules of the losses, for each pair of formats. A loss that no rule names is an error here, and
``tests/test_convert_matrix.py`` fails where the page is stale.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from crosswalk import ChatResponse, CrosswalkError, normalize, normalize_stream
from crosswalk.convert import ConversionReport, Grade, WireForm, convert, convert_stream
from crosswalk.convert.rules import RULES, UNNAMED
from crosswalk.convert.source import form_of_body, source_form
from crosswalk.testing import load_captures

__all__ = ["PAGE", "UnnamedLossError", "check_named", "current_page"]

ROOT: Final = Path(__file__).parents[1]
CAPTURES: Final = ROOT / "tests/captures"
PAGE: Final = ROOT / "docs/convert-matrix.md"
OTHER: Final = "any other"

Cells = dict[tuple[str, WireForm, str], Counter[str]]
"""How many answers have a loss of each rule, by source, target, and ``body`` or ``stream``; under ``""`` all answers."""


class UnnamedLossError(Exception):
    """A conversion lost something that no rule names."""


def check_named(report: ConversionReport, place: str) -> None:
    """Raise for a loss of *report* that no rule names.

    Raises:
        UnnamedLossError: there is one.
    """
    for loss in report.differences:
        if loss.rule is UNNAMED:
            raise UnnamedLossError(f"{place} to {report.form}: no rule names {loss}")


def measured() -> Cells:
    """What happens to the recorded answers.

    Raises:
        UnnamedLossError: a loss without a rule.
    """
    cells: Cells = defaultdict(Counter)
    for folder in sorted(CAPTURES.iterdir()):
        for capture in load_captures(folder) if folder.is_dir() else ():
            with suppress(CrosswalkError):
                answer = normalize(capture.body, folder.name, status=capture.status)
                source = _format_of(answer)
                for target in WireForm:
                    body = convert(answer, target, losses="report").report
                    deltas = normalize_stream([capture.body], folder.name, status=capture.status)
                    stream = convert_stream(deltas, target, losses="report")
                    for _ in stream:
                        pass
                    for kind, report in (("body", body), ("stream", stream.report)):
                        check_named(report, f"{folder.name}/{capture.case} ({kind})")
                        cells[source, target, kind].update({"", *(loss.rule.name for loss in report.losses)})
    return cells


def _format_of(answer: ChatResponse) -> str:
    """The format of *answer*, as the tables call it."""
    first = answer.raw_events[0] if len(answer.raw_events) == 1 else None
    form = form_of_body(first) or source_form(answer)
    return OTHER if form is None else form.label


def rules_table() -> Iterator[str]:
    """A row for each rule."""
    yield from ("| rule | grade | reason |", "|---|---|---|")
    for rule in RULES:
        yield f"| {rule.name} | {rule.grade} | {rule.why} |"


def matrix(cells: Cells) -> Iterator[str]:
    """A table for each target, with a row for each source."""
    sources = [*(form.label for form in WireForm), OTHER]
    for target in WireForm:
        yield from (f"### To {target.label}", "", "| from | body | stream |", "|---|---|---|")
        for source in sources:
            found = [_cell(cells.get((source, target, kind), Counter())) for kind in ("body", "stream")]
            yield f"| {source} | {found[0]} | {found[1]} |"
        yield ""


def _cell(counts: Counter[str]) -> str:
    """The rules of the losses, the dangerous ones in bold, each with its share of the answers."""
    total = counts[""]
    if not total:
        return "not recorded"
    grades = {rule.name: rule.grade for rule in RULES}
    named = [
        f"**{rule.name}** {counts[rule.name]}"
        if grades[rule.name] is Grade.DANGEROUS
        else f"{rule.name} {counts[rule.name]}"
        for rule in RULES
        if counts[rule.name]
    ]
    return f"of {total}: {', '.join(named)}" if named else f"of {total}: nothing"


def current_page() -> str:
    """The page as it should be: its text, with the tables of now."""
    page = PAGE.read_text(encoding="utf-8")
    for name, lines in {"rules": rules_table(), "matrix": matrix(measured())}.items():
        begin, end = f"<!-- {name}: written by scripts/convert_matrix.py -->", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = "\n".join([head + begin, "", *lines, "", end + rest.partition(end)[2]])
    return page


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
