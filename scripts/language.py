"""Measures how plain the English is: ``python scripts/language.py`` fails if pages or docstrings miss a bar.

It reads README, CONTRIBUTING and ``docs/``, without code, tables and links, and counts four things. Sentences that begin
with a relative word ("What no field takes …") tire readers. So do semicolons and the words of :data:`HOUSE_WORDS`. A page
that addresses its reader says "you". Then it reads the docstrings of the shipped code.

With paths of Python files as arguments it prints the figures of their docstrings, without a bar.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[1]
RELATIVE: Final = re.compile(r"(?:What|Who|Whoever|Whose|Whom|Where|Of|To whom|That which)\b")
HOUSE_WORDS: Final = re.compile(
    r"\b(?:told|nobody|whose|whom|whoever|beside|stands?|in vain|is none|is no [A-Za-z]+|of its own|as it is|alike"
    r"|the like|says so|thereof|therein|approved of)\b",
    re.IGNORECASE,
)
YOU: Final = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)


@attrs.frozen
class Counts:
    """The figures of a text."""

    words: int
    sentences: int
    relative: int
    semicolons: int
    you: int
    house_words: int

    @classmethod
    def of(cls, text: str) -> Counts:
        """Count *text*, plain prose."""
        paragraphs = re.split(r"\n\s*\n|^\s*[-*] |^\s*\d+\. ", text, flags=re.MULTILINE)
        ends = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*])")
        sentences = [
            one for part in paragraphs for one in ends.split(" ".join(part.split())) if one.count(" ") > 1
        ]
        return cls(
            words=len(re.findall(r"[A-Za-z']+", text)),
            sentences=len(sentences),
            relative=sum(RELATIVE.match(sentence.lstrip("*_ ")) is not None for sentence in sentences),
            semicolons=text.count(";"),
            you=len(YOU.findall(text)),
            house_words=len(HOUSE_WORDS.findall(text)),
        )

    @property
    def relative_percent(self) -> float:
        """The percentage of sentences that begin with a relative word."""
        return 100 * self.relative / max(self.sentences, 1)

    def per_thousand(self, count: int) -> float:
        """*count* in 1,000 words."""
        return 1000 * count / max(self.words, 1)

    def __str__(self) -> str:
        figures = [self.per_thousand(count) for count in (self.semicolons, self.house_words, self.you)]
        semicolons, house_words, you = figures
        return (
            f"{self.words:6} words  {self.relative_percent:4.1f} % relative  in 1,000 words: {semicolons:4.1f} semicolons"
            f"  {house_words:4.1f} house words  {you:4.1f} you"
        )

    def meets(self, *, semicolons: int, you: int) -> bool:
        """Return whether the figures meet the bars: relative < 2 %, house words < 3, and the two given ones."""
        return (
            self.relative_percent < 2
            and self.per_thousand(self.semicolons) < semicolons
            and self.per_thousand(self.house_words) < 3
            and self.per_thousand(self.you) >= you
        )


def page_prose(page: Path) -> str:
    """Return the sentences of a Markdown *page*."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\s*\|.*$|^#.*$|^<.*$|^!\[.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "X", text)


def docstrings(module: Path) -> str:
    """Return the docstrings of a Python *module*."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, kinds))
    return "\n\n".join(filter(None, map(ast.get_docstring, nodes)))


def report(texts: Iterable[tuple[str, str]]) -> Counts:
    """Print the figures of each text by name, and of all texts together, which are returned."""
    everything = []
    for name, text in texts:
        everything.append(text)
        print(f"{name:40} {Counts.of(text)}")
    counts = Counts.of("\n\n".join(everything))
    print(f"{'all':40} {counts}")
    return counts


def main(paths: list[str]) -> int:
    """Print the figures. Return the exit status."""
    if paths:
        report((path, docstrings(Path(path))) for path in paths)
        return 0
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    counts = report((page.relative_to(ROOT).as_posix(), page_prose(page)) for page in pages)
    shipped = [
        path for folder in ("core", "plugins", "contrib") for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    code = Counts.of("\n\n".join(map(docstrings, shipped)))
    print(f"{'docstrings of the shipped code':40} {code}")
    faults = []
    if not counts.meets(semicolons=3, you=10):
        faults.append("The pages miss a bar: relative < 2 %, semicolons < 3, house words < 3, you >= 10")
    if not code.meets(semicolons=4, you=0):
        faults.append("The docstrings miss a bar: relative < 2 %, semicolons < 4, house words < 3")
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
