"""The crosswalk as one page of HTML to look at: a matrix of fields by providers, and below it each provider's wire paths.

The page needs nothing beside it and may load nothing. Without its script the links of the matrix lead to the providers;
with it they open what the captures show of that field, which is taken from the tables below: nothing is written twice.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from typing import Any, Final

from crosswalk.cli.matrix import EXTENSIONS, STATES, Crosswalk, Line, Matrix, State
from crosswalk.cli.sections import Row, Section, Shape, shown
from crosswalk.cli.terminal import harmless
from crosswalk.cli.wording import LEGEND, NOTE, Piece, headings, pieces
from crosswalk.text import counted
from crosswalk.types.json import dump_json

__all__ = ["html_page"]

_LONGEST_EXAMPLE: Final = 120
_WIDTH_OF_FIELDS: Final = 400
_WIDTH_OF_PROVIDER: Final = 36
"""In pixels, as in the style; a window too narrow for all columns gets a list for each field instead."""
_LEAST_WIDTH: Final = 640

_LETTERS: Final = {State.NATIVE: "n", State.DERIVED: "d", State.EXTENSIONS: "x", State.ABSENT: "a"}
"""The classes of cells: there are thousands."""

_GROUPS: Final = {
    "message": "Message",
    "usage": "Usage",
    "segments": "Segments",
    "logprobs": "Log probabilities",
    "content_filter_results": "Content filter",
    "alternatives": "Alternatives",
    "metadata": "Metadata",
}
_OF_THE_ANSWER: Final = "Answer"
_KEPT: Final = "Kept in extensions"


def html_page(command: str, crosswalks: list[Crosswalk]) -> str:
    """The crosswalks as one page.

    Args:
        command: what writes the page.
        crosswalks: what to show, in this order.
    """
    matrix = Matrix(crosswalks)
    count = len(crosswalks)
    name = _html(f"The crosswalk of {crosswalks[0].title if count == 1 else f'{count} providers'}")
    breakpoint_ = max(_LEAST_WIDTH, _WIDTH_OF_FIELDS + _WIDTH_OF_PROVIDER * count)
    style = _part("crosswalk.css").replace("BREAKPOINT", f"{breakpoint_}px")
    script = _part("crosswalk.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{name}</title>",
        f"<style>{style}</style></head>",
        "<body>",
        f"<header><h1>{name}</h1>",
        "<p>Which field of a provider's answer becomes which field of the canonical response. "
        "Choose a mark to see the wire path, with an example from a capture.</p></header>",
        "<main>",
        *_controls(crosswalks),
        *_matrix(matrix),
        '<h2 id="providers">Provider by provider</h2>',
        f"<p>{_html(NOTE)}</p>",
        "<details><summary>What the words of the tables mean</summary><dl>",
        *(f"<dt>{_html(word)}</dt><dd>{_html(meaning)}</dd>" for word, meaning in LEGEND.items()),
        "</dl></details>",
    ]
    numbers = {line.path: number for number, line in enumerate(matrix.lines)}
    for number, crosswalk in enumerate(crosswalks):
        lines += _provider(number, crosswalk, matrix, numbers)
    lines += [
        "</main>",
        f"<footer><p>Written by <code>{_html(command)}</code>.</p></footer>",
        '<dialog id="shown" aria-labelledby="shown-title"><form method="dialog"><h2 id="shown-title"></h2>'
        '<button aria-label="Close" title="Close">✕</button></form><p></p><ul></ul></dialog>',
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _part(name: str) -> str:
    return (files("crosswalk.cli") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a policy names the one text that may be used; no other script runs, whatever stands in a capture."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _controls(crosswalks: list[Crosswalk]) -> Iterator[str]:
    yield '<form class="controls" role="search" hidden>'
    yield '<label>Find a field <input type="search" placeholder="usage, reasoning …" autocomplete="off"></label>'
    yield '<label>Show <select name="state"><option value="">every field</option>'
    yield from (f'<option value="{_LETTERS[state]}">{_html(state)}</option>' for state in STATES)
    yield '</select></label><label>Provider <select name="provider"><option value="">all</option>'
    yield from (f'<option value="{n}">{_html(each.title)}</option>' for n, each in enumerate(crosswalks))
    yield '</select></label><label class="check"><input type="checkbox"> with extensions</label>'
    yield '<output aria-live="polite"></output></form>'
    yield '<ul class="legend" aria-label="Marks">'
    for state, meaning in STATES.items():
        yield f'<li class="{_LETTERS[state]}"><span><b>{_html(state)}</b> {_html(meaning)}</span></li>'
    yield "</ul>"


def _matrix(matrix: Matrix) -> Iterator[str]:
    few = "few" if len(matrix.crosswalks) <= 6 else "many"
    yield f'<table id="matrix" class="{few}"><caption>Canonical field by provider</caption>'
    yield '<thead><tr><th scope="col">Canonical field</th>'
    for number, crosswalk in enumerate(matrix.crosswalks):
        yield f'<th scope="col"><a href="#p{number}"><span>{_html(crosswalk.title)}</span></a></th>'
    yield "</tr></thead>"
    numbered = enumerate(matrix.lines)
    for group, lines in groupby(numbered, key=lambda line: _group(line[1].path)):
        kept = ' class="kept"' if group == _KEPT else ""
        span = len(matrix.crosswalks) + 1
        yield f'<tbody{kept}><tr><th colspan="{span}" scope="rowgroup">{group}</th></tr>'
        for number, line in lines:
            yield _line(number, line, matrix.crosswalks)
        yield "</tbody>"
    yield "</table>"
    yield '<p id="nothing" hidden>No field fits.</p>'


def _group(path: Shape) -> str:
    return _KEPT if path[:2] == EXTENSIONS else _GROUPS.get(path[0], _OF_THE_ANSWER)


def _line(number: int, line: Line, crosswalks: Any) -> str:
    name = shown(line.path[2:] if line.path[:2] == EXTENSIONS else line.path)
    saying = sum(state is not State.ABSENT for state in line.states)
    cells = "".join(
        _cell(column, state, crosswalks[column].title) for column, state in enumerate(line.states)
    )
    count = (
        f' <small title="providers that say it">{saying}/{len(crosswalks)}</small>'
        if len(crosswalks) > 1
        else ""
    )
    return f'<tr data-f="{number}"><th scope="row"><code>{_breakable(name)}</code>{count}</th>{cells}</tr>'


def _cell(column: int, state: State, title: str) -> str:
    if state is State.ABSENT:
        return f'<td class="a"><i>{state}</i></td>'
    title = _html(title)
    link = f'<a href="#p{column}" title="{title}: {state}"><i><span>{title}</span> <b>{state}</b></i></a>'
    return f'<td class="{_LETTERS[state]}">{link}</td>'


def _provider(number: int, crosswalk: Crosswalk, matrix: Matrix, numbers: dict[Shape, int]) -> Iterator[str]:
    states = [line.states[number] for line in matrix.lines]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state is not State.ABSENT)
    yield f'<details class="provider" id="p{number}"><summary><h3>{_html(crosswalk.title)}</h3>'
    yield f" <code>{_html(crosswalk.name)}</code> <small>{counts}</small></summary>"
    for section in crosswalk.sections:
        captures = counted(section.captures, "capture")
        heads = [*headings(section), "example"]
        yield f"<details><summary><h4>{_html(section.title)}</h4> <small>from {captures}</small></summary><table><thead><tr>"
        yield "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead><tbody>"
        for row in section.rows:
            yield _row(
                row, section, heads, " ".join(str(numbers[path]) for path in sorted(matrix.fields_of(row)))
            )
        yield "</tbody></table></details>"
    yield "</details>"


def _row(row: Row, section: Section, heads: list[str], lines: str) -> str:
    cells = [", ".join(map(_piece, cell)) for cell in pieces(row, section)] + [_example(row)]
    wire, *others = (f' data-h="{head}">{cell}' for head, cell in zip(heads, cells, strict=True))
    lost = ' class="lost"' if row.is_lost else ""
    return (
        f'<tr data-f="{lines}"{lost}><th scope="row"{wire}</th>'
        + "".join(f"<td{cell}</td>" for cell in others)
        + "</tr>"
    )


def _piece(piece: Piece) -> str:
    label = f"{piece.label}: " if piece.label else ""
    return label + (f"<code>{_breakable(piece.text)}</code>" if piece.is_path else _html(piece.text))


def _example(row: Row) -> str:
    """What was sent, what the response says where it says it otherwise, and in which capture that is so."""
    sent = _value(row.example.value)
    said = dict.fromkeys(_value(value) for value in row.example.canonical.values())
    becomes = "".join(f" → <code>{value}</code>" for value in said if value != sent)
    return f"<code>{sent}</code>{becomes} <small>{_html(row.example.case)}</small>"


def _value(value: Any) -> str:
    text = dump_json(value).decode()
    return _html(text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 1]}…")


def _breakable(path: str) -> str:
    """A path that a line may break before its dots, never inside a word."""
    return _html(path).replace(".", "<wbr>.").replace("[", "<wbr>[")


def _html(text: str) -> str:
    return html.escape(harmless(text))
