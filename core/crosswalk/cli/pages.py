"""A crosswalk as Markdown, and as a page of HTML that needs nothing beside it."""

from __future__ import annotations

import html
from typing import Final

from crosswalk.cli.sections import Section
from crosswalk.cli.terminal import harmless
from crosswalk.cli.wording import LEGEND, NOTE, Piece, headings, pieces

__all__ = ["html_page", "markdown_page"]


def markdown_page(title: str, command: str, sections: list[Section]) -> str:
    """The crosswalk as a page of Markdown.

    Args:
        title: the provider's name.
        command: what writes the page.
        sections: what to write.
    """
    lines = [
        f"# The crosswalk of {_markdown(title)}",
        "",
        f"Written by `{command}`; not to be edited by hand.",
        "",
    ]
    lines += [_markdown(NOTE), "", "| how | |", "|---|---|"]
    lines += [f"| {word} | {meaning} |" for word, meaning in LEGEND.items()]
    for section in sections:
        heads = headings(section)
        lines += ["", f"## {_markdown(section.title)}", "", f"From {_captures(section)}.", ""]
        lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in section.rows:
            cells = (", ".join(_markdown_piece(piece) for piece in cell) for cell in pieces(row, section))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _captures(section: Section) -> str:
    return "1 capture" if section.captures == 1 else f"{section.captures} captures"


def _markdown_piece(piece: Piece) -> str:
    label = f"{piece.label}: " if piece.label else ""
    if not piece.is_path or "`" in piece.text:
        return label + _markdown(piece.text)
    safe = harmless(piece.text).replace("|", "\\|")
    return f"{label}`{safe}`"


def _markdown(text: str) -> str:
    for mark in "\\`*_<>|[]#":
        text = text.replace(mark, f"\\{mark}")
    return harmless(text)


_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 90rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; }
th { position: sticky; top: 0; background: Canvas; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
nav li { display: inline; margin-right: 1rem; }
nav ul { padding: 0; }
dt { float: left; clear: left; width: 10rem; font-weight: 600; }
"""


def html_page(title: str, command: str, sections: list[Section]) -> str:
    """The crosswalk as one page of HTML; arguments as for :func:`markdown_page`."""
    name = _html(f"The crosswalk of {title}")
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title>",
        f"<style>{_STYLE}</style></head>",
        "<body>",
        f"<h1>{name}</h1>",
        f"<p>Written by <code>{_html(command)}</code>. {_html(NOTE)}</p>",
        "<dl>",
        *(f"<dt>{_html(word)}</dt><dd>{_html(meaning)}</dd>" for word, meaning in LEGEND.items()),
        "</dl>",
        "<nav><ul>",
        *(f'<li><a href="#s{n}">{_html(section.title)}</a></li>' for n, section in enumerate(sections)),
        "</ul></nav>",
    ]
    for number, section in enumerate(sections):
        heads = "".join(f"<th>{_html(head)}</th>" for head in headings(section))
        lines += [f'<h2 id="s{number}">{_html(section.title)}</h2>', f"<p>From {_captures(section)}.</p>"]
        lines += [f"<table><thead><tr>{heads}</tr></thead><tbody>"]
        for row in section.rows:
            cells = (",<br>".join(_html_piece(piece) for piece in cell) for cell in pieces(row, section))
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        lines.append("</tbody></table>")
    return "\n".join([*lines, "</body>", "</html>"]) + "\n"


def _html_piece(piece: Piece) -> str:
    label = f"{piece.label}: " if piece.label else ""
    text = _html(piece.text)
    return label + (f"<code>{text}</code>" if piece.is_path else text)


def _html(text: str) -> str:
    return html.escape(harmless(text))
