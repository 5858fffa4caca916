"""A crosswalk as a page of Markdown."""

from __future__ import annotations

from crosswalk.cli.matrix.sections import Section
from crosswalk.cli.matrix.wording import LEGEND, NOTE, Piece, headings, pieces
from crosswalk.cli.terminal import harmless
from crosswalk.text import counted


def markdown_page(title: str, command: str, sections: list[Section]) -> str:
    """The crosswalk as a page of Markdown.

    Args:
        title: the provider's name.
        command: the command that writes the page.
        sections: the sections of the page.
    """
    lines = [
        f"# The crosswalk of {_markdown(title)}",
        "",
        f"`{command}` generates this crosswalk, so do not edit it by hand.",
        "",
    ]
    lines += [_markdown(NOTE), "", "| how | |", "|---|---|"]
    lines += [f"| {word} | {meaning} |" for word, meaning in LEGEND.items()]
    for section in sections:
        heads = headings(section)
        captures = counted(section.captures, "capture")
        lines += ["", f"## {_markdown(section.title)}", "", f"From {captures}.", ""]
        lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in section.rows:
            cells = (", ".join(_markdown_piece(piece) for piece in cell) for cell in pieces(row, section))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


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
