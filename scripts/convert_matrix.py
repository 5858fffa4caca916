"""Writes the tables of ``docs/convert-matrix.md``: ``python scripts/convert_matrix.py``.

Every recorded answer in ``tests/captures`` is converted to every format, as a body and as a stream. The tables list the
rules of the losses, for each pair of formats. A loss that no rule names is an error here, and
``tests/test_convert_matrix.py`` fails where the page is stale. The fields of requests in ``tests/request_fields.toml`` are
sent to every format. A loss that the file does not name is an error, too.
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from crosswalk import ChatResponse, CrosswalkError, normalize, normalize_stream
from crosswalk.convert import ConversionReport, Grade, WireForm, convert, convert_stream
from crosswalk.convert.losses import RULES, UNNAMED
from crosswalk.formats.writing import form_of_body, source_form
from crosswalk.service import AdaptationKind, HTTPRequest, build_http_request, read_request
from crosswalk.testing import load_captures

__all__ = ["FIELDS", "FORMATS", "PAGE", "UnnamedLossError", "check_named", "current_page", "sent"]

ROOT: Final = Path(__file__).parents[1]
CAPTURES: Final = ROOT / "tests/captures"
PAGE: Final = ROOT / "docs/convert-matrix.md"
OTHER: Final = "any other"
FIELDS: Final[list[dict[str, Any]]] = tomllib.loads((ROOT / "tests/request_fields.toml").read_text())["field"]
"""Fields of requests, each with its outcome in other formats. The file says how to read it."""
FORMATS: Final[dict[str, tuple[WireForm, dict[str, Any]]]] = {
    "chat": (WireForm.OPENAI_CHAT, {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": (WireForm.OPENAI_RESPONSES, {"input": "Hi"}),
    "messages": (WireForm.ANTHROPIC, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}),
    "ollama": (WireForm.OLLAMA, {"messages": [{"role": "user", "content": "Hi"}], "stream": False}),
    "gemini": (WireForm.GEMINI, {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
}
"""The form and the least request of each format in that file."""

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


def sent(row: Mapping[str, Any], provider: str) -> HTTPRequest:
    """Return the request to *provider* for the client's request of *row*."""
    form, least = FORMATS[row["from"]]
    incoming = read_request({"model": "m", **least, **row["send"]}, form)
    return build_http_request(incoming.request, provider)


def requests_table() -> Iterator[str]:
    """A row for each format of a client, with the fields that each other format lacks.

    Raises:
        UnnamedLossError: a field is reported as lost, and the file says that it is not.
    """
    yield "| from | " + " | ".join(f"to {form.label}" for form, _ in FORMATS.values()) + " |"
    yield "|---" * (len(FORMATS) + 1) + "|"
    for source, (form, _) in FORMATS.items():
        rows = [row for row in FIELDS if row["from"] == source]
        yield f"| {form.label} | " + " | ".join(_fields_cell(rows, target) for target in FORMATS) + " |"


def _fields_cell(rows: list[dict[str, Any]], target: str) -> str:
    if rows[0]["from"] == target:
        return f"of {len(rows)}: nothing"
    lost: Counter[str] = Counter()
    for row in rows:
        name = _label(row["send"])
        if row[target] == "dangerous":
            lost[f"**`{name}`**"] += 1
        elif row[target] == "changed":
            lost[f"`{name}`"] += 1
        else:
            for one in sent(row, FORMATS[target][0].provider).adaptations:
                if one.kind is not AdaptationKind.DEFAULTED:
                    raise UnnamedLossError(f"{row['from']} to {target}: {one}")
    named = [name if count == 1 else f"{name} {count}" for name, count in sorted(lost.items())]
    return f"of {len(rows)}: {', '.join(named)}"


def _label(value: Any) -> str:
    """Return the path of the last field in *value*, as far as objects have one field alone."""
    steps: list[str] = []
    while isinstance(value, dict) and (len(value) == 1 or not steps):
        steps.append(next(reversed(value)))
        value = value[steps[-1]]
    return ".".join(steps)


def current_page() -> str:
    """The page as it should be: its text, with the tables of now."""
    page = PAGE.read_text(encoding="utf-8")
    tables = {"rules": rules_table(), "matrix": matrix(measured()), "requests": requests_table()}
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: written by scripts/convert_matrix.py -->", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = "\n".join([head + begin, "", *lines, "", end + rest.partition(end)[2]])
    return page


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
