"""Counts lines of code: ``python scripts/lines.py`` prints them by room, without blank lines, comments and docstrings."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SHIPPED: Final = ("core", "contrib", "plugins")
LAYOUT: Final = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def code_lines(text: str) -> int:
    """Return the number of lines of *text* that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                docstrings |= set(range(statement.lineno, (statement.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def main() -> None:
    """Print the lines of each room, of all shipped code, and of the tests."""
    rooms: Counter[str] = Counter()
    for top in (*SHIPPED, "tests"):
        for file in sorted((ROOT / top).rglob("*.py")):
            depth = 2 if top != "core" else 3
            room = "/".join(file.relative_to(ROOT).parts[:depth]) if top != "tests" else "tests"
            rooms[room] += code_lines(file.read_text(encoding="utf-8"))
    for room, count in rooms.most_common():
        print(f"{count:7,}  {room}")
    shipped = sum(count for room, count in rooms.items() if room != "tests")
    print(f"{shipped:7,}  shipped, {rooms['tests'] / shipped:.2f} lines of tests for each")


if __name__ == "__main__":
    main()
